"""Several runs read as one: the shards of a run, or runs of other prompts with the same settings.

A group is read like a run folder and never written. The records of a file come in the order of the
items, which is the order of the whole run where the runs are its shards.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from clash.errors import RunFolderError
from clash.files import run_files
from clash.records import Item, Label, Record, Response, Verdict
from clash.store import chain, layout
from clash.store.folder import RunFolder
from clash.store.journal import decode_part
from clash.store.manifest import missing_shards
from clash.store.stored import JoinedRecords
from clash.store.table import RecordTable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path
    from typing import BinaryIO

    from clash.records import Batch, Call, CallSummary, PoolItem, Reservation
    from clash.store.manifest import Manifest

R = TypeVar("R", bound=Record)
T = TypeVar("T", Verdict, Label)
_FREE = ("limits", "out", "prompts")
"""Settings that decide neither what is asked nor what the answers come to."""


@dataclass
class RunGroup(RunFolder):
    """Runs that are read as one.

    Attributes:
        folders: the runs, in the order of their items.
        path: the folder that they are in, for messages.
    """

    folders: tuple[RunFolder, ...] = ()
    _manifests: tuple[Manifest, ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, folders: Sequence[RunFolder]) -> RunGroup:
        """The runs as one.

        Raises:
            RunFolderError: they were not made with the same settings, or share items; the message
                names two of them.
        """
        pairs = [(folder, folder.manifest()) for folder in folders]
        for folder, manifest in pairs[1:]:
            check_settings(pairs[0], (folder, manifest))
        if pairs[0][1].shard is not None:
            pairs.sort(key=lambda pair: pair[1].shard.number if pair[1].shard else 0)
        group = cls(
            folders[0].path.parent,
            tuple(folder for folder, _ in pairs),
            tuple(manifest for _, manifest in pairs),
        )
        group._check_items()
        return group

    def manifest(self) -> Manifest:
        """The manifest of the whole, as far as those of the runs say; it is of no sealed run."""
        first = self._manifests[0]
        return first.model_copy(
            update={
                "run": " + ".join(manifest.run for manifest in self._manifests),
                "status": _status(self._manifests),
                "counts": dict(sum((Counter(m.counts) for m in self._manifests), Counter())),
                "cost_usd": _sum(manifest.cost_usd for manifest in self._manifests),
                "cost_is_lower_bound": any(m.cost_is_lower_bound for m in self._manifests),
                "started": min(manifest.started for manifest in self._manifests),
                "wall_s": max(manifest.wall_s for manifest in self._manifests),
                "stopped": {k: v for m in self._manifests for k, v in m.stopped.items()},
                "replaced": sorted({name for m in self._manifests for name in m.replaced}),
                "notes": self._notes(),
                "destinations": _unique(d for m in self._manifests for d in m.destinations),
                "forecast": _joint_forecast([manifest.forecast for manifest in self._manifests]),
                "origin": None,
                "secrets_scan": None,
                "files": {},
                "chain": None,
                "seal": None,
            }
        )

    def _notes(self) -> list[str]:
        """The notes of the runs, once each; of all shards without those that name the shard."""
        shards = [manifest.shard for manifest in self._manifests if manifest.shard is not None]
        is_whole = bool(shards) and not missing_shards(shards)
        shard_notes = {shard.note for shard in shards} if is_whole else set()
        notes = dict.fromkeys(note for manifest in self._manifests for note in manifest.notes)
        return [note for note in notes if note not in shard_notes]

    @cached_property
    def positions(self) -> dict[str, int]:
        """Where each item is in the whole, by id."""
        positions: dict[str, int] = {}
        for folder, manifest in zip(self.folders, self._manifests, strict=True):
            start = len(positions)
            for index, item in enumerate(folder.records(Item)):
                shard = manifest.shard
                positions[item.item_id] = shard.position(index) if shard else start + index
        return positions

    def records(self, model: type[R]) -> Sequence[R]:
        """The records that count of a kind, in the order of the whole."""
        parts = [folder.records(model) for folder in self.folders]
        positions = [
            (self._position(record), part, index)
            for part, records in enumerate(parts)
            for index, record in enumerate(records)
        ]
        positions.sort()
        return JoinedRecords(parts, [(part, index) for _, part, index in positions])

    def _position(self, record: Record) -> tuple[bool, int]:
        """Where a record is in the whole; given responses come first, as in one run."""
        is_late = isinstance(record, Response) and record.source == "generated"
        return is_late, self.positions[record.item_id]  # type: ignore[attr-defined]

    def table(self, model: type[R]) -> RecordTable[R]:
        """Every record of a kind, in the order of :meth:`lines`."""
        name = next(name for name, kind in layout.RECORDS.items() if kind is model)
        return RecordTable.of_lines(model, self.lines(name))

    def calls(self) -> Iterable[Call]:
        """Every attempt of every call, run by run."""
        for folder in self.folders:
            yield from folder.calls()

    def call_summaries(self) -> Iterator[CallSummary]:
        """What is counted of every attempt of every call, run by run."""
        for folder in self.folders:
            yield from folder.call_summaries()

    def reservations(self) -> Iterator[Reservation]:
        """The amount reserved for each attempt, run by run."""
        for folder in self.folders:
            yield from folder.reservations()

    def batches(self) -> list[Batch]:
        """The batches in their last state."""
        return [batch for folder in self.folders for batch in folder.batches()]

    def verdicts(self) -> list[Verdict]:
        """The verdicts as written by the runs."""
        return self._in_order([verdict for folder in self.folders for verdict in folder.verdicts()])

    def labels(self, first: int | None = None) -> list[Label]:
        """People's decisions."""
        return self._in_order([label for folder in self.folders for label in folder.labels(first)])

    def pool(self) -> list[PoolItem]:
        """Every item that a run with a stopping rule may judge."""
        return [record for folder in self.folders for record in folder.pool()]

    def lines(self, name: str) -> Iterator[bytes]:
        """The lines of a file, in the order of one process that makes one call at a time.

        Those of ``calls.jsonl`` come without the hash of the line before.

        Raises:
            RunFolderError: a line is not a record of the file.
        """
        spans = [
            (self._key(line.part, name), number, line.start, line.size)
            for number, folder in enumerate(self.folders)
            for line in _line_index(folder.path / name, layout.RECORDS[name])
        ]
        # Lines with equal keys stay as they are in their file: attempts, repeated judgments.
        spans.sort()
        files = [_open(folder.path / name) for folder in self.folders]
        try:
            for _, number, start, size in spans:
                file = files[number]
                if file is not None:
                    file.seek(start)
                    yield chain.without_link(file.read(size))
        finally:
            for file in files:
                if file is not None:
                    file.close()

    def _key(self, part: _LinePart, name: str) -> tuple[int, int, int, int]:
        """Stage, item, presentation and who was asked; the order of one call at a time."""
        last = len(self.positions)
        item_id = part.item_id
        if name == layout.RESERVATIONS:
            part = self._calls.get(part.call_id or "", part)
            item_id = part.item_id
        is_late = {
            layout.RESPONSES: part.source == "generated",
            layout.CRITERIA: part.call_id is not None,
            layout.CALLS: part.purpose == "judge",
            layout.RESERVATIONS: part.purpose == "judge",
        }.get(name, False)
        actor = part.judge or part.candidate or ""
        # The pages of an item, and what was given with it, are in their order already.
        if name == layout.BLINDING or (name == layout.RESPONSES and not is_late):
            return 0, self.positions.get(item_id, last), 0, 0
        return (
            int(is_late),
            self.positions.get(item_id, last),
            part.presentation or 0,
            self._actors.get(actor, len(self._actors)),
        )

    @cached_property
    def _actors(self) -> dict[str, int]:
        """Everyone who is asked, in the order of asking."""
        manifest = self._manifests[0]
        candidates = [str(candidate.get("id")) for candidate in manifest.candidates]
        judges = [str(judge.get("id")) for judge in manifest.panel.get("judges", [])]
        return {name: number for number, name in enumerate([*candidates, "", *judges])}

    @cached_property
    def _calls(self) -> dict[str, _LinePart]:
        """What each call was about, by id."""
        return {
            line.part.call_id: line.part
            for folder in self.folders
            for line in _line_index(folder.path / layout.CALLS, layout.RECORDS[layout.CALLS])
            if line.part.call_id is not None
        }

    def _in_order(self, records: list[T]) -> list[T]:
        return sorted(records, key=lambda record: self.positions[record.item_id])

    def _check_items(self) -> None:
        """Refuse runs that share items.

        Raises:
            RunFolderError: two do; the message names the second and the item.
        """
        owners: dict[str, RunFolder] = {}
        for folder in self.folders:
            for item in folder.records(Item):
                owner = owners.setdefault(item.item_id, folder)
                if owner is not folder:
                    raise RunFolderError(
                        f"{folder.path}: has the item {item.item_id!r}, which {owner.path} has too"
                        f"\n  fix: leave one out; `clash compare {owner.path} {folder.path}`"
                        " compares runs of the same items"
                    )


