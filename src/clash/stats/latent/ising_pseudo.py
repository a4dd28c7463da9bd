"""Ising models of more judges than can be enumerated: generalised EM with Monte Carlo normalisers.

Algorithm 1 of ising-aggregation. The M-step (26) maximises the pseudo-likelihood, one logistic
regression per judge with symmetric couplings: in spins, given class y and the other votes,

    P(s_j | s_-j, y) = sigmoid(2 s_j l_j),   l_j = h_yj + sum_k W_yjk s_k,
    -log P(s_j | s_-j, y) = |l_j| + log(1 + exp(-2 |l_j|)) - s_j l_j,

which needs no normaliser. The E-step (25) does need one: with the pseudo-likelihood score in its
place the hidden class is lost. But only log Z_1 - log Z_0 enters the posterior, one number per fit.
Along the straight path U_t = (1 - t) U_0 + t U_1 between the two energies

    d log Z_t / dt = E_t[U_1(s) - U_0(s)],   log Z_1 - log Z_0 = int_0^1 E_t[U_1 - U_0] dt,

and the expectations are means over Gibbs samples of the law at t (thermodynamic integration).

How hard to hold the couplings is chosen by held-out likelihood, with one standard error towards harder.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from clash.errors import StatisticsError
from clash.stats.latent.cross_validation import (
    HeldOutScores,
    folds,
    mean_score,
    votes_held_out,
    within_one_standard_error,
)
from clash.stats.latent.fit import (
    FitStart,
    LatentFit,
    agreement,
    observe,
    vote_share,
    warn_if_ambiguous,
)
from clash.stats.latent.identifiability import has_labels, require_identified
from clash.stats.latent.ising import IsingPriors, ising_penalty, ridge_of
from clash.stats.latent.patterns import Patterns, spins
from clash.stats.logistic import logit, sigmoid

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from clash.stats.latent.marginal_likelihood import GaussianPenalty
    from clash.stats.typing import Bools, Floats, VoteCodes

STEPS, CHAINS, SWEEPS = 11, 100, 30
"""Points on the path, chains at each, and sweeps per estimate: an error of some 0.03."""
TOLERANCE, MAX_ITER = 1e-3, 40
"""EM stops where no posterior changes by more, or after so many iterations, unconverged."""
FOLDS = 5
STEPS_OF_M = 12
"""Climbing steps of an M-step: a generalised EM, which goes on from there in the next."""
GRID = (0.3, 0.1, 0.03, 0.01, 0.003)
"""Ridges on the couplings, hardest first, as a share of the items' weight."""
STRENGTHS = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001)
"""Strengths of the whole prior, hardest first, as multiples of the usual one."""
MOST_MISSING = 0.2
"""Share of missing votes beyond which dropping them from the energies is another model."""


@dataclass(frozen=True, slots=True)
class UnnormalisedIsing:
    """Fields and couplings whose normalisers are known up to their difference.

    Attributes:
        prior: P(truth = 1).
        fields: shape (2, n_judges).
        couplings: shape (2, n_judges, n_judges), symmetric with zero diagonal.
        log_ratio: log Z_1 - log Z_0.
        n_params: free parameters.
    """

    prior: float
    fields: Floats
    couplings: Floats
    log_ratio: float
    n_params: int

    def log_likelihoods(self, votes: VoteCodes) -> Floats:
        """Log P(votes | truth = 0 and 1) up to one constant, shape (n, 2).

        Votes that are missing are dropped from the energies rather than summed out, which is
        exact only for judges without couplings.
        """
        vote_spins = spins(votes)
        levels = [
            vote_spins @ field + 0.5 * np.einsum("nk,nk->n", vote_spins @ pull, vote_spins)
            for field, pull in zip(self.fields, self.couplings, strict=True)
        ]
        return np.column_stack([levels[0], levels[1] - self.log_ratio])


