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

from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from clash.errors import StatisticsError
from clash.stats.latent.candidate_models import BLOCS, EQUAL, candidate_models
from clash.stats.latent.cross_validation import (
    HeldOutScores,
    fit_all,
    folds,
    labels_held_out,
    mean_score,
    paired_z,
    within_one_standard_error,
)
from clash.stats.latent.dawid_skene import DawidSkene
from clash.stats.latent.fit import observe, posterior, vote_share
from clash.stats.latent.identifiability import has_labels, require_votes
from clash.stats.latent.ising import ising_family
from clash.stats.latent.majority_challenge import (
    AHEAD,
    ALONE,
    CONTESTED_SHARE,
    LEAST_CROSSED_SHARE,
    LOPSIDED_SHARE,
    NEAR_CHANCE,
    ONE_COIN,
    MajorityChallenge,
)
from clash.stats.latent.patterns import MISSING, Patterns, Ties, collapse
from clash.stats.latent.temperature_scaling import blend, temper
from clash.stats.latent.vote_correlations import mean_correlation
from clash.stats.latent.vote_counting import collapse_rows, majority
from clash.stats.latent.witnesses import NO_GUARD, STABLE, WitnessGuard
from clash.stats.logistic import log_odds

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from clash.stats.latent.fit import LatentFit
    from clash.stats.typing import Floats, Index, VoteCodes

