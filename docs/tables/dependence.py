"""Writes docs/tables/dependence.md: what public panels are worth, with labels and without.

    python docs/tables/dependence.py --votes ../shared/data/votes [--out FILE]

Files that are absent are left out, and said to be.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from clash.analysis.dependence import measure
from clash.analysis.dependence.truth import TruthEstimate, estimate
from clash.stats.dependence.residual_correlation import off_diagonal
from clash.votes import Votes, read_votes
from clash.votes.binary import MethodTable

if TYPE_CHECKING:
    from clash.stats.intervals import Interval

ROOT = Path(__file__).resolve().parents[2]
REPLICATES = 300
HEAD = """# What public panels are worth

Written by `docs/tables/dependence.py`; definitions in [dependence.md](../dependence.md). "by labels": truth
is the label; "from the votes": truth is the default estimate, and the labels only say how far off it is.
r is the mean residual correlation; "blocs" are those found by labels, near-copies in bold; "r, r" is the
correlation over pairs between the two residual correlations. Intervals: bootstrap over groups of rows, 95%.

| panel | judges | by labels | by accuracy | r | from the votes | method | r | r, r | blocs |
| --- | ---: | --- | --- | ---: | --- | --- | ---: | ---: | --- |
"""


@dataclass(frozen=True)
class Panel:
    """One file and filter."""

    name: str
    file: str
    judges: str | None = None
    presentation: str | None = None


PANELS = (
    Panel("agentclash-mtbench100", "agentclash-mtbench100"),
    Panel("agentclash-arena100", "agentclash-arena100"),
    Panel("llmbar-casestudy, Vanilla", "llmbar-casestudy", "*/Vanilla", "orig"),
    Panel("llmbar-casestudy", "llmbar-casestudy", None, "orig"),
    Panel("llmbar-processed", "llmbar-processed", None, "orig"),
    Panel("rb2-replicates, one sample", "rb2-replicates", "*#s0"),
    Panel("rb2-replicates, near-copies", "rb2-replicates", "gpt-5.4-nano#*,*#s0"),
    Panel("rb2-replicates", "rb2-replicates"),
    Panel("ta-feedback", "ta-feedback.part1"),
    Panel("llmfao", "llmfao", "gpt-*,heuristic*"),
    Panel("pandalm", "pandalm", "gpt-*,PandaLM*,heuristic*"),
    Panel("amel-llmbar", "amel-llmbar"),
    Panel("mtbench-panel", "mtbench-panel"),
)


def line(panel: Panel, votes: Votes) -> str:
    """A row of the table."""
    labelled_result, labelled_error = _measured(votes, labels=True)
    blind_result, blind = _measured(votes, labels=False)
    by_label, by_votes = (
        measure.effective(e, m)
        for e, m in ((labelled_result, labelled_error), (blind_result, blind))
    )
    pairs = [off_diagonal(m.correlations.within_classes) for m in (labelled_error, blind)]
    if pairs[0].shape != pairs[1].shape:
        raise ValueError(f"{panel.name}: a judge voted on no labelled row")
    has_both = ~np.isnan(pairs).any(axis=0)
    alike = (
        np.corrcoef(pairs[0][has_both], pairs[1][has_both])[0, 1] if has_both.sum() > 2 else np.nan
    )
    blocs = [
        f"**{len(bloc.judges)}**" if bloc.near_copies else str(len(bloc.judges))
        for bloc in measure.blocs(
            labelled_result, labelled_error, [votes.judges[k] for k in labelled_result.rows.judges]
        )
    ]
    cells = [
        panel.name,
        str(len(votes.judges)),
        _shown(by_label.by_mean),
        _shown(by_label.by_accuracy),
        _r(by_label.mean_correlation),
        _shown(by_votes.by_mean),
        blind_result.source.method,
        _r(by_votes.mean_correlation),
        "-" if np.isnan(alike) else f"{alike:.2f}",
        ", ".join(blocs),
    ]
    return "| " + " | ".join(cells) + " |"


def _measured(votes: Votes, *, labels: bool) -> tuple[TruthEstimate, measure.ErrorCorrelations]:
    # Both on the labelled rows, so that they differ in what they know and nothing else.
    rows = MethodTable.of(votes, use_labels=labels).only_decisive()
    estimate_of_panel = estimate(rows, "auto")
    return estimate_of_panel, measure.measure(
        estimate_of_panel, REPLICATES, np.random.default_rng(0)
    )


def _shown(interval: Interval | None) -> str:
    if interval is None:
        return "-"
    return f"{interval.estimate:.1f} [{interval.low:.1f}, {interval.high:.1f}]"


def _r(interval: Interval | None) -> str:
    return "-" if interval is None else f"{interval.estimate:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--votes", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "tables" / "dependence.md")
    options = parser.parse_args()
    lines, absent = [], []
    for panel in PANELS:
        path = options.votes / f"{panel.file}.votes.jsonl.gz"
        if not path.exists():
            absent.append(panel.name)
            continue
        votes = read_votes(path, judges=panel.judges, presentation=panel.presentation)
        lines.append(line(panel, votes))
        print(lines[-1], flush=True)
    absence = f"\n\nAbsent: {', '.join(absent)}." if absent else ""
    options.out.write_text(HEAD + "\n".join(lines) + absence + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
