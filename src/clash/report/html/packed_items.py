"""The items of a run as text that a page unpacks on demand.

Deflated and in base64, in blocks of a few items each; a block is unpacked when one of its items is
opened. Raw calls have blocks of their own. Up to ``ROOM`` all blocks are inside the page, which
then is one file. Beyond that they lie in a data file beside it. A page opened from disk may not
fetch its neighbours, and a script there would have to be trusted; so the data file is a page too,
which the report holds in a frame that may do nothing but answer, and whose answers it checks
against the hashes that it was written with.
"""

from __future__ import annotations

import weakref
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING, Any

import msgspec

from clash.analysis.walk import walks
from clash.escape import clip, pack
from clash.files import run_files
from clash.records import Call
from clash.store import layout
from clash.store.journal import decode_part, written_fields
from clash.store.stored import ItemPart, item_ids, select

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from pathlib import Path

    from clash.analysis.rundata import RunData
    from clash.analysis.walk import Walk
    from clash.records import Item, Label, Response

_CHUNK_BYTES = 200_000
_CHUNK_ITEMS = 25
_SNIPPET = 110
_MOST_CALLS = 64_000_000
"""Raw calls that pack to more than this are left out: browsers do not hold any length of text."""
ROOM = 4_000_000
"""Blocks of more characters than this lie beside the page."""
MOST_ITEMS = 25_000
"""Items of a page: with more, a browser takes seconds to open it, then gigabytes."""


class PackedBlocks(Mapping[str, str]):
    """Blocks by name, written as they are packed: in memory to :data:`ROOM`, then to a file.

    Attributes:
        size: characters of all blocks.
        digests: SHA-256 of each block that is not empty, in base64.
    """

    def __init__(self) -> None:
        self.size = 0
        self.digests: dict[str, str] = {}
        self._places: dict[str, tuple[int, int]] = {}
        self._file = SpooledTemporaryFile(max_size=ROOM)  # noqa: SIM115 - needed as long as this
        weakref.finalize(self, self._file.close)

    def add(self, name: str, block: str) -> None:
        """Add a block, which is ASCII."""
        self._places[name] = self.size, len(block)
        if block:
            self.digests[name] = b64encode(sha256(block.encode()).digest()).decode()
            self._file.write(block.encode())
            self.size += len(block)

    def __getitem__(self, name: str) -> str:
        start, length = self._places[name]
        self._file.seek(start)
        return self._file.read(length).decode()

    def __iter__(self) -> Iterator[str]:
        # Texts first, as a page has them; calls are read less often.
        return iter(sorted(self._places, key=lambda name: name.startswith("calls-")))

    def __len__(self) -> int:
        return len(self._places)


@dataclass(frozen=True)
class PackedItems:
    """What a page carries, each part deflated and in base64.

    Attributes:
        index: a line of each item: what the list shows and filters by, and the number of its
            block.
        blocks: ``text-0``, ``calls-0`` and so on: items, whole, and their raw calls; calls are
            empty where all that came before is as much as a browser should hold.
        left_out: how many items are not on the page, because it would be too large for a browser.
    """

    index: str
    blocks: PackedBlocks
    left_out: int

    @property
    def key(self) -> str:
        """What the report must send to get a block: a digest of all blocks."""
        digests = self.blocks.digests
        return sha256(
            "".join(digests[name] for name in self.blocks if name in digests).encode()
        ).hexdigest()


def pack_items(run: RunData, folder: Path, telling: Sequence[str] = ()) -> PackedItems:
    """Pack every item of a run.

    Args:
        run: the records.
        folder: the run folder, for the raw calls.
        telling: ids of the items to show first, in their order.
    """
    order = {name: position for position, name in enumerate(telling)}
    index: list[dict[str, Any]] = []
    blocks = PackedBlocks()
    page_items = _items_of_page(run, telling)
    raw, room = _Calls.of(folder / layout.CALLS, set(item_ids(page_items))), _MOST_CALLS
    for number, chunk in enumerate(_chunks(_items(run, page_items))):
        index += [{**line, "k": number, "y": order.get(line["id"])} for line, _ in chunk]
        blocks.add(f"text-{number}", pack(b"[" + b",".join(body for _, body in chunk) + b"]"))
        calls_block = (
            pack(b"".join(raw.lines([line["id"] for line, _ in chunk]))) if room > 0 else ""
        )
        room -= len(calls_block)
        blocks.add(f"calls-{number}", calls_block if room > 0 else "")
    return PackedItems(pack(_JSON.encode(index)), blocks, len(run.items) - len(page_items))


