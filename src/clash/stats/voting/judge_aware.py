"""Bradley-Terry strengths seen by several judges: their reliability, their ties, and style.

Model. Judge j compares candidate f, named first, with s. With strengths theta, the judge's
reliability a_j, style x (differences, f less s) and its coefficients beta, and a tie parameter nu_j,

    eta = a_j (theta_f - theta_s) + x' beta                                                   (1)
    P(f wins) = e^(eta / 2) / D,   P(s wins) = e^(-eta / 2) / D,   P(tie) = nu_j / D,         (2)
    D = e^(eta / 2) + e^(-eta / 2) + nu_j

(Bradley, Terry 1952; Davidson 1970; a judge's discrimination as in the two-parameter model of item
response theory, Birnbaum 1968; style as a covariate, Li et al. 2024). The mean of a_j over the
judges is 1, so that strengths are on the scale of the average judge: 0 is a judge that tosses a
coin, below 0 one that prefers the weaker. Position is such an x, 1 where f was shown first and -1
where s was; with both orders its effect and the strengths are estimated from different contrasts.

Prior, which is worth little where there are data and keeps all finite where outcomes are separated
(Firth-like, as in :mod:`clash.stats.voting.bradley_terry`): ``prior`` games of each candidate against
a phantom of strength 0, half of them won; ``prior`` games of each judge between equals, a third of
them tied; normal priors of variance ``RELIABILITY_SCALE``^2 on each a_j - 1 and ``STYLE_SCALE``^2
on each beta. With one judge and without style it is the fit of ``bradley_terry``.

The log posterior is concave in (theta, beta, log nu) and in (a, beta, log nu), not jointly. Fisher
scoring from a = 1 finds a maximum, whose gradient is checked.

Errors. With H the observed information at the maximum and s_g the sum of the scores of a cluster
(item, prompt), the covariance is the sandwich H^-1 M H^-1, M = G / (G - 1) sum_g s_g s_g' (Huber
1967; Liang, Zeger 1986): pairs of one ranking, and judges of one item, may depend on each other in
any way. If nothing varies, M is nearly 0, so the scores of two average twins, clusters with random
outcomes, are added to M, like the twins of :mod:`clash.stats.voting.bootstrap`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from clash.errors import StatisticsError
from clash.stats.intervals import Interval, t_quantile
from clash.stats.logistic import sigmoid
from clash.stats.optimise import minimise

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike, NDArray

    from clash.stats.typing import Codes, Floats, Index

    Parts = tuple[Floats, Floats, Floats, Floats]

Table = Any
"""A matrix of numpy or a sparse one of scipy, which has no types."""
STYLE_SCALE = 2.0
"""Standard deviation of the prior of a coefficient: odds of 7 to 1 for a unit of style."""
RELIABILITY_SCALE = 2.0
"""The same of a reliability. A prior of 1 draws the best of four judges from 1.7 to 1.6, and its
interval then covers 91%."""
TWINS = 2.0
"""Clusters with random outcomes that errors count in addition; see ``bootstrap.DOUBT``."""
LONGEST_STEP = 2.0
_CELLS = 1 << 21
"""Tables of more cells are sparse: few comparisons are sooner multiplied than looked up."""
_BLOCK = 1 << 17
"""Comparisons whose derivatives are in memory at a time."""


@dataclass(frozen=True, slots=True)
class JudgedPairs:
    """n comparisons by judges; make them by :func:`judged_pairs`.

    Attributes:
        first, second: (n,), candidates 0..K-1.
        points: (n,), of the first: 1, 0.5 (a tie) or 0.
        judge: (n,), 0..J-1.
        cluster: (n,), 0..G-1.
        style: (n, q), of the first less that of the second.
        weights: (n,), positive.
    """

    first: Codes
    second: Codes
    points: Floats
    judge: Codes
    cluster: Codes
    style: Floats
    weights: Floats
    n_candidates: int
    n_judges: int

    @property
    def n_clusters(self) -> int:
        """G."""
        return int(self.cluster.max(initial=-1)) + 1

    def part(self, rows: slice) -> JudgedPairs:
        """Some of the comparisons, of the same candidates, judges and clusters."""
        columns = ("first", "second", "points", "judge", "cluster", "style", "weights")
        return replace(self, **{name: getattr(self, name)[rows] for name in columns})


@dataclass(frozen=True, slots=True)
class JudgeAware:
    """A fit.

    Attributes:
        theta: (K,), log strengths on the scale of the average judge, mean 0.
        reliability: (J,), mean 1.
        tie: (J,), each judge's tie parameter; 0 where no judge ties.
        style: (q,), coefficients: log-odds for a unit of style.
        covariance: of (theta, style, reliability), clustered, (K + q + J, K + q + J).
        n: comparisons; ``n_clusters`` what they are clustered by.
        gradient: largest entry of the gradient of the log posterior at the end.
    """

    theta: Floats
    reliability: Floats
    tie: Floats
    style: Floats
    covariance: Floats
    n: int
    n_clusters: int
    converged: bool
    n_iter: int
    gradient: float

    def contrast(self, weights: Floats, level: float = 0.95) -> Interval:
        """A linear combination of (theta, style, reliability), with a t interval of G - 1 degrees.

        Unbounded where there is one cluster.
        """
        values = np.concatenate([self.theta, self.style, self.reliability])
        estimate, variance = float(weights @ values), float(weights @ self.covariance @ weights)
        reach = np.inf
        if self.n_clusters > 1:
            reach = t_quantile(level, self.n_clusters - 1) * np.sqrt(max(0.0, variance))
        return Interval(
            estimate,
            estimate - reach,
            estimate + reach,
            level,
            self.n,
            self.n_clusters,
            "clustered sandwich",
        )

    def strengths(self, level: float = 0.95) -> list[Interval]:
        """Of theta against the mean, one for each candidate."""
        return self._intervals(range(len(self.theta)), level)

    def style_effects(self, level: float = 0.95) -> list[Interval]:
        """Of each coefficient of style."""
        k, q = len(self.theta), len(self.style)
        return self._intervals(range(k, k + q), level)

    def reliabilities(self, level: float = 0.95) -> list[Interval]:
        """Of each judge's reliability."""
        at = len(self.theta) + len(self.style)
        return self._intervals(range(at, at + len(self.reliability)), level)

    def _intervals(self, columns: range, level: float) -> list[Interval]:
        identity = np.eye(len(self.covariance))
        return [self.contrast(identity[column], level) for column in columns]


