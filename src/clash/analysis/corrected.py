"""Win rates as people would give them: a few labels, and the panel's verdicts on all the rest."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from clash.errors import StatisticsError
from clash.stats.hypothesis_tests import two_sided
from clash.stats.intervals import normal_quantile, wilson, wilson_clustered
from clash.stats.selection.ppi import powered_mean

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
        labelled: items with a label.
        items: all.
        rates: by candidate; empty where ``refused`` says why.
        refused: why no rate is given, and what to do; null where rates are.
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
        Nothing: labels that do not suffice are said in ``refused``.
    """
    known = np.array([item.item_id in run.truth for item in run.items], dtype=bool)
    if not known.any():
        return None
    labelled, items = int(known.sum()), len(known)
    clusters = np.array([run.clusters[item.item_id] for item in run.items])
    strata = np.array([int(verdict.unanimous) for verdict in run.verdicts])
    refused = _refusal(run.verdicts, known, clusters, strata)
    if refused is not None:
        return Correction(labelled, items, (), refused)
    rates = []
    for name in order:
        asked = {r.item_id for r in run.responses if r.candidate == name}
        mine = np.array([item.item_id in asked for item in run.items], dtype=bool)
        found = _rate(run, name, np.flatnonzero(mine), known, clusters, strata)
        if found is not None:
            rates.append(found)
    return Correction(labelled, items, tuple(rates))


def _rate(
    run: RunData, name: str, mine: Index, known: NDArray[np.bool_], clusters: Index, strata: Index
) -> CorrectedRate | None:
    """The corrected rate over the items of a candidate; null where too few of them are labelled."""
    said = np.array([float(run.verdicts[i].winner == name) for i in mine])
    here = known[mine]
    ours, rest = mine[here], mine[~here]
    people = [float(run.truth[run.items[i].item_id] == name) for i in ours]
    try:
        found = powered_mean(
            people,
            said[here],
            said[~here],
            clusters[ours],
            clusters[rest],
            strata=strata[ours],
            other_strata=strata[rest],
        )
    except StatisticsError:
        return None
    alone = wilson_clustered(people, clusters[ours])
    rate = _proportion(found.interval) if len(rest) else alone
    return CorrectedRate(name, rate, alone, float(said.mean()), found.bias, found.power)


def _proportion(found: Interval) -> Interval:
    """An interval of a share that stays between 0 and 1: Wilson's, with the same variance.

    At a share of 0 or 1, which shows no variance, it is that of the labels as they are.
    """
    share, n = min(max(found.estimate, 0.0), 1.0), found.n
    variance = (found.half_width / normal_quantile(found.level)) ** 2
    own = share * (1 - share) / n
    effect = variance / own if own > 0 and variance > 0 else 1.0
    made = wilson(share * n, n, found.level, design_effect=effect)
    return replace(made, method=f"{found.method}, as Wilson's")


def _refusal(
    verdicts: Sequence[Verdict], known: NDArray[np.bool_], clusters: Index, strata: Index
) -> str | None:
    """Why these labels cannot correct a rate."""
    n = len(np.unique(clusters[known]))
    if n < FEWEST:
        return f"{n} labelled prompts are too few ({FEWEST}); {MEND}"
    sure = np.array([-1.0 if v.confidence is None else v.confidence for v in verdicts])
    for stratum, words in ((1, "unanimous"), (0, "not unanimous")):
        inside = strata == stratum
        ours, others = inside & known, inside & ~known
        if not others.any():
            continue
        if len(np.unique(clusters[ours])) < FEWEST_IN_STRATUM:
            return (
                f"{int(ours.sum())} of the {int(inside.sum())} items on which the panel was"
                f" {words} have a label, too few ({FEWEST_IN_STRATUM}); {MEND}"
            )
        if _rank_sum_p(sure[ours], sure[others]) < LEVEL:
            return (
                f"of the items on which the panel was {words}, those with a label are no random"
                f" sample: the panel's confidence in them differs from the rest; {MEND}"
            )
    return None


def _rank_sum_p(first: Floats, second: Floats) -> float:
    """Two-sided p of Wilcoxon's rank-sum test, normal approximation with ties; 1 if all are tied."""
    both = np.concatenate([first, second])
    _, code, count = np.unique(both, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(count) - (count - 1) / 2)[code]
    n, m, total = len(first), len(second), len(both)
    ties = float(((count.astype(float) ** 3) - count).sum()) / (total * max(total - 1, 1))
    variance = n * m / 12 * (total + 1 - ties)
    if variance <= 0:
        return 1.0
    return two_sided((float(ranks[:n].sum()) - n * (total + 1) / 2) / math.sqrt(variance))
