"""What a run will cost, told and agreed to before it begins."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from clash.cli.common import person_here, print_json, say, stdout
from clash.errors import ConfigError
from clash.pipeline import keys
from clash.report.formats import money
from clash.report.tables import Table
from clash.report.terminal import print_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clash.collect.forecast import Forecast
    from clash.collect.plan import Plan
    from clash.config import Limits

ASK_ABOVE_USD = 1.0


def tell(forecast: Forecast, plan: Plan, environ: Mapping[str, str], *, as_json: bool) -> None:
    """Print the plan, its price and where keys would go: what ``--dry-run`` does."""
    refs = list(plan.refs())
    if as_json:
        print_json(
            {
                "dry_run": True,
                "items": len(plan.items),
                **forecast.summary(),
                "plan": [asdict(line) for line in forecast.lines],
                "destinations": [asdict(where) for where in keys.destinations(refs, environ)],
            }
        )
        return
    columns = ["purpose", "who", "model", "calls", "tokens in", "out", "expected", "worst case"]
    rows = [
        [
            line.purpose,
            line.who,
            line.model,
            f"{line.calls:,}",
            f"{line.tokens_in:,}",
            f"{line.tokens_out:,}",
            money(line.expected_usd),
            money(line.worst_usd),
        ]
        for line in forecast.lines
    ]
    notes = [
        "worst case: every answer as long as its cap allows, in one attempt; --max-cost caps"
        " retries too"
    ]
    if plan.config.limits.batch:
        by_batch = sorted({line.model for line in forecast.lines if line.batch})
        notes.append(f"at the price of a batch: {', '.join(by_batch) or 'no model here'}")
    notes += _cut(forecast)
    title = f"{len(plan.items)} items, {forecast.calls:,} calls: {headline(forecast)}"
    print_table(stdout(), Table(title, columns, rows, frozenset({3, 4, 5, 6, 7}), notes))
    for line in keys.lines(refs, environ):
        stdout().print(line, soft_wrap=True, markup=False)
    stdout().print("dry run: no call was made")


def _cut(forecast: Forecast) -> list[str]:
    """Judges whose cap has no room for a typical answer."""
    return [
        f"{line.who}: max_tokens is too low for {line.cut} of {line.calls} judgments, whose answers will"
        f" be cut off and bought twice; fix: options: {{max_tokens: {line.needs}}}"
        for line in forecast.lines
        if line.cut
    ]


def headline(forecast: Forecast) -> str:
    """Expected and worst, and what is not known."""
    text = f"expected {money(forecast.expected_usd)}, at most {money(forecast.worst_usd)}"
    if forecast.unknown:
        text += f", without {', '.join(forecast.unknown)}: price unknown"
    return text


def check(forecast: Forecast, plan: Plan, *, yes: bool, quiet: bool) -> None:
    """Say what it will cost; refuse what cannot be capped; ask a person where it is much.

    Raises:
        ConfigError: there is a cap, and a price is unknown, so the cap would mean nothing.
        ConfigError: … or the person said no.
    """
    limits = plan.config.limits
    check_cap(forecast.unknown, limits)
    for warning in _cut(forecast):
        say(f"warning: {warning}", style="bold yellow")
    if forecast.worst_usd == 0 and not forecast.unknown:
        return
    if not quiet:
        say(f"{forecast.calls:,} calls: {headline(forecast)}", style="")
    if forecast.unknown:
        say(
            f"price unknown: {', '.join(forecast.unknown)}; costs are lower bounds",
            style="bold yellow",
        )
    dear = forecast.worst_usd > ASK_ABOVE_USD or bool(forecast.unknown)
    if dear and limits.max_cost is None and not yes and person_here():
        _ask()


def _ask() -> None:
    try:
        agreed = typer.confirm("Spend that?", err=True)
    except typer.Abort:
        raise KeyboardInterrupt from None
    if not agreed:
        raise ConfigError("not agreed to, so nothing was spent", field="--yes")


def check_cap(unknown: Sequence[str], limits: Limits) -> None:
    """Refuse a cap that cannot hold.

    Raises:
        ConfigError: there is a cap, and the price of some model is unknown.
    """
    if unknown and limits.max_cost is not None and not limits.allow_unknown_price:
        raise ConfigError(
            f"the price of {', '.join(unknown)} is unknown, so --max-cost cannot hold",
            field="limits.max_cost",
            hint="give `price: {input: …, output: …}` (dollars per million tokens) for the model,"
            " or --allow-unknown-price to leave it out of the cap",
        )