def ising_pseudo(
    patterns: Patterns,
    *,
    rng: np.random.Generator,
    class_dependent: bool = False,
    priors: IsingPriors | None = None,
) -> LatentFit:
    """Ising model of any number of judges, by generalised EM from majority.

    Model: as ``ising_shared`` and ``ising_class``, with the pseudo-likelihood in the M-step. It
    agrees with exact maximum likelihood as items grow, and has no likelihood to report (and so
    none to be chosen by).
    Assumptions and failures as there; besides, EM is slow and may stop short where the classes
    are hardly told apart, and gaps are dropped instead of summed out.
    Source: ising-aggregation, algorithm 1 and appendix E; Hoefling and Tibshirani 2009.

    Args:
        patterns: the votes.
        rng: moves the Gibbs chains of the E-step.
        class_dependent: couplings of their own in each class.
        priors: the prior, as for the exact models.

    Raises:
        NotIdentifiedError: fewer than four (class-dependent: five) different judges.
        StatisticsError: no votes at all, or more gaps than :data:`MOST_MISSING`.
    """
    name = "ising-pseudo-class" if class_dependent else "ising-pseudo"
    least = 5 if class_dependent else 4
    require_identified(patterns, name, at_least=least, n_params=3 * least)
    _require_complete(patterns, name)
    regression = _NodeRegressions.of(patterns, class_dependent, priors or IsingPriors())
    theta = regression.start(patterns)
    p = observe(vote_share(patterns), patterns.labels)
    seed = int(rng.integers(2**63))
    change, n_iter = np.inf, 0
    law = regression.law(theta, 0.5, 0.0)
    while change > TOLERANCE and n_iter < MAX_ITER:
        theta = regression.maximise(theta, p)
        prior = float((patterns.counts @ p + 1) / (patterns.weight + 2))
        # The same random numbers in every step: the estimate is then a smooth function of the
        # parameters, and EM settles instead of chasing the noise of the chains.
        again = np.random.default_rng(seed)
        log_ratio = log_normaliser_ratio(regression.law(theta, prior, 0.0), again)
        law = regression.law(theta, prior, log_ratio)
        levels = law.log_likelihoods(patterns.votes)
        new = observe(sigmoid(levels[:, 1] - levels[:, 0] + logit(prior)), patterns.labels)
        change, p, n_iter = float(np.abs(new - p).max()), new, n_iter + 1
    if agreement(p, vote_share(patterns), patterns.counts) < 0.5 and not has_labels(patterns):
        law, p = _swap_classes(law), observe(1 - p, patterns.labels)
    return _fit_of(name, patterns, law, p, n_iter, change)


def _require_complete(patterns: Patterns, name: str) -> None:
    missing = patterns.missing_share
    if missing > MOST_MISSING:
        raise StatisticsError(
            f"{name}: {missing:.0%} of the votes are missing, and the pseudo-likelihood drops "
            "them instead of integrating over them; the factor model has no such limit"
        )


def _swap_classes(law: UnnormalisedIsing) -> UnnormalisedIsing:
    """The law with the names of the two classes swapped: votes cannot tell, the anchor can."""
    return replace(
        law,
        prior=1 - law.prior,
        fields=law.fields[::-1],
        couplings=law.couplings[::-1],
        log_ratio=-law.log_ratio,
    )


def log_normaliser_ratio(law: UnnormalisedIsing, rng: np.random.Generator) -> float:
    """Log Z_1 - log Z_0 by thermodynamic integration along the path from class 0 to class 1.

    Every chain starts at random spins and spends the first third of its sweeps forgetting them.

    Args:
        law: the fields and couplings of either class.
        rng: moves the Gibbs chains.
    """
    state = np.where(rng.random((STEPS, CHAINS, law.fields.shape[1])) < 0.5, -1.0, 1.0)
    at = np.linspace(0, 1, STEPS)
    field = law.fields[0] + at[:, None] * (law.fields[1] - law.fields[0])
    pull = law.couplings[0] + at[:, None, None] * (law.couplings[1] - law.couplings[0])
    slope = np.zeros(STEPS)
    for sweep in range(SWEEPS):
        for judge in range(state.shape[2]):
            local = field[:, judge, None] + np.einsum("sck,sk->sc", state, pull[:, judge])
            up = rng.random(local.shape) < sigmoid(2 * local)
            state[:, :, judge] = np.where(up, 1.0, -1.0)
        if sweep >= SWEEPS // 3:
            slope += _energy_gap(law, state)
    slope /= SWEEPS - SWEEPS // 3
    return float(np.trapezoid(slope, at))


