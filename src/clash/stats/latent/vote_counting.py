"""Vote counting: the anchor every model is compared with, and the fallback of all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from clash.errors import StatisticsError
from clash.stats.latent.fit import LatentFit, agreement, observe, vote_share
from clash.stats.latent.patterns import Patterns, spins
from clash.stats.logistic import sigmoid

if TYPE_CHECKING:
    from clash.stats.typing import Floats, VoteCodes


@dataclass(frozen=True, slots=True)
class VoteShareLaw:
    """Smoothed vote share as a probability.

    Attributes:
        smoothing: votes added to either side.
        prior: 1/2: the share says it all.
        n_params: none is fitted.
    """

    smoothing: float = 1.0
    prior: float = 0.5
    n_params: int = 0

    def log_likelihoods(self, votes: VoteCodes) -> Floats:
        """Logs of the shares of the two classes: a score whose posterior is the share."""
        share = vote_share(collapse_rows(votes), self.smoothing)
        return np.log(np.column_stack([1 - share, share]))


@dataclass(frozen=True, slots=True)
class WeightedVoteLaw:
    """A weighted vote: log-odds ``intercept + sum_j weights_j s_j`` with votes s = +-1.

    Attributes:
        weights: shape (n_judges,).
        intercept: log-odds of class 1 where nobody votes.
        prior: 1/2: the intercept holds what is known before the votes.
    """

    weights: Floats
    intercept: float = 0.0
    prior: float = 0.5

    @property
    def n_params(self) -> int:
        """None: the weights are given, not fitted."""
        return 0

    def log_likelihoods(self, votes: VoteCodes) -> Floats:
        """Half the log-odds, with either sign; shape (n, 2)."""
        half = (self.intercept + spins(votes) @ self.weights) / 2
        return np.column_stack([-half, half])


def majority(patterns: Patterns, *, smoothing: float = 1.0) -> LatentFit:
    """Uniform majority vote (UMV), its smoothed vote share as its probability.

    Model: none. The share ``(votes for 1 + s) / (votes + 2 s)`` is the probability that a
    further judge drawn from the same pool votes 1, under a Beta(s, s) prior on the item.
    Assumes that judges are better than chance on average and roughly equal.
    Fails when a bloc of dependent judges outvotes the others, when the panel is wrong-signed
    (which no unlabelled method can see), and where judges differ much in skill.
    Source: ising-aggregation, section 4 (CI-UMV).

    Args:
        patterns: the votes; a tie is half a vote, a missing vote is none.
        smoothing: s above, > 0.
    """
    rule = VoteShareLaw(smoothing)
    return _rule("majority", rule, vote_share(patterns, smoothing), patterns)


def weighted_majority(
    patterns: Patterns, weights: npt.ArrayLike, *, intercept: float = 0.0
) -> LatentFit:
    """Weighted vote with given weights, as log-odds: the form of equation (12).

    With ``weights_j = log(p_j / (1 - p_j))`` it is Bayes' rule for independent judges of
    symmetric accuracy p_j. Fails as :func:`majority` does where judges depend on each other.

    Raises:
        StatisticsError: not one finite weight per judge.
    """
    column = np.asarray(weights, np.float64)
    if column.shape != (patterns.n_judges,) or not np.isfinite(column).all():
        raise StatisticsError(f"weights must be {patterns.n_judges} finite numbers")
    rule = WeightedVoteLaw(column, float(intercept))
    p = sigmoid(intercept + patterns.spins @ column)
    return _rule("weighted-majority", rule, p, patterns)


def collapse_rows(votes: VoteCodes) -> Patterns:
    """Rows as patterns of their own, in order, for code that works on patterns."""
    n = len(votes)
    return Patterns(votes, np.full(n, -1, np.int8), np.ones(n), np.arange(n))


def _rule(
    name: str, rule: VoteShareLaw | WeightedVoteLaw, p: Floats, patterns: Patterns
) -> LatentFit:
    return LatentFit(
        name=name,
        patterns=patterns,
        parameters=rule,
        pattern_posterior=observe(p, patterns.labels),
        log_likelihood=None,
        n_params=0,
        anchor_agreement=agreement(p, vote_share(patterns), patterns.counts),
    )
