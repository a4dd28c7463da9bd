"""What a run cost and how long it took: against its forecast, by candidate, by model called."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clash.report.formats import counts, money, number, seconds
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
        {
            "candidate": trade.candidate,
            "win rate": number(trade.quality, ".0%"),
            "cost per response": money(trade.cost_usd),
            "median time": seconds(trade.latency_s),
            "first token": seconds(trade.ttft_s),
            "dominated by": ", ".join(trade.dominated_by) or "nobody: on the front",
        }
        for trade in findings.trades
    ]
    return Table.of("Quality, cost and speed", rows, text=("dominated by",))


def calls(findings: Findings) -> Table:
    """Calls, cost, tokens and latency by purpose and model."""
    rows = [
        {
            "purpose": line.purpose,
            "model or judge": line.name,
            "answered": line.calls,
            "attempts": line.attempts,
            "cost": ("" if line.exact else "≥ ") + money(line.cost_usd),
            "tokens in": f"{line.tokens_in:,}",
            "out": f"{line.tokens_out:,}",
            "median": seconds(line.latency_median_s),
            "p90": seconds(line.latency_p90_s),
            "errors": counts(line.errors),
        }
        for line in findings.economies
    ]
    bound = " at least: some prices or counts are unknown" if findings.cost_is_lower_bound else ""
    return Table.of(
        f"Calls ({money(findings.cost_usd)}{bound})",
        rows,
        text=("model or judge", "errors"),
        optional=("attempts", "p90", "out", "tokens in"),
    )
