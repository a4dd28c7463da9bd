"""Which model of the panel to use, chosen without labels where there are none, and why.

Held-out likelihood tells how well a model describes the votes, not whether its classes are the
truth: dependent judges form classes of their own. Three questions are therefore asked before a
model may overrule majority:

1. Are there two classes at all? The chosen model has to foresee new votes better than a rival
   that has continuous traits and no classes (``factor.trait``), as many parameters as it.
2. Is it plain which class is which? The model has to side with majority on most items.
3. Do the judges agree? The less they do, the more the first answer has to be beyond doubt.

The three thresholds are conventions, tuned on public panels; see docs/statistics.md.
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
from clash.stats.latent.fit import LatentFit
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

SIDES = 0.7
"""Share of the items on which a model must side with majority, or the classes may be swapped."""
AGREEING = 0.5
"""Mean correlation between judges from which on the panel counts as agreeing: for independent
judges, 85% right each."""
DOUBT, BEYOND_DOUBT = -1.96, 3.0
"""Standard errors by which classes must beat traits: where judges agree, and where they do not."""
NEAR_CHANCE = 0.15
"""Mean correlation between judges below which a panel says little of anything."""
MOST_COUPLED = 10
"""Judges up to which the exact Ising model is among the candidates."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One model that was considered.

    Attributes:
        name: the model.
        held_out: mean held-out score per item: log-likelihood of votes, or minus the log-loss
            of labels; None where the model was refused.
        behind: standard errors by which it is behind the best; 0 for the best.
        refusal: why it was refused, or empty.
    """

    name: str
    held_out: float | None
    behind: float
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class Selection:
    """The chosen method, its posteriors, and why.

    Attributes:
        selected: name of the method; ``majority`` where nothing earned more trust.
        reason: in words.
        fit: the chosen fit, tempered.
        pattern_posterior: P(truth = 1) of shape (n_patterns,), to be reported.
        candidates: every model considered, majority aside.
        evidence: standard errors by which the best model beats the rival without classes; None
            where labels decided or nothing could be compared.
        correlation: mean correlation between the judges' votes.
        warnings: what a reader should know before believing any of it.
    """

    selected: str
    reason: str
    fit: LatentFit
    pattern_posterior: Floats
    candidates: tuple[Candidate, ...]
    evidence: float | None
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
    n_folds: int = 5,
) -> Selection:
    """Choose a model of the panel by cross-validation, with a guard towards majority.

    Without labels, the simplest model within one standard error of the best held-out likelihood
    of votes is chosen, and used only if it passes the three questions above; otherwise majority
    is. With at least five labelled items of each class, models and majority are compared by the
    log-loss of held-out labels instead, again with one standard error towards majority.
    The posterior reported is the model's, tempered, averaged with the smoothed vote share.
    Fails where the majority is wrong together: no unlabelled method can see that.

    Args:
        votes: shape (n_items, n_judges), codes of ``collapse``.
        rng: draws the folds.
        families: the family of each judge; adds the family models.
        labels: shape (n_items,), -1 where unknown.
        ties: as in ``collapse``.
        n_folds: folds of the cross-validation, at least 2.

    Raises:
        StatisticsError: no votes at all, or fewer than 2 folds.
    """
    patterns = collapse(votes, labels=labels, ties=ties)
    require_votes(patterns)
    if n_folds < 2:
        raise StatisticsError("cross-validation needs at least 2 folds")
    fold = folds(patterns.n_items, n_folds, rng)
    correlation = mean_correlation(patterns)
    models = candidates(patterns, families)
    if has_labels(patterns):
        return _by_labels(patterns, models, fold, correlation)
    return _by_votes(patterns, models, fold, correlation)


@dataclass(frozen=True, slots=True)
class Contender:
    """A model and its rivals: what else could explain that judges agree, without any classes.

    Attributes:
        fit: fits the model.
        rivals: names of the class-free models it has to beat.
    """

    fit: Callable[..., LatentFit]
    rivals: tuple[str, ...]


def contenders(patterns: Patterns, families: Sequence[object] | None) -> dict[str, Contender]:
    """The models that ``select`` compares, simplest first."""
    traits = ("trait", "two traits") if patterns.n_judges > 3 else ("trait",)
    models = {
        "one-coin": Contender(one_coin, traits),
        "dawid-skene": Contender(dawid_skene, traits),
    }
    if families is not None:
        besides = (*traits, "trait and families")
        models["ising-family"] = Contender(partial(ising_family, families=families), besides)
        models["factor-family"] = Contender(partial(factor_family, families=families), besides)
    models["factor"] = Contender(factor, traits)
    if patterns.n_judges <= MOST_COUPLED:
        models["ising-shared"] = Contender(ising_shared, (*traits, "ising-alone"))
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
    """Mean correlation between two judges' votes, over pairs that can be correlated; 0 if none."""
    spins, seen, counts = patterns.spins, patterns.observed, patterns.counts
    found = []
    for j in range(patterns.n_judges):
        for k in range(j):
            weight = counts * (seen[:, j] & seen[:, k])
            if np.count_nonzero(weight) > 1 and (
                r := _correlation(spins[:, j], spins[:, k], weight)
            ):
                found.append(r)
    return float(np.mean(found)) if found else 0.0


