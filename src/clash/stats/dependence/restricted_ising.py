"""Ising laws under linear restrictions, fitted by likelihood with a prior too weak to matter.

The vector is that of ``latent.ising``: log-odds of the prior, h (K), a (K), W (pairs), D (pairs),
in spins. A restriction is a matrix whose columns span what is left free.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from clash.stats.latent.fit import observe
from clash.stats.latent.ising import CLASSES, IsingLaw, IsingModel, IsingPriors
from clash.stats.latent.ising_states import class_information, pattern_statistics, spin_states
from clash.stats.latent.patterns import MISSING, Patterns, collapse
from clash.stats.logistic import sigmoid

if TYPE_CHECKING:
    from clash.stats.typing import Bools, Floats, VoteCodes

PRECISION_OF_RATES, PRECISION_OF_COUPLINGS = 0.02, 1.0
"""Of the Gaussian prior, in items: couplings have a standard deviation of 4 in the paper's units.
It keeps a judge that never errs from an infinite field, two that never differ from an infinite
coupling, and is lost in the information of a few dozen items."""
NEWTON_STEPS, GRADIENT_PER_ITEM = 8, 1e-6


@dataclass(frozen=True)
class Restriction:
    """What is free, as a matrix from free to full parameters.

    Attributes:
        n_judges: K.
        free: shape (1 + 2 K + K (K - 1), q); its first row and column are the prior's.
    """

    n_judges: int
    free: Floats

    @classmethod
    def of(
        cls, n_judges: int, shared_span: Floats, contrast_span: Floats | None = None
    ) -> Restriction:
        """Rates free, couplings and their class differences each in the span of some columns.

        Args:
            n_judges: K.
            shared_span: shape (pairs, q).
            contrast_span: shape (pairs, r); couplings are alike in both classes by default.
        """
        m = n_judges * (n_judges - 1) // 2
        n_rates = 1 + 2 * n_judges
        contrasts = np.zeros((m, 0)) if contrast_span is None else contrast_span
        free = np.zeros((n_rates + 2 * m, n_rates + shared_span.shape[1] + contrasts.shape[1]))
        free[:n_rates, :n_rates] = np.eye(n_rates)
        free[n_rates : n_rates + m, n_rates : n_rates + shared_span.shape[1]] = shared_span
        free[n_rates + m :, n_rates + shared_span.shape[1] :] = contrasts
        return cls(n_judges, free)


@dataclass(frozen=True)
class RestrictedLikelihood:
    """The penalised log-likelihood of votes as a function of the free parameters.

    Attributes:
        patterns: the votes without ties, with labels where known.
        restriction: what is free.
        truth_posterior: shape (n_patterns,), P(truth = 1) to be taken as it is; None where the truth is
            hidden but for the labels.
        model: the law in the full parameters.
        precision: of the prior, shape (q,).
    """

    patterns: Patterns
    restriction: Restriction
    truth_posterior: Floats | None
    model: IsingModel
    precision: Floats

    @classmethod
    def of(
        cls, patterns: Patterns, restriction: Restriction, truth_posterior: Floats | None = None
    ) -> RestrictedLikelihood:
        """The likelihood of these votes.

        Raises:
            StatisticsError: more than 15 judges, or too many gaps to sum out.
        """
        k = restriction.n_judges
        model = full_model(patterns)
        precision = np.full(len(restriction.free), PRECISION_OF_COUPLINGS)
        precision[: 1 + 2 * k] = PRECISION_OF_RATES
        return cls(
            patterns, restriction, truth_posterior, model, (restriction.free**2).T @ precision
        )

    def equal_skill(self) -> Floats:
        """Free parameters of judges with equal skills, their own vote rates, and no couplings."""
        return np.asarray(np.linalg.pinv(self.restriction.free) @ self.model.start(self.patterns))

    def slope(self, theta: Floats) -> tuple[float, Floats]:
        """Minus the penalised log-likelihood, and its gradient.

        The gradient is the expected complete-data gradient (Fisher's identity, see
        :mod:`clash.stats.latent.marginal_likelihood`), taken from full to free parameters by the
        chain rule: with ``full = F theta``, that of theta is F' times that of full.
        """
        full = self.restriction.free @ theta
        likelihoods, state = self.model.evaluate(full)
        prior = np.array([-np.logaddexp(0, full[0]), -np.logaddexp(0, -full[0])])
        log_joint = likelihoods + prior
        posterior_one = self._posterior_one(log_joint)
        weights = self.patterns.counts[:, None] * np.column_stack(
            [1 - posterior_one, posterior_one]
        )
        if self.truth_posterior is None:
            log_labelled = np.where(self.patterns.labels == 1, log_joint[:, 1], log_joint[:, 0])
            log_marginal = np.logaddexp(log_joint[:, 0], log_joint[:, 1])
            value = self.patterns.counts @ np.where(
                self.patterns.labels == MISSING, log_marginal, log_labelled
            )
        else:
            value = (weights * log_joint).sum()
        gradient = self.model.gradient(state, weights)
        gradient[0] = weights[:, 1].sum() - self.patterns.weight * sigmoid(full[0])
        penalty = self.precision * theta
        return (
            0.5 * float(theta @ penalty) - float(value),
            penalty - self.restriction.free.T @ gradient,
        )

    def hessian(self, theta: Floats, *, complete: bool = False) -> Floats:
        """Of minus the penalised log-likelihood, exactly, shape (q, q): the observed information.

        By Louis (1982) it is the information there would be with nothing missing, less the
        variance of the complete-data score S_y given what was seen:

            I = E[I_y | v] - Var[S_y | v].

        Of a truth that is 1 with probability gamma the variance is
        gamma (1 - gamma) (S_1 - S_0)(S_1 - S_0)'; of missing votes it is the covariance of the
        statistics over their completions, which ``class_information`` takes off.

        Args:
            theta: free parameters.
            complete: as if truths and missing votes had been seen, which is positive definite.
        """
        full = self.restriction.free @ theta
        likelihoods, state = self.model.evaluate(full)
        posterior_one = self._posterior_one(likelihoods + np.array([0.0, full[0]]))
        counts = self.patterns.counts
        n_own, m = 1 + 2 * self.restriction.n_judges, self.model.n_couplings
        hessian = np.zeros((n_own + 2 * m, n_own + 2 * m))
        prior = float(sigmoid(full[0]))
        hessian[0, 0] = counts.sum() * prior * (1 - prior)
        for y, (sign, share) in enumerate(
            zip(CLASSES, (1 - posterior_one, posterior_one), strict=True)
        ):
            natural = self.model.law(full)
            block = self.model.parts[0].block
            information = class_information(
                block, natural.fields[y], natural.couplings[y], counts * share, complete=complete
            )
            turn = _turn(self.restriction.n_judges, m, sign)
            hessian += turn.T @ information @ turn
        if self.truth_posterior is None and not complete:
            unknown = self.patterns.labels == MISSING
            gap = _score_gap(self.model, state, unknown)
            weight = (counts * posterior_one * (1 - posterior_one))[unknown]
            hessian -= (gap * weight[:, None]).T @ gap
        free = self.restriction.free
        return np.asarray(free.T @ hessian @ free + np.diag(self.precision))

    def scores(self, theta: Floats) -> Floats:
        """Gradient of each pattern's log-likelihood in the full parameters, no penalty."""
        full = self.restriction.free @ theta
        likelihoods, state = self.model.evaluate(full)
        posterior_one = self._posterior_one(likelihoods + np.array([0.0, full[0]]))
        score_zero, score_one = _complete_scores(self.model, state)
        rows = (1 - posterior_one)[:, None] * score_zero + posterior_one[:, None] * score_one
        return np.hstack([(posterior_one - sigmoid(full[0]))[:, None], rows])

    def _posterior_one(self, log_joint: Floats) -> Floats:
        if self.truth_posterior is not None:
            return self.truth_posterior
        return observe(sigmoid(log_joint[:, 1] - log_joint[:, 0]), self.patterns.labels)


