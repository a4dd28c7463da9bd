"""A data set: prompts, the responses that people compared, and their labels.

A labelled pair (or group of K responses) is an :class:`~clash.records.Item` with its injected
:class:`~clash.records.Response` records; where several people judged it, each is a
:class:`~clash.records.Label`.
"""

from __future__ import annotations

import json
import string
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import wraps
from itertools import chain, count
from typing import TYPE_CHECKING, Any

from clash.config import SOLE
from clash.conversations import injected_response, read_answer, user_messages, written_answer
from clash.errors import InputError
from clash.files.inputs import without_gz
from clash.labels import TIE, ItemLabel, Truth
from clash.records import Item, Label, Response, candidates_of

if TYPE_CHECKING:
    from collections.abc import (
        Callable,
        Collection,
        Container,
        Iterable,
        Iterator,
        Mapping,
        Sequence,
    )
    from pathlib import Path

    from clash.conversations import Answer
    from clash.datasets.record_files import SourceRow


@dataclass(frozen=True, slots=True)
class Exclusion:
    """An item that was left out, and why."""

    item_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class ItemFacts:
    """Facts of the source about an item, by which samplers choose; null where it states none.

    Attributes:
        turns: user turns of the conversation.
        anonymous: the voter did not know the models.
    """

    language: str | None = None
    anonymous: bool | None = None
    turns: int | None = None


@dataclass(frozen=True)
class Dataset:
    """Labelled items of one source.

    Attributes:
        labels: every annotator's decision, where the source names several people or one.
        exclusions: what the loader or a sampler left out.
        facts: by item id.
        notes: repairs made while reading, for people to read.
    """

    name: str
    source: str
    licence: str
    items: tuple[Item, ...]
    responses: tuple[Response, ...]
    labels: tuple[Label, ...] = ()
    exclusions: tuple[Exclusion, ...] = ()
    facts: Mapping[str, ItemFacts] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def candidates(self) -> list[str]:
        """Who responds, in order of appearance."""
        return candidates_of(self.responses)

    def texts(self) -> dict[str, dict[str, str | None]]:
        """Response by item and candidate."""
        return texts_by_item(self.items, self.responses)

    def only(self, item_ids: Collection[str], exclusions: Sequence[Exclusion] = ()) -> Dataset:
        """The items in ``item_ids``, with what belongs to them, in their order here."""
        return replace(
            self,
            items=tuple(item for item in self.items if item.item_id in item_ids),
            responses=tuple(r for r in self.responses if r.item_id in item_ids),
            labels=tuple(label for label in self.labels if label.item_id in item_ids),
            facts={key: fact for key, fact in self.facts.items() if key in item_ids},
            exclusions=(*self.exclusions, *exclusions),
        )

    def with_labels(self, labels: tuple[Label, ...]) -> Dataset:
        """The same items with other people's decisions beside them."""
        return replace(self, labels=labels)

    def excluded_by_reason(self) -> dict[str, int]:
        """How many items each reason left out, most first."""
        return dict(Counter(exclusion.reason for exclusion in self.exclusions).most_common())


def majority(winners: Sequence[str]) -> str | None:
    """What most annotators said: a winner, or ``tie`` where the first place is shared.

    Null for no annotator. ``both bad`` counts as a tie.
    """
    return Truth(tuple(map(ItemLabel, winners))).winner


def distinct_names(models: Sequence[str | None]) -> list[str]:
    """A name of its own for each response: the model's, where it has one that is not shared."""
    uses = Counter(models)
    return [
        f"response-{_letter(n)}"
        if model is None
        else model
        if uses[model] == 1
        else f"{model}#{_letter(n)}"
        for n, model in enumerate(models)
    ]


def free_id(base: str, ids: Container[object]) -> str:
    """An id for an item that has none in its file: ``base``, or ``base-2``, … where that is taken."""
    further = (f"{base}-{number}" for number in count(2))
    return next(name for name in chain([base], further) if name not in ids)


