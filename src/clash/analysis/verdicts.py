"""Judgments become verdicts, offline, from the run folder alone."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from clash.records import SELF, Verdict
from clash.stats.voting.borda import BordaResult, borda, borda_pairwise, borda_points
from clash.votes.blinding_index import count_presentations
from clash.votes.from_run import read_judging, read_panelists

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from numpy.typing import NDArray

    from clash.config import JudgingConfig
    from clash.records import Groups
    from clash.stats.typing import Floats
    from clash.store.folder import RunFolder
    from clash.store.manifest import Manifest
    from clash.votes.ballots import ItemRankings
    from clash.votes.from_run import Panelist


BORDA = "borda"


# Thousands of items are ranked in a few ways only, and arrays as small as these take longer to
# set up than to count.
@lru_cache(maxsize=4096)
def _count_borda(shape: tuple[int, ...], ranks: bytes, weights: bytes) -> BordaResult:
    table = np.frombuffer(ranks).reshape(shape)
    count = borda_pairwise if np.isnan(table).any() else borda
    return count(table, np.frombuffer(weights))


@dataclass(frozen=True)
class VerdictRules:
    """How the run decides: from its manifest.

    Attributes:
        exclusions: candidates that a judge does not judge, by judge: it is the same model.
        min_confidence: a winner below this confidence is no verdict.
        seed: of the folds that ``auto`` validates on.
        voting_observers: judges that vote and are not of the panel: candidates, by a setting.
        judging: what was asked of each text, where each is judged by itself; null where responses
            are ranked.
    """

    panelists: tuple[Panelist, ...]
    quorum: float | None
    tie_break: str
    method: str
    presentations: int = 1
    calibrator: Mapping[str, Any] | None = None
    max_risk: float | None = None
    risk_confidence: float | None = None
    exclusions: Mapping[str, frozenset[str]] = field(default_factory=dict)
    min_confidence: float | None = None
    seed: int = 0
    voting_observers: frozenset[str] = frozenset()
    judging: JudgingConfig | None = None

    @classmethod
    def of(cls, folder: RunFolder) -> VerdictRules:
        """The rules of a run."""
        manifest = folder.manifest()
        panel, aggregate = manifest.panel, manifest.config["aggregate"]
        return cls(
            read_panelists(folder, manifest),
            panel["quorum"],
            aggregate["tie_break"],
            aggregate.get("method", BORDA),
            count_presentations(manifest),
            manifest.calibrator,
            aggregate.get("max_risk"),
            aggregate.get("risk_confidence"),
            {judge: frozenset(names) for judge, names in panel.get("excluded", {}).items()},
            aggregate.get("min_confidence"),
            manifest.seeds.get("seed", 0),
            voting_observers(manifest),
            read_judging(manifest),
        )

    @property
    def method_name(self) -> str:
        """What decides: where texts are judged by themselves, majority or mean in Borda's place."""
        if self.judging is None or self.method != BORDA:
            return self.method
        return "mean" if self.judging.mode == "score" else "majority"

    @property
    def voting(self) -> tuple[Panelist, ...]:
        """The judges that decide, those included who stood in for one of the panel."""
        return tuple(p for p in self.panelists if p.role == "voting")

    @property
    def seats(self) -> tuple[Panelist, ...]:
        """The judges of the panel that decide: one for each vote."""
        return tuple(p for p in self.voting if p.stands_in_for is None)

    def may_judge(self, candidate: str) -> tuple[Panelist, ...]:
        """The judges that decide on one text: not one that is the same model as its author."""
        return tuple(p for p in self.seats if candidate not in self.exclusions.get(p.id, ()))

    def eligible(self, candidates: Collection[str]) -> tuple[Panelist, ...]:
        """The judges that decide on these candidates: not one who is left with a single one."""
        return tuple(
            p
            for p in self.seats
            if p.id not in self.exclusions or len(set(candidates) - self.exclusions[p.id]) > 1
        )

    def enough(self, weight: float, eligible: Sequence[Panelist]) -> bool:
        """Whether a voting weight carries a verdict: the quorum, or more than half of it all.

        The quorum is of the judges that may judge the item: one that is excluded from it has not
        failed.
        """
        all_of_them = sum(p.weight for p in self.seats)
        eligible_weight = sum(p.weight for p in eligible)
        if self.quorum is not None:
            return weight >= self.quorum * eligible_weight / all_of_them - 1e-9
        return weight > eligible_weight / 2 + 1e-9


