"""Posteriors that admit what double-counting costs.

A model that takes dependent judges for independent ones multiplies the same evidence. What it
should have said can be seen without a label: leave one judge out, predict its vote from the
posterior of the others, and ask by what temperature those predictions are calibrated. A judge is
a noisy copy of the truth, so the truth may be more predictable than a judge; but the label that a
person gives is noisy as well, and the judges' common errors are invisible from within. A further
judge's vote is therefore taken as the stand-in for the label.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from clash.stats.latent.fit import LatentFit, VoteLaw, observe, posterior, vote_share
from clash.stats.latent.patterns import MISSING, TIE, Patterns
from clash.stats.latent.vote_correlations import correlation_with
from clash.stats.latent.vote_counting import collapse_rows
from clash.stats.logistic import log_odds, sigmoid

if TYPE_CHECKING:
    from collections.abc import Callable

    from clash.stats.typing import Floats, VoteCodes

JUST = 1e-3
"""Log-odds of a decision that the vote share contradicts."""
HOTTEST, COLDEST = 60.0, 1.0
"""Range of the temperature; below 1 a posterior would be sharpened, which nothing here supports."""


@dataclass(frozen=True, slots=True)
class LeftOutVotes:
    """Votes of judges, each predicted from the others.

    Attributes:
        odds: log-odds that the truth is 1 by the other judges' votes, one per prediction.
        vote: the judge's vote, 1/2 for a tie.
        weight: how many items the prediction stands for.
    """

    odds: Floats
    vote: Floats
    weight: Floats

    def cross_entropy(self, temperature: float) -> float:
        """Mean loss, in nats, of predicting each vote by the tempered log-odds."""
        odds = self.odds / temperature
        return float(self.weight @ (np.logaddexp(0, odds) - self.vote * odds) / self.weight.sum())


def leave_one_judge_out(law: VoteLaw, patterns: Patterns) -> LeftOutVotes:
    """Each vote with the log-odds that the other judges' votes give; the law is not refitted."""
    full_posterior = posterior(law, patterns.votes)
    odds, votes, weights = [np.empty(0)], [np.empty(0)], [np.empty(0)]
    for judge in range(patterns.n_judges):
        votes_of_others = patterns.votes.copy()
        votes_of_others[:, judge] = MISSING
        has_votes = patterns.present[:, judge] & (votes_of_others != MISSING).any(axis=1)
        if not has_votes.any():
            continue
        judge_votes = patterns.votes[has_votes, judge]
        odds.append(log_odds(posterior(law, votes_of_others[has_votes])))
        votes.append(np.where(judge_votes == TIE, 0.5, judge_votes))
        skill = correlation_with(patterns, full_posterior, judge)
        weights.append(patterns.counts[has_votes] * skill**2)
    return LeftOutVotes(np.concatenate(odds), np.concatenate(votes), np.concatenate(weights))


def temperature(law: VoteLaw, patterns: Patterns) -> float:
    """The temperature at which left-out votes are best predicted; 1 where none can be."""
    left_out = leave_one_judge_out(law, patterns)
    return best_temperature(left_out.cross_entropy) if left_out.weight.any() else 1.0


def best_temperature(loss: Callable[[float], float]) -> float:
    """The temperature between :data:`COLDEST` and :data:`HOTTEST` of the smallest loss.

    Searched on a log scale, a temperature being a factor.
    """
    from scipy.optimize import minimize_scalar

    end = minimize_scalar(
        lambda log_t: loss(float(np.exp(log_t))),
        bounds=(np.log(COLDEST), np.log(HOTTEST)),
        method="bounded",
    )
    return float(np.exp(end.x))


def temper(fit: LatentFit) -> LatentFit:
    """The fit with its temperature chosen by leaving judges out.

    Model: log-odds are divided by one number T >= 1 per panel, so that no item changes sides.
    Fails where judges agree with each other far more than with the label (noisy labels, shared
    bias): the posterior stays too sure, which only labels can show.
    """
    if fit.parameters is None or fit.log_likelihood is None:
        return fit
    return replace(fit, temperature=temperature(fit.parameters, fit.patterns))


def blend(fit: LatentFit, votes: VoteCodes | None = None) -> Floats:
    """The tempered posterior averaged, in log-odds, with the smoothed vote share.

    The fit keeps the decision: where the share is on the other side and outweighs it, the blend
    stops just short of 1/2.

    Args:
        fit: a tempered fit.
        votes: new votes, shape (n, n_judges). Default: the fit's own patterns, where given
            labels stay as observed.
    """
    if votes is None:
        p, share = fit.pattern_posterior, vote_share(fit.patterns)
        return observe(_blend_log_odds(p, share, fit.temperature), fit.patterns.labels)
    return _blend_log_odds(fit.posterior(votes), vote_share(collapse_rows(votes)), fit.temperature)


def _blend_log_odds(posterior_own: Floats, share: Floats, temperature: float) -> Floats:
    odds = log_odds(posterior_own) / temperature
    log_blend = (odds + log_odds(share)) / 2
    return sigmoid(np.where(odds * log_blend < 0, JUST * np.sign(odds), log_blend))
