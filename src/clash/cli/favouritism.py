from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from clash.cli.common import say
from clash.cli.option_groups import grouped
from clash.cli.options import (
    Access,
    Batch,
    DryRun,
    MaxCost,
    OnlyReport,
    Out,
    Output,
    ReportFile,
    RunArgument,
    RunConcurrency,
    Yes,
)
from clash.pipeline.options import RunOptions

if TYPE_CHECKING:
    from clash.pipeline.favouritism import ComparedArms


@grouped
def favouritism(
    *,
    run: RunArgument,
    out: Out = Path("runs"),
    only_report: OnlyReport = False,
    max_cost: MaxCost = None,
    concurrency: RunConcurrency = None,
    batch: Batch = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    to: ReportFile = None,
    access: Access,
    output: Output,
) -> None:
    """Measure whether judges favour their own family when they are told who wrote what.

    Judges the pages of a blind run once more with the names on them, and compares the two:
    `clash favouritism latest --dry-run`. Repeat the command to go on, or to report again.
    """
    from clash.cli.dry_run import print_dry_run
    from clash.cli.watch import RunObserver
    from clash.pipeline.favouritism import (
        compare_arms,
        plan_unblinded,
        run_unblinded,
        unblinded_arm,
    )
    from clash.pipeline.sources import open_run

    observer = RunObserver(quiet=output.is_silent, watch=False)
    options = RunOptions(access.environ(), observer, yes=yes)
    parent = open_run(run, out, observer)
    unblinded_arm(parent)
    limits = {"max_cost": max_cost, "concurrency": concurrency, "batch": batch}
    if dry_run:
        plan = plan_unblinded(parent, limits, options).setup.plan
        print_dry_run(plan, options.environ, output)
        return
    result = None
    if not only_report:
        with observer:
            result = run_unblinded(parent, limits, options)
    arms = compare_arms(parent, result)
    _report(arms, output, to)
    raise typer.Exit(arms.exit_code)


def _report(arms: ComparedArms, output: Output, to: Path | None) -> None:
    """Print how the two arms compare."""
    from clash.cli.outcome import print_comparison
    from clash.report import favouritism as report

    if arms.exit_code:
        say("the unblinded arm is not complete: the same command goes on", style="yellow")
    folders = arms.parent.path, arms.arm.path
    print_comparison(
        report,
        arms.findings,
        arms.as_json(),
        runs=[folder.name for folder in folders],
        closing=(f"Runs    {folders[0]} (blind), {folders[1]} (told)",),
        output=output,
        to=to,
    )
