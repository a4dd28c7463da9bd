"""Writes docs/tables/aggregation.md: every aggregation method against labels on public panels.

    python docs/tables/aggregation.py [--votes FOLDER] [--only rb2] [--out FILE]

Files that are absent are left out, and said to be.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path

from clash.analysis.aggregation import Aggregation, MethodResult, aggregate
from clash.errors import ClashError
from clash.votes import Votes, read_votes

ROOT = Path(__file__).resolve().parents[2]
ALL = (
    "majority",
    "auto",
    "one-coin",
    "dawid-skene",
    "ising-shared",
    "ising-class",
    "ising-family",
    "factor",
    "factor-family",
)
SHORT = ("majority", "auto", "dawid-skene", "factor")
HEADER = (
    "| panel | items x judges | method | accuracy | against majority | balanced | log-loss | "
    "Brier | ECE |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
)


@dataclass(frozen=True)
class Panel:
    """One file and filter; ``split`` adds a short row for each of its subsets."""

    name: str
    file: str
    judges: str | None = None
    presentation: str | None = None
    split: bool = True


PANELS = (
    Panel("agentclash-mtbench100, 3 judges", "agentclash-mtbench100", "*/supreme"),
    Panel("agentclash-mtbench100", "agentclash-mtbench100"),
    Panel("agentclash-arena100", "agentclash-arena100", split=False),
    Panel("agentclash-arena100, 3 judges", "agentclash-arena100", "*/supreme"),
    Panel("llmbar-casestudy, Vanilla", "llmbar-casestudy", "*/Vanilla", "orig"),
    Panel("llmbar-casestudy", "llmbar-casestudy", None, "orig", split=False),
    Panel("llmbar-processed", "llmbar-processed", None, "orig"),
    Panel("llmbar-processed, both orders", "llmbar-processed", split=False),
    Panel("rb2-replicates, one sample", "rb2-replicates", "*#s0"),
    Panel("rb2-replicates, near-copies", "rb2-replicates", "gpt-5.4-nano#*,*#s0"),
    Panel("rb2-replicates", "rb2-replicates", split=False),
    Panel("ta-feedback.part1", "ta-feedback.part1"),
    Panel("llmfao", "llmfao", "gpt-*,heuristic*"),
    Panel("pandalm", "pandalm", "gpt-*,PandaLM*,heuristic*", split=False),
    Panel("pandalm, people too (label is theirs)", "pandalm", split=False),
    Panel("mtbench-panel", "mtbench-panel", split=False),
    Panel("amel-llmbar", "amel-llmbar", split=False),
    Panel("amel-llmbar, fresh", "amel-llmbar", "*/fresh"),
    Panel("llm-rubric, scores cut in two", "llm-rubric", split=False),
    Panel("arena-claude4", "arena-claude4"),
)


def main() -> None:
    """Read the panels that are there, run the methods, write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--votes", type=Path, default=ROOT.parent / "shared/data/votes")
    parser.add_argument(
        "--only", default="", help="panels whose name contains this; other rows stay as they are"
    )
    parser.add_argument("--out", type=Path, default=ROOT / "docs/tables/aggregation.md")
    options = parser.parse_args()
    panel_lines, parts, choice_lines, absent = [], [], [], []
    for panel in PANELS:
        if options.only not in panel.name:
            continue
        path = options.votes / f"{panel.file}.votes.jsonl.gz"
        if not path.exists():
            absent.append(panel.name)
            continue
        votes = load(path, panel)
        panel_table = measured(panel.name, votes, ALL)
        panel_lines += rows(panel.name, votes, panel_table)
        choice_lines.append(f"- **{panel.name}**: {panel_table.selected}. {panel_table.reason}")
        for subset in subsets(votes) if panel.split else ():
            try:
                part = load(path, panel, subset)
                result = measured(f"{panel.name} / {subset}", part, SHORT)
            except ClashError as refusal:
                absent.append(f"{panel.name} / {subset} ({refusal})")
                continue
            parts += rows(f"{panel.name} / {subset}", part, result)
    if options.only:
        panel_lines, parts, choice_lines = (
            kept(options.out.read_text(encoding="utf-8"), heading, new)
            for heading, new in (
                ("Panels", panel_lines),
                ("Subsets", parts),
                ("What auto chose", choice_lines),
            )
        )
    options.out.write_text(document(panel_lines, parts, choice_lines, absent), encoding="utf-8")
    print(f"wrote {options.out}")
    into_statistics(panel_lines)


def kept(page: str, heading: str, new: list[str]) -> list[str]:
    """The rows of a section of an earlier page, those that were measured again replaced."""
    section = page.partition(f"## {heading}")[2].partition("\n## ")[0]
    old = [row for row in section.splitlines() if row.startswith(("| ", "- **"))]
    old = [row for row in old if not row.startswith(("| panel", "| ---"))]
    fresh = {_panel(row) for row in new}
    first = next((i for i, row in enumerate(old) if _panel(row) in fresh), len(old))
    remaining_old = [row for row in old if _panel(row) not in fresh]
    return [*remaining_old[:first], *new, *remaining_old[first:]]


