"""Sub-panels: does adding a judge pay?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from clash.report.formats import bounds, p_value, points
from clash.report.tables import CLUSTERED, MOST_ROWS, Table

if TYPE_CHECKING:
    from clash.analysis.subpanels import SubPanels


def sizes(subpanels: SubPanels | None) -> Table:
    """What each further judge adds."""
    rows = [
        [
            str(size.size),
            str(size.tried) if size.tried == size.possible else f"{size.tried} of {size.possible}",
            f"{size.mean:.1%}",
            f"{size.best.concordance.estimate:.1%} {', '.join(size.best.judges)}",
            f"{size.worst.concordance.estimate:.1%} {', '.join(size.worst.judges)}",
            points(size.gain),
            p_value(size.test),
        ]
        for size in (subpanels.sizes if subpanels else [])
    ]
    return Table(
        "Does adding a judge pay?",
        ["judges", "panels", "mean", "best", "worst", "gain over one fewer", "p"],
        rows,
        frozenset({0, 1, 2, 5, 6}),
        [
            "mean over all panels of a size; a tied verdict is a miss, so even sizes fall behind;"
            " the best of many is partly luck"
        ],
    )


def subpanels(subpanels: SubPanels | None) -> Table:
    """Every sub-panel, the best first."""
    panels = list(subpanels.panels) if subpanels else []
    ranking = sorted(panels, key=lambda p: (-p.concordance.estimate, len(p.judges), p.judges))
    rows = [
        [
            ", ".join(panel.judges),
            str(len(panel.judges)),
            f"{panel.concordance.estimate:.1%}",
            bounds(panel.concordance),
            str(panel.tied),
            str(panel.undecided),
        ]
        for panel in ranking[:MOST_ROWS]
    ]
    more = len(panels) - MOST_ROWS
    return Table(
        "Every sub-panel",
        ["judges", "size", "concordance", CLUSTERED, "tied", "no verdict"],
        rows,
        frozenset({1, 2, 3, 4, 5}),
        [f"{more} more in report.json"] if more > 0 else [],
    )
