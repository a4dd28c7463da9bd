"""promptfoo's JSON output: providers and prompts on test cases, graded by assertions.

A result has ``testIdx``, ``promptIdx``, ``provider``, ``prompt``, ``vars``, ``response``, ``error``,
``latencyMs``, ``cost`` and ``gradingResult.componentResults``: one for each assertion, with
``pass``, ``score`` and ``assertion``. What a model graded becomes a judge's ranking of the test's
outputs; deterministic assertions become an observer, since no judge spoke.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clash.datasets import record_files
from clash.datasets.foreign_run import ForeignRunBuilder
from clash.datasets.importers.fastchat import rank_by_score
from clash.errors import InputError
from clash.files.inputs import without_gz
from clash.records import Criteria, Criterion

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from clash.datasets.foreign_run import ForeignRun

CHECKS = "promptfoo:checks"
_BEST = "select-best"
_GRADED_KINDS = (
    "llm-rubric",
    "g-eval",
    "model-graded-",
    "factuality",
    "answer-relevance",
    "context-",
    "conversation-relevance",
    "search-rubric",
    "agent-rubric",
    "pi",
)


@dataclass(frozen=True)
class _Cell:
    """One output of one test."""

    candidate: str
    text: str | None
    result: Mapping[str, Any]

    def components(self) -> list[Mapping[str, Any]]:
        grading = self.result.get("gradingResult") or {}
        return [c for c in grading.get("componentResults") or [] if isinstance(c, dict)]


def is_here(path: Path) -> bool:
    """Whether a file is such an output."""
    if not path.is_file() or without_gz(path).suffix.lower() != ".json":
        return False
    value = record_files.read_json(path)
    return isinstance(value, dict) and _results(value) is not None


def read(path: Path) -> list[ForeignRun]:
    """The results of an output file, as one run.

    Raises:
        InputError: it is not an output of promptfoo.
    """
    value = record_files.read_json(path)
    results = _results(value) if isinstance(value, dict) else None
    if results is None:
        raise InputError("is not an output of promptfoo (no results.results)", path=path)
    tests = _tests([_cell(result) for result in results])
    names = _short_names(tests)
    collector = ForeignRunBuilder()
    groups: dict[str, str] = {}
    for number, ((test, _), cells) in enumerate(tests.items(), start=1):
        item_id = f"test-{number:03d}"
        _add(collector, item_id, cells, names, group=groups.setdefault(test, item_id))
    note = "a model-graded score of each output alone becomes a ranking by score"
    return [collector.build("promptfoo", str(path), note)]


def _results(value: Mapping[str, Any]) -> list[Any] | None:
    inner = value.get("results")
    results = inner.get("results") if isinstance(inner, dict) else None
    return results if isinstance(results, list) else None


def _tests(cells: Sequence[_Cell]) -> dict[tuple[str, int], list[_Cell]]:
    """Outputs by test; a repeated evaluation of a test is a test of its own."""
    tests: dict[tuple[str, int], list[_Cell]] = defaultdict(list)
    repeats: Counter[tuple[str, str]] = Counter()
    for cell in cells:
        test = _test(cell.result)
        tests[test, repeats[test, cell.candidate]].append(cell)
        repeats[test, cell.candidate] += 1
    return tests


def _test(result: Mapping[str, Any]) -> str:
    if "testIdx" in result:
        return str(result["testIdx"])
    return json.dumps(result.get("vars") or {}, sort_keys=True)


def _cell(result: Mapping[str, Any]) -> _Cell:
    output = (result.get("response") or {}).get("output")
    text = output if isinstance(output, str) or output is None else json.dumps(output)
    return _Cell(f"{_provider(result)}\x1f{_prompt(result)}", text, result)


def _provider(result: Mapping[str, Any]) -> str:
    provider = result.get("provider") or {}
    if isinstance(provider, str):
        return provider
    return provider.get("label") or provider.get("id") or "provider"


def _prompt(result: Mapping[str, Any]) -> str:
    prompt = result.get("prompt") or {}
    index = result.get("promptIdx")
    return str(prompt.get("label") or prompt.get("raw") or index)


def _short_names(tests: Mapping[tuple[str, int], Sequence[_Cell]]) -> dict[str, str]:
    """The provider's name, with the prompt's number where a provider had several prompts."""
    prompts: dict[str, list[str]] = defaultdict(list)
    for cell in (cell for cells in tests.values() for cell in cells):
        provider, _, prompt = cell.candidate.partition("\x1f")
        if prompt not in prompts[provider]:
            prompts[provider].append(prompt)
    most = max(len(cells) for cells in tests.values()) if tests else 0
    single = most <= len(prompts)
    return {
        f"{provider}\x1f{prompt}": provider
        if single or len(labels) == 1
        else f"{provider} (prompt {n})"
        for provider, labels in prompts.items()
        for n, prompt in enumerate(labels, start=1)
    }


def _add(
    collector: ForeignRunBuilder,
    item_id: str,
    cells: Sequence[_Cell],
    names: Mapping[str, str],
    *,
    group: str,
) -> None:
    prompts = {(cell.result.get("prompt") or {}).get("raw") for cell in cells}
    variables = json.dumps(cells[0].result.get("vars") or {}, ensure_ascii=False)
    collector.item(item_id, prompts.pop() if len(prompts) == 1 else variables, group=group)
    outputs: dict[str, _Cell] = {}
    for cell in cells:
        name = names[cell.candidate]
        is_failure = cell.text is None or cell.result.get("failureReason") == 2
        latency = cell.result.get("latencyMs")
        collector.response(
            item_id,
            name,
            None if is_failure else cell.text,
            source="generated",
            cost_usd=cell.result.get("cost"),
            latency_s=None if latency is None else latency / 1000,
            error=(cell.result.get("error") or "no output") if is_failure else None,
        )
        if not is_failure:
            outputs[name] = cell
    if len(outputs) >= 2:
        _judge(collector, item_id, outputs)


def _judge(collector: ForeignRunBuilder, item_id: str, cells: Mapping[str, _Cell]) -> None:
    scores: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    rubrics: dict[str, None] = {}
    for name, cell in cells.items():
        for component in cell.components():
            judge, criterion = _grader(component)
            scores[judge][name].append(float(component.get("score") or 0))
            if criterion and judge != CHECKS:
                rubrics[criterion] = None
    if rubrics:
        weight = 1 / len(rubrics)
        criteria = [Criterion(name=text, weight=weight) for text in rubrics]
        collector.criteria(Criteria(item_id=item_id, source="fixed", criteria=criteria))
    for judge, judge_scores in scores.items():
        means = {name: sum(grades) / len(grades) for name, grades in judge_scores.items()}
        reason = _why_not(judge, means, cells)
        collector.judgment(
            item_id,
            list(cells),
            judge,
            None if reason else rank_by_score(means),
            error=reason,
            role="observer" if judge == CHECKS else "voting",
        )


def _why_not(judge: str, means: Mapping[str, float], cells: Mapping[str, _Cell]) -> str | None:
    if means.keys() != cells.keys():
        return "not every output was graded"
    if judge.startswith(_BEST) and not any(means.values()):
        return "the verdict could not be read, so every output failed"
    return None


def _grader(component: Mapping[str, Any]) -> tuple[str, str | None]:
    """Who graded, and by what."""
    assertion = component.get("assertion") or {}
    kind = str(assertion.get("type") or "")
    if kind != _BEST and not kind.removeprefix("not-").startswith(_GRADED_KINDS):
        return CHECKS, None
    provider = assertion.get("provider")
    if isinstance(provider, dict):
        provider = provider.get("id")
    value = assertion.get("value")
    judge = f"{kind}/{provider}" if provider else kind
    return judge, value if isinstance(value, str) else None
