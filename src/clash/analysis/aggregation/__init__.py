"""Aggregate votes to verdicts by several methods, and score each against the labels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from clash.analysis.aggregation import three_outcomes
from clash.analysis.aggregation.methods import (
    EXPERT_POOL,
    MethodFit,
    MethodRunner,
    attempt,
    enough_labels,
    method_names,
    method_runner,
    refuse_labels,
)
from clash.errors import ConfigError, StatisticsError, one_of
from clash.stats import scoring
from clash.stats.hypothesis_tests import paired_difference
from clash.stats.intervals import wilson_clustered
from clash.stats.latent.fit import vote_share
from clash.stats.logistic import log_odds, sigmoid
from clash.stats.selection.expert_pool import label_scale
from clash.stats.voting.majority import credit
from clash.votes import LabelUse
from clash.votes.binary import Copies, MethodTable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clash.analysis.aggregation.ising_methods import RidgeChoice
    from clash.stats.intervals import Interval
    from clash.stats.latent.patterns import Ties
    from clash.stats.typing import Floats, Index
    from clash.votes import Votes


FOLDS = 5
VOTE_SHARE, PROBABILITY = "vote share", "probability"
SURE = 0.1
"""How far from one half a posterior makes a winner where judges said equal and the sides are
level: a convention, chosen on public panels with ties among their labels."""
CLIP = 1e-3
"""Probabilities are kept this far from 0 and 1 in the log-loss: one sure error costs 6.9."""


@dataclass(frozen=True)
class MethodScore:
    """A method against labels; every figure is over the labelled rows, misses included.

    Attributes:
        n: labelled rows.
        n_decisive: of them, rows whose label is a side; log-loss, Brier and ECE are over these.
        gain: accuracy minus that of majority, clustered by group.
        p_gain: of no difference.
        accuracy_interval: of the accuracy, clustered by group.
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
    accuracy_interval: Interval | None = None


@dataclass(frozen=True)
class MethodResult:
    """One method.

    Attributes:
        status: ``ok``, or ``refused`` with the reason in ``notes``.
        p: P(side 1) by row, shape (N,); null where refused.
        verdict: 1, 0 or 0.5 (a tie) by row, shape (N,).
        disagrees: rows whose verdict is not majority's.
        scale: by what labels multiply the log-odds of the votes alone; null where no label was used.
    """

    json_keys: ClassVar[Mapping[str, str]] = {"disagrees": "disagrees_with_majority"}
    json_omits: ClassVar[tuple[str, ...]] = ("method", "p", "verdict", "score")
    json_properties: ClassVar[tuple[str, ...]] = ("p_is",)

    method: str
    status: str
    converged: bool | None = None
    p: Floats | None = None
    verdict: Floats | None = None
    log_likelihood: float | None = None
    bic: float | None = None
    temperature: float | None = None
    disagrees: int | None = None
    score: MethodScore | None = None
    notes: tuple[str, ...] = ()
    scale: float | None = None

    @property
    def p_is(self) -> str:
        """What ``p`` is: a probability where labels made it one, else the share of the votes."""
        return VOTE_SHARE if self.scale is None else PROBABILITY


@dataclass(frozen=True)
class Aggregation:
    """All methods on the same votes.

    Attributes:
        items: of each row; unique where copies were merged.
        selected: the method whose verdicts to use; ``reason`` says why.
        n_groups: what the rows are of: the items of a run of several candidates, whose rows are
            pairs of them.
    """

    json_omits: ClassVar[tuple[str, ...]] = ("items", "methods")
    json_properties: ClassVar[tuple[str, ...]] = ("n_items",)

    items: tuple[str, ...]
    n_judges: int
    n_labelled: int
    selected: str
    reason: str
    methods: tuple[MethodResult, ...]
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    n_groups: int = 0

    @property
    def n_items(self) -> int:
        """Rows that were aggregated: items, unless their copies were kept apart."""
        return len(self.items)

    def result(self, name: str) -> MethodResult:
        """One method by name."""
        return next(m for m in self.methods if m.method == name)

    @property
    def selected_result(self) -> MethodResult:
        """The method whose verdicts to use; ``auto`` where it selects one that was not named."""
        names = [m.method for m in self.methods]
        return self.result(self.selected if self.selected in names else "auto")


