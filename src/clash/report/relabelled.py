"""What a review changed, as a table of words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clash.report.tables import NONE, Table, percent

if TYPE_CHECKING:
    from collections.abc import Callable

    from clash.analysis.labelled import Labelled
    from clash.analysis.relabelled import Changed
    from clash.stats.intervals import Interval


def table(found: Changed, run: str) -> Table:
    """Before and after, and what to do next."""

    def cell(known: Labelled | None, part: Callable[[Labelled], Interval | None]) -> str:
        return NONE if known is None else percent(part(known))

    parts: list[tuple[str, Callable[[Labelled], Interval | None]]] = [
        ("concordance with the labels", lambda known: known.concordance),
        ("  where unanimous", lambda known: known.unanimous),
        ("  where not", lambda known: known.split),
    ]
    rows = [["labelled items", *(str(k.n) if k else "0" for k in (found.before, found.after))]]
    rows += [[name, cell(found.before, part), cell(found.after, part)] for name, part in parts]
    if found.people is not None:
        rows.append(["two people say the same", "", percent(found.people)])
    return Table(
        f"Review: {found.written} decisions written",
        ["", "before", "now"],
        rows,
        frozenset({1, 2}),
        list(_next(found, run)),
    )


def lines(found: Changed, run: str) -> list[str]:
    """The same in words, for the page."""
    made = table(found, run)
    rows = [f"{row[0].strip()}: {row[2]} (before: {row[1] or NONE})" for row in made.rows]
    return [made.title, *rows, *made.notes]


def _next(found: Changed, run: str) -> list[str]:
    notes = []
    if found.more:
        notes.append(
            f"about {found.more} more labels would bring the interval to 5 points each side"
        )
    if found.calibrates:
        notes.append(f"`clash calibrate {run}` fits panel and weights on these labels")
    else:
        notes.append("from 20 labels on, `clash calibrate` fits panel and weights on them")
    notes.append("items that need a person are harder than the rest: --sample N measures all")
    return notes
