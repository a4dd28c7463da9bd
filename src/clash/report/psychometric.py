"""Judges on pairs with known gaps: their curves as tables and as a picture."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from clash.report.tables import NONE, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from clash.analysis.diagnosis import Diagnosis
    from clash.analysis.diagnosis.calibration import Hit, JudgeCurve
    from clash.report.plots import Curve as PlotCurve
    from clash.stats.intervals import Interval


def curves_table(found: Diagnosis) -> Table:
    """Threshold, tie band, slope and lapses of each judge."""
    rows = [[judge.judge, str(judge.trials), *_curve(judge)] for judge in found.calibration]
    columns = ["judge", "trials", "threshold", "tie band", "slope", "lapse", "75% at", ""]
    notes = [
        "gap: share of a response's sentences that were damaged (truncated: of its words);"
        " threshold: the gap at which a judge decides half the time; slope: rise of the share"
        " there, for a gap of 1",
    ]
    return Table("Known gaps: psychometric curves", columns, rows, frozenset(range(1, 7)), notes)


def _curve(judge: JudgeCurve) -> list[str]:
    fit = judge.fit
    if fit is None:
        return [*[NONE] * 5, judge.why or ""]
    parts = (fit.tau, fit.band, fit.slope, fit.lapse, fit.seventy_five)
    return [*(_gap(part) for part in parts), "; ".join(fit.warnings)]


def _gap(interval: Interval) -> str:
    """A gap; beyond 1 no damage is large enough."""
    if interval.estimate > 1 and interval.low > 1 and math.isinf(interval.estimate):
        return "never"
    ends = ("∞" if math.isinf(end) else f"{end:.2f}" for end in (interval.low, interval.high))
    middle = "never" if math.isinf(interval.estimate) else f"{interval.estimate:.2f}"
    return f"{middle} [{', '.join(ends)}]"


def hits_table(found: Diagnosis) -> Table:
    """What each judge picked, by kind of damage and gap."""
    keys = sorted({(hit.kind, hit.gap) for judge in found.calibration for hit in judge.hits})
    names = [judge.judge for judge in found.calibration]
    table = {
        (judge.judge, hit.kind, hit.gap): hit for judge in found.calibration for hit in judge.hits
    }
    rows = [
        [kind, f"{gap:.1f}", *(_hit(table.get((name, kind, gap))) for name in names)]
        for kind, gap in keys
    ]
    notes = ["picked the unaltered response / tied; without a gap a tie is right"]
    columns = ["altered", "gap", *names]
    return Table("Known gaps: what they saw", columns, rows, frozenset({1}), notes)


def _hit(hit: Hit | None) -> str:
    if hit is None:
        return NONE
    return f"{hit.better.estimate:.0%} / {hit.tie.estimate:.0%} of {hit.better.n:g}"


def psychometric_plot(found: Diagnosis) -> Figure:
    """A panel a judge: shares picked at each gap, and its curve."""
    from clash.report.plots import Curve, curves

    panels = []
    for judge in found.calibration:
        drawn = [_points_of(judge)]
        if judge.fit is not None:
            top = max(1.0, *(hit.gap for hit in judge.hits))
            gaps = [top * at / 100 for at in range(101)]
            fitted = judge.fit.curve
            drawn.append(Curve("picks the better", gaps, fitted.better(gaps).tolist()))
            drawn.append(Curve("ties", gaps, fitted.tie(gaps).tolist()))
        panels.append(drawn)
    return curves(
        panels,
        titles=[judge.judge for judge in found.calibration],
        x_label="gap (share of the response damaged)",
        y_label="share of trials",
    )


def _points_of(judge: JudgeCurve) -> PlotCurve:
    """All kinds together by gap."""
    from clash.report.plots import Curve

    by_gap: dict[float, list[Hit]] = {}
    for hit in judge.hits:
        by_gap.setdefault(hit.gap, []).append(hit)
    shares, errors = [], []
    for hits in by_gap.values():
        n = sum(hit.better.n for hit in hits)
        share = sum(hit.better.estimate * hit.better.n for hit in hits) / n
        shares.append(share)
        errors.append(1.96 * math.sqrt(max(share * (1 - share), 0.25 / n) / n))
    return Curve("seen", list(by_gap), shares, errors, "points")
