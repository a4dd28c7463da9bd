"""Read the first sheet of an Excel workbook as records, within bounds; needs the extra ``xlsx``.

A workbook is a zip of XML. Its declared sizes are checked before anything is unpacked, and zipfile
never unpacks more than is declared; defusedxml, which the extra brings, refuses entities.
"""

from __future__ import annotations

import io
import warnings
import zipfile
import zlib
from contextlib import contextmanager, redirect_stdout
from datetime import date, datetime, time
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import ParseError

from clash.errors import InputError
from clash.extras import require
from clash.files.inputs import MAX_RATIO, read_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MAX_UNPACKED = 64 << 20
"""Bytes that all parts of a workbook may unpack to: more prompts than a person puts into Excel."""
MAX_PARTS = 1_000
MAX_ROWS = 200_000
MAX_COLUMNS = 1_000
_ANY_RATIO = 4 << 20
"""Unpacked bytes up to which the ratio is not checked."""

# openpyxl checks little of what it reads: a part that is missing, misspelt or of another kind fails
# where it is first used. zipfile raises RuntimeErrors for encrypted parts and unknown versions.
_BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    ParseError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    EOFError,
    LookupError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""What reading a damaged or hostile workbook may raise."""


def sheet_rows(path: Path) -> tuple[list[str], Iterator[tuple[int, list[str]]]]:
    """The rows of the first sheet with their numbers, and notes on what was left out.

    Returns:
        Notes for people, and the rows that hold anything, cells as text.

    Raises:
        MissingPackageError: openpyxl is not installed.
        InputError: it is no workbook, or (while it is read too) exceeds a bound.
    """
    require("openpyxl", field=str(path), alternative="save it as CSV UTF-8")
    data = read_bytes(path, MAX_UNPACKED)
    _check_sizes(data, path)
    workbook = _open(data, path)
    sheets = workbook.worksheets
    if not sheets:
        raise InputError("has no sheet with cells", path=path)
    notes = [f"read the first of {len(sheets)} sheets, {sheets[0].title!r}"] if sheets[1:] else []
    return notes, _rows(sheets[0], path)


def _check_sizes(data: bytes, path: Path) -> None:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            parts = archive.infolist()
    except _BROKEN:
        raise _unreadable(path) from None
    n_bytes = sum(part.file_size for part in parts)
    is_bomb = n_bytes > max(_ANY_RATIO, MAX_RATIO * len(data))
    if len(parts) > MAX_PARTS or n_bytes > MAX_UNPACKED or is_bomb:
        raise InputError(
            f"unpacks to {n_bytes >> 20} MB in {len(parts)} parts, more than a workbook of prompts",
            path=path,
            hint="save the one sheet as CSV UTF-8",
        )


def _open(data: bytes, path: Path) -> Any:  # noqa: ANN401 - openpyxl has no types
    import openpyxl

    try:
        with _quiet():
            return openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True)
    except _BROKEN:
        raise _unreadable(path) from None


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep what openpyxl prints and warns of styles and dates away from the user's output."""
    with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
        warnings.filterwarnings("ignore", module="openpyxl")
        yield


def _rows(sheet: Any, path: Path) -> Iterator[tuple[int, list[str]]]:  # noqa: ANN401 - as above
    sheet.reset_dimensions()  # what the file says of its size is not to be trusted
    rows = sheet.iter_rows(max_row=MAX_ROWS + 1, max_col=MAX_COLUMNS + 1, values_only=True)
    number = 0
    while True:
        try:
            with _quiet():
                cells = next(rows, None)
        except _BROKEN:
            raise _unreadable(path, number) from None
        if cells is None:
            return
        number += 1
        texts = [_text(cell) for cell in cells]
        while texts and not texts[-1]:
            texts.pop()
        if number > MAX_ROWS or len(texts) > MAX_COLUMNS:
            raise InputError(
                f"has more than {MAX_ROWS:,} rows or {MAX_COLUMNS:,} columns",
                path=path,
                hint="save the sheet as CSV UTF-8",
            )
        if texts:
            yield number, texts


def _text(cell: object) -> str:
    if cell is None:
        return ""
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return cell.isoformat() if isinstance(cell, date | datetime | time) else str(cell)


def _unreadable(path: Path, row: int | None = None) -> InputError:
    return InputError(
        "is no Excel workbook (.xlsx) that can be read",
        path=path,
        line=row,
        hint="open it in Excel and save the sheet as CSV UTF-8",
    )
