from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clash.cli.common import left_out, print_json, print_line, print_screen, terminal_width
from clash.cli.options import AsJson, Out
from clash.wording import plural

if TYPE_CHECKING:
    from clash.report.screens import Screen
    from clash.store.manifest import Manifest

_INDENT = "  "


def runs(out: Out = Path("runs"), as_json: AsJson = False) -> None:
    """List the runs with their headlines, newest last."""
    from clash.report.screens import blank_screen
    from clash.store.folder import manifests
    from clash.view.run_list import RunList

    list_of_runs = RunList(out)
    rows = {listed_run.path: list_of_runs.row(listed_run) for listed_run in list_of_runs.runs()}
    lines = [
        _line(manifest, rows.get(folder.path, {})) for folder, manifest in manifests(out, left_out)
    ]
    if as_json:
        print_json({"runs": lines, "out": str(out)})
        return
    if lines:
        screen = blank_screen(terminal_width())
        _add_runs(screen, lines, out)
        print_screen(screen)
    else:
        print_line(f"no runs in {out.resolve()}; `clash demo` makes one without a key")


def _line(manifest: Manifest, row: dict[str, Any]) -> dict[str, Any]:
    from clash.report.formats import money

    return {
        "run": manifest.run,
        "kind": manifest.kind,
        "status": row.get("state", manifest.status),
        "panel": manifest.panel.get("name", ""),
        "items": manifest.counts.get("items", ""),
        "verdicts": manifest.counts.get("verdicts", ""),
        "cost": "" if manifest.cost_usd is None else money(manifest.cost_usd),
        "started": manifest.started,
        "parent": manifest.parent,
        "headline": row.get("headline", ""),
        "contradiction": row.get("caution") or None,
    }


def _add_runs(screen: Screen, lines: list[dict[str, Any]], out: Path) -> None:
    """A run in two lines, or in one where nothing limits the width.

    The id of a run stands whole, for people copy it.
    """
    screen.sentence(f"{plural(len(lines), 'run')} in {out}; times in UTC", "bold")
    widest = max(len(line["run"]) for line in lines)
    for line in lines:
        head = f"{_minute(line['started'])}  {line['run']:<{widest}}"
        facts = [line["kind"], "" if line["status"] == "complete" else line["status"]]
        facts += [plural(line["items"], "item") if line["items"] != "" else "", line["cost"]]
        details = " · ".join(fact for fact in facts if fact)
        answer = " ".join(filter(None, (line["headline"], line["contradiction"])))
        if not screen.wraps:
            screen.add((f"{head}  {details}  {answer}", ""))
            continue
        if len(head) + len(details) + 2 <= screen.width:
            screen.add((f"{head}  ", ""), (details, "dim"))
        else:
            screen.sentence(head)
            screen.paragraph(details, _INDENT, "dim")
        screen.paragraph(answer, _INDENT)


def _minute(timestamp: str) -> str:
    """A time of a manifest to the minute; as it is where it is none."""
    try:
        time = datetime.fromisoformat(timestamp).astimezone(UTC)
    except (ValueError, OverflowError):
        return timestamp or "unknown time"
    return f"{time:%Y-%m-%d %H:%M}"
