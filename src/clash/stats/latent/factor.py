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
from clash.stats.latent.fit import LatentFit, logit, sigmoid
from clash.stats.latent.identify import (
    numbered,
    require_families,
    require_identified,
    require_votes,
)
from clash.stats.latent.marginal import Penalty, fit_from
from clash.stats.latent.patterns import TIE, Codes, Floats, Patterns

if TYPE_CHECKING:
    from collections.abc import Sequence

CLASSES = (-1.0, 1.0)


@dataclass(frozen=True, slots=True)
class Strength:
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


@dataclass(frozen=True, slots=True)
class FactorLaw:
    """A logistic-normal law of the votes.

    Attributes:
        prior: P(truth = 1).
        lean: b, shape (n_judges,).
        skill: a, shape (n_judges,).
        loadings: shape (n_judges, rank): on the factors that every judge shares.
        own: shape (n_judges,): on the factor of the judge's own group.
        groups: the group of each judge, shape (n_judges,); empty where there are no groups.
        nodes: Gauss-Hermite nodes per factor.
        n_params: free parameters.
    """

    prior: float
    lean: Floats
    skill: Floats
    loadings: Floats
    own: Floats
    groups: tuple[int, ...]
    nodes: int
    n_params: int

    def log_likelihoods(self, votes: Codes) -> Floats:
        """Log P(votes | truth = 0 and 1), shape (n, 2)."""
        one = np.where(votes == TIE, 0.5, votes == 1)
        zero = np.where(votes == TIE, 0.5, votes == 0)
        done = [_integrate(self, one, zero, y).value for y in _sides(self)]
        return np.column_stack(done * (3 - len(done)))