def check_settings(first: tuple[RunFolder, Manifest], second: tuple[RunFolder, Manifest]) -> None:
    """Refuse two runs that were not made with the same settings.

    Raises:
        RunFolderError: names what differs first.
    """
    (folder, manifest), (other_folder, other_manifest) = first, second
    settings, other_settings = _settings(manifest), _settings(other_manifest)
    for name in [*settings, *(name for name in other_settings if name not in settings)]:
        if settings.get(name) != other_settings.get(name):
            raise RunFolderError(
                f"{other_folder.path}: has another {name} than {folder.path}"
                f"\n  fix: leave {other_folder.path} out, or run it again with the settings of"
                f" {folder.path}"
            )


def _settings(manifest: Manifest) -> dict[str, Any]:
    """What runs that are read as one have in common, by the words of a message."""
    config = {f"{name} (in the configuration)": value for name, value in manifest.config.items()}
    settings: dict[str, Any] = {
        "kind": manifest.kind,
        **{name: value for name, value in config.items() if name.partition(" ")[0] not in _FREE},
        "panel": manifest.panel,
        "template": manifest.templates,
        "calibrator": manifest.calibrator,
        "preregistration": manifest.preregistration,
        "number of shards": manifest.shard and manifest.shard.of,
    }
    if manifest.shard is not None:
        settings["prompts file"] = manifest.hashes.get("prompts")
        settings["set of items"] = manifest.shard.sha256
    return settings


