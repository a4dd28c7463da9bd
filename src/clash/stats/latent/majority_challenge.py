"""What a model of the panel must show before it may overrule majority.

Held-out likelihood measures how well a model describes the votes, not whether its classes are the
truth. The thresholds are conventions; docs/statistics-latent.md says on what grounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clash.stats.latent.candidate_models import (
    BLOCS,
    CHANCE,
    EQUAL,
    TRAIT_AND_BLOCS,
    CandidateModel,
    class_dependent_models,
    rivals,
)
from clash.stats.latent.cross_validation import (
    HeldOutScores,
    fit_all,
    mean_score,
    paired_z,
    score_by_refits,
)
from clash.stats.latent.fit import AMBIGUOUS, share_decided_apart
from clash.stats.latent.marginal_likelihood import CLEARLY
from clash.stats.latent.vote_correlations import (
    CLOSE,
    are_borne_out,
    are_near_copies,
    class_carriers,
    correlated_blocs,
    correlation_with,
    vote_correlations,
)
from clash.stats.latent.witnesses import (
    NO_GUARD,
    REFITS,
    STABLE,
    RefittedOneCoin,
    WitnessGuard,
    contested_items,
    majority_side,
    overruled_items,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clash.stats.latent.candidate_models import ModelFitter
    from clash.stats.latent.fit import LatentFit
    from clash.stats.latent.patterns import Patterns
    from clash.stats.typing import Floats, Index

LEAST_CROSSED_SHARE = 0.5
"""Share of the items with three votes or more below which a model is known from a minority of the
items, and its posteriors of the others depend on which judges happened to see those."""
NEAR_CHANCE = 0.15
"""Mean correlation between judges below which a panel says little of anything."""
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
MANY = 12
"""Judges from which on models that all agree may decide a level vote."""
HARDLY_AGREEING = 0.25
"""Mean correlation between judges below which they hardly agree: for independent judges, 75% right each."""
MIRROR_LEAD = 6.0
"""Standard errors by which another reading by the same model must be behind where judges hardly agree: what
separates class and factor is that one has two values and the other is normal, and no factor is quite that."""
STRAY = 0.2
"""Correlation with a model's classes below which near-copies follow none of them."""
DIFFERS = 0.05
"""Share of the items on which another reading may differ before it counts as another."""
AHEAD = 3.0
"""Standard errors by which a model with dependence by class must lead every model without."""
ABREAST, NOT_BEHIND = -0.5, -1.0
"""Standard errors by which one coin, or Dawid-Skene, may be behind a model of dependence, and one
coin behind equal weights."""
MOSTLY = AMBIGUOUS
"""Share of the items on which a model of judges that err alone must side with majority: an expert or
an inverted minority is overruled on many."""
AS_GOOD, BETTER = -1.0, 0.0
"""Standard errors by which a model with dependence by class may be behind and still be heard on single
items, and by which it may not be behind one coin, which has a quarter of its parameters."""
POSSIBLE = -CLEAR
"""Standard errors by which it may be behind and still be a reading of the votes."""
CONTESTED_SHARE, LEAST_CONTESTED = 0.25, 0.02
"""Share of the verdicts that overrule majority, and of all items, which such models contest where
none of these verdicts is to be believed."""
NEAR_COPIES_POSSIBLE = -2.0
"""The same for a reading whose classes hang on judges that may be copies of each other."""
LOPSIDED_SHARE = 0.8
"""Share of the items in one class, by majority, from which on a panel is lopsided."""
ONE_COIN = "one-coin"
ALONE = (ONE_COIN, "dawid-skene")


