"""Other readings of the votes that must share a verdict before it overrules majority."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from clash.stats.latent.dawid_skene import refits
from clash.stats.latent.fit import vote_share
from clash.stats.latent.patterns import MISSING, spins
from clash.stats.latent.vote_counting import collapse_rows
from clash.stats.logistic import log_odds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.stats.latent.fit import LatentFit
    from clash.stats.latent.patterns import Patterns
    from clash.stats.typing import Bools, Floats, VoteCodes

STABLE = 0.97
"""Share of the bootstrap refits that must decide alike."""
REFITS = 300


class Witness(Protocol):
    """Another reading of the votes."""

    @property
    def name(self) -> str:
        """The reading."""
        ...

    def posterior(self, votes: VoteCodes) -> Floats:
        """P(truth = 1 | votes) for votes of shape (n, n_judges)."""
        ...


@dataclass(frozen=True, slots=True)
class RefittedOneCoin:
    """What bootstrap refits of one coin decide nearly always.

    Attributes:
        weights: log-odds of each judge's accuracy in each refit, shape (n_refits, n_judges).
        intercepts: log-odds of the prior in each refit, shape (n_refits,).
    """

    weights: Floats
    intercepts: Floats

    @property
    def name(self) -> str:
        """The reading."""
        return "refits of one-coin"

    @classmethod
    def of(cls, patterns: Patterns, rng: np.random.Generator) -> RefittedOneCoin:
        """Refit one coin to :data:`REFITS` resamples of the items."""
        replicates = refits(patterns, patterns.resample(REFITS, rng), coin=True)
        return cls(log_odds(replicates.sensitivity), log_odds(replicates.prior))

    def posterior(self, votes: VoteCodes) -> Floats:
        """The share of the refits that decide for 1; 1/2 where fewer than :data:`STABLE` agree."""
        share = (spins(votes) @ self.weights.T + self.intercepts > 0).mean(axis=1)
        return np.where(np.maximum(share, 1 - share) >= STABLE, share, 0.5)


@dataclass(frozen=True, slots=True)
class WitnessGuard:
    """Where majority's share stands although a fit was chosen.

    Attributes:
        witnesses: readings that must share a verdict for it to overrule majority.
        level_votes_alone: too many of the verdicts are contested to believe any of them: the fit
            decides nothing but level votes, and those only where all witnesses agree.
    """

    witnesses: tuple[Witness, ...] = ()
    level_votes_alone: bool = False

    def stands(self, fit: LatentFit, votes: VoteCodes | None = None) -> Bools:
        """Where the vote share is reported, shape (n,); never where a label is.

        Args:
            fit: the chosen one.
            votes: new votes, shape (n, n_judges). Default: the fit's own patterns.
        """
        if not self.level_votes_alone:
            return contested_items(fit, self.witnesses, votes)
        rows = fit.patterns.votes if votes is None else votes
        stands = np.ones(len(rows), bool)
        level = np.flatnonzero((majority_side(rows) == 0) & (rows != MISSING).any(axis=1))
        if len(level):
            stands[level] = ~_all_share(self.witnesses, fit, rows[level])
        return stands & (fit.patterns.labels == MISSING) if votes is None else stands


NO_GUARD = WitnessGuard()


def contested_items(
    fit: LatentFit, witnesses: Sequence[Witness], votes: VoteCodes | None = None
) -> Bools:
    """Where a fit overrules majority and a witness does not, shape (n,); never where a label is."""
    rows = fit.patterns.votes if votes is None else votes
    is_contested = overruled_items(fit, rows) & ~_all_share(witnesses, fit, rows)
    is_open = fit.patterns.labels == MISSING
    return np.asarray(is_contested & is_open if votes is None else is_contested)


def overruled_items(fit: LatentFit, votes: VoteCodes) -> Bools:
    """Where a fit decides against the majority of the votes, shape (n,); level votes have none."""
    return np.asarray(majority_side(votes) * np.sign(fit.posterior(votes) - 0.5) < 0)


def majority_side(votes: VoteCodes) -> Floats:
    """1 where most votes are for 1, -1 where most are for 0, 0 where they are level; shape (n,)."""
    return np.asarray(np.sign(np.round(vote_share(collapse_rows(votes)) - 0.5, 12)))


def _all_share(witnesses: Sequence[Witness], fit: LatentFit, votes: VoteCodes) -> Bools:
    verdicts = np.sign(fit.posterior(votes) - 0.5)
    is_shared = [np.sign(witness.posterior(votes) - 0.5) == verdicts for witness in witnesses]
    return np.asarray(np.all(is_shared, axis=0)) if is_shared else np.ones(len(votes), bool)
