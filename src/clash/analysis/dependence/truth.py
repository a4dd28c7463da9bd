"""The truth that errors are measured against: labels, or a model's estimate of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from clash.analysis.dependence.dependence_findings import TruthSource
from clash.errors import ConfigError, NotIdentifiedError, StatisticsError, one_of
from clash.stats.latent.dawid_skene import dawid_skene, one_coin
from clash.stats.latent.factor import factor, factor_family
from clash.stats.latent.ising import ising_class, ising_family, ising_shared
from clash.stats.latent.patterns import MISSING, Patterns
from clash.stats.latent.vote_counting import majority
from clash.wording import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from clash.stats.latent.fit import LatentFit
    from clash.stats.typing import Floats
    from clash.votes.binary import MethodTable

FEW, MANY = 4, 15
"""Judges from which, and up to which, a factor is told from the truth well enough to be tried."""
ENOUGH = 100
"""Labelled rows from which on the rows without a label are left out."""
SIDES = 0.7
"""Share of the items on which the factor model must side with majority to be believed."""
METHODS = (
    "auto",
    "majority",
    "one-coin",
    "dawid-skene",
    "factor",
    "factor-family",
    "ising-shared",
    "ising-class",
    "ising-family",
)


@dataclass(frozen=True)
class TruthEstimate:
    """Votes with P(truth = 1).

    Attributes:
        rows: the rows that are measured.
        patterns: the votes, labels in them where they are used.
        p: shape (n_patterns,), the label where it is known.
        fit: the model of the votes.
        source: of the estimate, for the report.
    """

    rows: MethodTable
    patterns: Patterns
    p: Floats
    fit: LatentFit
    source: TruthSource


def estimate(rows: MethodTable, method: str) -> TruthEstimate:
    """P(truth = 1) of every pattern of votes.

    Args:
        rows: the votes; where labels are to be used and there are 100, only rows with one are
            measured.
        method: one of :data:`METHODS`; ``auto`` is the factor model for 4 to 15 judges and
            Dawid-Skene otherwise: of the models compared on public panels, the factor model
            attributes the least of the judges' agreement to the truth, unless they are many.

    Raises:
        ConfigError: an unknown method.
        NotIdentifiedError: fewer than three judges and no labels.
        StatisticsError: the model was refused, or there are not two judges.
    """
    if method not in METHODS:
        raise ConfigError(f"no method {method!r}", field="--method", hint=one_of(method, METHODS))
    _require_judges(rows)
    available, read = int(rows.decisive.sum()), len(rows.items)
    if rows.uses_labels and available >= ENOUGH:
        rows = rows.only_decisive()
    rows = rows.only_voting()
    patterns = rows.patterns()
    fit, reason = _fit(patterns, method, rows.families)
    n_labelled = int((patterns.labels[patterns.inverse] != MISSING).sum())
    if n_labelled == patterns.n_items:
        left_out = read - n_labelled
        remark = f"; {left_out} rows without one are left out" if left_out else ""
        source = TruthSource(
            "labels", n_labelled, available, f"{n_labelled} rows have one{remark}", None, ()
        )
    else:
        source = TruthSource(
            fit.name, n_labelled, available, reason, fit.anchor_agreement, fit.warnings
        )
    return TruthEstimate(rows, patterns, fit.pattern_posterior, fit, source)


def other_estimates(estimate: TruthEstimate) -> dict[str, Floats]:
    """P(truth = 1) by other methods, shape (n_patterns,) each; without those that are refused."""
    posteriors: dict[str, Floats] = {}
    for method in ("one-coin", "dawid-skene", "factor", "factor-family"):
        try:
            fit = _fitter(method, estimate.rows.families)(estimate.patterns)
        except StatisticsError:
            continue
        if fit.name != estimate.source.method:
            posteriors[method] = fit.pattern_posterior
    return posteriors


def _require_judges(rows: MethodTable) -> None:
    voting = int((rows.codes != MISSING).any(axis=0).sum())
    if voting < 2:
        raise StatisticsError(
            f"{plural(voting, 'judge')} voted: dependence needs at least two"
            "\n  fix: name votes of two judges on the same items"
        )
    if voting < 3 and not rows.decisive.any():
        raise NotIdentifiedError(
            "two judges without labels: agreement about the truth and shared errors cannot be "
            "distinguished\n  fix: label some items, or ask a third judge"
        )


def _fit(
    patterns: Patterns, method: str, families: Sequence[object] | None
) -> tuple[LatentFit, str]:
    if method != "auto":
        return _fitter(method, families)(patterns), "asked for"
    if FEW <= patterns.n_judges <= MANY:
        try:
            fit = factor(patterns)
        except StatisticsError as refusal:
            return _fit_plain(patterns, str(refusal))
        if fit.anchor_agreement >= SIDES:
            return fit, "attributes the least of the judges' agreement to the truth"
        return _fit_plain(patterns, "the factor model agrees with majority too rarely")
    return _fit_plain(
        patterns, f"{patterns.n_judges} judges: a factor cannot be distinguished from the truth"
    )


def _fit_plain(patterns: Patterns, reason: str) -> tuple[LatentFit, str]:
    try:
        return dawid_skene(patterns), reason
    except NotIdentifiedError as refusal:
        if not (patterns.labels != MISSING).all():
            raise NotIdentifiedError(
                f"the truth cannot be estimated from these votes: {refusal}"
                "\n  fix: label some items, or add judges that decide for both sides"
            ) from None
        return majority(patterns), reason


def _fitter(method: str, families: Sequence[object] | None) -> Callable[[Patterns], LatentFit]:
    if method in ("factor-family", "ising-family") and families is None:
        raise StatisticsError("the votes do not say which family each judge is of")
    family_of = families or ()
    fitters: dict[str, Callable[[Patterns], LatentFit]] = {
        "majority": majority,
        "one-coin": one_coin,
        "dawid-skene": dawid_skene,
        "factor": factor,
        "factor-family": partial(factor_family, families=family_of),
        "ising-shared": ising_shared,
        "ising-class": ising_class,
        "ising-family": partial(ising_family, families=family_of),
    }
    return fitters[method]


def untied_posteriors(estimate: TruthEstimate, patterns: Patterns) -> Floats:
    """P(truth = 1) of patterns in which ties are read as no vote: the mean over their items."""
    p = estimate.patterns.expand(estimate.p)
    return np.asarray(np.bincount(patterns.inverse, p) / np.bincount(patterns.inverse))
