from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clash.cli.options import AsJson, Out, RunArgument

if TYPE_CHECKING:
    from clash.store.audit import AuditFinding
    from clash.store.folder import RunFolder

AllowUnchecked = Annotated[
    bool,
    typer.Option("--allow-unchecked", help="Accept a run of which something could not be checked."),
]
_MARKS = {
    "ok": ("ok  ", "green"),
    "problem": ("FAIL", "bold red"),
    "unchecked": ("????", "bold yellow"),
}


def verify(
    run: RunArgument,
    out: Out = Path("runs"),
    allow_unchecked: AllowUnchecked = False,
    signers: Annotated[
        Path | None,
        typer.Option(
            "--signers",
            help="An OpenSSH allowed_signers file: the run must be signed by somebody in it.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Audit a run: hashes, references, and judgments, verdicts, sums and report computed anew.

    Exits with 5 where a check fails, and where one could not be made, unless --allow-unchecked.
    Hashes show that nothing changed since the seal; only a signature shows whose seal it is.
    """
    from clash.cli.common import left_out, print_json, say, stdout
    from clash.errors import AuditFailed
    from clash.escape import for_terminal
    from clash.files import run_files
    from clash.store import layout
    from clash.store.folder import RunFolder

    folder = RunFolder.find(run, out=out, on_skip=left_out)
    findings, signer = all_checks(folder), None
    if signers is not None:
        signed, signer = _signature(folder, signers)
        findings.append(signed)
    refusal = refused(findings, allow_unchecked=allow_unchecked)
    if as_json:
        print_json(
            {
                "run": str(folder.path),
                "ok": refusal is None,
                "unchecked": sum(f.unchecked is not None for f in findings),
                "signer": signer,
                "checks": [_as_json(f) for f in findings],
            }
        )
        return AuditFailed.exit_code if refusal else 0
    show(findings)
    if signers is None and run_files.is_file(folder.path / layout.SIGNATURE):
        say("there is a signature, which was not checked: --signers FILE says whose it is")
    if refusal is not None:
        raise AuditFailed(f"{folder.path}: {refusal}")
    made = sum(f.state == "ok" for f in findings)
    stdout().print(_passed(folder, findings, made), style="bold green", soft_wrap=True)
    if signer is not None:
        stdout().print(
            f"signed by {for_terminal(signer)}", style="bold green", soft_wrap=True, markup=False
        )
    return 0


def _signature(folder: RunFolder, signers: Path) -> tuple[AuditFinding, str | None]:
    """Whether an allowed signer vouches for the manifest, and who."""
    from clash.errors import AuditFailed
    from clash.files import run_files
    from clash.store import layout, signature
    from clash.store.audit import AuditFinding

    check = "the manifest is signed by an allowed signer"
    try:
        signed = run_files.read(folder.path / layout.SIGNATURE)
    except FileNotFoundError:
        return AuditFinding(check, f"there is no {layout.SIGNATURE}"), None
    try:
        manifest = run_files.read(folder.path / layout.MANIFEST)
        return AuditFinding(check), signature.signer_of(manifest, signed, signers)
    except AuditFailed as error:
        return AuditFinding(check, f"{layout.MANIFEST} {error}"), None


def all_checks(folder: RunFolder) -> list[AuditFinding]:
    """Everything that can be checked offline."""
    from clash.analysis.recheck import recheck
    from clash.collect.reread import reread
    from clash.report.page_audit import audit_pages
    from clash.store.audit import audit

    return [*audit(folder), *reread(folder), *recheck(folder, audit_pages)]


def refused(findings: list[AuditFinding], *, allow_unchecked: bool) -> str | None:
    """Why a run does not pass; null where it does."""
    failed = sum(f.state == "problem" for f in findings)
    if failed:
        return f"{failed} of {len(findings)} checks failed"
    gaps = sum(f.unchecked is not None for f in findings)
    if gaps and not allow_unchecked:
        return (
            f"{gaps} of {len(findings)} checks could not be made in full"
            "\n  fix: read what is marked ????; --allow-unchecked accepts it"
        )
    return None


def show(findings: list[AuditFinding]) -> None:
    """A line for each check."""
    from rich.text import Text

    from clash.cli.common import stdout
    from clash.escape import for_terminal

    for finding in findings:
        mark, style = _MARKS[finding.state]
        reason = finding.problem or finding.unchecked
        line = finding.check + (f": {reason}" if reason else "")
        stdout().print(Text(mark, style=style), Text(for_terminal(line)), soft_wrap=True)


def _passed(folder: RunFolder, findings: list[AuditFinding], made: int) -> str:
    if made == len(findings):
        return f"{folder.path}: verified, all {made} checks passed"
    return f"{folder.path}: {made} of {len(findings)} checks passed, the rest is unchecked"


def _as_json(finding: AuditFinding) -> dict[str, str | None]:
    return {
        "check": finding.check,
        "state": finding.state,
        "reason": finding.problem or finding.unchecked,
        "problem": finding.problem,
        "unchecked": finding.unchecked,
    }
