from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clash.cli.common import (
    left_out,
    print_json,
    print_line,
    print_screen,
    say,
    terminal_width,
)
from clash.cli.options import AsJson, Out, RunArgument
from clash.errors import AuditFailed
from clash.files import run_files

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.pipeline.verify import AuditResult
    from clash.store.audit import AuditFinding

_MARKS = {
    "ok": ("ok  ", "green"),
    "problem": ("FAIL", "bold red"),
    "unchecked": ("????", "bold yellow"),
}


def verify(
    run: RunArgument,
    out: Out = Path("runs"),
    allow_unchecked: Annotated[
        bool,
        typer.Option("--allow-unchecked", help="Accept a run if a check could not be made."),
    ] = False,
    signers: Annotated[
        Path | None,
        typer.Option(
            "--signers",
            help="OpenSSH allowed_signers file; the run must be signed by somebody in it.",
        ),
    ] = None,
    as_json: AsJson = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="No line for a check that passed.")
    ] = False,
) -> int:
    """Audit a run: check hashes and references, recompute judgments, verdicts, sums and report.

    Exit code 5 if a check fails, or if one could not be made and --allow-unchecked is not given.
    Hashes show that nothing changed since the seal; only a signature shows who sealed it.
    """
    from clash.pipeline.verify import audit_run
    from clash.store import layout
    from clash.store.folder import RunFolder

    folder = RunFolder.find(run, out=out, on_skip=left_out)
    result = audit_run(folder, allow_unchecked=allow_unchecked, signers=signers)
    if as_json:
        print_json(result.as_json())
        return AuditFailed.exit_code if result.failure else 0
    if result.failure is None:
        print_line(_success(result), "bold green")
    if result.failure is None and result.signer:
        print_line(f"signed by {result.signer}", "bold green")
    _print_findings([f for f in result.findings if not quiet or f.state != "ok"])
    if signers is None and run_files.is_file(folder.path / layout.SIGNATURE):
        say("the signature was not checked; --signers FILE checks it")
    if result.failure is not None:
        raise AuditFailed(f"{folder.path}: {result.failure}")
    return 0


def _print_findings(findings: Sequence[AuditFinding]) -> None:
    """Print a line for each check, those that failed first."""
    from clash.report.screens import blank_screen

    screen, severity = blank_screen(terminal_width()), ("problem", "unchecked", "ok")
    for finding in sorted(findings, key=lambda finding: severity.index(finding.state)):
        mark, style = _MARKS[finding.state]
        reason = finding.reason
        screen.hanging(f"{mark} ", finding.check + (f": {reason}" if reason else ""), style)
    print_screen(screen)


def _success(result: AuditResult) -> str:
    path, checks = result.folder.path, len(result.findings)
    if result.n_ok == checks:
        return f"{path}: verified, all {checks} checks passed"
    return f"{path}: {result.n_ok} of {checks} checks passed, the rest is unchecked"
