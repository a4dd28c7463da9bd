"""The end-to-end test: responses generated afresh and judged, three times over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clash.datasets.foreign_run import ForeignRun, PublishedVerdict
from clash.records import Item, Response
from clash.reproduction.agent_clash.experiments import ExperimentMaterial
from clash.reproduction.agent_clash.logged_judgments import (
    LoggedJudgments,
    read_judgments,
    voting_judges,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clash.reproduction.agent_clash.files import EndToEndCycle, PublishedFiles


def runs(files: PublishedFiles) -> list[ForeignRun]:
    """One run a cycle; the later ones repeat the first, with other responses."""
    if files.end_to_end is None:
        return []
    log = {evaluation.eval_id: evaluation for evaluation in files.matrix.other}
    voting = voting_judges(log.values())
    cycle_runs = []
    for number, cycles in enumerate(files.end_to_end.runs.values(), start=1):
        judgments = {
            cycle.prompt_id: read_judgments(log[cycle.eval_id], cycle.prompt_id, voting)
            for cycle in cycles
            if cycle.eval_id in log
        }
        cycle_runs.append(
            _material(files, cycles, judgments).run(
                f"e2e-{number}",
                "eval" if number == 1 else "rerun",
                judgments,
                f"{files.folder.name}, end to end, run {number}",
                voting=voting,
                parent=None if number == 1 else "e2e-1",
                notes=["responses were generated for this run; their texts are not published"],
            )
        )
    return cycle_runs


def _material(
    files: PublishedFiles, cycles: Sequence[EndToEndCycle], judgments: Mapping[str, LoggedJudgments]
) -> ExperimentMaterial:
    if files.end_to_end is None:
        return ExperimentMaterial({}, {})
    prompts = {prompt.id: prompt for prompt in files.end_to_end.prompts}
    models = files.end_to_end.models
    return ExperimentMaterial(
        items={
            cycle.prompt_id: Item(
                item_id=cycle.prompt_id,
                prompt=prompts[cycle.prompt_id].prompt,
                tags=[prompts[cycle.prompt_id].difficulty],
            )
            for cycle in cycles
        },
        responses={
            cycle.prompt_id: [
                _response(cycle.prompt_id, models["model_a"], cycle.hash_a, cycle.gen_latency_a),
                _response(cycle.prompt_id, models["model_b"], cycle.hash_b, cycle.gen_latency_b),
            ]
            for cycle in cycles
        },
        published_verdicts={
            cycle.prompt_id: _published_verdict(cycle, judgments) for cycle in cycles
        },
    )


def _response(item_id: str, model: str, digest: str, latency_ms: float) -> Response:
    return Response(
        item_id=item_id,
        candidate=model,
        model=model,
        source="generated",
        latency_s=latency_ms / 1000,
        error=f"not published; its hash is {digest}",
    )


def _published_verdict(
    cycle: EndToEndCycle, judgments: Mapping[str, LoggedJudgments]
) -> PublishedVerdict:
    judgment = judgments.get(cycle.prompt_id)
    return PublishedVerdict(
        item_id=cycle.prompt_id,
        winner=cycle.ai_winner,
        confidence=cycle.confidence,
        cost_usd=cycle.judge_cost,
        elapsed_s=cycle.elapsed_s,
        time=judgment.time if judgment else None,
    )
