"""Methods side by side, as a table and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clash.analysis.serialize import pick, to_dict
from clash.report.formats import DASH, JSON_DIGITS, number, percent, points
from clash.report.tables import Table
from clash.wording import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.analysis.aggregation import Aggregation, MethodResult, MethodScore
    from clash.analysis.aggregation.vote_ranges import AllowedRange, VoteRanges

_FIGURES = ("accuracy", "balanced_accuracy", "log_loss", "brier", "ece")


def as_json(aggregation: Aggregation) -> dict[str, Any]:
    """The contract of ``clash aggregate --json``."""
    methods = {result.method: _method(result) for result in aggregation.methods}
    return {**to_dict(aggregation, JSON_DIGITS), "methods": methods}


def without_figures() -> dict[str, Any]:
    """The keys that every method has, for one that gives no verdict on an item."""
    return {"status": "ok", "converged": True, **dict.fromkeys(_FIGURES)}


def _method(result: MethodResult) -> dict[str, Any]:
    # The score is spread among the method's own keys, which stand there without labels too.
    figures = pick(result.score, *_FIGURES, "n_decisive", digits=JSON_DIGITS)
    intervals = {"accuracy_interval": _accuracy(result.score), "gain": _gain(result.score)}
    return {**to_dict(result, JSON_DIGITS), **figures, **intervals}


def _accuracy(score: MethodScore | None) -> dict[str, float] | None:
    """The ends of the interval of the accuracy."""
    if score is None or score.accuracy_interval is None:
        return None
    return pick(score.accuracy_interval, "low", "high", digits=JSON_DIGITS)


def _gain(score: MethodScore | None) -> dict[str, Any] | None:
    if score is None or score.gain is None:
        return None
    gain = pick(score.gain, "estimate", "low", "high", digits=JSON_DIGITS)
    return {**gain, **pick(score, p="p_gain", digits=JSON_DIGITS)}


def headlines(aggregation: Aggregation) -> list[str]:
    """How often the selected method is right, beside majority, and why it is selected.

    Without labels: why it is selected, and how it decides the items.
    """
    selected = aggregation.selected_result
    reason = aggregation.reason.removeprefix(f"{aggregation.selected}: ")
    advice = f"Use {aggregation.selected}: {reason}."
    score = selected.score
    if score is None:
        return [advice, *_verdict_counts(selected)]
    unit = "row" if aggregation.n_groups < aggregation.n_items else "item"
    answer = f"{_subject(selected)} is right on {percent(score.accuracy_interval)}"
    answer += f" of {plural(score.n, f'labelled {unit}')}"
    reference = aggregation.result("majority").score
    if reference is None or score.gain is None:
        return [f"{answer}.", advice]
    rival = f"the majority on {percent(reference.accuracy_interval)}"
    is_significant = score.gain.excludes(0.0)
    difference = f"{points(score.gain)} points"
    comparison = (
        f"The difference is {difference}."
        if is_significant
        else f"The difference is not significant: {difference}."
    )
    return [f"{answer}, {rival}.", comparison, advice]


def _subject(result: MethodResult) -> str:
    return "The majority" if result.method == "majority" else result.method


def _verdict_counts(result: MethodResult) -> list[str]:
    if result.verdict is None:
        return []
    n_first, n_second = int((result.verdict == 1).sum()), int((result.verdict == 0).sum())
    n_ties = len(result.verdict) - n_first - n_second
    ties = f", {plural(n_ties, 'tie')}" if n_ties else ""
    return [f"Its verdicts: {n_first:,} for A, {n_second:,} for B{ties}."]


def table(aggregation: Aggregation, *, verbose: bool = True) -> Table:
    """The methods, in the order in which they were named.

    Args:
        aggregation: the methods on the same votes.
        verbose: with every figure, and a note on each method.
    """
    results = [result for result in aggregation.methods if verbose or result.status == "ok"]
    columns: Sequence[str] = _COLUMNS
    if not verbose:
        columns = _MAIN_COLUMNS if aggregation.n_labelled else _UNLABELLED_COLUMNS
    rows = [[_row(result)[_COLUMNS.index(name)] for name in columns] for result in results]
    rows_and_items = plural(aggregation.n_items, "item")
    if aggregation.n_groups < aggregation.n_items:
        items = plural(aggregation.n_groups, "item")
        rows_and_items = f"{plural(aggregation.n_items, 'row')} of {items}"
    judges, label_rows = (
        plural(aggregation.n_judges, "judge"),
        plural(aggregation.n_labelled, "row"),
    )
    title = f"{rows_and_items}, {judges}, {label_rows} with a label"
    notes = [*aggregation.notes, *(_details(aggregation) if verbose else _remarks(aggregation))]
    optional = [columns.index(name) for name in _OPTIONAL if name in columns]
    right = frozenset(range(1, len(columns)))
    return Table(title, columns, rows, right, notes, brief=True, optional=optional)


_COLUMNS = (
    "method",
    "accuracy",
    "balanced",
    "log-loss",
    "ECE",
    "against majority",
    "differs",
    "T",
)
_MAIN_COLUMNS = ("method", "accuracy", "log-loss", "ECE", "against majority")
_UNLABELLED_COLUMNS = ("method", "differs")
_OPTIONAL = ("T", "balanced", "ECE", "log-loss")
"""Columns that a narrow terminal leaves out, the first ones first."""


def _details(aggregation: Aggregation) -> list[str]:
    """What the columns mean, and how each method read the votes."""
    return [
        "differs: rows whose verdict differs from majority's; T: the temperature that divides "
        "its log-odds",
        "log-loss, Brier and ECE over labels that name a side; a tied verdict counts half",
        *(
            f"{r.method} refused: {n}" if r.status == "refused" else f"{r.method}: {n}"
            for r in aggregation.methods
            if r.method != "auto"  # its notes are the warnings
            for n in r.notes
        ),
    ]


def _remarks(aggregation: Aggregation) -> list[str]:
    """What a reader of the short table needs."""
    results = [result for result in aggregation.methods if result.status == "refused"]
    refusals = [f"refused: {', '.join(r.method for r in results)}; -v says why"]
    if len(results) < 2:
        refusals = [f"{r.method} refused: {note}" for r in results for note in r.notes]
    if aggregation.n_labelled:
        return refusals
    return ["differs: rows whose verdict differs from majority's", *refusals]


def _row(result: MethodResult) -> list[str]:
    if result.status == "refused":
        return [result.method, "refused", *[DASH] * (len(_COLUMNS) - 2)]
    name = result.method if result.converged else f"{result.method} (not converged)"
    temperature = number(result.temperature, ".1f")
    score = result.score
    if score is None:
        return [name, *[DASH] * 5, str(result.disagrees), temperature]
    return [
        name,
        percent(score.accuracy_interval, digits=1),
        f"{score.balanced_accuracy:.1%}",
        number(score.log_loss, ".3f"),
        number(score.ece, ".3f"),
        points(score.gain),
        str(result.disagrees),
        temperature,
    ]


def ranges_json(ranges: VoteRanges) -> dict[str, Any]:
    """The key ``range`` of ``clash aggregate --range --json``; ``items`` by item."""
    items = {
        item: [round(low, JSON_DIGITS), round(high, JSON_DIGITS)]
        for item, low, high in zip(
            ranges.items, ranges.low.tolist(), ranges.high.tolist(), strict=True
        )
    }
    return {**to_dict(ranges, JSON_DIGITS), "items": items}


def ranges_table(ranges: VoteRanges) -> Table:
    """The accuracies that the votes allow: of majority, then of each judge, the doubtful ones last."""
    judges = sorted(ranges.judges.items(), key=lambda judge: -judge[1].high - judge[1].low)
    rows = [["majority", _percent(ranges.majority)], *([n, _percent(b)] for n, b in judges)]
    source = (
        f"what {plural(ranges.n_labels, 'label')} leave of it"
        if ranges.n_labels
        else "no label is used"
    )
    notes = [
        f"readings of the votes: {', '.join(ranges.readings)}; each at the strengths that public "
        "panels had",
        "an error that most judges share is in no reading: with one, the truth is outside",
    ]
    title = f"Accuracy that the votes allow ({source})"
    return Table(title, ["verdicts of", "right"], rows, frozenset({1}), notes)


def _percent(bounds: AllowedRange) -> str:
    return f"{bounds.low:.0%} to {bounds.high:.0%}"


def ranges_lines(ranges: VoteRanges) -> list[str]:
    """What the votes leave open, and which items to label."""
    width = ranges.majority.high - ranges.majority.low
    line = (
        f"The votes allow {_percent(ranges.majority)} of majority's verdicts to be right, and leave "
        f"the side of {ranges.n_open} of {plural(len(ranges.items), 'item')} open."
    )
    if not ranges.label_next:
        return [line]
    return [
        line,
        f"{plural(len(ranges.label_next), 'label')} on the items below would narrow that from "
        f"{100 * width:.0f} to about {100 * ranges.width_after:.0f} points (random items: "
        f"{100 * ranges.width_random:.0f}).",
        f"Label next: {', '.join(ranges.label_next)}",
    ]
