"""Non-LLM baselines: judges that are deterministic, offline, and blind to quality.

They are the control group of every report: where a panel agrees with the longest response on 71%
of the items, the report says so. They judge in the same form as a language model, so that they
can be members of a panel too (``baseline/longest``).
"""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, field
from operator import mul
from typing import TYPE_CHECKING

from clash.baselines.scorers import BASELINES, Baseline, BaselineTask, Mark, Marks
from clash.errors import ConfigError, one_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clash.records import Criterion, Groups, Turn

__all__ = [
    "BASELINES",
    "Baseline",
    "BaselineJudgment",
    "BaselineTask",
    "Case",
    "find",
    "judge",
    "measure_text",
    "step",
    "top",
]

_EMPTY = Mark(0.0, lambda: "empty response")
_EQUAL = "equal: ordered by text hash"


@dataclass(frozen=True, slots=True)
class Case:
    """A plain :class:`BaselineTask`, for callers outside a run."""

    turns: Sequence[Turn]
    responses: Mapping[str, str]
    criteria: Sequence[Criterion] = ()
    ties: bool = True


@dataclass(frozen=True, slots=True)
class BaselineJudgment:
    """A baseline's judgment of a blinded item.

    Attributes:
        ranking: labels in groups, best first.
        scores: 1 to 5, by label and name of the criterion; empty without criteria.
        reasons: at most 15 words for each score of 3 or less, by the same keys.
    """

    ranking: Groups
    scores: dict[str, dict[str, int]] = field(default_factory=dict)
    reasons: dict[str, dict[str, str]] = field(default_factory=dict)


def find(name: str) -> Baseline:
    """A baseline by name.

    Raises:
        ConfigError: there is not one of this name.
    """
    if name not in BASELINES:
        raise ConfigError(
            f"no baseline {name!r}",
            field="model",
            hint=one_of(f"baseline/{name}", (f"baseline/{baseline}" for baseline in BASELINES)),
        )
    return BASELINES[name]


def judge(name: str, task: BaselineTask) -> BaselineJudgment:
    """Judge a blinded item: rank by the measure, averaged over the criteria by weight.

    Labels play no part: the same texts under other labels get the same ranks. Responses of equal
    measure share a rank; where ties are not allowed they are ordered by a hash of their text, and
    the reason says so. Identical texts share a rank even then: only the label could order them.
    An empty response measures 0.

    Raises:
        ConfigError: there is no baseline of this name.
    """
    marks = _measure(name, task)
    means = _means(marks, task)
    broken: set[str] = set()
    if not task.ties:
        sharing = Counter(means.values())
        broken = {label for label, mean in means.items() if sharing[mean] > 1}
    names = [criterion.name for criterion in task.criteria]
    rows = marks.items() if names else ()
    scores = {label: list(map(_score, row)) for label, row in rows}
    return BaselineJudgment(
        ranking=_rank(means, task),
        scores={label: dict(zip(names, points, strict=True)) for label, points in scores.items()},
        reasons={
            label: reasons
            for label, row in rows
            if (reasons := _reasons(names, row, scores[label], broken=label in broken))
        },
    )


def measure_text(name: str, task: BaselineTask) -> Mark:
    """The measure of the only text of a task, 0 to 1, averaged over the criteria by weight.

    Raises:
        ConfigError: there is no baseline of this name.
    """
    marks = _measure(name, task)
    ((label, row),) = marks.items()
    return Mark(_means(marks, task)[label], row[0].explain)


def step(value: float, n: int) -> int:
    """Which of ``n`` equal parts of the range from 0 to 1 a measure falls in, 0 for the lowest."""
    return min(n - 1, int(n * value + 1e-9))


def top(name: str, task: BaselineTask) -> list[str]:
    """The first group of what :func:`judge` ranks, without its scores and reasons.

    Raises:
        ConfigError: there is no baseline of this name.
    """
    return _rank(_means(_measure(name, task), task), task)[0]


def _measure(name: str, task: BaselineTask) -> Marks:
    marks = find(name).measure(task)
    for label, text in task.responses.items():
        if not text or text.isspace():
            marks[label] = [_EMPTY] * len(marks[label])
    return marks


def _means(marks: Marks, task: BaselineTask) -> dict[str, float]:
    weights = [criterion.weight for criterion in task.criteria] or [1.0]
    total = sum(weights)
    values = {label: [mark.value for mark in row] for label, row in marks.items()}
    # Rounded, since equal measures must not differ by a rounding.
    return {label: round(sum(map(mul, weights, row)) / total, 9) for label, row in values.items()}


def _rank(means: Mapping[str, float], task: BaselineTask) -> Groups:
    groups: dict[tuple[float, str], list[str]] = {}
    for label, mean in means.items():
        key = -mean, "" if task.ties else _hash(task.responses[label])
        groups.setdefault(key, []).append(label)
    return [sorted(groups[key]) for key in sorted(groups)]


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _score(mark: Mark) -> int:
    """Fifths of the measure: 1 below 0.2, 5 from 0.8."""
    return 1 + step(mark.value, 5)


def _reasons(
    names: Sequence[str], row: Sequence[Mark], scores: Sequence[int], *, broken: bool
) -> dict[str, str]:
    reasons = {}
    for name, mark, score in zip(names, row, scores, strict=True):
        parts = [mark.reason] if score <= 3 else []
        if broken:
            parts.append(_EQUAL)
        if parts:
            reasons[name] = "; ".join(parts)
    return reasons
