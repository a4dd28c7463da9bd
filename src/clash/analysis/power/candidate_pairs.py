"""A pilot of more than two candidates, one pair at a time.

Side A of a row is the first candidate by name, another one in each pair: pooled over pairs, its
wins are the wins of nobody. A question about two candidates is answered from the rows of those two.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from clash.errors import ConfigError, StatisticsError
from clash.votes.from_run import require_rankings, vote_rows
from clash.votes.lines import NamedVoteLine, holds_rankings, read_lines, read_rankings
from clash.votes.matrix import pair_item

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from clash.store.folder import RunFolder
    from clash.votes import Votes


FEW = 10
"""Prompts below which no correlation is read off them."""
MOST_PAIRS = 10
"""Pairs that are worked out beside the one asked for."""


@dataclass(frozen=True, order=True)
class CandidatePair:
    """Two candidates.

    Attributes:
        first: whose wins are counted.
    """

    first: str
    second: str

    @property
    def name(self) -> str:
        """Both."""
        return f"{self.first} against {self.second}"


def names_of_run(folder: RunFolder) -> dict[str, CandidatePair]:
    """The candidates on side A and side B, by item id of the run's votes.

    Raises:
        InputError: the run judges each text by itself.
    """
    require_rankings(folder.manifest(), "power from a pilot run")
    return {
        row.item: CandidatePair(str(row.extra["model_a"]), str(row.extra["model_b"]))
        for row in vote_rows(folder)
    }


def names_of_file(path: Path) -> dict[str, CandidatePair]:
    """The same, of a votes file that says so (``model_a``, ``model_b``) or holds rankings.

    Empty for a file that does not name candidates.
    """
    if holds_rankings(path):
        return _names_of_rankings(path)
    lines = (line for chunk in read_lines(path, NamedVoteLine) for line in chunk)
    return {
        str(line.item): CandidatePair(line.model_a, line.model_b)
        for line in lines
        if line.model_a and line.model_b
    }


def _names_of_rankings(path: Path) -> dict[str, CandidatePair]:
    """Items are named as where rankings become votes on pairs."""
    candidates: dict[str, set[str]] = defaultdict(set)
    for ballot in read_rankings(path):
        candidates[ballot.item] |= set(ballot.places or {})
    return {
        pair_item(item, a, b, len(names)): CandidatePair(a, b)
        for item, names in candidates.items()
        for a, b in combinations(sorted(names), 2)
    }


@dataclass(frozen=True)
class PairVotes:
    """Votes on pairs of named candidates.

    Attributes:
        names: the sides of each item.
    """

    votes: Votes
    names: Mapping[str, CandidatePair]

    @property
    def candidates(self) -> list[str]:
        """By name."""
        return sorted({name for s in self._sides() if s for name in (s.first, s.second)})

    @property
    def n_met(self) -> int:
        """Pairs that met at all."""
        return len(self._prompts())

    @property
    def is_scattered(self) -> bool:
        """Whether most pairs met on fewer than 10 prompts."""
        return median(self._prompts().values() or [0]) < FEW

    def _sides(self) -> list[CandidatePair | None]:
        return [self.names.get(item) for item in self.votes.items]

    def pairs(self) -> list[CandidatePair]:
        """Pairs that met on two prompts or more, the best placed first.

        Candidates are placed by their share of points over all ballots, ties half.
        """
        order = {name: at for at, name in enumerate(self._by_points())}
        possible = [
            CandidatePair(*sorted(pair, key=order.__getitem__))
            for pair in combinations(self.candidates, 2)
        ]
        prompts = self._prompts()
        usable = [
            pair for pair in possible if prompts.get(frozenset((pair.first, pair.second)), 0) >= 2
        ]
        return sorted(usable, key=lambda pair: (order[pair.first] + order[pair.second], pair))

    def _prompts(self) -> dict[frozenset[str], int]:
        """Prompts (groups) on which each pair met."""
        groups: dict[frozenset[str], set[int]] = {}
        for sides, group in zip(self._sides(), self.votes.groups.tolist(), strict=True):
            if sides is not None:
                groups.setdefault(frozenset((sides.first, sides.second)), set()).add(group)
        return {pair: len(members) for pair, members in groups.items()}

    def _by_points(self) -> list[str]:
        """Candidates, best first; those level by name."""
        has_vote = ~np.isnan(self.votes.matrix)
        wins_of_first, n_votes = np.nan_to_num(self.votes.matrix).sum(axis=1), has_vote.sum(axis=1)
        points = dict.fromkeys(self.candidates, 0.0)
        ballots = dict.fromkeys(self.candidates, 0.0)
        for sides, wins, n in zip(
            self._sides(), wins_of_first.tolist(), n_votes.tolist(), strict=True
        ):
            if sides is not None:
                for name, share in ((sides.first, wins), (sides.second, n - wins)):
                    points[name] += share
                    ballots[name] += n
        return sorted(points, key=lambda name: (-points[name] / max(1.0, ballots[name]), name))

    def of(self, pair: CandidatePair) -> Votes:
        """The rows of a pair, its first candidate on side A in all of them.

        Raises:
            StatisticsError: the two never met.
        """
        sides = self._sides()
        rows = np.array(
            [s is not None and {s.first, s.second} == {*_names_of(pair)} for s in sides]
        )
        if not rows.any():
            raise StatisticsError(f"{pair.first} and {pair.second} never met")
        rows_of_pair = self.votes.take(rows)
        is_turned = np.array([s is not None and s.first == pair.second for s in sides])[rows]
        matrix = np.where(is_turned[:, None], 1 - rows_of_pair.matrix, rows_of_pair.matrix)
        labels = np.where(is_turned, 1 - rows_of_pair.labels, rows_of_pair.labels)
        return replace(rows_of_pair, matrix=matrix, labels=labels)


def _names_of(pair: CandidatePair) -> tuple[str, str]:
    return pair.first, pair.second


def choose_pair(field: PairVotes, names: str | None) -> CandidatePair | None:
    """The pair asked for, else the two best candidates; null where the votes name none.

    Null too where many pairs met on few prompts each: hardly one is a pilot by itself.

    Args:
        field: votes.
        names: ``a,b``.

    Raises:
        ConfigError: no such pair, or votes that name nobody.
    """
    pairs = field.pairs() if field.names else []
    if names is None:
        return None if not pairs or (field.n_met > MOST_PAIRS and field.is_scattered) else pairs[0]
    candidates = field.candidates
    pair_names = [name.strip() for name in names.split(",")]
    if (
        len(pair_names) != 2
        or pair_names[0] == pair_names[1]
        or not set(pair_names) <= set(candidates)
    ):
        choices = (
            f"two of {', '.join(candidates)}"
            if candidates
            else "these votes do not name the candidates"
        )
        raise ConfigError(f"no pair {names!r}", field="--pair", hint=choices)
    return CandidatePair(*pair_names)


def other_pairs(pairs: Sequence[CandidatePair], pair: CandidatePair) -> list[CandidatePair]:
    """The pairs beside one, the best placed first, no more than are worked out."""
    beside = [rival for rival in pairs if {*_names_of(rival)} != {*_names_of(pair)}]
    return beside[: MOST_PAIRS - 1]
