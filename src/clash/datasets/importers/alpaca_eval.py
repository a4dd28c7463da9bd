"""AlpacaEval's ``annotations.json``: a judge's preference between two outputs.

A record has ``instruction``, ``output_1``, ``generator_1``, ``output_2``, ``generator_2``,
``annotator``, ``preference``: 1 to 2, where 1.5 is a tie and null a judge that failed (the tool
keeps those, and counts them as neither). The order that the judge saw is not recorded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from clash.datasets import record_files
from clash.datasets.foreign_run import ForeignRunBuilder, PublishedVerdict, pair_ranking

if TYPE_CHECKING:
    from pathlib import Path

    from clash.datasets.foreign_run import ForeignRun
    from clash.datasets.record_files import SourceRow

COLUMNS = frozenset({"instruction", "output_1", "output_2", "preference"})
_TIE = 1.5


def read(path: Path) -> list[ForeignRun]:
    """The annotations of a file, or of every ``annotations.json`` below a folder.

    Raises:
        InputError: a record cannot be used.
    """
    files = record_files.files_below(path, "annotations.json")
    collector = ForeignRunBuilder()
    questions: dict[str, str] = {}
    for row in (row for file in files for row in record_files.rows(file)):
        _add(collector, row, questions)
    order = (
        "the order that the judge saw is not recorded; labels are in the order of output_1 "
        "and output_2"
    )
    return [collector.build("alpaca-eval", str(path), order)]


def _add(collector: ForeignRunBuilder, row: SourceRow, questions: dict[str, str]) -> None:
    instruction = row.text("instruction")
    question = questions.setdefault(instruction, f"q{len(questions) + 1:04d}")
    models = [
        row.optional("generator_1") or "output-1",
        row.optional("generator_2") or "output-2",
    ]
    item_id = f"{question}-{'-'.join(models)}"
    tags = [row.text("dataset")] if row.get("dataset") else []
    collector.item(item_id, instruction, tags=tags, group=question)
    for number, model in enumerate(models, start=1):
        collector.response(item_id, model, row.verbatim(f"output_{number}"))
    preference = _preference(row)
    collector.judgment(
        item_id,
        models,
        row.optional("annotator") or "annotator",
        None if preference is None else pair_ranking(models, _winner(preference)),
        error="no preference is recorded",
        flags=[] if preference in (None, 1, 2) else [f"preference {preference:g}"],
    )
    collector.add_verdict(_published_verdict(row, item_id, models, preference))


def _preference(row: SourceRow) -> float | None:
    value = row.get("preference")
    if value is None:
        return None
    if not isinstance(value, int | float) or not 1 <= value <= 2:
        raise row.error(f"expected 1 to 2, found {value!r}", "preference")
    return float(value)


def _winner(preference: float) -> int | None:
    return None if preference == _TIE else int(preference > _TIE)


def _published_verdict(
    row: SourceRow, item_id: str, models: list[str], preference: float | None
) -> PublishedVerdict:
    winner = None if preference is None else _winner(preference)
    return PublishedVerdict(
        item_id=item_id,
        winner=None if winner is None else models[winner],
        cost_usd=row.get("price_per_example"),
        elapsed_s=row.get("time_per_example"),
    )
