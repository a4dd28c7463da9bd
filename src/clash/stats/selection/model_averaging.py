"""Weights for deploying many candidates together, by how each predicted held-out rows.

Among hundreds of nearly equal candidates, a hundred labels pick one by luck. The average of all is
better than most of them, and better calibrated than any.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from clash.stats.selection.candidate_methods import on_most_judges
from clash.stats.selection.families import FAMILY_MEAN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.stats.selection.candidate_methods import CandidateMethod
    from clash.stats.selection.metrics import Loss
    from clash.stats.typing import Bools, Floats, Index


DRAWS = 200
"""Bayesian bootstrap draws of the sources."""
SHARE = 1 / 3
"""Weight, before any label, of majority, of the average of families on the whole panel, and of
everything else together."""
DEPLOYED_SHARE = 0.99
"""Share of the weight that is deployed; the tail of the menu would cost time and change nothing."""
_PER_SOURCE: dict[Loss, float] = {"nll": 1.0, "mse": 2.0}
"""Factor from loss to negative log-likelihood. A squared error counts as in a normal distribution of
variance 1/4, whose negative log-likelihood is 2 (p - y)^2 plus a constant."""


def prior_weights(
    candidates: Sequence[CandidateMethod],
    usable: Bools,
    earlier: Sequence[tuple[str, float]] | None = None,
) -> Floats:
    """(M,), weights before any validation row; 0 where a candidate was refused.

    A third goes to majority, a third to the average of families on the most judges, and a third is
    shared by the menu; this protects against a lucky candidate. The share of a part whose candidates
    are all refused is spread over the rest.

    Args:
        candidates: the menu, majority first.
        usable: (M,), whether a candidate was not refused.
        earlier: families and weights that share the second third instead, each on the most judges.
    """
    weights = np.where(usable, SHARE / max(int(usable.sum()), 1), 0.0)
    if usable[0]:
        weights[0] += SHARE
    for family, weight in earlier or ((FAMILY_MEAN, 1.0),):
        index = on_most_judges(candidates, usable, family)
        if index is not None:
            weights[index] += SHARE * weight
    return np.asarray(weights / weights.sum())


def posterior_weights(
    losses: Floats,
    groups: Index,
    prior: Floats,
    loss: Loss,
    rng: np.random.Generator,
) -> Floats:
    """(M,), pseudo-BMA+: the prior times exp(-total loss), averaged over bootstraps of sources.

    The bootstrap keeps a candidate that won by a few rows from taking all the weight. A source
    counts once, however many rows it has. Source: Yao, Vehtari, Simpson and Gelman, Using Stacking to
    Average Bayesian Predictive Distributions (2018), section 3.4, with validation losses for
    leave-one-out ones.

    Args:
        losses: (M, n), of each candidate on each validation row; NaN where refused.
        groups: (n,), source of each row.
        prior: (M,), 0 where refused.
        loss: the kind of ``losses``.
        rng: of the bootstrap.
    """
    usable = prior > 0
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[order], prepend=groups[order[0]] - 1))
    counts = np.diff(np.append(starts, len(order)))
    by_source = np.add.reduceat(losses[usable][:, order], starts, axis=1) / counts
    n = len(starts)
    draws = rng.dirichlet(np.ones(n), DRAWS)
    logs = np.log(prior[usable]) - _PER_SOURCE[loss] * n * (draws @ by_source.T)
    share = np.exp(logs - logs.max(axis=1, keepdims=True))
    share /= share.sum(axis=1, keepdims=True)
    weights = np.zeros(len(prior))
    weights[usable] = share.mean(axis=0)
    return _keep_heaviest(weights)


def _keep_heaviest(weights: Floats) -> Floats:
    """The heaviest, up to ``KEPT`` of the weight."""
    order = np.argsort(-weights, kind="stable")
    n_deployed = int(np.searchsorted(np.cumsum(weights[order]), DEPLOYED_SHARE)) + 1
    heaviest = np.zeros_like(weights)
    heaviest[order[:n_deployed]] = weights[order[:n_deployed]]
    return np.asarray(heaviest / heaviest.sum())
