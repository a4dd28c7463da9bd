"""How hard to hold the couplings: by held-out likelihood, with one standard error towards harder."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from clash.errors import StatisticsError
from clash.stats.latent.cross_validation import (
    HeldOutScores,
    folds,
    mean_score,
    votes_held_out,
    within_one_standard_error,
)
from clash.stats.latent.ising import IsingPriors

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    import numpy.typing as npt

    from clash.stats.latent.fit import LatentFit
    from clash.stats.latent.patterns import Patterns

GRID = (0.3, 0.1, 0.03, 0.01, 0.003)
"""Ridges on the couplings, hardest first, as a share of the items' weight."""


@dataclass(frozen=True, slots=True)
class RidgeChoice:
    """The chosen strength and what each ridge scored.

    Attributes:
        fit: the model under the chosen ridge, fitted to all votes.
        priors: the prior, with the chosen ridge on the couplings.
        grid: the ridges tried, hardest first.
        held_out: mean held-out log-likelihood per item of each.
    """

    fit: LatentFit
    priors: IsingPriors
    grid: tuple[float, ...]
    held_out: tuple[float, ...]


def choose_ridge(
    fit: Callable[..., LatentFit],
    patterns: Patterns,
    *,
    rng: np.random.Generator,
    groups: npt.ArrayLike | None = None,
    grid: Sequence[float] = GRID,
    priors: IsingPriors | None = None,
    n_folds: int = 5,
) -> RidgeChoice:
    """Choose the ridge on the couplings of an exact Ising model.

    The hardest ridge within one standard error, paired by item, of the best held-out
    likelihood: weak ridges let couplings explain what the class should. From the hardest on,
    each fit starts where the last one ended, and its folds where it does; the softer ones are
    not tried once one is worse than the best by more than its error.

    Args:
        fit: ``ising_shared``, ``ising_class``, or ``ising_family`` with its families bound.
        patterns: the votes.
        rng: draws the folds.
        groups: shape (n_items,): items of one group are held out together.
        grid: ridges to try.
        priors: the rest of the prior.
        n_folds: folds of the cross-validation.

    Raises:
        StatisticsError: an empty grid, or the model is refused on some fold.
    """
    ridges = tuple(sorted(grid, reverse=True))
    if not ridges:
        raise StatisticsError("no ridge to choose from")
    base = priors or IsingPriors()
    fold = folds(patterns.n_items, n_folds, rng, groups)
    fits: list[LatentFit] = []
    scores: list[HeldOutScores] = []
    for ridge in ridges:
        fitter = partial(fit, priors=replace(base, coupling=ridge))
        fits.append(fitter(patterns, warm=fits[-1] if fits else None))
        refit = partial(fitter, tol=1e-4, warm=fits[-1])
        scores.append(votes_held_out(str(ridge), refit, patterns, fold))
        if not within_one_standard_error(scores[-1], max(scores, key=mean_score)):
            break
    best = max(scores, key=mean_score)
    if best.scores is None:
        raise StatisticsError(best.refusal)
    position = next(i for i, score in enumerate(scores) if within_one_standard_error(score, best))
    return RidgeChoice(
        fits[position],
        replace(base, coupling=ridges[position]),
        ridges[: len(scores)],
        tuple(score.mean for score in scores),
    )
