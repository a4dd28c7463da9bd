"""What was trusted before any label, on the terminal and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clash.analysis.plain import plain

if TYPE_CHECKING:
    from clash.stats.selection.prior import Prior


def prior_json(prior: Prior) -> dict[str, Any]:
    """What was trusted before any label."""
    return {
        "family": prior.family,
        "panels": prior.panels,
        "labels": prior.labels,
        "weights": {family: plain(weight) for family, weight in prior.weights},
    }


def prior_in_words(prior: Prior) -> str:
    """The same in a sentence."""
    if not prior.panels:
        return f"prior: {prior.family}, for targets of this kind"
    told = ", ".join(f"{family} {weight:.0%}" for family, weight in prior.weights[:3])
    return (
        f"prior: {told}; from {prior.panels} earlier panels with {prior.labels} labelled sources"
        " each"
    )
