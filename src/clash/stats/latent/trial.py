"""The questions that a model has to answer before it may overrule majority."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from clash.errors import StatisticsError
from clash.stats.latent.candidate_models import EQUAL, Contender, rivals
from clash.stats.latent.cross_validation import HeldOut, paired_z, votes_held_out
from clash.stats.latent.fit import decided_apart
from clash.stats.latent.marginal_likelihood import CLEARLY
from clash.stats.latent.vote_correlations import carriers, copies

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np

    from clash.stats.latent.fit import LatentFit
    from clash.stats.latent.patterns import Patterns
    from clash.stats.typing import Index

SIDES = 0.7
"""Share of the items on which a model must side with majority, or the classes may be swapped."""
AGREEING = 0.5
"""Mean correlation between judges from which on the panel counts as agreeing: for independent
judges, 85% right each."""
EVIDENT, BEYOND_DOUBT = 1.0, 4.0
"""Standard errors by which classes must beat traits: where judges agree or are independent, and
where they do not agree and the model has factors of its own."""
CLEAR = 3.0
"""Standard errors by which a class must beat the same model without it, or another reading."""
FEW = 3
"""Judges up to which no second trait can be told from a class."""
DIFFERS = 0.05
"""Share of the items on which another reading may differ before it counts as another."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What the questions are asked of.

    Attributes:
        scores: held-out votes under each contender.
        evidence: standard errors by which each beats its best rival without classes.
        margin: by how much, in nats an item.
    """

    patterns: Patterns
    families: Sequence[object] | None
    models: dict[str, Contender]
    fits: dict[str, LatentFit]
    scores: dict[str, HeldOut]
    evidence: dict[str, float]
    margin: dict[str, float]
    fold: Index
    correlation: float

    @classmethod
    def of(
        cls,
        patterns: Patterns,
        families: Sequence[object] | None,
        models: dict[str, Contender],
        fits: dict[str, LatentFit],
        fold: Index,
        correlation: float,
    ) -> Trial:
        """Score contenders and their rivals on held-out items."""
        scores = {n: foreseen(n, models[n].fit, fits[n], patterns, fold) for n in fits}
        needed = {rival for name in fits for rival in models[name].rivals}
        known = {n: fit for n, fit in rivals(patterns, families).items() if n in needed}
        without = {
            name: foreseen(name, known[name], fit, patterns, fold)
            for name, fit in fitted(known, patterns)[0].items()
        }
        best = {
            name: max((without[r] for r in models[name].rivals if r in without), key=mean_score)
            for name in fits
        }
        evidence = {name: paired_z(scores[name], best[name]) for name in fits}
        margin = {name: scores[name].mean - best[name].mean for name in fits}
        return cls(patterns, families, models, fits, scores, evidence, margin, fold, correlation)

    def doubt(self, name: str, rng: np.random.Generator) -> str:
        """Why a model may not overrule majority, or nothing."""
        fit, needed = self.fits[name], self._needed(name)
        if fit.anchor_agreement < SIDES:
            return (
                f"sides with majority on only {fit.anchor_agreement:.0%} of the items, so that "
                "its classes may be swapped"
            )
        if self.evidence[name] < needed:
            return (
                f"against the same votes without classes its two classes stand at "
                f"{self.evidence[name]:+.1f} standard errors; at the judges' mean correlation of "
                f"{self.correlation:.2f} it takes {needed:.0f}"
            )
        if self.models[name].nested and self.margin[name] < CLEARLY:
            return (
                f"its two classes add {self.margin[name]:.3f} nats an item to what its couplings "
                "explain without them"
            )
        if name == EQUAL:
            return ""
        carried = carriers(self.patterns, fit.pattern_posterior)
        if self._one_origin(carried) and copies(self.patterns, carried, rng):
            return (
                f"its classes hang on {len(carried)} judges that cannot be told from copies of "
                "each other"
            )
        return self._other_reading(name)

    def _needed(self, name: str) -> float:
        """Standard errors by which the classes of a model must beat what has none."""
        model = self.models[name]
        plain = model.independent and self.patterns.n_judges > FEW
        agreed = self.correlation >= AGREEING
        if model.nested:
            return CLEAR
        return EVIDENT if plain or agreed else BEYOND_DOUBT

    def _one_origin(self, judges: Sequence[int]) -> bool:
        """Whether few judges may come from one source: they are not known to be of several families."""
        n = self.patterns.n_judges
        if not 1 < len(judges) <= (n / 2 if n > FEW else n - 1):
            return False
        return self.families is None or len({self.families[judge] for judge in judges}) == 1

    def _other_reading(self, name: str) -> str:
        """A doubt where another optimum of the model decides otherwise and is nearly as good."""
        model, fit = self.models[name], self.fits[name]
        for reading in model.others:
            other = reading(self.patterns, fit)
            differs = decided_apart(other, fit)
            if differs <= DIFFERS:
                continue
            score = foreseen(name, model.fit, other, self.patterns, self.fold)
            if paired_z(self.scores[name], score) < CLEAR:
                return (
                    f"another reading of the votes by the same model, which decides "
                    f"{differs:.0%} of the items otherwise, foresees them nearly as well"
                )
        return ""


def fitted(
    models: dict[str, Callable[..., LatentFit]], patterns: Patterns
) -> tuple[dict[str, LatentFit], dict[str, HeldOut]]:
    """Every model fitted to all votes, and those that were refused."""
    fits, refusals = {}, {}
    for name, fit in models.items():
        try:
            fits[name] = fit(patterns)
        except StatisticsError as refusal:
            refusals[name] = HeldOut(name, None, str(refusal))
    return fits, refusals


def foreseen(
    name: str,
    fit: Callable[..., LatentFit],
    whole: LatentFit,
    patterns: Patterns,
    fold: Index,
) -> HeldOut:
    """Held-out votes under refits that start where the fit to all votes ended.

    So the model that is scored is the one that would be used, not another optimum that a fold
    fell into, and a score needs a looser tolerance than a posterior.
    """
    if whole.theta is None:
        return votes_held_out(name, fit, patterns, fold)
    return votes_held_out(name, partial(fit, tol=1e-4, warm=whole), patterns, fold)


def mean_score(score: HeldOut) -> float:
    """The mean held-out score, for sorting."""
    return score.mean
