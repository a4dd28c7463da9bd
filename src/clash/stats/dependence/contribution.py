"""What each judge adds to the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clash.stats.intervals import Interval, mean_clustered
from clash.stats.latent.fit import posterior
from clash.stats.latent.patterns import MISSING, TIE
from clash.stats.logistic_regression import logistic_regression

if TYPE_CHECKING:
    from clash.stats.latent.fit import VoteLaw
    from clash.stats.latent.patterns import Patterns
    from clash.stats.typing import Bools, Floats, Index

RIDGE = 1.0
"""Precision of the logistic regressions' coefficients, in items."""
INTERCEPT_RIDGE = 1e-3
"""Precision of their intercept: it must not shrink the rate of votes, and only keeps a target that
never varies from an infinite one."""


@dataclass(frozen=True, slots=True)
class InformationGain:
    """What a judge's votes change, by the model that estimated the truth.

    Attributes:
        bits: mean fall of the entropy of the truth when the judge's vote is added to the
            others': an estimate of the conditional mutual information.
        flips: share of the items whose verdict is another one without it.
    """

    bits: Interval
    flips: float


def information_added(
    law: VoteLaw, patterns: Patterns, clusters: Index | None = None
) -> tuple[InformationGain, ...]:
    """For each judge, what its vote adds given all other votes; the law is not refitted.

    Labels are not used, only votes: the question is what the votes tell of the truth. Items
    without the judge's vote add nothing and count.

    Args:
        law: parameters of a fit.
        patterns: the votes.
        clusters: shape (n_items,), for the intervals.
    """
    full_posterior = posterior(law, patterns.votes)
    out = []
    for judge in range(patterns.n_judges):
        votes = patterns.votes.copy()
        votes[:, judge] = MISSING
        without = posterior(law, votes)
        gain = entropy(without) - entropy(full_posterior)
        flips = (without >= 0.5) != (full_posterior >= 0.5)
        out.append(
            InformationGain(
                mean_clustered(gain[patterns.inverse], clusters).within(-1.0, 1.0),
                float(patterns.counts @ flips / patterns.weight),
            )
        )
    return tuple(out)


def entropy(p: Floats) -> Floats:
    """Entropy of P(truth = 1), in bits."""
    q = np.clip(p, 1e-300, 1.0), np.clip(1 - p, 1e-300, 1.0)
    return np.asarray(-(p * np.log2(q[0]) + (1 - p) * np.log2(q[1])))


def redundancy(patterns: Patterns, fold: Index) -> Floats:
    """How much of each judge's vote the others predict, shape (K,), on held-out items.

    1 - (held-out log-loss of a logistic regression of the judge's votes on the others') /
    (log-loss of its vote rate): 0 for a judge that the others say nothing of, 1 for a copy.
    Slightly negative where there is nothing to learn. It counts agreement about the truth too.
    NaN for a judge that never varies.

    Args:
        patterns: the votes.
        fold: shape (n_items,), the fold in which each item is held out.
    """
    spins = patterns.spins
    shares = []
    for judge in range(patterns.n_judges):
        has_vote = (patterns.votes[:, judge] != MISSING) & (patterns.votes[:, judge] != TIE)
        other_spins = np.delete(spins, judge, axis=1)
        target = (patterns.votes[:, judge] == 1).astype(np.float64)
        model_logits = held_out_logits(other_spins, target, patterns, fold, has_vote)
        rate_logits = held_out_logits(other_spins[:, :0], target, patterns, fold, has_vote)
        items = has_vote[patterns.inverse]
        truth = target[patterns.inverse]
        loss, least = (
            _losses(logits, truth)[items].sum() for logits in (model_logits, rate_logits)
        )
        shares.append(1 - loss / least if least > 0 and np.ptp(truth[items]) > 0 else np.nan)
    return np.array(shares)


