"""Methods side by side, as a table and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clash.report.formats import DASH, number, points, round_figure
from clash.report.tables import Table

if TYPE_CHECKING:
    from clash.analysis.aggregation import Aggregation, MethodResult, MethodScore

_FIGURES = ("accuracy", "balanced_accuracy", "log_loss", "brier", "ece")


def as_json(aggregation: Aggregation) -> dict[str, Any]:
    """The contract of ``clash aggregate --json``."""
    return {
        "n_items": aggregation.n_items,
        "n_judges": aggregation.n_judges,
        "n_labelled": aggregation.n_labelled,
        "selected": aggregation.selected,
        "reason": aggregation.reason,
        "warnings": list(aggregation.warnings),
        "notes": list(aggregation.notes),
        "methods": {result.method: _method(result) for result in aggregation.methods},
    }


def without_figures() -> dict[str, Any]:
    """The keys that every method has, for one that gives no verdict on an item."""
    return {"status": "ok", "converged": True, **dict.fromkeys(_FIGURES)}


def _method(result: MethodResult) -> dict[str, Any]:
    score = result.score
    return {
        "status": result.status,
        "converged": result.converged,
        **{name: round_figure(getattr(score, name, None)) for name in _FIGURES},
        "n_decisive": score.n_decisive if score else None,
        "gain": _gain(score),
        "log_likelihood": round_figure(result.log_likelihood),
        "bic": round_figure(result.bic),
        "temperature": round_figure(result.temperature),
        "disagrees_with_majority": result.disagrees,
        "notes": list(result.notes),
    }


def _gain(score: MethodScore | None) -> dict[str, float | None] | None:
    if score is None or score.gain is None:
        return None
    gain = score.gain
    figures = {"estimate": gain.estimate, "low": gain.low, "high": gain.high, "p": score.p_gain}
    return {name: round_figure(value) for name, value in figures.items()}


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
    title = f"{aggregation.n_items} items, {aggregation.n_judges} judges, {aggregation.n_labelled} rows with a label"
    notes = [
        "differs: rows whose verdict is not majority's; T: temperature its log-odds were divided by",
        "log-loss, Brier and ECE over labels that are a side; a tied verdict earns half",
        *aggregation.notes,
        *(
            f"{r.method} refused: {n}" if r.status == "refused" else f"{r.method}: {n}"
            for r in aggregation.methods
            if r.method != "auto"  # what it warns of is said below the table
            for n in r.notes
        ),
    ]
    return Table(title, columns, rows, frozenset(range(1, 8)), notes, brief=True)


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
