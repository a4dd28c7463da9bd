"""Print how a run ended, where its folder is, and what to do next."""

from __future__ import annotations

import shlex
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from clash.cli.common import (
    print_json,
    print_line,
    print_screen,
    print_tables,
    print_text,
    print_written,
    say,
    stdout,
    terminal_width,
)
from clash.errors import ClashError
from clash.escape import clip
from clash.pipeline.finish import summary
from clash.records import Judgment, Response
from clash.report.costs import usage_warning
from clash.report.formats import money
from clash.report.headline import NextStep
from clash.report.terminal import print_report
from clash.store import layout
from clash.store.manifest import missing_shards, name_shards
from clash.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from _typeshed import DataclassInstance

    from clash.analysis.findings import Findings
    from clash.analysis.walk import Walk
    from clash.cli.options import Output
    from clash.pipeline.finish import RunResult
    from clash.report.tables import Table
    from clash.store.folder import RunFolder

F = TypeVar("F", bound="DataclassInstance", contravariant=True)


class ComparisonReport(Protocol[F]):
    """A module of :mod:`clash.report` that lays out the findings of several runs."""

    TITLE: str

    def headline(self, findings: F, /) -> str:
        """The answer."""

    def evidence(self, findings: F, /) -> Iterable[str]:
        """What it rests on, in sentences."""

    def tables(self, findings: F, /) -> Sequence[Table]:
        """The figures, the most telling table first."""


def print_result(
    result: RunResult,
    output: Output,
    *,
    steps: Sequence[NextStep] = (),
    lesson: Sequence[str] = (),
) -> None:
    """Print the result of a run, where its report is, and what to do next.

    Args:
        result: the run.
        output: one JSON object, the whole report, or the headline alone instead.
        steps: what else is worth typing next.
        lesson: sentences on what the run teaches, for its first screen.
    """
    if output.as_json:
        print_json(summary(result))
    else:
        print_findings(
            result.findings,
            result.folder.path,
            result.manifest.wall_s,
            output,
            steps=_steps(result, steps),
            lesson=lesson,
        )
    print_warnings(result, output)


def print_warnings(result: RunResult, output: Output) -> None:
    """Print why a run ended early, what was swapped or failed in it, and secrets in its folder."""
    lines = [*result.swaps, *_warnings(result), *_failures(result), *_reasons(result)]
    if result.exit_code in _RESUMABLE and (output.as_json or output.quiet or output.verbose):
        command = f"clash resume {shlex.quote(str(result.folder.path))}{_cap(result)}"
        lines.append(f"`{command}` goes on; nothing is paid twice")
    for line in lines if result.exit_code or not output.quiet else ():
        say(line, style="yellow")
    for line in _leaked_secrets(result):
        say(line, style="bold red")


_RESUMABLE = (3, 4, 130)
_HEAD = len("Report  ")
_MOST_ERROR = 300
"""Characters of an error that are shown."""


def _steps(result: RunResult, steps: Sequence[NextStep] = ()) -> list[NextStep]:
    """What to type next, with room for more money where a run that is resumed ran out of it."""
    from clash.report.headline import run_headline

    headline = run_headline(result.findings, reference(result.folder.path))
    proposed = [*headline.next_steps, *steps]
    shard = result.manifest.shard
    other_shards = [] if shard is None else missing_shards([shard])
    if shard is not None and other_shards and not any(map(_is_resume, proposed)):
        command = f"clash merge {shlex.quote(result.folder.path.name)} …"
        return [NextStep(command, f"join it with {name_shards(other_shards, shard.of)}")]
    return [
        NextStep(f"{step.command}{_cap(result)}", step.purpose) if _is_resume(step) else step
        for step in proposed
    ]


def resume_steps(result: RunResult) -> list[NextStep]:
    """The command that finishes a run; none where it is complete."""
    return [step for step in _steps(result) if _is_resume(step)]


def _is_resume(step: NextStep) -> bool:
    return step.command.startswith("clash resume")


def _cap(result: RunResult) -> str:
    return " --max-cost USD" if "budget" in (result.interrupted or "") else ""


def print_findings(
    findings: Findings,
    path: Path,
    wall_s: float | None,
    output: Output,
    *,
    steps: Sequence[NextStep] | None = None,
    lesson: Sequence[str] = (),
    has_page: bool = True,
) -> None:
    """Print what a run says: its output, its whole report, or its headline alone.

    ``has_page`` is false for several runs read as one: only ``steps`` are then worth typing next.
    """
    from clash.report.headline import run_headline
    from clash.report.screens import run_screen

    run = reference(path)
    headline = run_headline(findings, run)
    if output.quiet:
        print_line(headline.text)
        return
    if output.verbose:
        print_report(stdout(), findings)
        print_line()
        if has_page:
            print_line(f"run: {path}", "bold")
        return
    print_screen(run_screen(findings, terminal_width(), run, wall_s, lesson))
    if has_page:
        print_closing(path, headline.next_steps if steps is None else steps)
    elif steps:
        print_line()
        print_next(steps)


