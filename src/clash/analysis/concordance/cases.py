"""Labelled items as flat cases: what people said, what the panel said, what each judge said."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from clash.errors import RunFolderError
from clash.labels import TIE, ItemLabel, outcome_code
from clash.records import SELF
from clash.stats.intervals import Interval, wilson, wilson_clustered
from clash.stats.voting.borda import borda_points
from clash.store.stored import of_items

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from clash.analysis.rundata import RunData
    from clash.records import Item, Verdict
    from clash.votes.ballots import ItemRankings

_TIER = "tier:"


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
        unasked_judges: judges that an interrupted run never came to ask of it.
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
    unasked_judges: frozenset[str] = frozenset()

    @property
    def outcome(self) -> str | None:
        """The verdict: a candidate, ``tie``, or null where there is none."""
        return self.verdict.outcome

    @property
    def right(self) -> bool:
        """Whether the verdict is the label; no verdict is a miss."""
        return self.outcome == self.label

    @property
    def loser(self) -> str | None:
        """Of two, the one that people did not choose; null for ties and larger items."""
        losers = [name for name in self.candidates if name != self.label]
        return losers[0] if len(losers) == 1 else None

    @property
    def pair(self) -> str:
        """The candidates, whichever way round."""
        return " : ".join(sorted(self.candidates))

    def code(self, outcome: str | None) -> int:
        """``outcome`` as a side: its place among the candidates, K for a tie, -1 for nothing."""
        return outcome_code(outcome, self.candidates)


def labelled_cases(run: RunData) -> tuple[LabelledCase, ...]:
    """The labelled items that a run put to its panel, in its order."""
    profiles = candidate_profiles(run)
    people = _annotators(run)
    order = run.responders
    verdicts = {verdict.item_id: verdict for verdict in run.labelled_verdicts}
    return tuple(
        _case(run, item, verdicts[item.item_id], order, people.get(item.item_id, {}), profiles)
        for item in of_items(run.items, verdicts)
    )


def _case(
    run: RunData,
    item: Item,
    verdict: Verdict,
    order: Mapping[str, tuple[str, ...]],
    people: Mapping[str, str],
    profiles: Mapping[str, Profile],
) -> LabelledCase:
    label = run.truth[item.item_id]
    if label not in (*order[item.item_id], TIE):
        raise RunFolderError(
            f"{run.manifest.run}: item {item.item_id!r} has the label {label!r}, which is not one of"
            f" {', '.join(order[item.item_id])}, {TIE}: correct it in labels.jsonl of the run or in the"
            " prompts file"
        )
    rankings = run.ballots.get(item.item_id)
    tiers = [tag.removeprefix(_TIER) for tag in item.tags if tag.startswith(_TIER)]
    return LabelledCase(
        run=run.manifest.run,
        item_id=item.item_id,
        cluster=item.cluster,
        candidates=order[item.item_id],
        label=label,
        verdict=verdict,
        tops={}
        if rankings is None
        else {judge: rankings.top(judge) or TIE for judge in rankings.ranks},
        points={} if rankings is None else _points(rankings, order[item.item_id]),
        annotators=people,
        lengths={name: len(text) for name, text in run.texts[item.item_id].items()},
        tags=tuple(tag for tag in item.tags if not tag.startswith(_TIER)),
        tier=tiers[0] if tiers else profiles.get(label, Profile()).tier,
        unasked_judges=run.unasked_judges.get(item.item_id, frozenset()),
    )


def _points(rankings: ItemRankings, order: Sequence[str]) -> dict[str, NDArray[np.float64]]:
    """Points by judge, in the order of the source; 0 for a response that it was not shown."""
    columns = [
        rankings.candidates.index(name) if name in rankings.candidates else -1 for name in order
    ]
    return {
        judge: np.append(np.nan_to_num(borda_points(ranks).mean(axis=0)), 0.0)[columns]
        for judge, ranks in rankings.ranks.items()
    }


def _annotators(run: RunData) -> dict[str, dict[str, str]]:
    choices: dict[str, dict[str, str]] = {}
    for label in run.labels:
        choice = ItemLabel.of(label).choice
        if choice is not None:
            choices.setdefault(label.item_id, {})[label.annotator] = choice
    return choices


def candidate_profiles(run: RunData) -> dict[str, Profile]:
    """What the manifest says of each candidate."""
    candidates: list[dict[str, Any]] = run.manifest.candidates or run.manifest.config["candidates"]
    return {
        str(other_label["id"]): Profile(
            other_label.get("family"), other_label.get("tier"), other_label.get("elo")
        )
        for other_label in candidates
    }


def own_name(judge: str, candidates: Iterable[str]) -> str | None:
    """The candidate that a judge is, where it is one."""
    name = judge.removeprefix(SELF)
    return name if name in candidates else None


def codes(cases: Sequence[LabelledCase]) -> NDArray[np.intp]:
    """The cluster of each case, as a code."""
    code_of_cluster: dict[str, int] = {}
    return np.array(
        [code_of_cluster.setdefault(case.cluster, len(code_of_cluster)) for case in cases],
        dtype=np.intp,
    )


@dataclass(frozen=True)
class CaseRate:
    """A share of cases, by both intervals.

    Attributes:
        right: cases that are right; fractional where a tie earns its chance.
        n: all of them, those without a verdict included.
        wilson: Wilson's interval, as if every case were independent.
        interval: the one to believe: cases on one question share their errors.
        n_judged: cases with a verdict.
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
    credit: Sequence[float], clusters: NDArray[np.intp], has_verdict: Sequence[bool] | None = None
) -> CaseRate:
    """The share of ``credit`` in all cases and in the judged ones; what is not judged has 0."""
    n, right = len(credit), float(sum(credit))
    n_judged = n if has_verdict is None else sum(has_verdict)
    return CaseRate(
        right,
        n,
        wilson(right, n),
        wilson_clustered(credit, clusters),
        n_judged,
        wilson(right, n_judged),
    )


def concordance_of(cases: Sequence[LabelledCase]) -> CaseRate:
    """The share of cases whose verdict is the label."""
    has_verdict = [case.outcome is not None for case in cases]
    return rate([float(case.right) for case in cases], codes(cases), has_verdict)
