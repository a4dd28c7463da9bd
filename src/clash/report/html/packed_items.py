"""The items of a run as text that a page unpacks on demand.

Deflated and in base64, in blocks of a few items each; a block is unpacked when one of its items is
opened. Raw calls have blocks of their own. Up to ``ROOM`` all blocks are inside the page, which
then is one file. Beyond that they lie in a data file beside it. A page opened from disk may not
fetch its neighbours, and a script there would have to be trusted; so the data file is a page too,
which the report holds in a frame that may do nothing but answer, and whose answers it checks
against the hashes that it was written with.
"""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import msgspec

from clash.analysis.labelled import matches
from clash.analysis.walk import walks
from clash.escape import clip, pack
from clash.files import run_files
from clash.store import layout
from clash.store.journal import written_fields

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from clash.analysis.rundata import RunData
    from clash.analysis.walk import Walk
    from clash.records import Label, Response

_CHUNK_BYTES = 200_000
_CHUNK_ITEMS = 25
_SNIPPET = 110
_MOST_CALLS = 64_000_000
"""Raw calls that pack to more than this are left out: browsers do not hold any length of text."""
ROOM = 4_000_000
"""Blocks of more characters than this lie beside the page."""


@dataclass(frozen=True)
class PackedItems:
    """What a page carries, each part deflated and in base64.

    Attributes:
        index: a line of each item: what the list shows and filters by, and the number of its
            block.
        blocks: ``text-0``, ``calls-0`` and so on: items, whole, and their raw calls; calls are
            empty where all that came before is as much as a browser should hold.
    """

    index: str
    blocks: Mapping[str, str]

    @property
    def size(self) -> int:
        """Characters of all blocks."""
        return sum(map(len, self.blocks.values()))

    @cached_property
    def digests(self) -> dict[str, str]:
        """SHA-256 of each block that is not empty, in base64."""
        return {
            name: b64encode(sha256(block.encode()).digest()).decode()
            for name, block in self.blocks.items()
            if block
        }

    @property
    def key(self) -> str:
        """What the report must send to get a block: a digest of all blocks."""
        return sha256("".join(self.digests.values()).encode()).hexdigest()


def pack_items(run: RunData, folder: Path, telling: Sequence[str] = ()) -> PackedItems:
    """Pack every item of a run.

    Args:
        run: the records.
        folder: the run folder, for the raw calls.
        telling: ids of the items to show first, in their order.
    """
    order = {name: position for position, name in enumerate(telling)}
    index: list[dict[str, Any]] = []
    texts: list[str] = []
    calls: list[str] = []
    raw, room = _Calls.of(folder / layout.CALLS), _MOST_CALLS
    for chunk in _chunks(_items(run)):
        index += [{**line, "k": len(texts), "y": order.get(line["id"])} for line, _ in chunk]
        texts.append(pack(b"[" + b",".join(body for _, body in chunk) + b"]"))
        calls_block = (
            pack(b"".join(raw.lines([line["id"] for line, _ in chunk]))) if room > 0 else ""
        )
        room -= len(calls_block)
        calls.append(calls_block if room > 0 else "")
    blocks = {f"text-{i}": block for i, block in enumerate(texts)}
    blocks |= {f"calls-{i}": block for i, block in enumerate(calls)}
    return PackedItems(pack(_JSON.encode(index)), blocks)


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


def _items(run: RunData) -> Iterator[tuple[dict[str, Any], bytes]]:
    responses: dict[str, list[Response]] = {item.item_id: [] for item in run.items}
    people: dict[str, list[Label]] = {item.item_id: [] for item in run.items}
    for response in run.responses:
        responses[response.item_id].append(response)
    for label in run.labels:
        people.setdefault(label.item_id, []).append(label)
    for walk in walks(run):
        name = walk.item.item_id
        yield _index_line(walk), _JSON.encode(_item_body(walk, responses[name], people[name]))


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
        "m": None if walk.label is None else matches(verdict, walk.label),
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


class _OfItem(msgspec.Struct):
    item_id: str


@dataclass(frozen=True)
class _Calls:
    """Where the lines of each item stand in ``calls.jsonl``, which may be too large to hold."""

    path: Path
    places: dict[str, list[tuple[int, int]]]

    @classmethod
    def of(cls, path: Path) -> _Calls:
        places: dict[str, list[tuple[int, int]]] = {}
        read = msgspec.json.Decoder(_OfItem).decode
        start = 0
        for line in run_files.lines(path):
            places.setdefault(read(line).item_id, []).append((start, len(line)))
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
