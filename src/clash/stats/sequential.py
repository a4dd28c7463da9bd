"""Intervals for data that are looked at while they arrive.

Two ways. *Alpha spending*: a plan of looks, each of which may use part of alpha (Lan, DeMets
1983); narrower, but valid only for looks at the planned shares of the planned sample. *Always
valid*: a confidence sequence, whose intervals hold at every sample size at once, so that one may
look at any time and stop for any reason.

Both assume a normal mean, which fails for few and lopsided outcomes: thirteen wins in a row have
no spread at all, and a rule that waits for a narrow interval stops just there. Means of values in
[0, 1] are therefore smoothed as Agresti and Coull (1998) do for proportions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING, Literal

import numpy as np

from clash.errors import StatisticsError
from clash.stats.intervals import Interval, encode_clusters, normal_quantile, t_quantile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from clash.stats.typing import Floats


Spending = Literal["obrien-fleming", "pocock"]
_GRID = 801
"""Points of the integration grid: twice as many change critical values by 0.003 or less."""
_REACH = 8.0
"""Half the width of the grid in standard deviations of the score; beyond lies 1e-15."""
_FEWEST = 10
"""Clusters below which the central limit theorem is no guide and an interval is unbounded."""


def alpha_spent(share: float, alpha: float = 0.05, spending: Spending = "obrien-fleming") -> float:
    """Two-sided alpha used when ``share`` of the planned sample has been observed.

    Both functions rise from 0 to alpha (Lan, DeMets 1983). O'Brien and Fleming's:
    4 (1 - Phi(z_{alpha/4} / sqrt(share))), alpha / 2 on each side; almost nothing early, so that
    the last look is nearly that of a fixed sample. Pocock's: alpha log(1 + (e - 1) share), about
    as much at each of equally spaced looks, so that stopping early is likelier.

    Raises:
        StatisticsError: a share outside [0, 1].
    """
    if not 0 <= share <= 1:
        raise StatisticsError(f"a share of the planned sample lies in [0, 1], not {share}")
    if share == 0:
        return 0.0
    if spending == "pocock":
        return alpha * math.log(1 + (math.e - 1) * share)
    normal = NormalDist()
    return 4 * (1 - normal.cdf(normal.inv_cdf(1 - alpha / 4) / math.sqrt(share)))


def boundaries(
    shares: Sequence[float], alpha: float = 0.05, spending: Spending = "obrien-fleming"
) -> Floats:
    """(L,), critical |z| of each look, by numerical integration of the score process.

    The score S_k = sqrt(t_k) z_k has independent normal increments of variance t_k - t_{k-1}. The
    density of S_k on the paths that have not stopped is that of S_{k-1} inside its bounds,
    convolved with the increment; the bound is where its tails hold the alpha that look k may
    spend (Armitage, McPherson, Rowe 1969; Jennison, Turnbull 1999, chapter 19).

    Args:
        shares: of the planned sample at each look, rising, the last at most 1.
        alpha: two-sided error rate over all looks.
        spending: how it is spent.

    Raises:
        StatisticsError: shares that do not rise within (0, 1].
    """
    return np.array(_boundaries(tuple(float(share) for share in shares), alpha, spending))


@lru_cache(maxsize=64)
def _boundaries(shares: tuple[float, ...], alpha: float, spending: Spending) -> tuple[float, ...]:
    t = np.asarray(shares, dtype=float)
    if not len(t) or t[0] <= 0 or t[-1] > 1 + 1e-12 or np.any(np.diff(t) <= 0):
        raise StatisticsError("looks rise from above 0 to at most 1 of the planned sample")
    spending_curve = [0.0, *(alpha_spent(min(1.0, float(share)), alpha, spending) for share in t)]
    bounds: list[float] = []
    grid, density = np.zeros(1), np.ones(1)
    for look, share in enumerate(t):
        step = share - (t[look - 1] if look else 0.0)
        now, after = _advance(grid, density, float(step), math.sqrt(share))
        bound = _critical_score(now, after, spending_curve[look + 1] - spending_curve[look])
        bounds.append(bound / math.sqrt(share))
        inside = np.abs(now) <= bound
        grid, density = now[inside], after[inside]
    return tuple(bounds)


def _advance(grid: Floats, density: Floats, step: float, spread: float) -> tuple[Floats, Floats]:
    """Grid and density of the score after ``step`` more information, for paths still inside."""
    now = np.linspace(-_REACH * spread, _REACH * spread, _GRID)
    kernel = np.exp(-((now[:, None] - grid[None, :]) ** 2) / (2 * step))
    kernel /= math.sqrt(2 * math.pi * step)
    width = grid[1] - grid[0] if len(grid) > 1 else 1.0
    after: Floats = kernel @ density * width
    return now, after


def _critical_score(grid: Floats, density: Floats, mass: float) -> float:
    """The |score| beyond which ``mass`` lies, interpolated on the grid."""
    width = grid[1] - grid[0]
    upper = grid >= 0
    # Trapezoids: the ends of a cell count half.
    tail = np.cumsum((density[upper] * width)[::-1])[::-1] - density[upper] * width / 2
    return float(np.interp(-mass / 2, -tail, grid[upper]))


def always_valid(
    values: ArrayLike,
    clusters: ArrayLike | None = None,
    level: float = 0.95,
    *,
    n_planned: int = 100,
    share: bool = False,
) -> Interval:
    """A confidence sequence for a mean: valid at every n at once, asymptotically.

    With n clusters, spread s of their contributions and rho tuned to be narrowest at ``n_planned``
    clusters, the half-width is s sqrt(2 (n rho^2 + 1) / (n^2 rho^2) log(sqrt(n rho^2 + 1) / alpha))
    (Waudby-Smith, Arbour, Sinha, Kennedy, Ramdas 2024). Below 10 clusters it is unbounded: the
    guarantee is for large n.

    Args:
        values: (n_obs,).
        clusters: (n_obs,), codes; None makes every observation its own.
        level: of all intervals together.
        n_planned: where it should be narrowest; it may not depend on the data.
        share: the values lie in [0, 1], and so does the interval; it is smoothed.

    Raises:
        StatisticsError: NaN, shapes that differ, a plan that is not positive, or a share outside
            [0, 1].
    """
    normal_quantile(level)
    if n_planned < 1:
        raise StatisticsError(f"a plan needs at least one cluster, not {n_planned}")
    sample = _ClusterMeans.of(values, clusters, share=share)
    if sample.n < _FEWEST:
        return sample.endless(level, "always valid")
    reach = boundary(sample.n, 1 - level, n_planned) * math.sqrt(sample.n)
    return sample.interval(reach, level, "always valid")


@dataclass(frozen=True, slots=True)
class _ClusterMeans:
    """A mean over observations as a mean over clusters of what each contributes to it.

    Attributes:
        parts: (n,), contributions, whose mean is ``mean``.
        share: they are of values in [0, 1].
    """

    parts: Floats
    mean: float
    observations: int
    share: bool

    @classmethod
    def of(cls, values: ArrayLike, clusters: ArrayLike | None, *, share: bool) -> _ClusterMeans:
        x, codes, n = encode_clusters(values, clusters)
        if share and np.any((x < 0) | (x > 1)):
            raise StatisticsError("a share lies in [0, 1]")
        mean = float(x.mean()) if len(x) else math.nan
        spread = np.bincount(codes, weights=x - mean, minlength=n) * n / max(1, len(x))
        return cls(mean + spread, mean, len(x), share)

    @property
    def n(self) -> int:
        """Clusters."""
        return len(self.parts)

    def interval(self, reach: float, level: float, name: str) -> Interval:
        """``reach`` standard errors to both sides."""
        if self.share:
            return self._smooth_interval(reach, level, name)
        error = math.sqrt(float(np.sum((self.parts - self.mean) ** 2)) / (self.n - 1) / self.n)
        return self._clip(self.mean - reach * error, self.mean + reach * error, level, name)

    def _smooth_interval(self, reach: float, level: float, name: str) -> Interval:
        """As if reach^2 / 2 clusters more had been lost, and as many won.

        The centre is then that of Wilson's score interval (Agresti, Coull 1998, for reach = 1.96: two
        successes and two failures), and no sample has a spread of 0.
        """
        pseudo_count = reach * reach
        n = self.n + pseudo_count
        middle = (self.n * self.mean + pseudo_count / 2) / n
        squares = float(np.sum((self.parts - middle) ** 2))
        squares += pseudo_count / 2 * (middle**2 + (1 - middle) ** 2)
        half = reach * math.sqrt(squares / n / n)
        low, high = max(0.0, middle - half), min(1.0, middle + half)
        return self._clip(min(low, self.mean), max(high, self.mean), level, name)

    def endless(self, level: float, name: str) -> Interval:
        """Nothing is known yet."""
        low, high = (0.0, 1.0) if self.share else (-math.inf, math.inf)
        return self._clip(low, high, level, name)

    def _clip(self, low: float, high: float, level: float, name: str) -> Interval:
        return Interval(self.mean, low, high, level, self.observations, self.n, name)


def boundary(n: int, alpha: float, n_planned: int) -> float:
    """Half-width of the confidence sequence for a spread of 1."""
    # rho^2 that makes the boundary narrowest at `n_planned` clusters, to first order: with
    # L = -2 log(alpha), rho^2 = (L + log(L + 1)) / n (Waudby-Smith et al. 2024, equation 10).
    log = -2 * math.log(alpha)
    rho2 = (log + math.log(log + 1)) / n_planned
    part = n * rho2 + 1
    return math.sqrt(2 * part / (n * n * rho2) * math.log(math.sqrt(part) / alpha))


def group_sequential(
    values: ArrayLike,
    clusters: ArrayLike | None,
    look: int,
    shares: Sequence[float],
    level: float = 0.95,
    spending: Spending = "obrien-fleming",
    *,
    share: bool = False,
) -> Interval:
    """The interval of one of the planned looks, all of which hold together at ``level``.

    Args:
        values: (n_obs,), what has been seen so far.
        clusters: (n_obs,), codes.
        look: which look, from 0.
        shares: of the planned sample at all looks.
        level: of all looks together.
        spending: how alpha is spent.
        share: the values lie in [0, 1], and so does the interval; it is smoothed.

    Raises:
        StatisticsError: as :func:`boundaries`, no such look, or a share outside [0, 1].
    """
    if not 0 <= look < len(shares):
        raise StatisticsError(f"look {look + 1} of a plan of {len(shares)}")
    sample = _ClusterMeans.of(values, clusters, share=share)
    name = f"group sequential, {spending}"
    if sample.n < 2:
        return sample.endless(level, name)
    z = float(boundaries(shares[: look + 1], 1 - level, spending)[-1])
    # The boundary is of normal scores; few clusters take the same tail of Student's t.
    reach = t_quantile(1 - math.erfc(z / math.sqrt(2)), sample.n - 1)
    return sample.interval(reach, level, name)
