"""What a run cost and how long it took: against its forecast, by candidate, by model called."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clash.report.formats import DASH, counts, money, seconds
from clash.report.tables import Table

if TYPE_CHECKING:
    from clash.analysis.findings import Findings
    from clash.analysis.spending import Spending, UsageDoubt


def cost_line(spending: Spending) -> str | None:
    """``Cost $0.12 (expected $0.10, at most $0.31)``; null where nothing was to be paid."""
    unknown = spending.bound_usd > spending.cost_usd
    cost = f"{money(spending.cost_usd)} to {money(spending.bound_usd)}"
    text = f"Cost {cost if unknown else money(spending.cost_usd)}"
    if spending.expected_usd is None:
        return text if spending.bound_usd else None
    if not (spending.bound_usd or spending.worst_usd):
        return None
    return f"{text} (expected {money(spending.expected_usd)}, at most {money(spending.worst_usd)})"


def usage_warning(doubt: UsageDoubt) -> str:
    """Which model's reported usage is impossible, why, and what its calls cost at most."""
    calls = "1 call reports" if doubt.calls == 1 else f"{doubt.calls} calls report"
    return (
        f"{doubt.model}: {calls} usage that is impossible ({doubt.example}). Its cost is unknown "
        "and"
        f" left out of the total; at list prices it is at most {money(doubt.bound_usd)}."
        " Check the provider's invoice"
    )


def forecast(findings: Findings) -> Table | None:
    """The cost beside its forecast, and warnings about both."""
    spending = findings.spending
    line = cost_line(spending)
    rows = [["cost", line]] if line is not None else []
    if spending.warning is not None:
        rows.append(["warning", spending.warning])
    rows += [["warning", usage_warning(doubt)] for doubt in findings.usage_doubts]
    return Table("Cost: forecast and actual", ["", ""], rows) if rows else None


def trade_offs(findings: Findings) -> Table | None:
    """Win rate, cost and time of each candidate, and which candidates are better in all three."""
    if all(trade.cost_usd is None and trade.latency_s is None for trade in findings.trades):
        return None
    rows = [
        [
            trade.candidate,
            DASH if trade.quality is None else f"{trade.quality:.0%}",
            money(trade.cost_usd),
            seconds(trade.latency_s),
            seconds(trade.ttft_s),
            ", ".join(trade.dominated_by) or "nobody: on the front",
        ]
        for trade in findings.trades
    ]
    return Table(
        "Quality, cost and speed",
        [
            "candidate",
            "win rate",
            "cost per response",
            "median time",
            "first token",
            "dominated by",
        ],
        rows,
        frozenset({1, 2, 3, 4}),
    )


def calls(findings: Findings) -> Table:
    """Calls, cost, tokens and latency by purpose and model."""
    rows = [
        [
            line.purpose,
            line.name,
            str(line.calls),
            str(line.attempts),
            ("" if line.exact else "≥ ") + money(line.cost_usd),
            f"{line.tokens_in:,}",
            f"{line.tokens_out:,}",
            seconds(line.latency_median_s),
            seconds(line.latency_p90_s),
            counts(line.errors),
        ]
        for line in findings.economies
    ]
    bound = " at least: some prices or counts are unknown" if findings.cost_is_lower_bound else ""
    return Table(
        f"Calls ({money(findings.cost_usd)}{bound})",
        [
            "purpose",
            "model or judge",
            "answered",
            "attempts",
            "cost",
            "tokens in",
            "out",
            "median",
            "p90",
            "errors",
        ],
        rows,
        frozenset({2, 3, 4, 5, 6, 7, 8}),
        optional=(3, 8, 6, 5),
    )
