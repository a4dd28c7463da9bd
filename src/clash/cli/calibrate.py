from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clash.cli.options import (
    AsJson,
    Decisive,
    Judges,
    Presentation,
    Quiet,
    Seed,
    Subset,
    VotesArgument,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from clash.analysis.calibration.study import CalibrationStudy
    from clash.stats.selection.candidate_methods import SelectionSettings
    from clash.stats.selection.prior import Prior
    from clash.votes import Votes


def calibrate(
    source: VotesArgument,
    labels: Annotated[
        int | None,
        typer.Option("--labels", min=8, help="Labelled items to learn from in each split."),
    ] = None,
    splits: Annotated[int, typer.Option("--splits", min=2, help="Random splits by source.")] = 30,
    folds: Annotated[
        int | None, typer.Option("--folds", min=2, help="Cross-validation in place of splits.")
    ] = None,
    protocol: Annotated[
        str,
        typer.Option(
            "--protocol",
            help="rotate: every label selects, calibrates and validates in turn, and the choice"
            " is refitted; blocks: one block each, as published.",
        ),
    ] = "rotate",
    paths: Annotated[
        str | None, typer.Option("--paths", help="Path rules, comma separated; default: all four.")
    ] = None,
    families: Annotated[
        str | None,
        typer.Option(
            "--families",
            help="Families, comma separated; default: all but joint-table-global, the joint table"
            " as published.",
        ),
    ] = None,
    sizes: Annotated[
        str | None, typer.Option("--k", help="Prefix sizes, comma separated; default: 1 to all.")
    ] = None,
    loss: Annotated[str, typer.Option("--loss", help="What validation compares: mse or nll.")] = (
        "mse"
    ),
    select: Annotated[
        str | None,
        typer.Option(
            "--select",
            help="average: the menu together, weighed by validation (default); one: the best of"
            " it that passes the guard (default with `--protocol blocks` or `--guard`).",
        ),
    ] = None,
    guard: Annotated[
        float | None,
        typer.Option(
            "--guard",
            help="Standard errors by which one must beat majority; default: 2 below 200 items,"
            " else 1.",
        ),
    ] = None,
    prior: Annotated[
        str | None,
        typer.Option(
            "--prior",
            help="Which family to trust before labels speak, for 8 labels and more: calibrators of"
            " earlier panels, comma separated, or `task` for the published default.",
        ),
    ] = None,
    judges: Judges = None,
    subset: Subset = None,
    presentation: Presentation = None,
    decisive: Decisive = False,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write the calibrator, for eval to deploy.")
    ] = None,
    plan_labels: Annotated[
        int | None,
        typer.Option("--plan", min=1, help="Say which so many items to label next, and stop."),
    ] = None,
    plots: Annotated[
        Path | None,
        typer.Option(
            "--plots",
            help="Folder for the regime map (which family wins, by judges and labels) and the"
            " stopping plot (what the next judge changes), SVG and PNG.",
        ),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", min=1, help="Processes; default: one a core.")
    ] = None,
    runs: Annotated[
        Path, typer.Option("--runs", help="Folder that run ids are looked up in.")
    ] = Path("runs"),
    seed: Seed = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Choose and fit, on human labels, which judges to ask and how to read their votes.

    `clash calibrate votes.jsonl --out calibrator.json`
    """
    from dataclasses import replace

    from clash.analysis.calibration.study import SIZES, study
    from clash.cli.common import print_json, read_votes, stdout
    from clash.extras import require
    from clash.report import calibration as report
    from clash.report.terminal import print_tables
    from clash.stats.selection.blocks import SplitPlan

    if plots is not None:
        require("matplotlib", field="--plots")
    settings = _settings(paths, families, loss, select, guard, protocol)
    settings = replace(settings, sizes=_numbers(sizes) if sizes else SIZES)
    plan = SplitPlan(labels=labels, rotations=1 if protocol == "blocks" else 5)
    votes = read_votes(source, runs, judges, subset, presentation, decisive=decisive)
    seed = 42 if seed is None else seed
    if plan_labels is not None:
        _plan(source, votes, plan_labels, seed, as_json=as_json)
        return
    trusted = None if prior is None else _prior(prior, votes, settings, labels, seed)
    if trusted is not None:
        settings = replace(settings, prior=trusted.weights)
    with _progress(quiet=quiet or as_json) as done:
        found = study(
            votes,
            settings=settings,
            plan=plan,
            splits=splits,
            folds=folds,
            seed=seed,
            jobs=jobs,
            on_split=done,
        )
    written = None if out is None else _write(out, votes, found, source, runs, seed)
    drawn = {} if plots is None else _draw(plots, votes, found, seed, quiet=quiet or as_json)
    if as_json:
        also = {} if trusted is None else {"prior": report.prior_json(trusted)}
        print_json({"source": source, **report.as_json(found), "written": written, **drawn, **also})
        return
    print_tables(stdout(), report.tables(found))
    if trusted is not None:
        stdout().print(f"\n{report.prior_line(trusted)}", soft_wrap=True, markup=False)
    stdout().print(f"\n{report.in_words(found)}", soft_wrap=True, markup=False)
    for path in [*([written] if written else []), *drawn.get("plots", [])]:
        stdout().print(f"wrote {path}", soft_wrap=True, markup=False)


def _prior(
    text: str, votes: Votes, settings: SelectionSettings, labels: int | None, seed: int
) -> Prior:
    """From calibrators, or from the kind of target alone."""
    import numpy as np

    from clash.analysis.calibration.calibrator import read_calibrator
    from clash.analysis.calibration.frame import ScoreFrame
    from clash.analysis.calibration.priors import prior_for
    from clash.stats.selection.blocks import FEWEST_GROUPS

    frame = ScoreFrame.of(votes, FEWEST_GROUPS)
    sources = len(np.unique(votes.groups[votes.labelled]))
    learnt = sources if labels is None else min(labels, sources)
    names = [name.strip() for name in text.split(",") if name.strip()]
    files = [] if names == ["task"] else names
    earlier = {name: read_calibrator(Path(name)) for name in files}
    return prior_for(frame.target, learnt, settings.families, earlier, seed)


def _draw(
    plots: Path, votes: Votes, found: CalibrationStudy, seed: int, *, quiet: bool
) -> dict[str, Any]:
    """Survey and draw: the map's cells and the pictures written."""
    from clash.analysis.calibration.regimes import regimes
    from clash.report.regime import map_json, write_plots

    with _progress(quiet=quiet, what="regime map") as done:
        drawn = regimes(votes, found, seed=seed, on_split=done)
    written = [str(path) for path in write_plots(drawn, plots)]
    return {"regime_map": map_json(drawn.map), "plots": written}


def _plan(source: str, votes: Votes, n: int, seed: int, *, as_json: bool) -> None:
    """Tell which items to label next."""
    from clash.analysis.calibration.planning import label_plan
    from clash.cli.common import print_json, stdout
    from clash.report import calibration as report
    from clash.report.terminal import print_tables

    found = label_plan(votes, n, seed)
    if as_json:
        print_json({"source": source, "plan": report.plan_json(found)})
        return
    print_tables(stdout(), report.plan_tables(found))


def _write(
    out: Path, votes: Votes, found: CalibrationStudy, source: str, runs: Path, seed: int
) -> str:
    """Fit what is deployed, and write it."""
    import json

    from clash.analysis.calibration.fitting import fit
    from clash.errors import InputError

    models, templates = _origin(source, runs)
    made = fit(
        votes,
        found.frame,
        found.frame.panel(votes),
        found.settings,
        seed=seed,
        models=models,
        templates=templates,
    )
    try:
        out.write_text(
            json.dumps(made.as_json(), ensure_ascii=False, allow_nan=False) + "\n",
            encoding="utf-8",
        )
    except OSError as error:
        raise InputError(f"may not be written: {error.strerror}", path=out) from None
    return str(out)


def _origin(source: str, runs: Path) -> tuple[dict[str, str] | None, str | None]:
    """The models behind the judges and the hash of their prompts, where a run says so."""
    from clash.analysis.calibration.calibrated_verdicts import models_of_run
    from clash.cli.common import find_run

    folder = find_run(source, runs)
    if folder is None:
        return None, None
    manifest = folder.manifest()
    return models_of_run(manifest.panel), manifest.hashes.get("templates")


def _settings(
    paths: str | None,
    families: str | None,
    loss: str,
    select: str | None,
    guard: float | None,
    protocol: str,
) -> SelectionSettings:
    from clash.errors import ConfigError
    from clash.stats.selection.candidate_methods import SelectionSettings
    from clash.stats.selection.families import FAMILIES, MENU
    from clash.stats.selection.paths import PATH_RULES

    published = _known(protocol, ("rotate", "blocks"), "--protocol")[0] == "blocks"
    way = select or ("one" if published or guard is not None else "average")
    one = _known(way, ("average", "one"), "--select")[0] == "one"
    if guard is not None and not one:
        raise ConfigError("an average has no guard", field="--guard", hint="--select one")
    return SelectionSettings(
        rules=_known(paths, PATH_RULES, "--paths"),
        families=MENU if families is None else _known(families, tuple(FAMILIES), "--families"),
        loss="nll" if _known(loss, ("mse", "nll"), "--loss")[0] == "nll" else "mse",
        combine="one" if one else "average",
        guard=guard,
        refit=not published,
    )


def _known(text: str | None, known: tuple[str, ...], option: str) -> tuple[str, ...]:
    from clash.errors import ConfigError

    if text is None:
        return known
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    wrong = [name for name in names if name not in known]
    if wrong or not names:
        hint = f"one of {', '.join(known)}"
        raise ConfigError(f"no {wrong[0] if wrong else 'name'!r}", field=option, hint=hint)
    return names


def _numbers(text: str) -> tuple[int, ...]:
    from clash.errors import ConfigError

    try:
        found = tuple(sorted({int(part) for part in text.split(",")}))
    except ValueError:
        found = ()
    if not found or found[0] < 1:
        raise ConfigError(f"not prefix sizes: {text!r}", field="--k", hint="--k 1,2,3")
    return found


@contextmanager
def _progress(*, quiet: bool, what: str = "splits") -> Iterator[Callable[[int, int], None] | None]:
    """A bar over the splits, on stderr."""
    if quiet:
        yield None
        return
    from rich.progress import Progress

    from clash.cli.common import stderr

    with Progress(console=stderr(), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
