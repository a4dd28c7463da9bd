"""The votes of a run on every pair of an item's candidates, as rows that methods of two sides read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from math import nan
from typing import TYPE_CHECKING

import numpy as np

from clash.stats.latent.patterns import MISSING, TIE
from clash.votes.binary import MethodTable
from clash.votes.matrix import pair_item

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.analysis.verdicts import VerdictRules
    from clash.stats.typing import Bools, Floats, VoteCodes
    from clash.votes.ballots import ItemRankings


@dataclass(frozen=True)
class PairRows:
    """The votes on every pair of candidates that some judge ranked.

    Attributes:
        table: a row for each, a column for each seat of the panel.
        places: of each row, its item and the indices of its two candidates.
        shown_first: (N,), 1 where its first candidate was shown before the second, 0 where after,
            NaN where judges saw different orders.
    """

    table: MethodTable
    places: list[tuple[int, int, int]]
    shown_first: Floats

    @classmethod
    def of(
        cls, rankings: Sequence[ItemRankings], clusters: Sequence[str], rules: VerdictRules
    ) -> PairRows:
        """The rows of some items, each in a group of its own prompt."""
        seats = rules.seats
        judges = [[p.id for p in rules.voting if p.seat == seat.id] for seat in seats]
        names, places, codes, groups, orders = [], [], [], [], []
        for index, item in enumerate(rankings):
            votes = np.stack([_votes_of_seat(item, ids) for ids in judges], axis=-1)
            for a, b in combinations(range(len(item.candidates)), 2):
                if (votes[a, b] != MISSING).any():
                    first, second = item.candidates[a], item.candidates[b]
                    names.append(pair_item(item.item_id, first, second, len(item.candidates)))
                    places.append((index, a, b))
                    codes.append(votes[a, b])
                    groups.append(clusters[index])
                    orders.append(nan if rules.presentations > 1 else _order(item, first, second))
        table = MethodTable(
            items=tuple(names),
            codes=np.array(codes, dtype=np.int8).reshape(-1, len(seats)),
            truth=np.full(len(names), np.nan),
            groups=np.unique(groups, return_inverse=True)[1].astype(np.intp),
            judges=np.arange(len(seats)),
            families=tuple(seat.family for seat in seats),
        )
        return cls(table, places, np.array(orders, dtype=float))

    @property
    def has_order(self) -> bool:
        """Whether every pair was shown in one order to all judges."""
        return not np.isnan(self.shown_first).any()

    def in_both_directions(self) -> MethodTable:
        """Every row twice, the second time with its sides exchanged, (2 N, J)."""
        table = self.table
        return replace(
            table,
            items=(*table.items, *table.items),
            codes=np.concatenate([table.codes, _exchange_sides(table.codes)]),
            truth=np.tile(table.truth, 2),
            groups=np.tile(table.groups, 2),
        )

    def from_both_directions(self, p: Floats) -> Floats:
        """The share of the first candidate, (N,), from those of both directions, (2 N,)."""
        n = len(self.places)
        share: Floats = (p[:n] + 1 - p[n:]) / 2
        return share

    def by_order(self, seed: int) -> MethodTable:
        """The rows with the response shown first as side 1, (N, J); drawn where there is none."""
        exchange = self._is_second(seed)
        codes = np.where(exchange[:, None], _exchange_sides(self.table.codes), self.table.codes)
        return replace(self.table, codes=codes)

    def from_order(self, p: Floats, seed: int) -> Floats:
        """The share of the first candidate, (N,), from that of the response shown first."""
        return np.where(self._is_second(seed), 1 - p, p)

    def _is_second(self, seed: int) -> Bools:
        draws = np.random.default_rng(seed).random(len(self.places))
        return np.where(np.isnan(self.shown_first), draws, self.shown_first) < 0.5

    def wins(self, rankings: Sequence[ItemRankings], p: Floats) -> list[Floats]:
        """By item the share of each pair that its row candidate has, (K, K); 0 where none voted."""
        tables = [np.zeros((len(item.candidates),) * 2) for item in rankings]
        for (index, a, b), share in zip(self.places, p.tolist(), strict=True):
            tables[index][a, b], tables[index][b, a] = share, 1 - share
        return tables


def _order(item: ItemRankings, first: str, second: str) -> float:
    if first not in item.page_order or second not in item.page_order:
        return nan
    return float(item.page_order.index(first) < item.page_order.index(second))


def _exchange_sides(codes: VoteCodes) -> VoteCodes:
    """The votes with the two sides exchanged; ties and gaps stay."""
    return np.where(codes == 0, 1, np.where(codes == 1, 0, codes)).astype(np.int8)


def _votes_of_seat(item: ItemRankings, judges: Sequence[str]) -> VoteCodes:
    """The vote of a seat on each pair, (K, K): 1 where the row is better, 0, a tie or missing.

    Over several presentations it is the side taken more often, a tie where neither is.
    """
    rows = [item.ranks[judge] for judge in judges if judge in item.ranks]
    if not rows:
        return np.full((len(item.candidates),) * 2, MISSING, np.int8)
    ranks = np.concatenate(rows)
    return _pair_votes(ranks.shape, ranks.tobytes())


# Thousands of items are ranked in a few ways only.
@lru_cache(maxsize=4096)
def _pair_votes(shape: tuple[int, ...], ranks: bytes) -> VoteCodes:
    table = np.frombuffer(ranks).reshape(shape)
    outcomes = np.sign(table[:, None, :] - table[:, :, None])
    lead = np.nansum(outcomes, axis=0)
    votes = np.where(lead > 0, 1, np.where(lead < 0, 0, TIE))
    return np.where(np.isnan(outcomes).all(axis=0), MISSING, votes).astype(np.int8)
