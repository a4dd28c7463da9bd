"""Labelled items as flat cases: what people said, what the panel said, what each judge said."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from clash.errors import RunFolderError
from clash.labels import TIE, ItemLabel
from clash.stats.intervals import Interval, wilson, wilson_clustered
from clash.stats.voting.borda import borda_points

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from clash.analysis.rundata import RunData
    from clash.records import Item, Verdict
    from clash.votes.from_run import ItemRankings

_TIER = "tier:"
_SELF = "self:"


@dataclass(frozen=True)
class Profile:
    """What is known of a candidate beside its responses; null is not known."""

    family: str | None = None
    tier: str | None = None
    elo: float | None = None


@dataclass(frozen=True)
class LabelledCase:
    """One labelled item of one run.

    Attributes:
        run: the run it stands in.
        cluster: what its errors are shared with: the same name in every run.
        candidates: in the order of the source.
        label: a candidate, or ``tie``.
        tops: by judge, the candidate it puts alone in first place, or ``tie``; a judge that
            failed is absent.
        points: by judge, mean Borda points (K,) in the order of ``candidates``.
        annotators: each person's decision.
        lengths: characters of each response that is known.
        tier: of the item, where a tag ``tier:NAME`` gives it, else of the label.
    """

    run: str
    item_id: str
    cluster: str
    candidates: tuple[str, ...]
    label: str
    verdict: Verdict
    tops: Mapping[str, str]
    points: Mapping[str, NDArray[np.float64]]
    annotators: Mapping[str, str] = field(default_factory=dict)
    lengths: Mapping[str, int] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    tier: str | None = None

    @property
    def outcome(self) -> str | None:
        """The verdict: a candidate, ``tie``, or null where there is none."""
        return None if self.verdict.ranking is None else self.verdict.winner or TIE

    @property
    def right(self) -> bool:
        """Whether the verdict is the label; no verdict is a miss."""
        return self.outcome == self.label

    @property
    def loser(self) -> str | None:
        """Of two, the one that people did not choose; null for ties and larger items."""
        others = [name for name in self.candidates if name != self.label]
        return others[0] if len(others) == 1 else None

    @property
    def pair(self) -> str:
        """The candidates, whichever way round."""
        return " : ".join(sorted(self.candidates))

    def code(self, said: str | None) -> int:
        """``said`` as a side: its place among the candidates, K for a tie, -1 for nothing."""
        if said is None:
            return -1
        return len(self.candidates) if said == TIE else self.candidates.index(said)


def labelled_cases(run: RunData) -> tuple[LabelledCase, ...]:
    """The labelled items of a run, in its order."""
    known = candidate_profiles(run)
    people = _annotators(run)
    order = run.responders
    verdicts = {verdict.item_id: verdict for verdict in run.verdicts}
    return tuple(
        _case(run, item, verdicts[item.item_id], order, people.get(item.item_id, {}), known)
        for item in run.items
        if item.item_id in run.truth
    )


def _case(
    run: RunData,
    item: Item,
    verdict: Verdict,
    order: Mapping[str, tuple[str, ...]],
    people: Mapping[str, str],
    known: Mapping[str, Profile],
) -> LabelledCase:
    label = run.truth[item.item_id]
    if label not in (*order[item.item_id], TIE):
        raise RunFolderError(
            f"{run.manifest.run}: item {item.item_id!r} has the label {label!r}, which is none of"
            f" {', '.join(order[item.item_id])}, {TIE}"
        )
    said = run.ballots.get(item.item_id)
    named = [tag.removeprefix(_TIER) for tag in item.tags if tag.startswith(_TIER)]
    return LabelledCase(
        run=run.manifest.run,
        item_id=item.item_id,
        cluster=item.cluster,
        candidates=order[item.item_id],
        label=label,
        verdict=verdict,
        tops={} if said is None else {judge: said.top(judge) or TIE for judge in said.ranks},
        points={} if said is None else _points(said, order[item.item_id]),
        annotators=people,
        lengths={name: len(text) for name, text in run.texts[item.item_id].items()},
        tags=tuple(tag for tag in item.tags if not tag.startswith(_TIER)),
        tier=named[0] if named else known.get(label, Profile()).tier,
    )


def _points(said: ItemRankings, order: Sequence[str]) -> dict[str, NDArray[np.float64]]:
    """Points by judge, in the order of the source; 0 for a response that it was not shown."""
    place = [said.candidates.index(name) if name in said.candidates else -1 for name in order]
    return {
        judge: np.append(np.nan_to_num(borda_points(ranks).mean(axis=0)), 0.0)[place]
        for judge, ranks in said.ranks.items()
    }


def _annotators(run: RunData) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for label in run.labels:
        choice = ItemLabel.of(label).choice
        if choice is not None:
            found.setdefault(label.item_id, {})[label.annotator] = choice
    return found


def candidate_profiles(run: RunData) -> dict[str, Profile]:
    """What the manifest says of each candidate."""
    listed: list[dict[str, Any]] = run.manifest.candidates or run.manifest.config["candidates"]
    return {
        str(about["id"]): Profile(about.get("family"), about.get("tier"), about.get("elo"))
        for about in listed
    }


def own_name(judge: str, candidates: Iterable[str]) -> str | None:
    """The candidate that a judge is, where it is one."""
    name = judge.removeprefix(_SELF)
    return name if name in candidates else None


def codes(found: Sequence[LabelledCase]) -> NDArray[np.intp]:
    """The cluster of each case, as a code."""
    seen: dict[str, int] = {}
    return np.array([seen.setdefault(case.cluster, len(seen)) for case in found], dtype=np.intp)


@dataclass(frozen=True)
class CaseRate:
    """A share of cases, by both intervals.

    Attributes:
        right: cases that are right; fractional where a tie earns its chance.
        n: all of them, those without a verdict included.
        wilson: Wilson's interval, as if every case were independent.
        clustered: the one to believe: cases on one question share their errors.
        judged: cases with a verdict.
        of_judged: Wilson's interval over these alone.
    """

    json_keys: ClassVar[Mapping[str, str]] = {"interval": "clustered", "n_judged": "judged"}

    right: float
    n: int
    wilson: Interval
    interval: Interval
    n_judged: int
    of_judged: Interval

    @property
    def estimate(self) -> float:
        """The share."""
        return self.interval.estimate


def rate(
    credit: Sequence[float], clusters: NDArray[np.intp], judged: Sequence[bool] | None = None
) -> CaseRate:
    """The share of ``credit`` in all cases and in the judged ones; what is not judged has 0."""
    n, right = len(credit), float(sum(credit))
    there = n if judged is None else sum(judged)
    return CaseRate(
        right, n, wilson(right, n), wilson_clustered(credit, clusters), there, wilson(right, there)
    )


def concordance_of(found: Sequence[LabelledCase]) -> CaseRate:
    """The share of cases whose verdict is the label."""
    judged = [case.outcome is not None for case in found]
    return rate([float(case.right) for case in found], codes(found), judged)
