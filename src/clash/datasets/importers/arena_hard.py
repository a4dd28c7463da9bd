"""arena-hard-auto's judgments: each model against a baseline, in both orders.

A record has ``question_id`` (or ``uid``), ``model``, ``judge``, ``games``: two of ``{score}``, from
``A>>B`` to ``B>>A`` or null. The first game shows the baseline first, the second the model. Newer
records name their ``baseline``; older ones do not, and it is called ``baseline`` here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clash.datasets import record_files
from clash.datasets.foreign_run import ForeignRunBuilder, pair_ranking
from clash.datasets.importers import benchmark_folder

if TYPE_CHECKING:
    from pathlib import Path

    from clash.datasets.foreign_run import ForeignRun
    from clash.datasets.importers.benchmark_folder import BenchmarkTexts
    from clash.datasets.record_files import SourceRow

COLUMNS = frozenset({"model", "judge", "games"})
_FIRST = ("A>B", "A>>B", "B<A", "B<<A")
_SECOND = ("B>A", "B>>A", "A<B", "A<<B")
_TIE = ("A=B", "B=A")


def read(path: Path) -> list[ForeignRun]:
    """The judgments of a benchmark folder or a judgment file, as one run.

    Raises:
        InputError: a record cannot be used.
    """
    texts = benchmark_folder.read(path)
    collector = ForeignRunBuilder()
    for file in benchmark_folder.judgments(path):
        for row in record_files.rows(file):
            _add(collector, row, texts)
    return [collector.build("arena-hard", str(path))]


def _add(collector: ForeignRunBuilder, row: SourceRow, texts: BenchmarkTexts) -> None:
    question, model = benchmark_folder.question_id(row), row.text("model")
    baseline = row.optional("baseline") or "baseline"
    item_id = f"{question}-{model}"
    tags = [row.text("category")] if row.get("category") else texts.tags(question)
    collector.item(item_id, texts.prompt(question), tags=tags, group=question)
    for candidate in (baseline, model):
        collector.response(item_id, candidate, texts.text(candidate, question))
    games = row.get("games")
    if not isinstance(games, list):
        raise row.error("expected a list of games", "games")
    for presentation, game in enumerate(games):
        order = [baseline, model] if presentation % 2 == 0 else [model, baseline]
        score = game.get("score") if isinstance(game, dict) else None
        collector.judgment(
            item_id,
            order,
            row.text("judge"),
            _ranking(row, order, score),
            presentation=presentation,
            error="the judge gave no verdict that could be read",
            flags=["much better"] if score and (">>" in score or "<<" in score) else [],
        )


def _ranking(row: SourceRow, order: list[str], score: Any) -> list[list[str]] | None:  # noqa: ANN401 - any JSON value
    if score is None:
        return None
    for winner, words in ((0, _FIRST), (1, _SECOND), (None, _TIE)):
        if score in words:
            return pair_ranking(order, winner)
    raise row.error(f"expected A>>B to B>>A, found {score!r}", "games")
