"""Psychometric curves of judges on pairs with known gaps, as tables and as a picture."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from clash.report.formats import DASH
from clash.report.tables import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from clash.analysis.diagnosis import Diagnosis
    from clash.analysis.diagnosis.known_gaps import GapHits, JudgeCurve
    from clash.report.plots import PlotCurve
    from clash.stats.intervals import Interval


def curves_table(diagnosis: Diagnosis) -> Table:
    """Threshold, tie band, slope and lapses of each judge."""
    rows = [[judge.judge, str(judge.trials), *_curve(judge)] for judge in diagnosis.calibration]
    columns = ["judge", "trials", "threshold", "tie band", "slope", "lapse", "75% at"]
    notes = [
        "gap: share of a response's sentences that were damaged (truncated: of its words);"
        " threshold: the gap at which a judge decides half the time; slope: rise of the share"
        " there, for a gap of 1",
        *(doubt for judge in diagnosis.calibration for doubt in _doubts(judge)),
    ]
    return Table("Known gaps: psychometric curves", columns, rows, frozenset(range(1, 7)), notes)


def _curve(judge: JudgeCurve) -> list[str]:
    fit = judge.fit
    if fit is None:
        return [DASH] * 5
    parts = (fit.tau, fit.band, fit.slope, fit.lapse, fit.seventy_five)
    return [_gap(part) for part in parts]


def _doubts(judge: JudgeCurve) -> list[str]:
    """Warnings of the fit, or why there is no fit."""
    doubts = list(judge.fit.warnings) if judge.fit is not None else [judge.why or "no fit"]
    return [f"{judge.judge}: {'; '.join(doubts)}"] if doubts else []


def _gap(interval: Interval) -> str:
    """A gap and its interval; ``never`` where even full damage (a gap of 1) does not suffice."""
    if interval.estimate > 1 and interval.low > 1 and math.isinf(interval.estimate):
        return "never"
    ends = ("∞" if math.isinf(end) else f"{end:.2f}" for end in (interval.low, interval.high))
    middle = "never" if math.isinf(interval.estimate) else f"{interval.estimate:.2f}"
    return f"{middle} [{', '.join(ends)}]"


def hits_table(diagnosis: Diagnosis) -> Table:
    """What each judge picked, by kind of damage and gap."""
    keys = sorted({(hit.kind, hit.gap) for judge in diagnosis.calibration for hit in judge.hits})
    names = [judge.judge for judge in diagnosis.calibration]
    table = {
        (judge.judge, hit.kind, hit.gap): hit
        for judge in diagnosis.calibration
        for hit in judge.hits
    }
    rows = [
        [kind, f"{gap:.1f}", *(_hit(table.get((name, kind, gap))) for name in names)]
        for kind, gap in keys
    ]
    notes = ["picked the unaltered response / tied; without a gap a tie is right"]
    columns = ["altered", "gap", *names]
    return Table("Known gaps: what the judges detected", columns, rows, frozenset({1}), notes)


def _hit(hit: GapHits | None) -> str:
    if hit is None:
        return DASH
    return f"{hit.better.estimate:.0%} / {hit.tie.estimate:.0%} of {hit.better.n:g}"


def psychometric_plot(diagnosis: Diagnosis) -> Figure:
    """A panel a judge: the shares that it picked and tied at each gap, and its curves."""
    from clash.report.plots import curves

    return curves(
        [_plot_curves(judge) for judge in diagnosis.calibration],
        titles=[judge.judge for judge in diagnosis.calibration],
        x_label="gap (share of the response damaged)",
        y_label="share of trials",
        y_range=(-0.03, 1.03),
    )


def _plot_curves(judge: JudgeCurve) -> list[PlotCurve]:
    from clash.report.plots import PlotCurve

    gaps = [share.gap for share in judge.shares]
    better = [share.better for share in judge.shares]
    tied = [share.tie for share in judge.shares]
    curves = [
        PlotCurve("picked the better", gaps, *_bars(better), style="points", colour=0),
        # Beside the other points, not on them.
        PlotCurve("tied", [gap + 0.012 for gap in gaps], *_bars(tied), style="points", colour=1),
    ]
    if judge.fit is not None:
        top = max(1.0, *gaps)
        fine = [top * at / 100 for at in range(101)]
        fit = judge.fit.curve
        curves.append(PlotCurve("picks, fitted", fine, fit.better(fine).tolist(), colour=0))
        curves.append(PlotCurve("ties, fitted", fine, fit.tie(fine).tolist(), colour=1))
    return curves


def _bars(shares: Sequence[Interval]) -> tuple[list[float], tuple[list[float], list[float]]]:
    """Heights, and how far the intervals reach below and above them."""
    below = [share.estimate - share.low for share in shares]
    above = [share.high - share.estimate for share in shares]
    return [share.estimate for share in shares], (below, above)