def aggregate(
    votes: Votes,
    methods: Sequence[str],
    *,
    seed: int = 0,
    ties: Ties = "half",
    copies: Copies = "merge",
    use_labels: bool | None = None,
    threshold: float | None = None,
    weights: Floats | None = None,
    ridge: RidgeChoice = None,
) -> Aggregation:
    """Run every method on the same votes.

    Args:
        votes: from a file or a run.
        methods: names; majority is always among them, as the anchor.
        seed: of the folds of cross-validation.
        ties: a tied vote is half a vote for either side, or no vote.
        copies: an item that was judged several times (both orders, repeats) is one row, in which
            each judge has one vote, the side it chose more often; or each copy is a row.
        use_labels: true, labels enter every method as observed truth (semi-supervised), and scale its
            log-odds. The scores are then of cross-fitted posteriors: each row is scored by a fit
            that did not see its label. Null, from 10 labels on ``auto`` brings the expert pool
            along, which reads them and is selected; false, labels are only scored against.
        threshold: numeric votes and labels from this value on are side 1; by default the middle
            of the range that occurs.
        weights: (J,), of the judges in the weighted majority; by default those that the one-coin
            model implies.
        ridge: L2 on the couplings of the Ising models, as a share of the items; ``held-out``
            chooses it by held-out likelihood; None is the usual one (for couplings by class, a
            strength of the whole prior chosen by held-out likelihood).

    Raises:
        ConfigError: an unknown method.
        StatisticsError: no votes at all.
    """
    names = list(dict.fromkeys([*methods, "majority"]))
    _check_methods(names)
    # A judge that never voted says nothing, and models read what is missing in ways of their own.
    table = MethodTable.of(
        votes, threshold, ties, use_labels=use_labels is True, copies=copies
    ).only_voting()
    weights = None if weights is None else weights[table.judges]
    if use_labels is not False and "auto" in names and enough_labels(table):
        names = list(dict.fromkeys([EXPERT_POOL, *names]))
    rules = {name: method_runner(name, table, seed, weights, ridge) for name in names}
    if use_labels is False:
        rules |= {name: refuse_labels for name in names if name == EXPERT_POOL}
    fits = {name: attempt(name, rules[name], table.patterns()) for name in names}
    held_out = {name: _cross_fit(rules[name], table, fits[name], seed) for name in names}
    for name in names:
        fits[name], held_out[name] = _recalibrate(fits[name], held_out[name], table, seed)
    ready = [name for name in names if fits[name].p is not None]
    choosers = [name for name in (EXPERT_POOL, "auto") if name in ready and "auto" in names]
    chooser = (choosers or ready)[0]
    chooser_fit = fits[chooser]
    return Aggregation(
        items=table.items,
        n_judges=len(votes.judges),
        n_labelled=int(table.labelled.sum()),
        selected=chooser_fit.selected or chooser,
        reason=chooser_fit.reason or _why_first(fits[names[0]]),
        methods=tuple(
            _result(fits[name], held_out[name], held_out["majority"], table) for name in names
        ),
        warnings=chooser_fit.warnings,
        notes=(*_label_notes(table, names, use_labels=use_labels), *table.notes),
        n_groups=len(set(votes.groups.tolist())),
    )


def _why_first(named_first: MethodFit) -> str:
    """Why the first method that was not refused is used."""
    if named_first.refusal is None:
        return "named first on the command line"
    return f"{named_first.method} was refused: {named_first.refusal}"


def _label_notes(
    table: MethodTable, names: Sequence[str], *, use_labels: bool | None
) -> tuple[str, ...]:
    """What became of the labels that are there."""
    n_labelled = int(table.labelled.sum())
    if not n_labelled:
        return ()
    use = LabelUse(len(table.items), n_labelled, used=use_labels is not False)
    if use_labels is False:
        return (f"{use.sentence} of every fit: they only measure it",)
    if use_labels or EXPERT_POOL in names:
        return (use.sentence,)
    have, _, _ = use.sentence.partition(";")
    return (f"{have}: they measure the fits, and --use-labels fits to them",)


