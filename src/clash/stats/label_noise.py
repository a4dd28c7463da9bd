"""How much of a disagreement with labels is the labels' own noise, from items with several of them.

Each of C options is an item's truth; a person says it with chance r and each other option with
(1 - r) / (C - 1), independently of other people (the one-coin model of Dawid and Skene 1979, with one
coin for all). Two people then agree with chance r^2 + (1 - r)^2 / (C - 1), which gives r, and a panel
that is right with chance a agrees with one person with chance a r + (v - a) (1 - r) / (C - 1), v being
the share of items on which it has a verdict, which gives a.

Where people find some items harder than others, a perfect judge agrees with one person on less than r,
but on no less than two people agree: with p the shares of an item's options, E max p lies between
E sum p^2 and the r of the mean (Jensen).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from clash.errors import StatisticsError
from clash.stats.intervals import (
    Interval,
    mean_clustered,
    normal_quantile,
    wilson,
    wilson_clustered,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from clash.stats.typing import Floats

_DRAWS = 20_000


@dataclass(frozen=True, slots=True)
class LabelNoise:
    """Disagreement of a panel with single people, in two parts.

    Attributes:
        pair_agreement: how often two people agree.
        person: r, how often a person says what most people would; the agreement of a perfect judge
            with one person.
        panel_person: how often the panel says what a person says.
        panel: a, how often the panel says what most people would.
        noise: 1 - r, what a perfect judge would still differ by.
        judge_error: r - ``panel_person``, what is left to the panel.
    """

    pair_agreement: Interval
    person: Interval
    panel_person: Interval
    panel: Interval
    noise: Interval
    judge_error: Interval


def label_noise(
    pair_agreement: ArrayLike,
    panel_agreement: ArrayLike,
    has_verdict: ArrayLike,
    options: int,
    clusters: ArrayLike,
    level: float = 0.95,
) -> LabelNoise:
    """Split the disagreement on items that two people or more have labelled.

    Intervals are those of the means; of r a transform, which keeps them in [1 / C, 1]; of the others
    linearised and cut at 0 and 1. Where two people may agree by chance alone, r is not told from
    1 / C, and nothing is said of the panel: its intervals are [0, 1].

    Args:
        pair_agreement: (n,), share of an item's pairs of people that agree.
        panel_agreement: (n,), share of an item's people that the panel agrees with; 0 without a
            verdict.
        has_verdict: (n,), whether there is one.
        options: C, at least 2.
        clusters: (n,), codes of what depends on each other.
        level: confidence level.

    Raises:
        StatisticsError: no item, one option, or shares outside [0, 1].
    """
    pair, single = np.asarray(pair_agreement, float), np.asarray(panel_agreement, float)
    verdicts = np.asarray(has_verdict, float)
    if options < 2 or not len(pair):
        raise StatisticsError("label noise needs an item with several labels, and two options")
    agreement = _share(pair, clusters, level)
    person = replace(
        agreement.transform(lambda share: person_accuracy(share, options)),
        method="of the pair agreement",
    )
    panel_person = _share(single, clusters, level)
    r, p = person.estimate, panel_person.estimate
    noise = person.complement()
    if agreement.low <= 1 / options:
        unknown = Interval(math.nan, 0.0, 1.0, level, len(pair), 0.0, "people may agree by chance")
        return LabelNoise(agreement, person, panel_person, unknown, noise, unknown)
    # r' = dr / dA; the rest are partial derivatives of a = (p - v u) / (r - u), u = (1 - r) / (C - 1).
    slope = (options - 1) / (2 * (options * r - 1))
    u, v = (1 - r) / (options - 1), float(verdicts.mean())
    gap, du = r - u, -1 / (options - 1)
    right = (p - v * u) / gap
    by_r = (-v * du - right * (1 - du)) / gap
    noise_part = slope * (pair - agreement.estimate)
    judge = mean_clustered(r - p + noise_part - (single - p), clusters, level)
    accuracy = mean_clustered(
        right + by_r * noise_part + (single - p) / gap - u / gap * (verdicts - v), clusters, level
    )
    return LabelNoise(agreement, person, panel_person, _cut(accuracy), noise, _cut(judge))


def person_accuracy(agreement: float, options: int) -> float:
    """R from how often two people agree; 1 / C where that is no more than chance."""
    excess = (options - 1) * (options * agreement - 1)
    return (1 + math.sqrt(max(excess, 0.0))) / options


def majority_accuracy(person: float, people: int, options: int) -> float:
    """How often most of some people say the truth, of the times that one option has most of them.

    By the binomial distribution for two options, else by 20,000 draws with a seed of its own.
    """
    if people < 1:
        return math.nan
    if options == 2:
        chances = [
            math.comb(people, k) * person**k * (1 - person) ** (people - k)
            for k in range(people + 1)
        ]
        right = math.fsum(chances[people // 2 + 1 :])
        wrong = math.fsum(chances[: (people + 1) // 2])
        return right / (right + wrong)
    rng = np.random.default_rng(0)
    chances = [(1 - person) / (options - 1)] * (options - 1)
    counts = rng.multinomial(people, [person, *chances], size=_DRAWS)
    best = counts.max(axis=1)
    is_sole = (counts == best[:, None]).sum(axis=1) == 1
    return float((counts[is_sole, 0] == best[is_sole]).mean())


def _share(values: Floats, clusters: ArrayLike, level: float) -> Interval:
    """A mean of shares: Wilson's interval with their variance, which is below that of zeros and ones.

    Where they do not vary, as of zeros and ones.
    """
    mean = mean_clustered(values, clusters, level)
    binomial = mean.estimate * (1 - mean.estimate) / len(values)
    variance = (mean.half_width / normal_quantile(level)) ** 2
    if not (math.isfinite(variance) and variance > 0 and binomial > 0):
        return wilson_clustered(values, clusters, level)
    n = len(values)
    return wilson(mean.estimate * n, n, level, design_effect=variance / binomial)


def _cut(interval: Interval) -> Interval:
    """The interval, cut at 0 and 1."""
    return interval.transform(lambda value: min(max(value, 0.0), 1.0))
