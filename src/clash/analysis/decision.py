"""The one sentence: who wins, by how much, how sure, and what would make it surer."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from clash.analysis.settling import ALPHA, as_equal, more_items, settles

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.analysis.coverage import Coverage
    from clash.analysis.leaderboard import Duel, Standing
    from clash.stats.intervals import Interval


@dataclass(frozen=True)
class Decision:
    """What follows from a run.

    Attributes:
        status: ``decided``: the leader beats every other, after Holm's correction over its
            duels; ``leading``: it leads, not surely; ``tied``: nobody leads; ``none``: nothing
            was judged.
        p: the largest corrected p among the leader's duels.
        more_items: further items like these with which the closest duel would be significant at
            5% with 80% power, if its difference is what it seems; null where it is decided, or
            where no number of items would do.
    """

    status: Literal["decided", "leading", "tied", "none"]
    winner: str | None
    runner_up: str | None
    share: Interval | None
    p: float | None
    more_items: int | None
    sentence: str

    @property
    def headline(self) -> str:
        """The decision in one sentence."""
        return self.sentence


def decide(board: Sequence[Standing], duels: Sequence[Duel], counts: Coverage) -> Decision:
    """Word the decision.

    The test is the sign test of the leader against each other candidate on the items where both
    were judged (a sign-flip test over prompts where these repeat), Holm-corrected over these
    duels, for the leader was chosen by looking. Of several with the same points, none is the
    leader for its name: one that beats all others is, else nobody.
    """
    contenders = [row for row in board if row.points is not None]
    if len(contenders) < 2:
        return Decision("none", None, None, None, None, None, _nothing(counts))
    leads = [
        _lead(row.candidate, contenders, duels) for row in contenders if _level(row, contenders[0])
    ]
    lead = next((lead for lead in leads if lead.sure), leads[0])
    if lead.sure:
        return _decide_winner(lead, counts)
    if len(leads) > 1:
        return _tied(leads, counts)
    if not lead.duels:
        sentence = f"Not decided: {lead.name} has most points.{lead.gap} {_failures(counts)}"
        return Decision("leading", lead.name, None, None, None, None, sentence.strip())
    duel, p = lead.closest, max(lead.p_values)
    alpha = ALPHA * min(1.0, duel.p / p)
    more = more_items(duel, alpha)
    sentence = _leading(duel, p, f" {settles(duel, more, alpha)}{lead.gap}", counts)
    return Decision("leading", lead.name, duel.second, duel.share, p, more, sentence)


@dataclass(frozen=True)
class _Lead:
    """One of those with most points, and its duels, seen from it.

    Attributes:
        p_values: of the duels, Holm-corrected.
        unmet: rivals with which it shares no item.
    """

    name: str
    duels: list[Duel]
    p_values: list[float]
    unmet: list[str]

    @property
    def sure(self) -> bool:
        """It beats every other candidate."""
        beaten = all(duel.share.estimate > 0.5 for duel in self.duels)
        return not self.unmet and max(self.p_values) <= ALPHA and beaten

    @property
    def closest(self) -> Duel:
        """The duel that is least sure."""
        order = range(len(self.duels))
        return self.duels[
            max(order, key=lambda i: (self.p_values[i], -self.duels[i].share.estimate))
        ]

    @property
    def gap(self) -> str:
        """What is missing for a comparison with all, as the end of a sentence."""
        if not self.unmet:
            return ""
        return f" {self.name} never met {', '.join(self.unmet)} on an item."


def _lead(name: str, contenders: Sequence[Standing], duels: Sequence[Duel]) -> _Lead:
    own_duels = [duel.seen_from(name) for duel in duels if name in (duel.first, duel.second)]
    rivals = {duel.second for duel in own_duels}
    unmet = [r.candidate for r in contenders if r.candidate != name and r.candidate not in rivals]
    return _Lead(name, own_duels, _holm([duel.p for duel in own_duels]) if own_duels else [], unmet)


def _decide_winner(lead: _Lead, counts: Coverage) -> Decision:
    duel, p = lead.closest, max(lead.p_values)
    sentence = _winner_sentence(duel, p, len(lead.duels), counts)
    return Decision("decided", lead.name, duel.second, duel.share, p, None, sentence)


def _tied(leads: Sequence[_Lead], counts: Coverage) -> Decision:
    first, second, *_ = leads
    *names, last = [lead.name for lead in leads]
    sentence = f"No winner: {', '.join(names)} and {last} come out level.{first.gap}"
    positions = [i for i, duel in enumerate(first.duels) if duel.second == second.name]
    share = first.duels[positions[0]].share if positions else None
    p = first.p_values[positions[0]] if positions else None
    sentence = f"{sentence} {_failures(counts)}".strip()
    return Decision("tied", None, second.name, share, p, None, sentence)


def _level(contender: Standing, rival: Standing) -> bool:
    first, second = contender.points, rival.points
    return (
        first is not None and second is not None and math.isclose(first.estimate, second.estimate)
    )


def _holm(p_values: Sequence[float]) -> list[float]:
    from clash.stats.hypothesis_tests import holm

    return [float(p) for p in holm(p_values)]


def _winner_sentence(duel: Duel, p: float, n_others: int, counts: Coverage) -> str:
    also_beats = f" It also beats the other {n_others - 1}." if n_others > 1 else ""
    return (
        f"{duel.first} wins: against {duel.second}{', the closest,' if n_others > 1 else ''}"
        f" {_record(duel)} ({duel.test}, {_p(p)}{', corrected for all pairs' if n_others > 1 else ''})."
        f"{also_beats} {_failures(counts)}"
    ).strip()


def _leading(duel: Duel, p: float, surer: str, counts: Coverage) -> str:
    start = (
        f"As good as equal: {duel.first}, with most points, and {duel.second}"
        if as_equal(duel)
        else f"Not decided: {duel.first} leads, but not surely ahead of {duel.second}"
    )
    return f"{start}: {_record(duel)} ({duel.test}, {_p(p)}).{surer} {_failures(counts)}".strip()


def _record(duel: Duel) -> str:
    ties = f", {duel.ties} tied" if duel.ties else ""
    share = duel.share
    return (
        f"{duel.wins} won, {duel.losses} lost{ties}, which is {share.estimate:.0%} of the points"
        f" [{share.low:.0%}, {share.high:.0%}]"
    )


def _failures(counts: Coverage) -> str:
    missing = sum(counts.abstained.values())
    if not missing:
        return ""
    return f"{missing} of {counts.items} items have no verdict."


def _nothing(counts: Coverage) -> str:
    causes = ", ".join(f"{n} {why}" for why, n in counts.abstained.items()) or "no item"
    return f"No decision: nothing could be compared ({causes})."


def _p(p: float) -> str:
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