def aggregate_outcomes(
    votes: Votes, methods: Sequence[str], *, copies: Copies = "merge"
) -> Aggregation:
    """The same with a tie as a third outcome, for the methods that know more than two sides.

    ``p`` is P(side 1); accuracy counts a tie as a label like the others.

    Raises:
        ConfigError: an unknown method.
        StatisticsError: no votes at all.
    """
    names = [name for name in dict.fromkeys([*methods, "majority"]) if name != "auto"]
    _check_methods(names)
    table = MethodTable.of(votes, copies=copies)
    anchor = three_outcomes.fit("majority", table)
    share = three_outcomes.verdicts(anchor)
    results = []
    for name in names:
        try:
            fit = anchor if name == "majority" else three_outcomes.fit(name, table)
        except StatisticsError as refusal:
            results.append(MethodResult(name, "refused", notes=(str(refusal),)))
            continue
        has_label, verdict = table.labelled, three_outcomes.verdicts(fit)
        figures: dict[str, Any] = (
            three_outcomes.score_figures(fit, anchor, table) if has_label.any() else {}
        )
        results.append(
            MethodResult(
                method=name,
                status="ok",
                converged=fit.converged,
                p=fit.tempered_posterior[:, three_outcomes.SIDE_1],
                verdict=verdict,
                log_likelihood=fit.log_likelihood,
                temperature=fit.temperature,
                disagrees=int((verdict != share).sum()),
                score=MethodScore(int(has_label.sum()), int(table.decisive.sum()), **figures)
                if figures
                else None,
                notes=fit.warnings,
            )
        )
    reason = (
        "auto chooses only among two-sided models; with a third outcome, plurality is the reference"
    )
    return Aggregation(
        items=table.items,
        n_judges=len(votes.judges),
        n_labelled=int(table.labelled.sum()),
        selected="majority",
        reason=reason,
        methods=tuple(results),
        notes=("a tie counts as a third outcome; log-loss, Brier and ECE are over three classes",),
        n_groups=len(set(votes.groups.tolist())),
    )


def _check_methods(names: Sequence[str]) -> None:
    unknown = [name for name in names if name not in method_names()]
    if unknown:
        hint = one_of(unknown[0], method_names())
        raise ConfigError(f"no method {unknown[0]!r}", field="--method", hint=hint)


def _cross_fit(
    method: MethodRunner, table: MethodTable, full_fit: MethodFit, seed: int
) -> Floats | None:
    """Posteriors that never saw the label of their own row; the fit's own without labels."""
    if not table.uses_labels or full_fit.p is None or full_fit.is_cross_fitted:
        return full_fit.p
    p = full_fit.p.copy()
    # Whole groups are held out together: a copy of an item would give its twin's label away.
    fold = _folds(table, seed)
    for held_fold in range(FOLDS):
        fold_fit = attempt(full_fit.method, method, table.patterns(held_out=fold == held_fold))
        if fold_fit.p is None:
            return None
        p[fold == held_fold] = fold_fit.p[fold == held_fold]
    return p


def _folds(table: MethodTable, seed: int) -> Index:
    """(N,), the fold of each row, the same for all rows of a group."""
    fold = np.random.default_rng(seed).permutation(table.groups.max() + 1)[table.groups] % FOLDS
    return np.asarray(fold, dtype=np.intp)


