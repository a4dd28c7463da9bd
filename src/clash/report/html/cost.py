"""What does it cost? The candidates by price and win rate, or the judges by price and agreement."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING

from clash.analysis.pareto import front
from clash.pages import BarRow, ScatterPoint, bar_chart, scatter_chart, share_axis
from clash.pages.scatter import price_axis
from clash.report.formats import money
from clash.report.html.blocks import PageFigure, Question
from clash.report.html.words import listing, share_row

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.analysis.findings import Findings
    from clash.analysis.pareto import Trade
    from clash.pages.charts import Tone
    from clash.stats.intervals import Interval

_THOUSAND = 1000
_FEW_POINTS = 1


def cost(findings: Findings, rates: dict[str, Interval]) -> Question:
    """The section.

    Args:
        findings: the report.
        rates: win rate by candidate.
    """
    trades = [t for t in findings.trades if t.cost_usd is not None and t.candidate in rates]
    spending = _spending(findings)
    if len(trades) > 1 and any(trade.cost_usd for trade in trades):
        answer, figure = _trade_off(findings, trades, rates), _candidates(findings, trades, rates)
    else:
        answer, figure = _only_judges(findings), _judges(findings)
    return Question("cost", "What does it cost?", "Cost", answer, spending, figure)


def _spending(findings: Findings) -> str:
    if not findings.cost_usd:
        return ""
    by_name = _by_name(findings)
    parts = [f"{name} {money(usd)}" for name, usd in by_name[:6] if usd]
    least = "at least " if findings.cost_is_lower_bound else ""
    return f"This run: {least}{money(findings.cost_usd)}. {', '.join(parts)}."


def _by_name(findings: Findings) -> list[tuple[str, float]]:
    costs: dict[str, float] = defaultdict(float)
    for line in findings.economies:
        costs[line.name] += line.cost_usd or 0.0
    return sorted(costs.items(), key=lambda pair: -pair[1])


def _trade_off(findings: Findings, trades: Sequence[Trade], rates: dict[str, Interval]) -> str:
    """What the first candidate costs beside the cheapest, who is beaten, and how to choose."""
    first = next((t for t in trades if t.candidate == findings.decision.winner), trades[0])
    cheapest = min(trades, key=_price)
    sentences = []
    if first is cheapest:
        sentences.append(f"{first.candidate} is also the cheapest.")
    elif _price(cheapest) == 0:
        sentences.append(f"{cheapest.candidate} is free; {first.candidate} costs"
                         f" {money(_price(first) * _THOUSAND)} for 1,000 responses.")  # fmt: skip
    else:
        gap = round(100 * (rates[first.candidate].estimate - rates[cheapest.candidate].estimate))
        gain = f"for {gap} points more" if gap > _FEW_POINTS else "for about the same win rate"
        ratio = _times(_price(first) / _price(cheapest))
        sentences.append(f"{first.candidate} costs {ratio} {cheapest.candidate} {gain}.")
    on_front = _front(trades, rates)
    beaten = [t.candidate for t in trades if t.candidate not in on_front]
    if beaten:
        sentences.append(f"{listing(beaten)} {'is' if len(beaten) == 1 else 'are'} no better than a"
                         " candidate that costs no more.")  # fmt: skip
    sentences.append(f"For the best one within a price or a time: `clash choose {findings.run}`.")
    return " ".join(sentences)


def _front(trades: Sequence[Trade], rates: dict[str, Interval]) -> set[str]:
    """The candidates on the front of win rate and price, the two scales of the picture."""
    return front({t.candidate: (rates[t.candidate].estimate, _price(t)) for t in trades})


def _price(trade: Trade) -> float:
    return trade.cost_usd or 0.0


def _times(ratio: float) -> str:
    if ratio < 1.15:
        return "about as much as"
    return f"{ratio:.0f} times as much as" if ratio >= 2.95 else f"{ratio:.1f} times as much as"


def _candidates(
    findings: Findings, trades: Sequence[Trade], rates: dict[str, Interval]
) -> PageFigure | None:
    winner = findings.decision.winner
    if all(_price(trade) > 0 for trade in trades):
        on_front = _front(trades, rates)
        points = [_point(trade, rates[trade.candidate], winner, on_front) for trade in trades]
        rows = [share_row(t.candidate, rates[t.candidate]) for t in trades]
        across = price_axis([_price(trade) * _THOUSAND for trade in trades])
        chart = scatter_chart(
            points,
            across,
            share_axis(rows),
            label="Win rate by price: " + "; ".join(f"{p.name} {p.caption}" for p in points),
            title="Price of 1,000 responses",
        )
        if chart is not None:
            return PageFigure("Win rate by price", chart, "Dashed: the Pareto front.")
    by_price = sorted(trades, key=_price)
    bars = [
        BarRow(
            trade.candidate,
            _price(trade),
            money(_price(trade) * _THOUSAND),
            f"{rates[trade.candidate].estimate:.0%} win rate",
            "accent" if trade.candidate == winner else "plain",
        )
        for trade in by_price
    ]
    return PageFigure("Price of 1,000 responses", bar_chart(bars, label="Price of 1,000 responses"))


def _point(trade: Trade, rate: Interval, winner: str | None, on_front: set[str]) -> ScatterPoint:
    price = _price(trade) * _THOUSAND
    tone: Tone = "accent" if trade.candidate == winner else "plain"
    return ScatterPoint(
        trade.candidate,
        money(price),
        math.log10(price),
        rate.estimate,
        rate.low,
        rate.high,
        front=trade.candidate in on_front,
        tone=tone,
    )


def _only_judges(findings: Findings) -> str:
    origin = "The responses were given, so the candidates have no price here."
    if not findings.cost_usd:
        return f"Nothing. No judge of this run costs money. {origin}"
    items = max(findings.coverage.items, 1)
    price = money(_THOUSAND * findings.cost_usd / items)
    return f"Judging 1,000 prompts costs {price}. {origin}"


def _judges(findings: Findings) -> PageFigure | None:
    """What each judge costs, with its agreement with people where that is known."""
    people = findings.concordance
    agree = {} if people is None else {line.name: line.estimate for line in people.methods}
    items = max(findings.coverage.items, 1)
    costs = [
        (line.name, (line.cost_usd or 0.0) * _THOUSAND / items)
        for line in findings.economies
        if line.purpose == "judge"
    ]
    if sum(usd > 0 for _, usd in costs) < 2:
        return None
    rows = [
        BarRow(
            name,
            usd,
            money(usd),
            f"{agree[name]:.0%} agreement with people" if name in agree else "",
        )
        for name, usd in sorted(costs, key=lambda pair: pair[1])
    ]
    return PageFigure("Price of judging 1,000 prompts", bar_chart(rows, label="Price by judge"))
