"""Print how a run ended, where its folder is, and what to do next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clash.cli.common import print_json, print_tables, say, stdout
from clash.collect.forecast import price
from clash.pipeline import keys
from clash.pipeline.finish import summary
from clash.pipeline.price import dry_run_summary, headline, token_cap_warnings
from clash.report.costs import usage_warning
from clash.report.formats import money
from clash.report.tables import Table
from clash.report.terminal import print_report
from clash.store import layout

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clash.collect.plan import Plan
    from clash.pipeline.finish import RunResult
    from clash.store.folder import RunFolder


def print_result(result: RunResult, *, as_json: bool, verbose: bool, quiet: bool) -> None:
    """Print the result of a run, where its folder is, and what is left to do."""
    path = result.folder.path
    if as_json:
        print_json(summary(result))
    else:
        print_report(stdout(), result.findings, brief=not verbose)
        stdout().print(f"\nrun: {path}", style="bold", soft_wrap=True)
        if not quiet and not verbose:
            say(f"everything: {path / layout.REPORT_HTML}, or `clash report {path}`")
    for line in (*result.swaps, *_warnings(result), *_next_steps(result)):
        say(line, style="yellow")
    for line in _leaked_secrets(result):
        say(line, style="bold red")


def _next_steps(result: RunResult) -> list[str]:
    path = result.folder.path
    match result.exit_code:
        case 130:
            return [
                f"interrupted; `clash resume {path}` goes on from here and pays nothing twice",
                *_open_batches(result.folder),
            ]
        case 4:
            models = "; ".join(f"{m}: {why}" for m, why in result.manifest.stopped.items())
            return [f"refused for good: {models}", f"fix that, then `clash resume {path}`"]
        case 3:
            if result.interrupted is not None:
                more = " --max-cost USD" if "budget" in result.interrupted else ""
                return [
                    result.interrupted,
                    f"`clash resume {path}{more}` goes on",
                    *_open_batches(result.folder),
                ]
            if result.over_usd:
                return []
            return [f"incomplete (see coverage); `clash resume {path}` tries what is missing"]
        case _:
            return []


def _leaked_secrets(result: RunResult) -> list[str]:
    """Files that hold a secret all the same: of an earlier version, or put there by somebody."""
    scan = result.manifest.secrets_scan or {"hits": {}}
    return [
        f"error: {result.folder.path / name} holds the value of {', '.join(variables)}\n"
        "  fix: do not share this folder, and replace that key"
        for name, variables in scan["hits"].items()
    ]


def _warnings(result: RunResult) -> list[str]:
    """Stand-ins, a cap that was passed, a forecast that failed, usage that is not believed."""
    lines = [
        f"{judge.judge} judged {judge.n_judged} items in place of {judge.stands_in_for}, whose model had"
        " stopped or was down"
        for judge in result.findings.judges
        if judge.stands_in_for is not None
    ]
    if result.over_usd:
        spending = result.findings.spending
        lines.append(
            f"error: the run spent {money(spending.bound_usd)}, {money(result.over_usd)} more than"
            " --max-cost allows: a provider charged more than the list price of what it was asked"
        )
    if result.findings.spending.warning is not None:
        lines.append(f"warning: {result.findings.spending.warning}")
    return [*lines, *(f"warning: {usage_warning(doubt)}" for doubt in result.findings.usage_doubts)]


def _open_batches(folder: RunFolder) -> list[str]:
    """Batches that go on without us."""
    batches = [batch for batch in folder.batches() if batch.state != "ended"]
    if not batches:
        return []
    rows = sum(len(batch.rows) for batch in batches)
    single = len(batches) == 1
    return [
        f"{len(batches)} batch{'' if single else 'es'} of {rows} rows"
        f" {'stays' if single else 'stay'} with the provider: `clash resume {folder.path}` fetches"
        f" {'it' if single else 'them'}, with --cancel-batches only what is through by now"
    ]


def print_dry_run(plan: Plan, environ: Mapping[str, str], *, as_json: bool) -> None:
    """Print the plan, its price and where keys would go."""
    if as_json:
        print_json(dry_run_summary(plan, environ))
        return
    forecast = price(plan)
    columns = ["purpose", "who", "model", "calls", "tokens in", "out", "expected", "worst case"]
    rows = [
        [
            line.purpose,
            line.who,
            line.model,
            f"{line.calls:,}",
            f"{line.tokens_in:,}",
            f"{line.tokens_out:,}",
            money(line.expected_usd),
            money(line.worst_usd),
        ]
        for line in forecast.lines
    ]
    notes = [
        "worst case: every answer as long as its cap allows, in one attempt; --max-cost caps"
        " retries too"
    ]
    if plan.config.limits.batch:
        by_batch = sorted({line.model for line in forecast.lines if line.batch})
        notes.append(f"at the price of a batch: {', '.join(by_batch) or 'no model here'}")
    notes += token_cap_warnings(forecast)
    title = f"{len(plan.items)} items, {forecast.calls:,} calls: {headline(forecast)}"
    print_tables([Table(title, columns, rows, frozenset({3, 4, 5, 6, 7}), notes)])
    for line in keys.lines(plan.refs(), environ):
        stdout().print(line, soft_wrap=True, markup=False)
    stdout().print("dry run: no call was made")
