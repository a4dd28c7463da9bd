from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clash.cli.common import (
    print_json,
    print_line,
    print_screen,
    print_tables,
    terminal_width,
)
from clash.cli.option_groups import grouped
from clash.cli.options import Out, Output, RunArgument, Seed, UseLabels
from clash.cli.sources import open_run


@grouped
def choose(
    *,
    run: RunArgument,
    max_cost: Annotated[
        float | None,
        typer.Option(
            "--max-cost-per-call", help="The most that a response may cost, in US dollars."
        ),
    ] = None,
    max_latency: Annotated[
        str | None,
        typer.Option(
            "--max-latency",
            help="The longest that a response may take: 800ms or 1.5s; a plain number is "
            "milliseconds.",
        ),
    ] = None,
    latency_quantile: Annotated[
        float,
        typer.Option(
            "--latency-quantile",
            help="Quantile of the response times that is held to the limit: 0.5 is the median.",
        ),
    ] = 0.5,
    worth: Annotated[
        float | None,
        typer.Option(
            "--worth",
            help="What one more preferred answer is worth, in US dollars: choose by value for money.",
        ),
    ] = None,
    price: Annotated[
        list[str] | None,
        typer.Option(
            "--price",
            metavar="CANDIDATE=USD",
            help="Cost of a response where the run has none (injected responses). Repeat it.",
        ),
    ] = None,
    latency: Annotated[
        list[str] | None,
        typer.Option(
            "--latency",
            metavar="CANDIDATE=TIME",
            help="Time of a response where the run has none, as 800ms or 1.5s. Repeat it.",
        ),
    ] = None,
    use_labels: UseLabels = True,
    out: Out = Path("runs"),
    seed: Seed = None,
    output: Output,
) -> None:
    """Which candidate to take under a price and a time, and whether a dearer one is worth it.

    `clash choose latest --max-cost-per-call 0.01 --max-latency 1500ms`
    """
    from clash.analysis.choice import ChoiceLimits
    from clash.analysis.choice import choose as choose_candidate
    from clash.analysis.rundata import RunData
    from clash.analysis.serialize import to_dict
    from clash.cli.outcome import reference
    from clash.pipeline.amounts import assignments, seconds_of
    from clash.report.choice import choice_headline, choice_screen, tables

    limits = ChoiceLimits(
        max_cost,
        None if max_latency is None else seconds_of(max_latency, "--max-latency"),
        latency_quantile,
        worth,
        assignments(price or (), "--price"),
        assignments(latency or (), "--latency"),
    )
    folder = open_run(run, out)
    findings = choose_candidate(RunData.load(folder), limits, use_labels=use_labels, seed=seed)
    if output.as_json:
        print_json({"run": str(folder.path), **to_dict(findings)})
        return
    if output.quiet:
        print_line(choice_headline(findings).text)
        return
    name = reference(folder.path)
    print_screen(choice_screen(findings, terminal_width(), name))
    if output.verbose:
        print_tables(tables(findings))
