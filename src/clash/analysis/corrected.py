"""Win rates as people would give them: a few labels, and the panel's verdicts on all the rest."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from clash.errors import StatisticsError
from clash.stats.hypothesis_tests import two_sided
from clash.stats.selection.ppi import powered_proportion

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from clash.analysis.rundata import RunData
    from clash.records import Verdict
    from clash.stats.intervals import Interval
    from clash.stats.typing import Floats, Index


FEWEST = 20
"""Labelled prompts below which the interval is not to be leaned on."""
FEWEST_IN_STRATUM = 5
LEVEL = 0.01
"""Level of the test that labelled items are a sample like the rest."""
MEND = "label a random sample: clash review RUN --sample 50"


@dataclass(frozen=True)
class CorrectedRate:
    """How often people prefer a candidate, as labels and verdicts together say.

    Attributes:
        rate: share of the items it was to answer that people give to it alone, by PPI++.
        labels_only: the same by the labelled items alone.
        panel: share of these items that the panel gives to it.
        bias: the panel's share minus people's on the labelled items.
        power: how much of the panel's say is used, 0 to 1.
    """

    candidate: str
    rate: Interval
    labels_only: Interval
    panel: float
    bias: float
    power: float


@dataclass(frozen=True)
class Correction:
    """What labels make of the leaderboard.

    Labels must be a random sample of the items on which the panel was unanimous, and one of
    those on which it was not; the two are weighed by how many items there are of each, so that
    people may be asked more often where the panel is split.

    Attributes:
        n_labelled: items with a label.
        items: all.
        rates: by candidate; empty where ``refusal`` says why.
        refusal: why no rate is given, and what to do; null where rates are.
    """

    json_keys: ClassVar[Mapping[str, str]] = {"n_labelled": "labelled", "refusal": "refused"}

    n_labelled: int
    items: int
    rates: tuple[CorrectedRate, ...]
    refusal: str | None = None

    def of(self, candidate: str) -> CorrectedRate | None:
        """The rate of a candidate."""
        return next((rate for rate in self.rates if rate.candidate == candidate), None)


def correction(run: RunData, order: Sequence[str]) -> Correction | None:
    """Correct the win rates of these candidates by the labels; null without a label.

    Raises:
        Nothing: where the labels do not suffice, ``refusal`` says so.
    """
    has_label = np.array([item.item_id in run.truth for item in run.items], dtype=bool)
    if not has_label.any():
        return None
    n_labelled, items = int(has_label.sum()), len(has_label)
    clusters = np.array([run.clusters[item.item_id] for item in run.items])
    strata = np.array([int(verdict.unanimous) for verdict in run.verdicts])
    refusal = why_not_corrected(run.verdicts, has_label, clusters, strata)
    if refusal is not None:
        return Correction(n_labelled, items, (), refusal)
    rates = []
    for name in order:
        item_ids = run.items_asked(name)
        is_asked = np.array([item.item_id in item_ids for item in run.items], dtype=bool)
        corrected_rate = _rate(run, name, np.flatnonzero(is_asked), has_label, clusters, strata)
        if corrected_rate is not None:
            rates.append(corrected_rate)
    return Correction(n_labelled, items, tuple(rates))


def _rate(
    run: RunData,
    name: str,
    rows: Index,
    has_label: NDArray[np.bool_],
    clusters: Index,
    strata: Index,
) -> CorrectedRate | None:
    """The corrected rate over the items of a candidate; null where too few of them are labelled."""
    wins = np.array([float(run.verdicts[i].winner == name) for i in rows])
    row_has_label = has_label[rows]
    labelled_rows, unlabelled_rows = rows[row_has_label], rows[~row_has_label]
    people = [float(run.truth[run.items[i].item_id] == name) for i in labelled_rows]
    try:
        estimate = powered_proportion(
            people,
            wins[row_has_label],
            wins[~row_has_label],
            clusters[labelled_rows],
            clusters[unlabelled_rows],
            strata=strata[labelled_rows],
            other_strata=strata[unlabelled_rows],
        )
    except StatisticsError:
        return None
    return CorrectedRate(
        name,
        estimate.interval,
        estimate.labels_only,
        float(wins.mean()),
        estimate.bias,
        estimate.power,
    )


def why_not_corrected(
    verdicts: Sequence[Verdict], has_label: NDArray[np.bool_], clusters: Index, strata: Index
) -> str | None:
    """Why these labels cannot correct a rate; null where they can."""
    n = len(np.unique(clusters[has_label]))
    if n < FEWEST:
        return f"{n} labelled prompts are too few ({FEWEST}); {MEND}"
    sure = np.array([-1.0 if v.confidence is None else v.confidence for v in verdicts])
    for stratum, words in ((1, "unanimous"), (0, "not unanimous")):
        inside = strata == stratum
        labelled_rows, unlabelled_rows = inside & has_label, inside & ~has_label
        if not unlabelled_rows.any():
            continue
        if len(np.unique(clusters[labelled_rows])) < FEWEST_IN_STRATUM:
            return (
                f"{int(labelled_rows.sum())} of the {int(inside.sum())} items on which the panel "
                "was"
                f" {words} have a label, too few ({FEWEST_IN_STRATUM}); {MEND}"
            )
        if _rank_sum_p(sure[labelled_rows], sure[unlabelled_rows]) < LEVEL:
            return (
                f"of the items on which the panel was {words}, the labelled ones are not a "
                f"random sample: the panel's confidence in them differs from the rest; {MEND}"
            )
    return None


def _rank_sum_p(first: Floats, second: Floats) -> float:
    """Two-sided p of Wilcoxon's rank-sum test, normal approximation with ties; 1 if all are tied."""
    values = np.concatenate([first, second])
    _, code, count = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(count) - (count - 1) / 2)[code]
    n, m, total = len(first), len(second), len(values)
    ties = float(((count.astype(float) ** 3) - count).sum()) / (total * max(total - 1, 1))
    variance = n * m / 12 * (total + 1 - ties)
    if variance <= 0:
        return 1.0
    return two_sided((float(ranks[:n].sum()) - n * (total + 1) / 2) / math.sqrt(variance))
