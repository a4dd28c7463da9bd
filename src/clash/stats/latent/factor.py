"""Judges moved by something besides the truth: logistic-normal latent factors.

Given the truth y and factors z ~ N(0, I), judges are independent with
``P(vote 1) = sigmoid(b_j + t a_j + loading_j . z)``, t = +1 for y = 1, else -1. The integrals over
z are Gauss-Hermite sums: exact in effect, whatever the number of judges, and a missing vote simply
has no factor in them. Loadings that change sign with the truth (an item's difficulty, equation 21)
give the same law of the votes, z being symmetric within either class: one model covers both.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from clash.errors import StatisticsError
from clash.stats.latent.fit import LatentFit, share_decided_apart
from clash.stats.latent.identifiability import (
    group_codes,
    require_families,
    require_identified,
    require_votes,
)
from clash.stats.latent.marginal_likelihood import CLEARLY, GaussianPenalty, fit_from
from clash.stats.latent.quadrature import (
    FactorIntegral,
    FactorLaw,
    GroupVotes,
    integrate,
    own_rule,
    product_rule,
    residuals,
    sides,
    votes_by_group,
)
from clash.stats.logistic import logit, sigmoid

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.stats.latent.patterns import Patterns
    from clash.stats.typing import Floats


CLASS_NODES = 11
"""Nodes of a factor whose loadings differ by class: enough for the decision, and a third cheaper."""
CLASS_STARTS = ((0.5, 0.5), (0.1, 2.0), (2.0, 0.1))
"""Loadings in class 0 and 1 to start from: alike, and a factor of one class alone."""
LEAST_EFFECT = 0.3
"""Class effect that an exchanged start gives a judge at least."""


@dataclass(frozen=True, slots=True)
class FactorPriors:
    """How firmly the prior holds; ``skill`` and ``chance`` as a share of the items' weight.

    Attributes:
        skill: pull of every judge's class effect towards the judges' mean.
        chance: pull of the class effects towards ``typical``.
        loading: precision of a loading, in items.
        alike: pull of the loadings towards their common mean, as a share of the items' weight.
        typical: class effect of a typical judge; 0.85 is 70% right.
    """

    skill: float = 0.02
    chance: float = 0.001
    loading: float = 1.0
    alike: float = 0.0
    typical: float = 0.85


def factor(
    patterns: Patterns,
    *,
    rank: int = 1,
    priors: FactorPriors | None = None,
    tol: float = 1e-5,
    warm: LatentFit | None = None,
) -> LatentFit:
    """Latent factors shared by all judges.

    Model: something besides the truth (length, style, difficulty) moves the judges together; to
    second order a low-rank class-independent Ising model (proposition 1, equation 21).
    Assumes normal factors and independence beyond them. Fails where the factor separates the
    items better than the truth does: the two then change places, and the better-than-chance
    prior decides.
    Source: ising-aggregation, appendix D.3; Whitehill et al. 2009 for difficulty.

    Args:
        patterns: the votes, of any number of judges; missing votes cost nothing.
        rank: number of factors, 1 or 2.
        priors: the prior.
        tol: largest entry of the gradient per item at which the optimiser stops.
        warm: a fit to nearly the same votes to start from, for folds.

    Raises:
        NotIdentifiedError: fewer than four (rank 1) or five (rank 2) different judges.
        StatisticsError: no votes, or a rank other than 1 and 2.
    """
    if rank not in (1, 2):
        raise StatisticsError(f"rank must be 1 or 2, not {rank}; factor_laplace takes more")
    name = "factor" if rank == 1 else f"factor-{rank}"
    at_least = 3 + rank
    require_identified(patterns, name, at_least=at_least, n_params=(2 + rank) * at_least + 1)
    model = FactorModel.of(patterns, rank, None, priors or FactorPriors())
    fit = fit_from(name, model, patterns, _starts(model, patterns), tol=tol, warm=warm)
    if warm is not None or rank != 1:
        return fit
    return better_reading(fit, fit_exchanged(patterns, fit, priors=priors, tol=tol))


def fit_exchanged(
    patterns: Patterns,
    fit: LatentFit,
    *,
    priors: FactorPriors | None = None,
    tol: float = 1e-5,
) -> LatentFit:
    """The other reading of a rank 1 fit: what was its class as the factor, and the reverse.

    Where two things split the items, either may be taken for the truth; this climbs from the
    fit with the two exchanged.
    """
    model = FactorModel.of(patterns, 1, None, priors or FactorPriors())
    start = model.exchange_class_and_factor(
        fit.theta if fit.theta is not None else model.start(patterns)
    )
    return fit_from(fit.name, model, patterns, {"class and factor exchanged": start}, tol=tol)


def better_reading(fit: LatentFit, alternative: LatentFit) -> LatentFit:
    """The other reading where it explains the votes clearly better."""
    winning_start = next(start for start in fit.starts if start.name == fit.start)
    alternative_start, share_apart = alternative.starts[0], share_decided_apart(fit, alternative)
    if alternative_start.objective - winning_start.objective > CLEARLY * fit.patterns.weight:
        return replace(
            alternative, starts=(replace(winning_start, differs=share_apart), alternative_start)
        )
    return replace(fit, starts=(*fit.starts, replace(alternative_start, differs=share_apart)))


def factor_family(
    patterns: Patterns,
    families: Sequence[object],
    *,
    priors: FactorPriors | None = None,
    tol: float = 1e-5,
    warm: LatentFit | None = None,
) -> LatentFit:
    """One latent factor per family: judges of a family err together, families do not.

    Model: as :func:`factor`, each judge loading on its family's factor alone, so that the law is
    a product over families and exact for any number of judges.
    Assumes families independent given the truth. Fails where dependence runs across families.
    Source: ising-aggregation, appendices B and D.3.

    Raises:
        NotIdentifiedError: fewer than three families that vote both ways, or no family with
            two judges.
    """
    groups = group_codes(families, patterns.n_judges)
    require_families(patterns, groups, "factor-family")
    model = FactorModel.of(patterns, 0, groups, priors or FactorPriors())
    return fit_from("factor-family", model, patterns, _starts(model, patterns), tol=tol, warm=warm)


def factor_blocs(
    patterns: Patterns,
    blocs: Sequence[int],
    *,
    priors: FactorPriors | None = None,
    tol: float = 1e-5,
    warm: LatentFit | None = None,
) -> LatentFit:
    """One latent factor per bloc: :func:`factor_family` where the votes name the families.

    Model: judges of a bloc err together, blocs do not. A bloc of near-copies gets a large loading
    and counts as little more than one judge. No factor is shared by all, so that a class cannot
    change places with it: what many blocs agree on is the class.
    Assumes and fails as :func:`factor_family`, and where the one bloc is right and the others share
    an error that has no bloc of its own.

    Args:
        patterns: the votes.
        blocs: the bloc of each judge, as of :func:`clash.stats.latent.vote_correlations.correlated_blocs`.
        priors: the prior.
        tol: largest entry of the gradient per item at which the optimiser stops.
        warm: a fit to nearly the same votes to start from, for folds.

    Raises:
        NotIdentifiedError: fewer than three blocs that vote both ways, or no bloc of two judges.
    """
    fit = factor_family(patterns, blocs, priors=priors, tol=tol, warm=warm)
    return replace(fit, name="factor-blocs")


def factor_class(
    patterns: Patterns,
    *,
    priors: FactorPriors | None = None,
    tol: float = 1e-5,
    warm: LatentFit | None = None,
) -> LatentFit:
    """A latent factor with loadings of its own in each class.

    Model: as :func:`factor` of rank 1, the loadings of class 0 and class 1 apart: judges that err
    together on bad items alone, or a factor that is there in one class only. To second order a
    class-dependent low-rank Ising model, for any number of judges and any gaps.
    Assumes and fails as :func:`factor`, with one more parameter a judge: unlabelled votes tell
    which class a dependence belongs to only where there are many judges or many items.
    Source: ising-aggregation, equations (1) and (21), appendix D.3.

    Raises:
        NotIdentifiedError: fewer than five different judges.
        StatisticsError: no votes at all.
    """
    require_identified(patterns, "factor-class", at_least=5, n_params=4 * 5 + 1)
    model = FactorModel.of(patterns, 1, None, priors or FactorPriors(), by_class=True)
    starts = {
        f"loadings {low:g} in class 0, {high:g} in class 1": model.start_by_class(
            patterns, low, high
        )
        for low, high in CLASS_STARTS
    }
    return fit_from("factor-class", model, patterns, starts, tol=tol, warm=warm)


def _starts(model: FactorModel, patterns: Patterns) -> dict[str, Floats]:
    """Equal skill with weak factors, and with factors as strong as near-copies need."""
    weak = model.start(patterns)
    strong = weak.copy()
    strong[1 + 2 * model.n_judges :] *= 5
    return {"equal skill, weak factors": weak, "equal skill, strong factors": strong}


def trait(
    patterns: Patterns,
    *,
    rank: int = 1,
    families: Sequence[object] | None = None,
    tol: float = 1e-5,
    warm: LatentFit | None = None,
) -> LatentFit:
    """Votes without any truth: judges moved by ``rank`` continuous traits alone.

    Model: item response theory, the factor model with every class effect pinned at 0. It is the
    rival that a class has to beat: with one more trait it has as many parameters as the factor
    model has with its class. Where the rival explains new votes as well, nothing in the votes
    says that the items fall into two classes. Its posterior is 1/2 everywhere. With ``families``
    there is a factor per family besides.
    Source: Lazarsfeld's distinction of latent class and latent trait; compare Vuong 1989.

    Raises:
        StatisticsError: no votes at all.
    """
    require_votes(patterns)
    priors = FactorPriors(chance=1e6, typical=0.0)
    groups = None if families is None else group_codes(families, patterns.n_judges)
    model = FactorModel.of(patterns, rank, groups, priors)
    starts = {"equal loadings": model.start(patterns)}
    fit = fit_from(f"trait-{rank}", model, patterns, starts, tol=tol, warm=warm)
    return replace(fit, n_params=fit.n_params - patterns.n_judges - 1, warnings=())


@dataclass(frozen=True, slots=True)
class FactorModel:
    """The likelihood as a function of (log-odds of the prior, b, a, shared and own loadings).

    ``by_class`` has one shared factor, and after its loadings what the classes differ by in them.
    """

    sheets: tuple[GroupVotes, ...]
    n_judges: int
    rank: int
    groups: tuple[int, ...]
    nodes: int
    penalty: GaussianPenalty = field(repr=False)
    by_class: bool = False

    @classmethod
    def of(
        cls,
        patterns: Patterns,
        rank: int,
        groups: Sequence[int] | None,
        priors: FactorPriors,
        *,
        by_class: bool = False,
    ) -> FactorModel:
        """The model of these votes; a judge alone in its group has no loading of its own."""
        dimensions = rank + (groups is not None)
        nodes = CLASS_NODES if by_class else _nodes(patterns.n_judges, dimensions)
        penalty = gaussian_prior(patterns, rank + by_class, groups, priors)
        group_codes = tuple(groups or ())
        sheets = votes_by_group(patterns.votes, group_codes)
        return cls(sheets, patterns.n_judges, rank, group_codes, nodes, penalty, by_class)

    def start(self, patterns: Patterns) -> Floats:
        """Every judge equally skilled and equally loaded, its lean taken from its vote rate."""
        k = self.n_judges
        theta = self.penalty.centre.copy()
        theta[1 : 1 + k] = logit(patterns.vote_rates)
        loadings = theta[1 + 2 * k :]
        loadings[: k * min(self.rank, 1)] = 0.5
        if self.rank == 2:  # a second factor that splits the judges, or it would stay at 0
            loadings[k : 2 * k] = 0.3 * (-1.0) ** np.arange(k)
        if self.groups:
            loadings[k * self.rank :] = 0.5 * self._social()
        return theta

    def start_by_class(self, patterns: Patterns, low: float, high: float) -> Floats:
        """Every judge equally skilled, with one loading in class 0 and one in class 1."""
        theta, k = self.start(patterns), self.n_judges
        theta[1 + 2 * k : 1 + 3 * k] = (low + high) / 2
        theta[1 + 3 * k :] = (high - low) / 2
        return theta

    def evaluate(self, theta: Floats) -> tuple[Floats, tuple[FactorLaw, FactorIntegral]]:
        """Log-likelihoods, and the integrals they came from."""
        law = self.law(theta)
        integral = integrate(law, self.sheets)
        return np.repeat(integral.value, 3 - integral.value.shape[1], axis=1), (law, integral)

    def gradient(self, state: tuple[FactorLaw, FactorIntegral], weights: Floats) -> Floats:
        """Expected residuals of the votes, summed with the factors at each node."""
        law, integral = state
        k, signs = self.n_judges, np.array(sides(law))
        of_class = weights if len(signs) == 2 else weights.sum(axis=1, keepdims=True)
        out = np.zeros_like(self.penalty.centre)
        nodes, _ = product_rule(law.nodes, self.rank)
        outer = (integral.share * of_class[:, :, None]).reshape(len(weights), -1)
        for sheet, node_weights, right in zip(
            self.sheets, integral.own_weights, integral.right, strict=True
        ):
            apart = residuals(sheet, sheet.sum_patterns(outer), node_weights, right)
            total = apart.sum(axis=(2, 3))
            out[1 + sheet.judges] += total.sum(axis=1)
            if len(signs) == 2:
                out[1 + k + sheet.judges] += total @ signs
            along = apart.sum(axis=3) @ nodes
            for r in range(self.rank):
                out[1 + (2 + r) * k + sheet.judges] += along[:, :, r].sum(axis=1)
            if self.by_class:
                out[1 + 3 * k + sheet.judges] += along[:, :, 0] @ signs
            if law.groups:
                point, _ = own_rule(law, sheet)
                out[1 + (2 + self.rank) * k + sheet.judges] += (
                    apart.sum(axis=(1, 2)) @ point * self._social()[sheet.judges]
                )
        return out

    def law(self, theta: Floats) -> FactorLaw:
        """The vector as leans, skills and loadings."""
        k = self.n_judges
        loadings = theta[1 + 2 * k : 1 + (2 + self.rank) * k].reshape(self.rank, k).T
        own_loadings = (
            theta[1 + (2 + self.rank) * k :] * self._social() if self.groups else np.zeros(k)
        )
        n_own_loadings = int(self._social().sum()) if self.groups else 0
        return FactorLaw(
            float(sigmoid(theta[0])),
            theta[1 : 1 + k],
            theta[1 + k : 1 + 2 * k],
            loadings,
            own_loadings,
            self.groups,
            self.nodes,
            1 + (2 + self.rank + self.by_class) * k + n_own_loadings,
            theta[1 + 3 * k :, None] if self.by_class else None,
        )

    def swap_classes(self, theta: Floats) -> Floats:
        """The vector with the names of the two classes swapped."""
        out = swap_class_names(theta, self.n_judges)
        if self.by_class:
            out[1 + 3 * self.n_judges :] *= -1
        return out

    def exchange_class_and_factor(self, theta: Floats) -> Floats:
        """The vector of rank 1 with class effects as loadings, and loadings as class effects."""
        out, k = theta.copy(), self.n_judges
        out[1 + k : 1 + 2 * k] = np.maximum(np.abs(theta[1 + 2 * k :]), LEAST_EFFECT)
        out[1 + 2 * k :] = theta[1 + k : 1 + 2 * k]
        return out

    def _social(self) -> Floats:
        """1 for a judge that shares its group, 0 for one that is alone in it."""
        groups = np.asarray(self.groups)
        return np.asarray((groups[:, None] == groups).sum(axis=1) > 1, np.float64)


def swap_class_names(theta: Floats, n_judges: int) -> Floats:
    """The parameters with the names of the two classes swapped: log-odds and effects change sign."""
    out = theta.copy()
    out[0] *= -1
    out[1 + n_judges : 1 + 2 * n_judges] *= -1
    return out


def _nodes(n_judges: int, dimensions: int) -> int:
    """Nodes per factor: many judges make sharp integrands, two dimensions square the cost."""
    if dimensions > 1:
        return 9
    return 15 if n_judges <= 15 else 25


def gaussian_prior(
    patterns: Patterns, rank: int, groups: Sequence[int] | None, priors: FactorPriors
) -> GaussianPenalty:
    """The prior on (log-odds of the prior, b, a, shared and own loadings)."""
    n, k = patterns.weight, patterns.n_judges
    n_loadings = k * (rank + (groups is not None))
    precision = np.concatenate(
        [
            np.full(1, 2.0),
            np.full(k, 0.1),
            np.full(k, priors.chance * n + 0.5),
            np.full(n_loadings, priors.loading),
        ]
    )
    centre = np.zeros(len(precision))
    skills = slice(1 + k, 1 + 2 * k)
    centre[skills] = priors.typical
    alike = [(skills, priors.skill * n)]
    if priors.alike and rank == 1:
        alike.append((slice(1 + 2 * k, 1 + 3 * k), priors.alike * n))
    return GaussianPenalty(centre, precision, tuple(alike))