def _energy_gap(law: UnnormalisedIsing, state: Floats) -> Floats:
    """Mean energy in class 1 minus class 0 at each point of the path."""
    linear = state @ (law.fields[1] - law.fields[0])
    apart = law.couplings[1] - law.couplings[0]
    if apart.any():
        linear = linear + 0.5 * np.einsum("sck,sck->sc", state @ apart, state)
    return np.asarray(linear.mean(axis=1))


@dataclass(frozen=True, slots=True)
class _NodeRegressions:
    """The penalised pseudo-likelihood of (h, a, W, D) under given posteriors."""

    vote_spins: Floats
    present: Bools
    counts: Floats
    class_dependent: bool
    penalty: GaussianPenalty

    @classmethod
    def of(cls, patterns: Patterns, class_dependent: bool, priors: IsingPriors) -> _NodeRegressions:
        k = patterns.n_judges
        # A local field adds up k - 1 couplings: for fields of one size couplings shrink as 1 / k, as
        # in equation (6), and their precision grows as its square. Below ten judges as is.
        penalty = ising_penalty(
            patterns.weight,
            k,
            k * (k - 1) // 2,
            priors,
            class_dependent=class_dependent,
            n_before=0,
            stiffness=max(1.0, k / 10) ** 2,
        )
        return cls(patterns.spins, patterns.present, patterns.counts, class_dependent, penalty)

    @property
    def k(self) -> int:
        return int(self.vote_spins.shape[1])

    def start(self, patterns: Patterns) -> Floats:
        """Every judge equally skilled, its lean taken from its vote rate, no couplings."""
        theta = self.penalty.centre.copy()
        theta[: self.k] = logit(patterns.vote_rates) / 2
        return theta

    def law(self, theta: Floats, prior: float, log_ratio: float) -> UnnormalisedIsing:
        k = self.k
        signs = np.array([-1.0, 1.0])
        fields = theta[:k] + signs[:, None] * theta[k : 2 * k]
        couplings_shared, couplings_contrast = self._matrices(theta)
        couplings = couplings_shared + signs[:, None, None] * couplings_contrast
        return UnnormalisedIsing(prior, fields, couplings, log_ratio, len(theta) + 1)

    def maximise(self, theta: Floats, p: Floats) -> Floats:
        from scipy.optimize import minimize

        weights = self.counts[:, None] * np.column_stack([1 - p, p])
        end = minimize(
            self.loss,
            theta,
            args=(weights,),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": STEPS_OF_M, "gtol": 1e-5},
        )
        return np.asarray(end.x)

    def loss(self, theta: Floats, weights: Floats) -> tuple[float, Floats]:
        """Minus the penalised pseudo-likelihood per unit of weight, and its gradient."""
        k = self.k
        law = self.law(theta, 0.5, 0.0)
        value, gradient = self.penalty.of(theta)
        for y, sign in enumerate((-1.0, 1.0)):
            local = law.fields[y] + self.vote_spins @ law.couplings[y]
            small = np.exp(-2 * np.abs(local))
            # In terms of |l|, so that nothing overflows. A tie has spin 0, which makes its loss the
            # mean of the losses of its two resolutions: half a vote either way.
            loss = np.abs(local) + np.log1p(small) - self.vote_spins * local
            weight = weights[:, y, None] * self.present
            value += float((weight * loss).sum())
            mean_spin = np.copysign((1 - small) / (1 + small), local)
            residual = weight * (mean_spin - self.vote_spins)
            single = residual.sum(axis=0)
            double = residual.T @ self.vote_spins
            # W_jk stands in the regression of judge j and in that of judge k.
            double = (double + double.T)[np.triu_indices(k, 1)]
            gradient[:k] += single
            gradient[k : 2 * k] += sign * single
            n = len(double)
            gradient[2 * k : 2 * k + n] += double
            if self.class_dependent:
                gradient[2 * k + n :] += sign * double
        scale = self.counts.sum()
        return value / scale, gradient / scale

    def _matrices(self, theta: Floats) -> tuple[Floats, Floats]:
        k = self.k
        upper = np.triu_indices(k, 1)
        n = len(upper[0])
        couplings_shared, couplings_contrast = np.zeros((k, k)), np.zeros((k, k))
        couplings_shared[upper] = theta[2 * k : 2 * k + n]
        if self.class_dependent:
            couplings_contrast[upper] = theta[2 * k + n :]
        return couplings_shared + couplings_shared.T, couplings_contrast + couplings_contrast.T


