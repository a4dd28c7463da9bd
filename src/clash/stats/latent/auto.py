"""Which model of the panel to use, chosen without labels where there are none, and why.

Held-out likelihood tells how well a model describes the votes, not whether its classes are the
truth: dependent judges form classes of their own. Three questions are therefore asked before a
model may overrule majority:

1. Are there two classes at all? The model has to foresee new votes better than its rivals, which
   explain that judges agree by continuous traits (or by couplings) and have no classes.
2. Is it plain which class is which? The model has to side with majority on most items.
3. Do the judges agree? The less they do, the more the first answer has to be beyond doubt.

The thresholds are conventions, tuned on public panels; docs/statistics.md says with what result.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from clash.errors import StatisticsError
from clash.stats.latent.dawid_skene import dawid_skene, one_coin
from clash.stats.latent.factor import factor, factor_family, trait
from clash.stats.latent.heldout import (
    HeldOut,
    folds,
    labels_held_out,
    paired_z,
    votes_held_out,
    within_one_error,
)
from clash.stats.latent.identify import has_labels, require_votes
from clash.stats.latent.ising import ising_alone, ising_family, ising_shared
from clash.stats.latent.majority import majority
from clash.stats.latent.patterns import Codes, Floats, Patterns, Ties, collapse
from clash.stats.latent.temper import blend, temper

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from clash.stats.latent.fit import LatentFit

SIDES = 0.7
"""Share of the items on which a model must side with majority, or the classes may be swapped."""
AGREEING = 0.5
"""Mean correlation between judges from which on the panel counts as agreeing: for independent
judges, 85% right each."""
EVIDENT, BEYOND_DOUBT = 1.0, 3.0
"""Standard errors by which classes must beat traits: where judges agree, and where they do not."""
CROSSED = 0.5
"""Share of the items with three votes or more below which a model is known from a minority of the
items, and what it says of the others rests on who happened to judge those."""
NEAR_CHANCE = 0.15
"""Mean correlation between judges below which a panel says little of anything."""
MOST_COUPLED = 10
"""Judges up to which the exact Ising model is among the candidates."""
MOST_FACTORED = 64
"""Judges up to which factor models are: beyond, a crowd, where few judges share an item."""


@dataclass(frozen=True, slots=True)
class Candidate:
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
class Selection:
    """The chosen method, its posteriors, and why.

    Attributes:
        selected: name of the method; ``majority`` where nothing earned more trust.
        reason: in words.
        fit: the chosen fit, tempered.
        pattern_posterior: P(truth = 1) of shape (n_patterns,), to be reported.
        candidates: every model considered.
        correlation: mean correlation between the judges' votes.
        warnings: what a reader should know before believing any of it.
    """

    selected: str
    reason: str
    fit: LatentFit
    pattern_posterior: Floats
    candidates: tuple[Candidate, ...]
    correlation: float
    warnings: tuple[str, ...]

    @property
    def item_posterior(self) -> Floats:
        """P(truth = 1) of shape (n_items,), to be reported."""
        return self.fit.patterns.expand(self.pattern_posterior)

    def posterior(self, votes: Codes) -> Floats:
        """P(truth = 1) for new votes of shape (n, n_judges)."""
        rows = np.atleast_2d(np.asarray(votes, np.int8))
        if self.selected == "majority":
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
) -> Selection:
    """Choose a model of the panel by cross-validation, with a guard towards majority.

    Without labels, every model is asked the three questions above; of those that pass, the
    simplest within one standard error of the best held-out likelihood of votes is used, and
    majority where none passes. With at least five labelled items of each class, models and
    majority are compared by the log-loss of held-out labels instead, again with one standard
    error towards majority. The posterior reported is the model's, tempered, averaged with the
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
    return _by_votes(patterns, families, fold)


@dataclass(frozen=True, slots=True)
class Contender:
    """A model and its rivals: what else could explain that judges agree, without any classes.

    Attributes:
        fit: fits the model.
        rivals: names of the class-free models it has to beat.
        nested: the rival is the model itself without its classes, so that any use of a second
            class, not only the truth's, beats it.
    """

    fit: Callable[..., LatentFit]
    rivals: tuple[str, ...]
    nested: bool = False


