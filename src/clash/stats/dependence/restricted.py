"""Ising laws under linear restrictions, fitted by likelihood with a prior too weak to matter.

The vector is that of ``latent.ising``: log-odds of the prior, h (K), a (K), W (pairs), D (pairs),
in spins. A restriction is a matrix whose columns span what is left free.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from clash.stats.latent.completions import Summed
from clash.stats.latent.fit import observe, sigmoid
from clash.stats.latent.ising import CLASSES, IsingLaw, IsingModel, Strength
from clash.stats.latent.marginal import Penalty, maximise, objective
from clash.stats.latent.patterns import MISSING, Codes, Floats, Patterns, collapse
from clash.stats.latent.states import pairs, spin_states

if TYPE_CHECKING:
    from clash.stats.latent.completions import Gaps

PRECISION = {"rates": 0.02, "couplings": 0.1}
"""Of the Gaussian prior, in items: it keeps a judge that never errs from an infinite field."""
STEP = 1e-4
NEWTON_STEPS, SETTLED = 12, 1e-7


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
    def of(cls, n_judges: int, shared: Floats, contrast: Floats | None = None) -> Restriction:
        """Rates free, couplings in the column span of ``shared`` (pairs, q), their class
        difference in that of ``contrast`` (none by default).
        """
        m = n_judges * (n_judges - 1) // 2
        own = 1 + 2 * n_judges
        other = np.zeros((m, 0)) if contrast is None else contrast
        free = np.zeros((own + 2 * m, own + shared.shape[1] + other.shape[1]))
        free[:own, :own] = np.eye(own)
        free[own : own + m, own : own + shared.shape[1]] = shared
        free[own + m :, own + shared.shape[1] :] = other
        return cls(n_judges, free)


@dataclass(frozen=True)
class RestrictedModel:
    """``IsingModel`` as a function of the free parameters; a ``marginal.Model``."""

    full: IsingModel
    restriction: Restriction
    penalty: Penalty

    @classmethod
    def of(cls, patterns: Patterns, restriction: Restriction) -> RestrictedModel:
        """The model of these votes.

        Raises:
            StatisticsError: more than 15 judges, or too many gaps to sum out.
        """
        k = restriction.n_judges
        full = IsingModel.of(patterns, [0] * k, class_dependent=True, strength=Strength())
        precision = np.full(len(full.penalty.centre), PRECISION["couplings"])
        precision[: 1 + 2 * k] = PRECISION["rates"]
        reduced = (restriction.free**2).T @ precision
        return cls(full, restriction, Penalty(np.zeros(len(reduced)), reduced))

    def evaluate(self, theta: Floats) -> tuple[Floats, Any]:
        """As ``IsingModel``'s, at the full parameters."""
        return self.full.evaluate(self.restriction.free @ theta)

    def gradient(self, kept: Any, weights: Floats) -> Floats:  # noqa: ANN401 - IsingModel's own
        """As ``IsingModel``'s, along the free parameters."""
        return np.asarray(self.restriction.free.T @ self.full.gradient(kept, weights))

    def law(self, theta: Floats) -> IsingLaw:
        """Fields and couplings."""
        return self.full.law(self.restriction.free @ theta)


@dataclass(frozen=True)
class RestrictedFit:
    """Where the likelihood under a restriction is highest.

    Attributes:
        model: the likelihood.
        patterns: the votes.
        theta: free parameters, shape (q,).
        log_likelihood: penalised, which all but equals the likelihood.
        hessian: of minus ``log_likelihood``, shape (q, q): the observed information.
        converged: whether the gradient per item is below tolerance.
    """

    model: RestrictedModel
    patterns: Patterns
    theta: Floats
    log_likelihood: float
    hessian: Floats
    converged: bool

    @property
    def full(self) -> Floats:
        """All parameters, shape (1 + 2 K + K (K - 1),)."""
        return np.asarray(self.model.restriction.free @ self.theta)

    @property
    def law(self) -> IsingLaw:
        """Fields and couplings."""
        return self.model.law(self.theta)

    def slope(self, theta: Floats, patterns: Patterns | None = None) -> tuple[float, Floats]:
        """Minus the penalised log-likelihood of all items, and its gradient."""
        data = patterns or self.patterns
        value, gradient = objective(theta, self.model, data)
        return value * data.weight, gradient * data.weight


def fit_restricted(
    patterns: Patterns, restriction: Restriction, start: Floats | None = None
) -> RestrictedFit:
    """Fit by L-BFGS and polish by Newton steps.

    Args:
        patterns: the votes without ties; with labels it is a concave problem (no gaps), without
            them it is a climb from ``start``.
        restriction: what is free.
        start: free parameters; equal skills by default.

    Raises:
        StatisticsError: more than 15 judges, or too many gaps.
    """
    model = RestrictedModel.of(patterns, restriction)
    if start is None:
        start = np.linalg.pinv(restriction.free) @ model.full.start(patterns)
    theta = maximise(model, patterns, start, tol=1e-6, max_iter=1000).theta
    draft = RestrictedFit(model, patterns, theta, 0.0, np.zeros((0, 0)), converged=False)
    for _ in range(NEWTON_STEPS):
        hessian = numerical_hessian(draft, theta)
        value, gradient = draft.slope(theta)
        if np.abs(gradient).max() < SETTLED * patterns.weight:
            break
        step = np.linalg.lstsq(hessian, gradient, rcond=1e-10)[0]
        if draft.slope(theta - step)[0] > value:
            break
        theta = theta - step
    value, gradient = draft.slope(theta)
    settled = bool(np.abs(gradient).max() < 1e-4 * patterns.weight)
    return replace(
        draft,
        theta=theta,
        log_likelihood=-value,
        hessian=numerical_hessian(draft, theta),
        converged=settled,
    )


