"""Read CSV and TSV files as records, within bounds."""

from __future__ import annotations

import csv
import io
from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from clash.errors import InputError
from clash.files.inputs import MAX_LINE, open_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import TextIO

MAX_CELL = 16 << 20
"""Characters of a cell; an unclosed quote turns the rest of the file into one."""

csv.field_size_limit(MAX_CELL)


@dataclass(frozen=True)
class CsvFile:
    """A CSV file whose header has been read.

    Attributes:
        rows: line number and cells by column, to be iterated once. A short row lacks its last
            columns, so that a header of a million names costs nothing in rows of one cell.
    """

    header: tuple[str, ...]
    rows: Iterator[tuple[int, dict[str, str]]]


def read_csv(path: Path, delimiter: str = ",") -> CsvFile:
    """Open a CSV file, plain or ``.gz``, and read its header.

    Raises:
        InputError: it is not CSV in UTF-8, repeats a column, or (while it is read) has a row with
            more cells than columns.
    """
    lines = _cells(path, delimiter)
    _, header = next(lines, (1, []))
    twice = [name for name, count in Counter(filter(None, header)).items() if count > 1]
    if twice:
        raise InputError(
            f"the column {twice[0]!r} appears twice", path=path, line=1, hint="keep one of them"
        )
    return CsvFile(tuple(header), _records(path, header, lines))


def _records(
    path: Path, header: list[str], lines: Iterator[tuple[int, list[str]]]
) -> Iterator[tuple[int, dict[str, str]]]:
    for line, cells in lines:
        if len(cells) > len(header) and any(cells[len(header) :]):
            raise InputError("has more cells than the header", path=path, line=line)
        if cells:
            yield line, dict(zip(header, cells, strict=False))


def _cells(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    with open_bytes(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
        reader = csv.reader(_check_line_lengths(text, path), delimiter=delimiter, strict=True)
        try:
            for cells in reader:
                yield reader.line_num, cells
        except UnicodeDecodeError:
            raise InputError("is not UTF-8", path=path, hint="save it as UTF-8") from None
        except csv.Error as error:
            raise InputError(f"is not CSV: {error}", path=path, line=reader.line_num) from None


def _check_line_lengths(text: TextIO, path: Path) -> Iterator[str]:
    for number, line in enumerate(iter(partial(text.readline, MAX_LINE + 1), ""), start=1):
        if len(line) > MAX_LINE:
            raise InputError(
                f"is longer than {MAX_LINE >> 20} MB", path=path, line=number, hint="split it"
            )
        yield line
