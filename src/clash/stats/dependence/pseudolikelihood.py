"""Couplings of more judges than can be enumerated: pseudo-likelihood, with sandwich errors.

Each vote is predicted from the other votes on the item and the truth, by logistic regressions that
share their couplings (one W[j, k] serves judge j and judge k). That needs no normaliser, so that any
number of judges will do; but the regressions of one item are not independent of each other, so that
errors are those of estimating equations: with scores u_c summed over clusters and the Hessian H,
the covariance is H^-1 (sum_c u_c u_c') H^-1.

In spins, with l_j = h_yj + sum_k W_yjk s_k, the loss of a vote is log(e^l + e^-l) - s l, its slope in
l is tanh(l) - s, and its curvature 1 - tanh(l)^2: convex, so that Newton's steps find the only
minimum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clash.errors import StatisticsError
from clash.stats.dependence.restricted_ising import (
    PRECISION_OF_COUPLINGS,
    PRECISION_OF_RATES,
    Restriction,
)
from clash.stats.dependence.score_tests import RestrictedScores, ScoreTest, cluster_sums, joint_test
from clash.stats.latent.ising import CLASSES
from clash.stats.latent.ising_states import pairs
from clash.stats.logistic import logit
from clash.stats.optimise import minimise

if TYPE_CHECKING:
    from scipy.sparse import csc_array

    from clash.stats.dependence.hypotheses import CouplingHypothesis
    from clash.stats.latent.patterns import Patterns
    from clash.stats.typing import Floats, Index

MOST_JUDGES = 48
"""Judges up to which every pair gets a coupling: Newton steps cost as their sixth power."""
MOST_MISSING = 0.2
"""Share of missing votes beyond which the regressions would be of something else."""
TYPICAL = 0.42
"""Class effect to start from: 70% right."""
DECREMENT_PER_ITEM = 1e-12
"""Newton decrement per item at which the fit is exact to rounding."""
NEWTON_STEPS = 40
"""Steps allowed; some 4 to 8 are taken."""
CONVERGED_DECREMENT = 1e-4
"""Newton decrement, in log-likelihood, below which parameters are within a hundredth of a standard
error of the maximum: the decrement is the squared distance in standard errors."""


@dataclass(frozen=True)
class PseudoLikelihood:
    """Minus the penalised log pseudo-likelihood in the full parameters of ``restricted``.

    Attributes:
        spins: votes as +1 and -1, 0 where missing, shape (n_patterns, K).
        present: 1 where there is a vote, shape (n_patterns, K).
        weights: items of each pattern in class 0 and class 1, shape (2, n_patterns).
        free: from free to full parameters, sparse.
        precision: of the prior on the free parameters.
    """

    spins: Floats
    present: Floats
    weights: Floats
    free: csc_array
    precision: Floats

    @classmethod
    def of(cls, patterns: Patterns, p: Floats, restriction: Restriction) -> PseudoLikelihood:
        """The pseudo-likelihood of votes given P(truth = 1).

        A vote that is missing is left out as a target and read as 0 among the others: next to
        nothing where gaps are few, an attenuation of the couplings where they are many.

        Args:
            patterns: the votes without ties.
            p: shape (n_patterns,).
            restriction: what is free.

        Raises:
            StatisticsError: more judges than :data:`MOST_JUDGES`, or more gaps than
                :data:`MOST_MISSING`.
        """
        from scipy.sparse import csc_array

        k = patterns.n_judges
        if k > MOST_JUDGES:
            raise StatisticsError(
                f"{k} judges have {k * (k - 1) // 2} pairs: couplings are fitted for up to "
                f"{MOST_JUDGES}; choose with --judges"
            )
        missing = patterns.missing_share
        if missing > MOST_MISSING:
            raise StatisticsError(
                f"{missing:.0%} of the votes are missing: a vote cannot be predicted from "
                "missing votes"
            )
        full = np.full(len(restriction.free), PRECISION_OF_COUPLINGS)
        full[: 1 + 2 * k] = PRECISION_OF_RATES
        return cls(
            patterns.spins,
            patterns.present.astype(np.float64),
            patterns.counts * np.stack([1 - p, p]),
            csc_array(restriction.free),
            (restriction.free**2).T @ full,
        )

    @property
    def n_judges(self) -> int:
        """Judges of the panel."""
        return int(self.spins.shape[1])

    def start(self) -> Floats:
        """Free parameters of equal skills, vote rates as they are, and no couplings."""
        k = self.n_judges
        total = self.weights.sum(axis=0)
        share = (total @ (self.spins == 1) + 1) / (total @ self.present + 2)
        theta = np.zeros(self.free.shape[1])
        theta[1 : 1 + k], theta[1 + k : 1 + 2 * k] = logit(share) / 2, TYPICAL
        return theta

    def local(self, full: Floats) -> Floats:
        """Half the log-odds of each vote given the others and the class, shape (2, n, K)."""
        k, m = self.n_judges, len(pairs(self.n_judges)[0])
        out = []
        for sign in CLASSES:
            pull = np.zeros((k, k))
            pull[pairs(k)] = full[1 + 2 * k : 1 + 2 * k + m] + sign * full[1 + 2 * k + m :]
            fields = full[1 : 1 + k] + sign * full[1 + k : 1 + 2 * k]
            out.append(fields + self.spins @ (pull + pull.T))
        return np.stack(out)

    def value(self, x: Floats) -> Floats:
        """Minus the penalised log pseudo-likelihood at free parameters (q,)."""
        local = self.local(self.free @ x)
        # -log P(s | rest) = log(e^local + e^-local) - s local, in the form that cannot overflow.
        loss = (np.logaddexp(local, -local) - self.spins * local) * self.present
        return np.asarray((self.weights[:, :, None] * loss).sum() + 0.5 * self.precision @ x**2)

    def scores(self, theta: Floats) -> Floats:
        """Gradient of each pattern's log pseudo-likelihood per item, in the full parameters.

        Shape (n_patterns, full); the prior's column is 0.
        """
        total = self.weights.sum(axis=0)
        share = self.weights / np.where(total > 0, total, 1.0)
        residual = (self.spins - np.tanh(self.local(self.free @ theta))) * self.present
        first, second = pairs(self.n_judges)
        means = [
            np.einsum("y,yn,ynk->nk", signs, share, residual) for signs in ((1.0, 1.0), CLASSES)
        ]
        products = [
            mean[:, first] * self.spins[:, second] + mean[:, second] * self.spins[:, first]
            for mean in means
        ]
        return np.hstack([np.zeros((len(total), 1)), *means, *products])

    def derivatives(self, x: Floats) -> tuple[Floats, Floats]:
        """Gradient (q,) and Hessian (q, q) of :meth:`value`."""
        pull = self.weights.sum(axis=0) @ self.scores(x)
        gradient = np.asarray(self.precision * x - self.free.T @ pull)
        curvature = self.free.T @ (self.hessian(x) @ self.free)
        return gradient, np.asarray(curvature) + np.diag(self.precision)

    def hessian(self, theta: Floats) -> Floats:
        """Of :meth:`value`, in the full parameters and without the prior, shape (full, full)."""
        k, m = self.n_judges, len(pairs(self.n_judges)[0])
        slope = 1 - np.tanh(self.local(self.free @ theta)) ** 2
        spot = np.zeros((k, k), np.intp)
        spot[pairs(k)] = spot.T[pairs(k)] = 1 + 2 * k + np.arange(m)
        out = np.zeros((1 + 2 * k + 2 * m,) * 2)
        for judge in range(k):
            other_judges = np.delete(np.arange(k), judge)
            design = np.column_stack([np.ones(len(self.spins)), self.spins[:, other_judges]])
            block_zero, block_one = (
                (design * (weight * self.present[:, judge] * bend[:, judge])[:, None]).T @ design
                for weight, bend in zip(self.weights, slope, strict=True)
            )
            shared_index = np.r_[1 + judge, spot[judge, other_judges]]
            contrast_index = np.r_[1 + k + judge, spot[judge, other_judges] + m]
            for rows, columns, block in (
                (shared_index, shared_index, block_one + block_zero),
                (contrast_index, contrast_index, block_one + block_zero),
                (shared_index, contrast_index, block_one - block_zero),
                (contrast_index, shared_index, block_one - block_zero),
            ):
                out[np.ix_(rows, columns)] += block
        return out


@dataclass(frozen=True)
class PseudoFit:
    """Where the pseudo-likelihood is largest.

    Attributes:
        likelihood: what was maximised.
        theta: free parameters, shape (q,).
        full: the same as full parameters.
        hessian: at the end, in the full parameters, without the prior.
        inverse: of the free parameters' Hessian, prior included, shape (q, q).
        converged: whether Newton's steps settled.
    """

    likelihood: PseudoLikelihood
    theta: Floats
    full: Floats
    hessian: Floats
    inverse: Floats
    converged: bool

    def scores(self) -> Floats:
        """Scores of the free parameters, shape (n_patterns, q)."""
        return np.asarray(self.likelihood.scores(self.theta) @ self.likelihood.free)

    def sandwich(self, inverse: Index, clusters: Index | None) -> Floats:
        """Covariance of the free parameters, robust to dependence within clusters, (q, q).

        Args:
            inverse: the pattern of each item, shape (n_items,).
            clusters: the cluster of each item; each item for itself by default.
        """
        groups = np.arange(len(inverse)) if clusters is None else clusters
        sums = cluster_sums(self.scores(), inverse, groups)
        n = len(sums)
        half = (sums - sums.mean(axis=0)) @ self.inverse
        return np.asarray(half.T @ half * n / max(1, n - 1))


def fit_pseudo(patterns: Patterns, p: Floats, restriction: Restriction) -> PseudoFit:
    """Maximise the pseudo-likelihood given P(truth = 1), by damped Newton steps: it is concave.

    Args:
        patterns: the votes without ties.
        p: shape (n_patterns,).
        restriction: what is free.

    Raises:
        StatisticsError: more judges than :data:`MOST_JUDGES`.

    Source: Balasubramanian et al. (2026), appendix E; Besag (1975) for the pseudo-likelihood,
    Varin, Reid and Firth (2011) for its errors.
    """
    likelihood = PseudoLikelihood.of(patterns, p, restriction)
    minimum = minimise(
        likelihood,
        likelihood.start(),
        decrement_tol=DECREMENT_PER_ITEM * patterns.weight,
        max_iter=NEWTON_STEPS,
    )
    theta = minimum.x
    return PseudoFit(
        likelihood,
        theta,
        np.asarray(likelihood.free @ theta),
        likelihood.hessian(theta),
        np.asarray(np.linalg.inv(minimum.hessian), np.float64),
        bool(minimum.decrement < CONVERGED_DECREMENT),
    )


def pseudo_score_test(
    hypothesis: CouplingHypothesis,
    patterns: Patterns,
    p: Floats,
    *,
    clusters: Index | None = None,
) -> ScoreTest:
    """Score test of a hypothesis about couplings under the pseudo-likelihood, given p.

    The variance of the scores is that between clusters (Hotelling's test); unlike the exact
    test it takes p as it is, so that without labels the uncertainty of the truth is not in it.

    Args:
        hypothesis: what to test.
        patterns: the votes without ties.
        p: shape (n_patterns,), the label or its estimate.
        clusters: shape (n_items,); each item for itself by default.

    Raises:
        StatisticsError: too many judges, or no more clusters than directions tested.
    """
    fit = fit_pseudo(patterns, p, hypothesis.null)
    turn = np.hstack([hypothesis.null.free, hypothesis.directions])[:, 1:]
    from scipy.sparse import csc_array

    sparse = csc_array(turn)
    rows = fit.likelihood.scores(fit.theta) @ sparse
    information = np.asarray(sparse.T @ (fit.hessian @ sparse), np.float64)
    information[np.diag_indices_from(information)] += PRECISION_OF_RATES
    columns = np.arange(hypothesis.null.free.shape[1] - 1, turn.shape[1])
    groups = np.arange(patterns.n_items) if clusters is None else clusters
    return joint_test(
        RestrictedScores(np.asarray(rows), patterns.counts, information, columns),
        patterns.inverse,
        groups,
    )
