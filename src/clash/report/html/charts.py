"""The charts of a report, made of its findings; a chart without data is left out."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from clash.analysis.pareto import front
from clash.analysis.retest import Retest
from clash.analysis.shared_errors import SharedErrors
from clash.escape import clip
from clash.report.drawing import Dot, Picture, Rect, StraightLine, Word, heat
from clash.report.formats import money, seconds
from clash.report.html.chart_kinds import MOST_CELLS, MOST_ROWS, WIDTH, Forest, Matrix, forest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from clash.analysis.criterion_scores import CriterionScores
    from clash.analysis.findings import Findings
    from clash.analysis.further import Further
    from clash.analysis.pareto import Trade
    from clash.report.drawing import Shape
    from clash.report.html.chart_kinds import Chart
    from clash.stats.typing import Floats


def charts(findings: Findings, more: Further) -> list[Chart]:
    """Every chart of a run that has something to show."""
    every: list[Chart | None] = [
        leaderboard(findings),
        win_matrix(findings),
        pareto(findings, "cost"),
        pareto(findings, "latency"),
        outcomes(findings),
        unanimity(findings),
        judge_agreement(findings),
        *shared_errors(more),
        position(findings),
        lengths(more),
        criteria(more.scores),
        retest(more),
    ]
    return [chart for chart in every if chart is not None]


def pictures(findings: Findings, more: Further) -> list[Picture]:
    """The same as pictures, for files."""
    every = charts(findings, more)
    return [chart if isinstance(chart, Picture) else chart.picture() for chart in every]


def leaderboard(findings: Findings) -> Forest | None:
    """Mean share of the points, with intervals."""
    rows = [(row.candidate, row.points) for row in findings.leaderboard if row.points is not None]
    return forest(
        "leaderboard",
        "Win rate, with 95% intervals",
        rows,
        mark=0.5,
        mark_name="even",
    )


def outcomes(findings: Findings) -> Picture | None:
    """What became of the items, as one bar."""
    coverage, agreement = findings.coverage, findings.unanimity
    split = coverage.items - agreement.unanimous - sum(coverage.abstained.values())
    parts = [
        ("unanimous", agreement.unanimous, "accent"),
        ("not unanimous", split, "soft"),
        ("no verdict", sum(coverage.abstained.values()), "caution"),
    ]
    if not coverage.items:
        return None
    shapes: list[Shape] = []
    left = 0.0
    for _, count, tone in parts:
        width = (WIDTH - 2) * count / coverage.items
        if count:
            shapes.append(Rect(left, 6, width - (1 if width > 3 else 0), 26, tone))
        left += width
    for index, (name, count, tone) in enumerate(parts):
        x = index * 200.0
        shapes += [Dot(x + 6, 52, 5, tone), Word(x + 18, 56, f"{name}: {count}")]
    counts = ", ".join(f"{count} {name}" for name, count, _ in parts)
    description = f"Of {coverage.items} items: {counts}."
    return Picture("outcomes", "Items by outcome", description, WIDTH, 64, tuple(shapes))


def unanimity(findings: Findings) -> Forest | None:
    """Concordance where the panel was unanimous and where it split."""
    labels = findings.label_concordance
    if labels is None:
        return None
    rows = [("all labelled items", labels.concordance)]
    rows += [
        (name, interval)
        for name, interval in (("unanimous", labels.unanimous), ("not unanimous", labels.split))
        if interval is not None
    ]
    return forest("unanimity", "Concordance with the labels", rows)


def position(findings: Findings) -> Forest | None:
    """How often each judge's first place is the response shown first."""
    rows = [(j.judge, j.first_shown) for j in findings.judges if j.first_shown is not None]
    chances = [j.first_expected for j in findings.judges if j.first_expected is not None]
    if findings.position.first_shown is not None:
        rows.insert(0, ("the panel", findings.position.first_shown))
    mark = findings.position.expected_rate or (chances[0] if chances else None)
    return forest(
        "position",
        "How often the response shown first is put first",
        rows,
        mark=mark,
        mark_name="if order had no influence",
    )


def lengths(more: Further) -> Forest | None:
    """How often the longer response is put first."""
    rows = [(line.rater, line.rate.interval) for line in more.lengths]
    return forest(
        "length",
        "How often the longer response is put first",
        rows,
        mark=0.5,
        mark_name="if length had no influence",
    )


def retest(more: Further) -> Forest | None:
    """How often the panel and each judge repeat themselves."""
    again = more.retest
    if not isinstance(again, Retest):
        return None
    rows = [("the panel", again.pair_agreement)]
    rows += [(line.judge, line.consistency) for line in again.judges]
    return forest("test-retest", "The same first place in both runs", rows)


def shared_errors(more: Further) -> list[Matrix]:
    """Residual correlations and couplings of the judges, as matrices."""
    errors = more.error_overlap
    if not isinstance(errors, SharedErrors):
        return []
    condition = (
        "the labels"
        if errors.truth.from_labels
        else f"an estimate of the truth ({errors.truth.method})"
    )
    drawings = [
        _square(
            "residual-correlations",
            f"Correlation of the judges' errors, given {condition}",
            errors.judges,
            errors.correlations,
            1.0,
        )
    ]
    if errors.couplings is not None:
        drawings.append(
            _square(
                "couplings",
                f"Coupling of two judges (log odds ratio), given {condition} and all other judges",
                errors.judges,
                errors.couplings,
                max(1.0, float(np.nanmax(np.abs(errors.couplings)))),
            )
        )
    return drawings


