"""Who judges in a judge's place: the judge, and its fallbacks once its model has stopped or is down.

A stand-in is a judge of its own in every record, with the vote and the weight of the one it stands
in for. Nothing of this outlives the process: a resumed run asks the judge itself first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clash.collect.plan import StandIn
    from clash.config import Judge
    from clash.records import Judgment

DOWN_AFTER = 3
"""Calls in a row that failed, retries and all, from which on a model counts as down."""
_DOWN = frozenset({"rate_limit", "overloaded", "server", "timeout", "connection", "tls", "proxy"})


@dataclass
class _Place:
    """A judge and its fallbacks.

    Attributes:
        at: which of them is asked.
        failures: calls to it that failed in a row.
    """

    sitters: Sequence[Judge]
    at: int = 0
    failures: int = 0


class Bench:
    """The judges of a run, and who sits in their places.

    Args:
        judges: those with a vote or a view.
        stand_ins: by judge, in the order they are asked.
    """

    def __init__(self, judges: Sequence[Judge], stand_ins: Mapping[str, Sequence[StandIn]]) -> None:
        self._places = {judge.id: _Place((judge, *stand_ins.get(judge.id, ()))) for judge in judges}

    @property
    def replaced(self) -> list[Judge]:
        """Judges and stand-ins in whose place another one judges."""
        return [sitter for place in self._places.values() for sitter in place.sitters[: place.at]]

    def sitter(self, judge: Judge) -> Judge:
        """Who is asked now in the place of ``judge``."""
        place = self._places[judge.id]
        return place.sitters[place.at]

    def after(
        self, judge: Judge, sitter: Judge, judgment: Judgment, *, stopped: bool
    ) -> Judge | None:
        """Who is asked about the same page next; null where the judgment stands.

        Args:
            judge: whose place it is.
            sitter: who was asked.
            judgment: what came of it.
            stopped: its model is not asked any more in this run.
        """
        place = self._places[judge.id]
        number = list(place.sitters).index(sitter)
        last = number == len(place.sitters) - 1
        # A recording holds no answer of a model that had stopped: page by page, the next is looked up.
        if sitter.provider == "replay" and judgment.ranking is None and not last:
            return place.sitters[number + 1]
        if not (stopped or self._is_down(place, number, judgment)) or last:
            return None
        # Several pages were with it when it stopped; only the first moves on.
        if place.at == number:
            place.at, place.failures = number + 1, 0
        return place.sitters[number + 1]

    @staticmethod
    def _is_down(place: _Place, number: int, judgment: Judgment) -> bool:
        if place.at > number:
            return judgment.ranking is None
        error_class = (judgment.error or "").partition(":")[0]
        place.failures = place.failures + 1 if error_class in _DOWN else 0
        return place.failures >= DOWN_AFTER
