"""Votes to verdicts by several methods side by side, and how each fares where there are labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from clash.errors import ConfigError, StatisticsError
from clash.stats import scoring
from clash.stats.latent.auto import select
from clash.stats.latent.dawid_skene import dawid_skene, one_coin, position_bias
from clash.stats.latent.factor import factor, factor_family
from clash.stats.latent.fit import LatentFit
from clash.stats.latent.ising import ising_class, ising_family, ising_shared
from clash.stats.latent.majority import majority
from clash.stats.latent.patterns import MISSING, TIE, Patterns, Ties, collapse
from clash.stats.latent.temper import blend, temper
from clash.stats.tests import paired_difference
from clash.stats.voting.majority import credit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from clash.analysis.encode import Votes
    from clash.stats.intervals import Interval

    Floats = NDArray[np.float64]
    Codes = NDArray[np.int8]

Fitter = Callable[[Patterns], LatentFit]
POSITION = "position-bias"
FAMILIES = ("ising-family", "factor-family")
FOLDS = 5
CLIP = 1e-3
"""Probabilities are kept this far from 0 and 1 in the log-loss: one sure error costs 6.9."""


@dataclass(frozen=True)
class Score:
    """A method against labels; every figure is over the labelled rows, misses included.

    Attributes:
        n: labelled rows.
        n_decisive: of them, rows whose label is a side; log-loss, Brier and ECE are over these.
        gain: accuracy minus that of majority, clustered by group.
        p_gain: of no difference.
    """

    n: int
    n_decisive: int
    accuracy: float
    balanced_accuracy: float
    log_loss: float | None
    brier: float | None
    ece: float | None
    gain: Interval | None = None
    p_gain: float | None = None


@dataclass(frozen=True)
class MethodResult:
    """One method.

    Attributes:
        status: ``ok``, or ``refused`` with the reason in ``notes``.
        p: P(side 1) by row, shape (N,); null where refused.
        disagrees: rows whose verdict is not majority's.
    """

    method: str
    status: str
    converged: bool | None = None
    p: Floats | None = None
    log_likelihood: float | None = None
    bic: float | None = None
    temperature: float | None = None
    disagrees: int | None = None
    score: Score | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Aggregation:
    """All methods on the same votes.

    Attributes:
        selected: the method whose verdicts to use, and why.
    """

    n_rows: int
    n_items: int
    n_judges: int
    n_labelled: int
    selected: str
    reason: str
    methods: tuple[MethodResult, ...]
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default_factory=tuple)

    def result(self, name: str) -> MethodResult:
        """One method by name."""
        return next(m for m in self.methods if m.method == name)


def known_methods() -> list[str]:
    """The names that ``--method`` takes."""
    return ["auto", *_fitters(None), POSITION]


def _fitters(families: Sequence[object] | None) -> dict[str, Fitter]:
    named = families if families is not None else []
    return {
        "majority": majority,
        "one-coin": one_coin,
        "dawid-skene": dawid_skene,
        "ising-shared": ising_shared,
        "ising-class": ising_class,
        "ising-family": partial(ising_family, families=named),
        "factor": factor,
        "factor-family": partial(factor_family, families=named),
    }


def aggregate(
    votes: Votes,
    methods: Sequence[str],
    *,
    seed: int = 0,
    ties: Ties = "half",
    use_labels: bool = False,
    threshold: float | None = None,
) -> Aggregation:
    """Run every method on the same votes.

    Args:
        votes: from a file or a run.
        methods: names; majority is always among them, as the anchor.
        seed: of the folds of cross-validation.
        ties: a tied vote is half a vote for either side, or no vote.
        use_labels: labels enter as observed truth (semi-supervised). The scores are then of
            cross-fitted posteriors: each row is scored by a fit that did not see its label.
        threshold: numeric votes and labels from this value on are side 1; by default the middle
            of the range that occurs.

    Raises:
        ConfigError: an unknown method.
        StatisticsError: no votes at all.
    """
    names = list(dict.fromkeys([*methods, "majority"]))
    unknown = [name for name in names if name not in known_methods()]
    if unknown:
        mend = f"one of {', '.join(known_methods())}"
        raise ConfigError(f"no method {unknown[0]!r}", field="--method", mend=mend)
    table = Table.of(votes, threshold, ties, use_labels=use_labels)
    runs = {name: _rule(name, table, seed) for name in names}
    fits = {name: _attempt(name, runs[name], table.patterns()) for name in names}
    anchor = fits["majority"].p
    honest = {name: _cross_fitted(runs[name], table, fits[name], seed) for name in names}
    results = tuple(
        _compared(fits[name], honest[name], honest["majority"], anchor, table) for name in names
    )
    chosen = fits["auto"] if "auto" in fits else fits[names[0]]
    return Aggregation(
        n_rows=votes.n_rows,
        n_items=votes.n_items,
        n_judges=len(votes.judges),
        n_labelled=int(table.labelled.sum()),
        selected=chosen.selected or names[0],
        reason=chosen.reason or "named first on the command line",
        methods=results,
        warnings=chosen.warnings,
        notes=table.notes,
    )


@dataclass(frozen=True)
class Table:
    """Votes as the binary models read them.

    Attributes:
        codes: int8 (N, J): 0, 1, -1 missing, 2 a tie.
        truth: (N,), 1, 0 or 0.5 (a tie), NaN where there is no label.
        groups: (N,), what errors are shared in.
        swapped: (N,), the responses were shown in reverse; null where not all rows say.
        given: labels enter the fits.
        notes: how ties and scores were read.
    """

    codes: Codes
    truth: Floats
    groups: NDArray[np.intp]
    families: tuple[str, ...] | None
    swapped: NDArray[np.bool_] | None
    ties: Ties
    given: bool
    notes: tuple[str, ...]

    @classmethod
    def of(
        cls, votes: Votes, threshold: float | None, ties: Ties, *, use_labels: bool = False
    ) -> Table:
        """Read votes, cutting scores in two where they are numbers."""
        matrix, truth, notes = votes.matrix, votes.labels, []
        if votes.kind == "numeric":
            cut = _middle(matrix, truth) if threshold is None else threshold
            matrix, truth = _cut(matrix, cut), _cut(truth, cut)
            notes.append(f"scores from {cut:g} on are side 1, below it side 0 (--threshold)")
        codes = np.full(matrix.shape, MISSING, np.int8)
        for value, code in ((0.0, 0), (1.0, 1), (0.5, TIE)):
            codes[matrix == value] = code
        tied = float((codes == TIE).sum() / max(1, (codes != MISSING).sum()))
        if tied:
            read = "half a vote either way" if ties == "half" else "no vote"
            notes.append(f"{tied:.0%} of the votes are ties, read as {read} (--ties)")
        return cls(
            codes,
            truth,
            votes.groups,
            _families(votes),
            _swapped(votes),
            ties,
            use_labels,
            tuple(notes),
        )

    @property
    def labelled(self) -> NDArray[np.bool_]:
        """(N,), rows with a label."""
        return ~np.isnan(self.truth)

    @property
    def decisive(self) -> NDArray[np.bool_]:
        """(N,), rows whose label is a side."""
        return np.isin(self.truth, (0.0, 1.0))

    def patterns(self, hidden: NDArray[np.bool_] | None = None) -> Patterns:
        """The votes collapsed, with the labels that may be seen."""
        if not self.given:
            return collapse(self.codes, ties=self.ties)
        seen = self.decisive if hidden is None else self.decisive & ~hidden
        labels = np.where(seen, np.nan_to_num(self.truth), MISSING).astype(np.int8)
        return collapse(self.codes, labels=labels, ties=self.ties)


def _swapped(votes: Votes) -> NDArray[np.bool_] | None:
    if not set(votes.presentations) <= {"orig", "swap"}:
        return None
    return np.array([shown == "swap" for shown in votes.presentations])


def _middle(matrix: Floats, truth: Floats) -> float:
    known = np.concatenate([matrix[~np.isnan(matrix)], truth[~np.isnan(truth)]])
    if not len(known):
        raise StatisticsError("there is no vote")
    return float((known.min() + known.max()) / 2)


def _cut(values: Floats, cut: float) -> Floats:
    return np.where(np.isnan(values), np.nan, (values >= cut).astype(float))


def _families(votes: Votes) -> tuple[str, ...] | None:
    """A family for each judge; null where none is known. A judge without one is its own."""
    if not any(votes.families):
        return None
    return tuple(f or judge for f, judge in zip(votes.families, votes.judges, strict=True))


@dataclass(frozen=True)
class _Fitted:
    """What a method made of the votes; ``p`` is null where it was refused."""

    method: str
    p: Floats | None
    fit: LatentFit | None = None
    selected: str | None = None
    reason: str | None = None
    warnings: tuple[str, ...] = ()
    refusal: str | None = None


Rule = Callable[[Patterns], _Fitted]


def _rule(name: str, table: Table, seed: int) -> Rule:
    """The method of that name, as a function of patterns alone."""
    if name == "auto":
        return partial(_auto, table=table, seed=seed)
    if name == POSITION:
        return partial(_by_position, table=table)
    if name in FAMILIES and table.families is None:
        return partial(_refuse, name)
    fitter = _fitters(table.families)[name]
    return partial(_tempered, name, fitter)


def _refuse(name: str, patterns: Patterns) -> _Fitted:  # noqa: ARG001 - a rule takes patterns
    raise StatisticsError("the votes do not say which family each judge is of")


def _by_position(patterns: Patterns, *, table: Table) -> _Fitted:  # noqa: ARG001 - rows, not patterns, know their order
    if table.swapped is None:
        raise StatisticsError("the votes do not say in which order the responses were shown")
    if table.ties == "half" and (table.codes == TIE).any():
        raise StatisticsError("ties have no place in this model: --ties missing leaves them out")
    fit = temper(position_bias(table.codes, table.swapped))
    return _Fitted(POSITION, fit.patterns.expand(blend(fit)), fit, warnings=fit.warnings)


def _tempered(name: str, fitter: Fitter, patterns: Patterns) -> _Fitted:
    fit = temper(fitter(patterns))
    p = fit.item_posterior if name == "majority" else patterns.expand(blend(fit))
    return _Fitted(name, p, fit, warnings=fit.warnings)


def _auto(patterns: Patterns, *, table: Table, seed: int) -> _Fitted:
    labels = patterns.labels[patterns.inverse] if table.given else None
    found = select(
        table.codes,
        rng=np.random.default_rng(seed),
        families=table.families,
        labels=labels,
        ties=table.ties,
    )
    return _Fitted(
        "auto",
        found.item_posterior,
        found.fit,
        selected=found.selected,
        reason=found.reason,
        warnings=found.warnings,
    )


def _attempt(name: str, rule: Rule, patterns: Patterns) -> _Fitted:
    try:
        return rule(patterns)
    except StatisticsError as refusal:
        return _Fitted(name, None, refusal=str(refusal))


def _cross_fitted(rule: Rule, table: Table, whole: _Fitted, seed: int) -> Floats | None:
    """Posteriors that never saw the label of their own row; the fit's own without labels."""
    if not table.given or whole.p is None:
        return whole.p
    p = whole.p.copy()
    # Whole groups are held out together: a swapped copy would give its twin's label away.
    names = np.unique(table.groups)
    fold_of = dict(
        zip(names, np.random.default_rng(seed).permutation(len(names)) % FOLDS, strict=True)
    )
    fold = np.array([fold_of[group] for group in table.groups])
    for held in range(FOLDS):
        found = _attempt(whole.method, rule, table.patterns(hidden=fold == held))
        if found.p is None:
            return None
        p[fold == held] = found.p[fold == held]
    return p


