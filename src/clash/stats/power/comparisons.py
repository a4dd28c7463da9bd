"""Sample size and power of the two comparisons of an evaluation.

Two conditions on different clusters (two proportions), and two candidates on the same items
(paired: McNemar's test, clustered by item). Effects are absolute differences, 0.10 for ten
points; every test is two-sided.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from clash.errors import StatisticsError
from clash.stats.power.design import Clustering, Demand, ErrorRates, two_sided_power

if TYPE_CHECKING:
    from collections.abc import Callable

ALONE = Clustering()
USUAL = ErrorRates()


def _spread(effect: float, middle: float) -> float:
    """p(1 - p) summed over the two proportions middle ± effect / 2."""
    first, second = middle + effect / 2, middle - effect / 2
    if not (0 <= second <= first <= 1):
        raise StatisticsError(
            f"a difference of {effect:g} around {middle:g} is outside the range of a proportion"
            "\n  fix: plan for a smaller effect"
        )
    return first * (1 - first) + second * (1 - second)


def required_two_proportions(
    effect: float, middle: float = 0.5, clustering: Clustering = ALONE, level: ErrorRates = USUAL
) -> Demand:
    """What each of two conditions needs for a z test of their proportions (unpooled variance).

    n = (z_alpha/2 + z_power)^2 (p1 q1 + p2 q2) / effect^2, times the design effect.

    Args:
        effect: p1 - p2 > 0.
        middle: (p1 + p2) / 2.
        clustering: of the observations of one condition; conditions share no cluster.
        level: error rates.

    Raises:
        StatisticsError: an effect that is not positive, or proportions outside [0, 1].
    """
    _positive(effect)
    reach = level.z_alpha + level.z_power
    return Demand.of(reach**2 * _spread(effect, middle) / effect**2, clustering)


def power_two_proportions(
    clusters: float,
    effect: float,
    middle: float = 0.5,
    clustering: Clustering = ALONE,
    level: ErrorRates = USUAL,
) -> float:
    """Power of that test with ``clusters`` in each condition.

    Raises:
        StatisticsError: no cluster, or proportions outside [0, 1].
    """
    n = _observations(clusters, clustering)
    spread = _spread(abs(effect), middle)
    # Without spread (0 against 1) any sample separates the two.
    return two_sided_power(abs(effect) * math.sqrt(n / spread) if spread else math.inf, level)


def detectable_two_proportions(
    clusters: float, middle: float = 0.5, clustering: Clustering = ALONE, level: ErrorRates = USUAL
) -> float:
    """The smallest difference that ``clusters`` in each condition detect with ``level.power``.

    NaN where even the greatest difference around ``middle`` is not detected.

    Raises:
        StatisticsError: no cluster.
    """

    def power(effect: float) -> float:
        return power_two_proportions(clusters, effect, middle, clustering, level)

    return _smallest(power, 2 * min(middle, 1 - middle), level.power)


def required_paired(
    effect: float, decisive: float = 1.0, clustering: Clustering = ALONE, level: ErrorRates = USUAL
) -> Demand:
    """Items for McNemar's test that one candidate wins more often than the other loses.

    Each ballot scores +1, 0 (a tie) or -1; ``effect`` is the mean score (wins minus losses),
    ``decisive`` the share of ballots without ties. With z_a, z_b for alpha and power,
    n = (z_a sqrt(d) + z_b sqrt(d - effect^2))^2 / effect^2 (Connor 1987), times the design effect
    for the ballots of one item.

    Args:
        effect: share of wins minus share of losses, in (0, decisive].
        decisive: d, share of ballots that are not tied.
        clustering: of the ballots of one item; the ICC is that of the scores.
        level: error rates.

    Raises:
        StatisticsError: an effect outside (0, decisive].
    """
    _positive(effect)
    _score_variance(effect, decisive)
    root = level.z_alpha * math.sqrt(decisive)
    root += level.z_power * math.sqrt(decisive - effect**2)
    return Demand.of(root**2 / effect**2, clustering)


def power_paired(
    items: float,
    effect: float,
    decisive: float = 1.0,
    clustering: Clustering = ALONE,
    level: ErrorRates = USUAL,
) -> float:
    """Power of that test with ``items`` items.

    Raises:
        StatisticsError: no item, or an effect beyond ``decisive``.
    """
    n, size = _observations(items, clustering), abs(effect)
    spread = _score_variance(size, decisive)
    if spread == 0:
        return 1.0 if size * math.sqrt(n) > level.z_alpha * math.sqrt(decisive) else 0.0
    # Under no effect the variance of a score is d, under the effect d - effect^2. The test rejects
    # where |mean| > z_a sqrt(d / n), in standard errors under the effect z_a sqrt(d / spread):
    # the surplus over z_a is subtracted from the shift (Connor 1987).
    surplus = level.z_alpha * (math.sqrt(decisive / spread) - 1)
    shift = size * math.sqrt(n / spread)
    return two_sided_power(shift - surplus if shift > surplus else 0.0, level)


def detectable_paired(
    items: float, decisive: float = 1.0, clustering: Clustering = ALONE, level: ErrorRates = USUAL
) -> float:
    """The smallest mean score that ``items`` items detect with ``level.power``, or NaN.

    Raises:
        StatisticsError: no item.
    """

    def power(effect: float) -> float:
        return power_paired(items, effect, decisive, clustering, level)

    return _smallest(power, decisive, level.power)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison of two conditions (``compare``) or of two candidates on the same items (``paired``).

    Attributes:
        effect: the difference to detect.
        middle: of the two proportions.
        decisive: share of ballots without ties, of the paired ones.
    """

    question: Literal["compare", "paired"]
    effect: float
    clustering: Clustering = ALONE
    level: ErrorRates = USUAL
    middle: float = 0.5
    decisive: float = 1.0

    def demand(self) -> Demand:
        """What it needs."""
        if self.question == "compare":
            return required_two_proportions(self.effect, self.middle, self.clustering, self.level)
        return required_paired(self.effect, self.decisive, self.clustering, self.level)

    def power(self, clusters: float) -> float:
        """Its power with ``clusters`` in each condition, or items."""
        if self.question == "compare":
            return power_two_proportions(
                clusters, self.effect, self.middle, self.clustering, self.level
            )
        return power_paired(clusters, self.effect, self.decisive, self.clustering, self.level)

    def detectable(self, clusters: float) -> float | None:
        """The smallest difference that so many detect; null where they detect none."""
        if self.question == "compare":
            least = detectable_two_proportions(clusters, self.middle, self.clustering, self.level)
        else:
            least = detectable_paired(clusters, self.decisive, self.clustering, self.level)
        return None if math.isnan(least) else least


def _positive(effect: float) -> None:
    if not effect > 0:
        raise StatisticsError(f"an effect to detect is positive, not {effect:g}")


def _score_variance(effect: float, decisive: float) -> float:
    if not 0 < decisive <= 1:
        raise StatisticsError(f"a share of decisive ballots lies in (0, 1], not {decisive:g}")
    if not 0 <= effect <= decisive:
        raise StatisticsError(
            f"a mean score of {effect:g} needs more than the {decisive:.0%} of ballots that decide"
        )
    return decisive - effect**2


def _observations(clusters: float, clustering: Clustering) -> float:
    """Independent observations that ``clusters`` are worth."""
    if not clusters > 0:
        raise StatisticsError(f"power needs more than {clusters} clusters")
    return clusters * clustering.size / clustering.design_effect


def _smallest(power: Callable[[float], float], most: float, target: float) -> float:
    """By bisection: power rises with the effect, and 60 halvings exhaust a float."""
    low, high = 0.0, most
    if power(high) < target:
        return math.nan
    for _ in range(60):
        middle = (low + high) / 2
        if power(middle) < target:
            low = middle
        else:
            high = middle
    return high
