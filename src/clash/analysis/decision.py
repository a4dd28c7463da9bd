"""The one sentence: who wins, by how much, how sure, and what would make it surer."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from clash.stats.intervals import normal_quantile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.analysis.coverage import Coverage
    from clash.analysis.leaderboard import Duel, Standing
    from clash.stats.intervals import Interval

POWER = 0.8
ALPHA = 0.05
_Z_POWER = 0.8416212335729143  # the 80% point of the normal distribution


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


def decide(board: Sequence[Standing], duels: Sequence[Duel], covered: Coverage) -> Decision:
    """Word the decision.

    The test is the sign test of the leader against each other candidate on the items where both
    were judged, Holm-corrected over these duels, for the leader was chosen by looking.
    """
    ranked = [row for row in board if row.points is not None]
    if len(ranked) < 2:
        return Decision("none", None, None, None, None, None, _nothing(covered))
    leader = ranked[0].candidate
    mine = [_seen_from(leader, duel) for duel in duels if leader in (duel.first, duel.second)]
    if not mine:
        return Decision(
            "none", None, None, None, None, None, "The candidates never met on an item."
        )
    p_values = _holm([duel.p for duel in mine])
    closest = max(range(len(mine)), key=lambda i: (p_values[i], -mine[i].share.estimate))
    duel, p = mine[closest], p_values[closest]
    if p <= ALPHA and all(other.share.estimate > 0.5 for other in mine):
        return Decision(
            "decided",
            leader,
            duel.second,
            duel.share,
            p,
            None,
            _decided(duel, p, len(mine), covered),
        )
    if _level(ranked):
        sentence = f"No winner: {leader} and {duel.second} come out level. {_failures(covered)}"
        return Decision("tied", None, duel.second, duel.share, p, None, sentence.strip())
    more = more_items(duel)
    return Decision(
        "leading", leader, duel.second, duel.share, p, more, _leading(duel, p, more, covered)
    )


def _level(ranked: Sequence[Standing]) -> bool:
    first, second = ranked[0].points, ranked[1].points
    return (
        first is not None and second is not None and math.isclose(first.estimate, second.estimate)
    )


def _seen_from(leader: str, duel: Duel) -> Duel:
    if duel.first == leader:
        return duel
    from dataclasses import replace

    share = replace(
        duel.share,
        estimate=1 - duel.share.estimate,
        low=1 - duel.share.high,
        high=1 - duel.share.low,
    )
    difference = replace(
        duel.difference,
        estimate=-duel.difference.estimate,
        low=-duel.difference.high,
        high=-duel.difference.low,
    )
    return replace(
        duel,
        first=leader,
        second=duel.first,
        wins=duel.losses,
        losses=duel.wins,
        share=share,
        difference=difference,
    )


def _holm(p_values: Sequence[float]) -> list[float]:
    from clash.stats.tests import holm

    return [float(p) for p in holm(p_values)]


def more_items(duel: Duel) -> int | None:
    """Further items for 80% power at 5%, two-sided, if the decisive share stays what it is.

    Normal approximation of the sign test, with the share of items that are decisive and the
    design effect of the items at hand. Null where the two are level.
    """
    decisive = duel.wins + duel.losses
    n = decisive + duel.ties
    if decisive == 0 or duel.wins == duel.losses:
        return None
    share = duel.wins / decisive
    z = normal_quantile(1 - ALPHA)
    need = ((z * 0.5 + _Z_POWER * math.sqrt(share * (1 - share))) / (share - 0.5)) ** 2
    effect = duel.share.n / duel.share.n_effective if duel.share.n_effective else 1.0
    return max(1, math.ceil(need * max(effect, 1.0) * n / decisive) - n)


def _decided(duel: Duel, p: float, others: int, covered: Coverage) -> str:
    rest = f" It also beats the other {others - 1}." if others > 1 else ""
    return (
        f"{duel.first} wins: against {duel.second}{', the closest,' if others > 1 else ''}"
        f" {_record(duel)} ({duel.test}, {_p(p)}{', corrected for all pairs' if others > 1 else ''})."
        f"{rest} {_failures(covered)}"
    ).strip()


def _leading(duel: Duel, p: float, more: int | None, covered: Coverage) -> str:
    surer = (
        f" About {more} more prompts like these would settle a difference of this size"
        " (80% power at the 5% level)."
        if more is not None
        else " The two are level on decisive items: more prompts of this kind may not settle it."
    )
    return (
        f"Not decided: {duel.first} leads, but not surely ahead of {duel.second}: {_record(duel)}"
        f" ({duel.test}, {_p(p)}).{surer} {_failures(covered)}"
    ).strip()


def _record(duel: Duel) -> str:
    ties = f", {duel.ties} tied" if duel.ties else ""
    share = duel.share
    return (
        f"{duel.wins} won, {duel.losses} lost{ties}, which is {share.estimate:.0%} of the points"
        f" [{share.low:.0%}, {share.high:.0%}]"
    )


def _failures(covered: Coverage) -> str:
    missing = sum(covered.abstained.values())
    if not missing:
        return ""
    return f"{missing} of {covered.items} items have no verdict."


def _nothing(covered: Coverage) -> str:
    causes = ", ".join(f"{n} {why}" for why, n in covered.abstained.items()) or "no item"
    return f"No decision: nothing could be compared ({causes})."


def _p(p: float) -> str:
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
