"""Any file of labelled pairs: one row a pair, or one row a pair and annotator.

Columns, with the names that are understood (the first that has a value counts):

| what | names |
| --- | --- |
| id | ``item_id``, ``id``, ``pair_id``, ``question_id``; else one of the row's number |
| prompt | ``prompt``, ``question``, ``instruction``, ``input``, ``query``; or ``messages``; \
or ``turns``: the user's messages |
| the responses | ``response_a`` and ``response_b`` (or ``response_A``, ``output_1``, ``response1``, \
``answer_a``); or ``responses``: an object, text by candidate, or the answers turn by turn |
| who wrote them | ``model_a`` and ``model_b`` (or ``generator_1``, ``model_1``) |
| the label | ``label``, ``winner``, ``preference``: ``A``, ``B``, ``tie``, ``model_a``, ``A>B``, \
1 or 2, or a candidate's name |
| several people | ``annotators``: a list of labels; or a column ``annotator`` (or ``judge``) |
| beside it | ``subset``, ``tags``, ``category``; ``group``, ``reference``, ``system`` |
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from clash.datasets.dataset import Dataset, DatasetBuilder, distinct_names, free_id, majority
from clash.labels import BOTH_BAD, TIE
from clash.records import Label, Turn

if TYPE_CHECKING:
    from collections.abc import Iterable

    from clash.conversations import Answer
    from clash.datasets.record_files import SourceRow

_ID = ("item_id", "id", "pair_id", "question_id")
_PROMPT = ("prompt", "question", "instruction", "input", "query")
_RESPONSES = (
    ("response_a", "response_A", "output_1", "response1", "response_1", "answer_a"),
    ("response_b", "response_B", "output_2", "response2", "response_2", "answer_b"),
)
_MODELS = (("model_a", "generator_1", "model_1"), ("model_b", "generator_2", "model_2"))
_LABEL = ("label", "winner", "preference")
_TAGS = ("subset", "tags", "category")
_FIRST = {"a", "model_a", "response_a", "output_1", "1", "1.0", "a>b", "a>>b", "b<a", "b<<a"}
_SECOND = {"b", "model_b", "response_b", "output_2", "2", "2.0", "b>a", "b>>a", "a<b", "a<<b"}
_TIES = {"tie", "c", "draw", "equal", "a=b", "b=a", "1.5"}
_BOTH_BAD = {"both bad", "both_bad", "tie (bothbad)", "bothbad"}

_ANSWERS: TypeAdapter[list[str] | list[Turn]] = TypeAdapter(list[str] | list[Turn])
_QUESTIONS = TypeAdapter(list[str])


@dataclass
class _LabelledPair:
    row: SourceRow
    texts: dict[str, Answer | None]
    winners: list[tuple[str, str]] = field(default_factory=list)


def read(rows: Iterable[SourceRow], builder: DatasetBuilder) -> Dataset:
    """The items of the file. A row without a label is left out.

    Raises:
        InputError: a field is missing or a label cannot be read; names line and field.
    """
    # A row without an id is kept under its number until every id of the file is known.
    pairs: dict[str | int, _LabelledPair] = {}
    for row in rows:
        texts = _texts(row)
        labelled_pair = pairs.setdefault(
            row.optional(*_ID) or row.number, _LabelledPair(row, texts)
        )
        winners = _winners(row, list(texts))
        if labelled_pair.row is not row:
            _same_pair(labelled_pair, row, texts, winners)
        labelled_pair.winners += winners
    for key, pair in pairs.items():
        _add(builder, free_id(f"pair-{key:04d}", pairs) if isinstance(key, int) else key, pair)
    return builder.build()


def _same_pair(
    pair: _LabelledPair,
    row: SourceRow,
    texts: dict[str, Answer | None],
    winners: list[tuple[str, str]],
) -> None:
    """A further row of an item must be another annotator's, on the same responses."""
    annotators = {annotator for annotator, _ in pair.winners}
    if not row.optional("annotator", "judge") or annotators & {name for name, _ in winners}:
        raise row.error("the id appears twice", _ID[0], hint="give each item an id of its own")
    if texts != pair.texts:
        raise row.error("the id appears twice, with other responses", _ID[0])


def _add(builder: DatasetBuilder, item_id: str, pair: _LabelledPair) -> None:
    if not pair.winners:
        return builder.exclude(item_id, "no label")
    row = pair.row
    fields: dict[str, Any] = {name: row.optional(name) for name in ("system", "reference", "group")}
    messages = row.get("messages")
    if messages is not None:
        fields["messages"] = messages
    builder.add(
        row,
        item_id,
        None if messages is not None else _questions(row),
        pair.texts,
        label=majority([winner for _, winner in pair.winners]),
        labels=[
            Label(item_id=item_id, annotator=annotator, winner=winner)
            for annotator, winner in pair.winners
        ],
        tags=_tags(row),
        **fields,
    )
    return None


def _texts(row: SourceRow) -> dict[str, Answer | None]:
    by_name = row.get("responses")
    if isinstance(by_name, dict):
        if len(by_name) < 2:
            raise row.error("expected at least two responses", "responses")
        return {str(name): _answer(row, answer) for name, answer in by_name.items()}
    models = distinct_names([row.optional(*names) for names in _MODELS])
    texts = (row.verbatim(*names) for names in _RESPONSES)
    return dict(zip(models, texts, strict=True))


def _questions(row: SourceRow) -> str | list[str]:
    if row.get("turns") is None:
        return row.text(*_PROMPT)
    try:
        return _QUESTIONS.validate_python(row.get("turns"))
    except ValidationError:
        raise row.error("expected a list of the user's messages", "turns") from None


def _answer(row: SourceRow, answer: object) -> Answer | None:
    """A text, the answers turn by turn, or the messages after the prompt."""
    if answer is None or isinstance(answer, str):
        return answer
    try:
        return _ANSWERS.validate_python(answer)
    except ValidationError:
        problem = "a response is a text, a list of answers or a list of messages"
        raise row.error(problem, "responses") from None


def _winners(row: SourceRow, candidates: list[str]) -> list[tuple[str, str]]:
    several = row.get("annotators")
    if isinstance(several, list):
        return [
            (f"annotator{number}", _winner(row, str(label), candidates))
            for number, label in enumerate(several, start=1)
        ]
    label = row.optional(*_LABEL)
    if label is None:
        return []
    annotator = row.optional("annotator", "judge") or "human"
    return [(annotator, _winner(row, label, candidates))]


def _winner(row: SourceRow, label: str, candidates: list[str]) -> str:
    if label in candidates:
        return label
    word = label.strip().lower().strip("[]")
    if word in _TIES:
        return TIE
    if word in _BOTH_BAD:
        return BOTH_BAD
    for position, words in enumerate((_FIRST, _SECOND)):
        if word in words and len(candidates) == 2:
            return candidates[position]
    raise row.error(
        f"cannot tell the winner from {label!r}",
        _LABEL[0],
        hint=f"A, B or tie, or one of {', '.join(candidates)}",
    )


def _tags(row: SourceRow) -> list[str]:
    value = row.get(*_TAGS)
    if value is None:
        return []
    if isinstance(value, list):
        return [str(tag) for tag in value]
    return [tag.strip() for tag in str(value).replace(",", ";").split(";")]
