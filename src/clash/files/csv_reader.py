"""Read CSV, TSV and Excel files as records, within bounds."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from clash.errors import InputError
from clash.files.encodings import SAVE_AS_UTF8, encoding_of, note_on
from clash.files.inputs import MAX_LINE, open_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import TextIO

MAX_CELL = 16 << 20
"""Characters of a cell; an unclosed quote turns the rest of the file into one."""

_SEPARATOR = re.compile(r'"?sep=([;,|\t])"?', re.IGNORECASE)
"""The first line by which Excel tells itself what separates the cells."""

csv.field_size_limit(MAX_CELL)


@dataclass(frozen=True)
class CsvFile:
    """A CSV file whose header has been read.

    Attributes:
        notes: what was read in another way than it may be meant, for people.
        rows: line number and cells by column, to be iterated once. A short row lacks its last
            columns, so that a header of a million names costs nothing in rows of one cell.
    """

    header: tuple[str, ...]
    rows: Iterator[tuple[int, dict[str, str]]]
    notes: tuple[str, ...] = ()


def read_csv(path: Path, delimiter: str = ",", *, guess_encoding: bool = False) -> CsvFile:
    """Open a CSV file, plain or ``.gz``, or the first sheet of an ``.xlsx``, and read its header.

    Excel's own forms are read too: semicolons or tabs in place of commas, ``sep=;`` on the first
    line, and UTF-16.

    Args:
        path: the file.
        delimiter: what separates cells, where the header does not show another.
        guess_encoding: read Western text that is not UTF-8 as Windows-1252, and say so in a note.

    Raises:
        InputError: it is not CSV, not UTF-8 or UTF-16, repeats a column, or (while it is read) has a
            row with more cells than columns.
    """
    if path.suffix.lower() == ".xlsx":
        from clash.files.xlsx_reader import sheet_rows

        notes, lines = sheet_rows(path)
    else:
        encoding = encoding_of(path, guess=guess_encoding)
        note = note_on(encoding)
        notes = [] if note is None else [note]
        lines = _cells(path, delimiter, encoding)
    first_line, header = next(lines, (1, []))
    header = [name.strip() for name in header]
    twice = [name for name, count in Counter(filter(None, header)).items() if count > 1]
    if twice:
        raise InputError(
            f"the column {twice[0]!r} appears twice",
            path=path,
            line=first_line,
            hint="keep one of them",
        )
    return CsvFile(tuple(header), _records(path, header, lines), tuple(notes))


def _records(
    path: Path, header: list[str], lines: Iterator[tuple[int, list[str]]]
) -> Iterator[tuple[int, dict[str, str]]]:
    for line, cells in lines:
        if len(cells) > len(header) and any(cells[len(header) :]):
            raise InputError("has more cells than the header", path=path, line=line)
        if cells:
            yield line, dict(zip(header, cells, strict=False))


def _cells(path: Path, delimiter: str, encoding: str) -> Iterator[tuple[int, list[str]]]:
    with open_bytes(path) as file:
        text = io.TextIOWrapper(file, encoding=encoding, newline="")
        lines = _check_line_lengths(text, path)
        head = next(lines, "")
        declaration = _SEPARATOR.fullmatch(head.strip())
        if declaration is not None:
            delimiter, head = declaration[1], next(lines, "")
        elif delimiter == ",":
            delimiter = _delimiter_of(head)
        reader = csv.reader(chain([head], lines), delimiter=delimiter, strict=True)
        n_skipped = int(declaration is not None)
        try:
            for cells in reader:
                yield reader.line_num + n_skipped, cells
        except UnicodeDecodeError:
            raise InputError("is damaged UTF-16", path=path, hint=SAVE_AS_UTF8) from None
        except csv.Error as error:
            line = reader.line_num + n_skipped
            raise InputError(f"is not CSV: {error}", path=path, line=line) from None


def _delimiter_of(header: str) -> str:
    """What separates the columns of a header: a comma, unless it has none and another sign."""
    if "," in header:
        return ","
    return next((sign for sign in ";\t" if sign in header), ",")


def _check_line_lengths(text: TextIO, path: Path) -> Iterator[str]:
    for number, line in enumerate(iter(partial(text.readline, MAX_LINE + 1), ""), start=1):
        if len(line) > MAX_LINE:
            raise InputError(
                f"is longer than {MAX_LINE >> 20} MB", path=path, line=number, hint="split it"
            )
        yield line
