from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clash.cli.options import AsJson, Out, RunArgument

if TYPE_CHECKING:
    from clash.store.audit import AuditFinding
    from clash.store.manifest import Manifest


def seal(
    run: RunArgument,
    sign: Annotated[
        Path | None,
        typer.Option(
            "--sign",
            help="Sign the seal with this SSH key; a public key where the SSH agent holds it.",
            metavar="KEY",
        ),
    ] = None,
    out: Out = Path("runs"),
    as_json: AsJson = False,
) -> None:
    """Seal a run anew, once every check of `verify` has passed, with the labels that came since.

    The report is written anew where there are such labels.

    With --sign it also says who vouches for it: `clash verify RUN --signers FILE` tells.
    """
    from clash.analysis.findings import compute_findings
    from clash.analysis.rundata import RunData
    from clash.cli.common import open_run, print_json, stdout
    from clash.cli.report import rewrite
    from clash.cli.verify import all_checks
    from clash.errors import AuditFailed, RunFolderError
    from clash.files import run_files
    from clash.store import layout, signature
    from clash.store.audit import UNSEALED_LABELS

    if sign is not None:
        signature.check_key(sign)
    folder = open_run(run, out)
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
            f" `clash report {folder.path}` writes a report anew"
        )
    if any(UNSEALED_LABELS in (finding.unchecked or "") for finding in findings):
        data = RunData.load(folder)
        rewrite(folder, data, compute_findings(data))
    path = folder.path / layout.SIGNATURE
    with folder.write() as writer:
        manifest = writer.seal(writer.manifest())
        if sign is not None:
            signed = signature.sign(run_files.read(folder.path / layout.MANIFEST), sign)
            run_files.replace(path, signed)
    gaps = _gaps(findings)
    if as_json:
        print_json(
            {
                "run": str(folder.path),
                "seal": manifest.seal,
                "chain": manifest.chain,
                "files": {name: entry.sha256 for name, entry in manifest.files.items()},
                "signature": None if sign is None else str(path),
                "unchecked": gaps,
            }
        )
        return
    stdout().print(_sealed(manifest), soft_wrap=True, markup=False)
    for gap in gaps:
        stdout().print(f"sealed unchecked: {gap}", style="yellow", soft_wrap=True, markup=False)
    if sign is not None:
        stdout().print(f"wrote {path}", soft_wrap=True, markup=False)
    stdout().print(f"\nrun: {folder.path}", style="bold", soft_wrap=True, markup=False)


def _gaps(findings: list[AuditFinding]) -> list[str]:
    """What was sealed without being checked; labels are what a new seal is for."""
    from clash.escape import for_terminal
    from clash.store.audit import UNSEALED_LABELS

    gaps = (f for f in findings if f.unchecked is not None and f.unchecked != UNSEALED_LABELS)
    return [for_terminal(f"{f.check}: {f.unchecked}") for f in gaps]


def _sealed(manifest: Manifest) -> str:
    from clash.store import layout

    labels = manifest.files.get(layout.LABELS)
    lines = f"; labels.jsonl with {labels.lines} lines" if labels is not None else ""
    return f"sealed {len(manifest.files)} files{lines}\nseal: {manifest.seal}\nlast call: {manifest.chain}"
