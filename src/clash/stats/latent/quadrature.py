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
        contrast: shape (n_judges, rank): what class 1 adds to those loadings and class 0 takes from
            them; None where both classes load alike.
        own_loadings: shape (n_judges,): on the factor of the judge's own group.
        groups: the group of each judge, shape (n_judges,); empty where there are no groups.
        nodes: Gauss-Hermite nodes per factor.
        n_params: free parameters.
    """

    prior: float
    lean: Floats
    skill: Floats
    loadings: Floats
    own_loadings: Floats
    groups: tuple[int, ...]
    nodes: int
    n_params: int
    contrast: Floats | None = None

    def log_likelihoods(self, votes: VoteCodes) -> Floats:
        """Log P(votes | truth = 0 and 1), shape (n, 2)."""
        value = integrate(self, votes_by_group(votes, self.groups)).value
        return np.repeat(value, 3 - value.shape[1], axis=1)


@dataclass(frozen=True, slots=True)
class GroupVotes:
    """The votes of the judges of one group, each distinct row once.

    Attributes:
        judges: columns, shape (m,).
        indicators: votes for 1, then for 0, shape (rows, 2 m); a tie is half of either.
        inverse: the row of each pattern, shape (n,).
        order: patterns sorted by row.
        starts: where each row begins in that order.
    """

    judges: Index
    indicators: Floats
    inverse: Index
    order: Index
    starts: Index

    @classmethod
    def of(cls, votes: VoteCodes, judges: Index) -> GroupVotes:
        """The votes of some judges, out of a matrix of shape (n, n_judges)."""
        group_votes = np.ascontiguousarray(votes[:, judges])
        first, inverse = distinct(row_codes(group_votes, None))
        rows = group_votes[first]
        cast = np.hstack([np.where(rows == TIE, 0.5, rows == side) for side in (1, 0)])
        order = np.argsort(inverse, kind="stable")
        starts = np.flatnonzero(np.diff(inverse[order], prepend=-1))
        return cls(judges, cast, inverse, order, starts)

    def sum_patterns(self, per_pattern: Floats) -> Floats:
        """Sums over the patterns of each row, shape (rows, ...)."""
        return np.asarray(np.add.reduceat(per_pattern[self.order], self.starts, axis=0))


def votes_by_group(votes: VoteCodes, groups: Sequence[int]) -> tuple[GroupVotes, ...]:
    """One sheet for each group; one for all judges where there are no groups."""
    codes = np.asarray(groups or [0] * votes.shape[1])
    return tuple(GroupVotes.of(votes, np.flatnonzero(codes == group)) for group in np.unique(codes))


@dataclass(frozen=True, slots=True)
class FactorIntegral:
    """The log of an integral, and the weights of its nodes.

    The classes, ``sides`` of them, and the nodes of the shared factors run along one axis.

    Attributes:
        value: shape (n, sides).
        share: posterior weight of each node of the shared factors, shape (n, sides, shared).
        own_weights: per sheet, posterior weight of each node of its own factor, shape (rows, sides *
            shared, own); None where it has none.
        right: per sheet, P(vote 1) at each joint node, shape (judges, sides, shared, own).
    """

    value: Floats
    share: Floats
    own_weights: tuple[Floats | None, ...]
    right: tuple[Floats, ...]


def integrate(law: FactorLaw, sheets: tuple[GroupVotes, ...]) -> FactorIntegral:
    """Log P(votes | y) of every class that differs, with what its gradient needs."""
    nodes, log_shared = product_rule(law.nodes, law.loadings.shape[1])
    signs = np.array(sides(law))
    level = law.lean + signs[:, None] * law.skill
    slopes = law.loadings[None]
    if law.contrast is not None:
        slopes = slopes + signs[:, None, None] * law.contrast
    base = (level[:, :, None] + slopes @ nodes.T).transpose(1, 0, 2)
    outer = np.zeros((len(sheets[0].inverse), len(signs) * len(nodes)))
    owns, rights = [], []
    for sheet in sheets:
        point, log_point = own_rule(law, sheet)
        eta = base[sheet.judges][..., None] + np.multiply.outer(
            law.own_loadings[sheet.judges], point
        ).reshape(-1, 1, 1, len(point))
        inner, node_weights = _inner(sheet, eta, log_point)
        outer += inner[sheet.inverse]
        owns.append(node_weights)
        rights.append(sigmoid(eta))
    joint = outer.reshape(-1, len(signs), len(nodes)) + log_shared
    value, share = _log_mean(joint)
    return FactorIntegral(value, share, tuple(owns), tuple(rights))


def own_rule(law: FactorLaw, sheet: GroupVotes) -> tuple[Floats, Floats]:
    """Nodes (size,) and log-weights of the factor of a sheet's own judges; one where unloaded."""
    integrates = bool(law.groups) and bool(law.own_loadings[sheet.judges].any())
    point, log_point = product_rule(law.nodes if integrates else 1, 1)
    return point[:, 0], log_point


def _inner(sheet: GroupVotes, eta: Floats, log_point: Floats) -> tuple[Floats, Floats | None]:
    """Log-likelihoods of a sheet's rows, its own factor summed out, and that factor's weights."""
    flat = eta.reshape(len(eta), -1)
    yes = -np.logaddexp(0, -flat)
    level = sheet.indicators @ np.vstack([yes, yes - flat])
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
    return CLASSES if law.skill.any() or law.contrast is not None else CLASSES[:1]


@lru_cache(maxsize=32)
def product_rule(nodes: int, rank: int) -> tuple[Floats, Floats]:
    """Nodes (size, rank) and log-weights (size,) for the standard normal in ``rank`` dimensions."""
    if rank == 0 or nodes == 1:
        return np.zeros((1, rank)), np.zeros(1)
    point, weight = np.polynomial.hermite_e.hermegauss(nodes)
    log_weight = np.log(weight) - 0.5 * np.log(2 * np.pi)
    grid = np.meshgrid(*[point] * rank, indexing="ij")
    logs = np.meshgrid(*[log_weight] * rank, indexing="ij")
    rule = np.column_stack([g.ravel() for g in grid]), np.sum([g.ravel() for g in logs], axis=0)
    for values in rule:
        values.flags.writeable = False
    return rule


def residuals(
    sheet: GroupVotes, outer: Floats, node_weights: Floats | None, right: Floats
) -> Floats:
    """Votes for 1 less those expected at each joint node, shape (judges, sides, shared, own)."""
    mass = (
        outer
        if node_weights is None
        else (node_weights * outer[:, :, None]).reshape(len(outer), -1)
    )
    weighted_votes = (sheet.indicators.T @ mass).reshape(2, *right.shape)
    return np.asarray(weighted_votes[0] - (weighted_votes[0] + weighted_votes[1]) * right)
