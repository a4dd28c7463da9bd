"""Votes files and run folders as arrays: the only place where ids become indices."""

from __future__ import annotations

import csv
import gzip
import io
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from clash.errors import InputError
from clash.escape import for_csv
from clash.votes.lines import VoteLine, is_csv, read_lines
from clash.votes.matrix import COLUMNS, VoteKind, VoteRow, Votes
from clash.votes.ranking_lines import holds_rankings, pair_rows, read_rankings
from clash.votes.table import VoteColumns, VoteTable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from clash.store.folder import RunFolder

__all__ = [
    "VoteKind",
    "VoteRow",
    "Votes",
    "dump_votes",
    "encode",
    "run_votes",
    "read_votes",
    "write_votes",
]


def read_votes(
    path: str | Path,
    *,
    judges: str | Sequence[str] | None = None,
    subset: str | Sequence[str] | None = None,
    presentation: str | None = None,
    decisive: bool = False,
) -> Votes:
    """Read a votes file, JSONL or CSV by its name, plain or ``.gz``; a file of ballots as pairs.

    Rows are (item, presentation, repeat). A vote whose presentation is ``both``, or is not said,
    stands in the row of ``orig``, unless some judge has several of these for one item.

    Args:
        path: the file.
        judges: ids with wildcards (``gpt-*,*#s0``), comma separated or a list; None for all.
        subset: subsets with wildcards, likewise.
        presentation: the presentation to keep (``orig``, ``swap``).
        decisive: keep rows whose label is A or B (1 or 0) only.

    Raises:
        InputError: with file and line, where a line is not a vote, an outcome cannot be read, a
            vote stands twice, an item has two labels or scores are mixed with sides; without
            line, where nothing is left after the filter (with a list of what there is).
    """
    file = Path(path)
    if holds_rankings(file):
        filters = split_globs(judges), split_globs(subset), presentation
        return encode(pair_rows(read_rankings(file, *filters, decisive=decisive)), source=file)
    return (
        _table(file)
        .filtered(split_globs(judges), split_globs(subset), presentation, decisive=decisive)
        .votes()
    )


def _table(file: Path) -> VoteTable:
    columns = VoteColumns(text=is_csv(file))
    for rows in read_lines(file, VoteLine):
        columns.add(rows)
    return VoteTable.of(columns, file)


def encode(
    rows: Iterable[VoteRow],
    *,
    judges: str | Sequence[str] | None = None,
    subset: str | Sequence[str] | None = None,
    presentation: str | None = None,
    decisive: bool = False,
    source: Path | None = None,
) -> Votes:
    """Votes that are in memory, filtered as :func:`read_votes` does.

    Raises:
        InputError: as there, without lines.
    """
    columns = VoteColumns(text=False)
    columns.add(list(rows))
    table = VoteTable.of(columns, source)
    return table.filtered(split_globs(judges), split_globs(subset), presentation, decisive=decisive).votes()


def run_votes(
    folder: RunFolder,
    *,
    judges: str | Sequence[str] | None = None,
    subset: str | Sequence[str] | None = None,
    presentation: str | None = None,
    decisive: bool = False,
    observers: bool = False,
    scores: bool = False,
) -> Votes:
    """The votes of a run folder, as :func:`read_votes` would read its export.

    Args:
        folder: the run.
        judges: as there.
        subset: as there.
        presentation: as there.
        decisive: as there.
        observers: the observers' judgments too.
        scores: mean criteria scores of each response, instead of outcomes of pairs.

    Raises:
        InputError: as :func:`read_votes`, without lines; a run without judgments.
        RunFolderError: a judgment whose blinding is missing.
    """
    from clash.votes.from_run import score_rows, vote_rows

    rows = list((score_rows if scores else vote_rows)(folder, observers=observers))
    if not rows:
        raise InputError("holds no judgments", path=folder.path, hint="finish it: clash resume")
    votes = encode(
        rows,
        judges=judges,
        subset=subset,
        presentation=presentation,
        decisive=decisive,
        source=folder.path,
    )
    # Scores that all happen to be 0 or 1 are scores still.
    return replace(votes, kind="numeric") if scores else votes


def split_globs(text: str | Sequence[str] | None) -> list[str] | None:
    if text is None:
        return None
    parts = text.split(",") if isinstance(text, str) else list(text)
    return [part.strip() for part in parts if part.strip()]


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
