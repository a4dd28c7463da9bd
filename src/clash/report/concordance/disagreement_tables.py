"""Disagreements of panel and people: by item, direction, rating gap and pair."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from clash.report.formats import DASH, p_value, percent, share, unanimity
from clash.report.tables import CLUSTERED_LABEL, MOST_ROWS, Table, cut_note

if TYPE_CHECKING:
    from clash.analysis.concordance import Concordance


def disagreements(concordance: Concordance) -> Table:
    """Every miss with a verdict."""
    lines = concordance.disagreements
    rows = [
        [
            line.item_id,
            " : ".join(line.candidates),
            line.label,
            line.outcome,
            f"{line.split or ''} {unanimity(line)}".strip(),
            DASH if line.confidence is None else f"{line.confidence:.2f}",
            DASH if line.elo_gap is None else f"{line.elo_gap:+.0f}",
        ]
        for line in lines[:MOST_ROWS]
    ]
    return Table(
        f"Disagreements ({len(lines)})",
        ["item", "candidates", "people", "panel", "split", "confidence", "rating gap"],
        rows,
        frozenset({5, 6}),
        cut_note(len(lines)),
    )


def directions(concordance: Concordance) -> Table:
    """Whether misses favour the stronger candidate, by several scales."""
    rows = [
        [
            line.scale,
            str(line.stronger),
            str(line.weaker),
            str(line.level),
            str(line.unknown),
            percent(line.share),
            DASH if math.isnan(line.mean_gap) else f"{line.mean_gap:+.3g}",
            p_value(line.test),
        ]
        for line in concordance.directions
    ]
    return Table(
        "Direction of the disagreements",
        ["stronger by", "to stronger", "to weaker", "level", "unknown", "share", "mean gap", "p"],
        rows,
        frozenset({1, 2, 3, 4, 5, 6, 7}),
        [
            "to stronger: the panel chose the stronger candidate where people did not; p: exact "
            "sign test"
        ],
    )


def gaps(concordance: Concordance) -> Table:
    """Concordance by how far apart two candidates are rated."""
    rows = [
        [
            f"{line.low:g} to {line.high:g}" if math.isfinite(line.high) else f"{line.low:g} on",
            share(line.rate),
            percent(line.rate.interval, digits=1),
            str(line.stronger),
            str(line.weaker),
        ]
        for line in concordance.gaps
    ]
    return Table(
        "Concordance by rating gap",
        ["gap (Elo)", "right", CLUSTERED_LABEL, "misses to stronger", "to weaker"],
        rows,
        frozenset({1, 2, 3, 4}),
    )


def chronic(concordance: Concordance) -> Table:
    """Pairs of candidates that are missed more than once."""
    rows = [
        [line.pair, str(line.misses), str(line.n), percent(line.share), ", ".join(line.items)]
        for line in concordance.chronic[:MOST_ROWS]
    ]
    return Table(
        "Pairs missed more than once",
        ["pair", "missed", "of", "share", "items"],
        rows,
        frozenset({1, 2, 3}),
        ["selected after the fact: among many pairs, some are missed often by chance"],
    )