FEWEST = 50
"""Items below which judges are not weighted: the standard errors of held-out scores are unreliable."""
CONSTANT = 0.02
"""Share of a judge's votes for its rarer side up to which it always says the same, of ``FEWEST`` votes
or more."""


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
        guard: where majority's share stands although the model was chosen.
        judges: those that ``fit`` reads, in order; null for all.
    """

    method: str
    reason: str
    fit: LatentFit
    pattern_posterior: Floats
    candidates: tuple[ConsideredModel, ...]
    correlation: float
    warnings: tuple[str, ...]
    guard: WitnessGuard = NO_GUARD
    judges: Index | None = None

    @property
    def item_posterior(self) -> Floats:
        """P(truth = 1) of shape (n_items,), to be reported."""
        return self.fit.patterns.expand(self.pattern_posterior)

    def posterior(self, votes: VoteCodes) -> Floats:
        """P(truth = 1) for new votes of shape (n, n_judges)."""
        rows = np.atleast_2d(np.asarray(votes, np.int8))
        if self.judges is not None:
            rows = rows[:, self.judges]
        if self.fit.name == "majority":
            return self.fit.posterior(rows)
        stands = self.guard.stands(self.fit, rows)
        return np.where(stands, vote_share(collapse_rows(rows)), blend(self.fit, rows))

    def families(self, of_all: Sequence[object] | None) -> Sequence[object] | None:
        """The families of the judges that ``fit`` reads, of those of all judges."""
        return of_all if of_all is None else _of_judges(of_all, self.judges)


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
    if len(np.unique(fold)) < 2 <= patterns.n_items:
        reason = "all items are copies of one source, so that nothing can be held out"
        return _majority_selection(patterns, reason, (), mean_correlation(patterns))
    if has_labels(patterns):
        return _by_labels(patterns, families, fold)
    return _without_constant_judges(patterns, families, fold, rng) or _by_votes(
        patterns, families, fold, rng
    )


def _without_constant_judges(
    patterns: Patterns, families: Sequence[object] | None, fold: Index, rng: np.random.Generator
) -> ModelSelection | None:
    """A model of the judges that vote both ways, where others always say the same or nothing.

    These tell hardly two items apart, but pull majority to their side, and with it what a model is
    compared to. None where all judges vote both ways, where fewer than three do, where no model
    of these may overrule majority, or where the model puts most items in one class: a judge that
    always names that class may be a good one.
    """
    n_zero, n_one = (patterns.counts @ (patterns.votes == side) for side in (0, 1))
    n_votes, rarer = patterns.counts @ patterns.present, np.minimum(n_zero, n_one)
    is_constant = (n_votes >= FEWEST) & (rarer <= CONSTANT * (n_zero + n_one))
    judges = np.flatnonzero((n_votes > 0) & ~is_constant)
    if not 3 <= len(judges) < patterns.n_judges:
        return None
    votes = patterns.votes[patterns.inverse]
    nonconstant_patterns = collapse(votes[:, judges])
    of_judges = None if families is None else _of_judges(families, judges)
    selection = _by_votes(nonconstant_patterns, of_judges, fold, deepcopy(rng))
    if (np.delete(votes, judges, axis=1) == MISSING).all():
        return replace(selection, judges=judges)
    share = (
        float(nonconstant_patterns.counts @ (selection.pattern_posterior > 0.5))
        / nonconstant_patterns.weight
    )
    if selection.method == "majority" or max(share, 1 - share) >= LOPSIDED_SHARE:
        return None
    reason = f"{selection.reason}; judges that always say the same tell nothing and are left out"
    return replace(selection, judges=judges, reason=reason)


def _of_judges(values: Sequence[object], judges: Index | None) -> Sequence[object]:
    return values if judges is None else [values[at] for at in judges.tolist()]


def _by_votes(
    patterns: Patterns,
    families: Sequence[object] | None,
    fold: Index,
    rng: np.random.Generator,
) -> ModelSelection:
    challenge, refusals = weigh_models(patterns, families, fold)
    if challenge is None:
        reason = "no model is identified: " + next(iter(refusals.values())).refusal
        listing = _listing(refusals, {}, {})
        return _majority_selection(patterns, reason, listing, mean_correlation(patterns))
    return choose_model(challenge, refusals, rng)


def weigh_models(
    patterns: Patterns, families: Sequence[object] | None, fold: Index
) -> tuple[MajorityChallenge | None, dict[str, HeldOutScores]]:
    """Every model fitted and scored: what :func:`choose_model` decides by, and who was refused.

    None in place of the challenge where every model was refused.
    """
    models = candidate_models(patterns, families)
    if patterns.n_items < FEWEST:
        models = {EQUAL: models[EQUAL]}
    fits, refusals = fit_all({name: model.fit for name, model in models.items()}, patterns)
    if not fits:
        return None, refusals
    correlation = mean_correlation(patterns)
    return MajorityChallenge.of(patterns, families, models, fits, fold, correlation), refusals


def choose_model(
    challenge: MajorityChallenge, refusals: dict[str, HeldOutScores], rng: np.random.Generator
) -> ModelSelection:
    """The first rule that applies: dependence by class, judges that err alone, the questions."""
    selection = _dependence_by_class(challenge, refusals, rng)
    if selection is not None:
        return selection
    fits, guard = challenge.fits, NO_GUARD
    doubts = {name: challenge.doubt(name, rng) for name in fits if name != BLOCS}
    if BLOCS in fits:
        guard, doubts[BLOCS] = challenge.blocs_that_err_alone(rng)
    if challenge.crossed_share < LEAST_CROSSED_SHARE:
        doubts = {name: doubt or _sparse(challenge) for name, doubt in doubts.items()}
    if not doubts.get(BLOCS, "none"):
        reason = (
            f"{BLOCS}: judges vote in blocs, and the blocs err alone; that predicts held-out votes "
            "better than judges that err alone, and than the same blocs without classes"
        )
        rows = _considered_models(challenge, refusals, doubts)
        return _model_selection(challenge, fits[BLOCS], reason, rows, guard)
    alone = challenge.judges_that_err_alone()
    if alone is not None and not challenge.copies_behind(fits[alone], rng):
        doubts[alone] = ""
        reason = (
            f"{alone}: no model of dependence predicts held-out votes better than judges that err "
            "alone, and weighing them predicts no worse than equal weights"
        )
        rows = _considered_models(challenge, refusals, doubts)
        return _model_selection(challenge, fits[alone], reason, rows, challenge.guard(alone))
    return _simplest_selection(
        challenge, doubts, _considered_models(challenge, refusals, doubts), rng
    )


def _dependence_by_class(
    challenge: MajorityChallenge, refusals: dict[str, HeldOutScores], rng: np.random.Generator
) -> ModelSelection | None:
    """The model of judges that depend on each other in one class otherwise than in the other."""
    leader = challenge.class_leader()
    if leader is None or challenge.copies_behind(challenge.by_class[leader[0]], rng):
        return None
    name, lead = leader
    reason = (
        f"{name}: judges depend on each other in one class otherwise than in the other; it "
        "predicts held-out votes better than every model without that, by at least "
        f"{lead:.1f} standard errors"
    )
    rows = _considered_models(challenge, refusals, {})
    return _model_selection(challenge, challenge.by_class[name], reason, rows, NO_GUARD)


def _simplest_selection(
    challenge: MajorityChallenge,
    doubts: dict[str, str],
    rows: tuple[ConsideredModel, ...],
    rng: np.random.Generator,
) -> ModelSelection:
    """The simplest model that predicts about as well as the best; majority where it is doubted."""
    fits = challenge.fits
    simplest = _simplest({n: challenge.scores[n] for n in fits if n == EQUAL or not doubts[n]})
    is_doubted = simplest is None or bool(doubts[simplest])
    if (is_doubted or simplest == EQUAL) and challenge.has_contrary_judge(rng):
        return _contrary_judge_selection(challenge, rows, rng)
    if simplest is None or is_doubted:
        return _majority_by_doubt(challenge, doubts, rows)
    if simplest == EQUAL:
        n_items = challenge.patterns.n_items
        few = f"; {n_items} items are too few to decide" if n_items < FEWEST else ""
        return _equal_skill_selection(fits[simplest], rows, challenge.correlation, few)
    reason = (
        f"{simplest}: of the models that may overrule majority, the simplest within one standard "
        f"error of the best held-out likelihood; two classes against the best continuous trait: "
        f"z = {challenge.evidence[simplest]:+.1f}"
    )
    return _model_selection(challenge, fits[simplest], reason, rows, challenge.guard(simplest))


def _majority_by_doubt(
    challenge: MajorityChallenge, doubts: dict[str, str], rows: tuple[ConsideredModel, ...]
) -> ModelSelection:
    """Majority, where every model that describes the votes is in doubt."""
    models = challenge.models
    eligible = [n for n in doubts if not models[n].rival_is_nested] or list(doubts)
    best = max((challenge.scores[n] for n in eligible), key=mean_score).name
    reason = f"{best} describes the votes best, but {doubts[best] or doubts[EQUAL]}"
    if (level := challenge.level_votes()) is not None:
        return _level_votes_selection(challenge, level[0], reason, rows, level[1])
    return _majority_selection(challenge.patterns, reason, rows, challenge.correlation)


def _contrary_judge_selection(
    challenge: MajorityChallenge, rows: tuple[ConsideredModel, ...], rng: np.random.Generator
) -> ModelSelection:
    """One coin among three judges, one of whom votes against both others."""
    reason = (
        f"{ONE_COIN}: one of the three judges votes against both others, who agree with each other; "
        f"it overrules majority where dawid-skene and {STABLE:.0%} of bootstrap refits decide alike"
    )
    guard = challenge.contrary_judge_guard(rng)
    return _model_selection(challenge, challenge.fits[ONE_COIN], reason, rows, guard)


def _sparse(challenge: MajorityChallenge) -> str:
    return (
        f"only {challenge.crossed_share:.0%} of the items have three votes or more, and a model of "
        "all items would rest on these few"
    )


def _model_selection(
    challenge: MajorityChallenge,
    fit: LatentFit,
    reason: str,
    models: tuple[ConsideredModel, ...],
    guard: WitnessGuard,
) -> ModelSelection:
    """A model's verdicts; where the guard says so, majority's."""
    patterns, correlation = fit.patterns, challenge.correlation
    if guard.level_votes_alone:
        names = " and ".join(witness.name for witness in guard.witnesses)
        doubt = (
            f"{fit.name} may overrule majority, but models that predict held-out votes about as well "
            f"({names}) contest more than {CONTESTED_SHARE:.0%} of the verdicts by which it does"
        )
        return _level_votes_selection(challenge, fit, doubt, models, guard)
    stands = guard.stands(fit)
    reason += (
        f"; the judges' mean correlation is {correlation:.2f}, and it agrees with "
        f"majority on {fit.anchor_agreement:.0%} of the items"
    )
    if stands.any():
        share = float(patterns.counts @ stands) / patterns.weight
        reason += (
            f"; {share:.1%} where another reading does not share its verdict stay with majority"
        )
    return _guarded_selection(challenge, fit, reason, models, guard)


def _level_votes_selection(
    challenge: MajorityChallenge,
    fit: LatentFit,
    doubt: str,
    models: tuple[ConsideredModel, ...],
    guard: WitnessGuard,
) -> ModelSelection:
    """Majority, but for level votes that a fit and all witnesses decide alike."""
    patterns = fit.patterns
    is_settled = ~guard.stands(fit) & (patterns.labels == MISSING)
    if not is_settled.any():
        return _majority_selection(patterns, doubt, models, challenge.correlation)
    share = float(patterns.counts @ is_settled) / patterns.weight
    reason = (
        f"{doubt}; {fit.name} decides level votes alone, {share:.1%} of the items, where "
        "all other readings decide alike"
    )
    selection = _guarded_selection(challenge, fit, reason, models, guard)
    return replace(selection, method="majority")


def _guarded_selection(
    challenge: MajorityChallenge,
    fit: LatentFit,
    reason: str,
    models: tuple[ConsideredModel, ...],
    guard: WitnessGuard,
) -> ModelSelection:
    """A model's probabilities; where the guard says so, the vote share."""
    patterns, correlation, stands = fit.patterns, challenge.correlation, guard.stands(fit)
    fit = temper(fit)
    if fit.name in ALONE:
        fit = _no_fainter_than_share(fit)
    return ModelSelection(
        fit.name,
        reason,
        fit,
        np.where(stands, vote_share(patterns), blend(fit)),
        models,
        correlation,
        (*_warnings(correlation), *fit.warnings),
        guard,
    )


