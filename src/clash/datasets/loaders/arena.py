"""Chatbot Arena votes: anonymous people on pairs of models, on prompts of their own.

``lmarena-ai/arena-human-preference-100k`` (and 140k, and ``lmsys/chatbot_arena_conversations``):
``question_id`` or ``id``, ``model_a``, ``model_b``, ``winner`` (``model_a``, ``model_b``, ``tie``,
``tie (bothbad)``, ``both_bad``), ``conversation_a``, ``conversation_b``, ``turn``, ``anony``,
``language``, ``judge_hash``, ``is_code``, ``category_tag``.

``lmarena-ai/arena-human-preference-55k``: ``id``, ``model_a``, ``model_b``, ``prompt``,
``response_a``, ``response_b`` (JSON lists, a turn each), ``winner_model_a``, ``winner_model_b``,
``winner_tie`` (one of them 1).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from clash.datasets.dataset import DatasetBuilder, ItemFacts, distinct_names, row_by_row
from clash.datasets.loaders.conversation import read_dialogue
from clash.errors import InputError
from clash.labels import BOTH_BAD, TIE
from clash.records import Label

if TYPE_CHECKING:
    from clash.datasets.record_files import SourceRow

COLUMNS = frozenset({"model_a", "model_b", "winner", "conversation_a", "conversation_b"})
COLUMNS_55K = frozenset({"model_a", "prompt", "response_a", "winner_model_a", "winner_tie"})
_CATEGORIES = ("math", "if", "creative_writing")
_WINNERS: dict[str, int | str] = {
    "model_a": 0,
    "model_b": 1,
    "tie": TIE,
    "tie (bothbad)": BOTH_BAD,
    "both_bad": BOTH_BAD,
}


@row_by_row
def read(row: SourceRow, builder: DatasetBuilder) -> None:
    """The battles of the 100k set and its kin; a conversation of several turns is shown whole."""
    item_id = row.text("question_id", "id")
    try:
        a, b = read_dialogue(row, "conversation_a"), read_dialogue(row, "conversation_b")
    except InputError as error:
        builder.exclude(item_id, f"unreadable conversation: {error.message}")
        return
    if a.questions != b.questions:
        builder.exclude(item_id, "the two conversations ask different questions")
        return
    _add(
        builder,
        row,
        item_id,
        questions=a.questions,
        answers=[a.answers, b.answers],
        winner=_outcome(row),
        tags=_tags(row),
    )


@row_by_row
def read_55k(row: SourceRow, builder: DatasetBuilder) -> None:
    """The battles of the 55k set."""
    item_id = row.text("id")
    questions, a, b = (_turns(row, f) for f in ("prompt", "response_a", "response_b"))
    if None in (*questions, *a, *b):
        builder.exclude(item_id, "a turn is null")
        return
    _add(
        builder,
        row,
        item_id,
        questions=questions,
        answers=[a, b],
        winner=_outcome_55k(row),
        tags=[],
    )


def _add(
    builder: DatasetBuilder,
    row: SourceRow,
    item_id: str,
    *,
    questions: list[str],
    answers: list[list[str]],
    winner: int | str,
    tags: list[str],
) -> None:
    models = distinct_names([row.text("model_a"), row.text("model_b")])
    outcome = models[winner] if isinstance(winner, int) else winner
    builder.add(
        row,
        item_id,
        questions,
        dict(zip(models, answers, strict=True)),
        label=TIE if outcome == BOTH_BAD else outcome,
        labels=[
            Label(
                item_id=item_id,
                annotator=row.optional("judge_hash", "judge") or "voter",
                winner=outcome,
            )
        ],
        facts=ItemFacts(
            language=row.optional("language"),
            anonymous=_flag(row, "anony"),
            turns=len(questions),
        ),
        tags=tags,
    )


def _flag(row: SourceRow, field: str) -> bool | None:
    value = row.optional(field)
    return None if value is None else value.lower() in ("true", "1")


def _outcome(row: SourceRow) -> int | str:
    winner = row.text("winner")
    if winner not in _WINNERS:
        raise row.error(f"expected one of {', '.join(_WINNERS)}, found {winner!r}", "winner")
    return _WINNERS[winner]


def _outcome_55k(row: SourceRow) -> int | str:
    flags = [str(row.get(f"winner_{side}")) for side in ("model_a", "model_b", "tie")]
    positions = [position for position, flag in enumerate(flags) if flag in ("1", "1.0", "True")]
    if len(positions) != 1:
        raise row.error("expected exactly one of the three to be 1", "winner_model_a")
    return TIE if positions[0] == 2 else positions[0]


def _tags(row: SourceRow) -> list[str]:
    tags = ["code"] if _flag(row, "is_code") else []
    for tagger in (row.get("category_tag") or {}).values():
        if isinstance(tagger, dict):
            tags += [name for name in _CATEGORIES if tagger.get(name) is True]
    return tags


def _turns(row: SourceRow, field: str) -> list[Any]:
    value = row.get(field)
    try:
        turns = json.loads(value) if isinstance(value, str) else value
    except ValueError as error:
        raise row.error(f"expected a JSON list of turns: {error}", field) from None
    if not isinstance(turns, list) or not turns:
        raise row.error("expected a JSON list of turns", field)
    return turns
