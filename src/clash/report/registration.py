"""A run beside its registered plan, as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clash.report.formats import percent
from clash.report.tables import Table
from clash.wording import plural

if TYPE_CHECKING:
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
    n = len(rows)
    title = f"Registration: {plural(n, 'deviation')}" if n else "Registration: kept"
    return Table(
        title,
        ["what", "registered", "done"],
        rows or [["everything", "as registered", "as registered"]],
        notes=notes,
        brief=True,
    )


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