def _square(
    name: str, title: str, judges: Sequence[str], values: Floats, strongest: float
) -> Matrix:
    """A symmetric matrix around zero, its diagonal left out."""
    names = tuple(judges[:MOST_CELLS])
    cells = {
        (first, second): float(values[i, j])
        for i, first in enumerate(names)
        for j, second in enumerate(names)
        if i != j and not math.isnan(values[i, j])
    }
    return Matrix(
        name,
        title,
        names,
        names,
        cells,
        "{:+.2f}",
        lambda v: heat("div", 0.5 + v / (2 * strongest)),
    )


def win_matrix(findings: Findings) -> Matrix | None:
    """Share of the points of the row against the column, ties counting half."""
    board = [row.candidate for row in findings.leaderboard if row.points is not None]
    names = tuple(board[:MOST_CELLS])
    share = {(d.first, d.second): d.share.estimate for d in findings.duels}
    share |= {(second, first): 1 - value for (first, second), value in share.items()}
    if len(names) < 3:
        return None  # a single number is no matrix
    title = "Row against column: win rate, ties counting half"
    return Matrix(
        "win-matrix", title, names, names, share, "{:.0%}", lambda value: heat("div", value)
    )


def judge_agreement(findings: Findings) -> Matrix | None:
    """How often two judges put the same response first."""
    names = tuple(judge.judge for judge in findings.judges if judge.n_judged)[:MOST_CELLS]
    shares = {(p.first, p.second): p.agreement.estimate for p in findings.pairs}
    shares |= {(second, first): value for (first, second), value in shares.items()}
    if len(names) < 3:
        return None
    title = "How often two judges put the same response first"
    return Matrix(
        "judge-agreement", title, names, names, shares, "{:.0%}", lambda value: heat("seq", value)
    )


def criteria(scores: CriterionScores) -> Matrix | None:
    """Mean score of each candidate on the criteria that most items share.

    Null where judges score every criterion alike, as baselines do: equal columns say nothing.
    """
    cells = {(c.candidate, c.criterion): c.mean.estimate for c in scores.cells}
    candidates = tuple(dict.fromkeys(c.candidate for c in scores.cells))[:MOST_ROWS]
    names = tuple(scores.criteria[:MOST_CELLS])
    columns = {tuple(cells.get((row, name)) for row in candidates) for name in names}
    if len(columns) < 2:
        return None
    title = "Mean score of the voting judges, 1 to 5"
    return Matrix(
        "criteria", title, candidates, names, cells, "{:.2f}", lambda v: heat("seq", (v - 1) / 4)
    )


_PRICE: Mapping[str, tuple[str, Callable[[float], str], Callable[[Trade], float | None]]] = {
    "cost": ("Quality and cost of a response", money, lambda trade: trade.cost_usd),
    "latency": ("Quality and time of a response", seconds, lambda trade: trade.latency_s),
}


def pareto(findings: Findings, price: str) -> Picture | None:
    """Points over what a response costs or how long it takes; the front is marked."""
    title, write, of = _PRICE[price]
    prices = [(t, t.quality, of(t)) for t in findings.trades]
    rows = [(t, q, p) for t, q, p in prices if q is not None and p is not None]
    if len(rows) < 3:
        return None  # two points are a comparison of two numbers
    on_front = front({t.candidate: (q, p) for t, q, p in rows})
    left, right, top, bottom = 52.0, WIDTH - 170.0, 14.0, 250.0
    most = max(p for _, _, p in rows) or 1.0
    low, high = _range([q for _, q, _ in rows])

    def at(quality: float, amount: float) -> tuple[float, float]:
        return (
            left + (right - left) * amount / (most * 1.05),
            bottom - (bottom - top) * (quality - low) / (high - low),
        )

    shapes: list[Shape] = []
    for step in range(5):
        quality, amount = low + (high - low) * step / 4, most * step / 4
        (x, _), (_, y) = at(low, amount), at(quality, 0)
        shapes += [
            StraightLine(left, y, right, y),
            Word(left - 8, y + 4, f"{quality:.0%}", "end", "ink-2", 11),
            Word(x, bottom + 18, write(amount), "middle", "ink-2", 11),
        ]
    for trade, quality, amount in rows:
        x, y = at(quality, amount)
        is_best = trade.candidate in on_front
        shapes += [
            Dot(x, y, 6 if is_best else 4.5, "accent" if is_best else "ink-2"),
            Word(x + 10, y + 4, clip(trade.candidate, 24), tone="ink" if is_best else "ink-2"),
        ]
    shapes += [
        Dot(left + 6, bottom + 42, 6), Word(left + 18, bottom + 46, "on the front", size=11.5),
        Dot(left + 126, bottom + 42, 4.5, "ink-2"),
        Word(left + 138, bottom + 46, "dominated", size=11.5),
    ]  # fmt: skip
    description = "; ".join(
        f"{t.candidate}: {q:.0%} win rate, {write(p)}"
        + (", on the front" if t.candidate in on_front else "")
        for t, q, p in rows
    )
    return Picture(f"pareto-{price}", title, description, WIDTH, bottom + 56, tuple(shapes))


def _range(values: Sequence[float]) -> tuple[float, float]:
    """Round bounds around values, at least a tenth apart."""
    low, high = math.floor(min(values) * 10) / 10, math.ceil(max(values) * 10) / 10
    return (low, high) if high - low > 1e-9 else (low - 0.05, high + 0.05)