def _correlation(one: Floats, other: Floats, weight: Floats) -> float | None:
    share = weight / weight.sum()
    a, b = one - share @ one, other - share @ other
    spread = float((share @ a**2) * (share @ b**2))
    return float(share @ (a * b)) / spread**0.5 if spread > 1e-12 else None


def _by_votes(
    patterns: Patterns,
    models: dict[str, Callable[[Patterns], LatentFit]],
    fold: npt.NDArray[np.intp],
    correlation: float,
) -> Selection:
    scores = {name: votes_held_out(name, fit, patterns, fold) for name, fit in models.items()}
    record = _record(scores)
    name = _simplest(scores)
    if name is None:
        reason = "no model is identified: " + next(iter(scores.values())).refusal
        return _majority(patterns, reason, record, None, correlation)
    rivals = [votes_held_out("trait", trait, patterns, fold)]
    if patterns.n_judges > 3:
        rivals.append(votes_held_out("two traits", partial(trait, rank=2), patterns, fold))
    evidence = paired_z(scores[name], max(rivals, key=lambda rival: rival.mean))
    fit = temper(models[name](patterns))
    doubt = _doubt(fit, evidence, correlation)
    if doubt:
        reason = f"{name} describes the votes best, but {doubt}"
        return _majority(patterns, reason, record, evidence, correlation)
    reason = (
        f"{name} is the simplest model within one standard error of the best held-out "
        f"likelihood; two classes describe the votes better than a continuum by {evidence:.1f} "
        f"standard errors, the judges' mean correlation is {correlation:.2f}, and it sides with "
        f"majority on {fit.anchor_agreement:.0%} of the items"
    )
    return Selection(
        name,
        reason,
        fit,
        blend(fit),
        record,
        evidence,
        correlation,
        (*_warnings(correlation), *fit.warnings),
    )


def _doubt(fit: LatentFit, evidence: float, correlation: float) -> str:
    """Why a model may not overrule majority, or nothing."""
    if fit.anchor_agreement < SIDES:
        return (
            f"sides with majority on only {fit.anchor_agreement:.0%} of the items, so that its "
            "classes may be swapped"
        )
    if correlation >= AGREEING and evidence < DOUBT:
        return (
            f"a continuum describes them better still ({-evidence:.1f} standard errors): its "
            "classes are not in the votes"
        )
    if correlation < AGREEING and evidence < BEYOND_DOUBT:
        return (
            f"the judges' mean correlation is only {correlation:.2f} and two classes beat a "
            f"continuum by {evidence:.1f} standard errors, short of {BEYOND_DOUBT:.0f}"
        )
    return ""


def _by_labels(
    patterns: Patterns,
    models: dict[str, Callable[[Patterns], LatentFit]],
    fold: npt.NDArray[np.intp],
    correlation: float,
) -> Selection:
    every = {"majority": majority, **models}
    scores = {name: labels_held_out(name, fit, patterns, fold) for name, fit in every.items()}
    record = _record(scores)
    name = _simplest(scores) or "majority"
    n_labels = int(patterns.counts[patterns.labels >= 0].sum())
    reason = (
        f"{name} is the simplest method within one standard error of the best log-loss on "
        f"{n_labels} held-out labels"
    )
    if name == "majority":
        return _majority(patterns, reason, record, None, correlation, labelled=True)
    fit = temper(models[name](patterns))
    return Selection(name, reason, fit, blend(fit), record, None, correlation, fit.warnings)


def _simplest(scores: dict[str, HeldOut]) -> str | None:
    """The first model, in order of simplicity, within one standard error of the best."""
    best = max(scores.values(), key=lambda score: score.mean)
    if best.scores is None:
        return None
    return next(name for name, score in scores.items() if within_one_error(score, best))


def _record(scores: dict[str, HeldOut]) -> tuple[Candidate, ...]:
    best = max(scores.values(), key=lambda score: score.mean)
    return tuple(
        Candidate(
            score.name,
            None if score.scores is None else score.mean,
            -paired_z(score, best),
            score.refusal,
        )
        for score in scores.values()
    )


def _majority(
    patterns: Patterns,
    reason: str,
    record: tuple[Candidate, ...],
    evidence: float | None,
    correlation: float,
    *,
    labelled: bool = False,
) -> Selection:
    fit = majority(patterns)
    warnings = () if labelled else _warnings(correlation)
    return Selection(
        "majority", reason, fit, fit.pattern_posterior, record, evidence, correlation, warnings
    )


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
