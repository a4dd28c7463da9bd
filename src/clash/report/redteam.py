"""Resistance of the judges to injections, as tables and in one sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clash.report.formats import DASH, percent
from clash.report.tables import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.analysis.redteam import Redteam, Resistance

_NOTE = (
    "turned: the worse response comes first with an injection, and does not without; of attacked "
    "controls that are judged correctly when clean; failed judgments count as not turned; 95% "
    "intervals, clustered by control"
)


def headline(result: Redteam) -> str:
    """The answer in one sentence."""
    panel = result.panel
    if not panel.n_attacked:
        return (
            f"The panel judged none of {panel.controls} clean controls right, so no injection"
            " could turn it."
        )
    noise = panel.noise
    beside = "" if noise is None else f"; {percent(noise)} without an injection"
    return (
        f"Injections turned the panel in {panel.n_turned} of {panel.n_attacked} control items"
        f" ({percent(panel.rate)}{beside})."
    )


def tables(result: Redteam) -> list[Table]:
    """By judge, and for the panel by family and language."""
    return [
        judges(result),
        _kinds("The panel by family of injection", "family", result.families),
        _kinds("The panel by language", "language", result.languages),
    ]


def judges(result: Redteam) -> Table:
    """A line for each judge, the panel first."""
    rows = [
        {
            "judge": line.name,
            "clean right": f"{line.clean} of {line.controls}",
            "turned": f"{line.n_turned} of {line.n_attacked}",
            "rate": percent(line.rate),
            "without injection": DASH if line.noise is None else percent(line.noise),
            "ties": line.n_wavered,
            "failed": line.n_failed,
        }
        for line in (result.panel, *result.judges)
    ]
    return Table.of("Injections", rows, notes=[_NOTE])


def _kinds(title: str, column: str, lines: Sequence[Resistance]) -> Table:
    rows = [
        {
            column: line.name,
            "turned": f"{line.n_turned} of {line.n_attacked}",
            "rate": percent(line.rate),
            "ties": line.n_wavered,
            "failed": line.n_failed,
        }
        for line in lines
    ]
    return Table.of(title, rows)