def _panel(row: str) -> str:
    """The panel that a row or a reason is about."""
    return row.removeprefix("- **").partition("**:")[0].strip("| ").partition(" | ")[0]


def into_statistics(panel_lines: list[str]) -> None:
    """The table of whole panels, between its marks in docs/statistics.md."""
    page = ROOT / "docs" / "statistics.md"
    before, begin, rest = page.read_text(encoding="utf-8").partition("<!-- panels: begin -->\n")
    _, end, after = rest.partition("<!-- panels: end -->")
    auto = [row for row in panel_lines if "**auto**" in row]
    summary = (
        f"On these {len(auto)} panels `auto` is significantly better than majority on"
        f" {sum('**better**' in row for row in auto)} and significantly worse on"
        f" {sum('**worse**' in row for row in auto)}; `dawid-skene` is worse on"
        f" {sum('| dawid-skene |' in row and '**worse**' in row for row in panel_lines)}, `factor` on"
        f" {sum('| factor |' in row and '**worse**' in row for row in panel_lines)}."
    )
    table = "\n".join([HEADER, *panel_lines])
    page.write_text(f"{before}{begin}{summary}\n\n{table}\n{end}{after}", encoding="utf-8")
    print(f"wrote {page}")


def load(path: Path, panel: Panel, subset: str | None = None) -> Votes:
    """The votes of a panel whose label is one of the two sides."""
    return read_votes(
        path,
        judges=panel.judges,
        presentation=panel.presentation,
        subset=None if subset is None else [subset],
        decisive=True,
    )


def subsets(votes: Votes) -> list[str]:
    """Subsets of a panel, where it has more than one."""
    names = sorted({subset for subset in votes.subsets if subset})
    return names if len(names) > 1 else []


def measured(name: str, votes: Votes, methods: tuple[str, ...]) -> Aggregation:
    """All methods on one panel, with the time it took on the terminal."""
    began = time.perf_counter()
    aggregation = aggregate(votes, methods, use_labels=False)
    print(f"{name}: {aggregation.selected} ({time.perf_counter() - began:.1f} s)", flush=True)
    return aggregation


def rows(name: str, votes: Votes, aggregation: Aggregation) -> list[str]:
    """A table row for each method that was not refused."""
    size = f"{aggregation.n_items} x {len(votes.judges)}"
    return [
        f"| {name} | {size} | {_method(result, aggregation)} | {_figures(result)} |"
        for result in sorted(aggregation.methods, key=lambda result: ALL.index(result.method))
        if result.score is not None
    ]


def _method(result: MethodResult, aggregation: Aggregation) -> str:
    return f"**auto** ({aggregation.selected})" if result.method == "auto" else result.method


def _figures(result: MethodResult) -> str:
    score = result.score
    if score is None:
        return " | " * 5
    cells = [f"{100 * score.accuracy:.1f}", _gain(result), f"{100 * score.balanced_accuracy:.1f}"]
    cells += [
        "" if value is None else f"{value:.3f}"
        for value in (score.log_loss, score.brier, score.ece)
    ]
    return " | ".join(cells)


def _gain(result: MethodResult) -> str:
    gain = None if result.score is None else result.score.gain
    if gain is None:
        return ""
    mark = " **better**" if gain.low > 0 else " **worse**" if gain.high < 0 else ""
    return f"{100 * gain.estimate:+.1f} [{100 * gain.low:+.1f}, {100 * gain.high:+.1f}]{mark}"


def document(
    panel_lines: list[str], parts: list[str], choice_lines: list[str], absent: list[str]
) -> str:
    """The Markdown page."""
    missing = f"\n\nNot measured: {'; '.join(absent)}." if absent else ""
    return (
        "# Aggregation methods on public panels\n\n"
        "Written by `docs/tables/aggregation.py`; labels A and B only, no label was used by any "
        'method. A tied vote is half a vote, a verdict at 1/2 half right. "Against majority": '
        "difference in accuracy, in points, with its 95% interval over items; *better* and "
        "*worse* where the interval leaves out 0. Every posterior but majority's is tempered and "
        "averaged with the vote share; auto's too where it gives majority's verdicts the "
        "probabilities of equally good judges. The Ising models hold their couplings by an L2 of "
        "0.01 of the items, and are fitted by pseudo-likelihood beyond 15 judges. Methods that were refused (not identified, too many gaps) "
        f"have no row.{missing}\n\n## Panels\n\n{HEADER}\n" + "\n".join(panel_lines) + "\n\n"
        "## What auto chose, and why\n\n" + "\n".join(choice_lines) + "\n\n"
        f"## Subsets\n\n{HEADER}\n" + "\n".join(parts) + "\n"
    )


if __name__ == "__main__":
    main()