def _letter(position: int) -> str:
    return (
        string.ascii_lowercase[position]
        if position < len(string.ascii_lowercase)
        else str(position + 1)
    )


class DatasetBuilder:
    """Collects a data set item by item; unusable items are excluded with a reason."""

    def __init__(self, name: str, source: str, licence: str) -> None:
        self._source = (name, source, licence)
        self._items: dict[str, Item] = {}
        self._responses: list[Response] = []
        self._labels: list[Label] = []
        self._exclusions: list[Exclusion] = []
        self._facts: dict[str, ItemFacts] = {}
        self._n_cleaned = 0

    def exclude(self, item_id: str, reason: str) -> None:
        """Leave an item out."""
        self._exclusions.append(Exclusion(item_id, reason))

    def add(
        self,
        row: SourceRow,
        item_id: str,
        prompt: str | Sequence[str] | None,
        texts: Mapping[str, Answer | None],
        *,
        label: str | None = None,
        labels: Sequence[Label] = (),
        facts: ItemFacts | None = None,
        is_class: bool = False,
        **fields: Any,  # noqa: ANN401 - fields of Item, which checks them
    ) -> None:
        """Take in one item.

        Args:
            row: where it stands, for errors.
            item_id: a name of its own; of several with one name the first counts.
            prompt: what was asked; a list has a message for each turn.
            texts: response by candidate, in the order of the source; an empty text is a response,
                null is none; a list has an answer for each turn.
            label: the winner, or ``tie``; or a class.
            labels: the decision of each annotator.
            facts: what the source says beside it.
            is_class: the label is a class or a score of one text, not a winner.
            fields: further fields of :class:`~clash.records.Item`.

        Raises:
            InputError: the label is not one of the candidates, or a conversation lacks a turn.
        """
        if item_id in self._items:
            return self.exclude(item_id, "the id appears twice")
        if label is not None and not is_class and label not in (*texts, TIE):
            raise row.error(f"the label {label!r} is not one of {', '.join(texts)}, {TIE}", "label")
        if prompt is not None:
            questions = [prompt] if isinstance(prompt, str) else prompt
            fields |= user_messages([self._clean(text) for text in questions])
        item = Item(item_id=item_id, label=label, **fields)
        if not any(turn.content.strip() for turn in item.turns):
            return self.exclude(item_id, "the prompt is empty")
        if None in texts.values():
            return self.exclude(item_id, "a response is missing")
        self._items[item_id] = item
        try:
            self._responses += [
                injected_response(
                    item_id, name, read_answer(item.turns, self._clean_answer(answer))
                )
                for name, answer in texts.items()
                if answer is not None
            ]
        except ValueError as error:
            raise row.error(f"a conversation {error}", "responses") from None
        self._labels += labels
        if facts is not None:
            self._facts[item_id] = facts
        return None

    def build(self, *notes: str) -> Dataset:
        """The data set; items that ask the same share a group."""
        if self._n_cleaned:
            notes += (f"{self._n_cleaned} texts held characters that are not Unicode; replaced",)
        name, source, licence = self._source
        return Dataset(
            name=name,
            source=source,
            licence=licence,
            items=tuple(_with_groups(self._items.values())),
            responses=tuple(self._responses),
            labels=tuple(self._labels),
            exclusions=tuple(self._exclusions),
            facts=self._facts,
            notes=notes,
        )

    def _clean(self, text: str) -> str:
        """A text without what is no Unicode."""
        clean = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        self._n_cleaned += clean != text
        return clean

    def _clean_answer(self, answer: Answer) -> Answer:
        if isinstance(answer, str):
            return self._clean(answer)
        return [
            self._clean(part)
            if isinstance(part, str)
            else part.model_copy(update={"content": self._clean(part.content)})
            for part in answer
        ]