def judged_pairs(
    first: ArrayLike,
    second: ArrayLike,
    points: ArrayLike,
    judge: ArrayLike,
    cluster: ArrayLike,
    *,
    n_candidates: int,
    style: ArrayLike | None = None,
    weights: ArrayLike | None = None,
) -> JudgedPairs:
    """Check comparisons, and code judges and clusters from 0.

    Args:
        first: (n,), codes of candidates.
        second: (n,), the other.
        points: (n,), 1 where the first won, 0 where the second did, 0.5 a tie.
        judge: (n,), codes 0..J-1; every code has a comparison.
        cluster: (n,), any codes.
        n_candidates: K.
        style: (n, q), the first's less the second's, finite; none where not given.
        weights: (n,), positive; 1 each where not given.

    Raises:
        StatisticsError: no comparison, shapes that differ, a candidate against itself, another
            outcome, or style that is not finite.
    """
    i, j, judges = (np.asarray(part, dtype=np.intp) for part in (first, second, judge))
    y, n = np.asarray(points, dtype=float), len(np.asarray(points))
    x = np.zeros((n, 0)) if style is None else np.asarray(style, dtype=float)
    w = np.ones(n) if weights is None else np.asarray(weights, dtype=float)
    groups = _dense_codes(np.asarray(cluster))
    if not n:
        raise StatisticsError("no comparison of two candidates")
    if not i.shape == j.shape == judges.shape == groups.shape == w.shape == y.shape == x.shape[:1]:
        raise StatisticsError("first, second, points, judge, cluster and style are of one length")
    if np.any(i == j) or not np.all((y == 1) | (y == 0.5) | (y == 0)):
        raise StatisticsError("two different candidates, and an outcome of 1, 0.5 or 0")
    if min(i.min(), j.min()) < 0 or max(i.max(), j.max()) >= n_candidates or n_candidates < 2:
        raise StatisticsError(
            f"candidate indices lie in 0..{n_candidates - 1}, and are two or more"
        )
    if not np.isfinite(x).all() or not np.all(w > 0):
        raise StatisticsError("style is finite and weights are positive")
    return JudgedPairs(i, j, y, judges, groups, x, w, n_candidates, int(judges.max()) + 1)


