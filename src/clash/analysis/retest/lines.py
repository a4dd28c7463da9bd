"""One run in a line, two runs against each other, and items by how sure their verdicts are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from clash.analysis.concordance.cases import CaseRate, rate
from clash.stats.retest import InterRun, MatchTable, inter_run, match_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from clash.analysis.retest.align import AlignedRuns
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
class Unsure:
    """An item and how sure its verdicts were."""

    json_keys: ClassVar[Mapping[str, str]] = {"verdicts": "said"}

    item_id: str
    confidence: float | None
    category: str
    verdicts: tuple[str, ...]


def run_line(found: AlignedRuns, index: int) -> RunLine:
    """Run number ``index`` in a line."""
    run = found.runs[index]
    held = found.present[:, index]
    responses = found.responses[held, index]
    sure = found.confidence[held, index]
    known_sure = sure[~np.isnan(sure)]
    labelled = held & found.has_label
    return RunLine(
        run=run.manifest.run,
        n=int(held.sum()),
        seed=run.manifest.seeds.get("seed", 0),
        fresh_responses=bool(np.any(responses != found.responses[held, found.complete_runs[0]])),
        no_verdict=int(np.sum(found.verdicts[held, index] < 0)),
        unanimous=sum(v.unanimous for v in run.verdicts),
        concordance=rate_of(
            found.right[labelled, index], found, labelled, found.verdicts[labelled, index] >= 0
        )
        if labelled.any()
        else None,
        cost_usd=run.manifest.cost_usd,
        mean_confidence=float(known_sure.mean()) if len(known_sure) else None,
    )


def rate_of(
    right: NDArray[np.bool_],
    found: AlignedRuns,
    rows: NDArray[np.bool_] | None = None,
    judged: NDArray[np.bool_] | None = None,
) -> CaseRate:
    """The share that is right, clustered as the items are; of some ``rows`` of them where given."""
    clusters = found.clusters if rows is None else found.clusters[rows]
    there = None if judged is None else judged.tolist()
    return rate(right.astype(float).tolist(), clusters, there)


def combined_rate(found: AlignedRuns) -> CaseRate:
    """All verdicts of the whole runs; repeats of an item are one cluster."""
    right = found.right[:, found.complete_runs]
    groups = np.repeat(found.clusters, len(found.complete_runs))
    judged = (found.verdicts[:, found.complete_runs] >= 0).ravel().tolist()
    return rate(right.astype(float).ravel().tolist(), groups, judged)


def run_pair(found: AlignedRuns, a: int, b: int) -> RunPair:
    """Two runs on all items."""
    labelled = found.has_label
    return RunPair(
        found.names[a],
        found.names[b],
        inter_run(found.verdicts[:, a], found.verdicts[:, b], found.n_classes, found.clusters),
        match_table(found.right[labelled, a], found.right[labelled, b]) if labelled.any() else None,
        bool(np.all(found.responses[:, a] == found.responses[:, b])),
    )


def unsure(found: AlignedRuns, row: int, category: str) -> Unsure:
    """One item, what was said of it, and how sure."""
    sure = found.confidence[row, found.complete_runs]
    known_sure = sure[~np.isnan(sure)]
    names = (*found.candidates[row], "tie")
    said = tuple(
        "no verdict" if code < 0 else names[code]
        for code, held in zip(found.verdicts[row], found.present[row], strict=True)
        if held
    )
    return Unsure(
        found.items[row],
        float(known_sure.mean()) if len(known_sure) else None,
        str(category),
        said,
    )
