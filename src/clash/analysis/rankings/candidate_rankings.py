"""The rankings of candidates by every method, as results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clash.stats.typing import Floats
    from clash.stats.voting.rules import RuleFit


@dataclass(frozen=True)
class CandidatePlace:
    """A candidate by one method.

    Attributes:
        score: larger is better; what it is, the method says.
        low: of the score's interval; null, as ``high`` and what follows, where the candidate was
            judged on fewer than two items or the method has no replicates.
        rank: 1 is best, tied candidates share the better place.
        rank_low: of the rank's interval, which holds together with those of all others.
        first: share of the replicates in which it is first, ties shared.
        tied: who shares its place.
        close: of whom it is not clearly apart: neither is ahead in 97.5% of the replicates.
    """

    json_keys: ClassVar[Mapping[str, str]] = {"tied": "tied_with", "close": "not_apart_from"}

    candidate: str
    score: float
    rank: int
    low: float | None = None
    high: float | None = None
    rank_low: int | None = None
    rank_high: int | None = None
    first: float | None = None
    tied: tuple[str, ...] = ()
    close: tuple[str, ...] = ()


@dataclass(frozen=True)
class MethodRanking:
    """A method's ranking.

    Attributes:
        status: ``ok``, or ``refused`` with the reason in ``notes``.
        fit: of an iterative method.
        places: best first.
        replicates: that the intervals rest on.
    """

    json_keys: ClassVar[Mapping[str, str]] = {"places": "ranking"}
    json_omits: ClassVar[tuple[str, ...]] = ("method", "fit")
    json_properties: ClassVar[tuple[str, ...]] = ("converged",)

    method: str
    status: str
    fit: RuleFit | None = None
    places: tuple[CandidatePlace, ...] = ()
    replicates: int = 0
    notes: tuple[str, ...] = ()

    @property
    def converged(self) -> bool | None:
        """Null where it was refused; true for a method without iterations."""
        return None if self.status != "ok" else self.fit is None or self.fit.converged

    @property
    def first(self) -> tuple[str, ...]:
        """The candidates in first place; several where they tie."""
        return tuple(position.candidate for position in self.places if position.rank == 1)


@dataclass(frozen=True)
class CandidateRankings:
    """All methods on the same rankings.

    Attributes:
        weights: of the judges, in every method but ``majority`` and ``weighted-majority``.
        weights_by: where they come from.
        wins: (K, K), weight of the rankings that put the row before the column; ``ties`` level.
        condorcet: who beats every other head to head, null where nobody does.
        smith: the smallest set whose members beat everyone outside it.
        cycle: a shortest cycle of majorities, within ``smith`` where that is more than one;
            empty where there is none.
        groups: sets of candidates that comparisons link; across them nothing compares.
        differences: in words, where the methods differ and why.
    """

    json_keys: ClassVar[Mapping[str, str]] = {
        "n_ranked_items": "n_judged",
        "n_rankings": "n_ballots",
        "failed": "n_failed",
        "condorcet": "condorcet_winner",
        "smith": "smith_set",
        "groups": "connected",
    }
    json_omits: ClassVar[tuple[str, ...]] = ("wins", "ties", "methods")

    candidates: tuple[str, ...]
    absent: tuple[str, ...]
    weights: Mapping[str, float]
    weights_by: str
    n_items: int
    n_ranked_items: int
    n_clusters: int
    n_rankings: int
    failed: int
    seed: int
    replicates: int
    level: float
    wins: Floats
    ties: Floats
    condorcet: str | None
    smith: tuple[str, ...]
    cycle: tuple[str, ...]
    groups: tuple[tuple[str, ...], ...]
    methods: tuple[MethodRanking, ...]
    differences: tuple[str, ...]
    warnings: tuple[str, ...]
    notes: tuple[str, ...]

    def result(self, name: str) -> MethodRanking:
        """One method by name."""
        return next(m for m in self.methods if m.method == name)