def contenders(patterns: Patterns, families: Sequence[object] | None) -> dict[str, Contender]:
    """The models that ``select`` compares, simplest first.

    ``ising-family`` is not among them: it has no rival of its own structure without classes, so
    that what its couplings explain would be credited to its classes.
    """
    crowd = patterns.n_judges > MOST_FACTORED
    traits = ("trait", "two traits") if patterns.n_judges > 3 and not crowd else ("trait",)
    models = {
        "one-coin": Contender(one_coin, traits),
        "dawid-skene": Contender(dawid_skene, traits),
    }
    if families is not None and not crowd:
        besides = (*traits, "trait and families")
        models["factor-family"] = Contender(partial(factor_family, families=families), besides)
    if not crowd:
        models["factor"] = Contender(factor, traits)
    if patterns.n_judges <= MOST_COUPLED:
        models["ising-shared"] = Contender(ising_shared, (*traits, "ising-alone"), nested=True)
    return models


def rivals(families: Sequence[object] | None) -> dict[str, Callable[..., LatentFit]]:
    """The class-free models, by name."""
    return {
        "trait": trait,
        "two traits": partial(trait, rank=2),
        "trait and families": partial(trait, families=families),
        "ising-alone": ising_alone,
    }


def mean_correlation(patterns: Patterns) -> float:
    """Mean correlation between two judges' votes, weighted by the items both voted on; 0 if none."""
    spins, seen, counts = patterns.spins, patterns.observed, patterns.counts
    found, together = [], []
    for j in range(patterns.n_judges):
        for k in range(j):
            weight = counts * (seen[:, j] & seen[:, k])
            r = _correlation(spins[:, j], spins[:, k], weight)
            if r is not None:
                found.append(r)
                together.append(weight.sum())
    return float(np.average(found, weights=together)) if found else 0.0


def _correlation(one: Floats, other: Floats, weight: Floats) -> float | None:
    if not weight.any():
        return None
    share = weight / weight.sum()
    a, b = one - share @ one, other - share @ other
    spread = float((share @ a**2) * (share @ b**2))
    return float(share @ (a * b)) / spread**0.5 if spread > 1e-12 else None


def _by_votes(
    patterns: Patterns, families: Sequence[object] | None, fold: npt.NDArray[np.intp]
) -> Selection:
    correlation = mean_correlation(patterns)
    crossed = float(patterns.counts @ (patterns.observed.sum(axis=1) >= 3)) / patterns.weight
    if patterns.n_judges >= 3 and crossed < CROSSED:
        reason = (
            f"only {crossed:.0%} of the items have three votes or more, and a model of the rest"
            " would rest on these few"
        )
        return _majority(patterns, reason, (), correlation)
    models = contenders(patterns, families)
    fits, refusals = _fitted({name: model.fit for name, model in models.items()}, patterns)
    if not fits:
        reason = "no model is identified: " + next(iter(refusals.values())).refusal
        return _majority(patterns, reason, _record(refusals, {}, {}), correlation)
    scores = {name: _foreseen(name, models[name].fit, fits[name], patterns, fold) for name in fits}
    needed = {rival for name in fits for rival in models[name].rivals}
    besides = {name: fit for name, fit in rivals(families).items() if name in needed}
    without = {
        name: _foreseen(name, besides[name], fit, patterns, fold)
        for name, fit in _fitted(besides, patterns)[0].items()
    }
    evidence = {
        name: paired_z(scores[name], max((without[r] for r in models[name].rivals), key=_mean))
        for name in fits
    }
    doubts = {
        name: _doubt(fits[name], evidence[name], correlation, nested=models[name].nested)
        for name in evidence
    }
    scores = {name: refusals.get(name, scores.get(name)) for name in models}
    record = _record(scores, evidence, doubts)
    name = _simplest({name: scores[name] for name, doubt in doubts.items() if not doubt})
    if name is None:
        best = max((scores[name] for name in doubts), key=_mean).name
        reason = f"{best} describes the votes best, but {doubts[best]}"
        return _majority(patterns, reason, record, correlation)
    fit = temper(fits[name])
    reason = (
        f"{name}: of the models that may overrule majority, the simplest within one standard "
        f"error of the best held-out likelihood; its two classes beat any continuum by "
        f"{evidence[name]:.1f} standard errors, the judges' mean correlation is "
        f"{correlation:.2f}, and it sides with majority on {fit.anchor_agreement:.0%} of the items"
    )
    warnings = (*_warnings(correlation), *fit.warnings)
    return Selection(name, reason, fit, blend(fit), record, correlation, warnings)