def print_answer(
    headline: str,
    evidence: Iterable[str],
    tables: Sequence[Table],
    output: Output,
) -> None:
    """Print an answer, and unless quiet what it rests on and its first table, or all of them."""
    print_text(headline, style="bold")
    if not output.quiet:
        for line in evidence:
            print_text(line)
        print_tables(tables if output.verbose else tables[:1])


def print_comparison(
    report: ComparisonReport[F],
    findings: F,
    record: dict[str, Any],
    *,
    runs: Sequence[str],
    closing: Sequence[str],
    output: Output,
    to: Path | None,
) -> None:
    """Print a comparison of runs, and write it where that is asked for.

    Args:
        report: the module of :mod:`clash.report` for these findings.
        findings: what it is about.
        record: the object that ``--json`` prints.
        runs: their names, for the file.
        closing: lines at the end of the screen.
        output: how much is printed.
        to: a file, JSON or Markdown; null for none.
    """
    from clash.analysis.serialize import to_dict
    from clash.report.report_file import write_report

    tables = report.tables(findings)
    if to is not None:
        write_report(to, report.TITLE, to_dict(findings), tables, runs)
    if output.as_json:
        print_json(record)
        return
    print_answer(report.headline(findings), report.evidence(findings), tables, output)
    if output.quiet:
        return
    for line in closing:
        print_line(line)
    if to is not None:
        print_written([to])


def print_item(path: Path, steps: Walk, output: Output) -> None:
    """Print how the run in ``path`` came to the verdict on one item, step by step."""
    from clash.analysis.serialize import to_dict
    from clash.report.item_walk import print_walk

    if output.as_json:
        print_json({"run": str(path), "item": to_dict(steps)})
    else:
        print_walk(stdout(), steps)


def print_closing(path: Path, steps: Sequence[NextStep]) -> None:
    """Print where the report is, and the commands worth typing next."""
    command = f"clash report {reference(path)} --open"
    if not any(step.command == command for step in steps):
        steps = [*steps, NextStep(command, "open the report in the browser")]
    print_line()
    print_line(f"Report  {path / layout.REPORT_HTML}")
    print_next(steps)


def print_next(steps: Sequence[NextStep]) -> None:
    """Print commands worth typing next, and what for."""
    width = terminal_width()
    widest = max((len(step.command) for step in steps), default=0)
    is_narrow = width is not None and any(
        _HEAD + widest + 2 + len(step.purpose) > width for step in steps
    )
    for number, step in enumerate(steps):
        head = f"{'' if number else 'Next':<{_HEAD}}"
        if is_narrow:
            print_line(f"{head}{step.command}")
            print_text(step.purpose, style="dim", indent=_HEAD + 2)
        else:
            print_line(f"{head}{step.command:<{widest}}  {step.purpose}")


def reference(path: Path) -> str:
    """How the commands shown to a person name a run: ``latest``, its id, or its path."""
    from clash.store.folder import RunFolder

    if path.parent != Path("runs"):
        return shlex.quote(str(path))
    try:
        is_latest = RunFolder.open("latest", out=path.parent).path.resolve() == path.resolve()
    except ClashError:
        is_latest = False
    return "latest" if is_latest else shlex.quote(path.name)


def _reasons(result: RunResult) -> list[str]:
    """Why a run ended early."""
    match result.exit_code:
        case 130:
            return [*_open_batches(result.folder)]
        case 4:
            models = "; ".join(f"{m}: {reason}" for m, reason in result.manifest.stopped.items())
            return [f"models that cannot be used: {models}"]
        case 3 if result.interrupted is not None:
            return [result.interrupted, *_open_batches(result.folder)]
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
        f"{judge.judge} judged {judge.n_judged} items in place of {judge.stands_in_for}, whose "
        "model had"
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


def _failures(result: RunResult) -> list[str]:
    """The commonest error of responses, and that of judgments where none is usable: what to fix."""
    counts = result.findings.coverage
    lines = []
    if counts.responses_failed and not result.manifest.stopped:
        lines += _commonest_error("response", result.folder.records(Response))
    if counts.failures and not counts.n_clean + counts.n_repaired:
        lines += _commonest_error("judgment", result.folder.records(Judgment))
    return lines


def _commonest_error(noun: str, records: Iterable[Response] | Iterable[Judgment]) -> list[str]:
    """How many records failed, and the error of most of them; nothing where none did."""
    errors = Counter(record.error for record in records if record.error)
    if not errors:
        return []
    (error, n), *other_errors = errors.most_common()
    share = f", {n:,} of them" if other_errors else ""
    return [f"{plural(errors.total(), noun)} failed{share} with {clip(error, _MOST_ERROR)}"]


def _open_batches(folder: RunFolder) -> list[str]:
    """Batches that go on without us."""
    batches = [batch for batch in folder.batches() if batch.state != "ended"]
    if not batches:
        return []
    rows = sum(len(batch.rows) for batch in batches)
    single = len(batches) == 1
    return [
        f"{plural(len(batches), 'batch', 'batches')} of {plural(rows, 'row')}"
        f" {'stays' if single else 'stay'} with the provider: `clash resume {shlex.quote(str(folder.path))}` fetches"
        f" {'it' if single else 'them'}, with --cancel-batches only what is through by now"
    ]