@dataclass(frozen=True, slots=True)
class StackedRegression:
    """A logistic regression of the label on the votes, on held-out items.

    Attributes:
        log_loss: mean, in nats.
        auc: area under the ROC curve.
        accuracy: share of labels it gets right.
        losses: per labelled item, in the order of the items.
    """

    log_loss: float
    auc: float
    accuracy: float
    losses: Floats


@dataclass(frozen=True, slots=True)
class Contribution:
    """What the held-out stack loses without a judge.

    Attributes:
        log_loss: rise of the log-loss without it; 0 or below is a judge that adds nothing.
        auc: fall of the AUC without it.
    """

    log_loss: Interval
    auc: float


def stack(patterns: Patterns, fold: Index, judges: Index | None = None) -> StackedRegression:
    """Cross-validated stacking of some judges (all by default) against the labels.

    Args:
        patterns: the votes; unlabelled items are passed over.
        fold: shape (n_items,).
        judges: columns to use.
    """
    spins = patterns.spins if judges is None else patterns.spins[:, judges]
    has_label = patterns.labels != MISSING
    target = (patterns.labels == 1).astype(np.float64)
    logits = held_out_logits(spins, target, patterns, fold, has_label)
    items = has_label[patterns.inverse]
    truth, scores = target[patterns.inverse][items], logits[items]
    losses = _losses(scores, truth)
    right = np.where(scores == 0, 0.5, (scores > 0) == (truth == 1))
    return StackedRegression(float(losses.mean()), auc(scores, truth), float(right.mean()), losses)


def contributions(
    patterns: Patterns, fold: Index, clusters: Index | None = None
) -> tuple[StackedRegression, tuple[Contribution, ...]]:
    """The stack of all judges, and what it loses without each."""
    full = stack(patterns, fold)
    items = (patterns.labels != MISSING)[patterns.inverse]
    groups = None if clusters is None else clusters[items]
    out = []
    for judge in range(patterns.n_judges):
        stack_without = stack(patterns, fold, np.delete(np.arange(patterns.n_judges), judge))
        out.append(
            Contribution(
                mean_clustered(stack_without.losses - full.losses, groups),
                full.auc - stack_without.auc,
            )
        )
    return full, tuple(out)


def held_out_logits(
    features: Floats, target: Floats, patterns: Patterns, fold: Index, has_vote: Bools
) -> Floats:
    """Log-odds of the target for each item, from a fit to the items of the other folds.

    Args:
        features: shape (n_patterns, q).
        target: shape (n_patterns,), 0 or 1.
        patterns: which items have which pattern.
        fold: shape (n_items,).
        has_vote: shape (n_patterns,), whether the target is known.
    """
    design = np.column_stack([np.ones(len(features)), features])
    out = np.zeros(patterns.n_items)
    for k in np.unique(fold):
        in_fold = fold == k
        n_training = np.bincount(patterns.inverse[~in_fold], minlength=len(design))
        counts = np.where(has_vote, n_training, 0).astype(np.float64)
        out[in_fold] = (design @ ridge_logistic(design, target, counts))[patterns.inverse[in_fold]]
    return out


def ridge_logistic(design: Floats, target: Floats, counts: Floats) -> Floats:
    """Coefficients (q,) of a weighted logistic regression with a ridge, the intercept all but free.

    Args:
        design: shape (n, q), its first column 1.
        target: shape (n,), 0 or 1.
        counts: shape (n,), the weight of each row.
    """
    precision = np.full(design.shape[1], RIDGE)
    precision[0] = INTERCEPT_RIDGE
    return logistic_regression(design, target, counts, precision).x


def _losses(logits: Floats, truth: Floats) -> Floats:
    return np.asarray(np.logaddexp(0, logits) - truth * logits)


def auc(scores: Floats, truth: Floats) -> float:
    """P(a random positive scores above a random negative), a tie half; NaN without both."""
    from scipy.stats import rankdata

    positives = int(truth.sum())
    negatives = len(truth) - positives
    if not positives or not negatives:
        return float("nan")
    ranks = rankdata(scores)[truth == 1].sum()
    return float((ranks - positives * (positives + 1) / 2) / (positives * negatives))
