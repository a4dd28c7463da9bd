from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from clash.cli.options import AsJson, Out

if TYPE_CHECKING:
    from clash.store.manifest import Manifest


def runs(out: Out = Path("runs"), as_json: AsJson = False) -> None:
    """List the runs, newest last."""
    from clash.cli.common import left_out, print_json, stdout
    from clash.report.tables import Table
    from clash.report.terminal import print_table
    from clash.store.folder import manifests
    from clash.wording import plural

    lines = [_line(manifest) for _, manifest in manifests(out, left_out)]
    if as_json:
        print_json({"runs": lines, "out": str(out)})
        return
    columns = ["run", "kind", "status", "panel", "items", "verdicts", "cost", "started"]
    rows = [[str(line[column]) for column in columns] for line in lines]
    if rows:
        print_table(
            stdout(),
            Table(
                f"{plural(len(rows), 'run')} in {out}",
                columns,
                rows,
                frozenset({4, 5, 6}),
                optional=(7, 5, 3, 1),
            ),
        )
    else:
        stdout().print(f"no runs in {out}; `clash demo` makes one")


def _line(manifest: Manifest) -> dict[str, Any]:
    from clash.report.formats import money

    return {
        "run": manifest.run,
        "kind": manifest.kind,
        "status": manifest.status,
        "panel": manifest.panel.get("name", ""),
        "items": manifest.counts.get("items", ""),
        "verdicts": manifest.counts.get("verdicts", ""),
        "cost": "" if manifest.cost_usd is None else money(manifest.cost_usd),
        "started": manifest.started,
        "parent": manifest.parent,
    }
