"""A gate's outcome as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clash.report.tables import NONE, Table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clash.analysis.figures import Figure
    from clash.analysis.gate import Checked

_SIGN = {"min": "≥", "max": "≤", "max-drop": "falls ≤", "max-rise": "rises ≤"}


def table(run: str, found: Sequence[Checked]) -> Table:
    """A row for each rule."""
    failed = sum(not line.passed for line in found)
    word = "passed" if not failed else f"failed: {failed} of {len(found)} rules"
    return Table(
        f"Gate on {run}: {word}",
        ["", "figure", "rule", "value", "95% interval", "tested", ""],
        [
            [
                "pass" if line.passed else "FAIL",
                line.rule.figure,
                f"{_SIGN[line.rule.way]} {line.rule.limit:g}",
                number(line.value),
                NONE if line.low is None else f"[{number(line.low)}, {number(line.high)}]",
                number(line.tested),
                line.how,
            ]
            for line in found
        ],
        frozenset({3, 4, 5}),
        [
            "an estimate passes when the bound of its interval does, unless --on point was asked for",
            *(line.message for line in found if line.value is None),
        ],
    )


def listing(found: Mapping[str, Figure]) -> Table:
    """Every figure that a rule may name."""
    return Table(
        f"Figures ({len(found)})",
        ["figure", "value", "95% interval"],
        [
            [
                name,
                number(figure.value),
                NONE if figure.low is None else f"[{number(figure.low)}, {number(figure.high)}]",
            ]
            for name, figure in found.items()
        ],
        frozenset({1, 2}),
    )


def number(value: float | None) -> str:
    """Four digits are enough."""
    return NONE if value is None else f"{value:.4g}"
