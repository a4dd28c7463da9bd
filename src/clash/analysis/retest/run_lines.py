"""One run in a line, two runs against each other, and items by how sure their verdicts are."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from clash.analysis.concordance.cases import CaseRate, rate
from clash.analysis.coverage import coverage
from clash.analysis.decision import Decision, decide
from clash.analysis.leaderboard import Standing, duels, standings
from clash.stats.retest.repeats import InterRun, MatchTable, inter_run, match_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from clash.analysis.retest.align import AlignedRuns
    from clash.analysis.rundata import RunData
    from clash.stats.intervals import Interval


@dataclass(frozen=True)
class RunLine:
    """One run of the comparison.

    Attributes:
        concordance: over its labelled items; null without labels.
    """

    run: str
    n: int
    seed: int
    fresh_responses: bool
    no_verdict: int
    unanimous: int
    concordance: CaseRate | None
    cost_usd: float | None
    mean_confidence: float | None


@dataclass(frozen=True)
class RunOutcome:
    """What one run says by itself.

    Attributes:
        leaderboard: best first.
    """

    run: str
    decision: Decision
    leaderboard: list[Standing]


@dataclass(frozen=True)
class RunPair:
    """Two runs on all items.

    Attributes:
        verdicts: agreement and kappa over what was said.
        matches: the 2 x 2 table over whether it was right, with the kappa over match and miss;
            null without labels.
        same_responses: both judged the same texts.
    """

    first: str
    second: str
    verdicts: InterRun
    matches: MatchTable | None
    same_responses: bool


@dataclass(frozen=True)
class Category:
    """Items of one kind of stability."""

    name: str
    n: int
    share: Interval


@dataclass(frozen=True)
class MissedPair:
    """Two candidates that the panel ranks against the label.

    Attributes:
        items: on which they meet.
        missed_always: of them, those that are wrong in every whole run.
    """

    pair: str
    items: int
    missed_always: int


@dataclass(frozen=True)
class Unsure:
    """An item and how sure its verdicts were."""

    json_keys: ClassVar[Mapping[str, str]] = {"verdicts": "said"}

    item_id: str
    confidence: float | None
    category: str
    verdicts: tuple[str, ...]


def run_line(alignment: AlignedRuns, index: int) -> RunLine:
    """Run number ``index`` in a line."""
    run = alignment.runs[index]
    present = alignment.present[:, index]
    responses = alignment.responses[present, index]
    sure = alignment.confidence[present, index]
    known_sure = sure[~np.isnan(sure)]
    has_label = present & alignment.has_label
    return RunLine(
        run=run.manifest.run,
        n=int(present.sum()),
        seed=run.manifest.seeds.get("seed", 0),
        fresh_responses=bool(
            np.any(responses != alignment.responses[present, alignment.complete_runs[0]])
        ),
        no_verdict=int(np.sum(alignment.verdicts[present, index] < 0)),
        unanimous=sum(v.unanimous for v in run.verdicts),
        concordance=rate_of(
            alignment.right[has_label, index],
            alignment,
            has_label,
            alignment.verdicts[has_label, index] >= 0,
        )
        if has_label.any()
        else None,
        cost_usd=run.manifest.cost_usd,
        mean_confidence=float(known_sure.mean()) if len(known_sure) else None,
    )


def run_outcome(run: RunData) -> RunOutcome:
    """The leaderboard and decision of one run."""
    board = standings(run)
    pairs = duels(run, [row.candidate for row in board])
    return RunOutcome(run.manifest.run, decide(board, pairs, coverage(run)), board)


def rate_of(
    right: NDArray[np.bool_],
    alignment: AlignedRuns,
    rows: NDArray[np.bool_] | None = None,
    has_verdict: NDArray[np.bool_] | None = None,
) -> CaseRate:
    """The share that is right, clustered as the items are; of some ``rows`` of them where given."""
    clusters = alignment.clusters if rows is None else alignment.clusters[rows]
    verdict_flags = None if has_verdict is None else has_verdict.tolist()
    return rate(right.astype(float).tolist(), clusters, verdict_flags)


def combined_rate(alignment: AlignedRuns) -> CaseRate:
    """All verdicts of the whole runs; repeats of an item are one cluster."""
    right = alignment.right[:, alignment.complete_runs]
    groups = np.repeat(alignment.clusters, len(alignment.complete_runs))
    has_verdict = (alignment.verdicts[:, alignment.complete_runs] >= 0).ravel().tolist()
    return rate(right.astype(float).ravel().tolist(), groups, has_verdict)


def run_pair(alignment: AlignedRuns, a: int, b: int) -> RunPair:
    """Two runs on all items."""
    has_label = alignment.has_label
    return RunPair(
        alignment.names[a],
        alignment.names[b],
        inter_run(
            alignment.verdicts[:, a],
            alignment.verdicts[:, b],
            alignment.n_classes,
            alignment.clusters,
        ),
        match_table(alignment.right[has_label, a], alignment.right[has_label, b])
        if has_label.any()
        else None,
        bool(np.all(alignment.responses[:, a] == alignment.responses[:, b])),
    )


def missed_pairs(alignment: AlignedRuns) -> list[MissedPair]:
    """Pairs of candidates by how many of their items are wrong in every whole run."""
    is_missed = np.all(~alignment.right[:, alignment.complete_runs], axis=1).tolist()
    items: Counter[str] = Counter()
    misses: Counter[str] = Counter()
    for names, is_wrong in zip(alignment.candidates, is_missed, strict=True):
        if len(names) == 2:
            pair = " : ".join(sorted(names))
            items[pair] += 1
            misses[pair] += is_wrong
    lines = [MissedPair(pair, items[pair], n) for pair, n in misses.items() if n]
    return sorted(lines, key=lambda line: (-line.missed_always, line.items, line.pair))


def unsure(alignment: AlignedRuns, row: int, category: str) -> Unsure:
    """One item, what was said of it, and how sure."""
    sure = alignment.confidence[row, alignment.complete_runs]
    known_sure = sure[~np.isnan(sure)]
    names = (*alignment.candidates[row], "tie")
    verdicts = tuple(
        "no verdict" if code < 0 else names[code]
        for code, present in zip(alignment.verdicts[row], alignment.present[row], strict=True)
        if present
    )
    return Unsure(
        alignment.items[row],
        float(known_sure.mean()) if len(known_sure) else None,
        str(category),
        verdicts,
    )
