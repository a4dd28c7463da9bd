from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clash.cli.options import AsJson, Out, RunArgument


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
    from clash.cli.common import print_json, stdout
    from clash.cli.observer import TerminalObserver
    from clash.cli.sources import open_run
    from clash.pipeline.audit import seal_run
    from clash.store import layout, signature

    if sign is not None:
        signature.check_key(sign)
    result = seal_run(open_run(run, out), TerminalObserver(quiet=False), sign)
    if as_json:
        print_json(result.as_json())
        return
    manifest = result.manifest
    labels = manifest.files.get(layout.LABELS)
    lines = f"; labels.jsonl with {labels.lines} lines" if labels is not None else ""
    stdout().print(f"sealed {len(manifest.files)} files{lines}", soft_wrap=True, markup=False)
    stdout().print(f"seal: {manifest.seal}", soft_wrap=True, markup=False)
    stdout().print(f"last call: {manifest.chain}", soft_wrap=True, markup=False)
    for gap in result.gaps:
        stdout().print(f"sealed unchecked: {gap}", style="yellow", soft_wrap=True, markup=False)
    if result.signature is not None:
        stdout().print(f"wrote {result.signature}", soft_wrap=True, markup=False)
    path = result.folder.path
    stdout().print(f"\nrun: {path}", style="bold", soft_wrap=True, markup=False)