def numerical_hessian(fit: RestrictedFit, theta: Floats) -> Floats:
    """Central differences of the exact gradient."""
    columns = []
    for index in range(len(theta)):
        shift = np.zeros_like(theta)
        shift[index] = STEP
        columns.append((fit.slope(theta + shift)[1] - fit.slope(theta - shift)[1]) / (2 * STEP))
    hessian = np.array(columns)
    return np.asarray((hessian + hessian.T) / 2)


def soft_labels(patterns: Patterns, p: Floats) -> Patterns:
    """Items of which class 1 has probability p as two labelled items of weight p and 1 - p.

    A fit to them is the M-step of EM: the model given the estimated labels.

    Args:
        patterns: the votes; their own labels are passed over.
        p: shape (n_patterns,).
    """
    keep_one, keep_zero = p > 0, p < 1
    votes = np.vstack([patterns.votes[keep_zero], patterns.votes[keep_one]])
    zeros, ones = int(keep_zero.sum()), int(keep_one.sum())
    labels = np.concatenate([np.zeros(zeros, np.int8), np.ones(ones, np.int8)])
    counts = np.concatenate(
        [(patterns.counts * (1 - p))[keep_zero], (patterns.counts * p)[keep_one]]
    )
    return Patterns(votes, labels, counts, np.arange(len(votes)))


def pattern_scores(model: IsingModel, theta: Floats, patterns: Patterns) -> Floats:
    """Gradient of each pattern's log-likelihood in the full parameters, shape (n_patterns, p)."""
    likelihoods, kept = model.evaluate(theta)
    prior = float(sigmoid(theta[0]))
    one = sigmoid(likelihoods[:, 1] - likelihoods[:, 0] + theta[0])
    one = observe(one, patterns.labels)
    (sums, expected), (part,) = kept[0], model.parts
    fields, couplings = [], []
    for y, share in enumerate((1 - one, one)):
        single, double = _statistics(part.block.gaps, sums[y])
        m = single.shape[1]
        fields.append(share[:, None] * (single - expected[y][:m]))
        couplings.append(share[:, None] * (double - expected[y][m:]))
    total, contrast = (
        [sum(side), sum(sign * part for sign, part in zip(CLASSES, side, strict=True))]
        for side in (fields, couplings)
    )
    return np.hstack([(one - prior)[:, None], *total, *contrast])


def _statistics(gaps: tuple[Gaps, ...], done: Summed) -> tuple[Floats, Floats]:
    """Expected spins and pair products of each pattern."""
    first, second = pairs(done.filled.shape[1])
    products = done.filled[:, first] * done.filled[:, second]
    spot = np.zeros((done.filled.shape[1],) * 2, np.intp)
    spot[first, second] = np.arange(len(first))
    for group, extra in zip(gaps, done.extra, strict=True):
        one, other = pairs(group.judges.shape[1])
        columns = spot[group.judges[:, one], group.judges[:, other]]
        np.add.at(products, (group.rows[:, None], columns), extra)
    return done.filled, products


def draw(law: IsingLaw, n: int, rng: np.random.Generator) -> tuple[Codes, Codes]:
    """Votes (n, K) and truths (n,) from a law with a single block of judges."""
    states = spin_states(law.fields.shape[1])
    truths = (rng.random(n) < law.prior).astype(np.int8)
    chosen = np.empty(n, np.intp)
    for y in (0, 1):
        energy = states @ law.fields[y]
        energy += 0.5 * np.einsum("sj,sj->s", states @ law.couplings[y], states)
        weight = np.exp(energy - energy.max())
        mine = truths == y
        chosen[mine] = rng.choice(len(weight), size=int(mine.sum()), p=weight / weight.sum())
    return (states[chosen] > 0).astype(np.int8), truths


def scores_of_new_votes(theta: Floats, n_judges: int, votes: Codes, labels: Codes) -> Floats:
    """:func:`pattern_scores` for votes (n, K) that the model was not built for."""
    fresh = collapse(votes, labels=labels)
    model = IsingModel.of(fresh, [0] * n_judges, class_dependent=True, strength=Strength())
    return pattern_scores(model, theta, fresh)[fresh.inverse]


def hidden(patterns: Patterns) -> bool:
    """Whether any item's label is unknown."""
    return bool((patterns.labels[patterns.counts > 0] == MISSING).any())
