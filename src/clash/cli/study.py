"""``clash study``: the papers' experiments on your own votes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clash.cli.common import (
    print_json,
    print_tables,
    print_text,
    print_written,
    progress_bar,
)
from clash.cli.option_groups import grouped
from clash.cli.options import AsJson, Decisive, Quiet, RunsFolder, Seed, VoteFilter, VotesArgument
from clash.cli.plain_help import Command
from clash.errors import ConfigError, one_of
from clash.extras import require

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.figure import Figure

    from clash.report.tables import Table

app = typer.Typer(
    name="study",
    no_args_is_help=True,
    help="Repeat the papers' experiments on your own labelled votes.",
)

OutFolder = Annotated[
    Path | None,
    typer.Option("--out", "-o", help="Folder for the figures (SVG, PNG) and study.json."),
]
MostItems = Annotated[
    int | None,
    typer.Option("--most-items", min=30, help="Use a random sample of so many rows at most."),
]


@app.command("ising", cls=Command)
@grouped
def ising_(
    *,
    source: VotesArgument,
    trials: Annotated[
        int, typer.Option("--trials", min=2, help="Random draws of items and judges.")
    ] = 20,
    train: Annotated[
        str | None,
        typer.Option("--train", help="Numbers of training items, comma separated."),
    ] = None,
    sizes: Annotated[
        str | None,
        typer.Option("--k", help="Numbers of judges, comma separated; default: 3 to 10."),
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option(
            "--methods",
            help="Models, comma separated; default: all but ising-pseudo and ising-pseudo-class, the"
            " paper's own algorithm, which is slow.",
        ),
    ] = None,
    pool: Annotated[
        int,
        typer.Option(
            "--pool", min=3, max=15, help="Judges that trials draw from: those that voted most."
        ),
    ] = 10,
    most_items: MostItems = None,
    threshold: Annotated[
        float | None,
        typer.Option("--threshold", help="Score from which on a vote or label is side 1."),
    ] = None,
    votes: VoteFilter,
    decisive: Decisive = False,
    out: OutFolder = None,
    runs: RunsFolder = Path("runs"),
    seed: Seed = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Test accuracy of models without labels, by training items and by judges.

    The layout of table 1 and figure 3 of the Ising paper.

    `clash study ising votes.jsonl --out study`
    """
    from clash.report import studies as report
    from clash.reproduction.studies.ising_study import IsingPlan, ising_study
    from clash.reproduction.studies.sweep import MODELS, USUAL

    if out is not None:
        require("matplotlib", field="--out")
    plan = IsingPlan(
        trials=trials,
        train=_numbers(train, "--train", 20),
        sizes=_numbers(sizes, "--k", 3, most=pool),
        pool=pool,
        most_items=most_items,
        methods=USUAL if methods is None else _names(methods, list(MODELS)),
        threshold=threshold,
    )
    table = votes.select(source, runs, decisive=decisive).votes()
    with progress_bar("trials", quiet=quiet or as_json) as progress:
        study = ising_study(table, plan, seed or 0, lambda n: progress(n, trials))
    _show(
        study,
        report.ising_tables(study),
        [report.ising_answer(study), report.ising_setting(study)],
        out,
        lambda: report.ising_figures(study),
        as_json=as_json,
        quiet=quiet,
    )


@app.command("fcps", cls=Command)
@grouped
def fcps_(
    *,
    source: VotesArgument,
    splits: Annotated[int, typer.Option("--splits", min=2, help="Random splits by source.")] = 30,
    labels: Annotated[
        str | None,
        typer.Option(
            "--labels", help="Numbers of calibration labels, comma separated; default: 50 to 800."
        ),
    ] = None,
    pool: Annotated[
        int,
        typer.Option("--pool", min=2, max=12, help="Judges of the panel: those that voted most."),
    ] = 7,
    most_items: MostItems = None,
    votes: VoteFilter,
    decisive: Decisive = False,
    out: OutFolder = None,
    runs: RunsFolder = Path("runs"),
    seed: Seed = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Joint tables against scalar families as labels grow: which map from votes to labels to fit.

    Tables 2, 3 and 7 to 11 and the figures of the finite-calibration paper.

    `clash study fcps votes.jsonl --out study`
    """
    from clash.report import studies as report
    from clash.reproduction.studies.fcps_study import FEWEST_BUDGET, FcpsPlan, fcps_study

    if out is not None:
        require("matplotlib", field="--out")
    plan = FcpsPlan(splits, _numbers(labels, "--labels", FEWEST_BUDGET), pool, most_items)
    table = votes.select(source, runs, decisive=decisive).votes()
    with progress_bar("splits", quiet=quiet or as_json) as progress:
        study = fcps_study(table, plan, seed or 0, lambda n: progress(n, splits))
    _show(
        study,
        report.fcps_tables(study),
        [report.fcps_answer(study), report.fcps_setting(study)],
        out,
        lambda: report.fcps_figures(study),
        as_json=as_json,
        quiet=quiet,
    )


def _numbers(
    text: str | None, option: str, least: int, *, most: int | None = None
) -> tuple[int, ...] | None:
    """Whole numbers, ascending.

    Raises:
        ConfigError: something else, or a number out of range.
    """
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and len(part) < 10 for part in parts):
        raise ConfigError(
            f"{text!r} are not whole numbers", field=option, hint=f"{option} {least},{2 * least}"
        )
    numbers = sorted({int(part) for part in parts})
    if numbers[0] < least or (most is not None and numbers[-1] > most):
        limits = f"at least {least}" if most is None else f"{least} to {most}"
        raise ConfigError(f"numbers of {text!r} are out of range", field=option, hint=limits)
    return tuple(numbers)


def _names(text: str, choices: Sequence[str]) -> tuple[str, ...]:

    names = [part.strip() for part in text.split(",")]
    for name in names:
        if name not in choices:
            raise ConfigError(
                f"there is no model {name!r}", field="--methods", hint=one_of(name, list(choices))
            )
    return tuple(dict.fromkeys(names))


def _show(
    study: Any,  # noqa: ANN401 - either study
    tables: Sequence[Table],
    sentences: Sequence[str],
    out: Path | None,
    figures: Callable[[], dict[str, Figure]],
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    """Print the study, the first sentence as its answer; write its record and figures to ``out``."""
    from clash.analysis.serialize import to_dict

    record = to_dict(study)
    paths = [] if out is None else _write(record, out, figures())
    if as_json:
        print_json({**record, "written": paths})
        return
    for sentence in sentences[:1] if quiet else sentences:
        print_text(sentence)
    if not quiet:
        print_tables(tables)
        print_written(paths)


def _write(record: dict[str, Any], out: Path, figures: dict[str, Figure]) -> list[str]:
    import json

    from clash.report.report_file import write_text
    from clash.report.studies import write_figures

    path = out / "study.json"
    write_text(path, json.dumps(record, indent=1) + "\n")
    return [str(path), *map(str, write_figures(figures, out))]