def _dense_codes(codes: NDArray[Any]) -> Index:
    """Codes as 0, 1, … in their order; those that are already are not sorted."""
    is_index = codes.dtype == np.intp and codes.min(initial=0) >= 0
    if is_index and codes.max(initial=0) < len(codes) and np.bincount(codes).all():
        return codes
    return np.unique(codes, return_inverse=True)[1].astype(np.intp)


def judge_aware(pairs: JudgedPairs, *, reliability: bool = True, prior: float = 0.5) -> JudgeAware:
    """Fit strengths, reliabilities, ties and style to judged comparisons.

    Args:
        pairs: see :func:`judged_pairs`.
        reliability: a reliability for each judge; else all are 1.
        prior: games of the prior for each candidate and judge, > 0.

    Raises:
        StatisticsError: the prior is not positive.
    """
    if not prior > 0:
        raise StatisticsError(f"a prior is a positive number of games, not {prior}")
    problem = _Posterior(pairs, prior, reliability=reliability and pairs.n_judges > 1)
    minimum = minimise(
        problem,
        problem.start,
        gradient_tol=1e-8 * max(1.0, float(pairs.weights.sum())),
        max_iter=200,
        longest_step=LONGEST_STEP,
    )
    theta, style, ties, reliabilities = problem.parts(minimum.x)
    return JudgeAware(
        theta=theta - theta.mean(),
        reliability=reliabilities,
        tie=np.exp(ties) if problem.has_ties else np.zeros(pairs.n_judges),
        style=style,
        covariance=problem.covariance(minimum.x),
        n=len(pairs.points),
        n_clusters=pairs.n_clusters,
        converged=bool(minimum.converged),
        n_iter=int(minimum.n_iter),
        gradient=float(minimum.gradient_norm),
    )


@dataclass(frozen=True, slots=True)
class _Moments:
    """Of each comparison under the model: what derivatives of (2) by eta and log nu are made of.

    With u the first's points less 1/2 and t whether they tied, log P = u eta + t log nu - log D,
    so the derivatives of log D are the means of u and t, and the second ones their covariance.
    """

    gap: Floats
    scale: Floats
    u: Floats
    t: Floats
    var_u: Floats
    cov: Floats
    var_t: Floats


