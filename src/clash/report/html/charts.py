"""The findings as pictures. A picture that would be empty is left out."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from clash.pages import clipped
from clash.report.html.draw import Dot, Line, Picture, Rect, Word, heat
from clash.report.tables import money, percent, seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from clash.analysis.findings import Findings
    from clash.analysis.pareto import Trade
    from clash.analysis.scores import Scores
    from clash.report.html.draw import Shape
    from clash.stats.intervals import Interval

_ROW = 26
_LETTER = 6.8
_WIDTH = 640
_CELL = 54
_MOST_CELLS = 14
_MOST_ROWS = 40


def pictures(found: Findings, scores: Scores) -> list[Picture]:
    """Every picture of a run that has something to show."""
    made = [
        leaderboard(found),
        win_matrix(found),
        pareto(found, "cost"),
        pareto(found, "latency"),
        outcomes(found),
        unanimity(found),
        judge_agreement(found),
        position(found),
        criteria(scores),
    ]
    return [picture for picture in made if picture is not None]


def leaderboard(found: Findings) -> Picture | None:
    """Mean share of the points, with intervals."""
    rows = [(row.candidate, row.points) for row in found.leaderboard if row.points is not None]
    return _forest(
        "leaderboard",
        "Points, with 95% intervals",
        rows,
        mark=0.5,
        mark_name="even",
    )


def outcomes(found: Findings) -> Picture | None:
    """What became of the items, as one bar."""
    covered, agreed = found.coverage, found.unanimity
    divided = covered.items - agreed.unanimous - sum(covered.abstained.values())
    parts = [
        ("unanimous", agreed.unanimous, "accent"),
        ("not unanimous", divided, "soft"),
        ("no verdict", sum(covered.abstained.values()), "bad"),
    ]
    if not covered.items:
        return None
    shapes: list[Shape] = []
    left = 0.0
    for _, count, tone in parts:
        width = (_WIDTH - 2) * count / covered.items
        if count:
            shapes.append(Rect(left, 6, width - (1 if width > 3 else 0), 26, tone))
        left += width
    for place, (name, count, tone) in enumerate(parts):
        x = place * 200.0
        shapes += [Dot(x + 6, 52, 5, tone), Word(x + 18, 56, f"{name}: {count}")]
    told = ", ".join(f"{count} {name}" for name, count, _ in parts)
    about = f"Of {covered.items} items: {told}."
    return Picture("outcomes", "Items by outcome", about, _WIDTH, 64, tuple(shapes))


def unanimity(found: Findings) -> Picture | None:
    """Concordance where the panel was unanimous and where it split."""
    known = found.labelled
    if known is None:
        return None
    rows = [("all labelled items", known.concordance)]
    rows += [
        (name, interval)
        for name, interval in (("unanimous", known.unanimous), ("not unanimous", known.split))
        if interval is not None
    ]
    return _forest("unanimity", "Concordance with the labels", rows)


def position(found: Findings) -> Picture | None:
    """How often each judge's first place is the response shown first."""
    rows = [(j.judge, j.first_shown) for j in found.judges if j.first_shown is not None]
    expected = [j.first_expected for j in found.judges if j.first_expected is not None]
    if found.position.first_shown is not None:
        rows.insert(0, ("the panel", found.position.first_shown))
    mark = found.position.expected or (expected[0] if expected else None)
    return _forest(
        "position",
        "How often the response shown first is put first",
        rows,
        mark=mark,
        mark_name="if order had no influence",
    )


