"""A run beside its registered plan, as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clash.report.formats import percent
from clash.report.tables import Table
from clash.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clash.analysis.prereg import Conformity
    from clash.analysis.registered import Primary


def table(conformity: Conformity | None) -> Table | None:
    """Every deviation from the plan; one row, ``as registered``, where there is none."""
    if conformity is None:
        return None
    rows = [[d.aspect, d.plan, d.actual] for d in conformity.deviations]
    plan = conformity.plan
    notes = [
        f"registered {conformity.frozen_at}: {plan['outcome']}"
        f"{' of ' + plan['primary'] if plan['primary'] else ''}, {100 * plan['effect']:g} points,"
        f" alpha {plan['alpha']:g}, power {plan['power']:.0%}, {plan['items']} prompts, clustered by"
        f" {plan['clustering']}, stopping: {conformity.stopping}",
        f"sha256 of the plan: {conformity.sha256}",
        *([_primary(conformity.primary)] if conformity.primary is not None else []),
    ]
    return Table(
        f"Registration: {_conformity_text(conformity)}",
        ["what", "registered", "done"],
        rows or [["everything", "as registered", "as registered"]],
        notes=notes,
        brief=True,
    )


def facts(conformity: Conformity) -> Iterator[tuple[str, str]]:
    """What a screen says of the plan: whether it was kept, and the outcome that was registered."""
    deviations = ", ".join(d.aspect for d in conformity.deviations)
    yield "Registration", _conformity_text(conformity) + (f" ({deviations})" if deviations else "")
    if (primary := conformity.primary) is not None:
        of = f" of {primary.candidate}" if primary.candidate else ""
        rate = f"{percent(primary.interval)}, {primary.interval.level:.0%} interval"
        yield "Primary outcome", f"{primary.outcome}{of} {rate}"


def _conformity_text(conformity: Conformity) -> str:
    n = len(conformity.deviations)
    return plural(n, "deviation") if n else "kept"


def _primary(primary: Primary) -> str:
    interval = primary.interval
    of = f" of {primary.candidate}" if primary.candidate else ""
    text = (
        f"primary outcome, {primary.outcome}{of}: {percent(interval, digits=1)} at"
        f" {interval.level:.0%} ({interval.method})"
    )
    if primary.even is None:
        return text
    outcome = "ruled out" if interval.excludes(primary.even) else "not ruled out"
    return f"{text}; no difference ({primary.even:.0%}) is {outcome}"
