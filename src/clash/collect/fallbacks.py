"""Who judges in place of a judge: the judge itself, and its fallbacks once its model is down.

A fallback is a judge of its own in every record, with the vote and the weight of the judge whose
place it takes. The state lives in this process alone: a resumed run asks the judge itself first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clash.collect.plan import FallbackJudge
    from clash.config import Judge
    from clash.records import Judgment

DOWN_AFTER = 3
"""Consecutive calls that failed, retries included, after which a model counts as down."""
_DOWN = frozenset({"rate_limit", "overloaded", "server", "timeout", "connection", "tls", "proxy"})
"""Error classes that say something about the model's server and not about the question."""


@dataclass
class _JudgeChain:
    """A judge and its fallbacks, in the order they are asked.

    Attributes:
        position: index of the judge that is asked now.
        failures: consecutive calls to it that failed.
    """

    judges: Sequence[Judge]
    position: int = 0
    failures: int = 0


class Fallbacks:
    """The judges of a run, and the fallbacks that replace those whose models are down.

    Args:
        judges: the voting judges and the observers.
        fallback_judges: the fallbacks of each judge that has some, in the order they are asked.
    """

    def __init__(
        self, judges: Sequence[Judge], fallback_judges: Mapping[str, Sequence[FallbackJudge]]
    ) -> None:
        self._chains = {
            judge.id: _JudgeChain((judge, *fallback_judges.get(judge.id, ()))) for judge in judges
        }

    @property
    def replaced_judges(self) -> list[Judge]:
        """Judges and fallbacks that are not asked any more, since a later one took over."""
        return [
            judge for chain in self._chains.values() for judge in chain.judges[: chain.position]
        ]

    def current_judge(self, judge: Judge) -> Judge:
        """The judge that takes ``judge``'s place at the moment."""
        chain = self._chains[judge.id]
        return chain.judges[chain.position]

    def next_judge(
        self, judge: Judge, current: Judge, judgment: Judgment, *, model_stopped: bool
    ) -> Judge | None:
        """Who is asked about the same page next; null where the judgment stands.

        Args:
            judge: the judge of the panel.
            current: who was asked in its place.
            judgment: the result.
            model_stopped: the model of ``current`` is not asked any more in this run.
        """
        chain = self._chains[judge.id]
        number = list(chain.judges).index(current)
        is_last = number == len(chain.judges) - 1
        # A recording has no answer of a model that had stopped, so a replay looks each page up in
        # the next fallback and leaves the chain where it is.
        if current.provider == "replay" and not judgment.is_usable and not is_last:
            return chain.judges[number + 1]
        if not (model_stopped or self._is_down(chain, number, judgment)) or is_last:
            return None
        # Several pages were with the model when it stopped; only the first moves the chain on.
        if chain.position == number:
            chain.position, chain.failures = number + 1, 0
        return chain.judges[number + 1]

    @staticmethod
    def _is_down(chain: _JudgeChain, number: int, judgment: Judgment) -> bool:
        """Whether the model of judge ``number`` is down; counts the failure where it is one."""
        if chain.position > number:
            return not judgment.is_usable
        error_class = (judgment.error or "").partition(":")[0]
        chain.failures = chain.failures + 1 if error_class in _DOWN else 0
        return chain.failures >= DOWN_AFTER
