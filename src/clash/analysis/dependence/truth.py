"""What stands for the truth: labels, or a model's estimate of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from clash.analysis.dependence.results import TruthSource
from clash.errors import ConfigError, NotIdentifiedError, StatisticsError
from clash.stats.latent.dawid_skene import dawid_skene, one_coin
from clash.stats.latent.factor import factor, factor_family
from clash.stats.latent.ising import ising_class, ising_family, ising_shared
from clash.stats.latent.majority import majority
from clash.stats.latent.patterns import MISSING, Patterns, collapse

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from clash.stats.latent.fit import LatentFit
    from clash.stats.typing import Floats, Index, VoteCodes
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
class TruthRows:
    """Votes of two sides.

    Attributes:
        codes: int8 (N, K): 0, 1, -1 missing, 2 a tie.
        truth: (N,), 1 or 0; NaN where there is no label, or none that is a side.
        groups: (N,), codes 0..G-1 of what errors are shared in.
        judges: columns of the votes that these are, in order.
        families: the family of each judge; null where none is known.
        given: labels are to be used.
        notes: how the votes were read.
    """

    codes: VoteCodes
    truth: Floats
    groups: Index
    judges: Index
    families: tuple[str, ...] | None
    given: bool
    notes: tuple[str, ...]

    @classmethod
    def of(cls, table: MethodTable) -> TruthRows:
        """The rows of an aggregation's table."""
        return cls(
            table.codes,
            np.where(table.decisive, table.truth, np.nan),
            np.unique(table.groups, return_inverse=True)[1].astype(np.intp),
            np.arange(table.codes.shape[1]),
            table.families,
            table.given,
            table.notes,
        )

    @property
    def labelled(self) -> npt.NDArray[np.bool_]:
        """(N,), rows whose label is a side."""
        return ~np.isnan(self.truth)

    def only_labelled(self) -> TruthRows:
        """The rows with a label, groups numbered anew."""
        keep = self.labelled
        groups = np.unique(self.groups[keep], return_inverse=True)[1].astype(np.intp)
        return replace(self, codes=self.codes[keep], truth=self.truth[keep], groups=groups)

    def only_heard(self) -> TruthRows:
        """The judges that voted at all."""
        keep = np.flatnonzero((self.codes != MISSING).any(axis=0))
        families = None if self.families is None else tuple(self.families[k] for k in keep)
        return replace(self, codes=self.codes[:, keep], judges=self.judges[keep], families=families)

    def patterns(self) -> Patterns:
        """Collapsed, with the labels if they are to be used."""
        if not self.given:
            return collapse(self.codes)
        labels = np.where(self.labelled, np.nan_to_num(self.truth), MISSING).astype(np.int8)
        return collapse(self.codes, labels=labels)


@dataclass(frozen=True)
class TruthEstimate:
    """Votes with P(truth = 1).

    Attributes:
        rows: the rows that are measured.
        patterns: the votes, labels in them where they are used.
        p: shape (n_patterns,), the label where it is known.
        fit: the model of the votes.
        about: for the report.
    """

    rows: TruthRows
    patterns: Patterns
    p: Floats
    fit: LatentFit
    about: TruthSource


def estimate(rows: TruthRows, method: str) -> TruthEstimate:
    """P(truth = 1) of every pattern of votes.

    Args:
        rows: the votes; where labels are to be used and there are 100, only rows with one are
            measured.
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
            f"no method {method!r}", field="--method", hint=f"one of {', '.join(METHODS)}"
        )
    _require_judges(rows)
    available, read = int(rows.labelled.sum()), len(rows.truth)
    if rows.given and available >= ENOUGH:
        rows = rows.only_labelled()
    rows = rows.only_heard()
    patterns = rows.patterns()
    fit, reason = _fit(patterns, method, rows.families)
    used = int((patterns.labels[patterns.inverse] != MISSING).sum())
    if used == patterns.n_items:
        left_out = read - used
        remark = f"; {left_out} rows without one are left out" if left_out else ""
        source = TruthSource("labels", used, available, f"{used} rows have one{remark}", None, ())
    else:
        source = TruthSource(fit.name, used, available, reason, fit.anchor_agreement, fit.warnings)
    return TruthEstimate(rows, patterns, fit.pattern_posterior, fit, source)


def other_estimates(estimate: TruthEstimate) -> dict[str, Floats]:
    """P(truth = 1) by other methods, shape (n_patterns,) each; without those that are refused."""
    posteriors: dict[str, Floats] = {}
    for method in ("one-coin", "dawid-skene", "factor", "factor-family"):
        try:
            fit = _fitter(method, estimate.rows.families)(estimate.patterns)
        except StatisticsError:
            continue
        if fit.name != estimate.about.method:
            posteriors[method] = fit.pattern_posterior
    return posteriors


def _require_judges(rows: TruthRows) -> None:
    voting = int((rows.codes != MISSING).any(axis=0).sum())
    if voting < 2:
        raise StatisticsError(f"{voting} judge(s) voted: dependence is between at least two")
    if voting < 3 and not rows.given:
        raise NotIdentifiedError(
            "two judges without labels: how far they agree about the truth and how far they err "
            "alike cannot be told apart; --use-labels, or a third judge"
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
            return fit, "takes the least of what judges share for the truth"
        return _fit_plain(patterns, "the factor model sides with majority too rarely")
    return _fit_plain(
        patterns, f"{patterns.n_judges} judges: a factor would not be told from the truth"
    )


def _fit_plain(patterns: Patterns, reason: str) -> tuple[LatentFit, str]:
    try:
        return dawid_skene(patterns), reason
    except NotIdentifiedError:
        if not (patterns.labels != MISSING).all():
            raise
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
