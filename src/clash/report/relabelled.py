"""What a review changed, as tables of words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clash.analysis.recalibrated import Calibrated
from clash.report.formats import NONE, first_names, number, percent, points
from clash.report.tables import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from clash.analysis.labelled import Labelled
    from clash.analysis.recalibrated import Recalibrated, Refused
    from clash.analysis.relabelled import Changed
    from clash.stats.intervals import Interval

_COLUMNS = ("", "before", "now")
_NAMED = 6


def tables(found: Changed, run: str) -> list[Table]:
    """What the labels changed in the concordance and in the calibrated result."""
    made = [_concordance(found)]
    if found.calibrated is not None:
        made.append(_calibrated(found.calibrated, run))
    return made


def _concordance(found: Changed) -> Table:
    def cell(known: Labelled | None, part: Callable[[Labelled], Interval | None]) -> str:
        return NONE if known is None else percent(part(known))

    parts: list[tuple[str, Callable[[Labelled], Interval | None]]] = [
        ("concordance with the labels", lambda known: known.concordance),
        ("  where unanimous", lambda known: known.unanimous),
        ("  where not", lambda known: known.split),
    ]
    rows = [["labelled items", *(str(k.n) if k else "0" for k in (found.before, found.after))]]
    rows += [[name, cell(found.before, part), cell(found.after, part)] for name, part in parts]
    if found.people is not None:
        rows.append(["two people say the same", "", percent(found.people)])
    return Table(
        f"Review: {found.written} decisions written", _COLUMNS, rows, frozenset({1, 2}),
        list(_more(found)),
    )  # fmt: skip


def _more(found: Changed) -> Iterator[str]:
    if found.more:
        yield f"about {found.more} more labels would bring the interval to 5 points each side"
    yield "items that need a person are harder than the rest: --sample N measures all"


def _calibrated(found: Recalibrated, run: str) -> Table:
    either = (found.before, found.after)
    leader = next((one.candidate for one in either if isinstance(one, Calibrated)), "")
    parts: list[tuple[str, Callable[[Calibrated], str]]] = [
        ("map", lambda one: one.family),
        ("judges it asks", lambda one: ", ".join(one.judges)),
        ("accuracy, held out", lambda one: _spread(one.accuracy.mean, one.accuracy.se)),
        ("  less that of majority", lambda one: points(one.gain)),
        ("calibration error (ECE), held out", _error),
        (f"{leader} wins, calibrated", lambda one: percent(one.win_rate, digits=1)),
        (f"{leader} wins, panel as it is", lambda one: number(one.panel_rate, ".1%")),
        ("verdicts unlike the panel's", lambda one: f"{len(one.against_panel)} of {len(one.winners)}"),
    ]  # fmt: skip
    rows = [["labelled rows", *(str(one.labels) for one in either)]]
    rows += [[name, *(_cell(one, part) for one in either)] for name, part in parts]
    return Table(
        "Calibrated result", _COLUMNS, rows, frozenset({1, 2}), list(_said(found, run))
    )  # fmt: skip


def _cell(one: Calibrated | Refused, part: Callable[[Calibrated], str]) -> str:
    return part(one) if isinstance(one, Calibrated) else NONE


def _said(found: Recalibrated, run: str) -> Iterator[str]:
    """What changed, in sentences; plainly, where there are too few labels."""
    before, after = found.before, found.after
    if not isinstance(after, Calibrated):
        yield f"not calibrated: {after.why}"
        if after.missing:
            yield f"{after.missing} more labels would do; `clash calibrate {run} --plan N` names them"
        return
    if not isinstance(before, Calibrated):
        yield f"before, not calibrated: {before.why}"
    elif found.changed:
        yield f"{len(found.changed)} calibrated verdicts changed: {first_names(found.changed, _NAMED)}"
    else:
        yield "no calibrated verdict changed"
    if after.against_panel:
        yield f"unlike the panel's now: {first_names(after.against_panel, _NAMED)}"
    if after.family == "majority":
        yield "no map was better than the plain majority by more than noise: that is what is used"
    yield (
        "ECE in brackets: what a perfect map would show on so few labels; intervals of win rates:"
        " over prompts, the map fitted anew"
    )
    yield f"`clash calibrate {run} --out FILE` writes the map, `--plan N` names what to label next"


def _spread(mean: float, error: float) -> str:
    return f"{mean:.1%} ± {error:.1%}"


def _error(one: Calibrated) -> str:
    return f"{one.ece:.3f} ({one.chance_ece:.3f})"
