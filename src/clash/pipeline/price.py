"""The price of a run, and the consent to it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from clash.collect.forecast import price
from clash.errors import ConfigError
from clash.pipeline import keys
from clash.report.formats import money

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clash.collect.forecast import Forecast
    from clash.collect.plan import Plan
    from clash.config import Limits
    from clash.pipeline.options import Observer

ASK_ABOVE_USD = 1.0
"""A run that may cost more is not begun before a person agreed, unless it has a cap."""


def dry_run_summary(plan: Plan, environ: Mapping[str, str]) -> dict[str, Any]:
    """The plan, its price and where keys would go: the JSON of ``--dry-run``."""
    forecast = price(plan)
    return {
        "dry_run": True,
        "items": len(plan.items),
        **({} if plan.shard is None else {"shard": f"{plan.shard.number}/{plan.shard.of}"}),
        **forecast.summary(),
        "cap_usd": plan.config.limits.max_cost,
        "plan": [asdict(line) for line in forecast.lines],
        "destinations": [asdict(d) for d in keys.destinations(plan.refs(), environ)],
    }


def token_cap_warnings(forecast: Forecast) -> list[str]:
    """Judges whose cap on tokens has no room for a typical answer."""
    return [
        f"{line.who}: max_tokens is too low for {line.cut} of {line.calls} judgments, whose "
        f"answers will be cut off and paid for twice; fix: options: {{max_tokens: {line.needs}}}"
        for line in forecast.lines
        if line.cut
    ]


def cap_warning(forecast: Forecast, cap: float | None) -> str | None:
    """What a cap below the expected price means; null where it is not below."""
    if cap is None or forecast.expected_usd <= cap:
        return None
    return (
        f"--max-cost {cap:g} is below the expected {money(forecast.expected_usd)}: the run will "
        "probably stop before the end; `clash resume` with a higher cap goes on"
    )


def headline(forecast: Forecast, cap: float | None = None) -> str:
    """Expected price, worst price under the cap, and the models whose price is unknown."""
    worst = money(forecast.worst_usd)
    if cap is not None and cap < forecast.worst_usd:
        worst = f"{money(cap)} (the cap; {worst} without)"
    text = f"expected {money(forecast.expected_usd)}, at most {worst}"
    if forecast.unknown:
        text += f", without {', '.join(forecast.unknown)}: price unknown"
    return text


def approve(forecast: Forecast, plan: Plan, observer: Observer, *, yes: bool) -> None:
    """State the price, refuse a cap that cannot hold, and ask for consent where the price is high.

    Raises:
        ConfigError: there is a cap, and a price is unknown, so that the cap would mean nothing;
            or the person declined.
    """
    limits = plan.config.limits
    check_cap(forecast.unknown, limits)
    for warning in token_cap_warnings(forecast):
        observer.note(f"warning: {warning}", "warning")
    if forecast.worst_usd == 0 and not forecast.unknown:
        return
    observer.note(f"{forecast.calls:,} calls: {headline(forecast, limits.max_cost)}", "detail")
    if (below := cap_warning(forecast, limits.max_cost)) is not None:
        observer.note(f"warning: {below}", "warning")
    if forecast.unknown:
        observer.note(
            f"price unknown: {', '.join(forecast.unknown)}; costs are lower bounds", "warning"
        )
    is_dear = forecast.worst_usd > ASK_ABOVE_USD or bool(forecast.unknown)
    needs_consent = is_dear and limits.max_cost is None and not yes
    if needs_consent and observer.confirm("Spend that?") is False:
        raise ConfigError("not confirmed; nothing was spent", field="--yes")


def check_cap(unknown: Sequence[str], limits: Limits) -> None:
    """Refuse a cap that cannot hold.

    Raises:
        ConfigError: there is a cap, and the price of some model is unknown.
    """
    if unknown and limits.max_cost is not None and not limits.allow_unknown_price:
        raise ConfigError(
            f"the price of {', '.join(unknown)} is unknown, so --max-cost cannot be guaranteed",
            field="limits.max_cost",
            hint="give `price: {input: …, output: …}` (dollars per million tokens) for the model,"
            " or --allow-unknown-price to leave it out of the cap",
        )
