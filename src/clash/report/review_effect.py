"""The effect of a review: concordance and calibrated result before and after its labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clash.analysis.calibration_change import CalibratedResult
from clash.report.formats import DASH, first_names, number, percent, points
from clash.report.tables import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from clash.analysis.calibration_change import CalibrationChange, CalibrationRefusal
    from clash.analysis.label_change import LabelChange
    from clash.analysis.labelled import LabelConcordance
    from clash.stats.intervals import Interval

_COLUMNS = ("", "before", "now")
_MOST_NAMES = 6


def tables(change: LabelChange, run: str) -> list[Table]:
    """Concordance with the labels, and the calibrated result where one was fitted."""
    change_tables = [_concordance_table(change)]
    if change.calibrated is not None:
        change_tables.append(_calibration_table(change.calibrated, run))
    return change_tables


def _concordance_table(change: LabelChange) -> Table:
    def cell(
        labels: LabelConcordance | None, part: Callable[[LabelConcordance], Interval | None]
    ) -> str:
        return DASH if labels is None else percent(part(labels))

    parts: list[tuple[str, Callable[[LabelConcordance], Interval | None]]] = [
        ("concordance with the labels", lambda labels: labels.concordance),
        ("  where unanimous", lambda labels: labels.unanimous),
        ("  where not", lambda labels: labels.split),
    ]
    rows = [["labelled items", *(str(k.n) if k else "0" for k in (change.before, change.after))]]
    rows += [[name, cell(change.before, part), cell(change.after, part)] for name, part in parts]
    if change.people is not None:
        rows.append(["two people agree", "", percent(change.people)])
    return Table(
        f"Review: {change.written} decisions written", _COLUMNS, rows, frozenset({1, 2}),
        list(_concordance_notes(change)),
    )  # fmt: skip


def _concordance_notes(change: LabelChange) -> Iterator[str]:
    if change.more:
        yield f"about {change.more} more labels would bring the interval to 5 points each side"
    yield "items chosen for review are harder than the rest: --sample N measures all items"


def _calibration_table(recalibration: CalibrationChange, run: str) -> Table:
    either = (recalibration.before, recalibration.after)
    leader = next(
        (result.candidate for result in either if isinstance(result, CalibratedResult)), ""
    )
    parts: list[tuple[str, Callable[[CalibratedResult], str]]] = [
        ("map", lambda result: result.family),
        ("judges it asks", lambda result: ", ".join(result.judges)),
        ("accuracy, held out", lambda result: _spread(result.accuracy.mean, result.accuracy.se)),
        ("  minus that of majority", lambda result: points(result.gain)),
        ("calibration error (ECE), held out", _error),
        (f"{leader} wins, calibrated", lambda result: percent(result.win_rate, digits=1)),
        (f"{leader} wins, panel as it is", lambda result: number(result.panel_rate, ".1%")),
        ("verdicts that differ from the panel's", lambda result: f"{len(result.against_panel)} of {len(result.winners)}"),
    ]  # fmt: skip
    rows = [["labelled rows", *(str(result.labels) for result in either)]]
    rows += [[name, *(_cell(result, part) for result in either)] for name, part in parts]
    return Table(
        "Calibrated result", _COLUMNS, rows, frozenset({1, 2}), list(_calibration_notes(recalibration, run))
    )  # fmt: skip


def _cell(
    result: CalibratedResult | CalibrationRefusal, part: Callable[[CalibratedResult], str]
) -> str:
    return part(result) if isinstance(result, CalibratedResult) else DASH


def _calibration_notes(recalibration: CalibrationChange, run: str) -> Iterator[str]:
    """Which calibrated verdicts changed, or why there are none; how to read the table."""
    before, after = recalibration.before, recalibration.after
    if not isinstance(after, CalibratedResult):
        yield f"not calibrated: {after.why}"
        if after.missing:
            yield (
                f"{after.missing} more labels are needed; `clash calibrate {run} --plan N` names "
                "them"
            )
        return
    if not isinstance(before, CalibratedResult):
        yield f"before, not calibrated: {before.why}"
    elif recalibration.changed:
        yield (
            f"{len(recalibration.changed)} calibrated verdicts changed: "
            f"{first_names(recalibration.changed, _MOST_NAMES)}"
        )
    else:
        yield "no calibrated verdict changed"
    if after.against_panel:
        yield f"now different from the panel's:  {first_names(after.against_panel, _MOST_NAMES)}"
    if after.family == "majority":
        yield "no method was significantly better than plain majority, so majority is used"
    yield (
        "ECE in brackets: the value of a perfect calibrator with so few labels; intervals of win "
        "rates: over prompts, with the calibrator refitted"
    )
    yield (
        f"`clash calibrate {run} --out FILE` writes the calibrator, `--plan N` suggests what to "
        "label next"
    )


def _spread(mean: float, error: float) -> str:
    return f"{mean:.1%} ± {error:.1%}"


def _error(result: CalibratedResult) -> str:
    return f"{result.ece:.3f} ({result.chance_ece:.3f})"