def _forest(
    name: str,
    title: str,
    rows: Sequence[tuple[str, Interval]],
    *,
    mark: float | None = None,
    mark_name: str = "",
) -> Picture | None:
    """Shares between 0 and 1 as dots with intervals, a row each."""
    rows = [(who, i) for who, i in rows if not math.isnan(i.estimate)][:_MOST_ROWS]
    if not rows:
        return None
    left, right = _room([who for who, _ in rows]), _WIDTH - 120
    bottom = 8 + _ROW * len(rows)

    def x(share: float) -> float:
        return left + (right - left) * min(max(share, 0.0), 1.0)

    shapes: list[Shape] = []
    for tick in (0, 0.25, 0.5, 0.75, 1):
        shapes += [
            Line(x(tick), 4, x(tick), bottom),
            Word(x(tick), bottom + 16, f"{tick:.0%}", "middle", "muted", 11),
        ]
    if mark is not None:
        shapes.append(Line(x(mark), 4, x(mark), bottom, "muted", 1.5, dashed=True))
        shapes.append(Word(x(mark), bottom + 32, f"- - {mark_name}", "middle", "muted", 11))
    for place, (who, interval) in enumerate(rows):
        y = 8 + _ROW * (place + 0.5)
        shapes += [
            Word(left - 16, y + 4, clipped(who, 26), "end"),
            Line(x(interval.low), y, x(interval.high), y, "accent", 2),
            Dot(x(interval.estimate), y, 4.5),
            Word(right + 14, y + 4, percent(interval), size=11.5, tone="muted"),
        ]
    told = "; ".join(f"{who} {percent(i)}" for who, i in rows)
    height = bottom + (40 if mark is not None else 24)
    return Picture(name, title, told, _WIDTH, height, tuple(shapes))


def _room(names: Sequence[str]) -> float:
    """The width that names need, clipped as they are."""
    return 30 + _LETTER * max(len(clipped(name, 26)) for name in names)


def win_matrix(found: Findings) -> Picture | None:
    """Share of the points of the row against the column, ties counting half."""
    names = [row.candidate for row in found.leaderboard if row.points is not None][:_MOST_CELLS]
    share = {(d.first, d.second): d.share.estimate for d in found.duels}
    share |= {(second, first): 1 - value for (first, second), value in share.items()}
    if len(names) < 2:
        return None
    return _matrix(
        "win-matrix",
        "Row against column: share won, a tie counting half",
        names,
        names,
        lambda row, column: share.get((row, column)),
        write="{:.0%}",
        shade=lambda value: heat("div", value),
    )


def judge_agreement(found: Findings) -> Picture | None:
    """How often two judges put the same response first."""
    names = [judge.judge for judge in found.judges if judge.judged][:_MOST_CELLS]
    same = {(p.first, p.second): p.agreement.estimate for p in found.pairs}
    same |= {(second, first): value for (first, second), value in same.items()}
    if len(names) < 2:
        return None
    return _matrix(
        "judge-agreement",
        "Two judges with the same first place",
        names,
        names,
        lambda row, column: same.get((row, column)),
        write="{:.0%}",
        shade=lambda value: heat("seq", value),
    )


def criteria(scores: Scores) -> Picture | None:
    """Mean score of each candidate on the criteria that most items share."""
    if not scores.cells:
        return None
    names = scores.criteria[:_MOST_CELLS]
    cells = {(c.candidate, c.criterion): c.mean.estimate for c in scores.cells}
    candidates = list(dict.fromkeys(c.candidate for c in scores.cells))[:_MOST_ROWS]
    return _matrix(
        "criteria",
        "Mean score of the voting judges, 1 to 5",
        candidates,
        names,
        lambda row, column: cells.get((row, column)),
        write="{:.2f}",
        shade=lambda value: heat("seq", (value - 1) / 4),
    )