def _recalibrate(
    method_fit: MethodFit, held_out: Floats | None, table: MethodTable, seed: int
) -> tuple[MethodFit, Floats | None]:
    """One scale on a method's log-odds, fitted to labels that its fits did not see.

    The scale of each fold's scores is fitted to the other folds. Every method is treated alike, vote
    shares too; no verdict changes, for a scale is positive.
    """
    rows = np.flatnonzero(table.decisive)
    is_ready = method_fit.p is not None and held_out is not None and not method_fit.is_cross_fitted
    if not (table.uses_labels and is_ready and enough_labels(table)):
        return method_fit, held_out
    assert method_fit.p is not None and held_out is not None  # noqa: PT018, S101 - is_ready
    odds, y, fold = log_odds(held_out[rows]), table.truth[rows], _folds(table, seed)[rows]
    scores = held_out.copy()
    for k in range(FOLDS):
        inside = fold != k
        scores[rows[~inside]] = sigmoid(label_scale(odds[inside], y[inside]) * odds[~inside])
    scale = label_scale(odds, y)
    scaled_p = sigmoid(scale * log_odds(method_fit.p))
    p = np.where(table.decisive, method_fit.p, scaled_p)
    return replace(method_fit, p=p, scale=scale), scores


def _result(
    method_fit: MethodFit, held_out: Floats | None, reference: Floats | None, table: MethodTable
) -> MethodResult:
    """A method's result, scored against the labels and against majority."""
    if method_fit.p is None or method_fit.fit is None:
        return MethodResult(method_fit.method, "refused", notes=(method_fit.refusal or "",))
    fit, verdict = method_fit.fit, row_verdicts(method_fit.p, table)
    return MethodResult(
        method=method_fit.method,
        status="ok",
        converged=fit.converged,
        p=method_fit.p,
        verdict=verdict,
        log_likelihood=fit.log_likelihood,
        bic=fit.bic,
        temperature=fit.temperature,
        disagrees=int((verdict != row_verdicts(_share(table), table)).sum()),
        score=_score(held_out, reference, table, against_majority=method_fit.method != "majority"),
        notes=(*method_fit.notes, *method_fit.warnings),
        scale=method_fit.scale,
    )


def _share(table: MethodTable) -> Floats:
    bare = table.patterns().without_labels()
    return bare.expand(vote_share(bare))


def row_verdicts(p: Floats, table: MethodTable, *, level_is_tie: bool = False) -> Floats:
    """1, 0, or 0.5 for a tie, shape (N,).

    Where judges said that the responses are equal and the sides come out level, a model of two
    sides has to be :data:`SURE` to make a winner of it: it knows no third outcome, the judges did.

    Args:
        p: (N,), the share of side 1.
        table: the votes.
        level_is_tie: so it has to be wherever the sides come out level.
    """
    verdict = np.where(np.isclose(p, 0.5, atol=1e-9), 0.5, (p > 0.5).astype(float))
    level = np.isclose(_share(table), 0.5) & (np.abs(p - 0.5) <= SURE)
    if not level_is_tie:
        level &= table.tied
    return np.where(level, 0.5, verdict)


def _score(
    p: Floats | None, reference: Floats | None, table: MethodTable, *, against_majority: bool
) -> MethodScore | None:
    has_label, sides = table.labelled, table.decisive
    if p is None or reference is None or not has_label.any():
        return None
    verdict, reference_verdict, truth = (
        row_verdicts(p, table),
        row_verdicts(reference, table),
        table.truth,
    )
    groups, row_credits = table.groups[has_label], credit(verdict[has_label], truth[has_label])
    gain = None
    if against_majority:
        reference_credits = credit(reference_verdict[has_label], truth[has_label])
        gain = paired_difference(row_credits, reference_credits, groups)
    has_sides = bool(sides.any())
    return MethodScore(
        n=int(has_label.sum()),
        n_decisive=int(sides.sum()),
        accuracy=scoring.accuracy(verdict[has_label], truth[has_label]),
        balanced_accuracy=scoring.balanced_accuracy(verdict[has_label], truth[has_label]),
        log_loss=scoring.log_loss(p[sides], truth[sides], clip=CLIP) if has_sides else None,
        brier=scoring.brier(p[sides], truth[sides]) if has_sides else None,
        ece=scoring.ece(p[sides], truth[sides]) if has_sides else None,
        gain=gain.difference if gain else None,
        p_gain=gain.test.p if gain else None,
        accuracy_interval=wilson_clustered(row_credits, groups),
    )