def row_by_row(
    add: Callable[[SourceRow, DatasetBuilder], None],
) -> Callable[[Iterable[SourceRow], DatasetBuilder], Dataset]:
    """A reader of a schema from what it does with one record.

    It raises an InputError that names the record where one is not of the schema.
    """

    @wraps(add)
    def read(rows: Iterable[SourceRow], builder: DatasetBuilder) -> Dataset:
        for row in rows:
            add(row, builder)
        return builder.build()

    return read


def _turns_of(item: Item) -> tuple[tuple[str, str], ...]:
    return tuple((turn.role, turn.content) for turn in item.turns)


def _with_groups(items: Collection[Item]) -> Iterator[Item]:
    uses = Counter(map(_turns_of, items))
    first: dict[tuple[tuple[str, str], ...], str] = {}
    for item in items:
        group = first.setdefault(_turns_of(item), item.item_id)
        is_repeated = item.group is None and uses[_turns_of(item)] > 1
        yield item.model_copy(update={"group": group}) if is_repeated else item


def texts_by_item(
    items: Iterable[Item], responses: Iterable[Response]
) -> dict[str, dict[str, str | None]]:
    """Response by item and candidate, null where there is none."""
    texts: dict[str, dict[str, str | None]] = {item.item_id: {} for item in items}
    for response in responses:
        texts[response.item_id][response.candidate] = response.text
    return texts


def repeats(dataset: Dataset) -> dict[str, str]:
    """:func:`exact_repeats` of a data set."""
    return exact_repeats(dataset.items, dataset.texts())


def exact_repeats(
    items: Iterable[Item], texts: Mapping[str, Mapping[str, str | None]]
) -> dict[str, str]:
    """Items that show what an earlier one shows, prompt and responses alike: that one's id.

    An item of which a text is not there repeats none that is known of.

    Args:
        items: in their order.
        texts: response by item and candidate.
    """
    first: dict[tuple[object, ...], str] = {}
    again = {}
    for item in items:
        responses = texts[item.item_id]
        if not responses or None in responses.values():
            continue
        content = (_turns_of(item), *sorted(responses.items()))
        earlier = first.setdefault(content, item.item_id)
        if earlier != item.item_id:
            again[item.item_id] = earlier
    return again


def to_prompts(dataset: Dataset) -> Iterator[str]:
    """The items as lines of a prompts file in JSON Lines."""
    answers: dict[str, dict[str, Any]] = {item.item_id: {} for item in dataset.items}
    for response in dataset.responses:
        if response.text is not None:
            answers[response.item_id][response.candidate] = written_answer(response)
    for item in dataset.items:
        prompt = item.model_dump(
            include={"prompt", "messages", "user", "system", "reference", "tags", "label", "group"},
            exclude_defaults=True,
        )
        line = {"id": item.item_id, **prompt, **_responses_of(answers[item.item_id])}
        if item.text_labels is not None:
            line["labels"] = item.text_labels
        yield json.dumps(line, ensure_ascii=False)


def _responses_of(responses: dict[str, Any]) -> dict[str, Any]:
    """Responses as a prompts file names them: one text alone has no name, and no text no field."""
    if set(responses) == {SOLE}:
        return {"response": responses[SOLE]}
    return {"responses": responses} if responses else {}


def labels_path(prompts: Path) -> Path:
    """Where the decisions of single annotators lie beside a prompts file."""
    return prompts.with_name(f"{without_gz(prompts).stem}.labels.jsonl")


def read_labels(path: Path) -> tuple[Label, ...]:
    """The annotators' decisions that :func:`labels_path` points at.

    Raises:
        InputError: a line is not a label.
    """
    from pydantic import ValidationError

    from clash.datasets import record_files

    labels = []
    for row in record_files.rows(path):
        try:
            labels.append(Label.model_validate(row.value))
        except ValidationError as error:
            wrong = error.errors(include_url=False)[0]
            field = ".".join(map(str, wrong["loc"]))
            raise InputError(wrong["msg"], path=path, line=row.line, field=field) from None
    return tuple(labels)
