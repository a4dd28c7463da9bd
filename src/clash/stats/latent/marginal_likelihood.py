"""Direct maximisation of the penalised marginal likelihood of two-class models.

What is maximised is equation (24) of ising-aggregation less a Gaussian penalty. The paper climbs it
by EM (algorithm 1), which converges linearly and takes hundreds of iterations here. Its gradient is
EM's own all the same. With gamma = P(truth = 1 | v), equation (25),

    d log sum_y P(y) P(v | y) = sum_y P(y | v) d log (P(y) P(v | y))          (Fisher's identity)
                              = (1 - gamma) d log P(0) P(v | 0) + gamma d log P(1) P(v | 1),

the gradient of the Q function of (26) at the current posterior: a model only has to supply the
gradient of a weighted sum of log P(v | y). For the log-odds of the prior pi it is gamma - pi.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from clash.stats.latent.fit import (
    FitStart,
    LatentFit,
    VoteLaw,
    agreement,
    assemble,
    posterior,
    share_decided_apart,
    vote_share,
)
from clash.stats.latent.identifiability import has_labels
from clash.stats.latent.patterns import MISSING, Patterns
from clash.stats.logistic import sigmoid

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clash.stats.typing import Floats


MAX_ITER = 500
"""Iterations after which a climb gives up (``converged`` is then False)."""
CLEARLY = 0.02
"""Log-likelihood per unit of weight by which one optimum clearly beats another. Per item, because
a wrong model makes small differences meaningless however many items add them up."""


@dataclass(frozen=True, slots=True)
class GaussianPenalty:
    """A Gaussian prior on the parameter vector, minus its logarithm.

    Attributes:
        centre: shape (n,).
        precision: shape (n,); 0 is flat.
        alike: index arrays of parameters pulled towards their common mean, with the precision.
    """

    centre: Floats
    precision: Floats
    alike: tuple[tuple[slice, float], ...] = ()

    def of(self, theta: Floats) -> tuple[float, Floats]:
        """The penalty and its gradient."""
        away = theta - self.centre
        gradient = self.precision * away
        value = 0.5 * float(away @ gradient)
        for group, precision in self.alike:
            spread = theta[group] - theta[group].mean()
            value += 0.5 * precision * float(spread @ spread)
            gradient[group] += precision * spread
        return value, gradient


class TwoClassModel(Protocol):
    """A two-class law of the votes as a function of one parameter vector.

    The vector begins with the log-odds of the prior.
    """

    @property
    def penalty(self) -> GaussianPenalty:
        """The prior on the vector."""
        ...

    def evaluate(self, theta: Floats) -> tuple[Floats, Any]:
        """Log P(votes | truth) of shape (n_patterns, 2), and what ``gradient`` needs of it."""
        ...

    def gradient(self, state: Any, weights: Floats) -> Floats:  # noqa: ANN401 - the model's own
        """Gradient of the sum of weights (n_patterns, 2) times log P(votes | truth).

        Of shape (n,); its first entry, the prior's, is left 0.
        """
        ...

    def law(self, theta: Floats) -> VoteLaw:
        """The parameters in their own words."""
        ...

    def swap_classes(self, theta: Floats) -> Floats:
        """The vector with the names of the two classes swapped."""
        ...


@dataclass(frozen=True, slots=True)
class Optimum:
    """Where the climb from one start ended.

    Attributes:
        theta: shape (n,).
        objective: penalised log-likelihood there, of all items.
        n_iter: iterations of L-BFGS.
        residual: largest entry of the gradient per unit of weight.
        converged: whether the optimiser met its tolerance.
    """

    theta: Floats
    objective: float
    n_iter: int
    residual: float
    converged: bool


def objective(theta: Floats, model: TwoClassModel, patterns: Patterns) -> tuple[float, Floats]:
    """Minus the penalised log-likelihood per unit of weight, and its gradient.

    Per unit of weight, so that one tolerance suits ten items and a million.
    """
    likelihoods, state = model.evaluate(theta)
    prior = float(sigmoid(theta[0]))
    # Logs of sigmoid(-theta) and sigmoid(theta) that keep their digits where the prior is extreme.
    log_prior = np.array([-np.logaddexp(0, theta[0]), -np.logaddexp(0, -theta[0])])
    log_joint = likelihoods + log_prior
    marginal = np.logaddexp(log_joint[:, 0], log_joint[:, 1])
    posterior_one = sigmoid(log_joint[:, 1] - log_joint[:, 0])
    has_label = patterns.labels != MISSING
    if has_label.any():
        posterior_one = np.where(has_label, patterns.labels, posterior_one)
        marginal = np.where(
            has_label, np.where(patterns.labels == 1, log_joint[:, 1], log_joint[:, 0]), marginal
        )
    weights = patterns.counts[:, None] * np.column_stack([1 - posterior_one, posterior_one])
    gradient = model.gradient(state, weights)
    gradient[0] = weights[:, 1].sum() - patterns.weight * prior
    penalty, slope = model.penalty.of(theta)
    scale = patterns.weight
    value = float(patterns.counts @ marginal) - penalty
    return -value / scale, (slope - gradient) / scale


def maximise(
    model: TwoClassModel,
    patterns: Patterns,
    start: Floats,
    *,
    tol: float,
) -> Optimum:
    """Climb from one start with L-BFGS; ``residual`` is the largest entry of the gradient."""
    from scipy.optimize import minimize

    end = minimize(
        objective,
        start,
        args=(model, patterns),
        jac=True,
        method="L-BFGS-B",
        options={
            "maxiter": MAX_ITER,
            "maxfun": 2 * MAX_ITER,
            "gtol": tol,
            # The gradient is the stopping rule; this one only ends climbs on a flat ridge.
            "ftol": 1e-10,
            # Fields and couplings are strongly correlated: twice the usual memory is cheap beside a
            # step, which costs a pass over all states.
            "maxcor": 20,
        },
    )
    residual = float(np.abs(end.jac).max())
    converged = bool(end.success) and bool(np.isfinite(end.fun))
    return Optimum(end.x, -float(end.fun) * patterns.weight, int(end.nit), residual, converged)


def fit_from(
    name: str,
    model: TwoClassModel,
    patterns: Patterns,
    starts: Mapping[str, Floats],
    *,
    warm: LatentFit | None = None,
    tol: float = 1e-5,
) -> LatentFit:
    """Fit from several starts; all are reported.

    The first, equal skill, is the anchor: several optima may explain the votes equally well, and
    the one with the highest penalised likelihood wins only where it clearly beats the first.

    Args:
        name: of the model.
        model: its likelihood.
        patterns: the votes.
        starts: by name, the anchor first.
        warm: a fit of the same model to nearly the same votes, in place of the starts: a fold
            follows the whole fit into its basin in a tenth of the steps.
        tol: largest entry of the gradient per item at which the optimiser stops.
    """
    if warm is not None and warm.theta is not None:
        starts = {"the fit to all items": warm.theta}
    ends = {start: _climb_upright(model, patterns, theta, tol) for start, theta in starts.items()}
    fits = {start: _fit_of(name, model, patterns, start, end) for start, end in ends.items()}
    first, best = next(iter(ends)), max(ends, key=lambda start: ends[start].objective)
    gap = ends[best].objective - ends[first].objective
    winner = best if gap > CLEARLY * patterns.weight else first
    starts_ended = tuple(
        replace(fit.starts[0], differs=share_decided_apart(fit, fits[winner]))
        for fit in fits.values()
    )
    fit = replace(fits[winner], starts=starts_ended)
    if not fit.converged:
        fit = fit.with_warnings(f"stopped after {fit.n_iter} iterations without converging")
    return fit


def _climb_upright(model: TwoClassModel, patterns: Patterns, start: Floats, tol: float) -> Optimum:
    """Climb from a start; where that ends with the classes swapped, climb on from their mirror.

    Swapping the classes leaves the likelihood of unlabelled votes as it is: only the prior and
    the anchor can tell the two apart, and a climb may have slipped past the prior.
    """
    end = maximise(model, patterns, start, tol=tol)
    law = model.law(end.theta)
    agrees = agreement(posterior(law, patterns.votes), vote_share(patterns), patterns.counts)
    if agrees >= 0.5 or has_labels(patterns):
        return end
    return maximise(model, patterns, model.swap_classes(end.theta), tol=tol)


def _fit_of(
    name: str, model: TwoClassModel, patterns: Patterns, start: str, end: Optimum
) -> LatentFit:
    fit = assemble(name, model.law(end.theta), patterns)
    return replace(
        fit,
        converged=end.converged,
        n_iter=end.n_iter,
        residual=end.residual,
        start=start,
        theta=end.theta,
        starts=(FitStart(start, end.objective, fit.anchor_agreement, end.converged),),
    )
