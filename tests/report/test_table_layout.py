"""Every table of every command, at every width: no figure is cut and no row loses its name."""

from __future__ import annotations

import contextlib
import io
import os
import re

import pytest
from rich.cells import cell_len

from clash.cli.app import run
from clash.pages.names import ELLIPSIS
from clash.report import terminal
from clash.report.table_layout import markdown_lines, text_lines, wrap
from clash.report.tables import Table
from golden.record import QUICKSTART, write_inputs

WIDTHS = (60, 80, 100, 200, None)
COMMANDS = (
    ["demo", "--run-id", "demo", "-v"],
    ["eval", QUICKSTART, "-n", "12", "--run-id", "first", "--seed", "7", "--both-orders", "-v"],
    ["eval", QUICKSTART, "-n", "4", "--dry-run", "-v"],
    ["validate", "pairs.jsonl", "--panel", "baseline", "--run-id", "pairs", "-v"],
    ["rerun", "demo", "-v"],
    ["redteam", "baseline", "--n", "2", "--run-id", "attacked", "-v"],
    ["compare", "demo", "pairs", "-v"],
    ["gate", "demo", "--min", "coverage=0.5"],
    ["runs"],
    ["aggregate", "votes.jsonl", "--method", "majority,dawid-skene"],
    ["aggregate", "demo", "--method", "borda,copeland,bradley-terry"],
    ["dependence", "votes.jsonl", "--bootstrap", "20"],
    ["diagnose", "votes.jsonl", "--replications", "20"],
    ["diagnose", "demo", "--replications", "20"],
    ["power"],
    ["power", "--for", "paired", "--panel", "0.9,0.6", "--icc", "0.3", "--n", "50"],
    ["simulate", "three-judges"],
    ["simulate", "--list"],
    ["study", "ising", "votes.jsonl", "--trials", "2"],
    ["study", "fcps", "votes.jsonl", "--splits", "2"],
    ["datasets", "list"],
    ["doctor"],
)
LONG = "openrouter/anthropic/claude-haiku-5.5-with-a-very-long-name-"


@pytest.fixture(scope="module")
def tables(tmp_path_factory) -> list[Table]:
    """The tables that the commands print."""
    folder, output = tmp_path_factory.mktemp("tables"), []
    write_inputs(folder)
    with pytest.MonkeyPatch.context() as patch, contextlib.chdir(folder):
        patch.setattr(terminal, "text_lines", lambda table, width: record(output, table, width))
        for words in COMMANDS:
            with (
                contextlib.redirect_stdout(io.StringIO()),
                contextlib.redirect_stderr(io.StringIO()),
            ):
                run(words)
    assert len(output) > 80
    return output


def record(output: list[Table], table: Table, width: int | None):
    output.append(table)
    return text_lines(table, width)


def flaws(table: Table, width: int | None) -> list[str]:
    """What a reader would miss."""
    lines = text_lines(table, width)
    text = [*lines.header, *lines.body]
    words = set(" ".join(lines.body + lines.header).split())
    columns = [i for i, name in enumerate(table.columns) if name not in lines.missing_columns]
    complaints = [f"{table.columns[0]}: left out"] if 0 not in columns and table.columns[0] else []
    longest = max((cell_len(w) for row in table.rows for c in row for w in c.split()), default=0)
    limit = max(width or 0, longest)
    if width is not None:
        complaints += [f"too wide: {line}" for line in text if cell_len(line) > limit]
    for row in table.rows:
        for index in columns:
            cell = " ".join(row[index].split())
            if index in table.numeric and not any(cell in line for line in text):
                complaints.append(f"figure cut: {cell}")
            if index not in table.numeric and not all(
                word in words or is_shortened(word, words) or len(word) > 40
                for word in cell.split()
            ):
                complaints.append(f"words lost: {cell}")
    return complaints


def is_shortened(word: str, words: set[str]) -> bool:
    """Whether a word stands among ``words`` without its beginning or its middle."""
    for text in words:
        head, mark, tail = text.partition(ELLIPSIS)
        if mark and word.startswith(head) and word.endswith(tail) and len(tail) > 3:
            return True
    return False


@pytest.mark.parametrize("width", WIDTHS)
def test_no_table_of_any_command_loses_a_figure_or_a_name(tables, width):
    bad = {table.title: flaw_list for table in tables if (flaw_list := flaws(table, width))}
    assert not bad


def test_a_table_never_says_that_its_first_column_is_dispensable(tables):
    assert not [table.title for table in tables if 0 in table.optional]


def test_markdown_has_every_cell(tables):
    for table in tables:
        assert len(markdown_lines(table)) == len(table.rows) + 2


def example(n_columns: int, names: list[str], **more: object) -> Table:
    columns = ["candidate", *(f"figure {i}" for i in range(n_columns))]
    rows = [
        [name, *(f"{i}{n}.5% [10, 90]" for i in range(n_columns))] for n, name in enumerate(names)
    ]
    return Table("t", columns, rows, frozenset(range(1, n_columns + 1)), **more)


def test_columns_go_in_the_order_that_the_table_declares():
    table = example(5, ["a", "b"], optional=(5, 4, 3))
    assert text_lines(table, 100).missing_columns == []
    assert text_lines(table, 80).missing_columns == ["figure 4"]
    assert text_lines(table, 60).missing_columns == ["figure 4", "figure 3"]


def test_rows_and_columns_change_places_where_no_column_may_go():
    lines = text_lines(example(6, ["a", "b"]), 60)
    assert lines.header[0].split() == ["candidate", "a", "b"]
    assert len(lines.body) == 6


def test_each_row_is_a_block_where_nothing_else_fits():
    table = example(9, [f"{LONG}{i}" for i in range(9)])
    lines = text_lines(table, 60)
    assert sum("figure 8" in line for line in lines.body) == 9
    assert not flaws(table, 60)


@pytest.mark.parametrize("width", [60, 80])
def test_long_names_stay_apart(width):
    lines = text_lines(example(2, [f"{LONG}{i}" for i in range(3)]), width)
    names = [line.split()[0] for line in lines.body]
    assert len(set(names)) == 3
    assert all(re.search(r"\d$", name) for name in names)


def test_wrapped_code_keeps_its_indentation():
    assert wrap("    return left + right", 15) == ["    return left", "+ right"]


def test_a_file_has_no_width():
    table = example(20, [LONG])
    assert max(map(len, text_lines(table, None).body)) > 300
    assert LONG in text_lines(table, None).body[0]


def test_output_to_a_pipe_is_not_cut(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    assert run(["demo", "--run-id", "demo", "-v"]) == 0
    output = capsys.readouterr().out
    assert "Borda share" in output
    assert not re.search(r"[ \t]$", output, re.MULTILINE)
    assert os.environ.get("COLUMNS") is None
