"""The process in which DuckDB works: its memory has an end, and whoever waits can end it.

DuckDB counts its buffers, not the texts that a query computes, and hears no Ctrl-C in the middle of
one. The process reads a pickled ``SqlTask`` from stdin, and writes pickled answers to stdout: a
``Header``, then lists of rows, then ``None``; or an ``SqlFailure`` instead of any of these.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
from typing import TYPE_CHECKING, BinaryIO

import duckdb

from clash.integrations.sql import MEMORY, OUT_OF_MEMORY, Header, SqlFailure, SqlTask, View

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_ADDRESS_SPACE = 3 << 30
"""Bytes that the whole process may map; an idle one maps 0.8 GB."""
_LONGEST_LINE = 32 * 2**20
"""Bytes. DuckDB keeps two buffers of this size for each thread."""
_THREADS = "2"
_BATCH = 1000


def main() -> None:
    """Answer the query on stdin."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever else prints must not stand between two answers
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the waiting process hears it, and ends this one
    _limit_memory()
    task = pickle.load(sys.stdin.buffer)  # noqa: S301 - written by clash.integrations.sql
    _answer(task, answers)
    answers.flush()
    os._exit(0)  # an orderly end would print what DuckDB's bindings leak


def _limit_memory() -> None:
    if sys.platform == "win32":
        return
    import resource

    hard_limit = resource.getrlimit(resource.RLIMIT_AS)[1]
    bounds = [_ADDRESS_SPACE] + [hard_limit] * (hard_limit != resource.RLIM_INFINITY)
    resource.setrlimit(resource.RLIMIT_AS, (min(bounds), hard_limit))


def _answer(task: SqlTask, answers: BinaryIO) -> None:
    try:
        cursor = _execute(_connect(task.views), task.sql)
        description = cursor.description or []
        names, types = (tuple(str(column[i]) for column in description) for i in (0, 1))
        pickle.dump(Header(names, types), answers)
        answers.flush()
        for rows in _batches(cursor):
            pickle.dump(rows, answers)
        pickle.dump(None, answers)
    except SqlFailure as failure:
        pickle.dump(failure, answers)
    except duckdb.Error as error:
        pickle.dump(_failure(error), answers)
    except MemoryError:
        pickle.dump(OUT_OF_MEMORY, answers)


def _batches(cursor: duckdb.DuckDBPyConnection) -> Iterator[Sequence[tuple[object, ...]]]:
    while rows := cursor.fetchmany(_BATCH):
        yield rows


def _connect(views: Sequence[View]) -> duckdb.DuckDBPyConnection:
    """A connection that sees the views, and nothing else of this machine.

    Raises:
        SqlFailure: the path of a file cannot be opened.
    """
    connection = duckdb.connect(
        ":memory:",
        config={
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "memory_limit": MEMORY,
            # DuckDB writes what does not fit beneath the working folder, and lets queries read it.
            "temp_directory": "",
            "threads": _THREADS,
        },
    )
    for view in views:
        _add_view(connection, view)
    # Both the pattern and the file that it finds must be allowed.
    files = [view.path for view in views if view.path is not None]
    patterns = dict.fromkeys(text for file in files for text in (file, _literal(file)))
    path_list = ", ".join("'" + text.replace("'", "''") + "'" for text in patterns)
    connection.execute(f"SET allowed_paths = [{path_list}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET enable_progress_bar = false")
    connection.execute("SET lock_configuration = true")
    return connection


def _add_view(connection: duckdb.DuckDBPyConnection, view: View) -> None:
    if view.path is None:
        nulls = ", ".join(f'NULL::{kind} AS "{name}"' for name, kind in view.columns.items())
        connection.execute(f'CREATE VIEW "{view.name}" AS SELECT {nulls} WHERE false')
        return
    try:
        records = connection.read_json(
            _literal(view.path),
            format="newline_delimited",
            columns=view.columns,
            maximum_object_size=_LONGEST_LINE,
        )
    except duckdb.IOException:  # a backslash beside a bracket, which no pattern can spell
        raise SqlFailure(
            "DuckDB cannot open this path", "give the folder another name", view.path
        ) from None
    records.create_view(view.name)


def _execute(connection: duckdb.DuckDBPyConnection, sql: str) -> duckdb.DuckDBPyConnection:
    statements = connection.extract_statements(sql)
    # COPY could overwrite the files that a query may read.
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise SqlFailure("expected a single SELECT", "a run is only read")
    return connection.execute(statements[0])


def _literal(path: str) -> str:
    """A path in which DuckDB finds no pattern of file names."""
    return "".join(f"[{c}]" if c in "*?[" else c for c in path)


def _failure(error: duckdb.Error) -> SqlFailure:
    """DuckDB's message without the excerpt of the query, which people can see."""
    if isinstance(error, duckdb.OutOfMemoryException):
        return OUT_OF_MEMORY
    message = str(error).partition("\n\nLINE")[0].partition(", due to the following Python")[0]
    message = message.replace("\n", " ").strip()
    is_unknown = isinstance(error, duckdb.CatalogException | duckdb.BinderException)
    hint = "`show tables` and `describe TABLE` name what there is" if is_unknown else None
    return SqlFailure(message, hint)
