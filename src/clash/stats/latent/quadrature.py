"""Logistic-normal laws of the votes, integrated by Gauss-Hermite sums, with what gradients need.

Judges of one group are summed over their own factor once for each distinct row of their votes:
eight near-copies cast a few hundred different rows on thousands of items.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from clash.stats.latent.patterns import TIE, distinct, row_codes
from clash.stats.logistic import sigmoid

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.stats.typing import Floats, Index, VoteCodes

CLASSES = (-1.0, 1.0)


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

    def log_likelihoods(self, votes: VoteCodes) -> Floats:
        """Log P(votes | truth = 0 and 1), shape (n, 2)."""
        value = integrate(self, sheets_of(votes, self.groups)).value
        return np.repeat(value, 3 - value.shape[1], axis=1)


@dataclass(frozen=True, slots=True)
class Sheet:
    """The votes of the judges of one group, each distinct row once.

    Attributes:
        judges: columns, shape (m,).
        cast: votes for 1, then for 0, shape (rows, 2 m); a tie is half of either.
        inverse: the row of each pattern, shape (n,).
        order: patterns sorted by row.
        starts: where each row begins in that order.
    """

    judges: Index
    cast: Floats
    inverse: Index
    order: Index
    starts: Index

    @classmethod
    def of(cls, votes: VoteCodes, judges: Index) -> Sheet:
        """The votes of some judges, out of a matrix of shape (n, n_judges)."""
        own = np.ascontiguousarray(votes[:, judges])
        first, inverse = distinct(row_codes(own, None))
        rows = own[first]
        cast = np.hstack([np.where(rows == TIE, 0.5, rows == side) for side in (1, 0)])
        order = np.argsort(inverse, kind="stable")
        starts = np.flatnonzero(np.diff(inverse[order], prepend=-1))
        return cls(judges, cast, inverse, order, starts)

    def summed(self, per_pattern: Floats) -> Floats:
        """Sums over the patterns of each row, shape (rows, ...)."""
        return np.asarray(np.add.reduceat(per_pattern[self.order], self.starts, axis=0))


def sheets_of(votes: VoteCodes, groups: Sequence[int]) -> tuple[Sheet, ...]:
    """One sheet for each group; one for all judges where there are no groups."""
    codes = np.asarray(groups or [0] * votes.shape[1])
    return tuple(Sheet.of(votes, np.flatnonzero(codes == group)) for group in np.unique(codes))


@dataclass(frozen=True, slots=True)
class Integral:
    """The log of an integral, and the weights of its nodes.

    The classes, ``sides`` of them, and the nodes of the shared factors run along one axis.

    Attributes:
        value: shape (n, sides).
        share: posterior weight of each node of the shared factors, shape (n, sides, shared).
        own: per sheet, posterior weight of each node of its own factor, shape (rows, sides *
            shared, own); None where it has none.
        right: per sheet, P(vote 1) at each joint node, shape (judges, sides, shared, own).
    """

    value: Floats
    share: Floats
    own: tuple[Floats | None, ...]
    right: tuple[Floats, ...]


def integrate(law: FactorLaw, sheets: tuple[Sheet, ...]) -> Integral:
    """Log P(votes | y) of every class that differs, with what its gradient needs."""
    shared, log_shared = product_rule(law.nodes, law.loadings.shape[1])
    signs = np.array(sides(law))
    level = law.lean + signs[:, None] * law.skill
    base = (level[:, :, None] + law.loadings @ shared.T).transpose(1, 0, 2)
    outer = np.zeros((len(sheets[0].inverse), len(signs) * len(shared)))
    owns, rights = [], []
    for sheet in sheets:
        point, log_point = own_rule(law, sheet)
        eta = base[sheet.judges][..., None] + np.multiply.outer(
            law.own[sheet.judges], point
        ).reshape(-1, 1, 1, len(point))
        inner, own = _inner(sheet, eta, log_point)
        outer += inner[sheet.inverse]
        owns.append(own)
        rights.append(sigmoid(eta))
    joint = outer.reshape(-1, len(signs), len(shared)) + log_shared
    value, share = _log_mean(joint)
    return Integral(value, share, tuple(owns), tuple(rights))


def own_rule(law: FactorLaw, sheet: Sheet) -> tuple[Floats, Floats]:
    """Nodes (size,) and log-weights of the factor of a sheet's own judges; one where unloaded."""
    needed = bool(law.groups) and bool(law.own[sheet.judges].any())
    point, log_point = product_rule(law.nodes if needed else 1, 1)
    return point[:, 0], log_point


def _inner(sheet: Sheet, eta: Floats, log_point: Floats) -> tuple[Floats, Floats | None]:
    """Log-likelihoods of a sheet's rows, its own factor summed out, and that factor's weights."""
    flat = eta.reshape(len(eta), -1)
    yes = -np.logaddexp(0, -flat)
    level = sheet.cast @ np.vstack([yes, yes - flat])
    if len(log_point) == 1:
        return level, None
    return _log_mean(level.reshape(len(level), -1, len(log_point)) + log_point)


def _log_mean(level: Floats) -> tuple[Floats, Floats]:
    """Log of the sum of exp over the last axis, and each term's share of it."""
    top = level.max(axis=-1, keepdims=True)
    weight = np.exp(level - top)
    total = weight.sum(axis=-1, keepdims=True)
    weight /= total
    return (top + np.log(total))[..., 0], weight


def sides(law: FactorLaw) -> tuple[float, ...]:
    """The classes that differ: without any class effect one stands for both."""
    return CLASSES if law.skill.any() else CLASSES[:1]


@lru_cache(maxsize=32)
def product_rule(nodes: int, rank: int) -> tuple[Floats, Floats]:
    """Nodes (size, rank) and log-weights (size,) for the standard normal in ``rank`` dimensions."""
    if rank == 0 or nodes == 1:
        return np.zeros((1, rank)), np.zeros(1)
    point, weight = np.polynomial.hermite_e.hermegauss(nodes)
    log_weight = np.log(weight) - 0.5 * np.log(2 * np.pi)
    grid = np.meshgrid(*[point] * rank, indexing="ij")
    logs = np.meshgrid(*[log_weight] * rank, indexing="ij")
    both = np.column_stack([g.ravel() for g in grid]), np.sum([g.ravel() for g in logs], axis=0)
    for values in both:
        values.flags.writeable = False
    return both


def residuals(sheet: Sheet, outer: Floats, own: Floats | None, right: Floats) -> Floats:
    """Votes for 1 less those expected at each joint node, shape (judges, sides, shared, own)."""
    mass = outer if own is None else (own * outer[:, :, None]).reshape(len(outer), -1)
    cast = (sheet.cast.T @ mass).reshape(2, *right.shape)
    return np.asarray(cast[0] - (cast[0] + cast[1]) * right)
