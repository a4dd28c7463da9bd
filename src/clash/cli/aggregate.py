from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clash.cli.common import print_json, print_line, print_tables, print_text, print_written
from clash.cli.completion import complete_methods
from clash.cli.option_groups import OptionGroup, grouped
from clash.cli.options import (
    AsJson,
    Decisive,
    Quiet,
    RiskConfidence,
    RunsFolder,
    Seed,
    SourcesArgument,
    Verbose,
    VoteFilter,
)
from clash.pipeline.options import AGGREGATE_METHODS

if TYPE_CHECKING:
    from clash.pipeline.aggregate import AggregateFindings


@dataclass(frozen=True)
class Fitting(OptionGroup):
    """How each method reads the votes: options of the same names in the pipeline."""

    use_labels: Annotated[
        bool | None,
        typer.Option(
            "--use-labels/--no-labels",
            help="Use labels in every fit, or in none. By default `auto` brings the `expert-pool` "
            "along from 10 labels on, which reads them. Scores are cross-fitted.",
        ),
    ] = None
    ties: Annotated[
        str | None,
        typer.Option(
            "--ties",
            help="Count a tied vote as `half` a vote for each side (the default), as `missing`, "
            "or as an `outcome` of its own.",
        ),
    ] = None
    copies: Annotated[
        str,
        typer.Option(
            "--copies",
            help="Treat both orders and repeats of an item as one item "
            "(`merge`) or as several (`separate`).",
        ),
    ] = "merge"
    threshold: Annotated[
        float | None, typer.Option("--threshold", help="Scores of at least this count as side 1.")
    ] = None
    weights: Annotated[
        str | None,
        typer.Option(
            "--weights",
            help="Weights of the judges in rankings and the weighted majority: `panel`, `equal`, "
            "`discrimination`, `one-coin`, or a file of judges and weights.",
        ),
    ] = None
    ridge: Annotated[
        str | None,
        typer.Option(
            "--ridge",
            help="L2 penalty on the couplings of the Ising models, as a share of the number of "
            "items, or `held-out` to choose it by held-out likelihood (default: 0.01; `ising-class` "
            "chooses the strength of its whole prior).",
        ),
    ] = None
    bootstrap: Annotated[
        int | None,
        typer.Option(
            "--bootstrap",
            min=0,
            help="Bootstrap replicates for the intervals of rankings (default 1000).",
        ),
    ] = None
    style: Annotated[
        str | None,
        typer.Option(
            "--style",
            help="With bradley-terry: also fit how reliable each judge is, and rank at equal "
            "style: `length`, `markdown`, `position`, `self` (same organisation as the judge), "
            "comma separated, `all`, or `none`.",
        ),
    ] = None
    pairs: Annotated[
        Path | None,
        typer.Option(
            "--pairs",
            help="Responses behind a votes file, for --style: JSONL with item_id, response_a, "
            "response_b.",
        ),
    ] = None
    calibrator: Annotated[
        Path | None,
        typer.Option("--calibrator", help="Add this file of `clash calibrate` as a method."),
    ] = None
    max_risk: Annotated[
        float | None,
        typer.Option("--max-risk", help="Largest share of wrong calibrated verdicts to accept."),
    ] = None
    ranges: Annotated[
        bool,
        typer.Option(
            "--range",
            help="Show which accuracies the votes allow, and which 20 labels would narrow them most.",
        ),
    ] = False
    risk_confidence: RiskConfidence = None


@grouped
def aggregate(
    *,
    sources: SourcesArgument,
    method: Annotated[
        str,
        typer.Option(
            "--method",
            autocompletion=complete_methods,
            help="Methods, comma separated. For verdicts: `all` of them, or by name. For "
            "rankings: `rankings`, or borda, copeland, schulze, kemeny, bradley-terry, "
            "plackett-luce.",
        ),
    ] = AGGREGATE_METHODS,
    votes: VoteFilter,
    decisive: Decisive = False,
    fitting: Fitting,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="Write JSONL: a line for each method and item or candidate. A .txt file gets the "
            "items that `--range` would label next, for `clash review --items`.",
        ),
    ] = None,
    runs: RunsFolder = Path("runs"),
    seed: Seed = None,
    verbose: Verbose = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Aggregate the votes of a run or file by several methods, offline and side by side.

    Several runs with the same settings, such as the shards of one, are read as one.

    Some methods decide every item; others rank the candidates.
    """
    from clash.pipeline.aggregate import AggregateOptions, aggregate_votes

    selection = votes.select(sources[0], runs, *sources[1:], decisive=decisive)
    options = AggregateOptions(method, **vars(fitting), seed=42 if seed is None else seed)
    findings = aggregate_votes(selection, options)
    if out is not None:
        findings.write(out)
    path = None if out is None else str(out)
    if as_json:
        source = {"source": sources[0]} if len(sources) == 1 else {"sources": sources}
        print_json({**source, **findings.as_json(), "written": path})
    else:
        _print(findings, quiet=quiet, verbose=verbose)
        print_written([] if path is None or quiet else [path])


def _print(findings: AggregateFindings, *, quiet: bool, verbose: bool) -> None:
    """The answer, warnings, and tables; or the answer in one line."""
    if quiet:
        print_line(findings.headlines()[0])
        return
    for line in findings.headlines():
        print_text(line)
    for warning in findings.warnings():
        print_text(f"warning: {warning}", style="yellow")
    print_tables(findings.tables(verbose=verbose))
