"""Choose a model of the panel, with labels or without, and say why.

Held-out likelihood measures how well a model describes the votes, not whether its classes are the
truth: dependent judges form classes of their own. A model therefore has to pass three questions
before it may overrule majority:

1. Are there two classes at all? The model has to predict new votes as well as rivals that explain
   by continuous traits, of the panel and of its blocs, that judges agree, and have no classes;
   better than they where it has factors of its own, or where the judges agree little.
2. Is it plain which class is which? The model has to side with majority on most items, the judges
   it hangs on must not be copies of each other, and no other reading of the votes by the same
   model may predict them nearly as well.
3. Is it worth it? Judges are weighted only where that predicts votes better than equal weights.

The thresholds are conventions; docs/statistics-latent.md says on what grounds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from clash.errors import StatisticsError
from clash.stats.latent.candidate_models import EQUAL, CandidateModel, candidate_models, rivals
from clash.stats.latent.cross_validation import (
    HeldOutScores,
    fit_all,
    folds,
    labels_held_out,
    mean_score,
    paired_z,
    score_by_refits,
    within_one_standard_error,
)
from clash.stats.latent.dawid_skene import DawidSkene
from clash.stats.latent.fit import observe, posterior, share_decided_apart
from clash.stats.latent.identifiability import has_labels, require_votes
from clash.stats.latent.ising import ising_family
from clash.stats.latent.marginal_likelihood import CLEARLY
from clash.stats.latent.patterns import Patterns, Ties, collapse
from clash.stats.latent.temperature_scaling import blend, temper
from clash.stats.latent.vote_correlations import are_near_copies, class_carriers, mean_correlation
from clash.stats.latent.vote_counting import majority

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from clash.stats.latent.fit import LatentFit
    from clash.stats.typing import Floats, Index, VoteCodes

LEAST_CROSSED_SHARE = 0.5
"""Share of the items with three votes or more below which a model is known from a minority of the
items, and its posteriors of the others depend on which judges happened to see those."""
FEWEST = 50
"""Items below which judges are not weighted: the standard errors of held-out scores are unreliable."""
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
DIFFERS = 0.05
"""Share of the items on which another reading may differ before it counts as another."""


@dataclass(frozen=True, slots=True)
class ConsideredModel:
    """One model that was considered.

    Attributes:
        name: the model.
        held_out: mean held-out score per item: log-likelihood of votes, or minus the log-loss
            of labels; None where the model was refused.
        behind: standard errors by which it is behind the best; 0 for the best.
        evidence: standard errors by which it beats its best rival without classes; None where
            labels decided or the model was refused.
        doubt: why it may not overrule majority, or why it was refused; empty where it may.
    """

    name: str
    held_out: float | None
    behind: float
    evidence: float | None
    doubt: str


@dataclass(frozen=True, slots=True)
class ModelSelection:
    """The chosen method, its posteriors, and why.

    Attributes:
        method: name of the method; ``majority`` where nothing earned more trust.
        reason: in words.
        fit: the chosen fit, tempered.
        pattern_posterior: P(truth = 1) of shape (n_patterns,), to be reported.
        candidates: every model considered.
        correlation: mean correlation between the judges' votes.
        warnings: what a reader should know before believing any of it.
    """

    method: str
    reason: str
    fit: LatentFit
    pattern_posterior: Floats
    candidates: tuple[ConsideredModel, ...]
    correlation: float
    warnings: tuple[str, ...]

    @property
    def item_posterior(self) -> Floats:
        """P(truth = 1) of shape (n_items,), to be reported."""
        return self.fit.patterns.expand(self.pattern_posterior)

    def posterior(self, votes: VoteCodes) -> Floats:
        """P(truth = 1) for new votes of shape (n, n_judges)."""
        rows = np.atleast_2d(np.asarray(votes, np.int8))
        if self.fit.name == "majority":
            return self.fit.posterior(rows)
        return blend(self.fit, rows)


def select(
    votes: npt.ArrayLike,
    *,
    rng: np.random.Generator,
    families: Sequence[object] | None = None,
    labels: npt.ArrayLike | None = None,
    ties: Ties = "half",
    groups: npt.ArrayLike | None = None,
    n_folds: int = 5,
) -> ModelSelection:
    """Choose a model of the panel by cross-validation, with a guard towards majority.

    Without labels, every model is asked the questions above; of those that pass, the simplest
    within one standard error of the best held-out likelihood of votes is used, and majority
    where none passes, or where equal weights predict votes as well. With at least five labelled
    items of each class, models and majority are compared by the log-loss of held-out labels
    instead, again with one standard error towards majority. The posterior reported is the model's, tempered, averaged with the
    smoothed vote share.
    Fails where the majority is wrong together: no unlabelled method can see that.

    Args:
        votes: shape (n_items, n_judges), codes of ``collapse``.
        rng: draws the folds.
        families: the family of each judge; adds the family models.
        labels: shape (n_items,), -1 where unknown.
        ties: as in ``collapse``.
        groups: shape (n_items,): copies of one item (swapped, repeated) share a group, and are
            held out together. Default: every item its own.
        n_folds: folds of the cross-validation, at least 2.

    Raises:
        StatisticsError: no votes at all, or fewer than 2 folds.
    """
    patterns = collapse(votes, labels=labels, ties=ties)
    require_votes(patterns)
    if n_folds < 2:
        raise StatisticsError("cross-validation needs at least 2 folds")
    fold = folds(patterns.n_items, n_folds, rng, groups)
    if has_labels(patterns):
        return _by_labels(patterns, families, fold)
    return _by_votes(patterns, families, fold, rng)


def _by_votes(
    patterns: Patterns,
    families: Sequence[object] | None,
    fold: Index,
    rng: np.random.Generator,
) -> ModelSelection:
    correlation = mean_correlation(patterns)
    crossed_share = float(patterns.counts @ (patterns.present.sum(axis=1) >= 3)) / patterns.weight
    if patterns.n_judges >= 3 and crossed_share < LEAST_CROSSED_SHARE:
        reason = (
            f"only {crossed_share:.0%} of the items have three votes or more, and a model of all "
            "items would rest on these few"
        )
        return _majority_selection(patterns, reason, (), correlation)
    models = candidate_models(patterns, families)
    if patterns.n_items < FEWEST:
        models = {EQUAL: models[EQUAL]}
    fits, refusals = fit_all({name: model.fit for name, model in models.items()}, patterns)
    if not fits:
        reason = "no model is identified: " + next(iter(refusals.values())).refusal
        return _majority_selection(
            patterns, reason, _considered_models(refusals, {}, {}), correlation
        )
    challenge = MajorityChallenge.of(patterns, families, models, fits, fold, correlation)
    doubts = {name: challenge.doubt(name, rng) for name in fits}
    models_considered = _considered_models(challenge.scores | refusals, challenge.evidence, doubts)
    name = _simplest({n: challenge.scores[n] for n in fits if n == EQUAL or not doubts[n]})
    if name is None or doubts[name]:
        eligible = [n for n in doubts if not models[n].rival_is_nested] or list(doubts)
        best = max((challenge.scores[n] for n in eligible), key=mean_score).name
        reason = f"{best} describes the votes best, but {doubts[best] or doubts[EQUAL]}"
        return _majority_selection(patterns, reason, models_considered, correlation)
    if name == EQUAL:
        few = f"; {patterns.n_items} items are too few to decide" if len(models) == 1 else ""
        return _equal_skill_selection(fits[name], models_considered, correlation, few)
    fit = temper(fits[name])
    reason = (
        f"{name}: of the models that may overrule majority, the simplest within one standard "
        f"error of the best held-out likelihood; two classes against the best continuous trait: "
        f"z = {challenge.evidence[name]:+.1f}; the judges' mean correlation is "
        f"{correlation:.2f}, and it agrees with majority on {fit.anchor_agreement:.0%} of the items"
    )
    warnings = (*_warnings(correlation), *fit.warnings)
    return ModelSelection(name, reason, fit, blend(fit), models_considered, correlation, warnings)


def _by_labels(
    patterns: Patterns, families: Sequence[object] | None, fold: Index
) -> ModelSelection:
    correlation = mean_correlation(patterns)
    models: dict[str, Callable[..., LatentFit]] = {"majority": majority}
    models |= {name: model.fit for name, model in candidate_models(patterns, families).items()}
    del models[EQUAL]  # majority is there itself
    if families is not None:
        models["ising-family"] = partial(ising_family, families=families)
    fits, refusals = fit_all(models, patterns)
    scores = refusals | {
        name: labels_held_out(name, _warm_refitter(models[name], fit), patterns, fold)
        for name, fit in fits.items()
    }
    scores = {name: scores[name] for name in models}  # simplest first
    models_considered = _considered_models(scores, {}, {})
    name = _simplest(scores) or "majority"
    n_labels = int((patterns.labels[patterns.inverse] >= 0).sum())
    reason = (
        f"{name} is the simplest method within one standard error of the best log-loss on "
        f"{n_labels} held-out labels"
    )
    if name == "majority":
        return _majority_selection(patterns, reason, models_considered, correlation, by_labels=True)
    fit = temper(fits[name])
    return ModelSelection(
        name, reason, fit, blend(fit), models_considered, correlation, fit.warnings
    )


def _warm_refitter(
    model: Callable[..., LatentFit], full_fit: LatentFit
) -> Callable[..., LatentFit]:
    """The model, climbing from where the fit to all labels ended: four fifths of them stay in."""
    return model if full_fit.theta is None else partial(model, tol=1e-4, warm=full_fit)


def _simplest(scores: dict[str, HeldOutScores]) -> str | None:
    """The first model, in order of simplicity, within one standard error of the best."""
    best = max(scores.values(), key=mean_score, default=None)
    if best is None or best.scores is None:
        return None
    return next(name for name, score in scores.items() if within_one_standard_error(score, best))


def _considered_models(
    scores: dict[str, HeldOutScores], evidence: dict[str, float], doubts: dict[str, str]
) -> tuple[ConsideredModel, ...]:
    best = max(scores.values(), key=mean_score)
    return tuple(
        ConsideredModel(
            name,
            None if score.scores is None else score.mean,
            -paired_z(score, best),
            evidence.get(name),
            score.refusal or doubts.get(name, ""),
        )
        for name, score in scores.items()
    )


def _majority_selection(
    patterns: Patterns,
    reason: str,
    models_considered: tuple[ConsideredModel, ...],
    correlation: float,
    *,
    by_labels: bool = False,
) -> ModelSelection:
    fit = majority(patterns)
    warnings = () if by_labels else _warnings(correlation)
    return ModelSelection(
        "majority", reason, fit, fit.pattern_posterior, models_considered, correlation, warnings
    )


def _equal_skill_selection(
    fit: LatentFit, models_considered: tuple[ConsideredModel, ...], correlation: float, few: str
) -> ModelSelection:
    """Majority's verdicts, with the probabilities of judges that are equally good.

    Where judges hardly agree those would be no better than the vote share.
    """
    reason = f"no weighting of the judges predicts votes better than equal weights{few}"
    law = fit.parameters
    if correlation < NEAR_CHANCE or not isinstance(law, DawidSkene):
        return _majority_selection(fit.patterns, reason, models_considered, correlation)
    level = replace(law, prior=0.5)  # a prior of its own would decide narrow votes
    p = observe(posterior(level, fit.patterns.votes), fit.patterns.labels)
    fair = temper(replace(fit, parameters=level, pattern_posterior=p))
    warnings = _warnings(correlation)
    return ModelSelection(
        "majority", reason, fair, blend(fair), models_considered, correlation, warnings
    )


def _warnings(correlation: float) -> tuple[str, ...]:
    """What no unlabelled method can rule out."""
    blind = "a majority that shares an error cannot be detected without labels"
    if correlation >= NEAR_CHANCE:
        return (blind,)
    near = (
        f"the judges agree little more than by chance (mean correlation {correlation:.2f}): the "
        "panel cannot be trusted without labels"
    )
    return near, blind


@dataclass(frozen=True, slots=True)
class MajorityChallenge:
    """Fits and held-out scores of the candidates and their rivals: what the questions are asked of.

    Attributes:
        patterns: the votes.
        families: the family of each judge, where known.
        models: the candidates, by name.
        fits: of the candidates, to all votes.
        scores: held-out votes under each contender.
        evidence: standard errors by which each beats its best rival without classes.
        margin: by how much, in nats an item.
        fold: the fold of each item, shape (n_items,).
        correlation: mean correlation between the judges' votes.
    """

    patterns: Patterns
    families: Sequence[object] | None
    models: dict[str, CandidateModel]
    fits: dict[str, LatentFit]
    scores: dict[str, HeldOutScores]
    evidence: dict[str, float]
    margin: dict[str, float]
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
        scores = {n: score_by_refits(n, models[n].fit, fits[n], patterns, fold) for n in fits}
        rival_names = {rival for name in fits for rival in models[name].rivals}
        rival_models = {n: fit for n, fit in rivals(patterns, families).items() if n in rival_names}
        rival_scores = {
            name: score_by_refits(name, rival_models[name], fit, patterns, fold)
            for name, fit in fit_all(rival_models, patterns)[0].items()
        }
        best = {
            name: max(
                (rival_scores[r] for r in models[name].rivals if r in rival_scores), key=mean_score
            )
            for name in fits
        }
        evidence = {name: paired_z(scores[name], best[name]) for name in fits}
        margin = {name: scores[name].mean - best[name].mean for name in fits}
        return cls(patterns, families, models, fits, scores, evidence, margin, fold, correlation)

    def doubt(self, name: str, rng: np.random.Generator) -> str:
        """Why a model may not overrule majority, or nothing."""
        fit, least_evidence = self.fits[name], self._required_errors(name)
        if fit.anchor_agreement < SIDES:
            return (
                f"agrees with majority on only {fit.anchor_agreement:.0%} of the items, so that "
                "its classes may be swapped"
            )
        if self.evidence[name] < least_evidence:
            z = self.evidence[name]
            outcome = "better than none, but not clearly" if z > 0 else "no better than none"
            return (
                f"its two classes fit {outcome} (z = {z:.1f}); at the judges' mean correlation of"
                f" {self.correlation:.2f} it takes z = {least_evidence:.0f}"
            )
        if self.models[name].rival_is_nested and self.margin[name] < CLEARLY:
            return (
                f"its two classes add {self.margin[name]:.3f} nats an item to what its couplings "
                "explain without them"
            )
        if name == EQUAL:
            return ""
        carrier_judges = class_carriers(self.patterns, fit.pattern_posterior)
        if self._one_origin(carrier_judges) and are_near_copies(self.patterns, carrier_judges, rng):
            return (
                f"its classes depend on {len(carrier_judges)} judges that cannot be "
                "distinguished from copies of each other"
            )
        return self._other_reading(name)

    def _required_errors(self, name: str) -> float:
        """Standard errors by which the classes of a model must beat what has none."""
        model = self.models[name]
        plain = model.independent and self.patterns.n_judges > FEW
        agrees = self.correlation >= AGREEING
        if model.rival_is_nested:
            return CLEAR
        return EVIDENT if plain or agrees else BEYOND_DOUBT

    def _one_origin(self, judges: Sequence[int]) -> bool:
        """Whether few judges may come from one source: they are not known to be of several families."""
        n = self.patterns.n_judges
        if not 1 < len(judges) <= (n / 2 if n > FEW else n - 1):
            return False
        return self.families is None or len({self.families[judge] for judge in judges}) == 1

    def _other_reading(self, name: str) -> str:
        """A doubt where another optimum of the model decides otherwise and is nearly as good."""
        model, fit = self.models[name], self.fits[name]
        for reading in model.readings:
            alternative = reading(self.patterns, fit)
            differs = share_decided_apart(alternative, fit)
            if differs <= DIFFERS:
                continue
            score = score_by_refits(name, model.fit, alternative, self.patterns, self.fold)
            if paired_z(self.scores[name], score) < CLEAR:
                return (
                    f"another solution of the same model, which decides "
                    f"{differs:.0%} of the items differently, predicts the votes nearly as well"
                )
        return ""
