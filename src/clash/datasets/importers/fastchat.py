"""FastChat's ``llm_judge``: single and pairwise judgments on MT-Bench and its like.

A pairwise record has ``question_id``, ``model_1``, ``model_2``, ``g1_winner`` and ``g2_winner``
(``model_1``, ``model_2``, ``tie``, ``error``; the second game shows the answers the other way
round), ``judge`` as ``[model, prompt]``, ``turn``. A single record has ``model`` and ``score`` (1 to
10, -1 where the judge gave none).
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from clash.datasets import record_files
from clash.datasets.foreign_run import ForeignRunBuilder, pair_ranking
from clash.datasets.importers import benchmark_folder

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from clash.datasets.foreign_run import ForeignRun
    from clash.datasets.importers.benchmark_folder import BenchmarkTexts
    from clash.datasets.record_files import SourceRow

PAIR = frozenset({"question_id", "model_1", "model_2", "g1_winner", "g2_winner", "judge"})
SINGLE = frozenset({"question_id", "model", "score", "judge"})
_PLACES = {"model_1": 0, "model_2": 1, "tie": None}


def read(path: Path) -> list[ForeignRun]:
    """The judgments of a benchmark folder or a judgment file: a run for pairs, one for scores.

    Raises:
        InputError: a record cannot be used.
    """
    texts = benchmark_folder.read(path)
    rows = [row for file in benchmark_folder.judgments(path) for row in record_files.rows(file)]
    pairs = [row for row in rows if row.value.keys() >= PAIR]
    singles = [row for row in rows if row.value.keys() >= SINGLE]
    runs = []
    if pairs:
        runs.append(_pairs(pairs, texts).build("fastchat-pair", str(path)))
    if singles:
        runs.append(_scores(singles, texts, str(path)))
    return runs


def _pairs(rows: Iterable[SourceRow], texts: BenchmarkTexts) -> ForeignRunBuilder:
    collector = ForeignRunBuilder()
    for row in rows:
        question, turn = benchmark_folder.question_id(row), int(row.optional("turn") or 1)
        models = [row.text("model_1"), row.text("model_2")]
        item_id = f"q{question}-t{turn}-{'-'.join(models)}"
        _item(collector, texts, item_id, question, turn)
        for model in models:
            collector.response(item_id, model, texts.text(model, question, turn))
        _game(collector, row, item_id, models, 0)
        _game(collector, row, item_id, models, 1)
    return collector


def _game(
    collector: ForeignRunBuilder, row: SourceRow, item_id: str, models: list[str], presentation: int
) -> None:
    verdict = row.text(f"g{presentation + 1}_winner")
    readable = verdict in _PLACES
    collector.judgment(
        item_id,
        models if presentation == 0 else models[::-1],
        _judge(row),
        pair_ranking(models, _PLACES[verdict]) if readable else None,
        presentation=presentation,
        error=f"the judge's answer was read as {verdict!r}",
    )


def _scores(rows: Iterable[SourceRow], texts: BenchmarkTexts, source: str) -> ForeignRun:
    """Scores of a question's answers by one judge become that judge's ranking of them."""
    collector = ForeignRunBuilder()
    scores: dict[tuple[str, int], dict[str, dict[str, float]]] = defaultdict(dict)
    n_missing = 0
    for row in rows:
        score = float(row.text("score"))
        n_missing += score < 0
        if score >= 0:
            key = (benchmark_folder.question_id(row), int(row.optional("turn") or 1))
            scores[key].setdefault(_judge(row), {})[row.text("model")] = score
    for (question, turn), by_judge in scores.items():
        item_id = f"q{question}-t{turn}"
        _item(collector, texts, item_id, question, turn)
        models = sorted({model for judge_scores in by_judge.values() for model in judge_scores})
        for model in models:
            collector.response(item_id, model, texts.text(model, question, turn))
        for judge, judge_scores in by_judge.items():
            complete = judge_scores.keys() == set(models)
            collector.judgment(
                item_id,
                models,
                judge,
                rank_by_score(judge_scores) if complete else None,
                error="this judge did not score every answer",
            )
    alone = "each answer was scored alone, so no judge saw the order of the labels"
    loss_note = [f"{n_missing} answers have no score and are left out"] if n_missing else []
    return collector.build("fastchat-single", source, alone, *loss_note)


def rank_by_score(scores: dict[str, float]) -> list[list[str]]:
    """Candidates in groups of equal score, best first."""
    return [
        sorted(name for name, score in scores.items() if score == level)
        for level in sorted(set(scores.values()), reverse=True)
    ]


def _item(
    collector: ForeignRunBuilder, texts: BenchmarkTexts, item_id: str, question: str, turn: int
) -> None:
    collector.item(
        item_id,
        texts.prompt(question, turn),
        tags=[*texts.tags(question), f"turn-{turn}"],
        group=f"q{question}",
    )


def _judge(row: SourceRow) -> str:
    """The judging model: questions with a reference have another prompt, but the same judge."""
    judge = row.get("judge")
    return str(judge[0]) if isinstance(judge, list) and judge else row.text("judge")
