"""More than two outcomes: a tie as a vote of its own, or three and more classes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from clash.errors import NotIdentifiedError, StatisticsError
from clash.stats.latent.patterns import MISSING, distinct, row_codes
from clash.stats.latent.temperature_scaling import best_temperature
from clash.stats.logistic import softmax

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from clash.stats.typing import Floats, Index, VoteCodes

FLOOR = 1e-12


@dataclass(frozen=True, slots=True)
class ClassPatterns:
    """The distinct rows of a matrix of votes with several outcomes.

    Attributes:
        votes: int8 of shape (n_patterns, n_judges): outcome 0, 1, …, -1 where there is no vote.
        labels: int8 of shape (n_patterns,): position of the truth among ``classes``, -1 unknown.
        counts: shape (n_patterns,).
        inverse: shape (n_items,), the pattern of each item.
        n_outcomes: number of outcomes a vote can have.
        classes: the outcomes that can be the truth.
    """

    votes: VoteCodes
    labels: VoteCodes
    counts: Floats
    inverse: Index
    n_outcomes: int
    classes: tuple[int, ...]

    @property
    def indicators(self) -> Floats:
        """1 where a judge voted for an outcome, shape (n_patterns, n_judges, n_outcomes)."""
        return self.indicators_of(self.votes)

    def indicators_of(self, votes: VoteCodes) -> Floats:
        """The same for other votes of these judges, shape (n, n_judges, n_outcomes)."""
        return np.asarray(votes[:, :, None] == np.arange(self.n_outcomes), np.float64)


@dataclass(frozen=True, slots=True)
class ClassFit:
    """A fitted model of votes with several outcomes.

    Attributes:
        name: the method.
        patterns: what it was fitted to.
        pattern_posterior: P(truth) of shape (n_patterns, n_classes).
        prior: shape (n_classes,).
        confusion: P(vote | truth), shape (n_judges, n_classes, n_outcomes).
        log_likelihood: of the votes and given labels; None for a rule without a law.
        n_params: free parameters.
        converged: whether EM met its tolerance.
        n_iter: iterations.
        residual: largest change of a probability in the last iteration.
        temperature: by how much log-probabilities are divided in ``tempered``.
        warnings: what a reader should know before believing the posteriors.
        couplings: (n_judges, n_judges), agreement of each pair beyond the truth; None without.
    """

    name: str
    patterns: ClassPatterns
    pattern_posterior: Floats
    prior: Floats
    confusion: Floats
    log_likelihood: float | None
    n_params: int
    converged: bool = True
    n_iter: int = 0
    residual: float = 0.0
    temperature: float = 1.0
    warnings: tuple[str, ...] = ()
    couplings: Floats | None = None

    @property
    def item_posterior(self) -> Floats:
        """P(truth) of shape (n_items, n_classes), as the model has it."""
        return np.asarray(self.pattern_posterior[self.patterns.inverse])

    @property
    def tempered_posterior(self) -> Floats:
        """P(truth) of shape (n_items, n_classes), tempered and averaged with the vote share."""
        log_posterior = np.log(np.clip(self.pattern_posterior, 1e-16, 1)) / self.temperature
        log_blend = (
            (log_posterior + np.log(shares(self.patterns))) / 2
            if self.log_likelihood is not None
            else log_posterior
        )
        p = softmax(log_blend)
        return np.asarray(observe_classes(p, self.patterns.labels)[self.patterns.inverse])


def collapse_classes(
    votes: npt.ArrayLike,
    *,
    n_outcomes: int = 3,
    classes: Sequence[int] | None = None,
    labels: npt.ArrayLike | None = None,
) -> ClassPatterns:
    """Collapse a matrix of votes with several outcomes to its distinct patterns.

    Args:
        votes: shape (n_items, n_judges): outcome 0 to n_outcomes - 1, -1 for no vote.
        n_outcomes: number of outcomes; 3 where a tie is the third.
        classes: the outcomes that can be the truth; (0, 1) where judges may tie but the truth
            may not. Default: all.
        labels: shape (n_items,): the true outcome, -1 where unknown.

    Raises:
        StatisticsError: no items or judges, or a value out of range.
    """
    matrix = np.asarray(votes)
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise StatisticsError(f"votes must be items x judges, at least 1 x 1, not {matrix.shape}")
    possible = tuple(classes) if classes is not None else tuple(range(n_outcomes))
    truth = np.full(len(matrix), MISSING) if labels is None else np.asarray(labels)
    if truth.shape != (len(matrix),):
        raise StatisticsError(f"labels must be one per item ({len(matrix)}), not {truth.shape}")
    if not np.isin(matrix, range(MISSING, n_outcomes)).all():
        raise StatisticsError(f"votes must be whole numbers from -1 to {n_outcomes - 1}")
    if len(possible) < 2 or not set(possible) <= set(range(n_outcomes)):
        raise StatisticsError(f"classes must be two or more of the outcomes, not {possible}")
    if not np.isin(truth, (MISSING, *possible)).all():
        raise StatisticsError(f"labels must be -1 or one of the classes {possible}")
    position = np.array(
        [MISSING, *(_class_position(o, possible) for o in range(n_outcomes))], np.int8
    )
    rows = np.column_stack([matrix, position[truth + 1]]).astype(np.int8)
    first, inverse = distinct(row_codes(rows, None))
    counts = np.bincount(inverse, minlength=len(first)).astype(np.float64)
    return ClassPatterns(rows[first, :-1], rows[first, -1], counts, inverse, n_outcomes, possible)


def shares(patterns: ClassPatterns, smoothing: float = 1.0) -> Floats:
    """Smoothed shares of the votes for each class, shape (n_patterns, n_classes)."""
    votes = patterns.indicators.sum(axis=1)[:, list(patterns.classes)] + smoothing
    return np.asarray(votes / votes.sum(axis=1, keepdims=True))


def majority_classes(patterns: ClassPatterns, *, smoothing: float = 1.0) -> ClassFit:
    """Plurality of the votes among the classes, its smoothed share as its probability.

    A vote for an outcome that cannot be the truth (a tie, where the truth is decisive) is a vote
    for none. Fails as :func:`~clash.stats.latent.vote_counting.majority` does.
    """
    p = observe_classes(shares(patterns, smoothing), patterns.labels)
    n_judges, n_classes = patterns.votes.shape[1], len(patterns.classes)
    nothing = np.full((n_judges, n_classes, patterns.n_outcomes), np.nan)
    return ClassFit("majority", patterns, p, np.full(n_classes, np.nan), nothing, None, 0)


def dawid_skene_classes(
    patterns: ClassPatterns, *, pseudo: float = 0.5, tol: float = 1e-6, max_iter: int = 2000
) -> ClassFit:
    """Dawid-Skene with a confusion matrix per judge, by MAP-EM from the vote shares.

    Model: votes are independent given the truth; a missing vote has no factor. Where ``classes``
    leaves an outcome out, judges can still vote it, at rates that may depend on the truth.
    Assumes independence of errors; fails, near-certain, where judges err together.
    Source: Dawid and Skene 1979.

    Args:
        patterns: the votes, from ``collapse_classes``.
        pseudo: pseudo-count added to every cell of a confusion matrix; 0 is maximum likelihood.
        tol: largest change of a probability at which EM stops.
        max_iter: iterations after which it gives up.

    Raises:
        NotIdentifiedError: fewer than three judges that vote in more than one way.
        StatisticsError: nobody voted.
    """
    _require_identified(patterns)
    flat = patterns.indicators.reshape(len(patterns.votes), -1)
    p = observe_classes(shares(patterns, 1e-3), patterns.labels)
    prior, confusion = _maximise(patterns, flat, p, pseudo)
    change, n_iter = np.inf, 0
    while change > tol and n_iter < max_iter:
        p = softmax(_joint(flat, prior, confusion))
        p = observe_classes(p, patterns.labels)
        prior, new = _maximise(patterns, flat, p, pseudo)
        change, confusion, n_iter = float(np.abs(new - confusion).max()), new, n_iter + 1
    fit = _assemble(patterns, flat, prior, confusion)
    fit = replace(fit, converged=change <= tol, n_iter=n_iter, residual=change)

    def joint(votes: VoteCodes) -> Floats:
        return _joint(patterns.indicators_of(votes).reshape(len(votes), -1), prior, confusion)

    return replace(fit, temperature=left_out_temperature(patterns, joint))


def _require_identified(patterns: ClassPatterns) -> None:
    votes = patterns.votes
    if (votes == MISSING).all():
        raise StatisticsError("no judge voted on any item")
    useful = sum(len(set(column[column != MISSING].tolist())) > 1 for column in votes.T)
    if useful < 3 and (patterns.labels == MISSING).all():
        raise NotIdentifiedError(
            f"dawid-skene needs three judges that vote in more than one way; there are {useful}"
        )


def _maximise(
    patterns: ClassPatterns, flat: Floats, p: Floats, pseudo: float
) -> tuple[Floats, Floats]:
    weight = patterns.counts[:, None] * p
    cells = (weight.T @ flat).reshape(p.shape[1], -1, patterns.n_outcomes).transpose(1, 0, 2)
    cells = np.maximum(cells + pseudo, FLOOR)
    prior = weight.sum(axis=0) + pseudo
    return prior / prior.sum(), cells / cells.sum(axis=2, keepdims=True)


def _joint(flat: Floats, prior: Floats, confusion: Floats) -> Floats:
    """Log P(truth, votes), shape (n_patterns, n_classes)."""
    logs = np.log(confusion).transpose(1, 0, 2).reshape(len(prior), -1)
    return np.asarray(flat @ logs.T + np.log(np.maximum(prior, FLOOR)))


def _assemble(patterns: ClassPatterns, flat: Floats, prior: Floats, confusion: Floats) -> ClassFit:
    joint = _joint(flat, prior, confusion)
    has_label = patterns.labels != MISSING
    of_label = joint[np.arange(len(joint)), np.where(has_label, patterns.labels, 0)]
    marginal = np.logaddexp.reduce(joint, axis=1)
    likelihood = float(patterns.counts @ np.where(has_label, of_label, marginal))
    k, c, o = confusion.shape
    return ClassFit(
        "dawid-skene",
        patterns,
        observe_classes(softmax(joint), patterns.labels),
        prior,
        confusion,
        likelihood,
        c - 1 + k * c * (o - 1),
    )


def left_out_temperature(
    patterns: ClassPatterns, log_joint: Callable[[VoteCodes], Floats]
) -> float:
    """The temperature at which a left-out judge's vote, taken as the truth, is best predicted.

    Args:
        patterns: the votes.
        log_joint: log P(truth, votes), shape (n, n_classes), of votes (n, n_judges) with gaps.
    """
    odds, weights = [], []
    classes = np.asarray(patterns.classes)
    for judge in range(patterns.votes.shape[1]):
        without = patterns.votes.copy()
        without[:, judge] = MISSING
        has_votes = np.isin(patterns.votes[:, judge], classes) & (without != MISSING).any(axis=1)
        if not has_votes.any():  # nobody else voted where the judge did
            continue
        joint = log_joint(without[has_votes])
        rank = np.searchsorted(np.sort(classes), patterns.votes[has_votes, judge])
        position = np.argsort(classes)[rank]
        odds.append(joint - joint[np.arange(len(joint)), position][:, None])
        weights.append(patterns.counts[has_votes])
    if not odds:
        return 1.0
    against, weight = np.vstack(odds), np.concatenate(weights)
    if not weight.any():
        return 1.0
    return best_temperature(
        lambda temperature: float(weight @ np.logaddexp.reduce(against / temperature, axis=1))
    )


def observe_classes(p: Floats, labels: VoteCodes) -> Floats:
    """Posteriors with the given labels in place of what was inferred."""
    has_label = labels != MISSING
    out = p.copy()
    out[has_label] = np.eye(p.shape[1])[labels[has_label]]
    return out


def _class_position(outcome: int, classes: tuple[int, ...]) -> int:
    return classes.index(outcome) if outcome in classes else MISSING
