"""Methods side by side, as a table and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clash.analysis.serialize import pick, to_dict
from clash.report.formats import DASH, JSON_DIGITS, number, points
from clash.report.tables import Table
from clash.wording import plural

if TYPE_CHECKING:
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
    return {**to_dict(result, JSON_DIGITS), **figures, "gain": _gain(result.score)}


def _gain(score: MethodScore | None) -> dict[str, Any] | None:
    if score is None or score.gain is None:
        return None
    gain = pick(score.gain, "estimate", "low", "high", digits=JSON_DIGITS)
    return {**gain, **pick(score, p="p_gain", digits=JSON_DIGITS)}


def table(aggregation: Aggregation) -> Table:
    """The methods, in the order they were asked for."""
    columns = [
        "method",
        "accuracy",
        "balanced",
        "log-loss",
        "ECE",
        "against majority",
        "differs",
        "T",
    ]
    rows = [_row(result) for result in aggregation.methods]
    rows_and_items = plural(aggregation.n_items, "item")
    if aggregation.n_groups < aggregation.n_items:
        items = plural(aggregation.n_groups, "item")
        rows_and_items = f"{plural(aggregation.n_items, 'row')} of {items}"
    judges, label_rows = (
        plural(aggregation.n_judges, "judge"),
        plural(aggregation.n_labelled, "row"),
    )
    title = f"{rows_and_items}, {judges}, {label_rows} with a label"
    notes = [
        "differs: rows whose verdict differs from majority's; T: the temperature that divides "
        "its log-odds",
        "log-loss, Brier and ECE over labels that name a side; a tied verdict counts half",
        *aggregation.notes,
        *(
            f"{r.method} refused: {n}" if r.status == "refused" else f"{r.method}: {n}"
            for r in aggregation.methods
            if r.method != "auto"  # what it warns of is said below the table
            for n in r.notes
        ),
    ]
    return Table(title, columns, rows, frozenset(range(1, 8)), notes, brief=True, optional=(7, 4))


def _row(result: MethodResult) -> list[str]:
    if result.status == "refused":
        return [result.method, "refused", *[DASH] * 6]
    name = result.method if result.converged else f"{result.method} (not converged)"
    temperature = number(result.temperature, ".1f")
    score = result.score
    if score is None:
        return [name, *[DASH] * 5, str(result.disagrees), temperature]
    return [
        name,
        f"{score.accuracy:.1%}",
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
        f"the votes allow {_percent(ranges.majority)} of majority's verdicts to be right, and leave "
        f"the side of {ranges.n_open} of {plural(len(ranges.items), 'item')} open"
    )
    if not ranges.label_next:
        return [line]
    return [
        line,
        f"{plural(len(ranges.label_next), 'label')} on the items below would narrow that from "
        f"{100 * width:.0f} to about {100 * ranges.width_after:.0f} points (random items: "
        f"{100 * ranges.width_random:.0f})",
        f"label next: {', '.join(ranges.label_next)}",
    ]