def _status(manifests: Sequence[Manifest]) -> str:
    """That of the run that is furthest from its end."""
    order = ("running", "failed", "partial", "complete")
    return min((manifest.status for manifest in manifests), key=order.index)


def _sum(amounts: Iterable[float | None]) -> float | None:
    known_amounts = [amount for amount in amounts if amount is not None]
    return sum(known_amounts) if known_amounts else None


def _joint_forecast(forecasts: Sequence[dict[str, Any] | None]) -> dict[str, Any] | None:
    """The forecast of the whole; null where one has none."""
    parts = [forecast for forecast in forecasts if forecast is not None]
    if len(parts) < len(forecasts):
        return None
    return {
        "calls": sum(part.get("calls", 0) for part in parts),
        "expected_usd": round(math.fsum(part.get("expected_usd", 0.0) for part in parts), 6),
        "worst_usd": round(math.fsum(part.get("worst_usd", 0.0) for part in parts), 6),
        "unknown_price": sorted({name for part in parts for name in part.get("unknown_price", [])}),
    }


def _unique(values: Iterable[Any]) -> list[Any]:
    unique: list[Any] = []
    for value in values:
        if value not in unique:
            unique.append(value)
    return unique


class _LinePart(msgspec.Struct, frozen=True):
    """The fields of a line that decide its place."""

    item_id: str = ""
    judge: str | None = None
    stands_in_for: str | None = None
    candidate: str | None = None
    presentation: int | None = None
    call_id: str | None = None
    purpose: str | None = None
    source: str | None = None


class _IndexedLine(msgspec.Struct, frozen=True):
    """A line of a file: the fields that decide its place, its first byte and its length."""

    part: _LinePart
    start: int
    size: int


def _line_index(path: Path, model: type[Record]) -> Iterator[_IndexedLine]:
    decoder, start = msgspec.json.Decoder(_LinePart), 0
    for number, line in enumerate(run_files.lines(path), start=1):
        yield _IndexedLine(decode_part(path, number, line, decoder, model), start, len(line))
        start += len(line)


def _open(path: Path) -> BinaryIO | None:
    try:
        return run_files.open_to_read(path)
    except FileNotFoundError:
        return None
