"""SQL over the records of a run, by DuckDB: a view for each file, and nothing else within reach.

A query reads lines as they stream past, so a run may be larger than memory.
"""

from __future__ import annotations

import json
import pickle
import shutil
import subprocess
import sys
import types
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, TYPE_CHECKING, Any, Union, cast, get_args, get_origin

from pydantic import BaseModel

from clash.errors import InputError, RunFolderError
from clash.files import run_files
from clash.store import layout

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_TYPES = {str: "VARCHAR", int: "BIGINT", float: "DOUBLE", bool: "BOOLEAN"}
MEMORY = "1GB"
"""What DuckDB may take for its tables and sorts."""
PROGRAM = "from clash.integrations import sql_process; sql_process.main()"


@dataclass(frozen=True)
class View:
    """A view of one file of records.

    Attributes:
        name: as queries name it.
        path: the file; null where it is missing or empty, and the view has no rows.
        columns: DuckDB's types by name.
    """

    name: str
    path: str | None
    columns: dict[str, str]


@dataclass(frozen=True)
class SqlTask:
    """One query and what it may read."""

    sql: str
    views: tuple[View, ...]


@dataclass(frozen=True)
class Header:
    """The names and types of the columns that a query selects."""

    names: tuple[str, ...]
    types: tuple[str, ...]


class SqlFailure(Exception):
    """Why a query has no more rows.

    Attributes:
        message: what is wrong.
        hint: what to do about it.
        path: the file that DuckDB cannot open, where that is the reason.
    """

    def __init__(self, message: str, hint: str | None = None, path: str | None = None) -> None:
        super().__init__(message, hint, path)
        self.message, self.hint, self.path = message, hint, path


OUT_OF_MEMORY = SqlFailure(
    f"needs more than {MEMORY} of memory",
    "select fewer columns or rows, or count instead of sorting",
)


@dataclass(frozen=True)
class QueryResult:
    """What a query selects, as it is read.

    Attributes:
        columns: names.
        types: of each column, as DuckDB names them.
    """

    columns: tuple[str, ...]
    types: tuple[str, ...]
    _answers: IO[bytes]

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """The rows; lists and objects as such, everything else as Python's own type.

        Raises:
            InputError: the query fails on a row, or needs too much memory.
        """
        json_columns = [i for i, name in enumerate(self.types) if name == "JSON"]
        try:
            while batch := _answer(self._answers):
                for row in batch:
                    yield _decode_row(row, json_columns)
        except (ValueError, RecursionError):
            raise InputError("a value is no JSON that can be read", field="query") from None


@contextmanager
def query(path: Path, sql: str) -> Iterator[QueryResult]:
    """Run one ``SELECT`` over a run folder, in a process that ends with the context.

    Views: one for each ``.jsonl`` file with records (``items``, ``responses``, ``calls``,
    ``judgments``, ``verdicts``, …), with its fields as columns; objects are structs (``tokens.input``), lists are JSON.

    Raises:
        InputError: the query is no single SELECT, or is wrong, or needs too much memory.
        RunFolderError: a file is not a regular file, or its last line is not complete.
    """
    with _record_files(path, sql) as files, _process() as (task, answers):
        views = tuple(_view(name, file) for name, file in files.items())
        with task:
            pickle.dump(SqlTask(sql, views), task)
        header = _answer(answers)
        yield QueryResult(header.names, header.types, answers)


@contextmanager
def _record_files(path: Path, sql: str) -> Iterator[Mapping[str, Path]]:
    """The files that a query may read, by the names of their records."""
    paths = {name: path / name for name in layout.RECORDS}
    if not run_files.is_file(path / layout.PACKED_CALLS):
        yield paths
        return
    with TemporaryDirectory(prefix="clash-", ignore_cleanup_errors=True) as folder:
        paths[layout.CALLS] = Path(folder) / layout.CALLS
        if "calls" in sql.casefold():  # a view that cannot be named is worth no copy
            _unpack(path / layout.CALLS, paths[layout.CALLS])
        yield paths


def _unpack(calls: Path, to: Path) -> None:
    """Copy compressed calls to a file that DuckDB can read."""
    with run_files.open_to_read(calls) as lines, to.open("wb") as copy:
        shutil.copyfileobj(lines, copy)


@contextmanager
def _process() -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """The stdin and stdout of a process that answers one query, and is ended here."""
    # -P: a module in the working folder must not take the place of one of clash.
    command = [sys.executable, "-P", "-c", PROGRAM]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:  # noqa: S603 - this program
        try:
            yield cast("IO[bytes]", process.stdin), cast("IO[bytes]", process.stdout)
        finally:
            process.kill()


def _answer(answers: IO[bytes]) -> Any:  # noqa: ANN401 - a header, rows, or null at the end
    """The next answer of the process.

    Raises:
        InputError: the query failed, or the process ended without an answer: out of memory.
        RunFolderError: a file cannot be opened.
    """
    try:
        answer = pickle.load(answers)  # noqa: S301 - written by clash.integrations.sql_process
    except (EOFError, pickle.UnpicklingError):
        answer = OUT_OF_MEMORY
    if not isinstance(answer, SqlFailure):
        return answer
    if answer.path is not None:
        raise RunFolderError(f"{answer.path}: {answer.message}\n  fix: {answer.hint}")
    raise InputError(answer.message, field="query", hint=answer.hint)


def _view(name: str, file: Path) -> View:
    path = str(file) if _is_readable(file) else None
    return View(file.stem, path, _columns(layout.RECORDS[name]))


def _is_readable(path: Path) -> bool:
    """Whether the file is there and holds whole lines.

    Raises:
        RunFolderError: it is not a regular file, or a line is being written.
    """
    if not run_files.is_file(path):
        return False
    with run_files.open_to_read(path) as file:
        if file.seek(0, 2) == 0:
            return False
        file.seek(-1, 2)
        if file.read(1) != b"\n":
            raise RunFolderError(
                f"{path}: its last line is not complete\n  fix: `clash resume {path.parent}`"
            )
    return True


def _columns(record: type[BaseModel]) -> dict[str, str]:
    """The columns of a view: a record's fields, by DuckDB's types."""
    return {name: _type(field.annotation) for name, field in record.model_fields.items()}


def _type(annotation: object) -> str:
    if get_origin(annotation) in (Union, types.UnionType):
        kinds = {_type(part) for part in get_args(annotation) if part is not type(None)}
        return kinds.pop() if len(kinds) == 1 else "JSON"
    choices = get_args(annotation)
    if choices and all(isinstance(choice, str) for choice in choices):  # a Literal
        return "VARCHAR"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        fields = ", ".join(f'"{name}" {kind}' for name, kind in _columns(annotation).items())
        return f"STRUCT({fields})"
    return _TYPES.get(annotation, "JSON")  # type: ignore[call-overload, no-any-return]


def _decode_row(row: tuple[Any, ...], json_columns: list[int]) -> tuple[Any, ...]:
    if not json_columns:
        return row
    values = list(row)
    for i in json_columns:
        values[i] = None if values[i] is None else json.loads(values[i])
    return tuple(values)
