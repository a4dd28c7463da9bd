from __future__ import annotations

import csv
import json
import math
import sys
from itertools import islice, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clash.cli.common import print_json, print_tables
from clash.cli.options import AsJson, Out, RunArgument
from clash.cli.sources import open_run
from clash.cli.streams import is_lost
from clash.errors import ConfigError
from clash.escape import clip, for_csv, for_terminal
from clash.extras import require

if TYPE_CHECKING:
    from clash.integrations.sql import QueryResult

_MOST_ROWS = 100
_MOST_CHARS = 60


def query(
    run: RunArgument,
    sql: Annotated[str, typer.Argument(help="One SELECT.", metavar="SQL", show_default=False)],
    as_csv: Annotated[bool, typer.Option("--csv", help="Print all rows as CSV.")] = False,
    out: Out = Path("runs"),
    as_json: AsJson = False,
) -> None:
    """Ask a run in SQL: a table for each of its files (extra: duckdb).

    `clash query latest "select judge, count(*) n, sum(tokens.output) t from calls group by judge"`
    """
    require("duckdb")
    if as_csv and as_json:
        raise ConfigError("choose one", field="--csv", hint="--csv or --json")
    folder = open_run(run, out)
    from clash.integrations.sql import query as ask

    with ask(folder.path, sql) as result:
        if as_json:
            rows = [[_as_json(value) for value in row] for row in result.rows()]
            print_json({"run": str(folder.path), "columns": list(result.columns), "rows": rows})
        elif as_csv:
            lines = csv.writer(sys.stdout, lineterminator="\n")
            lines.writerow(result.columns)
            rows_read = takewhile(lambda _row: not is_lost(sys.stdout), result.rows())
            lines.writerows([_as_csv(value) for value in row] for row in rows_read)
        else:
            _print(result)


def _print(result: QueryResult) -> None:
    """The first rows, long values cut."""
    from clash.report.tables import Table

    rows = [[_cell(value) for value in row] for row in islice(result.rows(), _MOST_ROWS + 1)]
    notes = (
        [f"only the first {_MOST_ROWS} rows; --csv prints all"] if len(rows) > _MOST_ROWS else []
    )
    is_number = {"BIGINT", "DOUBLE", "HUGEINT", "INTEGER"}
    numeric = frozenset(i for i, kind in enumerate(result.types) if kind in is_number)
    print_tables([Table("", result.columns, rows[:_MOST_ROWS], numeric, notes)])


def _cell(value: Any) -> str:  # noqa: ANN401 - any value of SQL

    text = f"{value:.6g}" if isinstance(value, float) else "–" if value is None else str(value)
    return clip(text, _MOST_CHARS)


def _as_json(value: Any) -> Any:  # noqa: ANN401 - any value of SQL
    """Numbers, texts, lists and objects as such; not a number is null, dates and decimals text."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {str(name): _as_json(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_as_json(part) for part in value]
    return value if value is None or isinstance(value, str | int | float) else str(value)


def _as_csv(value: Any) -> str:  # noqa: ANN401 - any value of SQL

    if isinstance(value, dict | list):
        value = json.dumps(_as_json(value), ensure_ascii=False)
    if value is None:
        return ""
    text = for_csv(value) if isinstance(value, str) else str(value)
    return for_terminal(text) if sys.stdout.isatty() else text
