"""Why a run decides as it does: the items that decide it, and what would change the decision."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from clash.analysis.concordance.method_table import chance_credit
from clash.analysis.explanation.disagreements import (
    ORDER,
    LongerChoices,
    TellingDisagreement,
    longer_choices,
    telling_disagreements,
)
from clash.analysis.explanation.flips import (
    LeaderOutcomes,
    changes_of_significance,
    changes_to_level,
    drops_to_level,
)
from clash.analysis.explanation.without import (
    Omission,
    agreement,
    conclude,
    omissions,
    with_reversed_judge,
)
from clash.analysis.leaderboard import points_table
from clash.votes.from_run import require_rankings

if TYPE_CHECKING:
    from clash.analysis.decision import Decision
    from clash.analysis.explanation.without import Conclusion
    from clash.analysis.rundata import RunData
    from clash.stats.intervals import Interval
    from clash.stats.typing import Floats


@dataclass(frozen=True)
class Flip:
    """The fewest items whose verdicts must change, or which must be left out, for a conclusion.

    Attributes:
        conclusion: ``level``: the leader is no longer ahead of the rival; ``significant`` or ``not
            significant``: the difference becomes, or is no longer, significant.
        by: ``change``: the leader moves to the last place of each item (to the first, for
            ``significant``), the other candidates keep their order; ``drop``: its best items are
            left out.
        items: how many; null where no number does it.
        rival: the candidate that the leader is then level with; null where it is about all rivals.
        exact: no smaller number does it; else the number is found greedily, and is an upper bound.
        item_ids: items that do it, the narrowest verdicts first; empty for ``drop``.
    """

    conclusion: Literal["level", "significant", "not significant"]
    by: Literal["change", "drop"]
    items: int | None
    rival: str | None
    exact: bool
    item_ids: tuple[str, ...] = ()


@dataclass(frozen=True)
class PivotalItem:
    """An item whose outcome between leader and rival hangs on one judge.

    Attributes:
        outcome: of the leader against the rival.
        lead: its share of the points minus the rival's.
        judges: each of these alone, ranking the item the other way round, changes the outcome.
    """

    item_id: str
    outcome: Literal["won", "tied", "lost"]
    lead: float
    split: str | None
    judges: tuple[str, ...]


@dataclass(frozen=True)
class Explanation:
    """Why a run decides as it does.

    Attributes:
        leader: the candidate that leads, or the first of those that are level; null where nothing
            could be compared.
        rival: the candidate that is closest to it.
        n_items: items on which both were judged: won, tied and lost by the leader.
        flips: what would change the conclusion.
        pivotal: items that one judge decides, the narrowest first.
        judges: the decision without each voting judge; empty with a single one.
        categories: the decision without the items of each tag.
        best_items: the decision without the best tenth of each candidate's items.
        disagreements: in the order of ``disagreement_order``.
        longer_choices: whether the panel chose the longer response where people chose another.
        agreement: the share of labelled items whose verdict is the label; null without labels.
        n_labelled: items with a label.
        longest_agreement: the share of labelled items with text whose label is the longest response,
            a tie of lengths earning its chance; null without labels or texts.
    """

    json_properties: ClassVar[tuple[str, ...]] = ("changes_to_longest",)

    run: str
    kind: str
    decision: Decision
    leader: str | None
    rival: str | None
    n_items: int
    wins: int
    ties: int
    losses: int
    share: Interval | None
    flips: list[Flip]
    pivotal: list[PivotalItem]
    judges: list[Omission]
    categories: list[Omission]
    best_items: list[Omission]
    disagreements: list[TellingDisagreement]
    longer_choices: LongerChoices
    agreement: Interval | None
    n_labelled: int
    longest_agreement: float | None
    disagreement_order: str = ORDER

    @property
    def changes_to_longest(self) -> int | None:
        """How many right verdicts must become wrong until the longest response is as good a guess.

        Exact; 0 where it is as good already, null where ``longest_agreement`` is.
        """
        if self.agreement is None or self.longest_agreement is None:
            return None
        lead = (self.agreement.estimate - self.longest_agreement) * self.n_labelled
        return max(0, math.ceil(lead - 1e-9))

    def flip(self, by: str, *conclusions: str) -> Flip | None:
        """The flip to one of these conclusions; null where the question does not arise."""
        flips = (f for f in self.flips if f.by == by and f.conclusion in conclusions)
        return next(flips, None)


def explain(run: RunData) -> Explanation:
    """Explain the decision of a run.

    Nothing here is estimated anew: each part of the answer is the run's own decision, made again
    without a judge, some items, or with other verdicts.

    Raises:
        InputError: the run judges each text by itself.
    """
    require_rankings(run.manifest, "clash explain")
    conclusion = conclude(run)
    leader, rival = _closest(conclusion)
    duel = None if leader is None or rival is None else conclusion.duel(leader, rival)
    judges: list[Omission] = []
    categories: list[Omission] = []
    best: list[Omission] = []
    flips: list[Flip] = []
    pivotal: list[PivotalItem] = []
    if leader is not None and rival is not None:
        judges, categories, best = omissions(run, conclusion.decision, leader, rival)
        flips = _flips(run, conclusion, leader, rival)
        pivotal = _pivotal(run, leader, rival)
    return Explanation(
        run=run.manifest.run,
        kind=run.manifest.kind,
        decision=conclusion.decision,
        leader=leader,
        rival=rival,
        n_items=0 if duel is None else duel.wins + duel.ties + duel.losses,
        wins=0 if duel is None else duel.wins,
        ties=0 if duel is None else duel.ties,
        losses=0 if duel is None else duel.losses,
        share=None if duel is None else duel.share,
        flips=flips,
        pivotal=pivotal,
        judges=judges,
        categories=categories,
        best_items=best,
        disagreements=telling_disagreements(run),
        longer_choices=longer_choices(run),
        agreement=agreement(run),
        n_labelled=sum(item.item_id in run.truth for item in run.items),
        longest_agreement=_longest_agreement(run),
    )


def _longest_agreement(run: RunData) -> float | None:
    """How often the longest response is the label's winner; null where texts are not known."""
    tops = run.baseline_tops["longest"]
    labels = {name: run.truth[name] for name in tops if name in run.truth}
    if not labels:
        return None
    return sum(chance_credit(tops[name], label) for name, label in labels.items()) / len(labels)


