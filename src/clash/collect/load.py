"""Read prompts files into items; a wrong file is refused before anything is spent."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from clash.config import SINGLE, PromptEntry
from clash.conversations import injected_response, read_answer, user_messages
from clash.datasets.dataset import free_id
from clash.documents import Document, read_jsonl, read_text, read_yaml, validate
from clash.errors import InputError
from clash.files.csv_reader import read_csv
from clash.files.inputs import files_in, without_gz
from clash.records import Item, Response, candidates_of
from clash.secrets.redaction import REPLACEMENT
from clash.store.secrecy import without_secrets
from clash.store.table import RecordTable
from clash.wording import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from clash.secrets.redaction import Redactor
    from clash.store.folder import RunFolder

K = TypeVar("K", bound=Hashable)
_COLUMNS = ("id", "prompt", "system", "reference", "tags", "label", "group", "response")
_RESPONSE = "response:"
_BY_LINE = (".jsonl", ".ndjson")
TEXT_SUFFIXES = (".txt", ".md", ".markdown", "")
"""Ends of names of files that are read as text, whatever is in them."""
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Prompts:
    """What a prompts file holds.

    Attributes:
        responses: the injected ones.
        sha256: hash of the file's bytes (of all files, for a folder).
        warnings: what was repaired while reading, for people.
    """

    path: Path
    items: Sequence[Item]
    responses: Sequence[Response]
    sha256: str
    warnings: tuple[str, ...] = ()

    @property
    def candidates(self) -> list[str]:
        """Who has injected responses, in order of appearance."""
        return candidates_of(self.responses)

    def with_names(self, names: Mapping[str, str]) -> Prompts:
        """The same with candidates under other names, in responses and labels."""
        if not names or not names.keys() & {*self.candidates, *(item.label for item in self.items)}:
            return self
        items = (
            item.model_copy(update={"label": names.get(item.label, item.label)})
            if item.label is not None
            else item
            for item in self.items
        )
        responses = (
            r.model_copy(update={"candidate": names.get(r.candidate, r.candidate)})
            for r in self.responses
        )
        return self.with_records(items, responses)

    def with_records(self, items: Iterable[Item], responses: Iterable[Response]) -> Prompts:
        """The same with other items and responses, of which few are in memory."""
        return replace(
            self, items=RecordTable.of(Item, items), responses=RecordTable.of(Response, responses)
        )

    def without_secrets(self, redactor: Redactor) -> Prompts:
        """The same with secrets hidden, so that what is sent is what is on record."""
        items, responses = (
            RecordTable.of(Item, self.items),
            RecordTable.of(Response, self.responses),
        )
        item_ids = {*_with_secrets(items, redactor), *_with_secrets(responses, redactor)}
        if not item_ids:
            return replace(self, items=items, responses=responses)
        number = f"{len(item_ids)} item{'s hold' if len(item_ids) > 1 else ' holds'}"
        warning = f"{number} a secret of this environment: {REPLACEMENT} replaces it, also in what is sent"
        return replace(
            self.with_records(
                (without_secrets(item, redactor) for item in items),
                (without_secrets(response, redactor) for response in responses),
            ),
            warnings=(*self.warnings, warning),
        )

    def first(self, n: int) -> Prompts:
        """The first ``n`` items and their responses."""
        items = self.items[:n]
        item_ids = {item.item_id for item in items}
        return self.with_records(items, (r for r in self.responses if r.item_id in item_ids))


def _with_secrets(
    table: RecordTable[Item] | RecordTable[Response], redactor: Redactor
) -> Iterator[str]:
    """The item of each record that holds a secret."""
    for index, line in enumerate(table.lines()):
        if redactor.suspects(line):
            record = table[index]
            if without_secrets(record, redactor) is not record:
                yield record.item_id


def load(path: Path, *, single: bool = False) -> Prompts:
    """Read a prompts file: YAML, JSON, JSONL, CSV, Excel, text, plain or ``.gz``, or a folder of texts.

    Args:
        path: the file or folder.
        single: each text is judged by itself, so that labels are of texts.

    Raises:
        InputError: it cannot be used; names file, line, field and how to fix it.
    """
    warnings: list[str] = []
    prompt_file = _PromptFile(path, warnings, single=single)
    items, responses = RecordTable.of(Item, ()), RecordTable.of(Response, ())
    earlier, n_repeats = _EarlierItems(items, responses), 0
    for position, (document, prompt, has_replacements) in enumerate(prompt_file):
        item_id = prompt.id or free_id(f"q{position + 1}", prompt_file.ids)
        if has_replacements:
            warnings.append(f"{item_id}: characters that are not Unicode text were replaced")
        earlier.check_id(item_id, document)
        item = _item(prompt, item_id)
        item_responses = list(_responses(document, prompt, item))
        earlier.check_content(item, item_responses, document)
        group = prompt.group or earlier.group(item)
        if group != item_id:
            n_repeats += 1
            item = item.model_copy(update={"group": group})
        items.append(item)
        for response in item_responses:
            responses.append(response)
    if not items:
        raise InputError("holds no prompt", path=path, hint="write at least one prompt")
    if n_repeats:
        verb = "repeats" if n_repeats == 1 else "repeat"
        warnings.append(
            f"{plural(n_repeats, 'item')} {verb} the prompt of another;"
            " intervals are clustered by prompt"
        )
    return Prompts(path, items, responses, _hash(path), tuple(warnings))


def recorded_prompts(folder: RunFolder, path: Path, sha256: str = "") -> Prompts:
    """The prompts of a run, with the responses that came with them.

    Args:
        folder: the run.
        path: the name of the prompts file.
        sha256: its hash.
    """
    responses = folder.table(Response)
    injections = responses.where(part.source == "injected" for part in responses.parts(_Source))
    return Prompts(path, folder.table(Item), injections, sha256)


class _Source(msgspec.Struct, gc=False):
    """Where a response comes from."""

    source: str = ""


def _prompt(item: Item) -> str:
    return item.prompt or repr([(turn.role, turn.content) for turn in item.turns])


def _content(item: Item, responses: Iterable[Response]) -> tuple[object, ...]:
    """What two items have in common that are the same but for their id."""
    texts = sorted((r.candidate, r.text or "", repr(r.turns)) for r in responses)
    return _prompt(item), item.system, repr(item.user), tuple(texts)


class _EarlierItems:
    """Which item came first with an id, a prompt or a content: few bytes an item, whatever it holds.

    Args:
        items: those before the next one.
        responses: theirs, one item after the other.
    """

    def __init__(self, items: RecordTable[Item], responses: RecordTable[Response]) -> None:
        self._items, self._responses = items, responses
        self._lines, self._starts = array("q"), array("q")
        self._ids = _FirstRows[str](lambda row, item_id: items[row].item_id == item_id)
        self._prompts = _FirstRows[str](lambda row, prompt: _prompt(items[row]) == prompt)
        self._contents = _FirstRows[tuple[object, ...]](self._has_content)

    @property
    def _next_row(self) -> int:
        return len(self._items)

    def check_id(self, item_id: str, document: Document) -> None:
        """Refuse the next item if an earlier one has its id.

        Raises:
            InputError: one has.
        """
        self._lines.append(document.line(()) or 0)
        self._starts.append(len(self._responses))
        if (first := self._ids.first(item_id, self._next_row)) < self._next_row:
            raise document.error(
                f"the id {item_id!r} appears twice (first in line {self._lines[first] or None})",
                "id",
                hint="give each item an id of its own",
            )

    def check_content(self, item: Item, responses: Sequence[Response], document: Document) -> None:
        """Refuse the next item if an earlier one is the same but for its id.

        Raises:
            InputError: one is.
        """
        first = self._contents.first(_content(item, responses), self._next_row)
        if first < self._next_row:
            raise document.error(
                f"is the same as item {self._items[first].item_id!r}",
                hint="remove one; to judge an item several times use --repeat",
            )

    def group(self, item: Item) -> str:
        """The first item with the prompt of the next one, which may be that item."""
        first = self._prompts.first(_prompt(item), self._next_row)
        return self._items[first].item_id if first < self._next_row else item.item_id

    def _has_content(self, row: int, content: tuple[object, ...]) -> bool:
        responses = self._responses[self._starts[row] : self._starts[row + 1]]
        return _content(self._items[row], responses) == content


class _FirstRows(Generic[K]):
    """The row where each of many keys came first: some twenty bytes a key, whatever is in it.

    Args:
        is_key: whether a row has this key; different keys may have one hash.
    """

    def __init__(self, is_key: Callable[[int, K], bool]) -> None:
        self._is_key = is_key
        self._hashes = array("q")
        self._slots = array("i", [-1]) * 1024

    def first(self, key: K, row: int) -> int:
        """The row where a key came first; ``row``, which follows every other, where it is new."""
        self._hashes.extend(repeat(0, row - len(self._hashes)))
        self._hashes.append(hash(key))
        if 2 * row > len(self._slots):
            self._grow()
        for slot in self._probe(row):
            first = self._slots[slot]
            if first < 0:
                self._slots[slot] = row
                return row
            if self._hashes[first] == self._hashes[row] and self._is_key(first, key):
                return first
        raise AssertionError("half of the slots are free")

    def _probe(self, row: int) -> Iterator[int]:
        """The slots in which a row may stand, the first choice first."""
        last = len(self._slots) - 1
        start = self._hashes[row] & last
        return chain(range(start, last + 1), range(start))

    def _grow(self) -> None:
        rows = [row for row in self._slots if row >= 0]
        self._slots = array("i", [-1]) * (2 * len(self._slots))
        for row in rows:
            free = next(slot for slot in self._probe(row) if self._slots[slot] < 0)
            self._slots[free] = row


class _PromptFile:
    """The entries of a file; one line at a time where it has one a line.

    Args:
        path: the file.
        notes: what is to be said of its reading is added to it, once.
        single: each text is judged by itself.
    """

    def __init__(self, path: Path, notes: list[str], *, single: bool) -> None:
        self._path, self._single = path, single
        by_line = without_gz(path).suffix.lower() in _BY_LINE and not path.is_dir()
        self._prompts = None if by_line else list(_read_prompts(path, notes, single=single))

    def __iter__(self) -> Iterator[tuple[Document, PromptEntry, bool]]:
        return iter(
            _read_prompts(self._path, [], single=self._single)
            if self._prompts is None
            else self._prompts
        )

    @cached_property
    def ids(self) -> set[str]:
        """The ids in the file, which no other entry may be given."""
        return {prompt.id for _, prompt, _ in self if prompt.id}


def _read_prompts(
    path: Path, notes: list[str], *, single: bool
) -> Iterator[tuple[Document, PromptEntry, bool]]:
    """Each entry with its document, and whether characters of it were replaced."""
    for document in _documents(path, notes):
        clean, has_replacements = _clean(document)
        context = {SINGLE: "yes"} if single else None
        yield (
            clean,
            validate(PromptEntry, clean, error=InputError, context=context),
            has_replacements,
        )


def _item(prompt: PromptEntry, item_id: str) -> Item:
    fields: dict[str, Any] = {"prompt": prompt.prompt, "messages": prompt.messages}
    return Item(
        item_id=item_id,
        **(fields if prompt.turns is None else user_messages(prompt.turns)),
        system=prompt.system,
        reference=prompt.reference,
        tags=prompt.tags,
        label=prompt.label,
        criteria=prompt.criteria,
        user=prompt.user,
        text_labels=prompt.labels or None,
    )


def _responses(document: Document, prompt: PromptEntry, item: Item) -> Iterator[Response]:
    for candidate, answer in prompt.texts.items():
        try:
            yield injected_response(item.item_id, candidate, read_answer(item.turns, answer))
        except ValueError as error:
            raise document.error(
                f"the conversation of {candidate!r} {error}",
                "responses",
                hint="an answer for each user message, or the messages that follow the prompt",
            ) from None


def _documents(path: Path, notes: list[str]) -> Iterable[Document]:
    """The entries of a file; what is to be said of its reading is added to ``notes``."""
    if path.is_dir():
        return _text_files(path)
    file = without_gz(path)
    match file.suffix.lower():
        case ".yaml" | ".yml" | ".json":
            return _list_entries(path)
        case suffix if suffix in _BY_LINE:
            return read_jsonl(path)
        case ".csv" | ".xlsx":
            return _rows(path, ",", notes)
        case ".tsv":
            return _rows(path, "\t", notes)
        case ".md" | ".markdown":
            return [Document(path, {"id": file.stem, "prompt": read_text(path)})]
        case ".txt" | "":
            return _lines(path)
        case other:
            raise InputError(
                f"has an ending clash does not read ({other})",
                path=path,
                hint=".yaml, .jsonl, .csv, .xlsx, .txt (a prompt a line), .md (one prompt), or a folder",
            )


def _list_entries(path: Path) -> Iterator[Document]:
    document = read_yaml(path)
    if isinstance(document.value, dict) and isinstance(document.value.get("prompts"), list):
        document = document.at("prompts")
    if not isinstance(document.value, list):
        raise document.error(
            "expected a list of prompts", hint="start each prompt with `- prompt:`"
        )
    for index, prompt in enumerate(document.value):
        part = document.at(index)
        yield (
            Document(part.path, {"prompt": prompt}, part.lines) if isinstance(prompt, str) else part
        )


def _rows(path: Path, delimiter: str, notes: list[str]) -> Iterator[Document]:
    table = read_csv(path, delimiter, guess_encoding=True)
    notes += (f"{path.name}: {note}" for note in table.notes)
    unknown = [c for c in table.header if c not in _COLUMNS and not c.startswith(_RESPONSE)]
    if "prompt" not in table.header or unknown:
        problem = (
            f"the column {unknown[0]!r} is unknown" if unknown else "there is no column prompt"
        )
        raise InputError(
            problem,
            path=path,
            line=1,
            hint=f"columns are {', '.join(_COLUMNS)}, and response:NAME for each candidate",
        )
    for line, row in table.rows:
        yield Document(path, _row(row), line)


def _row(row: Mapping[str, str]) -> dict[str, Any]:
    value: dict[str, Any] = {k: v for k, v in row.items() if k in _COLUMNS and v}
    value["prompt"] = row.get("prompt", "")
    if "tags" in value:
        value["tags"] = [tag.strip() for tag in value["tags"].replace(",", ";").split(";")]
    responses = {
        k.removeprefix(_RESPONSE): v for k, v in row.items() if k.startswith(_RESPONSE) and v
    }
    return {**value, "responses": responses}


def _lines(path: Path) -> Iterator[Document]:
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        if line.strip():
            yield Document(path, {"prompt": line.strip()}, number)


def _text_files(folder: Path) -> Iterator[Document]:
    for file in files_in(folder, ".txt", ".md"):
        yield Document(file, {"id": file.stem, "prompt": read_text(file)}, 1)


def _clean(document: Document) -> tuple[Document, bool]:
    """The document without lone surrogates, which no provider accepts."""
    value = _without_surrogates(document.value)
    return Document(document.path, value, document.lines), value != document.value


def _without_surrogates(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return value
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(part) for key, part in value.items()}
    return [_without_surrogates(part) for part in value] if isinstance(value, list) else value


def _hash(path: Path) -> str:
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    digest = hashlib.sha256()
    for file in files:
        if file.is_file():
            with file.open("rb") as content:
                while chunk := content.read(_CHUNK):
                    digest.update(chunk)
    return digest.hexdigest()
