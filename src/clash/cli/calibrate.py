from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clash.cli.common import (
    print_json,
    print_line,
    print_tables,
    print_text,
    print_written,
    progress_bar,
)
from clash.cli.option_groups import OptionGroup, grouped
from clash.cli.options import (
    AsJson,
    Decisive,
    Quiet,
    Ray,
    RunsFolder,
    Seed,
    Verbose,
    VoteFilter,
    VotesArgument,
    ray_cluster,
)
from clash.errors import ConfigError
from clash.extras import require

if TYPE_CHECKING:
    from clash.analysis.calibration.risk import AnsweredShare
    from clash.pipeline.calibrate import CalibrateFindings


@dataclass(frozen=True)
class Learning(OptionGroup):
    """What is learned from which labels: options of the same names in the pipeline."""

    labels: Annotated[
        int | None,
        typer.Option(
            "--labels", min=8, help="Number of labelled items to learn from in each split."
        ),
    ] = None
    splits: Annotated[int, typer.Option("--splits", min=2, help="Random splits by source.")] = 30
    folds: Annotated[
        int | None,
        typer.Option(
            "--folds", min=2, help="Number of cross-validation folds, instead of random splits."
        ),
    ] = None
    protocol: Annotated[
        str,
        typer.Option(
            "--protocol",
            help="rotate: each label is used for selection, calibration and validation in turn, "
            "and the choice is refitted; blocks: one block for each purpose, as published.",
        ),
    ] = "rotate"
    paths: Annotated[
        str | None, typer.Option("--paths", help="Path rules, comma separated; default: all four.")
    ] = None
    families: Annotated[
        str | None,
        typer.Option(
            "--families",
            help="Families, comma separated; default: all but joint-table-global, the joint table"
            " as published.",
        ),
    ] = None
    sizes: Annotated[
        str | None, typer.Option("--k", help="Prefix sizes, comma separated; default: 1 to all.")
    ] = None
    loss: Annotated[str, typer.Option("--loss", help="What validation compares: mse or nll.")] = (
        "mse"
    )
    select: Annotated[
        str | None,
        typer.Option(
            "--select",
            help="average: weighted average of all methods, by validation (default); one: the "
            "best method that passes the guard (default with `--protocol blocks` or "
            "`--guard`).",
        ),
    ] = None
    guard: Annotated[
        float | None,
        typer.Option(
            "--guard",
            help="Number of standard errors by which a method must beat majority; default: 2 "
            "below 200 items, else 1.",
        ),
    ] = None
    prior: Annotated[
        str | None,
        typer.Option(
            "--prior",
            help="Prior over the families, from 8 labels on: calibrators of earlier panels, "
            "comma separated, or `task` for the published default.",
        ),
    ] = None
    sources: Annotated[
        str,
        typer.Option(
            "--sources",
            help="What a split keeps together: group (all rows of a `group`, the default) or item "
            "(where `group` is a category, not a mark of copies).",
        ),
    ] = "group"


@grouped
def calibrate(
    *,
    source: VotesArgument,
    learning: Learning,
    votes: VoteFilter,
    decisive: Decisive = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Write the calibrator, for `clash eval --calibrator`."),
    ] = None,
    plan_labels: Annotated[
        int | None,
        typer.Option("--plan", min=1, help="Suggest which N items to label next, and exit."),
    ] = None,
    plots: Annotated[
        Path | None,
        typer.Option(
            "--plots",
            help="Folder for the regime map (best family by number of judges and labels), the "
            "stopping plot (effect of the next judge) and the risk curve, SVG and PNG.",
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs", "-j", min=1, help="Number of processes; default: one for each core."
        ),
    ] = None,
    ray: Ray = None,
    runs: RunsFolder = Path("runs"),
    seed: Seed = None,
    verbose: Verbose = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Learn from human labels which judges to ask and how to weigh their votes.

    `clash calibrate votes.jsonl --out calibrator.json`
    """
    from clash.integrations.ray_tasks import tasks_on
    from clash.pipeline.calibrate import CalibrateOptions, calibrate_votes, write_calibrator
    from clash.pipeline.calibrate import plan_labels as plan_next
    from clash.report import calibration as report

    if plots is not None:
        require("matplotlib", field="--plots")
    if ray is not None and jobs is not None:
        raise ConfigError("the cluster has its own processes", field="--jobs", hint="leave it out")
    cluster = ray_cluster(ray, send_keys=False)
    selection = votes.select(source, runs, decisive=decisive)
    options = CalibrateOptions(**vars(learning), jobs=jobs, seed=42 if seed is None else seed)
    if plan_labels is not None:
        plan = plan_next(selection, options, plan_labels)
        if as_json:
            print_json({"source": source, "plan": report.plan_json(plan)})
        else:
            print_tables(report.plan_tables(plan))
        return
    with tasks_on(cluster), progress_bar("splits", quiet=quiet or as_json) as progress:
        findings = calibrate_votes(selection, options, progress)
    answered_shares: tuple[AnsweredShare, ...] = ()
    if out is not None:
        calibrator = findings.fit()
        write_calibrator(calibrator, out)
        answered_shares = findings.answer_shares(calibrator)
    drawing = {} if plots is None else _draw(findings, plots, quiet=quiet or as_json)
    if as_json:
        path = None if out is None else str(out)
        shares = {"answered": report.answered_json(answered_shares)} if answered_shares else {}
        print_json({"source": source, **findings.as_json(), "written": path, **shares, **drawing})
    elif quiet:
        print_line(findings.headlines()[0])
    else:
        for line in findings.headlines():
            print_text(line)
        answers = report.answered_tables(answered_shares) if answered_shares else []
        print_tables([*findings.tables(verbose=verbose), *answers])
        print_written([*([] if out is None else [out]), *drawing.get("plots", [])])


def _draw(findings: CalibrateFindings, folder: Path, *, quiet: bool) -> dict[str, Any]:
    """Draw the regime map, the stopping plot and the risk curve: the map's cells and the files written."""
    from clash.report.regime_figures import map_json, write_plots

    with progress_bar("regime map", quiet=quiet) as progress:
        regimes = findings.regimes(progress)
    paths = [str(path) for path in write_plots(regimes, findings.risk, folder)]
    return {"regime_map": map_json(regimes.map), "plots": paths}
