from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clash.cli.common import AsJson, Out, RunArgument

if TYPE_CHECKING:
    from clash.analysis.findings import Findings
    from clash.analysis.rundata import RunData
    from clash.store.folder import RunFolder


def report(
    run: RunArgument,
    out: Out = Path("runs"),
    item: Annotated[
        str | None, typer.Option("--item", help="Walk through this item, from prompt to verdict.")
    ] = None,
    write: Annotated[
        bool, typer.Option("--write/--no-write", help="Write report.json and report.md anew.")
    ] = True,
    as_json: AsJson = False,
) -> None:
    """Show the report of a run, computed anew from its records; or one item, step by step."""
    from clash.analysis.findings import findings_of
    from clash.analysis.rundata import RunData
    from clash.analysis.walk import walk
    from clash.cli.common import print_json, stdout
    from clash.report import items
    from clash.report.terminal import show
    from clash.store.folder import RunFolder

    folder = RunFolder.open(run, out=out)
    data = RunData.load(folder)
    if item is not None:
        steps = walk(data, item)
        if as_json:
            print_json({"run": str(folder.path), "item": steps.as_json()})
        else:
            items.show(stdout(), steps)
        return
    found = findings_of(data)
    if write and data.manifest.seal is not None:
        _rewrite(folder, data, found)
    if as_json:
        print_json({**found.as_json(), "run": str(folder.path)})
        return
    show(stdout(), found)
    stdout().print(f"\nrun: {folder.path}", style="bold", soft_wrap=True)


def _rewrite(folder: RunFolder, data: RunData, found: Findings) -> None:
    """The derived files anew, sealed; the collected ones are not touched, nor their seals."""
    from clash.cli.pipeline import write_report
    from clash.store import layout
    from clash.store.manifest import seal_file

    with folder.write() as writer:
        write_report(writer, found, list(data.verdicts))
        manifest = writer.manifest()
        files = {
            **manifest.files,
            **{n: seal_file(writer.path / n) for n in layout.DERIVED if (writer.path / n).exists()},
        }
        writer.save(manifest.model_copy(update={"files": files}).sealed())
