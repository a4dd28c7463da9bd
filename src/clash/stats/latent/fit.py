"""What every model of an unknown truth reports: posteriors, and how far to believe the fit."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from clash.stats.latent.patterns import MISSING, Patterns
from clash.stats.logistic import log_odds, sigmoid

if TYPE_CHECKING:
    from clash.stats.typing import Floats, VoteCodes

AMBIGUOUS = 0.6
"""Below this agreement with majority, which class is called 1 is close to a convention."""


class VoteLaw(Protocol):
    """Parameters of P(truth) and of P(votes | truth)."""

    @property
    def prior(self) -> float:
        """P(truth = 1) before any vote."""
        ...

    @property
    def n_params(self) -> int:
        """Free parameters, the prior among them."""
        ...

    def log_likelihoods(self, votes: VoteCodes) -> Floats:
        """Log P(votes | truth = 0 and 1), shape (n, 2); missing votes are summed out."""
        ...


@dataclass(frozen=True, slots=True)
class FitStart:
    """One start of a fit and where it ended.

    Attributes:
        name: what it started from.
        objective: penalised log-likelihood at the end (higher is better).
        anchor_agreement: share of items on which it ends on majority's side (a tie is half).
        converged: whether the optimiser met its tolerance.
        differs: share of items that it decides otherwise than the start that won.
    """

    name: str
    objective: float
    anchor_agreement: float
    converged: bool
    differs: float = 0.0


@dataclass(frozen=True, slots=True)
class LatentFit:
    """A fitted model of votes whose truth, 0 or 1, is unknown.

    Attributes:
        name: the method.
        patterns: what it was fitted to.
        parameters: the fitted law of truth and votes; None for a rule without one.
        pattern_posterior: P(truth = 1 | votes) of shape (n_patterns,), as the model has it;
            0 or 1 where the label was given.
        log_likelihood: of the votes (and given labels); None for a rule without a law.
        n_params: free parameters.
        converged: whether the optimiser met its tolerance.
        n_iter: iterations of the winning start.
        residual: norm of the gradient (or largest parameter step, for EM) at the end.
        warnings: what a reader should know before believing the posteriors.
        anchor_agreement: share of items on which the fit sides with uniform majority.
        start: the start that won.
        starts: every start tried.
        theta: where the optimiser ended, to start another fit from; None for a closed form.
        temperature: by how much the log-odds are divided in ``tempered``; 1 is the model's own.
    """

    name: str
    patterns: Patterns
    parameters: VoteLaw | None
    pattern_posterior: Floats
    log_likelihood: float | None
    n_params: int
    converged: bool = True
    n_iter: int = 0
    residual: float = 0.0
    warnings: tuple[str, ...] = ()
    anchor_agreement: float = 1.0
    start: str = "closed form"
    starts: tuple[FitStart, ...] = ()
    theta: Floats | None = field(default=None, repr=False)
    temperature: float = 1.0

    @property
    def item_posterior(self) -> Floats:
        """P(truth = 1 | votes) of shape (n_items,), as the model has it."""
        return self.patterns.expand(self.pattern_posterior)

    @property
    def tempered_posterior(self) -> Floats:
        """P(truth = 1 | votes) of shape (n_items,), log-odds divided by ``temperature``."""
        return self.patterns.expand(soften(self.pattern_posterior, self.temperature))

    @property
    def bic(self) -> float | None:
        """Bayesian information criterion, smaller is better; None without a likelihood."""
        if self.log_likelihood is None:
            return None
        return -2 * self.log_likelihood + self.n_params * float(np.log(self.patterns.weight))

    def posterior(self, votes: VoteCodes, *, is_tempered: bool = False) -> Floats:
        """P(truth = 1 | votes) for new votes of shape (n, n_judges), coded as in ``patterns``."""
        p = self._model_posterior(np.atleast_2d(np.asarray(votes, np.int8)))
        return soften(p, self.temperature) if is_tempered else p

    def with_warnings(self, *messages: str) -> LatentFit:
        """The same fit with more warnings."""
        return replace(self, warnings=(*self.warnings, *messages))

    def _model_posterior(self, votes: VoteCodes) -> Floats:
        if self.parameters is None:
            raise TypeError(f"{self.name} has no model to apply to new votes")
        return posterior(self.parameters, votes)


def soften(p: Floats, temperature: float) -> Floats:
    """A posterior with its log-odds divided by the temperature."""
    return p if temperature == 1 else sigmoid(log_odds(p) / temperature)


def joint(parameters: VoteLaw, votes: VoteCodes) -> Floats:
    """Log P(truth, votes) for truth = 0 and 1, shape (n, 2)."""
    prevalence = parameters.prior
    return parameters.log_likelihoods(votes) + np.log([1 - prevalence, prevalence])


def posterior(parameters: VoteLaw, votes: VoteCodes) -> Floats:
    """P(truth = 1 | votes), shape (n,)."""
    log_joint = joint(parameters, votes)
    return sigmoid(log_joint[:, 1] - log_joint[:, 0])


def log_likelihood_per_pattern(parameters: VoteLaw, patterns: Patterns) -> Floats:
    """Log P(votes), or log P(votes, label) where a label was given; shape (n_patterns,)."""
    log_joint = joint(parameters, patterns.votes)
    marginal = np.logaddexp(log_joint[:, 0], log_joint[:, 1])
    has_label = patterns.labels != MISSING
    return np.where(
        has_label,
        log_joint[np.arange(len(log_joint)), np.where(has_label, patterns.labels, 0)],
        marginal,
    )


def observe(p: Floats, labels: VoteCodes) -> Floats:
    """Posteriors with the given labels in place of what was inferred."""
    return np.where(labels == MISSING, p, labels)


def vote_share(patterns: Patterns, smoothing: float = 1.0) -> Floats:
    """Smoothed share of the votes for class 1, shape (n_patterns,); 1/2 where nobody voted."""
    for_one = patterns.for_one.sum(axis=1)
    n_votes = patterns.present.sum(axis=1)
    return np.asarray((for_one + smoothing) / (n_votes + 2 * smoothing))


def agreement(p: Floats, q: Floats, counts: Floats) -> float:
    """Share of items on which two posteriors are on the same side; one at 1/2 counts half.

    NaN without items, as where a fold holds the only group.
    """
    sides = np.sign(np.round(p - 0.5, 12)) * np.sign(np.round(q - 0.5, 12))
    n_items = float(counts.sum())
    return float(counts @ (1 + sides)) / (2 * n_items) if n_items else float("nan")


def share_decided_apart(fit: LatentFit, reference: LatentFit) -> float:
    """Share of the items that two fits to the same patterns decide differently."""
    differs = (fit.pattern_posterior > 0.5) != (reference.pattern_posterior > 0.5)
    return float(fit.patterns.counts @ differs) / fit.patterns.weight


def assemble(name: str, parameters: VoteLaw, patterns: Patterns) -> LatentFit:
    """A fit from its parameters: posteriors, likelihood, agreement with majority, warnings."""
    per_pattern = log_likelihood_per_pattern(parameters, patterns)
    p = observe(posterior(parameters, patterns.votes), patterns.labels)
    agrees = agreement(p, vote_share(patterns), patterns.counts)
    fit = LatentFit(
        name=name,
        patterns=patterns,
        parameters=parameters,
        pattern_posterior=p,
        log_likelihood=float(patterns.counts @ per_pattern),
        n_params=parameters.n_params,
        anchor_agreement=agrees,
    )
    return warn_if_ambiguous(fit)


def warn_if_ambiguous(fit: LatentFit) -> LatentFit:
    """The fit, with a warning where which class is which is close to a convention."""
    if fit.anchor_agreement >= AMBIGUOUS:
        return fit
    return fit.with_warnings(
        f"agrees with majority on only {fit.anchor_agreement:.0%} of the items: it is nearly "
        "arbitrary which class is which; labels would settle it"
    )
