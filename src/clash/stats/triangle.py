"""How good judges are, from their agreement alone: the agreement triangle.

Where judges err independently given the truth, the covariance of two of them is the product of
their edges, so that three judges' three covariances give the three edges: e1^2 = c12 c13 / c23
(Spearman's tetrads; for classifiers Donmez, Lebanon and Balasubramanian 2010, and Parisi et al.
2014, lemma 1). From four judges on there are more covariances than edges, and whether they fit is
a test of independence.

The edge of a judge is the sum of its rates of being right on either side, less 1: 1 follows the
truth, 0 tosses a coin or always says the same, -1 inverts the truth. A judge that is equally good
on both sides is right on (1 + edge) / 2 of its votes.

What agreement cannot tell, and what is assumed instead: judges err independently (voices; the
test sees some of it), most of the panel is better than chance (edges all negative look the same),
and judges lean to neither side on average (a shared lean looks like a more common side).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import TYPE_CHECKING

import numpy as np

from clash.errors import StatisticsError
from clash.stats.intervals import LEVEL, Interval, t_quantile
from clash.stats.resample import cluster_bootstrap

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from clash.stats.typing import Bools, Codes, Floats

MOST_UNITS = 6
"""Voices of a triangle system; more are averaged into so many, which keeps their covariances few
beside the rows they are estimated from."""
FEWEST_CLUSTERS = 30
"""Clusters on which two judges must both decide for their covariance to be used."""
WIDEST = 1.0
"""An interval of an edge from here on says nothing: 50 points of accuracy."""
REPLICATES = 400
_PSEUDO = 4.0
"""Clusters' worth of variance added to each covariance, as Agresti and Coull add successes and
failures: judges that always agree would have none."""
_TWO_AT_ONCE = 5.991
"""Of chi-squared with two degrees of freedom, 95%."""
_SWEEPS, _TOLERANCE = 60, 1e-9


@dataclass(frozen=True, slots=True)
class Triangle:
    """Edges of judges from their agreement.

    Attributes:
        edges: shape (J,), NaN where the votes do not tell.
        low: shape (J,), the lower end of the interval of each edge; ``high`` the upper one.
        p_independent: of the covariances, if judges err independently; NaN with three voices,
            whose covariances always fit.
        accuracy: share of items that the majority of these judges gets right, a tied majority
            half, if they err independently; null where edges are not known.
        n_clusters: clusters of rows.
    """

    edges: Floats
    low: Floats
    high: Floats
    p_independent: float
    accuracy: Interval | None
    n_clusters: int

    @property
    def is_identified(self) -> Bools:
        """(J,), edges that the votes tell within 50 points of accuracy."""
        return np.asarray(~np.isnan(self.edges) & (self.high - self.low < WIDEST))


def agreement_triangle(
    spins: ArrayLike,
    voices: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    *,
    rng: np.random.Generator | None = None,
) -> Triangle:
    """Edges of judges from their covariances.

    The estimate of each judge is by minimum distance over its own system: itself, and the other
    voices, averaged into five at most. Its interval holds the edges at which the distance, other
    edges refitted, is not significantly larger (F in place of chi-squared for few clusters): it
    widens to everything where the others do not agree about anything, as a normal one would not.
    Covariances are over rows where both decide, their covariance matrix over clusters.

    Args:
        spins: shape (N, J): 1, -1, or 0 where a judge is missing or tied.
        voices: shape (J,), equal for judges that may share errors (a family); all differ where
            not given.
        clusters: shape (N,); each row its own where not given.
        rng: of the bootstrap behind the accuracy of the panel, which needs one.

    Returns:
        Edges that are NaN everywhere for fewer than three voices, and for a judge that never
        varies against any other.
    """
    x = np.asarray(spins, dtype=float)
    n, n_judges = x.shape
    voice = np.arange(n_judges) if voices is None else np.unique(voices, return_inverse=True)[1]
    group = np.arange(n) if clusters is None else np.unique(clusters, return_inverse=True)[1]
    n_clusters = int(group.max()) + 1 if n else 0
    edges, low, high = np.full((3, n_judges), np.nan)
    nothing = Triangle(edges, low, high, math.nan, None, n_clusters)
    if n_clusters < FEWEST_CLUSTERS or len(np.unique(voice)) < 3:
        return nothing
    apart = voice[:, None] != voice[None, :]
    every_row = np.ones((1, n))
    (rough,), (scale,) = _rough_edges(x, apart, every_row)
    if np.isnan(rough).all():
        return nothing
    reach: list[float] = []
    for judge in range(n_judges):
        system = _system(x, judge, rough, voice, group)
        if system is not None:
            profile = _profile(system)
            ends = np.clip(scale * profile[:, 0], -1, 1)
            edges[judge], low[judge], high[judge] = ends
            if n_judges == 3 and not reach:
                reach = _accuracy_ends(system, profile, scale)
    p_value = _independence(x, rough, voice, group)
    accuracy = None if rng is None else _panel_accuracy(x, group, apart, rng, reach)
    return Triangle(edges, low, high, p_value, accuracy, n_clusters)


def majority_accuracy(edges: ArrayLike) -> float:
    """Share of items that the majority of independent judges gets right, ties half; NaN for none.

    Condorcet's formula for judges of different accuracy (1 + edge) / 2: the law of the number of
    right votes by convolution (Grofman, Owen and Feld 1983). A judge of unknown edge (NaN) counts
    in no majority.
    """
    estimates = np.asarray(edges, dtype=float)
    estimates = estimates[~np.isnan(estimates)]
    if not len(estimates):
        return math.nan
    law = np.ones(1)
    for right in (1 + np.clip(estimates, -1, 1)) / 2:
        law = np.convolve(law, (1 - right, right))
    votes = np.arange(len(law))
    share = np.where(
        2 * votes > len(estimates), 1.0, np.where(2 * votes == len(estimates), 0.5, 0.0)
    )
    return float(law @ share)


@dataclass(frozen=True, slots=True)
class _System:
    """Covariances of a few voices, the first of them the judge asked about.

    Attributes:
        pairs: shape (M, 2), indices of voices.
        values: shape (M,), their covariances.
        precision: shape (M, M), the inverse of the covariances' own covariance.
        start: shape (U,), rough edges of the voices.
        n_clusters: clusters behind the least of the covariances.
        signs: shape (U,), -1 for a voice that was turned the right way round.
    """

    pairs: Codes
    values: Floats
    precision: Floats
    start: Floats
    n_clusters: int
    signs: Floats

    def distance(self, edges: Floats) -> float:
        """The squared distance of the covariances from the products of edges."""
        gap = self.values - edges[self.pairs[:, 0]] * edges[self.pairs[:, 1]]
        return float(gap @ self.precision @ gap)


def _system(x: Floats, judge: int, rough: Floats, voice: Codes, group: Codes) -> _System | None:
    """The judge beside five other voices at most; null without two others."""
    other_voices = [v for v in np.unique(voice) if v != voice[judge]]
    members = [np.flatnonzero(voice == v) for v in other_voices]
    members = [m[~np.isnan(rough[m]) & (rough[m] != 0)] for m in members]
    members = [m for m in members if len(m)]
    bundles = _bundles(members, rough, MOST_UNITS - 1)
    if len(bundles) < 2:
        return None
    units = np.column_stack(
        [_unit(x, np.array([judge]), None), *(_unit(x, bundle, rough) for bundle in bundles)]
    )
    system = _measure(units, group)
    signs = np.array([1.0, *(np.sign(rough[bundle[0]]) for bundle in bundles)])
    return None if system is None else replace(system, signs=signs)


def _bundles(members: list[Codes], rough: Floats, most: int) -> list[Codes]:
    """Voices dealt in the order of their strength, so that each bundle has strong and weak ones."""
    order = sorted(members, key=lambda m: -float(np.abs(rough[m]).mean()))
    if len(order) <= most:
        return order
    hands: list[list[Codes]] = [[] for _ in range(most)]
    for at, m in enumerate(order):
        turn, seat = divmod(at, most)
        hands[seat if turn % 2 == 0 else most - 1 - seat].append(m)
    return [np.concatenate(hand) for hand in hands]


def _unit(x: Floats, judges: Codes, rough: Floats | None) -> Floats:
    """(N,), the mean decision of some judges, each turned the right way; NaN where none decides."""
    columns = x[:, judges]
    n_decisive = (columns != 0).sum(axis=1)
    decisions = columns if rough is None else columns * np.sign(rough[judges])
    mean = np.full(len(x), np.nan)
    np.divide(decisions.sum(axis=1), n_decisive, out=mean, where=n_decisive > 0)
    return mean


def _measure(units: Floats, group: Codes) -> _System | None:
    """Covariances of the units, with the covariance matrix of these over clusters of rows.

    The matrix is that of independent judges with the rough edges, times one design effect by which
    clusters of rows show more variance. A matrix of fourth moments of the votes themselves is
    noisy, and largest where covariances are large by chance: edges would come out too large and too
    sure.
    """
    n_groups = int(group.max()) + 1
    is_known = ~np.isnan(units)
    pairs, values, influence, clusters, rows = [], [], [], [], []
    for u, v in combinations(range(units.shape[1]), 2):
        is_common = is_known[:, u] & is_known[:, v]
        n_both = len(np.unique(group[is_common]))
        if n_both < FEWEST_CLUSTERS:
            continue
        product = np.prod(
            [units[is_common, k] - units[is_common, k].mean() for k in (u, v)], axis=0
        )
        deviation = np.bincount(group[is_common], product - product.mean(), n_groups)
        pairs.append((u, v))
        values.append(float(product.mean()))
        influence.append(deviation / is_common.sum())
        clusters.append(n_both)
        rows.append(is_common)
    units_with_pairs = {unit for pair in pairs for unit in pair}
    if len(pairs) < units.shape[1] or len(units_with_pairs) < units.shape[1]:
        return None
    least = min(clusters)
    matrix, weight = _matrix(pairs, values, units.shape[1])
    rough = np.nan_to_num(_rank_one(matrix[None], weight[None])[0])
    rough *= -1 if rough[1:].sum() < 0 else 1
    rough = np.clip(rough, -1, 1)
    phi = np.array(influence)
    jackknife = phi @ phi.T * least / (least - 1)
    variance = _independent_variance(np.array(pairs), np.array(rows, float), units, rough)
    variance *= float(np.trace(np.linalg.pinv(variance, hermitian=True) @ jackknife)) / len(pairs)
    variance[np.diag_indices(len(pairs))] += _PSEUDO / np.array(clusters) ** 2
    return _System(
        np.array(pairs),
        np.array(values),
        np.asarray(np.linalg.pinv(variance, hermitian=True), np.float64),
        rough,
        least,
        np.ones(units.shape[1]),
    )


def _independent_variance(pairs: Codes, rows: Floats, units: Floats, edges: Floats) -> Floats:
    """(M, M), the covariances' own covariance matrix where units err independently.

    A unit is its edge times the truth, standardised, plus an error of its own; the truth's fourth
    moment is 1 + skew^2.

    Args:
        pairs: shape (M, 2).
        rows: shape (M, N), 1 where both units of a pair decide.
        units: shape (N, U).
        edges: shape (U,), rough.
    """
    means = np.nanmean(units, axis=0)
    bottom = float(edges @ edges)
    skew_square = 4 * (float(edges @ means) / bottom) ** 2 if bottom > 0 else 0.0
    error_variance = np.maximum(np.nanvar(units, axis=0) - edges**2, 0.0)
    # Cov(d_u d_v, d_w d_x) = E[d_u d_v d_w d_x] - c_uv c_wx: a term for each unit that they share.
    u, v = pairs.T
    common = (edges[u] * edges[v])[:, None] * (edges[u] * edges[v])[None] * skew_square
    for first, first_partner in ((u, v), (v, u)):
        for second, second_partner in ((u, v), (v, u)):
            is_shared = first[:, None] == second[None]
            common += (
                is_shared
                * error_variance[first][:, None]
                * edges[first_partner][:, None]
                * edges[second_partner][None]
            )
    common[np.diag_indices(len(u))] += error_variance[u] * error_variance[v]
    n_pair = rows.sum(axis=1)
    return np.asarray(common * (rows @ rows.T) / np.outer(n_pair, n_pair))


def _matrix(pairs: list[tuple[int, int]], values: list[float], size: int) -> tuple[Floats, Floats]:
    matrix, weight = np.zeros((2, size, size))
    for (u, v), value in zip(pairs, values, strict=True):
        matrix[u, v] = matrix[v, u] = value
        weight[u, v] = weight[v, u] = 1.0
    return matrix, weight


def _fit(system: _System, start: Floats, fixed_value: float | None) -> tuple[Floats, float]:
    """The nearest edges, the judge's own at ``fixed`` if given; the others are at least 0.

    Coordinate descent: given the others, the distance is quadratic in each edge.
    """
    edges = start.copy()
    first, second = system.pairs.T
    if fixed_value is not None:
        edges[0] = fixed_value
    free = range(1 if fixed_value is not None else 0, len(edges))
    incident = [np.flatnonzero((first == k) | (second == k)) for k in range(len(edges))]
    gap = system.values - edges[first] * edges[second]
    for _ in range(_SWEEPS):
        change = 0.0
        for k in free:
            rows = incident[k]
            slope = np.zeros(len(gap))
            slope[rows] = np.where(first[rows] == k, edges[second[rows]], edges[first[rows]])
            row = system.precision @ slope
            curvature = float(slope @ row)
            if curvature <= 0:
                continue
            lowest = -1.0 if k == 0 else 0.0
            value = min(1.0, max(lowest, edges[k] + float(row @ gap) / curvature))
            gap = gap - slope * (value - edges[k])
            change = max(change, abs(value - edges[k]))
            edges[k] = value
        if change < _TOLERANCE:
            break
    return edges, float(gap @ system.precision @ gap)


def _profile(system: _System) -> Floats:
    """(3, U), the nearest edges, and those refitted at either end of the judge's interval.

    The interval has the edges of the judge, in the first column, that are not significantly
    farther off.
    """
    best, least = _fit(system, system.start, None)
    bound = _bound(system, best, least)

    def end(side: float) -> Floats:
        inside, outside, edges = float(best[0]), side, best
        far, distance = _fit(system, edges, side)
        if distance <= bound:
            return far
        for _ in range(14):
            middle = (inside + outside) / 2
            trial, distance = _fit(system, edges, middle)
            if distance <= bound:
                inside, edges = middle, trial
            else:
                outside = middle
        return edges

    return np.array([best, end(-1.0), end(1.0)])


def _bound(system: _System, best: Floats, least: float) -> float:
    """The squared distance up to which edges are not significantly farther off than the nearest."""
    if len(system.start) == 3 and _fit(system, best, 0.0)[1] <= least + _TWO_AT_ONCE:
        # Two covariances of a coin-flipper are zero, and with only one left the ratio of the other
        # edges is free: it fits both of them, so that both are tested.
        return least + _TWO_AT_ONCE
    return least + t_quantile(LEVEL, max(1, system.n_clusters - 1)) ** 2


def _accuracy_ends(system: _System, profile: Floats, scale: float) -> list[float]:
    """The least and the greatest accuracy of three judges' majority that the covariances allow.

    A profile interval: over the edges, all three at once, that are not significantly farther off.
    The judges' own intervals move one edge and refit the others, which leaves the products of edges
    nearly where they are; the accuracy depends on these.
    """
    from scipy.optimize import NonlinearConstraint, minimize

    best = profile[0]
    bound = _bound(system, best, system.distance(best))
    is_near = NonlinearConstraint(lambda edges: np.array([system.distance(edges)]), -np.inf, bound)

    def accuracy(edges: Floats) -> float:
        return majority_accuracy(scale * system.signs * edges)

    ends = [accuracy(edges) for edges in profile[1:]]
    # From edges that are all equal too: near a bound of 1 the nearest end is not the farthest.
    equal = np.full(3, math.sqrt(max(float(system.values.mean()), 0.0)))
    for objective, start in product((accuracy, lambda edges: -accuracy(edges)), (best, equal)):
        end = minimize(
            objective,
            start,
            method="SLSQP",
            bounds=[(-1.0, 1.0), (0.0, 1.0), (0.0, 1.0)],
            constraints=[is_near],
        ).x
        if system.distance(end) <= bound + 1e-6:
            ends.append(accuracy(end))
    return [min(ends), max(ends)]


def _independence(x: Floats, rough: Floats, voice: Codes, group: Codes) -> float:
    """The p-value of the covariances' fit, over all voices; NaN where they always fit."""
    from scipy.stats import chi2

    members = [np.flatnonzero((voice == v) & ~np.isnan(rough)) for v in np.unique(voice)]
    bundles = _bundles([m for m in members if len(m)], rough, MOST_UNITS)
    units = np.column_stack([_unit(x, bundle, rough) for bundle in bundles])
    system = _measure(units, group)
    if system is None or len(system.values) <= units.shape[1]:
        return math.nan
    _, least = _fit(system, system.start, None)
    return float(chi2.sf(least, len(system.values) - units.shape[1]))