def left_for_review(verdict: Verdict, least: float, **outcome: None) -> Verdict:
    """An abstention in place of a verdict that is less confident than ``least``."""
    reason = f"for review: confidence {verdict.confidence:.2f} is below {least:g} (min_confidence)"
    blank = {"confidence": None, "unanimous": False, "abstained": reason}
    return verdict.model_copy(update={**outcome, **blank})


def voting_observers(manifest: Manifest) -> frozenset[str]:
    """The observers of a run that vote beside its panel."""
    observers = manifest.config.get("observers", {})
    if observers.get("role") != "voting":
        return frozenset()
    judges = observers["judges"]
    if isinstance(judges, list):
        return frozenset(judge["id"] for judge in judges)
    return frozenset(j["id"] for j in manifest.panel["judges"] if j["id"].startswith(SELF))


def verdict(
    item_id: str, rankings: ItemRankings | None, rules: VerdictRules, reason: str | None = None
) -> Verdict:
    """The outcome of one item by weighted Borda count, whatever the method of the rules.

    Args:
        item_id: the item.
        rankings: its ballots; null where no judge judged.
        rules: weights, quorum, tie-break.
        reason: the reason to give where no judge judged.
    """
    if rankings is None:
        return _abstained(item_id, rules, reason or "no judge judged it")
    eligible = rules.eligible(rankings.candidates)
    present = _present(rankings, eligible, rules)
    seats = {p.seat for p in present}
    if not rules.enough(sum(p.weight * rankings.share[p.id] for p in present), eligible):
        names = ", ".join(p.id for p in eligible if p.id not in seats)
        return _abstained(
            item_id, rules, f"below the quorum: no usable judgment by {names or 'some'}"
        )
    absent = _candidates_without_rank(rankings, present) if rules.exclusions else []
    if absent:
        reason = f"excluded: no voting judge may judge {', '.join(absent)}"
        return _abstained(item_id, rules, reason)
    rows, weights = weighted_rows(rankings, rules)
    outcome = _count_borda(rows.shape, rows.tobytes(), weights.tobytes())
    groups = break_tie(_groups(outcome.places, rankings.candidates), rankings, rules)
    winner = groups[0][0] if len(groups[0]) == 1 else None
    unanimous, split = judges_behind(rankings, rules, winner)
    return Verdict(
        item_id=item_id,
        method=BORDA,
        ranking=groups,
        winner=winner,
        scores=dict(zip(rankings.candidates, outcome.scores.round(9).tolist(), strict=True)),
        confidence=round(float(outcome.margin), 9),
        unanimous=unanimous,
        split=split,
    )


def judges_behind(
    rankings: ItemRankings, rules: VerdictRules, winner: str | None
) -> tuple[bool, str]:
    """Whether every judge of the panel is for a winner, and how many judges are for and against.

    Observers that vote are among those for and against; whether the panel is unanimous is a
    question to the panel alone.
    """
    eligible = rules.eligible(rankings.candidates)
    present = _present(rankings, eligible, rules)
    # A judge is neither for nor against a winner whom it does not judge.
    tops = {
        p: rankings.top(p.id)
        for p in present
        if winner is None or rankings.has_ranked(p.id, winner)
    }
    panel = [p for p in eligible if p.id not in rules.voting_observers] or eligible
    seats = {p.id for p in panel}
    shares = sum(rankings.share[p.id] for p in present if p.seat in seats)
    is_complete = {p.seat for p in present} >= seats and shares > len(seats) - 1e-9
    firsts = {top for p, top in tops.items() if p.seat in seats}
    return is_complete and firsts == {winner}, split_of(list(tops.values()), winner)


def break_tie(groups: Groups, rankings: ItemRankings, rules: VerdictRules) -> Groups:
    """The groups with a tie at the top broken, where the rules say so."""
    if rules.tie_break != "scores" or len(groups[0]) == 1:
        return groups
    return _broken(groups, rankings, _present(rankings, rules.eligible(rankings.candidates), rules))


