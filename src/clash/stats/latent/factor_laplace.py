"""Latent factors of any number, integrated by Laplace's method.

The model is that of :mod:`clash.stats.latent.factor`. A Gauss-Hermite grid grows exponentially
with the number of factors; Laplace's method expands the integrand about its maximum z* in place of
a grid, which costs one small linear system per pattern, class and step:

    log P(v | y) = h(z*) - log det(H) / 2,   h(z) = sum_j log P(v_j | y, z) - |z|^2 / 2,
    H = I + sum_j p_j (1 - p_j) loading_j loading_j^T.

A Gaussian of curvature H integrates to (2 pi)^(R/2) det(H)^(-1/2), and the normaliser of the R
standard normal factors cancels its powers of 2 pi. The relative error is of order 1 / n_judges.

The gradient is exact, the movement of z* with the parameters included. For one and two factors
``factor`` has the grid. Source: Tierney, Kadane 1986.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from clash.errors import StatisticsError
from clash.stats.latent.factor import (
    FactorPriors,
    better_reading,
    gaussian_prior,
    swap_class_names,
)
from clash.stats.latent.identifiability import require_identified
from clash.stats.latent.marginal_likelihood import GaussianPenalty, fit_from
from clash.stats.latent.patterns import TIE, Patterns
from clash.stats.logistic import logit, sigmoid
from clash.stats.optimise import minimise

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clash.stats.latent.fit import LatentFit
    from clash.stats.typing import Floats, VoteCodes

SIGNS = np.array([-1.0, 1.0])
_STEPS = 60
"""Newton steps allowed; some 4 to 12 are taken."""
_CLOSE = 1e-10
"""Largest slope at which a mode counts as found."""
_ROWS = 4096
"""Patterns expanded at once: their Hessians stay in the cache."""


@dataclass(frozen=True, slots=True)
class LaplaceLaw:
    """A logistic-normal law of the votes.

    Attributes:
        prior: P(truth = 1).
        lean: b, shape (n_judges,).
        skill: a, shape (n_judges,).
        loadings: shape (n_judges, rank).
        n_params: free parameters; a rotation of the factors is none.
    """

    prior: float
    lean: Floats
    skill: Floats
    loadings: Floats
    n_params: int

    def log_likelihoods(self, votes: VoteCodes) -> Floats:
        """Log P(votes | truth = 0 and 1), shape (n, 2)."""
        parts = [votes[at : at + _ROWS] for at in range(0, len(votes), _ROWS)]
        return np.concatenate([expand(self, VoteWeights.of(part)).value for part in parts])


@dataclass(frozen=True, slots=True)
class VoteWeights:
    """Votes as weights.

    Attributes:
        votes_one: shape (n, n_judges), votes for 1; a tie is half of either.
        present: shape (n, n_judges), whether there is a vote.
    """

    votes_one: Floats
    present: Floats

    @classmethod
    def of(cls, votes: VoteCodes) -> VoteWeights:
        """VoteCodes as weights."""
        weights_one = np.where(votes == TIE, 0.5, votes == 1)
        return cls(weights_one, np.where(votes >= 0, 1.0, 0.0))


@dataclass(frozen=True, slots=True)
class LaplaceExpansion:
    """The integrand at its maximum, for every pattern and class.

    Attributes:
        value: log of the integral, shape (n, 2).
        mode: z*, shape (n, 2, rank).
        right: P(vote 1) there, shape (n, 2, n_judges).
        inverse: of H, shape (n, 2, rank, rank).
    """

    value: Floats
    mode: Floats
    right: Floats
    inverse: Floats


def expand(law: LaplaceLaw, votes: VoteWeights) -> LaplaceExpansion:
    """Laplace's expansion of every pattern and class.

    The slope has to vanish to :data:`_CLOSE`: the gradient of the expansion takes it for 0.
    """
    integrands = Integrands(law, votes)
    start = np.zeros((len(votes.votes_one), 2, law.loadings.shape[1]))
    mode = minimise(integrands, start, gradient_tol=_CLOSE, max_iter=_STEPS)
    value = -mode.value - np.linalg.slogdet(mode.hessian)[1] / 2
    inverse: Floats = np.linalg.inv(mode.hessian).astype(float)
    return LaplaceExpansion(value, mode.x, sigmoid(integrands.logits(mode.x)), inverse)


@dataclass(frozen=True, slots=True)
class Integrands:
    """-h(z) of every pattern and class, a :class:`clash.stats.optimise.ConvexProblem` in z.

    h is strictly concave (the Gaussian alone has curvature 1): there is one maximum, and H is never
    singular.
    """

    law: LaplaceLaw
    votes: VoteWeights

    def logits(self, x: Floats) -> Floats:
        """Log-odds of a vote for 1, shape (n, 2, n_judges)."""
        intercepts = self.law.lean + SIGNS[:, None] * self.law.skill
        logits: Floats = intercepts + x @ self.law.loadings.T
        return logits

    def value(self, x: Floats) -> Floats:
        """-h, shape (n, 2), at factors of shape (n, 2, rank)."""
        logits = self.logits(x)
        votes_one, zeros = self.votes.votes_one, self.votes.present - self.votes.votes_one
        losses = votes_one[:, None] * np.logaddexp(0, -logits) + zeros[:, None] * np.logaddexp(
            0, logits
        )
        value: Floats = losses.sum(axis=2) + (x * x).sum(axis=2) / 2
        return value

    def derivatives(self, x: Floats) -> tuple[Floats, Floats]:
        """Gradients (n, 2, rank) and Hessians H (n, 2, rank, rank)."""
        right, present = sigmoid(self.logits(x)), self.votes.present[:, None]
        loadings = self.law.loadings
        gradient = x - (self.votes.votes_one[:, None] - present * right) @ loadings
        rank = loadings.shape[1]
        products = loadings[:, :, None] * loadings[:, None, :]
        curvature = (present * right * (1 - right)) @ products.reshape(len(loadings), -1)
        return gradient, curvature.reshape(*x.shape, rank) + np.eye(rank)


def factor_laplace(
    patterns: Patterns,
    *,
    rank: int = 3,
    priors: FactorPriors | None = None,
    tol: float = 1e-5,
    warm: LatentFit | None = None,
) -> LatentFit:
    """Latent factors shared by all judges, as many as wanted.

    Model, assumptions and failures as :func:`clash.stats.latent.factor.factor`. Against a fine grid
    (one and two factors, 5 to 30 judges, loadings to 2) Laplace's log-odds of the truth are off by
    0.001 to 0.1 of 1 to 4 on average. Its log-likelihoods are too small, by 0.004 to 0.11 an item
    and by more with more factors: they do not compare with another number of factors or a grid.
    Source: ising-aggregation, appendix D.3; Tierney, Kadane 1986.

    Args:
        patterns: the votes, of any number of judges; missing votes cost nothing.
        rank: number of factors.
        priors: the prior.
        tol: largest entry of the gradient per item at which the optimiser stops.
        warm: a fit to nearly the same votes to start from, for folds.

    Raises:
        NotIdentifiedError: fewer than three different judges more than there are factors.
        StatisticsError: no votes, or no factor.
    """
    if rank < 1:
        raise StatisticsError(f"rank must be at least 1, not {rank}")
    at_least = 3 + rank
    n_params = (2 + rank) * at_least + 1 - rank * (rank - 1) // 2
    require_identified(patterns, f"factor-{rank}", at_least=at_least, n_params=n_params)
    model = LaplaceModel.of(patterns, rank, priors or FactorPriors())
    weak = model.start(patterns)
    strong = weak.copy()
    strong[1 + 2 * patterns.n_judges :] *= 3
    starts = {"equal skill, weak factors": weak, "equal skill, strong factors": strong}
    fit = fit_from(f"factor-{rank}", model, patterns, starts, tol=tol, warm=warm)
    if warm is not None or fit.theta is None:
        return fit
    alternatives = {
        "class and largest factor exchanged": model.exchange_class_and_factor(fit.theta)
    }
    return better_reading(fit, fit_from(f"factor-{rank}", model, patterns, alternatives, tol=tol))


@dataclass(frozen=True, slots=True)
class LaplaceModel:
    """The likelihood as a function of (log-odds of the prior, b, a, loadings by factor)."""

    parts: tuple[VoteWeights, ...]
    n_judges: int
    rank: int
    penalty: GaussianPenalty = field(repr=False)

    @classmethod
    def of(cls, patterns: Patterns, rank: int, priors: FactorPriors) -> LaplaceModel:
        """The model of these votes, in parts that stay small."""
        votes = patterns.votes
        cast = [VoteWeights.of(votes[at : at + _ROWS]) for at in range(0, len(votes), _ROWS)]
        penalty = gaussian_prior(patterns, rank, None, priors)
        return cls(tuple(cast), patterns.n_judges, rank, penalty)

    def start(self, patterns: Patterns) -> Floats:
        """Equal skill, one common factor, and factors that part the judges, each in its own way."""
        k = self.n_judges
        theta = self.penalty.centre.copy()
        theta[1 : 1 + k] = logit(patterns.vote_rates)
        loadings = np.full((self.rank, k), 0.5)
        for r in range(1, self.rank):  # equal ones would stay equal
            loadings[r] = 0.5 * np.cos(np.pi * r * (np.arange(k) + 0.5) / k)
        theta[1 + 2 * k :] = loadings.ravel()
        return theta

    def evaluate(
        self, theta: Floats
    ) -> tuple[Floats, tuple[LaplaceLaw, tuple[LaplaceExpansion, ...]]]:
        """Log-likelihoods, and the expansions they came from."""
        law = self.law(theta)
        expansions = tuple(expand(law, part) for part in self.parts)
        return np.concatenate([part.value for part in expansions]), (law, expansions)

    def gradient(
        self, state: tuple[LaplaceLaw, tuple[LaplaceExpansion, ...]], weights: Floats
    ) -> Floats:
        """The exact gradient of the expansion."""
        law, expansions = state
        out, k = np.zeros_like(self.penalty.centre), self.n_judges
        for cast, part, weight in zip(self.parts, expansions, self._split(weights), strict=True):
            lean, loadings = _slopes(law, cast, part, weight)
            out[1 : 1 + k] += lean.sum(axis=0)
            out[1 + k : 1 + 2 * k] += SIGNS @ lean
            out[1 + 2 * k :] += loadings.T.ravel()
        return out

    def _split(self, weights: Floats) -> Iterator[Floats]:
        at = 0
        for part in self.parts:
            yield weights[at : at + len(part.votes_one)]
            at += len(part.votes_one)

    def law(self, theta: Floats) -> LaplaceLaw:
        """The vector as leans, skills and loadings."""
        k = self.n_judges
        return LaplaceLaw(
            float(sigmoid(theta[0])),
            theta[1 : 1 + k],
            theta[1 + k : 1 + 2 * k],
            theta[1 + 2 * k :].reshape(self.rank, k).T,
            1 + (2 + self.rank) * k - self.rank * (self.rank - 1) // 2,
        )

    def swap_classes(self, theta: Floats) -> Floats:
        """The vector with the names of the two classes swapped."""
        return swap_class_names(theta, self.n_judges)

    def exchange_class_and_factor(self, theta: Floats) -> Floats:
        """The vector with class effects as loadings, and the largest factor as class effects.

        Factors are turned to their principal axes first, which changes no likelihood.
        """
        out, law, k = theta.copy(), self.law(theta), self.n_judges
        axes, sizes, _ = np.linalg.svd(law.loadings, full_matrices=False)
        loadings = axes * sizes
        out[1 + k : 1 + 2 * k] = loadings[:, 0] * (1 if loadings[:, 0].sum() >= 0 else -1)
        loadings[:, 0] = law.skill
        out[1 + 2 * k :] = loadings.T.ravel()
        return out


def _slopes(
    law: LaplaceLaw, votes: VoteWeights, expansion: LaplaceExpansion, weight: Floats
) -> tuple[Floats, Floats]:
    """Gradients, weighted and summed over patterns: of b by class (2, J), and of loadings (J, R).

    With r the residuals of the votes, v = p (1 - p), c = v (1 - 2 p) and q_j = l_j^T H^-1 l_j:

    - h moves by its direct derivative only, r_j for b_j and r_j z for l_j: at the mode its slope in
      z is 0.
    - log det H moves by c_j q_j with judge j's log-odds, by 2 v_j H^-1 l_j with l_j itself, and by
      g = sum_j c_j q_j l_j with the mode.
    - the mode solves sum_j r_j l_j = z, so that dz* = H^-1 (r_j dl_j - v_j l_j (db_j + z . dl_j)).

    Together, with ``pull`` = H^-1 g:

        d / db_j = r_j - c_j q_j / 2 + v_j (l_j . pull) / 2        (``along``)
        d / dl_j = (d / db_j) z - v_j H^-1 l_j - r_j pull / 2
    """
    right, present = expansion.right, votes.present[:, None]
    residual = votes.votes_one[:, None] - present * right
    spread = present * right * (1 - right)
    bend = spread * (1 - 2 * right)
    solved_loadings = law.loadings @ expansion.inverse
    leverage = np.sum(solved_loadings * law.loadings, axis=3)
    pull = ((bend * leverage) @ law.loadings)[..., None, :] @ expansion.inverse
    pull = pull[..., 0, :]
    along = residual - bend * leverage / 2 + spread * (pull @ law.loadings.T) / 2
    w = weight[:, :, None]
    loadings = np.einsum("ncj,ncr->jr", w * along, expansion.mode)
    loadings -= np.einsum("ncj,ncjr->jr", w * spread, solved_loadings)
    loadings -= np.einsum("ncj,ncr->jr", w * residual, pull) / 2
    return np.sum(w * along, axis=0), loadings
