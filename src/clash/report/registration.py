"""A run against its registration, as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clash.report.formats import percent
from clash.report.tables import Table

if TYPE_CHECKING:
    from clash.analysis.prereg import Conformity
    from clash.analysis.registered import Primary


def table(found: Conformity | None) -> Table | None:
    """Every deviation; one row that says so where there is none."""
    if found is None:
        return None
    rows = [[d.what, d.planned, d.done] for d in found.deviations]
    plan = found.plan
    notes = [
        f"registered {found.frozen}: {plan['outcome']}"
        f"{' of ' + plan['primary'] if plan['primary'] else ''}, {100 * plan['effect']:g} points,"
        f" alpha {plan['alpha']:g}, power {plan['power']:.0%}, {plan['items']} prompts, clustered by"
        f" {plan['clustering']}, stopping: {found.stopping}",
        f"sha256 of the plan: {found.sha256}",
        *([_primary(found.primary)] if found.primary is not None else []),
    ]
    n = len(rows)
    title = f"Registration: {n} deviation{'s' if n != 1 else ''}" if n else "Registration: kept"
    return Table(
        title,
        ["what", "registered", "done"],
        rows or [["everything", "as registered", "as registered"]],
        notes=notes,
        brief=True,
    )


def _primary(found: Primary) -> str:
    interval = found.interval
    of = f" of {found.candidate}" if found.candidate else ""
    said = (
        f"primary outcome, {found.outcome}{of}: {percent(interval, digits=1)} at"
        f" {interval.level:.0%} ({interval.method})"
    )
    if found.even is None:
        return said
    ruled = "ruled out" if interval.excludes(found.even) else "not ruled out"
    return f"{said}; no difference ({found.even:.0%}) is {ruled}"