@dataclass(frozen=True)
class RestrictedFit:
    """Where the likelihood under a restriction is highest.

    Attributes:
        likelihood: what was maximised.
        theta: free parameters, shape (q,).
        value: penalised log-likelihood.
        hessian: of minus ``value``, shape (q, q).
        converged: whether the gradient per item is below 1e-4.
    """

    likelihood: RestrictedLikelihood
    theta: Floats
    value: float
    hessian: Floats
    converged: bool

    @property
    def full(self) -> Floats:
        """All parameters, shape (1 + 2 K + K (K - 1),)."""
        return np.asarray(self.likelihood.restriction.free @ self.theta)

    @property
    def law(self) -> IsingLaw:
        """Fields and couplings."""
        return self.likelihood.model.law(self.full)


def full_model(patterns: Patterns) -> IsingModel:
    """All judges coupled, in each class in its own way; the prior of ``latent`` is not used."""
    return IsingModel.of(
        patterns, [0] * patterns.n_judges, class_dependent=True, priors=IsingPriors()
    )


def fit_restricted(likelihood: RestrictedLikelihood, start: Floats | None = None) -> RestrictedFit:
    """Fit by L-BFGS, then Newton steps.

    Args:
        likelihood: with labels or ``truth_posterior`` it is concave (but for gaps); with a hidden truth
            it is climbed from ``start``.
        start: free parameters; equal skills by default.
    """
    theta = likelihood.equal_skill() if start is None else start
    theta, value, gradient = _polish(likelihood, _climb(likelihood, theta))
    return RestrictedFit(
        likelihood,
        theta,
        -value,
        likelihood.hessian(theta),
        bool(np.abs(gradient).max() < 1e-4 * likelihood.patterns.weight),
    )


