"""Family, self-preference, length and order effects of the panel, beside those of people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clash.report.formats import p_value, percent, points
from clash.report.tables import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.analysis.concordance import Concordance
    from clash.analysis.concordance.biases import SelfRate


def families(concordance: Concordance) -> Table:
    """Picks of a family beside people's."""
    rows = [
        {
            "who": line.rater,
            "family": line.family,
            "picks": line.picks,
            "people's": line.people,
            "can show it": line.n,
            "difference": points(line.test.difference),
            "p": p_value(line.test.test),
        }
        for line in concordance.families
    ]
    return Table.of(
        "Family favouritism",
        rows,
        text=("family",),
        notes=[
            "picks: items that the family wins, of all judged; the difference is over items "
            "where the family meets another family"
        ],
    )


def selves(
    rates: Sequence[SelfRate], title: str = "Self-evaluation, blind, against people"
) -> Table:
    """Candidates that judged themselves, beside people; of one run, or of several pooled."""
    rows = [
        {
            "judge and candidate": line.judge,
            "n": line.n,
            "puts itself first": percent(line.own_rate, digits=1),
            "people do": percent(line.people, digits=1),
            "difference": points(line.test.difference),
            "p": p_value(line.test.test),
        }
        for line in rates
    ]
    return Table.of(title, rows)


def lengths(concordance: Concordance) -> Table:
    """How often the longer response wins."""
    rows = [
        {
            "who": line.rater,
            "rate": percent(line.rate.interval, digits=1),
            "n": int(line.rate.interval.n),
            "tied or missing": line.rate.left_out,
            "p": p_value(line.rate.test),
        }
        for line in concordance.lengths
    ]
    return Table.of(
        "The longer response wins",
        rows,
        notes=[
            "people's rate is the reference, since longer responses may be better; p: against one "
            "half"
        ],
    )


def equal_length(concordance: Concordance) -> Table:
    """Win rates as they are, and with both responses equally long."""
    rows = [
        {
            "candidate": line.candidate,
            "panel": percent(line.fit.raw),
            "panel, equal length": percent(line.fit.controlled),
            "people": percent(line.people),
            "p of length": p_value(line.fit.slope_test)
            + ("" if line.fit.converged else " (not converged)"),
        }
        for line in concordance.equal_length
    ]
    return Table.of(
        "Win rates at equal length",
        rows,
        notes=["a logistic regression on the length difference (Dubois et al. 2024)"],
    )


def positions(concordance: Concordance) -> Table:
    """How often the response shown first wins."""
    rows = [
        {
            "who": line.rater,
            "rate": percent(line.rate.interval, digits=1),
            "fair": f"{line.rate.fair:.1%}",
            "n": int(line.rate.interval.n),
            "p": p_value(line.rate.test),
        }
        for line in concordance.positions
    ]
    return Table.of("The response shown first wins", rows)
