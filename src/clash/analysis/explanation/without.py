"""The decision once more, without one judge, one category or a candidate's best items."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from clash.analysis.coverage import coverage
from clash.analysis.decision import decide
from clash.analysis.labelled import concordance_rate
from clash.analysis.leaderboard import duels, points_table, standings
from clash.analysis.run_verdicts import decide_single_texts, decide_verdicts

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from clash.analysis.decision import Decision
    from clash.analysis.leaderboard import Duel
    from clash.analysis.rundata import RunData
    from clash.stats.intervals import Interval

BEST_SHARE = 0.1
"""The share of a candidate's items that count as its best ones."""
MOST_TAGS = 30
"""Categories that are left out in turn: the commonest ones."""


@dataclass(frozen=True)
class Conclusion:
    """What a run, or a part of it, leads to.

    Attributes:
        duels: those of the candidates that lead, and of the leader of the whole run.
    """

    decision: Decision
    duels: list[Duel]

    def duel(self, leader: str, rival: str) -> Duel | None:
        """The comparison of two candidates, seen from the first; null where they did not meet."""
        pair = {leader, rival}
        duel = next((duel for duel in self.duels if {duel.first, duel.second} == pair), None)
        return None if duel is None else duel.seen_from(leader)


@dataclass(frozen=True)
class Omission:
    """The decision without one part of the run.

    Attributes:
        kind: what is left out: a judge, a category, or a candidate's best items.
        name: of the judge, the category or the candidate.
        items: items left out; of a judge 0.
        leader: who leads then; null where nobody does.
        status: of the decision then.
        share: the win rate of the run's leader against its closest rival then.
        changes: ``winner`` where somebody else leads or nobody does, ``significance`` where the
            difference becomes significant or stops being so, else null.
        agreement: the share of labelled items whose verdict is the label then; null without labels.
        inside_agreement: the agreement with labels in the category itself; null elsewhere.
        inside: the win rate of the leader against that rival in the category itself; null for
            judges and best items.
    """

    kind: Literal["judge", "category", "best items"]
    name: str
    items: int
    leader: str | None
    status: str
    share: Interval | None
    p: float | None
    changes: Literal["winner", "significance"] | None
    agreement: Interval | None
    inside: Interval | None = None
    inside_agreement: Interval | None = None


def conclude(run: RunData, also: Collection[str] = ()) -> Conclusion:
    """The decision of a run, by the code of its report.

    Args:
        run: the run, or a part of it.
        also: candidates whose comparisons are wanted, whether or not they lead.
    """
    board = standings(run)
    order = [row.candidate for row in board]
    rates = {
        row.candidate: row.win_rate_ties_half.estimate
        for row in board
        if row.win_rate_ties_half is not None
    }
    top = max(rates.values(), default=0.0)
    leaders = {name for name, rate in rates.items() if np.isclose(rate, top)}
    pairs = duels(run, order, of=leaders | set(also))
    return Conclusion(decide(board, pairs, coverage(run)), pairs)


def agreement(run: RunData) -> Interval | None:
    """The share of labelled items whose verdict is the label; null without labels."""
    return concordance_rate(run, [v for v in run.verdicts if v.item_id in run.truth])


def without_judge(run: RunData, judge: str) -> RunData:
    """The verdicts of the panel without one voting judge and its stand-ins.

    The rest decides by the method of the run, with a plain majority of weight as its quorum: the
    quorum and the calibrator are those of the whole panel.
    """
    rules = replace(
        run.rules,
        panelists=tuple(p for p in run.rules.panelists if p.seat != judge),
        quorum=None,
        calibrator=None,
        max_risk=None,
    )
    votes = run.text_votes
    if votes is None:
        outcome = decide_verdicts(rules, run.items, run.responses, run.judgments, run.ballots)
    else:
        votes = votes.of_seats([seat.id for seat in rules.seats])
        outcome = decide_single_texts(votes, rules, run.responses, run.judgments)
    return replace(
        run, rules=rules, text_votes=votes, verdicts=outcome.verdicts, method_use=outcome.use
    )


def with_reversed_judge(run: RunData, judge: str) -> RunData:
    """The verdicts if one voting judge had ranked every item the other way round."""
    rankings = {
        item: replace(ballot, ranks={**ballot.ranks, judge: -ballot.ranks[judge]})
        if judge in ballot.ranks
        else ballot
        for item, ballot in run.ballots.items()
    }
    outcome = decide_verdicts(run.rules, run.items, run.responses, run.judgments, rankings)
    return replace(run, ballots=rankings, verdicts=outcome.verdicts, method_use=outcome.use)


def omissions(
    run: RunData, decision: Decision, leader: str, rival: str
) -> tuple[list[Omission], list[Omission], list[Omission]]:
    """The decision without each judge, each category, and each candidate's best items."""

    def omission(part: RunData, kind: str, name: str, items: int = 0) -> Omission:
        conclusion = conclude(part, {leader})
        duel, without = conclusion.duel(leader, rival), conclusion.decision
        return Omission(
            kind=kind,  # type: ignore[arg-type]
            name=name,
            items=items,
            leader=without.winner,
            status=without.status,
            share=None if duel is None else duel.share,
            p=without.p,
            changes=_changes(decision, without),
            agreement=agreement(part),
        )

    seats = [p.id for p in run.rules.seats]
    judges = (
        [omission(without_judge(run, seat), "judge", seat) for seat in seats]
        if len(seats) > 1
        else []
    )
    categories = []
    for tag, ids in _categories(run):
        part = run.only({item.item_id for item in run.items} - ids)
        category = run.only(ids)
        duel = conclude(category, {leader}).duel(leader, rival)
        categories.append(
            replace(
                omission(part, "category", tag, len(ids)),
                inside=None if duel is None else duel.share,
                inside_agreement=agreement(category),
            )
        )
    best = [
        omission(run.only({i.item_id for i in run.items} - ids), "best items", name, len(ids))
        for name, ids in _best_items(run)
    ]
    return judges, categories, best


def _changes(before: Decision, after: Decision) -> Literal["winner", "significance"] | None:
    if before.winner != after.winner:
        return "winner"
    if (before.status == "decided") != (after.status == "decided"):
        return "significance"
    return None


def _categories(run: RunData) -> Iterator[tuple[str, set[str]]]:
    """Each tag and the ids of its items, the commonest first; none that covers every item."""
    tags = Counter(tag for item in run.items for tag in set(item.tags))
    for tag, n in sorted(tags.items(), key=lambda pair: (-pair[1], pair[0]))[:MOST_TAGS]:
        if n < len(run.items):
            yield tag, {item.item_id for item in run.items if tag in item.tags}


def _best_items(run: RunData) -> Iterator[tuple[str, set[str]]]:
    """Each candidate and the ids of the tenth of its items with most points, one at least."""
    table = points_table(run)
    for k, name in enumerate(run.candidates):
        rows = np.flatnonzero(~np.isnan(table[:, k]))
        if len(rows) > 1:
            order = rows[np.argsort(-table[rows, k], kind="stable")]
            most = max(1, round(BEST_SHARE * len(rows)))
            yield name, {run.items[row].item_id for row in order[:most].tolist()}
