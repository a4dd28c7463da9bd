"""Published figures beside those that follow from the records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clash.report.tables import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.analysis.figures import Claim


def claims_table(claims: Sequence[Claim]) -> Table:
    """A row for each figure: where it stands, what it says, what follows from the records."""
    rows = [
        {
            "where": claim.table,
            "what": claim.says,
            "published": value(claim.published_value, claim.digits),
            "ours": "cannot be told"
            if claim.own_value is None
            else value(claim.own_value, claim.digits),
            "": "same" if claim.is_same else "differs",
            "why": claim.why,
        }
        for claim in claims
    ]
    n_same = sum(claim.is_same for claim in claims)
    return Table.of(
        f"Published figures ({n_same} of {len(claims)} the same)", rows, text=("what", "", "why")
    )


def value(number: float, digits: int) -> str:
    """A number with ``digits`` decimals, in scientific notation beyond four; below 0, of tens."""
    from clash.analysis.figures import round_half_up

    if number and digits > 4:
        return f"{number:.3e}"
    return f"{round_half_up(number, digits):.{max(digits, 0)}f}"
