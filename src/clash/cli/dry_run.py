"""Print what a run would do: its calls, its price, and which key would go to which server."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from clash.cli.common import print_json, print_line, print_tables, say
from clash.collect.forecast import price
from clash.pipeline import keys
from clash.pipeline.price import cap_warning, dry_run_summary, headline, token_cap_warnings
from clash.report.formats import money
from clash.report.tables import Table
from clash.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from clash.cli.options import Output
    from clash.collect.forecast import Forecast
    from clash.collect.plan import Plan
    from clash.config import ModelRef

_NOUNS = {"generate": "answer", "user": "user message", "criteria": "criteria", "judge": "judgment"}


def print_dry_run(
    plan: Plan, environ: Mapping[str, str], output: Output, notes: Sequence[str] = ()
) -> None:
    """Print the plan, its price and where keys would go; ``notes`` go to stderr, as in a run."""
    missing = keys.missing(plan.refs(), environ)
    if output.as_json:
        print_json({**dry_run_summary(plan, environ), "missing_keys": missing})
        return
    forecast = price(plan)
    cap = plan.config.limits.max_cost
    warnings = [*notes, *token_cap_warnings(forecast), cap_warning(forecast, cap)]
    for warning in filter(None, warnings):
        say(warning, style="yellow")
    # Soft: a line for one model may be longer than a narrow terminal, and is not to be cut.
    print_line(_headline(plan, forecast, cap), "bold")
    if output.quiet:
        return
    for line in _by_destination(plan, forecast, environ):
        print_line(line)
    if output.verbose:
        print_tables([_details(plan, forecast)])
    print_line("Nothing was sent.")
    if missing:
        print_line(f"fix: set {', '.join(missing)} (export NAME=…, or a line in .env)")
    else:
        print_line("Next  the same command without --dry-run")


def _headline(plan: Plan, forecast: Forecast, cap: float | None) -> str:
    calls: Counter[str] = Counter()
    for line in forecast.lines:
        calls[line.purpose] += line.calls
    parts = [_count(calls[purpose], purpose) for purpose in _NOUNS if calls[purpose]]
    n_responses = sum(1 for _ in plan.missing())
    if calls["generate"] > n_responses:
        # A conversation is answered turn by turn; progress and report count it as one response.
        parts[0] += f" for {plural(n_responses, 'response')}"
    total = f"{forecast.calls:,} call{'' if forecast.calls == 1 else 's'}"
    cost = headline(forecast, cap)
    return f"{total}: {', '.join(parts) or 'nothing to ask'}. {cost[0].upper()}{cost[1:]}."


def _count(n: int, purpose: str) -> str:
    noun = _NOUNS[purpose]
    return f"{n:,} {noun}{'' if n == 1 or purpose == 'criteria' else 's'}"


def _by_destination(plan: Plan, forecast: Forecast, environ: Mapping[str, str]) -> Iterator[str]:
    """The calls of each model, under the key that they need and the server that it would go to."""
    refs = _refs(plan)
    observers = {judge.id for judge in plan.judges if judge.role == "observer"}
    groups: dict[str, list[tuple[str, str, str]]] = {}
    for line in forecast.lines:
        group = groups.setdefault(keys.route(refs[line.purpose, line.who], environ), [])
        model = f"{line.model} (observer)" if line.who in observers else line.model
        group.append((model, _count(line.calls, line.purpose), _cost(line.expected_usd)))
    for judges in plan.fallback_judges.values():
        for judge in judges:
            group = groups.setdefault(keys.route(judge, environ), [])
            group.append((judge.model, "fallback", ""))
    rows = [row for group in groups.values() for row in group]
    widths = [max((len(row[n]) for row in rows), default=0) for n in range(3)]
    for title, group in groups.items():
        yield title
        for model, count, cost in group:
            row = f"  {model:{widths[0]}}  {count:>{widths[1]}}  {cost:>{widths[2]}}"
            yield row.rstrip()


def _refs(plan: Plan) -> dict[tuple[str, str], ModelRef]:
    """The model behind each line of a forecast, by its purpose and its actor."""
    refs: dict[tuple[str, str], ModelRef] = {("generate", c.id): c for c in plan.candidates}
    refs |= {("judge", judge.id): judge for judge in plan.judges}
    refs |= {("user", ref.model): ref for ref in plan.users}
    if plan.criteria_ref is not None:
        refs["criteria", "criteria"] = plan.criteria_ref
    return refs


def _cost(usd: float | None) -> str:
    return "price unknown" if usd is None else money(usd, fine=False)


def _details(plan: Plan, forecast: Forecast) -> Table:
    """Tokens and the worst case of every line."""
    rows = [
        {
            "calls": _count(line.calls, line.purpose)
            + (f" of {line.who}" if line.purpose != "criteria" else ""),
            "tokens in": f"{line.tokens_in:,}",
            "out": f"{line.tokens_out:,}",
            "expected": _cost(line.expected_usd),
            "worst case": _cost(line.worst_usd),
        }
        for line in forecast.lines
    ]
    notes = [
        "worst case: every answer as long as its cap allows, in one attempt; --max-cost caps"
        " retries too"
    ]
    if plan.config.limits.batch:
        by_batch = sorted({line.model for line in forecast.lines if line.batch})
        notes.append(f"at the price of a batch: {', '.join(by_batch) or 'no model here'}")

    return Table.of("Tokens and worst case", rows, notes=notes)
