"""What the votes cannot tell: the accuracies and probabilities that their readings and strengths allow.

A model of the votes gives each item log-odds o_i. Other models, and other optima of the same model,
give others: a reading. How far log-odds may be believed is no matter of the votes either: a strength
t, for which public panels are the only guide. A hypothesis h is a reading and a strength,

    p_hi = sigmoid(t_h o_hi),   accuracy of verdicts d under h = mean_i (d_i p_hi + (1 - d_i)(1 - p_hi)).

A hypothesis is allowed where the labels, if any, make it at most 20 times less likely than the best,
their log-likelihood counted by half.
The next labels are those that would move the p of all items most: with w_h the weights of the
hypotheses and F_ih = sqrt(w_h) (p_hi - mean_h p_hi), the covariance of the p is F F', a label of item i
has variance p_i (1 - p_i) about its mean, and the greedy choice of the item that takes most of the
trace is V-optimal design for a linear model (Atkinson, Donev and Tobias 2007, chapter 10).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from clash.stats.latent.candidate_models import candidate_models
from clash.stats.latent.cross_validation import fit_all
from clash.stats.latent.fit import share_decided_apart, vote_share
from clash.stats.latent.majority_challenge import DIFFERS
from clash.stats.latent.model_selection import select
from clash.stats.logistic import log_odds, sigmoid, softmax
from clash.stats.selection.expert_pool import (
    ANCHOR,
    CAP,
    FLOOR,
    PRIORS,
    SHARE,
    PoolLabels,
    Readings,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.stats.latent.fit import LatentFit
    from clash.stats.latent.patterns import Ties
    from clash.stats.typing import Bools, Floats, Index, VoteCodes

STEPS = np.linspace(-1.645, 1.645, 15)
"""Strengths of a reading, in standard deviations of its prior: from its 5th to its 95th percentile."""
LABELLED_STEPS = np.linspace(-4, 4, 41)
"""The same with labels, which can show that most judges share an error: a strength may be negative."""
TRUST = 0.5
"""How much of a label's likelihood counts: no hypothesis is quite right, and a label that refutes one
by its shape must not settle its strength."""
WEAKEST = 0.05
"""Least strength: below, a reading says nothing."""
BEHIND = 2.0
"""Standard errors by which a model may predict held-out votes worse than the best."""
LIKELIHOOD_RATIO = 20.0
"""How many times less likely than the best a hypothesis may be by the labels."""
DRAWS = 200


@dataclass(frozen=True)
class Hypotheses:
    """Readings of the votes at several strengths.

    Attributes:
        names: (H,), the reading of each.
        p: (H, N), probability of class 1.
        log_weights: (H,), by the labels; 0 without.
    """

    names: tuple[str, ...]
    p: Floats = field(repr=False)
    log_weights: Floats = field(repr=False)

    @property
    def is_allowed(self) -> Bools:
        """(H,), those that the labels leave."""
        return np.asarray(self.log_weights >= self.log_weights.max() - np.log(LIKELIHOOD_RATIO))

    @property
    def weights(self) -> Floats:
        """(H,), adding up to one."""
        return softmax(self.log_weights)

    def bounds(self, values: Floats) -> tuple[Floats, Floats]:
        """Least and largest of values (H, …) under the hypotheses that are allowed."""
        within = values[self.is_allowed]
        return within.min(axis=0), within.max(axis=0)

    def accuracy(self, verdicts: Floats) -> Floats:
        """(H,), expected share of verdicts (N,) in [0, 1] that are right; NaN is no verdict."""
        has_verdict = ~np.isnan(verdicts)
        if not has_verdict.any():
            return np.full(len(self.p), np.nan)
        p, d = self.p[:, has_verdict], verdicts[has_verdict]
        return np.asarray((p * d + (1 - p) * (1 - d)).mean(axis=1))


def read_otherwise(
    votes: VoteCodes,
    rng: np.random.Generator,
    *,
    families: Sequence[object] | None = None,
    ties: Ties = "half",
    groups: Index | None = None,
) -> Readings:
    """Every reading of a panel that the votes do not refute: models, and their other optima.

    Arguments and errors are those of :func:`clash.stats.selection.expert_pool.read_without_labels`.
    """
    selection = select(votes, rng=rng, families=families, ties=ties, groups=groups)
    patterns = selection.fit.patterns
    behind = {model.name: model.behind for model in selection.candidates}
    models = candidate_models(patterns, selection.families(families))
    fits = fit_all({name: model.fit for name, model in models.items()}, patterns)[0]
    by_pattern = {ANCHOR: selection.pattern_posterior, SHARE: vote_share(patterns)}
    for name, fit in fits.items():
        if behind.get(name, 0.0) > BEHIND:
            continue
        by_pattern[name] = fit.pattern_posterior
        alternatives = [reading(patterns, fit) for reading in models[name].readings]
        for i, alternative in enumerate(rival for rival in alternatives if _is_another(rival, fit)):
            by_pattern[f"{name}, reading {i + 2}"] = alternative.pattern_posterior
    odds = np.stack([log_odds(p)[patterns.inverse] for p in by_pattern.values()], axis=1)
    return Readings(tuple(by_pattern), odds, patterns.spins[patterns.inverse])


def _is_another(alternative: LatentFit, fit: LatentFit) -> bool:
    return share_decided_apart(alternative, fit) > DIFFERS


def hypotheses(readings: Readings, labels: PoolLabels | None = None) -> Hypotheses:
    """Each reading at each strength, and how likely the labels make it.

    Args:
        readings: of all rows.
        labels: rows with a label, if any.
    """
    has_labels = labels is not None and len(labels) > 0
    names, p = [], []
    for name, odds in zip(readings.names, np.clip(readings.odds, -CAP, CAP).T, strict=True):
        prior = PRIORS.scale(name.partition(",")[0])
        strengths = prior.mean + prior.sd * (LABELLED_STEPS if has_labels else STEPS)
        for strength in strengths if has_labels else np.maximum(strengths, WEAKEST):
            names.append(name)
            p.append(np.clip(sigmoid(strength * odds), FLOOR, 1 - FLOOR))
    table = np.stack(p)
    log_weights = np.zeros(len(table))
    if labels is not None and len(labels):
        log_weights = _log_likelihood(table[:, labels.rows], labels.y)
    return Hypotheses(tuple(names), table, log_weights)


def next_labels(hypotheses: Hypotheses, candidates: Index, n: int) -> Index:
    """The rows whose labels would narrow the probabilities of all rows most, the best first.

    Args:
        hypotheses: readings at strengths, with weights.
        candidates: rows to choose from.
        n: how many; fewer where there are fewer candidates.
    """
    mean = hypotheses.weights @ hypotheses.p
    spread = (np.sqrt(hypotheses.weights)[:, None] * (hypotheses.p - mean)).T  # (N, H)
    noise = np.maximum(mean * (1 - mean), FLOOR)
    inner = spread.T @ spread
    covariance = np.eye(spread.shape[1])
    left = np.ones(len(candidates), bool)
    selection = []
    for _ in range(min(n, len(candidates))):
        reach = spread[candidates] @ covariance  # (C, H)
        variance = (reach * spread[candidates]).sum(axis=1) + noise[candidates]
        gain = ((reach @ inner) * reach).sum(axis=1) / variance
        best = int(np.argmax(np.where(left, gain, -1.0)))
        selection.append(int(candidates[best]))
        left[best] = False
        covariance = covariance - np.outer(reach[best], reach[best]) / variance[best]
    return np.array(selection, np.intp)


def width_after(
    hypotheses: Hypotheses, rows: Index, verdicts: Floats, rng: np.random.Generator
) -> float:
    """Mean width of the range of the verdicts' accuracy once these rows have labels.

    Labels are drawn from the hypotheses by their weights: what one may expect if one of them is true.

    Args:
        hypotheses: readings at strengths, with weights.
        rows: to be labelled.
        verdicts: (N,), whose accuracy.
        rng: draws hypotheses and labels.
    """
    accuracy = hypotheses.accuracy(verdicts)
    widths = np.empty(DRAWS)
    for i, h in enumerate(rng.choice(len(hypotheses.p), DRAWS, p=hypotheses.weights)):
        y = (rng.random(len(rows)) < hypotheses.p[h, rows]).astype(float)
        of_rows = hypotheses.p[:, rows]
        gain = _log_likelihood(of_rows, y)
        low, high = Hypotheses(
            hypotheses.names, hypotheses.p, hypotheses.log_weights + gain
        ).bounds(accuracy)
        widths[i] = float(high - low)
    return float(widths.mean())


def _log_likelihood(p: Floats, y: Floats) -> Floats:
    """(H,), of labels y (L,) under probabilities (H, L), as far as they are trusted."""
    return np.asarray(TRUST * (np.log(p) @ y + np.log1p(-p) @ (1 - y)))