@dataclass(frozen=True, slots=True)
class MajorityChallenge:
    """Fits and held-out scores of the candidates and their rivals: what the questions are asked of.

    Attributes:
        patterns: the votes.
        families: the family of each judge, where known.
        models: the candidates, by name.
        fits: of the candidates, to all votes.
        by_class: of the models with dependence by class, to all votes.
        scores: held-out votes under each candidate.
        rival_scores: under each rival without classes.
        class_scores: under each model with dependence by class.
        fold: the fold of each item, shape (n_items,).
        correlation: mean correlation between the judges' votes.
    """

    patterns: Patterns
    families: Sequence[object] | None
    models: dict[str, CandidateModel]
    fits: dict[str, LatentFit]
    by_class: dict[str, LatentFit]
    scores: dict[str, HeldOutScores]
    rival_scores: dict[str, HeldOutScores]
    class_scores: dict[str, HeldOutScores]
    fold: Index
    correlation: float

    @classmethod
    def of(
        cls,
        patterns: Patterns,
        families: Sequence[object] | None,
        models: dict[str, CandidateModel],
        fits: dict[str, LatentFit],
        fold: Index,
        correlation: float,
    ) -> MajorityChallenge:
        """Score contenders and their rivals on held-out items."""

        def score_all(
            fitters: Mapping[str, ModelFitter], model_fits: dict[str, LatentFit]
        ) -> dict[str, HeldOutScores]:
            return {
                name: score_by_refits(name, fitters[name], fit, patterns, fold)
                for name, fit in model_fits.items()
            }

        rival_names = {rival for name in fits for rival in models[name].rivals}
        rival_models = {n: fit for n, fit in rivals(patterns, families).items() if n in rival_names}
        class_models = class_dependent_models(patterns) if len(fits) > 1 else {}
        by_class, _ = fit_all(class_models, patterns)
        return cls(
            patterns,
            families,
            models,
            fits,
            by_class,
            score_all({name: model.fit for name, model in models.items()}, fits),
            score_all(rival_models, fit_all(rival_models, patterns)[0]),
            score_all(class_models, by_class),
            fold,
            correlation,
        )

    @property
    def evidence(self) -> dict[str, float]:
        """Standard errors by which each candidate beats its best rival without classes."""
        return {name: paired_z(self.scores[name], self._best_rival(name)) for name in self.fits}

    @property
    def crossed_share(self) -> float:
        """Share of the items with three votes or more; 1 where there are fewer than three judges."""
        if self.patterns.n_judges < FEW:
            return 1.0
        has_many_votes = self.patterns.present.sum(axis=1) >= FEW
        return float(self.patterns.counts @ has_many_votes) / self.patterns.weight

    def class_leader(self) -> tuple[str, float] | None:
        """The model with dependence by class that leads every other kind, and by how much.

        Such a model can describe any classes there are, so that it needs the widest lead, over
        candidates and rivals: :data:`AHEAD` standard errors, and :data:`CLEARLY` nats an item, for
        its prior is weaker than theirs and earns it a few thousandths on any votes.
        """
        if not self.class_scores or self.crossed_share < LEAST_CROSSED_SHARE:
            return None
        best = max(self.class_scores.values(), key=mean_score)
        opponents = [*self.scores.values(), *self.rival_scores.values()]
        lead = min(paired_z(best, opponent) for opponent in opponents)
        margin = best.mean - max(opponent.mean for opponent in opponents)
        fit = self.by_class[best.name]
        if lead < AHEAD or margin < CLEARLY or fit.anchor_agreement < SIDES or not fit.converged:
            return None
        return best.name, lead

    def judges_that_err_alone(self) -> str | None:
        """The model of independent judges, where nothing in the votes speaks for dependence.

        Dawid-Skene, or one coin where that predicts held-out votes as well; ahead of judges that agree
        by chance, not behind any model of dependence nor clearly behind equal weights, and siding
        with majority on more than half of the items; ahead of equal weights where few items have
        three votes. It needs no lead over a continuum: one dimension behind all votes is what
        independent judges look like, be it graded or not, and the weights are the same.
        """
        if self.patterns.n_judges <= FEW or any(name not in self.scores for name in ALONE):
            return None
        coin, dawid_skene = (self.scores[name] for name in ALONE)
        model = coin if paired_z(dawid_skene, coin) <= 1 else dawid_skene
        if self.fits[model.name].anchor_agreement < MOSTLY or self._is_behind_dependence(model):
            return None
        if model is dawid_skene and self.correlation < NEAR_CHANCE:
            return None  # two rates a judge and a prior: a misled bloc becomes a rare class
        if paired_z(model, self.rival_scores[CHANCE]) < EVIDENT:
            return None
        lead = NOT_BEHIND if model is coin else 0.0
        if self.crossed_share < LEAST_CROSSED_SHARE:
            lead = EVIDENT
        if EQUAL in self.scores and paired_z(model, self.scores[EQUAL]) < lead:
            return None
        return model.name

    def _is_behind_dependence(self, model: HeldOutScores) -> bool:
        """Whether any model in which judges depend on each other predicts new votes better."""
        scores = self.scores | self.rival_scores | self.class_scores
        independent = (*ALONE, BLOCS, EQUAL, CHANCE)
        dependent = [score for name, score in scores.items() if name not in independent]
        return any(paired_z(model, score) < ABREAST for score in dependent)

    def blocs_that_err_alone(self, rng: np.random.Generator) -> tuple[WitnessGuard, str]:
        """Where majority stands if judges err in blocs and blocs err alone, and why that is in doubt.

        The model has to be clearly ahead of the same blocs without a class, and ahead of judges that err
        alone, equally or not, and of judges that agree by chance; to side with majority on most items; and
        not to hang on near-copies. Factor models, in which a bloc's verdict may be the class, are readings that contest it.
        They count by how far they are behind the best of those that share its verdicts.
        """
        fit, score = self.fits[BLOCS], self.scores[BLOCS]
        beaten = [self.scores[name] for name in (*ALONE, EQUAL) if name in self.scores]
        beaten.append(self.rival_scores[CHANCE])
        if paired_z(score, self.rival_scores[TRAIT_AND_BLOCS]) < CLEAR:
            return NO_GUARD, "the same blocs without classes predict held-out votes about as well"
        least = min(beaten, key=lambda rival: paired_z(score, rival))
        if paired_z(score, least) < EVIDENT:
            return NO_GUARD, f"{least.name} predicts held-out votes as well"
        if fit.anchor_agreement < SIDES:
            share = f"{fit.anchor_agreement:.0%}"
            return NO_GUARD, f"agrees with majority on only {share} of the items"
        if not fit.converged:
            return NO_GUARD, "the fit did not converge"
        if doubt := self.copies_behind(fit, rng):
            return NO_GUARD, doubt
        witnesses = self._contesting(fit, score, rng)
        if self._contest_many(fit, witnesses):
            names = " and ".join(witness.name for witness in witnesses)
            return NO_GUARD, f"{names}, about as likely, decides many items otherwise"
        return WitnessGuard(witnesses), ""

    def _contesting(
        self, fit: LatentFit, score: HeldOutScores, rng: np.random.Generator
    ) -> tuple[LatentFit, ...]:
        """The factor models that may be readings of the votes where blocs are."""
        fits, scores = self.fits | self.by_class, self.scores | self.class_scores
        names = [name for name in ("factor", "factor-class") if name in scores]
        allies = [name for name in names if not self._contest_many(fit, (fits[name],))]
        best = max([score, *(scores[name] for name in allies)], key=mean_score)
        return tuple(
            fits[name]
            for name in names
            if fits[name].anchor_agreement >= SIDES
            and paired_z(scores[name], best)
            >= (NEAR_COPIES_POSSIBLE if self.copies_behind(fits[name], rng) else POSSIBLE)
        )

    def _contest_many(self, fit: LatentFit, witnesses: Sequence[LatentFit]) -> bool:
        """Whether readings contest so many verdicts by which a fit overrules majority that none is believed."""
        counts = self.patterns.counts
        n_overruled = float(counts @ overruled_items(fit, self.patterns.votes))
        n_contested = float(counts @ contested_items(fit, witnesses))
        return n_contested > max(
            CONTESTED_SHARE * n_overruled, LEAST_CONTESTED * self.patterns.weight
        )

    def has_contrary_judge(self, rng: np.random.Generator) -> bool:
        """Whether one of three judges votes against both others, who agree with each other.

        The signs of the three correlations have to be the same in nearly all bootstrap resamples.
        """
        if self.patterns.n_judges != FEW or any(name not in self.fits for name in ALONE):
            return False
        signs = self._correlation_signs(self.patterns.counts)
        if sorted(signs) != [-1, -1, 1]:
            return False
        resamples = self.patterns.resample(REFITS, rng)
        is_same = [np.array_equal(self._correlation_signs(counts), signs) for counts in resamples]
        return float(np.mean(is_same)) >= STABLE

    def _correlation_signs(self, counts: Floats) -> Floats:
        pairs = np.triu_indices(self.patterns.n_judges, 1)
        return np.sign(vote_correlations(self.patterns, counts)[pairs])

    def contrary_judge_guard(self, rng: np.random.Generator) -> WitnessGuard:
        """Dawid-Skene and nearly all refits of one coin must share what overrules three judges."""
        return WitnessGuard((self.fits["dawid-skene"], RefittedOneCoin.of(self.patterns, rng)))

    def guard(self, name: str) -> WitnessGuard:
        """Where majority stands although this model was chosen.

        Models with dependence by class that predict held-out votes as well, and whose own classes are
        plain, must share a verdict that overrules majority. Where they contest many of these
        verdicts, none is believed. One coin is believed elsewhere: with one number a judge it has no
        room for a factor of one class, which other models take for a class of its own. So is a model that sees
        a rare class where majority sees one. Either gives way to models alone that predict better.
        """
        if name == ONE_COIN or self._sees_rare_class(self.fits[name]):
            return WitnessGuard(self._class_readings(name, BETTER))
        possible = self._class_readings(name, POSSIBLE)
        if self._contest_many(self.fits[name], possible):
            return WitnessGuard(possible, level_votes_alone=True)
        return WitnessGuard(self._class_readings(name, AS_GOOD))

    def _sees_rare_class(self, fit: LatentFit) -> bool:
        """Whether majority puts most items in one class, and a fit as many or more.

        Majority knows no base rate: most items that it puts in a rare class are common ones that a few judges
        mistook. A factor of one class, made a class of its own, takes items out of the common class instead.
        """
        if fit.parameters is None:
            return False
        side = majority_side(self.patterns.votes)
        share_for_one = float(self.patterns.counts @ (1 + side)) / (2 * self.patterns.weight)
        share, prior = share_for_one, fit.parameters.prior
        if share < 0.5:
            share, prior = 1 - share, 1 - prior
        return LOPSIDED_SHARE <= share <= prior

    def level_votes(self) -> tuple[LatentFit, WitnessGuard] | None:
        """What decides level votes where no model may overrule majority: all models, where they agree.

        Returns:
            The model that predicts held-out votes best, of those that converged, whose probabilities are reported, with all others as
            witnesses; None where there are too few judges or votes to fit them, or near-copies follow
            neither of its classes.
        """
        if self.patterns.n_judges < MANY or self.crossed_share < LEAST_CROSSED_SHARE:
            return None
        fits = {name: fit for name, fit in (self.fits | self.by_class).items() if name != EQUAL}
        scores = self.scores | self.class_scores
        converged = [scores[name] for name, fit in fits.items() if fit.converged]
        if not converged:
            return None
        best = max(converged, key=mean_score).name
        if self._stray_copies(fits[best]):
            return None
        return fits.pop(best), WitnessGuard(tuple(fits.values()), level_votes_alone=True)

    def _class_readings(self, name: str, behind: float) -> tuple[LatentFit, ...]:
        """The models with dependence by class that are not further behind this one than that."""
        return tuple(
            self.by_class[reading]
            for reading, score in self.class_scores.items()
            if paired_z(score, self.scores[name]) >= behind
            and self.by_class[reading].anchor_agreement >= SIDES
        )

    def _best_rival(self, name: str) -> HeldOutScores:
        names = [rival for rival in self.models[name].rivals if rival in self.rival_scores]
        return max((self.rival_scores[rival] for rival in names), key=mean_score)

    def doubt(self, name: str, rng: np.random.Generator) -> str:
        """Why a model may not overrule majority, or nothing."""
        fit, least_evidence = self.fits[name], self._required_errors(name)
        evidence = paired_z(self.scores[name], self._best_rival(name))
        if fit.anchor_agreement < SIDES:
            return (
                f"agrees with majority on only {fit.anchor_agreement:.0%} of the items, so that "
                "its classes may be swapped"
            )
        if evidence < least_evidence:
            outcome = "better than none, but not clearly" if evidence > 0 else "no better than none"
            return (
                f"its two classes fit {outcome} (z = {evidence:.1f}); at the judges' mean correlation of"
                f" {self.correlation:.2f} it takes z = {least_evidence:.0f}"
            )
        margin = self.scores[name].mean - self._best_rival(name).mean
        if self.models[name].rival_is_nested and margin < CLEARLY:
            return (
                f"its two classes add {margin:.3f} nats an item to what its couplings "
                "explain without them"
            )
        if name == EQUAL:
            return ""
        return self.copies_behind(fit, rng) or self._other_reading(name)

    def copies_behind(self, fit: LatentFit, rng: np.random.Generator) -> str:
        """A doubt where a fit's classes hang on judges that may be copies of each other, or leave some aside."""
        carrier_judges = class_carriers(self.patterns, fit.pattern_posterior)
        if (
            self._one_origin(carrier_judges)
            and are_near_copies(self.patterns, carrier_judges, rng)
            and not are_borne_out(self.patterns, carrier_judges, rng)
        ):
            return (
                f"its classes depend on {len(carrier_judges)} judges that cannot be "
                "distinguished from copies of each other"
            )
        return self._stray_copies(fit)

    def _stray_copies(self, fit: LatentFit) -> str:
        """A doubt where near-copies follow neither class: what they agree on may be the truth."""
        p, blocs = fit.pattern_posterior, np.asarray(correlated_blocs(self.patterns))
        correlations = vote_correlations(self.patterns.without_ties())
        for bloc in np.unique(blocs):
            judges = np.flatnonzero(blocs == bloc)
            if len(judges) < 2:
                continue
            within = correlations[np.ix_(judges, judges)][np.triu_indices(len(judges), 1)]
            along = [correlation_with(self.patterns, p, int(judge)) for judge in judges]
            if np.nanmean(within) >= CLOSE and abs(float(np.mean(along))) < STRAY:
                return f"{len(judges)} judges that agree closely with each other follow neither of its classes"
        return ""

    def _required_errors(self, name: str) -> float:
        """Standard errors by which the classes of a model must beat what has none."""
        model = self.models[name]
        plain = model.independent and self.patterns.n_judges > FEW
        agrees = self.correlation >= AGREEING
        if model.rival_is_nested:
            return CLEAR
        return EVIDENT if plain or agrees else BEYOND_DOUBT

    def _one_origin(self, judges: Sequence[int]) -> bool:
        """Whether these may come from one source: a part of the panel, not known to be of several families."""
        if not 1 < len(judges) < self.patterns.n_judges:
            return False
        return self.families is None or len({self.families[judge] for judge in judges}) == 1

    def _other_reading(self, name: str) -> str:
        """A doubt where another optimum of the model decides otherwise and is nearly as good."""
        model, fit = self.models[name], self.fits[name]
        behind = MIRROR_LEAD if self.correlation < HARDLY_AGREEING else CLEAR
        for reading in model.readings:
            alternative = reading(self.patterns, fit)
            differs = share_decided_apart(alternative, fit)
            if differs <= DIFFERS:
                continue
            score = score_by_refits(name, model.fit, alternative, self.patterns, self.fold)
            if paired_z(self.scores[name], score) < behind:
                return (
                    f"another solution of the same model, which decides "
                    f"{differs:.0%} of the items differently, predicts the votes nearly as well"
                )
        return ""
