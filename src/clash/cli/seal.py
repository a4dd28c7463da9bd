from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clash.cli.common import print_json, print_line
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
    print_line(f"sealed {len(manifest.files)} files{lines}")
    print_line(f"seal: {manifest.seal}")
    print_line(f"last call: {manifest.chain}")
    for gap in result.gaps:
        print_line(f"sealed unchecked: {gap}", "yellow")
    if result.signature is not None:
        print_line(f"wrote {result.signature}")
    path = result.folder.path
    print_line(f"\nrun: {path}", "bold")
