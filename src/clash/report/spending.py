"""Forecast and fact in a line, and whose reported usage is not believed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clash.report.tables import Table, money

if TYPE_CHECKING:
    from clash.analysis.findings import Findings
    from clash.analysis.spending import Spending, UsageDoubt


def line(spending: Spending) -> str | None:
    """``Cost $0.12 (expected $0.10, at most $0.31)``; null where nothing was to be paid."""
    unknown = spending.bound_usd > spending.cost_usd
    cost = f"{money(spending.cost_usd)} to {money(spending.bound_usd)}"
    text = f"Cost {cost if unknown else money(spending.cost_usd)}"
    if spending.expected_usd is None:
        return text if spending.bound_usd else None
    if not (spending.bound_usd or spending.worst_usd):
        return None
    return f"{text} (expected {money(spending.expected_usd)}, at most {money(spending.worst_usd)})"


def doubted(doubt: UsageDoubt) -> str:
    """Whose usage is not believed, why, and what counts in its place."""
    calls = "1 call reports" if doubt.calls == 1 else f"{doubt.calls} calls report"
    return (
        f"{doubt.model}: {calls} usage that is impossible ({doubt.example}). Its cost is unknown and"
        f" left out of the total; at list prices it is at most {money(doubt.bound_usd)}."
        " Check the provider's invoice"
    )


def table(found: Findings) -> Table | None:
    """Forecast and fact, for the whole report."""
    spending = found.spending
    rows = [["cost", text]] if (text := line(spending)) is not None else []
    if spending.warning is not None:
        rows.append(["warning", spending.warning])
    rows += [["warning", doubted(doubt)] for doubt in found.usage_doubts]
    return Table("Cost: forecast and fact", ["", ""], rows) if rows else None
