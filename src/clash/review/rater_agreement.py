"""The agreement of a person with the other annotators and with the panel, so far."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from clash.labels import ItemLabel
from clash.stats.agreement import cohen_kappa, krippendorff_alpha
from clash.stats.intervals import wilson_clustered

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clash.analysis.rundata import RunData
    from clash.records import Label
    from clash.stats.intervals import Interval

PANEL, EVERYONE = "the panel", "everyone"
_REPLICATES = 200


@dataclass(frozen=True)
class RaterChoices:
    """Choices by rater and item; ``tie`` includes "both bad"."""

    by_rater: Mapping[str, Mapping[str, str]]

    @classmethod
    def of(cls, run: RunData, labels: Sequence[Label]) -> RaterChoices:
        """The choices of people and of the panel; items without a verdict have none of the panel."""
        by_rater: dict[str, dict[str, str]] = {}
        for label in labels:
            choice = ItemLabel.of(label).choice
            if choice is not None:
                by_rater.setdefault(label.annotator, {})[label.item_id] = choice
        panel = {v.item_id: v.winner or "tie" for v in run.verdicts if v.ranking is not None}
        return cls({**by_rater, PANEL: panel})

    def codes(self, raters: Sequence[str], items: Sequence[str]) -> np.ndarray:
        """Choices as codes, shape (items, raters); NaN where a rater made no choice."""
        names = sorted({choice for row in self.by_rater.values() for choice in row.values()})
        table = [
            [
                names.index(self.by_rater[r][i]) if i in self.by_rater[r] else math.nan
                for r in raters
            ]
            for i in items
        ]
        return np.array(table, dtype=float).reshape(len(items), len(raters))


def agreement(run: RunData, labels: Sequence[Label], annotator: str) -> list[dict[str, Any]]:
    """Agreement with everyone who shares an item with this person, and alpha over all people.

    Each entry has ``with``, ``n``, ``same`` (share, low, high) and ``kappa`` (likewise; null where
    it is undefined). With two or more people, the last entry is Krippendorff's alpha over all.
    """
    choices = RaterChoices.of(run, labels)
    own_choices = choices.by_rater.get(annotator, {})
    lines = [
        _pair(run, choices, annotator, peer)
        for peer in (*sorted(r for r in choices.by_rater if r != PANEL), PANEL)
        if peer != annotator and own_choices.keys() & choices.by_rater[peer].keys()
    ]
    people = sorted(rater for rater in choices.by_rater if rater != PANEL)
    if len(people) > 1:
        lines.append(_alpha(run, choices, people))
    return lines


def _alpha(run: RunData, choices: RaterChoices, people: Sequence[str]) -> dict[str, Any]:
    counts = Counter(item for person in people for item in choices.by_rater[person])
    items = sorted(item for item, n in counts.items() if n > 1)
    alpha = krippendorff_alpha(
        choices.codes(people, items),
        "nominal",
        rng=np.random.default_rng(run.manifest.seeds.get("seed", 0)),
        clusters=[run.clusters[item] for item in items],
        n_bootstrap=_REPLICATES,
    )
    return {"with": EVERYONE, "n": len(items), "alpha": _interval(alpha)}


def _pair(run: RunData, choices: RaterChoices, rater: str, peer: str) -> dict[str, Any]:
    shared_items = sorted(choices.by_rater[rater].keys() & choices.by_rater[peer].keys())
    codes = choices.codes([rater, peer], shared_items).astype(np.intp)
    clusters = [run.clusters[item] for item in shared_items]
    same_share = wilson_clustered((codes[:, 0] == codes[:, 1]).astype(float), clusters)
    kappa = cohen_kappa(codes[:, 0], codes[:, 1], int(codes.max()) + 1, clusters=clusters)
    return {
        "with": peer,
        "n": len(shared_items),
        "same": _interval(same_share),
        "kappa": _interval(kappa.interval),
    }


def _interval(interval: Interval) -> list[float] | None:
    """Estimate, low and high; null where the estimate is undefined."""
    if not math.isfinite(interval.estimate):
        return None
    return [round(float(value), 6) for value in (interval.estimate, interval.low, interval.high)]
