"""How hard to hold the couplings: by held-out likelihood, with one standard error towards harder."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from clash.errors import StatisticsError
from clash.stats.latent.heldout import HeldOut, folds, votes_held_out, within_one_error
from clash.stats.latent.ising import Strength

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np

    from clash.stats.latent.fit import LatentFit
    from clash.stats.latent.patterns import Patterns

GRID = (0.3, 0.1, 0.03, 0.01, 0.003)
"""Ridges on the couplings, hardest first, as a share of the items' weight."""


@dataclass(frozen=True, slots=True)
class Ridge:
    """The chosen strength and what each ridge scored.

    Attributes:
        strength: the prior, with the chosen ridge on the couplings.
        grid: the ridges tried, hardest first.
        held_out: mean held-out log-likelihood per item of each.
    """

    strength: Strength
    grid: tuple[float, ...]
    held_out: tuple[float, ...]


def choose_ridge(
    fit: Callable[..., LatentFit],
    patterns: Patterns,
    *,
    rng: np.random.Generator,
    grid: Sequence[float] = GRID,
    strength: Strength | None = None,
    n_folds: int = 5,
) -> Ridge:
    """Choose the ridge on the couplings of an exact Ising model.

    The hardest ridge within one standard error, paired by item, of the best held-out
    likelihood: weak ridges let couplings explain what the class should.

    Args:
        fit: ``ising_shared``, ``ising_class``, or ``ising_family`` with its families bound.
        patterns: the votes.
        rng: draws the folds.
        grid: ridges to try.
        strength: the rest of the prior.
        n_folds: folds of the cross-validation.

    Raises:
        StatisticsError: an empty grid, or the model is refused on some fold.
    """
    ridges = tuple(sorted(grid, reverse=True))
    if not ridges:
        raise StatisticsError("no ridge to choose from")
    base = strength or Strength()
    fold = folds(patterns.n_items, n_folds, rng)
    tried = {ridge: replace(base, coupling=ridge) for ridge in ridges}
    scores = [
        votes_held_out(str(ridge), partial(fit, strength=held, tol=1e-4), patterns, fold)
        for ridge, held in tried.items()
    ]
    best = max(scores, key=_mean)
    if best.scores is None:
        raise StatisticsError(best.refusal)
    chosen = next(
        ridge for ridge, score in zip(ridges, scores, strict=True) if within_one_error(score, best)
    )
    return Ridge(tried[chosen], ridges, tuple(score.mean for score in scores))


def _mean(score: HeldOut) -> float:
    return score.mean
