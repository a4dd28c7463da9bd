"""Cross-validation over items: how well a model predicts held-out votes or labels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from clash.errors import StatisticsError
from clash.stats.latent.fit import LatentFit, log_likelihood_per_pattern
from clash.stats.latent.patterns import MISSING, Patterns, collapse
from clash.stats.latent.temperature_scaling import blend, temper

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from clash.stats.typing import Floats, Index


@dataclass(frozen=True, slots=True)
class HeldOutScores:
    """What a model scored on each item while the item was held out.

    Attributes:
        name: the model.
        scores: shape (n_items,), higher is better; NaN-free, None where the model was refused.
        refusal: why it was refused, or empty.
    """

    name: str
    scores: Floats | None
    refusal: str = ""

    @property
    def mean(self) -> float:
        """Mean score; minus infinity where the model was refused."""
        return -np.inf if self.scores is None else float(self.scores.mean())


def folds(
    n_items: int, n_folds: int, rng: np.random.Generator, groups: npt.ArrayLike | None = None
) -> Index:
    """A random fold, 0 to n_folds - 1, for each item; sizes differ by at most one group.

    Args:
        n_items: number of items.
        n_folds: number of folds.
        rng: draws the folds.
        groups: shape (n_items,): items of one group share a fold, or a copy would give its twin
            away. Default: every item its own.
    """
    if groups is None:
        return np.asarray(rng.permutation(n_items) % n_folds, dtype=np.intp)
    names, codes = np.unique(np.asarray(groups), return_inverse=True)
    return np.asarray((rng.permutation(len(names)) % n_folds)[codes], dtype=np.intp)


def votes_held_out(
    name: str, fit: Callable[[Patterns], LatentFit], patterns: Patterns, fold: Index
) -> HeldOutScores:
    """Log-likelihood of each item's votes under a fit to the other folds.

    Ties are left out of the score: half a vote has no probability of its own, so that models
    could not be compared on it.

    Args:
        name: the model, for the record.
        fit: fits the model to patterns.
        patterns: the votes.
        fold: the fold of each item, shape (n_items,).
    """
    scores = np.empty(patterns.n_items)
    without_ties = patterns.without_ties()
    for k in np.unique(fold):
        counts = np.bincount(patterns.inverse[fold != k], minlength=len(patterns.counts))
        try:
            law = fit(patterns.with_counts(counts)).parameters
        except StatisticsError as refusal:
            return HeldOutScores(name, None, str(refusal))
        if law is None:
            raise TypeError(f"{name} has no likelihood to hold out")
        per_pattern = log_likelihood_per_pattern(law, without_ties)
        scores[fold == k] = per_pattern[patterns.inverse[fold == k]]
    return HeldOutScores(name, scores)


def labels_held_out(
    name: str, fit: Callable[[Patterns], LatentFit], patterns: Patterns, fold: Index
) -> HeldOutScores:
    """Minus the log-loss of each held-out label; the votes of the items stay in.

    Args:
        name: the model, for the record.
        fit: fits the model to patterns.
        patterns: the votes, with labels for some.
        fold: the fold of each item, shape (n_items,).

    Returns:
        Scores of the labelled items alone, in the order of the items.
    """
    votes, labels = patterns.votes[patterns.inverse], patterns.labels[patterns.inverse]
    scores = np.zeros(len(labels))
    for k in np.unique(fold):
        training = collapse(votes, labels=np.where(fold == k, MISSING, labels))
        try:
            p = blend(temper(fit(training)))[training.inverse]
        except StatisticsError as refusal:
            return HeldOutScores(name, None, str(refusal))
        chance = np.where(labels == 1, p, 1 - p)
        scores = np.where(fold == k, np.log(np.clip(chance, 1e-12, 1)), scores)
    return HeldOutScores(name, scores[labels != MISSING])


def paired_z(score: HeldOutScores, reference: HeldOutScores) -> float:
    """Mean difference of two scores over its standard error (Vuong's statistic, held out).

    0 where the two never differ; minus infinity where the first was refused.
    """
    if score.scores is None:
        return -np.inf
    if reference.scores is None:
        return np.inf
    difference = score.scores - reference.scores
    spread = float(difference.std(ddof=1)) if len(difference) > 1 else 0.0
    if spread == 0:
        return float(np.sign(difference.mean())) * np.inf if difference.mean() else 0.0
    return float(difference.mean() / spread * np.sqrt(len(difference)))


def within_one_standard_error(candidate: HeldOutScores, best: HeldOutScores) -> bool:
    """Whether a model's score is within one standard error of the best one's, paired by item."""
    return paired_z(candidate, best) >= -1.0


def fit_all(
    models: dict[str, Callable[..., LatentFit]], patterns: Patterns
) -> tuple[dict[str, LatentFit], dict[str, HeldOutScores]]:
    """Every model fitted to all votes, and those that were refused."""
    fits, refusals = {}, {}
    for name, fit in models.items():
        try:
            fits[name] = fit(patterns)
        except StatisticsError as refusal:
            refusals[name] = HeldOutScores(name, None, str(refusal))
    return fits, refusals


def score_by_refits(
    name: str,
    fit: Callable[..., LatentFit],
    full_fit: LatentFit,
    patterns: Patterns,
    fold: Index,
) -> HeldOutScores:
    """Held-out votes under refits that start where the fit to all votes ended.

    So the model that is scored is the one that would be used, not another optimum that a fold
    fell into, and a score needs a looser tolerance than a posterior.
    """
    if full_fit.theta is None:
        return votes_held_out(name, fit, patterns, fold)
    return votes_held_out(name, partial(fit, tol=1e-4, warm=full_fit), patterns, fold)


def mean_score(score: HeldOutScores) -> float:
    """The mean held-out score, for sorting."""
    return score.mean
