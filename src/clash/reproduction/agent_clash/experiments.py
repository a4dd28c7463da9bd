"""The two experiments with human labels: MT-Bench, and Chatbot Arena in three runs."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from clash.datasets.foreign_run import ForeignRun, PublishedVerdict, no_criteria
from clash.datasets.loaders.mt_bench import category
from clash.records import Item, Kind, Label, Response
from clash.reproduction.agent_clash.logged_judgments import (
    LoggedJudgments,
    missing_judgment,
    read_judgments,
    voting_judges,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from clash.reproduction.agent_clash.files import (
        Evaluation,
        PublishedFiles,
        ResultRecord,
        TextPair,
    )

LICENCE = "CC-BY-4.0"
_NOT_PUBLISHED = "not published"
_CRITERIA = "criteria were generated for each item and not published"
_TALLY = (
    "the published tally adds judging candidates (weight 1) to the panel (weight 2);"
    " here they are observers and do not count"
)
_CONFIDENCE = (
    "the published confidence is the tally's margin over the number of judging candidates"
    " (at least 1), not a share"
)
_CATEGORIES = {
    "STABLE_WRONG": "stably-incorrect",
    "UNSTABLE": "unstable",
    "LOW_CONF_OK": "low-confidence-correct",
}


@dataclass(frozen=True)
class ExperimentMaterial:
    """Items with their responses and published verdicts, by item id, judged or not."""

    items: Mapping[str, Item]
    responses: Mapping[str, list[Response]]
    published_verdicts: Mapping[str, PublishedVerdict] = field(default_factory=dict)

    def run(
        self,
        name: str,
        kind: Kind,
        judgments: Mapping[str, LoggedJudgments],
        source: str,
        *,
        voting: Sequence[str] = (),
        parent: str | None = None,
        notes: Iterable[str] = (),
    ) -> ForeignRun:
        """The run of these items; one that is not judged has its voting judges failed."""
        items = tuple(self.items.values())
        ids = [item.item_id for item in items]
        missing_judgments = {
            i: [missing_judgment(i, judge) for judge in voting] for i in ids if i not in judgments
        }
        return ForeignRun(
            name=name,
            kind=kind,
            parent=parent,
            source=source,
            licence=LICENCE,
            items=items,
            responses=tuple(r for i in ids for r in self.responses[i]),
            blinding=tuple(judgments[i].blinding for i in ids if i in judgments),
            criteria=no_criteria(items),
            judgments=tuple(
                j
                for i in ids
                for j in (judgments[i].judgments if i in judgments else missing_judgments[i])
            ),
            verdicts=tuple(self._paper_figures(i, judgments) for i in ids),
            labels=tuple(
                Label(item_id=item.item_id, annotator="human", winner=item.label)
                for item in items
                if item.label is not None
            ),
            notes=(
                *notes,
                *_note_missing(missing_judgments),
                *_note_ties(judgments),
                _CRITERIA,
                _TALLY,
                _CONFIDENCE,
            ),
        )

    def _paper_figures(
        self, item_id: str, judgments: Mapping[str, LoggedJudgments]
    ) -> PublishedVerdict:
        """The verdict of the result file, else that of the log."""
        if item_id in self.published_verdicts or item_id not in judgments:
            return self.published_verdicts.get(item_id, PublishedVerdict(item_id=item_id))
        judgment = judgments[item_id]
        return PublishedVerdict(
            item_id=item_id,
            winner=judgment.winner,
            match=judgment.winner == self.items[item_id].label,
            cost_usd=judgment.cost_usd,
            time=judgment.time,
        )

    def only(self, ids: Iterable[str]) -> ExperimentMaterial:
        """The items of these ids, in the same order, without their published verdicts."""
        kept_ids = set(ids)
        return replace(
            self,
            items={i: item for i, item in self.items.items() if i in kept_ids},
            responses={i: responses for i, responses in self.responses.items() if i in kept_ids},
            published_verdicts={},
        )


def mt_bench(files: PublishedFiles) -> list[ForeignRun]:
    """The first experiment and its repeated evaluations; none without texts and results."""
    if files.pairs is None or files.mt_bench is None:
        return []
    pairs = {f"mtbench-{pair.id:03d}": pair for pair in files.pairs.pairs}
    voting = voting_judges(files.matrix.mtbench)
    newest, earlier = _by_age(files.matrix.mtbench, "mtbench", voting)
    results = {f"mtbench-{result.eval_id:03d}": result for result in files.mt_bench.results}
    material = ExperimentMaterial(
        items={item_id: _mt_bench_item(item_id, pair) for item_id, pair in pairs.items()},
        responses={i: _texts(i, pair) for i, pair in pairs.items()},
        published_verdicts=_published_verdicts(results, newest),
    )
    source = f"{files.folder.name}, first experiment"
    run = material.run("mt-bench", "validate", newest, source, voting=voting)
    return [run, *_retries(material, run, earlier, source)]


def arena(files: PublishedFiles) -> list[ForeignRun]:
    """The second experiment: the runs that the folder has result files for."""
    if files.arena is None:
        return []
    results = {_arena_id(result.eval_id): result for result in files.arena.results}
    voting = voting_judges(files.matrix.arena_r1)
    log, earlier = _by_age(files.matrix.arena_r1, "arena", voting)
    late = [e for e in files.matrix.other if re.fullmatch(r"arena_\d+", e.eval_id)]
    final, _ = _by_age([*late, *files.matrix.arena_r1], "arena", voting)
    material = _arena_material(results, final)
    source = f"{files.folder.name}, second experiment"
    first = material.run("arena-1", "validate", final, f"{source}, run 1", voting=voting)
    log_material = material.only(log)
    note = "the records that the paper's ablation was computed on; see arena-1 for the run"
    log_run = log_material.run(
        "arena-1-log", "validate", log, f"{source}, log of run 1", notes=[note]
    )
    runs = [first, log_run, *_retries(material, log_run, earlier, source)]
    for number, further in enumerate((files.arena_2, files.arena_3), start=2):
        if further is not None:
            evaluations = [
                e for e in files.matrix.other if e.eval_id.startswith(f"arena_r{number}_")
            ]
            runs.append(_rerun(number, further.results, evaluations, voting, source))
    return runs


def _rerun(
    number: int,
    results: Sequence[ResultRecord],
    evaluations: Sequence[Evaluation],
    voting: Sequence[str],
    source: str,
) -> ForeignRun:
    newest, _ = _by_age(evaluations, "arena", voting)
    material = _arena_material({_arena_id(result.eval_id): result for result in results}, newest)
    return material.run(
        f"arena-{number}",
        "rerun",
        newest,
        f"{source}, run {number}",
        voting=voting,
        parent="arena-1",
    )


def _arena_material(
    results: Mapping[str, ResultRecord], judgments: Mapping[str, LoggedJudgments]
) -> ExperimentMaterial:
    return ExperimentMaterial(
        items={item_id: _arena_item(item_id, result) for item_id, result in results.items()},
        responses={
            item_id: [
                Response(item_id=item_id, candidate=model, source="injected", error=_NOT_PUBLISHED)
                for model in (result.model_a, result.model_b)
                if model is not None
            ]
            for item_id, result in results.items()
        },
        published_verdicts=_published_verdicts(results, judgments),
    )


def _retries(
    material: ExperimentMaterial,
    run: ForeignRun,
    earlier: Mapping[str, LoggedJudgments],
    source: str,
) -> list[ForeignRun]:
    """Evaluations that a later one replaced, as a run of their own."""
    if not earlier:
        return []
    note = f"earlier evaluations of {len(earlier)} items, which {run.name} does not rest on"
    retry_material = material.only(earlier)
    name = f"{run.name}-retries"
    return [
        retry_material.run(
            name, "rerun", earlier, f"{source}, retries", parent=run.name, notes=[note]
        )
    ]


def _by_age(
    log: Sequence[Evaluation], prefix: str, voting: Sequence[str]
) -> tuple[dict[str, LoggedJudgments], dict[str, LoggedJudgments]]:
    """The newest evaluation of each item, and the one before it where there is one."""
    newest: dict[str, LoggedJudgments] = {}
    earlier: dict[str, LoggedJudgments] = {}
    for evaluation in sorted(log, key=lambda e: e.timestamp, reverse=True):
        item_id = f"{prefix}-{_number(evaluation.eval_id):03d}"
        index = earlier if item_id in newest else newest
        index.setdefault(item_id, read_judgments(evaluation, item_id, voting))
    return newest, earlier


def _number(eval_id: str) -> int:
    return int(eval_id.rpartition("_")[2])


def _arena_id(number: int) -> str:
    return f"arena-{number:03d}"


def _mt_bench_item(item_id: str, pair: TextPair) -> Item:
    subject = category(pair.question_id)
    return Item(
        item_id=item_id,
        prompt=pair.prompt,
        tags=[subject] if subject else [],
        label=pair.winner,
        group=f"q{pair.question_id}",
    )


def _texts(item_id: str, pair: TextPair) -> list[Response]:
    texts = {pair.model_a: pair.response_a, pair.model_b: pair.response_b}
    return [
        Response(item_id=item_id, candidate=model, text=text, source="injected")
        for model, text in texts.items()
    ]


def _arena_item(item_id: str, result: ResultRecord) -> Item:
    tag = _CATEGORIES.get(result.category or "", result.category)
    return Item(item_id=item_id, label=result.human_winner or None, tags=[tag] if tag else [])


def _published_verdicts(
    results: Mapping[str, ResultRecord], judgments: Mapping[str, LoggedJudgments]
) -> dict[str, PublishedVerdict]:
    return {
        item_id: PublishedVerdict(
            item_id=item_id,
            winner=result.ai_winner or None,
            ranking=result.ai_ranking,
            confidence=result.confidence if result.ai_winner else None,
            match=result.match,
            cost_usd=result.cost,
            elapsed_s=result.elapsed_s,
            time=judgments[item_id].time if item_id in judgments else None,
        )
        for item_id, result in results.items()
    }


def _note_missing(missing_judgments: Mapping[str, object]) -> list[str]:
    if not missing_judgments:
        return []
    return [
        f"{', '.join(missing_judgments)}: published without a judge; the panel counts as failed "
        "there"
    ]


def _note_ties(judgments: Mapping[str, LoggedJudgments]) -> list[str]:
    return [
        f"{item_id}: the panel is split evenly; the published winner had the label {judgment.slot}"
        for item_id, judgment in judgments.items()
        if judgment.is_undecided
    ]
