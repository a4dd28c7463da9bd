"""SQL over the records of a run, by DuckDB: a view for each file, and nothing else within reach.

A query reads lines as they stream past, so a run may be larger than memory.
"""

from __future__ import annotations

import json
import shutil
import types
import weakref
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin

import duckdb
from pydantic import BaseModel

from clash.errors import InputError, RunFolderError
from clash.files import run_files
from clash.store import layout

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_TYPES = {str: "VARCHAR", int: "BIGINT", float: "DOUBLE", bool: "BOOLEAN"}
_MEMORY = "1GB"
_LONGEST_LINE = 32 * 2**20
"""Bytes. DuckDB keeps two buffers of this size for each thread."""
_THREADS = "2"
_AT_ONCE = 1000


@dataclass(frozen=True)
class QueryResult:
    """What a query selects, as it is read.

    Attributes:
        columns: names.
        types: of each column, as DuckDB names them.
    """

    columns: tuple[str, ...]
    types: tuple[str, ...]
    _cursor: duckdb.DuckDBPyConnection

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """The rows; lists and objects as such, everything else as Python's own type.

        Raises:
            InputError: the query fails on a row, or needs too much memory.
        """
        json_columns = [i for i, name in enumerate(self.types) if name == "JSON"]
        try:
            while batch := self._cursor.fetchmany(_AT_ONCE):
                for row in batch:
                    yield _decode_row(row, json_columns)
        except duckdb.Error as error:
            raise _query_error(error) from None
        except (ValueError, RecursionError):
            raise InputError("a value is no JSON that can be read", field="query") from None


def query(path: Path, sql: str) -> QueryResult:
    """Run one ``SELECT`` over a run folder.

    Views: one for each ``.jsonl`` file with records (``items``, ``responses``, ``calls``,
    ``judgments``, ``verdicts``, …), with its fields as columns; objects are structs (``tokens.input``), lists are JSON.

    Raises:
        InputError: the query is no single SELECT, or is wrong.
        RunFolderError: a file is not a regular file, or its last line is not complete.
    """
    paths = {name: path / name for name in layout.RECORDS}
    if not run_files.is_file(path / layout.PACKED_CALLS):
        return _query(paths, sql)
    if "calls" not in sql.casefold():  # a view that cannot be named is worth no copy
        del paths[layout.CALLS]
        return _query(paths, sql)
    with ExitStack() as stack:
        folder = TemporaryDirectory(prefix="clash-", ignore_cleanup_errors=True)
        paths[layout.CALLS] = Path(stack.enter_context(folder)) / layout.CALLS
        _unpack(path / layout.CALLS, paths[layout.CALLS])
        result = _query(paths, sql)
        weakref.finalize(result, stack.pop_all().close)  # rows are read from the copy
    return result


def _query(paths: Mapping[str, Path], sql: str) -> QueryResult:
    """The query over these files, by the names of their records."""
    connection = duckdb.connect(
        ":memory:",
        config={
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "memory_limit": _MEMORY,
            # DuckDB writes what does not fit beneath the working folder, and lets queries read it.
            "temp_directory": "",
            "threads": _THREADS,
        },
    )
    files = [path for path in paths.values() if _is_readable(path)]
    for name, path in paths.items():
        columns = _columns(layout.RECORDS[name])
        _add_view(connection, path, columns, is_empty=path not in files)
    # Both the pattern and the file that it finds must be allowed.
    patterns = dict.fromkeys(text for file in files for text in (str(file), _literal(file)))
    path_list = ", ".join("'" + text.replace("'", "''") + "'" for text in patterns)
    connection.execute(f"SET allowed_paths = [{path_list}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    try:
        statements = connection.extract_statements(sql)
        # COPY could overwrite the files that a query may read.
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise InputError("expected a single SELECT", field="query", hint="a run is only read")
        cursor = connection.execute(statements[0])
    except duckdb.Error as error:
        raise _query_error(error) from None
    description = cursor.description or []
    names, kinds = (tuple(str(column[i]) for column in description) for i in (0, 1))
    return QueryResult(names, kinds, cursor)


def _unpack(calls: Path, to: Path) -> None:
    """Copy compressed calls to a file that DuckDB can read."""
    with run_files.open_to_read(calls) as lines, to.open("wb") as copy:
        shutil.copyfileobj(lines, copy)


def _add_view(
    connection: duckdb.DuckDBPyConnection, file: Path, columns: dict[str, str], *, is_empty: bool
) -> None:
    """A view of a file by its name; a file that is missing or empty has no rows.

    Raises:
        RunFolderError: its path cannot be opened.
    """
    if is_empty:
        nulls = ", ".join(f'NULL::{kind} AS "{name}"' for name, kind in columns.items())
        connection.execute(f'CREATE VIEW "{file.stem}" AS SELECT {nulls} WHERE false')
        return
    try:
        records = connection.read_json(
            _literal(file),
            format="newline_delimited",
            columns=columns,
            maximum_object_size=_LONGEST_LINE,
        )
    except duckdb.IOException:  # a backslash beside a bracket, which no pattern can spell
        raise RunFolderError(
            f"{file}: DuckDB cannot open this path\n  fix: give the folder another name"
        ) from None
    records.create_view(file.stem)


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


def _literal(path: Path) -> str:
    """A path in which DuckDB finds no pattern of file names."""
    return "".join(f"[{c}]" if c in "*?[" else c for c in str(path))


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


def _query_error(error: duckdb.Error) -> InputError:
    """DuckDB's message without the excerpt of the query, which people can see."""
    if isinstance(error, duckdb.OutOfMemoryException):
        return InputError(
            f"needs more than {_MEMORY} of memory",
            field="query",
            hint="select fewer columns or rows, or count instead of sorting",
        )
    message = str(error).partition("\n\nLINE")[0].partition(", due to the following Python")[0]
    message = message.replace("\n", " ").strip()
    is_unknown = isinstance(error, duckdb.CatalogException | duckdb.BinderException)
    hint = "`show tables` and `describe TABLE` name what there is" if is_unknown else None
    return InputError(message, field="query", hint=hint)