class _Comparisons:
    """Some of the comparisons: what they add to the likelihood, its derivatives and its scores.

    Args:
        pairs: the comparisons.
        has_ties: whether any comparison of the fit is a tie.
    """

    def __init__(self, pairs: JudgedPairs, *, has_ties: bool) -> None:
        self.pairs, self.has_ties = pairs, has_ties
        self.k, self.q = pairs.n_candidates, pairs.style.shape[1]
        self.at_tie, self.at_judge = self.k + self.q, self.k + self.q + pairs.n_judges
        self.size = self.at_judge + pairs.n_judges

    @cached_property
    def _tables(self) -> tuple[Table, Table, Table, Table]:
        """What eta and log nu are linear in, (n, size) each: theta, beta, log nu, a."""
        pairs = self.pairs
        row, units = np.arange(len(pairs.points)), np.ones(len(pairs.points))
        columns_of_style = [
            (row, np.full(len(row), self.k + c), pairs.style[:, c]) for c in range(self.q)
        ]
        return (
            self._table((row, pairs.first, units), (row, pairs.second, -units)),
            self._table(*columns_of_style),
            self._table((row, self.at_tie + pairs.judge, units)),
            self._table((row, self.at_judge + pairs.judge, units)),
        )

    def _table(self, *cells: tuple[Index, Index, Floats]) -> Table:
        """An (n, size) matrix of (rows, columns, values): sparse where it would be large."""
        shape = (len(self.pairs.points), self.size)
        if np.prod(shape) <= _CELLS:
            table = np.zeros(shape)
            for row, column, value in cells:
                table[row, column] = value
            return table
        from scipy.sparse import csr_array

        if not cells:
            return csr_array(shape)
        row, column, value = (np.concatenate(part) for part in zip(*cells, strict=True))
        return csr_array((value, (row, column)), shape=shape)

    def _eta(self, parts: Parts) -> tuple[Floats, Floats, Floats, Floats]:
        theta, style, ties, judges = parts
        pairs = self.pairs
        gap, scale = theta[pairs.first] - theta[pairs.second], judges[pairs.judge]
        log_tie = ties[pairs.judge] if self.has_ties else np.full(len(gap), -np.inf)
        return gap, scale, scale * gap + pairs.style @ style, log_tie

    def log_likelihood(self, parts: Parts) -> np.float64:
        """Their weighted log-likelihood."""
        pairs = self.pairs
        _, _, eta, log_tie = self._eta(parts)
        log_d = np.logaddexp(np.logaddexp(eta / 2, -eta / 2), log_tie)
        log_likelihood = (pairs.points - 0.5) * eta - log_d
        if self.has_ties:
            log_likelihood += (pairs.points == 0.5) * log_tie
        return np.float64(pairs.weights @ log_likelihood)

    def moments(self, parts: Parts) -> _Moments:
        """Of each comparison, under the model."""
        gap, scale, eta, log_tie = self._eta(parts)
        log_d = np.logaddexp(np.logaddexp(eta / 2, -eta / 2), log_tie)
        win, lose, tie = (np.exp(part - log_d) for part in (eta / 2, -eta / 2, log_tie))
        u = (win - lose) / 2
        return _Moments(gap, scale, u, tie, (win + lose) / 4 - u**2, -tie * u, tie * (1 - tie))

    def _slopes(self, moments: _Moments) -> Table:
        """D eta / d (theta, beta, log nu, a), (n, size)."""
        contrast, style, _, by_judge = self._tables
        return _times(contrast, moments.scale) + style + _times(by_judge, moments.gap)

    def _residuals(self, moments: _Moments, points: Floats) -> tuple[Floats, Floats]:
        """Weighted derivatives of log P by eta and log nu, (n,) each."""
        w = self.pairs.weights
        return w * (points - 0.5 - moments.u), w * ((points == 0.5) - moments.t)

    def gradient(self, moments: _Moments) -> Floats:
        """Of the log-likelihood by (theta, beta, log nu, a), (size,)."""
        by_eta, by_tie = self._residuals(moments, self.pairs.points)
        total = self._slopes(moments).T @ by_eta
        if self.has_ties:
            total = total + self._tables[2].T @ by_tie
        return np.asarray(total)

    def add_scores(self, totals: Floats, moments: _Moments, points: Floats) -> None:
        """Add the same, were these the outcomes, to the sums of the clusters, (G, size)."""
        by_eta, by_tie = self._residuals(moments, points)
        rows, cluster = _times(self._slopes(moments), by_eta), self.pairs.cluster
        if self.has_ties:
            rows = rows + _times(self._tables[2], by_tie)
        if isinstance(rows, np.ndarray):
            np.add.at(totals, cluster, rows)
        else:
            cells = rows.tocoo()
            np.add.at(totals, (cluster[cells.row], cells.col), cells.data)

    def information(self, moments: _Moments) -> Floats:
        """Expected information by (theta, beta, log nu, a), (size, size)."""
        w, eta, tie = self.pairs.weights, self._slopes(moments), self._tables[2]
        total = _dense(eta.T @ _times(eta, w * moments.var_u))
        if self.has_ties:
            cross = _dense(eta.T @ _times(tie, w * moments.cov))
            total = total + cross + cross.T + _dense(tie.T @ _times(tie, w * moments.var_t))
        return total

    def bend(self, moments: _Moments) -> Floats:
        """What the observed information has beyond the expected: eta is bilinear in theta and a."""
        pairs, bend = self.pairs, np.zeros((self.size, self.size))
        residual = pairs.weights * (pairs.points - 0.5 - moments.u)
        np.add.at(bend, (pairs.first, self.at_judge + pairs.judge), -residual)
        np.add.at(bend, (pairs.second, self.at_judge + pairs.judge), residual)
        return bend + bend.T


