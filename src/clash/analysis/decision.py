"""The decision of a run: who wins, by how much, how sure, and what would make it surer."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from clash.analysis.settling import ALPHA, as_equal, items_for_margin, more_items, settles
from clash.wording import part

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.analysis.coverage import Coverage
    from clash.analysis.leaderboard import Duel, Standing
    from clash.stats.intervals import Interval

_LEAST_P, _ALMOST_ONE = 0.001, 0.995


@dataclass(frozen=True)
class Decision:
    """What follows from a run.

    Attributes:
        status: ``decided``: the leader beats every other, after Holm's correction over its
            duels; ``leading``: it leads, but not significantly; ``tied``: nobody leads; ``none``:
            nothing was judged.
        p: the largest corrected p among the leader's duels.
        more_items: further items like these with which the closest duel would be significant at
            5% with 80% power, if its difference is what it seems; null where it is decided, or
            where no number of items would do.
        equal: not decided, and the data leave no difference of more than 10 points.
        items_for_10_points: further items that would show a difference of 10 points between the
            two of the closest duel, 0 where there are enough; null where it is decided, or where
            most prompts tie.
    """

    status: Literal["decided", "leading", "tied", "none"]
    winner: str | None
    runner_up: str | None
    share: Interval | None
    p: float | None
    more_items: int | None
    sentence: str
    equal: bool = False
    items_for_10_points: int | None = None


def decide(board: Sequence[Standing], duels: Sequence[Duel], counts: Coverage) -> Decision:
    """Word the decision.

    The test is the sign test of the leader against each other candidate on the items where both
    were judged (a sign-flip test over prompts where these repeat), Holm-corrected over these
    duels, for the leader was chosen by looking. Of several with the same win rate, none is the
    leader for its name: one that beats all others is, else nobody.
    """
    contenders = [row for row in board if row.win_rate_ties_half is not None]
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
        sentence = f"No clear winner: {lead.name} is ahead.{lead.gap} {_failures(counts)}"
        return Decision("leading", lead.name, None, None, None, None, sentence.strip())
    duel, p = lead.closest, max(lead.p_values)
    alpha = ALPHA * min(1.0, duel.p / p)
    more = more_items(duel, alpha)
    sentence = _leading(duel, p, f" {settles(duel, more, alpha)}{lead.gap}", counts)
    return Decision(
        "leading",
        lead.name,
        duel.second,
        duel.share,
        p,
        more,
        sentence,
        equal=as_equal(duel),
        items_for_10_points=items_for_margin(duel, alpha),
    )


@dataclass(frozen=True)
class _Lead:
    """One of those with the highest win rate, and its duels, seen from it.

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
    sentence = f"No clear winner: {', '.join(names)} and {last} are level.{first.gap}"
    sentence = f"{sentence} {_failures(counts)}".strip()
    duels = [(i, duel) for i, duel in enumerate(first.duels) if duel.second == second.name]
    if not duels:
        return Decision("tied", None, second.name, None, None, None, sentence)
    index, duel = duels[0]
    return Decision(
        "tied",
        None,
        second.name,
        duel.share,
        first.p_values[index],
        None,
        sentence,
        equal=as_equal(duel),
        items_for_10_points=items_for_margin(duel),
    )


def _level(contender: Standing, rival: Standing) -> bool:
    first, second = contender.win_rate_ties_half, rival.win_rate_ties_half
    return (
        first is not None
        and second is not None
        and math.isclose(first.estimate, second.estimate, abs_tol=1e-9)
    )


def _holm(p_values: Sequence[float]) -> list[float]:
    from clash.stats.hypothesis_tests import holm

    return [float(p) for p in holm(p_values)]


def _winner_sentence(duel: Duel, p: float, n_others: int, counts: Coverage) -> str:
    also_beats = ""
    if n_others > 1:
        also_beats = f" It also beats the other {n_others - 1 if n_others > 2 else 'one'}."
    return (
        f"{duel.first} wins: against {duel.second}{', the closest,' if n_others > 1 else ''}"
        f" {_record(duel)} ({duel.test}, {p_text(p)}{', corrected for all pairs' if n_others > 1 else ''})."
        f"{also_beats} {_failures(counts)}"
    ).strip()


def _leading(duel: Duel, p: float, surer: str, counts: Coverage) -> str:
    if as_equal(duel):
        start = f"As good as equal: {duel.first} and {duel.second}"
    elif duel.share.estimate > 0.5:
        start = (
            f"No clear winner: {duel.first} is ahead of {duel.second}, but the difference is not"
            " significant"
        )
    else:
        start = (
            f"No clear winner: {duel.first} has the highest win rate, but not against {duel.second}"
        )
    return (
        f"{start}: {_record(duel)} ({duel.test}, {p_text(p)}).{surer} {_failures(counts)}".strip()
    )


def _record(duel: Duel) -> str:
    ties = f", {duel.ties} tied" if duel.ties else ""
    share = duel.share
    return (
        f"{duel.wins} won, {duel.losses} lost{ties}, a {share.estimate:.0%} win rate"
        f" [{share.low:.0%}, {share.high:.0%}]"
    )


def _failures(counts: Coverage) -> str:
    missing = sum(counts.abstained.values())
    if not missing:
        return ""
    return f"{part(missing, counts.items, 'item')} no verdict."


def _nothing(counts: Coverage) -> str:
    causes = ", ".join(f"{n} {cause}" for cause, n in counts.abstained.items()) or "no item"
    return f"No decision: nothing could be compared ({causes})."


def p_text(p: float) -> str:
    """``p = 0.02``; ``p < 0.001`` below that, for smaller ones have no digit left."""
    if p < _LEAST_P:
        return f"p < {_LEAST_P}"
    if p >= _ALMOST_ONE:
        return "p = 1.0"
    # Two decimals could round a p across 0.05.
    digits = 3 if p < 0.01 or abs(p - ALPHA) < 0.005 else 2
    return f"p = {p:.{digits}f}"
