from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clash.cli.common import print_json, print_tables, print_text
from clash.cli.option_groups import grouped
from clash.cli.options import AsJson, Ray, RunsFolder, Seed, UseLabels, VoteFilter, ray_cluster

_PANELS = ("0.356", "0.49")
_CORRELATIONS = "0.05,0.1,0.2,0.3,0.5"


@grouped
def power(
    *,
    question: Annotated[
        str,
        typer.Option(
            "--for",
            help="compare (two conditions), paired (two candidates, same items), concordance,"
            " kappa or retest.",
        ),
    ] = "compare",
    effect: Annotated[
        float, typer.Option("--effect", help="Difference to detect; 0.1 is ten points.")
    ] = 0.10,
    base: Annotated[
        float,
        typer.Option(
            "--base", help="Mean of the two proportions; for kappa, the share of class 1."
        ),
    ] = 0.5,
    alpha: Annotated[float, typer.Option("--alpha", help="Two-sided error rate.")] = 0.05,
    power_level: Annotated[float, typer.Option("--power", help="Power asked for.")] = 0.80,
    panel: Annotated[
        list[str] | None,
        typer.Option(
            "--panel",
            help="Discrimination rate of each judge, comma separated; repeat the option to "
            "compare panels. Default: the means of the published pilot, 0.356 and 0.49.",
        ),
    ] = None,
    ballots: Annotated[
        float | None,
        typer.Option(
            "--ballots", min=0.01, help="Number of ballots of all judges on a run or item."
        ),
    ] = None,
    icc: Annotated[
        str, typer.Option("--icc", help="Correlations of ballots of one run or item.")
    ] = _CORRELATIONS,
    n: Annotated[
        int | None,
        typer.Option(
            "--n",
            min=1,
            help="Sample size that you have; prints its power and the effect that it can detect.",
        ),
    ] = None,
    half_width: Annotated[
        float,
        typer.Option(
            "--half-width",
            help="Half-width of the interval to plan for (concordance, kappa, retest).",
        ),
    ] = 0.05,
    expectation: Annotated[
        float, typer.Option("--expected", help="Expected concordance, kappa or agreement.")
    ] = 0.8,
    times: Annotated[
        int, typer.Option("--times", min=2, help="Number of runs in a test-retest.")
    ] = 2,
    per_question: Annotated[
        float, typer.Option("--per-question", help="Number of items that share a question.")
    ] = 1.0,
    pilot: Annotated[
        str | None,
        typer.Option("--from", help="Pilot run or votes file to estimate the correlation from."),
    ] = None,
    pair: Annotated[
        str | None,
        typer.Option(
            "--pair",
            help="With --from and more than two candidates: the two to compare, as a,b. Default: "
            "the two best.",
        ),
    ] = None,
    outcome: Annotated[
        str, typer.Option("--outcome", help="With --from: wins (of side A) or agreement (labels).")
    ] = "wins",
    votes: VoteFilter,
    use_labels: UseLabels = True,
    simulate: Annotated[
        bool, typer.Option("--simulate", help="Check each figure by simulation.")
    ] = False,
    replications: Annotated[
        int, typer.Option("--replications", min=10, help="Simulated studies.")
    ] = 1000,
    published_tables: Annotated[
        bool,
        typer.Option("--published", help="Print the published tables 3.3 and 3.4 beside ours."),
    ] = False,
    ray: Ray = None,
    runs: RunsFolder = Path("runs"),
    seed: Seed = None,
    as_json: AsJson = False,
) -> None:
    """How many runs, items or labels a question needs, and what yours can detect.

    `clash power --for paired --effect 0.1 --panel 0.9,0.8,0.6 --icc 0.3`
    """
    from clash.analysis.power.scenarios import PowerQuestion
    from clash.integrations.ray_tasks import tasks_on
    from clash.pipeline import power as pipeline
    from clash.stats.power.design import ErrorRates

    power_question = PowerQuestion(
        question=pipeline.check_question(question),
        effect=effect,
        middle=base,
        level=ErrorRates(alpha, power_level),
        half_width=half_width,
        expected=expectation,
        runs=times,
        per_cluster=per_question,
        n=n,
    )
    number = 0 if seed is None else seed
    cluster = ray_cluster(ray, send_keys=False)
    if pilot is not None:
        selection = votes.select(pilot, runs, use_labels=use_labels)
        with tasks_on(cluster):
            estimates = pipeline.pilot_power(
                selection, power_question, pair=pair, outcome=outcome, seed=number
            )
        if as_json:
            print_json(estimates.as_json())
            return
        print_text(estimates.headline())
        print_tables(estimates.tables())
        return
    is_default = question == "compare" and panel is None and ballots is None
    with tasks_on(cluster):
        findings = pipeline.plan_power(
            power_question,
            pipeline.panel_designs(panel or _PANELS, ballots, question),
            pipeline.parse_shares(icc, "--icc"),
            replications=replications if simulate else 0,
            seed=number,
            with_published=published_tables or is_default,
        )
    if as_json:
        print_json(findings.as_json())
    else:
        print_text(findings.headline())
        print_tables(findings.tables())
