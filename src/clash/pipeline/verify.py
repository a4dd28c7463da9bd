"""Audit a run folder, and seal it again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clash.analysis.serialize import to_plain
from clash.errors import AuditFailed, RunFolderError
from clash.files import run_files
from clash.store import layout, signature
from clash.store.audit import UNSEALED_LABELS, AuditFinding

if TYPE_CHECKING:
    from pathlib import Path

    from clash.pipeline.options import Observer
    from clash.store.folder import RunFolder
    from clash.store.manifest import Manifest


@dataclass(frozen=True)
class AuditResult:
    """Every check of a run.

    Attributes:
        signer: who signed the manifest; null where that was not asked, or is nobody allowed.
        failure: why the run does not pass; null where it does.
    """

    folder: RunFolder
    findings: tuple[AuditFinding, ...]
    signer: str | None
    failure: str | None

    @property
    def n_ok(self) -> int:
        """Checks that were made and passed."""
        return sum(finding.state == "ok" for finding in self.findings)

    def as_json(self) -> dict[str, Any]:
        """The JSON of ``clash verify``."""
        return {
            "run": str(self.folder.path),
            "ok": self.failure is None,
            "unchecked": sum(finding.unchecked is not None for finding in self.findings),
            "signer": self.signer,
            "checks": to_plain(self.findings),
        }


def audit_run(
    folder: RunFolder, *, allow_unchecked: bool = False, signers: Path | None = None
) -> AuditResult:
    """Make every check of a run that needs no network.

    Args:
        folder: the run.
        allow_unchecked: whether a run passes of which something could not be checked.
        signers: an OpenSSH allowed_signers file; the run must be signed by somebody in it.

    Raises:
        ConfigError: there is no such file of signers.
    """
    if signers is not None:
        signature.check_signers(signers)
    findings, signer = all_checks(folder), None
    if signers is not None:
        finding, signer = _check_signature(folder, signers)
        findings.append(finding)
    failure = _failure(findings, allow_unchecked=allow_unchecked)
    return AuditResult(folder, tuple(findings), signer, failure)


def all_checks(folder: RunFolder) -> list[AuditFinding]:
    """Check hashes and references, and recompute everything derived from the records."""
    from clash.analysis.recheck import recheck
    from clash.collect.reread import reread
    from clash.report.page_audit import audit_pages
    from clash.store.audit import audit
    from clash.store.folder import CheckedFolder

    folder = CheckedFolder(folder.path)
    return [*audit(folder), *reread(folder), *recheck(folder, audit_pages)]


def _check_signature(folder: RunFolder, signers: Path) -> tuple[AuditFinding, str | None]:
    """Whether an allowed signer vouches for the manifest, and who."""
    check = "the manifest is signed by an allowed signer"
    try:
        signature_text = run_files.read(folder.path / layout.SIGNATURE)
    except FileNotFoundError:
        return AuditFinding(check, f"there is no {layout.SIGNATURE}"), None
    try:
        manifest = run_files.read(folder.path / layout.MANIFEST)
        return AuditFinding(check), signature.signer_of(manifest, signature_text, signers)
    except AuditFailed as error:
        return AuditFinding(check, f"{layout.MANIFEST} {error}"), None


def _failure(findings: list[AuditFinding], *, allow_unchecked: bool) -> str | None:
    """Why a run does not pass; null where it does."""
    problems = sum(finding.state == "problem" for finding in findings)
    if problems:
        return f"{problems} of {len(findings)} checks failed"
    gaps = sum(finding.unchecked is not None for finding in findings)
    if gaps and not allow_unchecked:
        return (
            f"{gaps} of {len(findings)} checks could not be completed"
            "\n  fix: see the lines marked ????; --allow-unchecked accepts them"
        )
    return None


@dataclass(frozen=True)
class SealResult:
    """A run that was sealed again.

    Attributes:
        signature: the file of the signature; null where nobody signed.
        gaps: checks that could not be made.
    """

    folder: RunFolder
    manifest: Manifest
    signature: Path | None
    gaps: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """The JSON of ``clash seal``."""
        return {
            "run": str(self.folder.path),
            "seal": self.manifest.seal,
            "chain": self.manifest.chain,
            "files": {name: file.sha256 for name, file in self.manifest.files.items()},
            "signature": None if self.signature is None else str(self.signature),
            "unchecked": list(self.gaps),
        }


def seal_run(folder: RunFolder, observer: Observer, key: Path | None = None) -> SealResult:
    """Seal a run again once every check has passed, with the labels that came since.

    The report is rebuilt if there are such labels.

    Args:
        folder: the run.
        observer: hears where a signature no longer holds.
        key: the SSH key to sign the seal with; a public key where the SSH agent holds it.

    Raises:
        RunFolderError: the run has not ended.
        AuditFailed: a check failed.
    """
    from clash.analysis.findings import compute_findings
    from clash.analysis.rundata import RunData
    from clash.escape import for_terminal
    from clash.pipeline.finish import rewrite_report

    if folder.manifest().seal is None:
        raise RunFolderError(
            f"{folder.path}: the run has not ended\n  fix: `clash resume {folder.path}`"
        )
    findings = all_checks(folder)
    problems = [finding for finding in findings if finding.problem is not None]
    if problems:
        raise AuditFailed(
            f"{folder.path}: is not sealed, {problems[0].check}: {problems[0].problem}"
            f"\n  fix: `clash verify {folder.path}` shows every check;"
            f" `clash report {folder.path}` writes a new report"
        )
    if any(UNSEALED_LABELS in (finding.unchecked or "") for finding in findings):
        run = RunData.load(folder)
        rewrite_report(folder, compute_findings(run), run, observer)
    path = folder.path / layout.SIGNATURE
    with folder.write() as writer:
        manifest = writer.seal(writer.manifest())
        if key is not None:
            run_files.replace(
                path, signature.sign(run_files.read(folder.path / layout.MANIFEST), key)
            )
    # Labels are what a new seal is for, so that they are no gap of it.
    gaps = [f for f in findings if f.unchecked is not None and f.unchecked != UNSEALED_LABELS]
    return SealResult(
        folder,
        manifest,
        None if key is None else path,
        tuple(for_terminal(f"{gap.check}: {gap.unchecked}") for gap in gaps),
    )