def factor(
    patterns: Patterns,
    *,
    rank: int = 1,
    strength: Strength | None = None,
    nodes: int = 0,
    tol: float = 1e-5,
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
        strength: the prior.
        nodes: Gauss-Hermite nodes per factor; 0 chooses by the number of judges.
        tol: largest entry of the gradient per item at which the optimiser stops.

    Raises:
        NotIdentifiedError: fewer than four (rank 1) or five (rank 2) different judges.
        StatisticsError: no votes, or a rank other than 1 and 2.
    """
    if rank not in (1, 2):
        raise StatisticsError(f"rank must be 1 or 2, not {rank}")
    name = "factor" if rank == 1 else f"factor-{rank}"
    at_least = 3 + rank
    require_identified(patterns, name, at_least=at_least, n_params=(2 + rank) * at_least + 1)
    model = FactorModel.of(patterns, rank, None, strength or Strength(), nodes)
    return fit_from(name, model, patterns, _starts(model, patterns), tol=tol)


def factor_family(
    patterns: Patterns,
    families: Sequence[object],
    *,
    strength: Strength | None = None,
    nodes: int = 0,
    tol: float = 1e-5,
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
    groups = numbered(families, patterns.n_judges)
    require_families(patterns, groups, "factor-family")
    model = FactorModel.of(patterns, 0, groups, strength or Strength(), nodes)
    return fit_from("factor-family", model, patterns, _starts(model, patterns), tol=tol)


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
    nodes: int = 0,
    tol: float = 1e-5,
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
    pinned = Strength(chance=1e6, typical=0.0)
    groups = None if families is None else numbered(families, patterns.n_judges)
    model = FactorModel.of(patterns, rank, groups, pinned, nodes)
    starts = {"equal loadings": model.start(patterns)}
    fit = fit_from(f"trait-{rank}", model, patterns, starts, tol=tol)
    return replace(fit, n_params=fit.n_params - patterns.n_judges - 1, warnings=())


@dataclass(frozen=True, slots=True)
class _Integral:
    """The log of an integral, and the weights of its nodes.

    Attributes:
        value: shape (n,).
        share: posterior weight of each node of the shared factors, shape (n, shared).
        own: per group, posterior weight of each joint node, shape (n, shared, own).
        right: per group, P(vote 1) at each joint node, shape (judges, shared, own).
    """

    value: Floats
    share: Floats
    own: tuple[Floats, ...]
    right: tuple[Floats, ...]


def _integrate(law: FactorLaw, one: Floats, zero: Floats, y: int) -> _Integral:
    """Log P(votes | y), with what its gradient needs."""
    shared, log_shared = product_rule(law.nodes, law.loadings.shape[1])
    point, log_point = product_rule(law.nodes, 1) if law.groups else product_rule(1, 1)
    base = (law.lean + CLASSES[y] * law.skill)[:, None] + law.loadings @ shared.T
    groups = np.asarray(law.groups or [0] * len(law.lean))
    inner, own, right = [], [], []
    for group in np.unique(groups):
        judges = np.flatnonzero(groups == group)
        eta = base[judges][:, :, None] + law.own[judges][:, None, None] * point[:, 0]
        width = eta.shape[1] * eta.shape[2]
        flat = eta.reshape(len(judges), width)
        level = -(one[:, judges] @ np.logaddexp(0, -flat) + zero[:, judges] @ np.logaddexp(0, flat))
        level = level.reshape(len(one), eta.shape[1], eta.shape[2]) + log_point
        top = level.max(axis=2, keepdims=True)
        weight = np.exp(level - top)
        total = weight.sum(axis=2, keepdims=True)
        inner.append((top + np.log(total))[:, :, 0])
        own.append(weight / total)
        right.append(sigmoid(eta))
    outer = np.sum(inner, axis=0) + log_shared
    top = outer.max(axis=1, keepdims=True)
    weight = np.exp(outer - top)
    total = weight.sum(axis=1, keepdims=True)
    return _Integral((top + np.log(total))[:, 0], weight / total, tuple(own), tuple(right))


def _sides(law: FactorLaw) -> tuple[int, ...]:
    """The classes that differ: without any class effect one stands for both."""
    return (0, 1) if law.skill.any() else (0,)


def product_rule(nodes: int, rank: int) -> tuple[Floats, Floats]:
    """Nodes (size, rank) and log-weights (size,) for the standard normal in ``rank`` dimensions."""
    if rank == 0 or nodes == 1:
        return np.zeros((1, rank)), np.zeros(1)
    point, weight = np.polynomial.hermite_e.hermegauss(nodes)
    log_weight = np.log(weight) - 0.5 * np.log(2 * np.pi)
    grid = np.meshgrid(*[point] * rank, indexing="ij")
    logs = np.meshgrid(*[log_weight] * rank, indexing="ij")
    return np.column_stack([g.ravel() for g in grid]), np.sum([g.ravel() for g in logs], axis=0)


@dataclass(frozen=True, slots=True)
class FactorModel:
    """The likelihood as a function of (log-odds of the prior, b, a, shared and own loadings)."""

    one: Floats
    zero: Floats
    rank: int
    groups: tuple[int, ...]
    nodes: int
    penalty: Penalty = field(repr=False)

    @classmethod
    def of(
        cls,
        patterns: Patterns,
        rank: int,
        groups: Sequence[int] | None,
        strength: Strength,
        nodes: int,
    ) -> FactorModel:
        """The model of these votes; a judge alone in its group has no loading of its own."""
        chosen = nodes or _nodes(patterns.n_judges, rank + (groups is not None))
        penalty = _penalty(patterns, rank, groups, strength)
        return cls(
            patterns.for_one,
            patterns.for_zero,
            rank,
            tuple(groups or ()),
            chosen,
            penalty,
        )

    @property
    def n_judges(self) -> int:
        """Judges of the panel."""
        return int(self.one.shape[1])

    def start(self, patterns: Patterns) -> Floats:
        """Every judge equally skilled and equally loaded, its lean taken from its vote rate."""
        k = self.n_judges
        theta = self.penalty.centre.copy()
        votes = patterns.counts @ patterns.for_one + 1
        theta[1 : 1 + k] = logit(votes / (patterns.counts @ patterns.observed + 2))
        loadings = theta[1 + 2 * k :]
        loadings[: k * min(self.rank, 1)] = 0.5
        if self.rank == 2:  # a second factor that splits the judges, or it would stay at 0
            loadings[k : 2 * k] = 0.3 * (-1.0) ** np.arange(k)
        if self.groups:
            loadings[k * self.rank :] = 0.5 * self._social()
        return theta

    def evaluate(self, theta: Floats) -> tuple[Floats, tuple[FactorLaw, list[_Integral]]]:
        """Log-likelihoods, and the integrals they came from."""
        law = self.law(theta)
        done = [_integrate(law, self.one, self.zero, y) for y in _sides(law)]
        done = done * (3 - len(done))
        return np.column_stack([integral.value for integral in done]), (law, done)

    def gradient(self, kept: tuple[FactorLaw, list[_Integral]], weights: Floats) -> Floats:
        """Expected residuals of the votes, summed with the factors at each node."""
        law, done = kept
        k = self.n_judges
        out = np.zeros_like(self.penalty.centre)
        shared, _ = product_rule(law.nodes, self.rank)
        point, _ = product_rule(law.nodes, 1) if law.groups else product_rule(1, 1)
        groups = np.asarray(law.groups or [0] * k)
        for y in _sides(law):
            integral, sign = done[y], CLASSES[y]
            mass_of_class = weights[:, y] if law.skill.any() else weights.sum(axis=1)
            outer = integral.share * mass_of_class[:, None]
            for group, own, right in zip(
                np.unique(groups), integral.own, integral.right, strict=True
            ):
                judges = np.flatnonzero(groups == group)
                mass = own * outer[:, :, None]
                flat = mass.reshape(len(mass), -1)
                yes = (self.one[:, judges].T @ flat).reshape(right.shape)
                seen = yes + (self.zero[:, judges].T @ flat).reshape(right.shape)
                residual = yes - seen * right
                total = residual.sum(axis=(1, 2))
                out[1 + judges] += total
                out[1 + k + judges] += sign * total * law.skill.any()
                for r in range(self.rank):
                    along = residual.sum(axis=2) @ shared[:, r]
                    out[1 + 2 * k + r * k + judges] += along
                if law.groups:
                    along = residual.sum(axis=1) @ point[:, 0]
                    out[1 + (2 + self.rank) * k + judges] += along * self._social()[judges]
        return out

    def law(self, theta: Floats) -> FactorLaw:
        """The vector as leans, skills and loadings."""
        k = self.n_judges
        shared = theta[1 + 2 * k : 1 + (2 + self.rank) * k].reshape(self.rank, k).T
        own = theta[1 + (2 + self.rank) * k :] * self._social() if self.groups else np.zeros(k)
        n_own = int(self._social().sum()) if self.groups else 0
        return FactorLaw(
            float(sigmoid(theta[0])),
            theta[1 : 1 + k],
            theta[1 + k : 1 + 2 * k],
            shared,
            own,
            self.groups,
            self.nodes,
            1 + (2 + self.rank) * k + n_own,
        )

    def flipped(self, theta: Floats) -> Floats:
        """The vector with the names of the two classes swapped."""
        out, k = theta.copy(), self.n_judges
        out[0] *= -1
        out[1 + k : 1 + 2 * k] *= -1
        return out

    def _social(self) -> Floats:
        """1 for a judge that shares its group, 0 for one that is alone in it."""
        groups = np.asarray(self.groups)
        return np.asarray((groups[:, None] == groups).sum(axis=1) > 1, np.float64)


def _nodes(n_judges: int, dimensions: int) -> int:
    """Nodes per factor: many judges make sharp integrands, two dimensions square the cost."""
    if dimensions > 1:
        return 9
    return 15 if n_judges <= 15 else 25


def _penalty(
    patterns: Patterns, rank: int, groups: Sequence[int] | None, strength: Strength
) -> Penalty:
    n, k = patterns.weight, patterns.n_judges
    n_loadings = k * (rank + (groups is not None))
    precision = np.concatenate(
        [
            np.full(1, 2.0),
            np.full(k, 0.1),
            np.full(k, strength.chance * n + 0.5),
            np.full(n_loadings, strength.loading),
        ]
    )
    centre = np.zeros(len(precision))
    skills = slice(1 + k, 1 + 2 * k)
    centre[skills] = strength.typical
    alike = [(skills, strength.skill * n)]
    if strength.alike and rank == 1:
        alike.append((slice(1 + 2 * k, 1 + 3 * k), strength.alike * n))
    return Penalty(centre, precision, tuple(alike))