def _items_of_page(run: RunData, telling: Sequence[str]) -> Sequence[Item]:
    """The items of a page: all, or those to show first and some at even distances."""
    n = len(run.items)
    if n <= MOST_ITEMS:
        return run.items
    first = {run.rows[name] for name in telling}
    n_spaced = MOST_ITEMS - len(first)
    spaced_rows = (number * n // n_spaced for number in range(n_spaced))
    return select(run.items, sorted(first.union(spaced_rows)))


def _chunks(
    items: Iterator[tuple[dict[str, Any], bytes]],
) -> Iterator[list[tuple[dict[str, Any], bytes]]]:
    chunk: list[tuple[dict[str, Any], bytes]] = []
    size = 0
    for line, body in items:
        if chunk and (size + len(body) > _CHUNK_BYTES or len(chunk) >= _CHUNK_ITEMS):
            yield chunk
            chunk, size = [], 0
        chunk.append((line, body))
        size += len(body)
    if chunk:
        yield chunk


def _items(run: RunData, page_items: Sequence[Item]) -> Iterator[tuple[dict[str, Any], bytes]]:
    people: dict[str, list[Label]] = {}
    for label in run.labels:
        people.setdefault(label.item_id, []).append(label)
    for walk in walks(run, page_items):
        name = walk.item.item_id
        body = _item_body(walk, run.responses_of(name), people.get(name, []))
        yield _index_line(walk), _JSON.encode(body)


def _index_line(walk: Walk) -> dict[str, Any]:
    verdict = walk.verdict
    return {
        "id": walk.item.item_id,
        "p": clip(walk.item.turns[-1].content if walk.item.turns else "", _SNIPPET),
        "w": verdict.winner,
        "s": verdict.split,
        "c": verdict.confidence,
        "u": verdict.unanimous,
        "a": verdict.abstained,
        "l": walk.label,
        "m": None if walk.label is None else verdict.outcome == walk.label,
        "t": walk.item.tags,
        "x": _is_longest(walk),
        "f": sum(judgment.ranking is None for judgment in walk.judgments) + len(walk.missing),
    }


def _is_longest(walk: Walk) -> bool:
    """Whether the winner's response is longer than every other."""
    lengths = {name: len(text) for name, text in walk.responses.items()}
    winner = lengths.pop(walk.verdict.winner or "", 0)
    return winner > max(lengths.values(), default=winner)


def _item_body(walk: Walk, responses: list[Response], people: list[Label]) -> dict[str, Any]:
    return {
        "item": walk.item,
        "turns": walk.item.turns,
        "labels": walk.labels,
        "scrubbed": walk.scrubs,
        "criteria": walk.criteria,
        "responses": sorted(responses, key=lambda response: response.candidate),
        "said": walk.judgments,
        "verdict": walk.verdict,
        "label": walk.label,
        "people": people,
    }


_JSON = msgspec.json.Encoder(enc_hook=written_fields)


@dataclass(frozen=True)
class _Calls:
    """Where the lines of each item stand in ``calls.jsonl``, which may be too large to hold."""

    path: Path
    places: dict[str, list[tuple[int, int]]]

    @classmethod
    def of(cls, path: Path, items: Collection[str]) -> _Calls:
        places: dict[str, list[tuple[int, int]]] = {}
        decoder = msgspec.json.Decoder(ItemPart)
        start = 0
        for number, line in enumerate(run_files.lines(path), start=1):
            item_id = decode_part(path, number, line, decoder, Call).item_id
            if item_id in items:
                places.setdefault(item_id, []).append((start, len(line)))
            start += len(line)
        return cls(path, places)

    def lines(self, items: list[str]) -> Iterator[bytes]:
        if not self.places:
            return
        with run_files.open_to_read(self.path) as file:
            for item in items:
                for start, length in self.places.get(item, []):
                    file.seek(start)
                    yield file.read(length)
