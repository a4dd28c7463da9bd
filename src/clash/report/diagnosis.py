"""A diagnosis of judges as tables and as JSON."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from clash.analysis.plain import plain
from clash.report.tables import NONE, Table, money, percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from clash.analysis.diagnosis import Diagnosis
    from clash.analysis.diagnosis.calibration import Hit, JudgeCurve
    from clash.analysis.diagnosis.judges import Agreement, JudgeFacts
    from clash.analysis.diagnosis.recommend import Recommendation
    from clash.analysis.diagnosis.run import Scale
    from clash.report.plots import Curve as PlotCurve
    from clash.stats.effectiveness import Removal
    from clash.stats.intervals import Interval


def as_json(found: Diagnosis) -> dict[str, Any]:
    """Everything the tables show, and more digits."""
    made = plain(asdict(found))
    assert isinstance(made, dict)  # noqa: S101 - for the type checker
    return made


def tables(found: Diagnosis) -> list[Table]:
    """What to do first, then why."""
    made = [
        _calibration(found),
        _hits(found),
        _recommendations(found),
        _judges(found),
        _panel(found),
        _thresholds(found),
        _diversity(found),
        _run_judges(found),
        _effects(found),
    ]
    return [table for table in made if table is not None and table.rows]


def _recommendations(found: Diagnosis) -> Table:
    # Where nobody has enough ballots, that is what there is to say.
    sure = [r for r in found.recommendations if r.sure] or list(found.recommendations)
    order = {"replace": 0, "down-weight": 1, "keep": 2}
    rows = [
        [r.judge, r.action, _weight(r), _saving(r), _why(r)]
        for r in sorted(sure, key=lambda r: (order[r.action], r.judge))
    ]
    few = len(found.recommendations) - len(sure)
    notes = [
        "weight: of its decisive ballots against the best judge's; saves: runs in each of two"
        " conditions for a 10-point difference (80% power), if a judge that decides 40% or more"
        " and errs as the median judge sat in its place",
        *found.notes,
    ]
    if few:
        notes.append(f"{few} judge(s) have too few ballots to say; --json has them all")
    columns = ["judge", "do", "weight", "saves", "because"]
    return Table("What to do", columns, rows, frozenset({2}), notes, brief=True)


def _weight(made: Recommendation) -> str:
    best = made.action == "down-weight" and made.weight >= 0.995
    return f"{made.weight:.2f}{' (best here)' if best else ''}"


def _saving(made: Recommendation) -> str:
    if made.saving is None or made.saving.after is None:
        return NONE
    if made.saving.now is None or made.saving.saves is None:
        return f"{made.saving.after} instead of no end"
    return f"{made.saving.saves} of {made.saving.now}"


def _why(made: Recommendation) -> str:
    """What speaks for the action; for keeping, everything."""
    speaking = [reason.text for reason in made.reasons if reason.action == made.action]
    aside = [reason.text for reason in made.reasons if reason.code == "side"]
    shown = speaking or [reason.text for reason in made.reasons]
    return "; ".join(dict.fromkeys([*shown, *aside]))


def _judges(found: Diagnosis) -> Table:
    facts = _shown(found)
    consistent = any(judge.consistency for judge in facts)
    flips = any(judge.slots.flips for judge in facts)
    rows = [_judge_row(judge, consistent=consistent, flips=flips) for judge in facts]
    columns = ["judge", "ballots", "failed", "ties", "decisive an item", "rest: kappa"]
    columns += ["labels", "labels: kappa", "first shown wins", "pull"]
    columns += (["flips"] if flips else []) + (["repeats itself"] if consistent else [])
    notes = [
        "kappa: with the majority of judges of other families, and with labels, on ballots where"
        " both decide; above 0.6 signal, below 0.3 noise",
        "pull: first wins beyond those of the labels (or of the other judges) on the same ballots",
    ]
    return Table("Judges", columns, rows, frozenset(range(1, len(columns))), notes, brief=True)


def _shown(found: Diagnosis) -> list[JudgeFacts]:
    """Judges with enough ballots; all of them where none has."""
    sure = {r.judge for r in found.recommendations if r.sure}
    return [judge for judge in found.judges if judge.judge in sure or not sure]


def _judge_row(judge: JudgeFacts, *, consistent: bool, flips: bool) -> list[str]:
    slots = judge.slots
    row = [
        judge.judge,
        str(judge.ballots),
        str(judge.failed),
        percent(judge.ties, digits=1),
        f"{judge.informative:.2f}",
        _kappa(judge.rest),
        NONE if judge.label is None else percent(judge.label.share),
        _kappa(judge.label),
        NONE if slots.first is None else percent(slots.first.interval),
        _points(slots.pull),
    ]
    if flips:
        row.append(NONE if slots.flips is None else percent(slots.flips.rate))
    if consistent:
        row.append(percent(judge.consistency))
    return row


def _kappa(found: Agreement | None) -> str:
    return NONE if found is None else ratio(found.kappa)


def ratio(interval: Interval | None, digits: int = 2) -> str:
    """A figure and its interval, as ``0.71 [0.60, 0.80]``."""
    if interval is None or math.isnan(interval.estimate):
        return NONE
    ends = f"[{interval.low:.{digits}f}, {interval.high:.{digits}f}]"
    return f"{interval.estimate:.{digits}f} {ends}"


def _points(interval: Interval | None) -> str:
    if interval is None or math.isnan(interval.estimate):
        return NONE
    points = [100 * x for x in (interval.estimate, interval.low, interval.high)]
    return f"{points[0]:+.0f} [{points[1]:+.0f}, {points[2]:+.0f}]"


def _panel(found: Diagnosis) -> Table:
    panel = found.panel
    heavy = "no end" if math.isinf(panel.attenuation) else f"{panel.attenuation:.2f} times"
    rows = [
        ["items, judges, ballots", f"{panel.items}, {panel.judges}, {panel.ballots}"],
        ["ties", percent(panel.ties, digits=1)],
        ["discrimination", percent(panel.discrimination, digits=1)],
        ["effects look smaller with ties as half wins", f"by {heavy}"],
        ["side A wins, ties half", percent(panel.half, digits=1)],
        ["side A wins, corrected (decisive ballots)", percent(panel.corrected, digits=1)],
        ["Krippendorff's alpha, all ballots", ratio(panel.alpha)],
        ["Krippendorff's alpha, decisive ballots", ratio(panel.alpha_decisive)],
        [
            f"effective number of judges, of {panel.effective_of}",
            f"{ratio(panel.effective)} ({panel.effective_by})",
        ],
        ["ICC of decisive ballots of an item", ratio(found.icc)],
    ]
    return Table("Panel", ["", ""], rows, brief=True)


def _thresholds(found: Diagnosis) -> Table:
    limits = found.thresholds
    sure = {judge.judge for judge in _shown(found)}
    simulated = any(judge.removals for judge in limits.judges)
    rows = [
        [
            judge.judge,
            f"{judge.discrimination:.1%}",
            judge.published,
            judge.derived,
            f"{judge.break_even:.1%}: {'adds' if judge.adds else 'takes away'}",
            f"{judge.weight:.2f}",
            *(
                [_removal(judge.removals, "half"), _removal(judge.removals, "davidson")]
                if simulated
                else []
            ),
        ]
        for judge in limits.judges
        if judge.judge in sure
    ]
    k = limits.candidates
    columns = [
        "judge",
        "decides",
        f"published 1/(2K-1) = {limits.published:.3f}",
        f"derived 1/(K+1) = {limits.derived:.3f}",
        "break-even",
        "weight",
        *(["without it, ties half", "without it, ties modelled"] if simulated else []),
    ]
    notes = [
        f"K = {k} candidates; the published condition d/(K-1) > (1-d)/(K(K-1)) solves to"
        " d > 1/(K+1), not 1/(2K-1)",
        "break-even: with ties as half wins, a judge of the panel's edge adds power from S"
        " (sqrt(J/(J-1)) - 1) on, S the sum of the others' rates; K does not enter. Where ties are"
        " modelled or left out, a tie costs nothing and every judge with an edge adds",
    ]
    if simulated:
        notes.append("without it: change of power by simulation when the judge leaves, in points")
    return Table("Positive contribution", columns, rows, frozenset({1, 5}), notes)


def _removal(removals: Sequence[Removal], analysis: str) -> str:
    found = next((r for r in removals if r.analysis == analysis), None)
    return NONE if found is None else _points(found.change)


def _calibration(found: Diagnosis) -> Table | None:
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


def _hits(found: Diagnosis) -> Table | None:
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


_READING = {
    "equivalence": "judges decide where responses differ: ties are mostly equivalence",
    "mixed": "responses explain part of the ties",
    "failure": "ties come whatever the responses: they speak of the judges, not of equivalence",
}


def _diversity(found: Diagnosis) -> Table | None:
    made = found.equivalence
    if made is None:
        return None
    rows = [
        ["items with texts", str(made.items)],
        ["R² of discrimination on diversity (adjusted)", ratio(made.r2)],
        ["the most it could be, with so few ballots an item", _share(made.ceiling)],
        ["of what can be explained", f"{_share(made.explained)}: {_READING[made.reading]}"],
        ["by the published bands on R² (0.2, 0.4)", made.published],
    ]
    rows += [
        [f"odds of deciding, {slope.feature} one sd up (mean {mean:.2f})", ratio(slope.odds)]
        for slope, mean in zip(made.slopes, made.means, strict=True)
    ]
    if made.shares is not None:
        rows += [
            ["ties: equivalence", percent(made.shares.equivalence)],
            ["ties: conservatism", percent(made.shares.conservatism)],
            ["ties: unguided", percent(made.shares.unguided)],
        ]
    notes = [f"semantic similarity: {made.semantic} ({made.semantic_version})", *made.notes]
    return Table("Judge failure or genuine equivalence", ["", ""], rows, notes=notes)


def _share(value: float) -> str:
    return NONE if math.isnan(value) else f"{value:.2f}"


def _run_judges(found: Diagnosis) -> Table | None:
    if found.run is None:
        return None
    rows = [
        [
            judge.judge,
            money(judge.cost_usd),
            money(judge.cost_per_informative),
            NONE if judge.longer is None else percent(judge.longer.interval),
            *_scale(judge.scale),
        ]
        for judge in found.run.judges
    ]
    columns = ["judge", "cost", "a decided pair", "longer wins", "scores 1-5", "mean", "sd"]
    columns += ["two neighbours", "against the others"]
    notes = ["two neighbours: share of its two commonest neighbouring scores; 80% is no scale"]
    return Table("Judges: cost, length, scale", columns, rows, frozenset(range(1, 9)), notes)


def _scale(scale: Scale | None) -> list[str]:
    if scale is None:
        return [NONE] * 5
    spread = f"{scale.two:.0%}{' restricted' if scale.restricted else ''}"
    counts = " ".join(str(count) for count in scale.counts)
    return [counts, f"{scale.mean:.2f}", f"{scale.sd:.2f}", spread, ratio(scale.anchor)]


def _effects(found: Diagnosis) -> Table | None:
    if found.run is None:
        return None
    rows = [
        [e.candidate, ratio(e.half), ratio(e.corrected), ratio(e.weighted)]
        for e in sorted(found.run.effects, key=lambda e: -e.corrected.estimate)
    ]
    columns = ["candidate", "ties half", "ties modelled", "ties half, weighted"]
    notes = ["log strengths against the mean (Bradley-Terry, Davidson); weights: discrimination"]
    return Table("Effects and their attenuation", columns, rows, frozenset({1, 2, 3}), notes)