class _Posterior:
    """The negative log posterior in free parameters, a linear map of (theta, beta, log nu, a).

    Comparisons are gone through in blocks: what is computed of each takes a hundred times the
    memory of the comparison.
    """

    def __init__(self, pairs: JudgedPairs, prior: float, *, reliability: bool) -> None:
        self.pairs, self.prior = pairs, prior
        self.k, self.q, self.j = pairs.n_candidates, pairs.style.shape[1], pairs.n_judges
        self.has_ties = bool(np.any(pairs.points == 0.5))
        self.size = self.k + self.q + 2 * self.j
        self.at_tie, self.at_judge = self.k + self.q, self.k + self.q + self.j
        columns = [np.eye(self.size)[:, : self.k + self.q]]
        if self.has_ties:
            columns.append(np.eye(self.size)[:, self.at_tie : self.at_judge])
        if reliability:
            # An orthonormal basis of the deviations that sum to 0.
            basis = np.linalg.svd(np.ones((1, self.j)))[2][1:].T
            columns.append(np.vstack([np.zeros((self.at_judge, self.j - 1)), basis]))
        self.map = np.hstack(columns)
        self.base = np.concatenate([np.zeros(self.at_judge), np.ones(self.j)])
        self.start = np.zeros(self.map.shape[1])
        self._block = lru_cache(1)(self._nth_block)

    def _nth_block(self, number: int) -> _Comparisons:
        rows = slice(number * _BLOCK, (number + 1) * _BLOCK)
        return _Comparisons(self.pairs.part(rows), has_ties=self.has_ties)

    def _blocks(self) -> Iterator[_Comparisons]:
        """The comparisons, some at a time; where there is one block, it keeps its tables."""
        return map(self._block, range(-(-len(self.pairs.points) // _BLOCK)))

    def parts(self, x: Floats) -> Parts:
        """(theta, beta, log nu, a) of free parameters."""
        full = self.base + self.map @ x
        theta, style, ties, judges = np.split(full, [self.k, self.at_tie, self.at_judge])
        return theta, style, ties, judges

    def value(self, x: Floats) -> np.float64:
        """Minus the log posterior."""
        parts = theta, style, ties, judges = self.parts(x)
        loss = -sum(block.log_likelihood(parts) for block in self._blocks())
        loss += self.prior * np.sum(np.logaddexp(0, theta) - theta / 2)
        loss += np.sum(((judges - 1) / RELIABILITY_SCALE) ** 2) / 2
        loss += np.sum((style / STYLE_SCALE) ** 2) / 2
        if self.has_ties:
            loss += self.prior * np.sum(np.logaddexp(np.log(2), ties) - ties / 3)
        return np.float64(loss)

    def derivatives(self, x: Floats) -> tuple[Floats, Floats]:
        """Gradient and expected information, which is positive definite where the observed is not."""
        gradient, curvature = self._prior_terms(x)
        slope, information = np.zeros(self.size), np.zeros((self.size, self.size))
        for block in self._blocks():
            moments = block.moments(self.parts(x))
            slope += block.gradient(moments)
            information += block.information(moments)
        information += np.diag(curvature)
        return self.map.T @ (gradient - slope), self.map.T @ information @ self.map

    def _prior_terms(self, x: Floats) -> tuple[Floats, Floats]:
        """Gradient and curvature of the prior by (theta, beta, log nu, a)."""
        theta, style, ties, judges = self.parts(x)
        phantom, share = sigmoid(theta), np.exp(ties) / (2 + np.exp(ties))
        rate = self.prior if self.has_ties else 0.0
        precision, judge_precision = STYLE_SCALE**-2, RELIABILITY_SCALE**-2
        gradient = [
            self.prior * (phantom - 0.5), precision * style, rate * (share - 1 / 3),
            judge_precision * (judges - 1),
        ]  # fmt: skip
        curvature = [
            self.prior * phantom * (1 - phantom),
            np.full(self.q, precision),
            rate * share * (1 - share),
            np.full(self.j, judge_precision),
        ]
        return np.concatenate(gradient), np.concatenate(curvature)

    def covariance(self, x: Floats) -> Floats:
        """The sandwich of (theta less its mean, beta, a)."""
        _, curvature = self._prior_terms(x)
        information, bend = np.zeros((self.size, self.size)), np.zeros((self.size, self.size))
        for block in self._blocks():
            moments = block.moments(self.parts(x))
            information += block.information(moments)
            bend += block.bend(moments)
        information += np.diag(curvature)
        curvature_at_end = self.map.T @ (information + bend) @ self.map
        if np.linalg.eigvalsh(curvature_at_end)[0] <= 0:
            curvature_at_end = self.map.T @ information @ self.map
        bread = self.map @ np.linalg.solve(curvature_at_end, self.map.T)
        columns = np.r_[0 : self.at_tie, self.at_judge : self.size]
        spread = bread[columns] @ self._meat(x) @ bread[:, columns]
        centre = np.eye(len(columns))
        centre[: self.k, : self.k] -= 1 / self.k
        covariance: Floats = centre @ spread @ centre.T
        return covariance

    def _meat(self, x: Floats) -> Floats:
        """The variance of the sum of scores, twins counted in, (size, size)."""
        g = self.pairs.n_clusters
        scores = self._cluster_scores(x)
        scores -= scores.mean(axis=0)
        spread, total = scores.T @ scores, g / max(1, g - 1) * scores.T @ scores
        del scores  # the next ones are as many
        mirror_scores = self._cluster_scores(x, mirror=True)
        twins = (spread + mirror_scores.T @ mirror_scores) / (2 * g)
        meat: Floats = total + TWINS * twins
        return meat

    def _cluster_scores(self, x: Floats, *, mirror: bool = False) -> Floats:
        """Sums of scores within clusters, (G, size); ``mirror``: had the other candidate won."""
        totals = np.zeros((self.pairs.n_clusters, self.size))
        for block in self._blocks():
            points = block.pairs.points
            block.add_scores(totals, block.moments(self.parts(x)), 1 - points if mirror else points)
        return totals


def _times(table: Table, row_factors: Floats) -> Table:
    """A table, dense or sparse, with each row multiplied."""
    if isinstance(table, np.ndarray):
        return table * row_factors[:, None]
    return table.multiply(row_factors[:, None]).tocsr()


def _dense(table: Table) -> Floats:
    dense: Floats = np.asarray(table if isinstance(table, np.ndarray) else table.toarray())
    return dense
