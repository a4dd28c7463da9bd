"""Disagreements of panel and people: by item, direction, rating gap and pair."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from clash.report.formats import DASH, number, p_value, percent, share, unanimity
from clash.report.tables import CLUSTERED_LABEL, MOST_ROWS, Table, cut_note

if TYPE_CHECKING:
    from clash.analysis.concordance import Concordance


def disagreements(concordance: Concordance) -> Table:
    """Every miss with a verdict."""
    lines = concordance.disagreements
    rows = [
        {
            "item": line.item_id,
            "candidates": " : ".join(line.candidates),
            "people": line.label,
            "panel": line.outcome,
            "split": f"{line.split or ''} {unanimity(line)}".strip(),
            "confidence": number(line.confidence, ".2f"),
            "rating gap": number(line.elo_gap, "+.0f"),
        }
        for line in lines[:MOST_ROWS]
    ]
    return Table.of(
        f"Disagreements ({len(lines)})",
        rows,
        text=("candidates", "people", "panel", "split"),
        notes=cut_note(len(lines)),
    )


def directions(concordance: Concordance) -> Table:
    """Whether misses favour the stronger candidate, by several scales."""
    rows = [
        {
            "stronger by": line.scale,
            "to stronger": line.stronger,
            "to weaker": line.weaker,
            "level": line.level,
            "unknown": line.unknown,
            "share": percent(line.share),
            "mean gap": DASH if math.isnan(line.mean_gap) else f"{line.mean_gap:+.3g}",
            "p": p_value(line.test),
        }
        for line in concordance.directions
    ]
    return Table.of(
        "Direction of the disagreements",
        rows,
        notes=[
            "to stronger: the panel chose the stronger candidate where people did not; p: exact "
            "sign test"
        ],
    )


def gaps(concordance: Concordance) -> Table:
    """Concordance by how far apart two candidates are rated."""
    rows = [
        {
            "gap (Elo)": f"{line.low:g} to {line.high:g}"
            if math.isfinite(line.high)
            else f"{line.low:g} on",
            "right": share(line.rate),
            CLUSTERED_LABEL: percent(line.rate.interval, digits=1),
            "misses to stronger": line.stronger,
            "to weaker": line.weaker,
        }
        for line in concordance.gaps
    ]
    return Table.of("Concordance by rating gap", rows)


def chronic(concordance: Concordance) -> Table:
    """Pairs of candidates that are missed more than once."""
    rows = [
        {
            "pair": line.pair,
            "missed": line.misses,
            "of": line.n,
            "share": percent(line.share),
            "items": ", ".join(line.items),
        }
        for line in concordance.chronic[:MOST_ROWS]
    ]
    return Table.of(
        "Pairs missed more than once",
        rows,
        text=("items",),
        notes=["selected after the fact: among many pairs, some are missed often by chance"],
    )
