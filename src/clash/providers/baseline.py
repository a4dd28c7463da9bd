"""Baselines: judges without a language model, behind the protocol of all providers."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from clash import baselines
from clash.errors import ProviderError
from clash.providers.base import Reply, Request
from clash.records import Tokens

if TYPE_CHECKING:
    from clash.baselines import BaselineJudgment
    from clash.providers.base import JudgeTask


class BaselineProvider:
    """``baseline/NAME``: judges offline, at once, for nothing, and always the same.

    It reads :attr:`Request.task`, not the prompt, and answers with the JSON that a language model
    is asked for, so that parsing, audit and replay work the same way.
    """

    account = "baseline"
    offline = True

    def __init__(self, name: str) -> None:
        self.baseline = baselines.find(name)

    async def complete(self, request: Request) -> Reply:
        """Judge the task.

        Raises:
            ProviderError: as :meth:`answer`.
        """
        return self.answer(request)

    def answer(self, request: Request) -> Reply:
        """Judge the task, without waiting for anything.

        Raises:
            ProviderError: there is no task: a baseline can neither generate nor write criteria.
        """
        if request.task is None:
            raise ProviderError(
                f"baseline/{self.baseline.name} is not a language model: it judges, and can"
                " neither generate responses nor write criteria",
                error_class="unsupported",
                action="stop",
            )
        start = time.perf_counter()
        answer = _answer(self.baseline.name, request.task)
        return Reply(
            text=json.dumps(answer, ensure_ascii=False),
            outcome="ok",
            request={"baseline": self.baseline.name, **request.task.data},
            response={"statement": self.baseline.statement, "answer": answer},
            status=None,
            finish_reason="stop",
            tokens=Tokens(input=0, output=0),
            cost_usd=0.0,
            served_model=f"baseline/{self.baseline.name}",
            structured="schema",
            latency_s=time.perf_counter() - start,
        )

    async def aclose(self) -> None:
        """Nothing was opened."""


def _answer(name: str, task: JudgeTask) -> dict[str, Any]:
    """The answer of a baseline in the form that ``prompts/answer.*.md`` asks for."""
    if task.choices or task.scale is not None:
        mark = baselines.measure_text(name, task)
        return {"reason": mark.reason, **_choice(mark.value, task)}
    return _ranking(baselines.judge(name, task), task)


def _choice(value: float, task: JudgeTask) -> dict[str, Any]:
    """The step of the scale, or the label, that a measure from 0 to 1 falls on.

    The labels divide the range in equal parts; the first is for the highest measures.
    """
    if task.scale is not None:
        low, high = task.scale
        return {"score": low + baselines.step(value, high - low + 1)}
    n = len(task.choices)
    return {"label": task.choices[n - 1 - baselines.step(value, n)]}


def _ranking(judgment: BaselineJudgment, task: JudgeTask) -> dict[str, Any]:
    """A ranking with its scores: criteria by number."""
    ties = task.ties or any(len(group) > 1 for group in judgment.ranking)
    ranking = judgment.ranking if ties else [group[0] for group in judgment.ranking]
    if not task.criteria:
        return {"ranking": ranking}
    return {
        "scores": {
            label: {
                f"C{number}": {
                    "score": judgment.scores[label][criterion.name],
                    "reason": judgment.reasons.get(label, {}).get(criterion.name, ""),
                }
                for number, criterion in enumerate(task.criteria, start=1)
            }
            for label in task.responses
        },
        "ranking": ranking,
    }