def _covariances(x: Floats, weights: Floats) -> tuple[Floats, Floats, Floats]:
    """By replicate: (B, J, J) covariances where both decide, (B, J, J) rows, and (B, J) means.

    Args:
        x: shape (N, J).
        weights: shape (B, N), of the rows.
    """
    is_decisive = (x != 0).astype(float)
    parts = [_moments(x, is_decisive, w) for w in weights]
    products, totals, together = (np.array(part) for part in zip(*parts, strict=True))
    count = np.maximum(together, 1e-12)
    covariances = products / count - (totals / count) * (totals / count).transpose(0, 2, 1)
    diagonal = np.arange(x.shape[1])
    return covariances, together, (totals / count)[:, diagonal, diagonal]


def _moments(x: Floats, is_decisive: Floats, weights: Floats) -> tuple[Floats, Floats, Floats]:
    scores = x * weights[:, None]
    return scores.T @ x, scores.T @ is_decisive, (is_decisive * weights[:, None]).T @ is_decisive


def _rank_one(matrices: Floats, weights: Floats) -> Floats:
    """(B, J), the a that minimise sum over pairs of weight (matrix - a_i a_j)^2; NaN without pairs.

    Alternating least squares from the leading eigenvectors; turned so that their sum is positive.

    Args:
        matrices: shape (B, J, J).
        weights: shape (B, J, J), 0 where a pair is not to be used.
    """
    w = weights * (1 - np.eye(matrices.shape[1]))
    values, vectors = np.linalg.eigh(np.where(w > 0, matrices, 0.0))
    a = vectors[:, :, -1] * np.sqrt(np.maximum(values[:, -1:], 1e-6))
    for _ in range(_SWEEPS):
        before = a.copy()
        for i in range(a.shape[1]):
            bottom = (w[:, i] * a**2).sum(axis=1)
            top = (w[:, i] * matrices[:, i] * a).sum(axis=1)
            a[:, i] = np.clip(np.divide(top, bottom, out=a[:, i].copy(), where=bottom > 0), -1, 1)
        if np.max(np.abs(a - before)) < _TOLERANCE:
            break
    a *= np.where(a.sum(axis=1) < 0, -1.0, 1.0)[:, None]
    return np.where(w.sum(axis=2) > 0, a, np.nan)