def _by_labels(
    patterns: Patterns, families: Sequence[object] | None, fold: Index
) -> ModelSelection:
    correlation = mean_correlation(patterns)
    models: dict[str, Callable[..., LatentFit]] = {"majority": majority}
    models |= {name: model.fit for name, model in candidate_models(patterns, families).items()}
    del models[EQUAL]  # majority is there itself
    models.pop(BLOCS, None)  # what labels weigh is the judges
    if families is not None:
        models["ising-family"] = partial(ising_family, families=families)
    fits, refusals = fit_all(models, patterns)
    scores = refusals | {
        name: labels_held_out(name, _warm_refitter(models[name], fit), patterns, fold)
        for name, fit in fits.items()
    }
    scores = {name: scores[name] for name in models}  # simplest first
    models_considered = _listing(scores, {}, {})
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
    challenge: MajorityChallenge, refusals: dict[str, HeldOutScores], doubts: dict[str, str]
) -> tuple[ConsideredModel, ...]:
    """Every contender, with what it scored and why it may not overrule majority."""
    by_class = dict.fromkeys(
        challenge.class_scores,
        f"its dependence differs by class, and it does not lead every other model by z = {AHEAD:.0f}",
    )
    scores = challenge.scores | challenge.class_scores | refusals
    return _listing(scores, challenge.evidence, doubts if not doubts else by_class | doubts)


def _listing(
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
    fair = _no_fainter_than_share(temper(replace(fit, parameters=level, pattern_posterior=p)))
    warnings = _warnings(correlation)
    return ModelSelection(
        "majority", reason, fair, blend(fair), models_considered, correlation, warnings
    )


def _no_fainter_than_share(fit: LatentFit) -> LatentFit:
    """The fit with a temperature at which its blend with the vote share is as sure as the share.

    Tempering predicts judges, and where each is weak nothing predicts one well, although together
    they are right more often than a single vote is. Judges that err alone are never less to be
    believed than the share says: on any item where they are equal, on average over the items otherwise.
    """
    share = np.abs(log_odds(vote_share(fit.patterns)))
    leans = (share > 0) & (fit.patterns.labels == MISSING)
    if not leans.any():
        return fit
    odds, counts = np.abs(log_odds(fit.pattern_posterior)), fit.patterns.counts * leans
    is_equal = fit.name == EQUAL
    coolest = (odds[leans] / share[leans]).min() if is_equal else counts @ odds / (counts @ share)
    return replace(fit, temperature=min(fit.temperature, max(float(coolest), 1.0)))


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
