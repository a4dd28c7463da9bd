"""Votes written as a file, JSONL or CSV by its name, packed where it ends in ``.gz``."""

from __future__ import annotations

import csv
import gzip
import io
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from clash.errors import InputError
from clash.escape import for_csv
from clash.votes.lines import is_csv
from clash.votes.matrix import COLUMNS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from clash.votes.matrix import VoteRow


def write_votes(path: str | Path, rows: Iterable[VoteRow]) -> int:
    """Write a votes file, JSONL or CSV by its name, packed where it ends in ``.gz``.

    Keys without a value are left out, but for ``vote``, whose null says that a judge failed.

    Returns:
        How many votes were written.

    Raises:
        InputError: the folder is missing or may not be written to.
    """
    file, votes = Path(path), list(rows)
    data = pack_votes(votes, file)
    try:
        file.write_bytes(data)
    except OSError as error:
        raise InputError(f"may not be written: {error.strerror}", path=file) from None
    return len(votes)


def pack_votes(rows: Iterable[VoteRow], file: Path) -> bytes:
    """The bytes of a votes file of that name."""
    data = dump_votes(rows, as_csv=is_csv(file))
    # No time stamp inside: the same votes are the same bytes.
    return gzip.compress(data, mtime=0) if file.suffix.lower() == ".gz" else data


def dump_votes(rows: Iterable[VoteRow], *, as_csv: bool = False) -> bytes:
    """The bytes of a votes file."""
    lines = [_record(row) for row in rows]
    return _as_csv(lines) if as_csv else b"".join(map(_as_json, lines))


def _record(row: VoteRow) -> dict[str, Any]:
    columns = {f.name: getattr(row, f.name) for f in fields(row) if f.name != "extra"}
    record = {key: value for key, value in columns.items() if value is not None or key == "vote"}
    return {**record, **row.extra}


def _as_json(line: dict[str, Any]) -> bytes:
    return msgspec.json.encode(line) + b"\n"


def _as_csv(lines: list[dict[str, Any]]) -> bytes:
    columns = list(COLUMNS[:3]) + sorted(
        {key for line in lines for key in line} - set(COLUMNS[:3]), key=_column_order
    )
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, columns, lineterminator="\n")
    writer.writeheader()
    for line in lines:
        cells = {key: for_csv(v) if isinstance(v, str) else v for key, v in line.items()}
        writer.writerow(cells)
    return out.getvalue().encode()


def _column_order(name: str) -> tuple[int, str]:
    return (COLUMNS.index(name) if name in COLUMNS else len(COLUMNS), name)