def _climb(likelihood: RestrictedLikelihood, start: Floats) -> Floats:
    """L-BFGS in coordinates in which the information at the start is the identity.

    With the information L L' per item, theta = start + L'^-1 u has the gradient L^-1 g in u and
    unit curvature there. Couplings and fields are so correlated that it takes ten times the steps
    without. The complete-data information is used: with a hidden truth the observed one need not
    be positive definite away from the optimum.
    """
    from scipy.linalg import solve_triangular
    from scipy.optimize import minimize

    n = likelihood.patterns.weight
    root = np.linalg.cholesky(likelihood.hessian(start, complete=True) / n)

    def theta_of(step: Floats) -> Floats:
        return np.asarray(start + solve_triangular(root, step, lower=True, trans="T"))

    def per_item(step: Floats) -> tuple[float, Floats]:
        value, gradient = likelihood.slope(theta_of(step))
        return value / n, np.asarray(solve_triangular(root, gradient / n, lower=True))

    end = minimize(
        per_item,
        np.zeros_like(start),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 500, "maxfun": 1000, "gtol": 1e-5, "ftol": 1e-12, "maxcor": 20},
    )
    return theta_of(end.x)


def _polish(likelihood: RestrictedLikelihood, theta: Floats) -> tuple[Floats, float, Floats]:
    """Newton steps with one Hessian, as long as the likelihood rises.

    So near the optimum the Hessian hardly changes, and a step costs a gradient instead of a Hessian.
    Its pseudo-inverse leaves alone the directions on which the votes say nothing. Apart from
    :mod:`clash.stats.optimise`, whose problems are convex and have their Hessian at every step: with a
    hidden truth this one is neither.
    """
    value, gradient = likelihood.slope(theta)
    if np.abs(gradient).max() < GRADIENT_PER_ITEM * likelihood.patterns.weight:
        return theta, value, gradient
    inverse = np.asarray(np.linalg.pinv(likelihood.hessian(theta), rcond=1e-12, hermitian=True))
    for _ in range(NEWTON_STEPS):
        step = inverse @ gradient
        new, slope = likelihood.slope(theta - step)
        if not new <= value:
            break
        theta, value, gradient = theta - step, new, slope
        if np.abs(gradient).max() < GRADIENT_PER_ITEM * likelihood.patterns.weight:
            break
    return theta, value, gradient


def scores_of(full: Floats, votes: VoteCodes, labels: VoteCodes) -> Floats:
    """Scores of new votes (n, K) at full parameters, shape (n, p)."""
    fresh = collapse(votes, labels=labels)
    free = Restriction(votes.shape[1], np.eye(len(full)))
    return RestrictedLikelihood.of(fresh, free).scores(full)[fresh.inverse]


def draw(law: IsingLaw, n: int, rng: np.random.Generator) -> tuple[VoteCodes, VoteCodes]:
    """Votes (n, K) and truths (n,) from a law with a single block of judges."""
    states = spin_states(law.fields.shape[1])
    truths = (rng.random(n) < law.prior).astype(np.int8)
    drawn_states = np.empty(n, np.intp)
    for y in (0, 1):
        energy = states @ law.fields[y]
        energy += 0.5 * np.einsum("sj,sj->s", states @ law.couplings[y], states)
        weight = np.exp(energy - energy.max())
        of_class = truths == y
        drawn_states[of_class] = rng.choice(
            len(weight), size=int(of_class.sum()), p=weight / weight.sum()
        )
    return (states[drawn_states] > 0).astype(np.int8), truths


def likelihood_given_truth(patterns: Patterns, p: Floats) -> RestrictedLikelihood:
    """All couplings free and shared, given P(truth = 1): a convenience for callers and tests."""
    k = patterns.n_judges
    return RestrictedLikelihood.of(patterns, Restriction.of(k, np.eye(k * (k - 1) // 2)), p)


def _turn(n_judges: int, n_couplings: int, sign: float) -> Floats:
    """From full parameters to the fields and couplings of a class, shape (K + m, full)."""
    fields, couplings = np.eye(n_judges), np.eye(n_couplings)
    return np.block(
        [
            [np.zeros((n_judges, 1)), fields, sign * fields, np.zeros((n_judges, 2 * n_couplings))],
            [np.zeros((n_couplings, 1 + 2 * n_judges)), couplings, sign * couplings],
        ]
    )


def _complete_scores(
    model: IsingModel, state: list[Any], rows: Bools | None = None
) -> list[Floats]:
    """Scores of fields and couplings if the truth were known to be 0 and 1."""
    (sums, moments), block = state[0], model.parts[0].block
    scores = []
    for y, sign in enumerate(CLASSES):
        excess = pattern_statistics(block, sums[y]) - moments[y]
        excess = excess if rows is None else excess[rows]
        fields, couplings = excess[:, : model.n_judges], excess[:, model.n_judges :]
        scores.append(np.hstack([fields, sign * fields, couplings, sign * couplings]))
    return scores


def _score_gap(model: IsingModel, state: list[Any], rows: Bools) -> Floats:
    """Score if the truth were 1 minus score if it were 0, prior's included."""
    score_zero, score_one = _complete_scores(model, state, rows)
    return np.hstack([np.ones((len(score_one), 1)), score_one - score_zero])
