from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clash.cli.common import print_json, stdout
from clash.cli.observer import TerminalObserver
from clash.cli.options import AsJson, Out, RunArgument
from clash.cli.sources import open_run


def seal(
    run: RunArgument,
    sign: Annotated[
        Path | None,
        typer.Option(
            "--sign",
            help="Sign the seal with this SSH key; give the public key if the SSH agent holds it.",
            metavar="KEY",
        ),
    ] = None,
    out: Out = Path("runs"),
    as_json: AsJson = False,
) -> None:
    """Seal a run again, with the labels added since, after every check of `verify` has passed.

    The report is rebuilt if there are such labels.

    With --sign, the seal also names who vouches for the run; `clash verify RUN --signers FILE`
    checks it.
    """
    from clash.pipeline.verify import seal_run
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
