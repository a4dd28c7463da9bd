from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clash.cli.common import print_json, print_line, print_tables, print_text, print_written
from clash.cli.option_groups import grouped
from clash.cli.options import (
    AsJson,
    Decisive,
    Quiet,
    RunsFolder,
    Seed,
    UseLabels,
    Verbose,
    VoteFilter,
    VotesArgument,
)
from clash.extras import require

if TYPE_CHECKING:
    from clash.analysis.dependence.dependence_findings import Dependence


@grouped
def dependence(
    *,
    source: VotesArgument,
    votes: VoteFilter,
    decisive: Decisive = False,
    method: Annotated[
        str,
        typer.Option(
            "--method",
            help="How the truth is estimated: auto, factor, dawid-skene, one-coin, majority, "
            "factor-family, ising-shared, ising-class or ising-family.",
        ),
    ] = "auto",
    use_labels: UseLabels = True,
    threshold: Annotated[
        float | None, typer.Option("--threshold", help="Scores of at least this count as side 1.")
    ] = None,
    bootstrap: Annotated[
        int, typer.Option("--bootstrap", min=20, help="Bootstrap replicates for the intervals.")
    ] = 500,
    plots: Annotated[
        Path | None, typer.Option("--plots", help="Folder for heat maps, SVG and PNG.")
    ] = None,
    runs: RunsFolder = Path("runs"),
    seed: Seed = None,
    verbose: Verbose = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Do the judges make the same errors, and how many independent judges is the panel worth?"""
    from clash.analysis.dependence import DependenceOptions, diagnose
    from clash.analysis.serialize import to_dict
    from clash.report import dependence as report

    if plots is not None:
        require("matplotlib", field="--plots")
    selection = votes.select(source, runs, decisive=decisive, use_labels=use_labels)
    options = DependenceOptions(method, bootstrap, 0 if seed is None else seed, threshold)
    findings = diagnose(selection.votes(), options)
    paths = [] if plots is None else [str(path) for path in report.write_plots(findings, plots)]
    if as_json:
        print_json({"source": source, **to_dict(findings), "written": paths})
        return
    if quiet:
        print_text(findings.conclusions[0])
        return
    _print(findings, paths, verbose=verbose)


def _print(findings: Dependence, paths: list[str], *, verbose: bool) -> None:
    from clash.report import dependence as report

    answer, *conclusions = findings.conclusions
    print_text(answer)
    for caveat in findings.caveats:
        print_text(f"note: {caveat}", style="yellow")
    print_text(report.headline(findings), style="dim")
    print_line()
    for sentence in conclusions:
        print_text(f"• {sentence}", indent=1)
    print_tables(report.tables(findings, verbose=verbose))
    print_written(paths)