def _fitted(
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


def _foreseen(
    name: str,
    fit: Callable[..., LatentFit],
    whole: LatentFit,
    patterns: Patterns,
    fold: npt.NDArray[np.intp],
) -> HeldOut:
    """Held-out votes under refits that start where the fit to all votes ended.

    So the model that is scored is the one that would be used, not another optimum that a fold
    fell into, and a score needs a looser tolerance than a posterior.
    """
    if whole.theta is None:
        return votes_held_out(name, fit, patterns, fold)
    return votes_held_out(name, partial(fit, tol=1e-4, warm=whole), patterns, fold)


def _mean(score: HeldOut) -> float:
    return score.mean


def _doubt(fit: LatentFit, evidence: float, correlation: float, *, nested: bool) -> str:
    """Why a model may not overrule majority, or nothing."""
    if fit.anchor_agreement < SIDES:
        return (
            f"sides with majority on only {fit.anchor_agreement:.0%} of the items, so that its "
            "classes may be swapped"
        )
    needed = EVIDENT if correlation >= AGREEING and not nested else BEYOND_DOUBT
    if evidence < needed:
        return (
            f"its two classes beat the same votes without classes by {evidence:.1f} standard "
            f"errors; at the judges' mean correlation of {correlation:.2f} it takes {needed:.0f}"
        )
    return ""


def _by_labels(
    patterns: Patterns, families: Sequence[object] | None, fold: npt.NDArray[np.intp]
) -> Selection:
    correlation = mean_correlation(patterns)
    models: dict[str, Callable[..., LatentFit]] = {"majority": majority}
    models |= {name: model.fit for name, model in contenders(patterns, families).items()}
    if families is not None:
        models["ising-family"] = partial(ising_family, families=families)
    scores = {name: labels_held_out(name, fit, patterns, fold) for name, fit in models.items()}
    record = _record(scores, {}, {})
    name = _simplest(scores) or "majority"
    n_labels = int((patterns.labels[patterns.inverse] >= 0).sum())
    reason = (
        f"{name} is the simplest method within one standard error of the best log-loss on "
        f"{n_labels} held-out labels"
    )
    if name == "majority":
        return _majority(patterns, reason, record, correlation, labelled=True)
    fit = temper(models[name](patterns))
    return Selection(name, reason, fit, blend(fit), record, correlation, fit.warnings)


def _simplest(scores: dict[str, HeldOut]) -> str | None:
    """The first model, in order of simplicity, within one standard error of the best."""
    best = max(scores.values(), key=_mean, default=None)
    if best is None or best.scores is None:
        return None
    return next(name for name, score in scores.items() if within_one_error(score, best))


def _record(
    scores: dict[str, HeldOut], evidence: dict[str, float], doubts: dict[str, str]
) -> tuple[Candidate, ...]:
    best = max(scores.values(), key=_mean)
    return tuple(
        Candidate(
            name,
            None if score.scores is None else score.mean,
            -paired_z(score, best),
            evidence.get(name),
            score.refusal or doubts.get(name, ""),
        )
        for name, score in scores.items()
    )


def _majority(
    patterns: Patterns,
    reason: str,
    record: tuple[Candidate, ...],
    correlation: float,
    *,
    labelled: bool = False,
) -> Selection:
    fit = majority(patterns)
    warnings = () if labelled else _warnings(correlation)
    return Selection("majority", reason, fit, fit.pattern_posterior, record, correlation, warnings)


def _warnings(correlation: float) -> tuple[str, ...]:
    """What no unlabelled method can rule out."""
    blind = "a majority that is wrong together cannot be seen without labels"
    if correlation >= NEAR_CHANCE:
        return (blind,)
    near = (
        f"the judges agree hardly more than by chance (mean correlation {correlation:.2f}): the "
        "panel cannot be trusted without labels"
    )
    return near, blind
