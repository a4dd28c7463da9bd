"""MT-Bench human judgments: experts on pairs of six models, 80 questions of two turns.

Schema of ``lmsys/mt_bench_human_judgments`` (split ``human``): ``question_id``, ``model_a``,
``model_b``, ``winner`` (``model_a``, ``model_b``, ``tie``), ``judge``, ``conversation_a``,
``conversation_b`` (lists of ``{content, role}``), ``turn``. The same pair stands in either order
and under several annotators; here it is one item, with a label for each of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from clash.datasets.dataset import Dataset, DatasetBuilder, ItemFacts, majority
from clash.datasets.loaders.conversation import read_dialogue
from clash.records import Label

if TYPE_CHECKING:
    from collections.abc import Iterable

    from clash.datasets.record_files import SourceRow

COLUMNS = frozenset({"question_id", "model_a", "model_b", "winner", "judge", "conversation_a"})
_CATEGORIES = (
    "writing",
    "roleplay",
    "reasoning",
    "math",
    "coding",
    "extraction",
    "stem",
    "humanities",
)
_FIRST_QUESTION = 81
_PER_CATEGORY = 10


@dataclass
class _ModelPair:
    row: SourceRow
    questions: list[str]
    texts: dict[str, list[str]]
    tags: list[str]
    facts: ItemFacts
    group: str
    winners: dict[str, str] = field(default_factory=dict)


def read(rows: Iterable[SourceRow], builder: DatasetBuilder) -> Dataset:
    """The items: a question's turn and two models, in alphabetical order.

    The label is what most annotators said; a shared first place is a tie. A second turn shows
    the whole conversation of both sides.

    Raises:
        InputError: a record is not of this schema.
    """
    pairs: dict[str, _ModelPair] = {}
    n_repeats = 0
    for row in rows:
        item_id, pair = _pair(row)
        first_pair = pairs.setdefault(item_id, pair)
        annotator = row.text("judge")
        n_repeats += annotator in first_pair.winners
        first_pair.winners[annotator] = _winner(row)
    for item_id, pair in pairs.items():
        _add(builder, item_id, pair)
    note = f"{n_repeats} votes repeat one by the same annotator on the same pair; the last counts"
    return builder.build(*[note] if n_repeats else [])


def category(question_id: int) -> str | None:
    """The category of an MT-Bench question, 81 to 160."""
    index = (question_id - _FIRST_QUESTION) // _PER_CATEGORY
    return _CATEGORIES[index] if 0 <= index < len(_CATEGORIES) else None


def _pair(row: SourceRow) -> tuple[str, _ModelPair]:
    question, turn = int(row.text("question_id")), int(row.optional("turn") or 1)
    model_a, model_b = row.text("model_a"), row.text("model_b")
    a, b = (
        read_dialogue(row, "conversation_a", turns=turn),
        read_dialogue(row, "conversation_b", turns=turn),
    )
    answers = {model_a: a.answers, model_b: b.answers}
    tags = [f"turn-{turn}"]
    topic = category(question)
    pair = _ModelPair(
        row=row,
        questions=a.questions,
        texts={model: answers[model] for model in sorted(answers)},
        tags=[topic, *tags] if topic else tags,
        facts=ItemFacts(language="English", anonymous=True, turns=turn),
        group=f"q{question}",
    )
    return f"q{question}-t{turn}-{'-'.join(pair.texts)}", pair


def _winner(row: SourceRow) -> str:
    match row.text("winner"):
        case "model_a" | "model_b" as side:
            return row.text(side)
        case winner if winner.startswith("tie"):
            return "tie"
        case other:
            raise row.error(f"expected model_a, model_b or tie, found {other!r}", "winner")


def _add(builder: DatasetBuilder, item_id: str, pair: _ModelPair) -> None:
    builder.add(
        pair.row,
        item_id,
        pair.questions,
        pair.texts,
        label=majority(list(pair.winners.values())),
        labels=[
            Label(item_id=item_id, annotator=annotator, winner=winner)
            for annotator, winner in pair.winners.items()
        ],
        facts=pair.facts,
        tags=pair.tags,
        group=pair.group,
    )