def _balance(loadings: Floats, means: Floats) -> Floats:
    """What turns loadings into edges: 1 / (2 sqrt(pi (1 - pi))), pi the share of one side; (B,).

    A judge without a lean of its own has mean (2 pi - 1) e and loading 2 sqrt(pi (1 - pi)) e, so
    that their ratio tells pi; leans are taken to cancel over judges.
    """
    bottom = np.nansum(loadings**2, axis=1)
    top = np.nansum(loadings * means, axis=1)
    ratio = np.divide(top, bottom, out=np.zeros(len(bottom)), where=bottom > 0)
    return np.asarray(np.sqrt(1 + ratio**2))


def _rough_edges(x: Floats, apart: Bools, weights: Floats) -> tuple[Floats, Floats]:
    """By replicate: loadings (B, J) of all judges at once, and what turns them into edges (B,)."""
    covariances, together, means = _covariances(x, weights)
    loadings = _rank_one(covariances, np.where(apart, together, 0.0))
    return loadings, _balance(loadings, means)


def _panel_accuracy(
    x: Floats, group: Codes, apart: Bools, rng: np.random.Generator, reach: list[float]
) -> Interval | None:
    """The accuracy of the majority, its interval by a bootstrap over clusters.

    Widened to ``reach``, the accuracies that the covariances of three judges allow: with a
    coin-flipper among them only a product of edges is known, and where a covariance is too large by
    chance an edge ends at its bound of 1, of which no bootstrap shows how unsure it is.
    """

    def statistic(weights: Floats) -> Floats:
        loadings, scale = _rough_edges(x, apart, weights)
        edges = np.clip(loadings * scale[:, None], -1, 1)
        return np.array([majority_accuracy(row) for row in edges])

    try:
        interval = cluster_bootstrap(statistic, group, rng, REPLICATES, method="bca").interval()
    except StatisticsError:
        return None
    low, high = (pick([end, *reach]) for pick, end in ((min, interval.low), (max, interval.high)))
    return replace(interval, low=low, high=high)
