"""The effect of a review: concordance and calibrated result before and after its labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clash.analysis.calibration_change import CalibratedResult
from clash.report.formats import DASH, first_names, number, percent, points
from clash.report.tables import Table
from clash.wording import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from clash.analysis.calibration_change import CalibrationChange, CalibrationRefusal
    from clash.analysis.corrected import PeopleDecision
    from clash.analysis.label_change import LabelChange
    from clash.analysis.labelled import LabelConcordance
    from clash.stats.intervals import Interval

_COLUMNS = ("", "before", "now")
_MOST_NAMES = 6


def tables(change: LabelChange, run: str) -> list[Table]:
    """Concordance with the labels, and the calibrated result where one was fitted."""
    change_tables = [_concordance_table(change)]
    if change.decision is not None:
        change_tables.append(_decision_table(change.decision, change.decision_before))
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
    if change.after is not None and change.after.of_all is not None:
        parts.append(("  of all items, weighted", lambda labels: labels.of_all))
    rows += [[name, cell(change.before, part), cell(change.after, part)] for name, part in parts]
    if change.people is not None:
        rows.append(["two people agree", "", percent(change.people)])
    return Table(
        f"Review: {change.written} decisions written", _COLUMNS, rows, frozenset({1, 2}),
        list(_concordance_notes(change)),
    )  # fmt: skip


def _decision_table(now: PeopleDecision, before: PeopleDecision | None) -> Table:
    """What people would decide, before and now, about the two that it is about now."""
    duel, pair = now.duel, {now.duel.first, now.duel.second}
    then = None
    if before is not None and {before.duel.first, before.duel.second} == pair:
        then = before.duel.seen_from(duel.first)
    words = {"decided": "stands", "equal": "stands: as good as equal", "leading": "open"}
    rows = [
        [
            f"people would prefer {duel.first} to {duel.second}",
            DASH if then is None else percent(then.rate),
            percent(duel.rate),
        ],
        ["  by the labels alone", DASH if then is None else percent(then.labels_only),
         percent(duel.labels_only)],
        ["  by the panel alone", number(duel.panel, ".0%"), number(duel.panel, ".0%")],
        ["the decision", DASH if before is None else words[before.status], words[now.status]],
    ]  # fmt: skip
    notes = [f"from {plural(duel.n_labelled, 'label')} and {plural(duel.n_verdicts, 'verdict')}"]
    if now.any_time:
        notes.append(
            "the first interval holds at every number of labels, so that the review may stop at any;"
            " that of the labels alone holds for one number"
        )
    return Table("What people would decide", _COLUMNS, rows, frozenset({1, 2}), notes)


def _concordance_notes(change: LabelChange) -> Iterator[str]:
    if change.more:
        yield f"about {change.more} more labels would bring the interval to 5 points each side"
    if change.after is not None and change.after.of_all is not None:
        yield "drawn items are weighted by their chances to tell of all items"
    else:
        yield "items chosen by --unsure are harder than the rest: without it, items are drawn from all"


def _calibration_table(recalibration: CalibrationChange, run: str) -> Table:
    either = (recalibration.before, recalibration.after)
    leader = next(
        (result.candidate for result in either if isinstance(result, CalibratedResult)), ""
    )
    parts: list[tuple[str, Callable[[CalibratedResult], str]]] = [
        ("map", lambda result: result.family),
        ("judges it asks", lambda result: ", ".join(result.judges)),
        ("accuracy, held out", lambda result: f"{result.accuracy.mean:.1%} ± {result.accuracy.se:.1%}"),
        ("  minus that of majority", lambda result: points(result.gain)),
        ("calibration error, held out", _error),
        (f"{leader} wins, calibrated", lambda result: percent(result.win_rate, digits=1)),
        (f"{leader} wins, panel as it is", lambda result: number(result.panel_rate, ".1%")),
        ("verdicts that differ from the panel's", lambda result: f"{len(result.against_panel)} of {len(result.winners)}"),
    ]  # fmt: skip
    rows = [["labelled items", *map(_label_count, either)]]
    rows += [[name, *(_cell(result, part) for result in either)] for name, part in parts]
    return Table(
        "Calibrated result", _COLUMNS, rows, frozenset({1, 2}), list(_calibration_notes(recalibration, run))
    )  # fmt: skip


def _label_count(result: CalibratedResult | CalibrationRefusal) -> str:
    """The labelled items, and their rows of votes where an item has several."""
    rows = "" if result.labels == result.items else f" ({result.labels} rows)"
    return f"{result.items}{rows}"


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
                f"{after.missing} more labelled items are needed; `clash calibrate {run} --plan N`"
                " names them"
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
        "calibration error: of one map, without the part that few labels add; intervals of win "
        "rates: over prompts, with the calibrator refitted"
    )
    yield (
        f"`clash calibrate {run} --out FILE` writes the calibrator, `--plan N` suggests what to "
        "label next"
    )


def _error(result: CalibratedResult) -> str:
    return f"{result.ece:.3f} [{result.ece_low:.3f}, {result.ece_high:.3f}]"
