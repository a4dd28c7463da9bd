"""What stands for the truth: labels, or a model's estimate of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from clash.analysis.dependence.findings import Truth
from clash.errors import ConfigError, NotIdentifiedError, StatisticsError
from clash.stats.latent.dawid_skene import dawid_skene, one_coin
from clash.stats.latent.factor import factor, factor_family
from clash.stats.latent.ising import ising_class, ising_family, ising_shared
from clash.stats.latent.majority import majority
from clash.stats.latent.patterns import MISSING, Patterns

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from clash.analysis.aggregation import Table
    from clash.analysis.dependence.findings import Floats
    from clash.stats.latent.fit import LatentFit

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
class Estimated:
    """Votes with P(truth = 1).

    Attributes:
        table: the rows that are measured.
        patterns: the votes, labels in them where they are used.
        p: shape (n_patterns,), the label where it is known.
        fit: the model of the votes.
        about: for the report.
    """

    table: Table
    patterns: Patterns
    p: Floats
    fit: LatentFit
    about: Truth


def estimate(table: Table, method: str) -> Estimated:
    """P(truth = 1) of every pattern of votes.

    Args:
        table: the votes; labels enter where ``table.given``, on their own if there are 100.
        method: one of :data:`METHODS`; ``auto`` is the factor model for 4 to 15 judges and
            Dawid-Skene otherwise: of the models compared on public panels, the factor model
            takes the least of what judges share for the truth, unless they are many.

    Raises:
        ConfigError: an unknown method.
        NotIdentifiedError: fewer than three judges and no labels.
        StatisticsError: the model was refused, or there are not two judges.
    """
    if method not in METHODS:
        raise ConfigError(
            f"no method {method!r}", field="--method", mend=f"one of {', '.join(METHODS)}"
        )
    _require_judges(table)
    available = int(table.decisive.sum())
    left_out = 0
    if table.given and available >= ENOUGH:
        left_out = len(table.truth) - available
        table = _labelled_rows(table)
    patterns = table.patterns()
    fit, reason = _fit(patterns, method, table.families)
    used = int((patterns.labels[patterns.inverse] != MISSING).sum())
    if used == patterns.n_items:
        rest = f"; {left_out} rows without one are left out" if left_out else ""
        about = Truth("labels", used, available, f"{used} rows have one{rest}", None, ())
    else:
        about = Truth(fit.name, used, available, reason, fit.anchor_agreement, fit.warnings)
    return Estimated(table, patterns, fit.pattern_posterior, fit, about)


def _labelled_rows(table: Table) -> Table:
    keep = table.decisive
    return replace(
        table,
        codes=table.codes[keep],
        truth=table.truth[keep],
        groups=np.unique(table.groups[keep], return_inverse=True)[1].astype(np.intp),
        swapped=None if table.swapped is None else table.swapped[keep],
    )


def _require_judges(table: Table) -> None:
    voting = int((table.codes != MISSING).any(axis=0).sum())
    if voting < 2:
        raise StatisticsError(f"{voting} judge(s) voted: dependence is between at least two")
    if voting < 3 and not table.given:
        raise NotIdentifiedError(
            "two judges without labels: how far they agree about the truth and how far they err "
            "alike cannot be told apart; --use-labels, or a third judge"
        )


def _fit(
    patterns: Patterns, method: str, families: Sequence[object] | None
) -> tuple[LatentFit, str]:
    if method != "auto":
        return _named(method, families)(patterns), "asked for"
    if FEW <= patterns.n_judges <= MANY:
        try:
            fit = factor(patterns)
        except StatisticsError as refusal:
            return _plain(patterns, str(refusal))
        if fit.anchor_agreement >= SIDES:
            return fit, "takes the least of what judges share for the truth"
        return _plain(patterns, "the factor model sides with majority too rarely")
    return _plain(
        patterns, f"{patterns.n_judges} judges: a factor would not be told from the truth"
    )


def _plain(patterns: Patterns, reason: str) -> tuple[LatentFit, str]:
    try:
        return dawid_skene(patterns), reason
    except NotIdentifiedError:
        if not (patterns.labels != MISSING).all():
            raise
        return majority(patterns), reason


def _named(method: str, families: Sequence[object] | None) -> Callable[[Patterns], LatentFit]:
    if method in ("factor-family", "ising-family") and families is None:
        raise StatisticsError("the votes do not say which family each judge is of")
    named = families or ()
    fitters: dict[str, Callable[[Patterns], LatentFit]] = {
        "majority": majority,
        "one-coin": one_coin,
        "dawid-skene": dawid_skene,
        "factor": factor,
        "factor-family": partial(factor_family, families=named),
        "ising-shared": ising_shared,
        "ising-class": ising_class,
        "ising-family": partial(ising_family, families=named),
    }
    return fitters[method]


def matched(estimated: Estimated, untied: Patterns) -> Floats:
    """P(truth = 1) of patterns in which ties are read as no vote: the mean over their items."""
    p = estimated.patterns.expand(estimated.p)
    return np.asarray(np.bincount(untied.inverse, p) / np.bincount(untied.inverse))