def _closest(conclusion: Conclusion) -> tuple[str | None, str | None]:
    """The leader and its closest rival; of a tie, the two that the decision names."""
    decision = conclusion.decision
    if decision.winner is not None:
        return decision.winner, decision.runner_up
    if decision.status != "tied" or not conclusion.duels:
        return None, None
    rival = decision.runner_up
    duel = next((d for d in conclusion.duels if d.second == rival), conclusion.duels[0])
    return duel.first, duel.second


def _lead(run: RunData, leader: str, rival: str) -> Floats:
    """(N,): the leader's share of the points of each item minus the rival's, NaN without both."""
    table = points_table(run)
    lead: Floats = table[:, run.candidates.index(leader)] - table[:, run.candidates.index(rival)]
    return np.where(np.isclose(lead, 0.0), 0.0, lead)


def _flips(run: RunData, conclusion: Conclusion, leader: str, rival: str) -> list[Flip]:
    """What would undo the lead, and what would change the significance."""
    rivals = sorted(
        {name for duel in conclusion.duels for name in (duel.first, duel.second)} - {leader},
        key=lambda name: name != rival,
    )
    rivals = [name for name in rivals if conclusion.duel(leader, name) is not None]
    outcomes = LeaderOutcomes(
        np.stack([_lead(run, leader, name) for name in rivals], axis=1),
        run.cluster_codes,
        run.manifest.seeds.get("seed", 0),
    )
    ids = [item.item_id for item in run.items]
    changes = [changes_to_level(outcomes, column) for column in range(len(rivals))]
    # The leader has the same lead over a rival whether its items change or are left out.
    nearest = min(range(len(rivals)), key=lambda column: len(changes[column]))
    rows = changes_of_significance(outcomes)
    is_decided = conclusion.decision.status == "decided"
    return [
        Flip(
            "level",
            "change",
            len(changes[nearest]),
            rivals[nearest],
            exact=True,
            item_ids=tuple(ids[row] for row in changes[nearest]),
        ),
        Flip("level", "drop", drops_to_level(outcomes, nearest), rivals[nearest], exact=True),
        Flip(
            "not significant" if is_decided else "significant",
            "change",
            None if rows is None else len(rows),
            None,
            exact=outcomes.is_exact,
            item_ids=tuple(ids[row] for row in rows or ()),
        ),
    ]


def _pivotal(run: RunData, leader: str, rival: str) -> list[PivotalItem]:
    """Items whose outcome one judge alone could change, the narrowest first."""
    lead = _lead(run, leader, rival)
    judges: dict[int, list[str]] = {}
    for panelist in run.rules.voting:
        reversed_lead = _lead(with_reversed_judge(run, panelist.id), leader, rival)
        has_changed = (
            ~np.isnan(lead) & ~np.isnan(reversed_lead) & (np.sign(lead) != np.sign(reversed_lead))
        )
        for row in np.flatnonzero(has_changed).tolist():
            judges.setdefault(row, []).append(panelist.id)
    words: dict[float, Literal["won", "tied", "lost"]] = {1.0: "won", 0.0: "tied", -1.0: "lost"}
    return [
        PivotalItem(
            item_id=run.items[row].item_id,
            outcome=words[float(np.sign(lead[row]))],
            lead=float(lead[row]),
            split=run.verdicts[row].split,
            judges=tuple(judges[row]),
        )
        for row in sorted(judges, key=lambda row: (abs(lead[row]), row))
    ]