def _present(
    rankings: ItemRankings, eligible: Sequence[Panelist], rules: VerdictRules
) -> list[Panelist]:
    """The judges that ranked an item, and those that stood in for one."""
    seats = {p.id for p in eligible}
    return [p for p in rules.voting if p.seat in seats and p.id in rankings.ranks]


def _parts(rankings: ItemRankings, present: Sequence[Panelist]) -> dict[str, float]:
    """The part of its seat's weight that each has.

    All of it, but for a judge that ranked one presentation and its stand-in that ranked the other.
    """
    presentations: Counter[str] = Counter()
    for p in present:
        presentations[p.seat] += len(rankings.ranks[p.id])
    return {p.id: len(rankings.ranks[p.id]) / presentations[p.seat] for p in present}


def _candidates_without_rank(rankings: ItemRankings, present: Sequence[Panelist]) -> list[str]:
    """Candidates that none of these judges ranked: all of them are the same model."""
    return [
        name
        for name in rankings.candidates
        if not any(rankings.has_ranked(p.id, name) for p in present)
    ]


def weighted_rows(rankings: ItemRankings, rules: VerdictRules) -> tuple[Floats, Floats]:
    """A row for each ranking, (R, K), and its weight, (R,); a judge's rankings share its weight."""
    present = _present(rankings, rules.eligible(rankings.candidates), rules)
    rows = [rankings.ranks[p.id] for p in present]
    parts = _parts(rankings, present)
    weights = [
        np.full(len(rankings.ranks[p.id]), p.weight * parts[p.id] / len(rankings.ranks[p.id]))
        for p in present
    ]
    return np.concatenate(rows), np.concatenate(weights)


@dataclass(frozen=True)
class JudgePoints:
    """What one voting judge adds to the scores of a verdict: its weight times its points.

    Attributes:
        weight: the judge's own, or the part of its seat's weight that it has.
        points: mean Borda points by candidate over the presentations that it ranked; null for one
            that it was not shown, for whom the panel's scores are counted pair by pair.
    """

    judge: str
    weight: float
    points: dict[str, float | None]


def contributions(rankings: ItemRankings, rules: VerdictRules) -> list[JudgePoints]:
    """What each judge that ranked an item adds to its verdict, in the order of the panel."""
    present = _present(rankings, rules.eligible(rankings.candidates), rules)
    parts = _parts(rankings, present)
    lines = []
    for p in present:
        points = borda_points(rankings.ranks[p.id]).mean(axis=0).tolist()
        by_candidate = {
            name: None if np.isnan(value) else value
            for name, value in zip(rankings.candidates, points, strict=True)
        }
        lines.append(JudgePoints(p.id, p.weight * parts[p.id], by_candidate))
    return lines


def _groups(places: Floats | NDArray[np.intp], candidates: Sequence[str]) -> list[list[str]]:
    return [
        sorted(candidates[i] for i in np.flatnonzero(places == rank).tolist())
        for rank in sorted(set(places.tolist()))
    ]


def _broken(
    groups: list[list[str]], rankings: ItemRankings, present: Sequence[Panelist]
) -> list[list[str]]:
    """The tie at the top broken by weighted mean criteria scores; kept where these tie too."""
    rows = np.array([rankings.scores[p.id] for p in present])
    weights = np.array([p.weight for p in present])
    usable = ~np.isnan(rows).any(axis=1)
    if not usable.any():
        return groups
    means = np.average(rows[usable], axis=0, weights=weights[usable])
    tied = [rankings.candidates.index(name) for name in groups[0]]
    parts = _groups(-means[tied].round(9), [rankings.candidates[i] for i in tied])
    return [*parts, *groups[1:]]


def split_of(tops: Sequence[str | None], winner: str | None) -> str:
    """Judges for, against and tied, as ``2-1`` or ``1-1-1``; the last only where some tied."""
    if winner is None:
        names = {top for top in tops if top is not None}
        counts = sorted((sum(top == name for top in tops) for name in names), reverse=True)
    else:
        behind = sum(top == winner for top in tops)
        counts = [behind, sum(top not in (winner, None) for top in tops)]
    tied = sum(top is None for top in tops)
    return "-".join(map(str, [*counts, *([tied] if tied else [])])) or "0"


def _abstained(item_id: str, rules: VerdictRules, reason: str) -> Verdict:
    return Verdict(
        item_id=item_id, method=rules.method, ranking=None, winner=None, abstained=reason
    )
