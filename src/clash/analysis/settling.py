"""What would settle a duel that is not decided: more prompts, or nothing worth their price."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from clash.stats.intervals import normal_quantile
from clash.wording import plural, two_digits

if TYPE_CHECKING:
    from clash.analysis.leaderboard import Duel

POWER = 0.8
ALPHA = 0.05
MARGIN = 0.10
"""The difference of shares that prompts are counted for where the one seen is too small."""
SMALL = 0.05
"""A difference below this takes thousands of prompts: nobody should be told to buy them."""
_EXACT_UP_TO = 1000
_Z_POWER = 0.8416212335729143  # the 80% point of the normal distribution


def more_items(duel: Duel, alpha: float = ALPHA) -> int | None:
    """Further items for 80% power, two-sided, if the decisive share stays what it is.

    For the exact sign test, with the share of items that are decisive and the design effect of
    the items at hand. Null where the two are level.

    Args:
        duel: the duel to be settled.
        alpha: what its p must come down to: less than 5% where others are corrected for.
    """
    decisive = duel.wins + duel.losses
    if decisive == 0 or duel.wins == duel.losses:
        return None
    return max(1, _items_needed(duel, max(duel.wins, duel.losses) / decisive, alpha) - _items(duel))


def as_equal(duel: Duel) -> bool:
    """Whether the data leave no difference of more than 10 points, and show one of less than 5."""
    return _observed_gap(duel) < SMALL and _most(duel) <= MARGIN


def items_for_margin(duel: Duel, alpha: float = ALPHA) -> int | None:
    """Further items that would show a difference of 10 points with 80% power.

    0 where there were enough; null where at most 10% of the items are decisive, so that there can
    be no such difference.

    Args:
        duel: the duel.
        alpha: as for :func:`more_items`.
    """
    decisive = (duel.wins + duel.losses) / _items(duel)
    if decisive <= MARGIN:
        return None
    n_items = _items_needed(duel, 0.5 + MARGIN / decisive / 2, alpha)
    return max(0, n_items - _items(duel))


def settles(duel: Duel, more: int | None, alpha: float = ALPHA) -> str:
    """The sentence on what would make an undecided duel surer.

    Of a difference below 5 points it says what the data leave possible, and counts the prompts
    that would show one of 10 points.

    Args:
        duel: the duel, seen from the leader.
        more: :func:`more_items` of it.
        alpha: as there.
    """
    gap = _observed_gap(duel)
    if duel.wins + duel.losses == 0:
        return "They tie on every prompt: more of this kind will not settle it."
    if more is not None and gap >= SMALL:
        return (
            f"About {_prompts(more)} like these would settle a difference of this size"
            " (80% power at the 5% level)."
        )
    apart = "No difference is seen" if gap <= 0 else f"They are {_points(gap)} apart"
    if as_equal(duel):
        return f"{apart}, and more than {_points(_most(duel))} either way is ruled out."
    return f"{apart} so far; {_left(duel, alpha)}"


def _observed_gap(duel: Duel) -> float:
    """The difference of the two win rates."""
    return 2 * duel.share.estimate - 1


def _most(duel: Duel) -> float:
    """The largest difference, either way, that the data leave."""
    return max(1 - 2 * duel.share.low, 2 * duel.share.high - 1)


def _left(duel: Duel, alpha: float) -> str:
    """What the data leave, and what would narrow it."""
    low, high = 1 - 2 * duel.share.low, 2 * duel.share.high - 1
    left = f"anything from {_points(low)} behind to {_number(high)} ahead is possible"
    further = items_for_margin(duel, alpha)
    if further is None:
        return f"{left}, and most prompts tie."
    goal = f"a difference of {_points(MARGIN)}, if there is one (80% power at the 5% level)"
    if not further:
        return f"{left}. There were prompts enough for {goal}."
    return f"{left}. About {_prompts(further)} would show {goal}."


def _prompts(n: int) -> str:
    return plural(two_digits(n), "more prompt")


def _points(share: float) -> str:
    number = _number(share)
    return f"{number} point{'' if number == '1' else 's'}"


def _number(share: float) -> str:
    """In points; tenths of them matter below ten only."""
    return f"{100 * share:.{1 if share < 0.0995 else 0}f}".removesuffix(".0")


def _items(duel: Duel) -> int:
    return duel.wins + duel.losses + duel.ties


def _items_needed(duel: Duel, share: float, alpha: float) -> int:
    """Items like those of a duel for a true ``share`` of decisive ones."""
    effect = duel.share.n / duel.share.n_effective if duel.share.n_effective else 1.0
    decisive = duel.wins + duel.losses
    need = _decisive_needed(share, alpha)
    return math.ceil(need * max(effect, 1.0) * _items(duel) / decisive)


def _decisive_needed(share: float, alpha: float) -> float:
    """Decisive items with which the sign test sees a true ``share`` above one half."""
    from scipy.special import betainc

    enough = 1  # wins that are significant; it grows with n
    for n in range(1, _EXACT_UP_TO + 1):
        while enough <= n and 2 * betainc(enough, n - enough + 1, 0.5) > alpha:
            enough += 1
        if enough <= n and betainc(enough, n - enough + 1, share) >= POWER:
            return n
    z = normal_quantile(1 - alpha)
    return ((z * 0.5 + _Z_POWER * math.sqrt(share * (1 - share))) / (share - 0.5)) ** 2