def _matrix(
    name: str,
    title: str,
    rows: Sequence[str],
    columns: Sequence[str],
    cell: Callable[[str, str], float | None],
    *,
    write: str,
    shade: Callable[[float], str],
) -> Picture:
    """Cells with a shade and a number; the columns are numbered, their names stand above."""
    same = rows == columns
    keys = [f"{i}" for i in range(1, len(columns) + 1)]
    legend = [] if same else [f"{k}  {clipped(c, 60)}" for k, c in zip(keys, columns, strict=True)]
    top = 24.0 + 17 * len(legend) + (8 if legend else 0)
    left = _room(rows) + (18 if same else 0)
    shapes: list[Shape] = [
        Word(0, 14 + 17 * i, text, tone="muted", size=11.5) for i, text in enumerate(legend)
    ]
    told = []
    for j, key in enumerate(keys):
        shapes.append(Word(left + _CELL * (j + 0.5), top - 7, key, "middle", "muted"))
    for i, row in enumerate(rows):
        y = top + _ROW * i
        label = f"{clipped(row, 26)}  {keys[i]}" if same else clipped(row, 26)
        shapes.append(Word(left - 10, y + 17, label, "end"))
        for j, column in enumerate(columns):
            value = cell(row, column)
            known = value is not None and not math.isnan(value)
            tone = shade(value) if known and value is not None else "none"
            shapes.append(Rect(left + _CELL * j, y, _CELL - 2, _ROW - 2, tone))
            if known:
                text = write.format(value)
                middle = left + _CELL * (j + 0.5) - 1
                shapes.append(Word(middle, y + 16, text, "middle", f"{tone}-text", 11.5))
                told.append(f"{row}, {column}: {text}")
    width = max(left + _CELL * len(columns), 460 if legend else 0)
    return Picture(name, title, "; ".join(told), width, top + _ROW * len(rows) + 4, tuple(shapes))


_PRICE: Mapping[str, tuple[str, Callable[[float], str], Callable[[Trade], float | None]]] = {
    "cost": ("Quality and cost of a response", money, lambda trade: trade.cost_usd),
    "latency": ("Quality and time of a response", seconds, lambda trade: trade.latency_s),
}


def pareto(found: Findings, price: str) -> Picture | None:
    """Points over what a response costs or how long it takes; the front is marked."""
    title, write, of = _PRICE[price]
    known = [(t, t.quality, of(t)) for t in found.trades]
    rows = [(t, q, p) for t, q, p in known if q is not None and p is not None]
    if len(rows) < 2:
        return None
    left, right, top, bottom = 52.0, _WIDTH - 170.0, 14.0, 250.0
    most = max(p for _, _, p in rows) or 1.0
    low, high = _range([q for _, q, _ in rows])

    def at(quality: float, paid: float) -> tuple[float, float]:
        return (
            left + (right - left) * paid / (most * 1.05),
            bottom - (bottom - top) * (quality - low) / (high - low),
        )

    shapes: list[Shape] = []
    for step in range(5):
        quality, paid = low + (high - low) * step / 4, most * step / 4
        (x, _), (_, y) = at(low, paid), at(quality, 0)
        shapes += [
            Line(left, y, right, y),
            Word(left - 8, y + 4, f"{quality:.0%}", "end", "muted", 11),
            Word(x, bottom + 18, write(paid), "middle", "muted", 11),
        ]
    for trade, quality, paid in rows:
        x, y = at(quality, paid)
        front = not trade.dominated_by
        shapes += [
            Dot(x, y, 6 if front else 4.5, "accent" if front else "muted"),
            Word(x + 10, y + 4, clipped(trade.candidate, 24), tone="ink" if front else "muted"),
        ]
    shapes += [
        Dot(left + 6, bottom + 42, 6), Word(left + 18, bottom + 46, "on the front", size=11.5),
        Dot(left + 126, bottom + 42, 4.5, "muted"),
        Word(left + 138, bottom + 46, "dominated", size=11.5),
    ]  # fmt: skip
    told = "; ".join(
        f"{t.candidate}: {q:.0%} of the points, {write(p)}"
        + (f", dominated by {', '.join(t.dominated_by)}" if t.dominated_by else ", on the front")
        for t, q, p in rows
    )
    return Picture(f"pareto-{price}", title, told, _WIDTH, bottom + 56, tuple(shapes))


def _range(values: Sequence[float]) -> tuple[float, float]:
    """Round bounds around values, at least a tenth apart."""
    low, high = math.floor(min(values) * 10) / 10, math.ceil(max(values) * 10) / 10
    return (low, high) if high - low > 1e-9 else (low - 0.05, high + 0.05)