def _compared(
    fitted: _Fitted,
    honest: Floats | None,
    reference: Floats | None,
    anchor: Floats | None,
    table: Table,
) -> MethodResult:
    """A method with its figures against labels and against majority."""
    if fitted.p is None or fitted.fit is None or anchor is None:
        return MethodResult(fitted.method, "refused", notes=(fitted.refusal or "",))
    fit = fitted.fit
    return MethodResult(
        method=fitted.method,
        status="ok",
        converged=fit.converged,
        p=fitted.p,
        log_likelihood=fit.log_likelihood,
        bic=fit.bic,
        temperature=fit.temperature,
        disagrees=int((_verdict(fitted.p) != _verdict(anchor)).sum()),
        score=_score(honest, reference, table, own=fitted.method != "majority"),
        notes=fitted.warnings,
    )


def _verdict(p: Floats) -> Floats:
    """1, 0, or 0.5 where the probability is level."""
    return np.where(np.isclose(p, 0.5, atol=1e-9), 0.5, (p > 0.5).astype(float))


def _score(p: Floats | None, reference: Floats | None, table: Table, *, own: bool) -> Score | None:
    known, sides = table.labelled, table.decisive
    if p is None or reference is None or not known.any():
        return None
    verdict, truth = _verdict(p), table.truth
    gain = None
    if own:
        mine, other = (
            credit(verdict[known], truth[known]),
            credit(_verdict(reference)[known], truth[known]),
        )
        gain = paired_difference(mine, other, table.groups[known])
    some = bool(sides.any())
    return Score(
        n=int(known.sum()),
        n_decisive=int(sides.sum()),
        accuracy=scoring.accuracy(verdict[known], truth[known]),
        balanced_accuracy=scoring.balanced_accuracy(verdict[known], truth[known]),
        log_loss=scoring.log_loss(p[sides], truth[sides], clip=CLIP) if some else None,
        brier=scoring.brier(p[sides], truth[sides]) if some else None,
        ece=scoring.ece(p[sides], truth[sides]) if some else None,
        gain=gain.difference if gain else None,
        p_gain=gain.test.p if gain else None,
    )
