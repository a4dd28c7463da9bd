"""The rows of docs/reproduction.md: every item of the four papers, with what clash makes of it.

What is the same for all of an item's figures is counted here from the recomputed ones; the words are
those of papers/PAPER.yaml.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from clash.documents import read_yaml
from clash.reproduction.power_tables import published_tables

HERE = Path(__file__).parent
PAPERS = {
    "agent-clash": "Multi-Agent Judging for LLM Evaluation",
    "ising": "Dependence-Aware Label Aggregation for LLM-as-a-Judge via Ising Models",
    "finite-calibration": "A Finite-Calibration Regime Map for LLM Judge Panels",
    "pilot": "Pilot V2 Judge Effectiveness Assessment",
}
VERDICTS = {
    "same": "the same",
    "corrected": "another figure or statement is right",
    "cannot be had": "what it rests on is not published",
    "removed": "a limitation that the command removes",
    "stands": "a limitation, or work, that stands",
    "done": "future work that the command does",
}
COUNTED = "counted"


@dataclass(frozen=True)
class PaperRow:
    """Some items of a paper.

    Attributes:
        of: their names.
        command: commands of clash, a test or a script, separated by semicolons.
        theirs: what the paper has.
        ours: what the command gives.
        verdict: one of ``VERDICTS``.
        why: the reason, or how to read it.
    """

    of: tuple[str, ...]
    what: str
    command: str
    theirs: str
    ours: str
    verdict: str
    why: str = ""


def paper_rows(values):
    """The rows of each paper, their figures filled in."""
    return {
        name: [_row(record, values) for record in read_yaml(HERE / "papers" / f"{name}.yaml").value]
        for name in PAPERS
    }


def _row(entry, values):
    texts = {key: entry.get(key, "") for key in ("theirs", "ours", "why")}
    filled_texts = {key: text.format(**values) for key, text in texts.items()}
    verdict = entry["verdict"]
    if verdict == COUNTED:
        counts = _counts(texts["ours"], values["claims"])
        verdict = "same" if all(count.is_same for count in counts) else "corrected"
    return PaperRow(
        tuple(entry["of"]), entry["what"], entry["command"], verdict=verdict, **filled_texts
    )


def _counts(text, claims):
    return [claims[label] for label in re.findall(r"\{claims\[([^]]+)\]\}", text)]


@dataclass(frozen=True)
class FigureCount:
    """How many figures of a table come out the same."""

    same: int
    all: int

    @property
    def is_same(self):
        return self.same == self.all

    def __format__(self, _):
        return f"{self.same} of {self.all} figures the same"


def row_values(claims, once):
    """What the words of the rows name.

    Args:
        claims: every published figure of the first paper beside ours.
        once: unanimous and split items, one record an item.
    """
    tables = defaultdict(list)
    for claim in claims:
        tables[claim.table].append(claim.is_same)
    published_values = published_tables()
    return {
        "claims": {
            name: FigureCount(sum(is_match), len(is_match)) for name, is_match in tables.items()
        },
        "simulated": simulated(),
        "power": {claim.where: claim.ours for claim in published_values.claims},
        "power_cells": FigureCount(
            sum(cell.is_same for cell in published_values.cells), len(published_values.cells)
        ),
        "once": f"{once.unanimous.estimate:.1%} of {once.unanimous.n} against"
        f" {once.split.estimate:.1%} of {once.split.n}",
        "scalar": scalar_against_table(),
        "cold": cold_start(),
        **pressure(),
    }


def simulated():
    """By simulation, how many of its figures agree with the paper's."""
    sections = (HERE / "simulations.md").read_text(encoding="utf-8").split("\n## ")[1:]
    counts = {}
    for section in sections:
        name = re.search(r"^([a-z-]+), after ", section, re.MULTILINE)[1]
        standings = [line.split(" | ")[-1] for line in section.splitlines() if "| " in line]
        agrees = sum(standing.startswith("agrees") for standing in standings)
        differs = sum(standing.startswith("differs") for standing in standings)
        counts[name] = f"{agrees} of {agrees + differs} figures agree"
    return counts


def scalar_against_table():
    text = (HERE / "calibration.md").read_text(encoding="utf-8")
    match = re.search(r"less test error than the table that it chooses in (\d+); .*?"
                      r"excludes zero in (\d+), (\d+) of them", text, re.DOTALL)  # fmt: skip
    pairs = re.search(r"and (\d+) pairs of panel and budget", text)[1]
    return f"scalar wins {match[1]} of {pairs}; {match[3]} of {match[2]} clear ones"


def cold_start():
    """How often the guard is better than the naive choice, and than the prior of the task."""
    cold = json.loads((HERE / "calibration.json").read_text(encoding="utf-8"))["cold"]
    rows = [ways for panels in cold.values() for ways in panels.values()]
    naive = sum(ways["guarded, task"][0] < ways["naive"][0] for ways in rows)
    prior = sum(ways["guarded, task"][0] < ways["task prior"][0] for ways in rows)
    return (
        f"guard better than naive in {naive} of {len(rows)} panels and budgets,"
        f" than the prior alone in {prior}"
    )


def pressure():
    """Tables 17, 26 and 27 on the public panels."""
    record = json.loads((HERE / "pressure.json").read_text(encoding="utf-8"))
    return {name: record[name] for name in ("proxy", "pressure", "correlations")}


def paper_tables(rows):
    """A section for each paper."""
    parts = []
    for name, paper in PAPERS.items():
        cells = [
            [
                ", ".join(row.of),
                row.what,
                "; ".join(f"`{part.strip()}`" for part in row.command.split(";")),
                row.theirs,
                row.ours,
                row.verdict,
                row.why,
            ]
            for row in rows[name]
        ]
        columns = ["item", "what", "command", "theirs", "ours", "verdict", "why"]
        lines = [columns, ["---"] * len(columns), *cells]
        table = "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)
        parts.append(f"## {paper}\n\n{table}")
    return "\n\n".join(parts)


def _cell(text):
    return text.replace("|", "\\|")
