"""The verdicts beside what people said, where they said something."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clash.analysis.label_sample import label_sample
from clash.stats.intervals import Interval, wilson_clustered
from clash.stats.selection.corrected_share import corrected_share
from clash.stats.selection.sample_design import SampleDesign

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.analysis.rundata import RunData
    from clash.records import Verdict


@dataclass(frozen=True)
class LabelConcordance:
    """Concordance: verdicts that equal the label, out of all labelled items.

    An item without a verdict is a miss, unless the run ended before it was asked. A tied verdict
    matches the label ``tie`` only.

    Attributes:
        of_all: the share over all items, each labelled one weighted by its chance to be drawn; null
            where no review drew them.
    """

    n: int
    concordance: Interval
    no_verdict: int
    unanimous: Interval | None
    split: Interval | None
    of_all: Interval | None = None


def concordance_with_labels(run: RunData) -> LabelConcordance | None:
    """Concordance of the run; null without labels."""
    labelled_verdicts = run.labelled_verdicts
    concordance = concordance_rate(run, labelled_verdicts)
    if concordance is None:
        return None
    return LabelConcordance(
        n=len(labelled_verdicts),
        concordance=concordance,
        no_verdict=sum(v.abstained is not None for v in labelled_verdicts),
        unanimous=concordance_rate(run, [v for v in labelled_verdicts if v.unanimous]),
        split=concordance_rate(
            run, [v for v in labelled_verdicts if v.ranking and not v.unanimous]
        ),
        of_all=_weighted_rate(run),
    )


def _weighted_rate(run: RunData) -> Interval | None:
    """The concordance of all items from those that a review drew; null where none did."""
    chances = label_sample(run).chances
    if chances is None:
        return None
    hits = np.array(
        [
            float(v.outcome == run.truth[v.item_id]) if v.item_id in run.truth else np.nan
            for v in run.verdicts
        ]
    )
    clusters = [run.clusters[v.item_id] for v in run.verdicts]
    return corrected_share(hits, np.zeros(len(hits)), SampleDesign(clusters, chances)).labels_only


def concordance_rate(
    run: RunData, verdicts: Sequence[Verdict], level: float = 0.95
) -> Interval | None:
    """The share of some verdicts that equal their label, clustered; null where there are none."""
    if not verdicts:
        return None
    hits = [float(v.outcome == run.truth[v.item_id]) for v in verdicts]
    return wilson_clustered(hits, [run.clusters[v.item_id] for v in verdicts], level)