def _fit_of(
    name: str,
    patterns: Patterns,
    law: UnnormalisedIsing,
    p: Floats,
    n_iter: int,
    change: float,
) -> LatentFit:
    agrees = agreement(p, vote_share(patterns), patterns.counts)
    fit = LatentFit(
        name=name,
        patterns=patterns,
        parameters=law,
        pattern_posterior=p,
        log_likelihood=None,
        n_params=law.n_params,
        converged=change <= TOLERANCE,
        n_iter=n_iter,
        residual=change,
        anchor_agreement=agrees,
        start="majority",
        starts=(FitStart("majority", float("-inf"), agrees, change <= TOLERANCE),),
    )
    if not fit.converged:
        fit = fit.with_warnings(f"EM stopped after {n_iter} iterations without converging")
    return warn_if_ambiguous(fit)


@dataclass(frozen=True, slots=True)
class StrengthChoice:
    """The chosen strength of a prior, and what each strength scored.

    Attributes:
        fit: the model under the chosen prior, fitted to all votes.
        priors: the chosen prior.
        strength: its value in the grid.
        grid: the values tried, hardest first.
        held_out: mean held-out log-likelihood per item of each.
    """

    fit: LatentFit
    priors: IsingPriors
    strength: float
    grid: tuple[float, ...]
    held_out: tuple[float, ...]


def choose_strength(
    fit: Callable[..., LatentFit],
    patterns: Patterns,
    *,
    rng: np.random.Generator,
    prior_of: Callable[[float], IsingPriors] = ridge_of,
    grid: Sequence[float] = GRID,
    groups: npt.ArrayLike | None = None,
) -> StrengthChoice:
    """Choose how hard the prior of an exact Ising model holds, by held-out votes.

    The hardest within one standard error, paired by item, of the best held-out likelihood: weak
    priors let couplings explain what the class should. Under each, the model is fitted afresh and
    from where the harder one ended, and the higher peak is kept: a path of warm starts stays in a
    basin that a weaker prior would leave. The softer ones are not tried once one is worse than the
    best by more than its error.

    Args:
        fit: ``ising_shared``, ``ising_class``, or ``ising_family`` with its families bound.
        patterns: the votes.
        rng: draws the folds.
        prior_of: the prior of each value: :func:`ridge_of` or :func:`~clash.stats.latent.ising.whole_prior`.
        grid: values to try; the larger, the harder.
        groups: shape (n_items,): items of one group are held out together.

    Raises:
        StatisticsError: an empty grid, or the model is refused on some fold.
    """
    values = tuple(sorted(grid, reverse=True))
    if not values:
        raise StatisticsError("no strength of the prior to choose from")
    fold = folds(patterns.n_items, FOLDS, rng, groups)
    fits: list[LatentFit] = []
    scores: list[HeldOutScores] = []
    for value in values:
        fitter = partial(fit, priors=prior_of(value))
        ends = [fitter(patterns), *(fitter(patterns, warm=last) for last in fits[-1:])]
        fits.append(max(ends, key=_peak))
        refit = partial(fitter, tol=1e-4, warm=fits[-1])
        scores.append(votes_held_out(str(value), refit, patterns, fold))
        if not within_one_standard_error(scores[-1], max(scores, key=mean_score)):
            break
    best = max(scores, key=mean_score)
    if best.scores is None:
        raise StatisticsError(best.refusal)
    position = next(i for i, score in enumerate(scores) if within_one_standard_error(score, best))
    return StrengthChoice(
        fits[position],
        prior_of(values[position]),
        values[position],
        values[: len(scores)],
        tuple(score.mean for score in scores),
    )


def _peak(fit: LatentFit) -> float:
    """The penalised log-likelihood where the winning start ended."""
    return next(start.objective for start in fit.starts if start.name == fit.start)
