"""How many verdicts would have to change for another conclusion: arrays in, numbers out.

A verdict *changes* when the leader moves to the last place of an item (to undo the conclusion) or to
the first (to establish it), while the other candidates keep their order. With two candidates that
is every change there is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clash.analysis.leaderboard import duel_test
from clash.analysis.settling import ALPHA
from clash.stats.hypothesis_tests import holm

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clash.stats.typing import Floats, Index


@dataclass(frozen=True)
class LeaderOutcomes:
    """The items of a run as the leader's outcomes against each rival.

    Attributes:
        leads: (N, R), the leader's share of the points of an item minus the rival's, -1 to 1; NaN
            where one of them has no verdict.
        clusters: (N,), the prompt of each item.
        seed: of the permutation test where prompts repeat.
    """

    leads: Floats
    clusters: Index
    seed: int = 0

    @property
    def signs(self) -> Floats:
        """(N, R): 1 won, 0 tied, -1 lost, NaN not compared."""
        # Sums of weights that should be equal may differ by rounding.
        return np.sign(np.where(np.isclose(self.leads, 0.0), 0.0, self.leads))

    @property
    def is_exact(self) -> bool:
        """Whether :func:`changes_of_significance` is the smallest number, and no upper bound.

        With one rival and prompts that do not repeat, the p of the sign test depends on two counts
        alone, and a won item that is lost moves both.
        """
        return self.leads.shape[1] == 1 and len(np.unique(self.clusters)) == len(self.clusters)


def changes_to_level(outcomes: LeaderOutcomes, rival: int) -> list[int]:
    """The fewest items whose verdicts must change until the leader is not ahead of a rival.

    Exact: a won item that is lost moves the balance by two, a tied one by one, and they add up, so
    that taking won items first is optimal. Among equal ones the narrowest verdicts come first.

    Returns:
        Rows; none where the leader is not ahead anyway.
    """
    sign = outcomes.signs[:, rival]
    balance, rows = float(np.nansum(sign)), []
    for row in _by_effect(outcomes, rival, to=-1.0):
        if balance <= 0:
            break
        balance -= float(sign[row]) + 1
        rows.append(int(row))
    return rows


def drops_to_level(outcomes: LeaderOutcomes, rival: int) -> int:
    """The fewest won items without which the leader is not ahead of a rival: its lead. Exact."""
    return max(0, int(np.nansum(outcomes.signs[:, rival])))


def is_significant(signs: Floats, clusters: Index, seed: int) -> bool:
    """Whether the leader beats every rival after Holm's correction, as the decision asks."""
    p_values = []
    for column in signs.T:
        is_compared = ~np.isnan(column)
        if not is_compared.any() or column[is_compared].sum() <= 0:
            return False
        p_values.append(duel_test(column[is_compared], clusters[is_compared], seed).p)
    return bool(p_values) and float(holm(p_values).max()) <= ALPHA


def changes_of_significance(outcomes: LeaderOutcomes) -> list[int] | None:
    """Items whose changed verdicts make a significant lead insignificant, or the other way round.

    Greedy: for each rival in turn, the items that weigh most against it (then against the others)
    first, by bisection over how many; the shortest list counts. :attr:`LeaderOutcomes.is_exact`
    says whether no shorter one exists.

    Returns:
        Rows; null where no number of changes does it, as where five items can show nothing.
    """
    signs, clusters, seed = outcomes.signs, outcomes.clusters, outcomes.seed
    before = is_significant(signs, clusters, seed)
    to = -1.0 if before else 1.0
    best: list[int] | None = None
    for rival in range(signs.shape[1]):
        order = _by_effect(outcomes, rival, to)
        low, high = 0, len(order) if best is None else len(best) - 1
        if high < 1 or _holds(signs, order[:high], to, clusters, seed) == before:
            continue
        while high - low > 1:
            middle = (low + high) // 2
            if _holds(signs, order[:middle], to, clusters, seed) == before:
                low = middle
            else:
                high = middle
        best = [int(row) for row in order[:high]]
    return best


def _holds(signs: Floats, rows: Index, to: float, clusters: Index, seed: int) -> bool:
    """Whether the lead is significant once these verdicts have changed."""
    after = signs.copy()
    after[rows] = np.where(np.isnan(after[rows]), np.nan, to)
    return is_significant(after, clusters, seed)


def _by_effect(outcomes: LeaderOutcomes, rival: int, to: float) -> NDArray[np.intp]:
    """The rows that a change moves, those with the greatest effect against ``rival`` first.

    Then the greatest effect against all rivals, then the narrowest verdict, then the run's order.
    """
    signs = outcomes.signs
    effect = np.nan_to_num(np.abs(signs - to))
    total = effect.sum(axis=1)
    order = np.lexsort(
        (
            np.arange(len(signs)),
            np.abs(outcomes.leads[:, rival]),
            -total,
            -effect[:, rival],
        )
    )
    rows: NDArray[np.intp] = order[total[order] > 0]
    return rows
