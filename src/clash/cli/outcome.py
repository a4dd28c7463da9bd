"""Print how a run ended, where its folder is, and what to do next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clash.cli.common import print_json, say, stdout
from clash.pipeline.finish import summary
from clash.report.costs import usage_warning
from clash.report.formats import money
from clash.report.terminal import print_report
from clash.store import layout

if TYPE_CHECKING:
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
