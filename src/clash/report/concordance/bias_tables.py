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
        [
            line.rater,
            line.family,
            str(line.picks),
            str(line.people),
            str(line.n),
            points(line.test.difference),
            p_value(line.test.test),
        ]
        for line in concordance.families
    ]
    return Table(
        "Family favouritism",
        ["who", "family", "picks", "people's", "can show it", "difference", "p"],
        rows,
        frozenset({2, 3, 4, 5, 6}),
        [
            "picks: items that the family wins, of all judged; the difference is over items "
            "where the family meets another family"
        ],
    )


def selves(
    rates: Sequence[SelfRate], title: str = "Self-evaluation, blind, against people"
) -> Table:
    """Candidates that judged themselves, beside people; of one run, or of several pooled."""
    rows = [
        [
            line.judge,
            str(line.n),
            percent(line.own_rate, digits=1),
            percent(line.people, digits=1),
            points(line.test.difference),
            p_value(line.test.test),
        ]
        for line in rates
    ]
    return Table(
        title,
        ["judge and candidate", "n", "puts itself first", "people do", "difference", "p"],
        rows,
        frozenset({1, 2, 3, 4, 5}),
    )


def lengths(concordance: Concordance) -> Table:
    """How often the longer response wins."""
    rows = [
        [
            line.rater,
            percent(line.rate.interval, digits=1),
            str(int(line.rate.interval.n)),
            str(line.rate.left_out),
            p_value(line.rate.test),
        ]
        for line in concordance.lengths
    ]
    return Table(
        "The longer response wins",
        ["who", "rate", "n", "tied or missing", "p"],
        rows,
        frozenset({1, 2, 3, 4}),
        [
            "people's rate is the reference, since longer responses may be better; p: against one "
            "half"
        ],
    )


def equal_length(concordance: Concordance) -> Table:
    """Win rates as they are, and with both responses equally long."""
    rows = [
        [
            line.candidate,
            percent(line.fit.raw),
            percent(line.fit.controlled),
            percent(line.people),
            p_value(line.fit.slope_test) + ("" if line.fit.converged else " (not converged)"),
        ]
        for line in concordance.equal_length
    ]
    return Table(
        "Win rates at equal length",
        ["candidate", "panel", "panel, equal length", "people", "p of length"],
        rows,
        frozenset({1, 2, 3, 4}),
        ["a logistic regression on the length difference (Dubois et al. 2024)"],
    )


def positions(concordance: Concordance) -> Table:
    """How often the response shown first wins."""
    rows = [
        [
            line.rater,
            percent(line.rate.interval, digits=1),
            f"{line.rate.fair:.1%}",
            str(int(line.rate.interval.n)),
            p_value(line.rate.test),
        ]
        for line in concordance.positions
    ]
    return Table(
        "The response shown first wins",
        ["who", "rate", "fair", "n", "p"],
        rows,
        frozenset({1, 2, 3, 4}),
    )
