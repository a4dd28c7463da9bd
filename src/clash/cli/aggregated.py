"""What ``clash aggregate`` shows and writes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from clash.analysis.aggregation import Aggregation
    from clash.analysis.calibration.calibrated_votes import CalibratedVotes
    from clash.analysis.rankings import CandidateRankings
    from clash.cli.rankings import Asked
    from clash.report.tables import Table


@dataclass
class Shown:
    """What was computed."""

    verdicts: Aggregation | None = None
    applied: CalibratedVotes | None = None
    rankings: CandidateRankings | None = None

    def write(self, path: Path) -> str:
        """A line for each method and item, and for each method and candidate."""
        with path.open("w", encoding="utf-8", newline="\n") as file:
            for line in self._lines():
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
        return str(path)

    def _lines(self) -> Iterator[Mapping[str, Any]]:
        from clash.report import rankings

        if self.verdicts is not None:
            yield from _item_lines(self.verdicts)
        if self.applied is not None:
            yield from self.applied.lines()
        if self.rankings is not None:
            yield from rankings.lines(self.rankings)


def _item_lines(found: Aggregation) -> Iterator[Mapping[str, Any]]:
    """For each item and method ``p`` of the first side, and the winner it implies."""
    winners = {1.0: "A", 0.0: "B", 0.5: "tie"}
    for result in found.methods:
        if result.p is None or result.verdict is None:
            continue
        rows = zip(found.items, result.p.tolist(), result.verdict.tolist(), strict=True)
        for item, p, verdict in rows:
            line = {"item": item, "method": result.method, "p": round(p, 9)}
            yield {**line, "winner": winners[verdict]}


def print_object(source: str, runs: Path, asked: Asked, shown: Shown, written: str | None) -> None:
    """The one object of ``--json``."""
    from clash.cli.common import find_run, print_json
    from clash.cli.rankings import NAMELESS
    from clash.report import aggregation, calibration, rankings

    folder = find_run(source, runs)
    told: dict[str, Any] = {"source": source, "run": None if folder is None else str(folder.path)}
    told |= aggregation.as_json(shown.verdicts) if shown.verdicts else _only_rankings(shown)
    if shown.applied is not None:
        told["methods"]["calibrated"] = calibration.applied_json(shown.applied)
    if shown.rankings is not None:
        told["rankings"] = rankings.as_json(shown.rankings)
        for name, method in rankings.methods_json(shown.rankings).items():
            verdict = told["methods"].get(name, aggregation.without_figures())
            told["methods"][name] = (
                {**verdict, **method} if name not in asked.items else {**method, **verdict}
            )
    for name in asked.refused:
        told["methods"][name] = {
            **aggregation.without_figures(),
            "status": "refused",
            "converged": None,
            "notes": [NAMELESS],
        }
    print_json({**told, "written": written})


def _only_rankings(shown: Shown) -> dict[str, Any]:
    """The head of ``--json`` where no method gives verdicts."""
    found = shown.rankings
    if found is None:
        return {"methods": {}}
    ranked = [method.method for method in found.methods if method.places]
    return {
        "n_items": found.n_items,
        "n_judges": len(found.weights),
        "n_labelled": None,
        "selected": ranked[0] if ranked else None,
        "reason": "named first on the command line" if ranked else "no method could rank",
        "warnings": list(found.warnings),
        "notes": list(found.notes),
        "methods": {},
    }


def print_result(asked: Asked, shown: Shown, written: str | None) -> None:
    """Tables, what they say, and what to beware of."""
    from rich.text import Text

    from clash.cli.common import stdout
    from clash.cli.rankings import NAMELESS
    from clash.escape import for_terminal
    from clash.report import aggregation, calibration, rankings
    from clash.report.terminal import print_tables

    tables: list[Table] = []
    told: list[str] = []
    warnings: list[str] = []
    if shown.verdicts is not None:
        tables.append(aggregation.table(shown.verdicts))
        told.append(f"use {shown.verdicts.selected}: {shown.verdicts.reason}")
        warnings += shown.verdicts.warnings
    if shown.applied is not None:
        told.append(calibration.applied_line(shown.applied))
        warnings += shown.applied.warnings
    if shown.rankings is not None:
        tables += rankings.tables(shown.rankings)
        told += shown.rankings.differences
        warnings += shown.rankings.warnings
    warnings += [f"{name} refused: {NAMELESS}" for name in asked.refused]
    print_tables(stdout(), tables)
    stdout().print()
    for line in told:
        stdout().print(Text(for_terminal(line)), soft_wrap=True)
    for warning in warnings:
        stdout().print(Text(for_terminal(f"warning: {warning}"), style="yellow"), soft_wrap=True)
    if written:
        stdout().print(f"wrote {written}", soft_wrap=True)
