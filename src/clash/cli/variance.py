from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clash.cli.common import print_json, print_line, print_tables, say
from clash.cli.option_groups import grouped
from clash.cli.options import (
    Access,
    Compress,
    OnlyReport,
    Out,
    Output,
    RepeatCalls,
    ReportFile,
    UnknownPrice,
    Yes,
)
from clash.pipeline.options import RunOptions
from clash.wording import plural

if TYPE_CHECKING:
    from clash.pipeline.variance import Study, StudyResult


@grouped
def variance(
    *,
    run: Annotated[
        str,
        typer.Argument(
            help="A run folder, a run id under --out, or `latest`; or a study to go on with.",
            metavar="RUN",
        ),
    ],
    rubrics: Annotated[
        int | None,
        typer.Option(
            "--rubrics", min=1, help="Rubrics by the run's own author, the first its own. [2]"
        ),
    ] = None,
    author: Annotated[
        list[str] | None,
        typer.Option(
            "--author",
            metavar="MODEL",
            help="Another model that writes criteria, provider/model; repeat for several.",
        ),
    ] = None,
    shuffles: Annotated[
        int | None, typer.Option("--shuffles", min=1, help="Orders of the responses. [2]")
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option("--samples", min=1, help="Judgments of one and the same page. [2]"),
    ] = None,
    generations: Annotated[
        int | None,
        typer.Option("--generations", min=1, help="Sets of responses, the first the run's. [1]"),
    ] = None,
    items: Annotated[
        int | None, typer.Option("--items", min=2, help="Only so many of the run's items, drawn.")
    ] = None,
    only_report: OnlyReport = False,
    out: Out = Path("runs"),
    max_cost: Annotated[
        float | None,
        typer.Option(
            "--max-cost",
            min=0,
            help="US dollars, for all arms together; by default the cap of the run.",
        ),
    ] = None,
    allow_unknown_price: UnknownPrice = False,
    calls: RepeatCalls,
    compress: Compress = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the arms and their price; make no call.")
    ] = False,
    yes: Yes = False,
    to: ReportFile = None,
    access: Access,
    output: Output,
) -> None:
    """Measure what moves a result: prompts, criteria, shuffle, responses, the judges' own noise.

    Judges the items of a run again in every combination: `clash variance latest --dry-run`, then
    `clash variance latest --author openai/gpt-6-luna --max-cost 5`. Repeat the command to go on.
    """
    from clash.cli.watch import RunObserver
    from clash.pipeline.variance import open_study, report_study, run_study
    from clash.providers.ray_cluster import cluster_connection

    observer = RunObserver(quiet=output.is_silent, watch=False)
    options = RunOptions(access.environ(), observer, yes=yes, compress=compress)
    changes = {
        "rubrics": rubrics,
        "authors": tuple(author) if author else None,
        "shuffles": shuffles,
        "samples": samples,
        "generations": generations,
        "items": items,
    }
    study = open_study(run, out, changes, options)
    limits = {**calls.limits(), "allow_unknown_price": allow_unknown_price or None}
    if dry_run:
        _print_plan(study, {**limits, "max_cost": max_cost}, options, as_json=output.as_json)
        return
    if only_report:
        result = report_study(study)
    else:
        with observer, cluster_connection(calls.cluster()):
            result = run_study(study, max_cost, limits, options)
    _print_result(result, output, to)
    raise typer.Exit(0 if only_report else result.exit_code)


def _print_plan(
    study: Study, limits: dict[str, Any], options: RunOptions, *, as_json: bool
) -> None:
    """Print the arms, and what they cost one by one and together."""
    from clash.pipeline.price import headline
    from clash.pipeline.variance import price_study, total_forecast
    from clash.report.formats import DASH, money
    from clash.report.tables import Table

    prices = price_study(study, limits, options)
    total = total_forecast(prices)
    if as_json:
        arms = [
            {
                "arm": arm_price.arm.name,
                **arm_price.arm.seeds,
                "run": str(study.folder(arm_price.arm).path),
                "complete": arm_price.forecast is None,
                **({} if arm_price.forecast is None else arm_price.forecast.summary()),
            }
            for arm_price in prices
        ]
        record = {"dry_run": True, "run": str(study.parent.path), "study": str(study.path)}
        print_json({**record, **total.summary(), "arms": arms})
        return
    rows = [
        [
            arm_price.arm.name,
            *(
                ["there", DASH, DASH]
                if arm_price.forecast is None
                else [
                    f"{arm_price.forecast.calls:,}",
                    money(arm_price.forecast.expected_usd, fine=False),
                    money(arm_price.forecast.worst_usd, fine=False),
                ]
            ),
        ]
        for arm_price in prices
    ]
    todo = sum(arm_price.forecast is not None for arm_price in prices)
    cost = headline(total)
    print_line(f"{plural(todo, 'arm')} to run, {plural(total.calls, 'call')}:", "bold")
    print_line(f"{cost}.")
    notes = [
        "g: set of responses, r: rubric (a: by another author), s: shuffle, k: judgment of the same page"
    ]
    columns = ["arm", "calls", "expected", "worst case"]
    print_tables([Table("Arms", columns, rows, frozenset({1, 2, 3}), notes)])
    print_line("Nothing was sent.")


def _print_result(result: StudyResult, output: Output, to: Path | None) -> None:
    """Print what the study says, and what is missing in it."""
    from clash.cli.outcome import print_comparison
    from clash.pipeline.variance import require_findings
    from clash.report import variance as report
    from clash.report.formats import money

    study = result.study
    if result.shortfall:
        say(
            f"{result.shortfall}: the same command goes on, and nothing is paid twice",
            style="yellow",
        )
    if output.as_json and to is None:
        print_json(result.as_json())
        return
    print_comparison(
        report,
        require_findings(result),
        result.as_json(),
        runs=[arm.name for arm in study.design.arms() if study.exists(arm)],
        closing=(f"Cost    {money(result.cost_usd)}", f"Study   {study.path}"),
        output=output,
        to=to,
    )
