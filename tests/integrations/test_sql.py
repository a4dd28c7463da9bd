"""A run in SQL: what the files say, and nothing beside them."""

import csv
import io
import json
import shutil
import subprocess
import sys

import pytest

from clash.cli.app import run
from clash.integrations import sql as sql_module


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs")
    assert run(["demo", "--out", str(out), "-q"]) == 0
    return next(out.glob("*quickstart*"))


def rows(capsys, folder, sql):
    capsys.readouterr()
    assert run(["query", str(folder), sql, "--json"]) == 0
    return json.loads(capsys.readouterr().out)["rows"]


def lines(folder, name):
    file = folder / f"{name}.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


@pytest.mark.parametrize("name", ["items", "responses", "calls", "judgments", "verdicts", "labels"])
def test_a_table_holds_each_line_of_its_file(capsys, folder, name):
    assert rows(capsys, folder, f"select count(*) from {name}") == [[len(lines(folder, name))]]


def test_fields_are_columns_and_keep_their_types(capsys, folder):
    sql = "select item_id, judge, ranking, weight from judgments order by item_id, judge"
    expected_rows = sorted(
        [j["item_id"], j["judge"], j["ranking"], j["weight"]] for j in lines(folder, "judgments")
    )
    assert rows(capsys, folder, sql) == expected_rows
    tokens = sum(call["tokens"]["output"] or 0 for call in lines(folder, "calls"))
    assert rows(capsys, folder, "select sum(tokens.output) from calls") == [[tokens]]
    assert rows(capsys, folder, "select 'nan'::double, 1.5::decimal(3, 1)") == [[None, "1.5"]]


def test_csv_has_every_row_and_no_formula(capsys, folder):
    capsys.readouterr()
    sql = "select item_id, '=cmd' as x, ranking from judgments"
    assert run(["query", str(folder), sql, "--csv"]) == 0
    head, *table = csv.reader(io.StringIO(capsys.readouterr().out))
    assert head == ["item_id", "x", "ranking"]
    assert len(table) == len(lines(folder, "judgments"))
    assert not any(row[1].startswith("=") for row in table)
    assert [json.loads(row[2]) for row in table] == [
        j["ranking"] for j in lines(folder, "judgments")
    ]


@pytest.mark.parametrize(
    "sql",
    [
        "copy (select 1) to '{file}'",
        "select 1; select 2",
        "select * from read_text('/etc/passwd')",
        "select * from read_text('{folder}/manifest.json')",
        "attach '{folder}/x.db'",
        "install httpfs",
        "set enable_external_access = true",
        "selec 1",
        "select nothing from judgments",
        "",
    ],
)
def test_what_is_no_question_to_the_run_is_refused(capsys, folder, sql):
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    assert run(["query", str(folder), sql.format(folder=folder, file=folder / "items.jsonl")]) == 2
    assert "Traceback" not in capsys.readouterr().err
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before


def test_an_unknown_table_or_column_says_how_to_see_what_there_is(capsys, folder):
    for sql in ("select * from nope", "select nope from items"):
        assert run(["query", str(folder), sql]) == 2
        assert "fix: `show tables` and `describe TABLE` name" in capsys.readouterr().err
    for sql in ("show tables", "describe items"):
        assert run(["query", str(folder), sql]) == 0


@pytest.mark.parametrize("name", ["r[1]", "r*", "r?", "r'q", "a\\b", "{a,b}"])
def test_a_folder_of_any_name_can_be_asked(capsys, folder, tmp_path, name):
    shutil.copytree(folder, tmp_path / name)
    expected_rows = [[len(lines(folder, "items"))]]
    assert rows(capsys, tmp_path / name, "select count(*) from items") == expected_rows


def test_a_query_neither_reads_nor_writes_beneath_the_working_folder(
    capsys, folder, tmp_path, monkeypatch
):
    """DuckDB would keep what does not fit into memory in ``.tmp``, where a query may read."""
    (tmp_path / ".tmp").mkdir()
    (tmp_path / ".tmp" / "note").write_text("private")
    monkeypatch.chdir(tmp_path)
    assert run(["query", str(folder), "select content from read_text('.tmp/note')"]) == 2
    assert "private" not in capsys.readouterr().out
    sql = "select repeat('x', 999) || i as t from range(9000000) r(i) order by t"
    assert run(["query", str(folder), sql]) == 2
    assert "needs more than 1GB of memory" in capsys.readouterr().err
    assert [file.name for file in tmp_path.rglob("*")] == [".tmp", "note"]


@pytest.mark.parametrize("text", ['{"item_id": "x"', '{"item_id": }\n', "no json\n"])
def test_a_broken_line_is_an_error(capsys, folder, tmp_path, text):
    (tmp_path / "manifest.json").write_bytes((folder / "manifest.json").read_bytes())
    (tmp_path / "items.jsonl").write_text(text)
    assert run(["query", str(tmp_path), "select * from items"]) == 2
    error = capsys.readouterr().err
    assert "items.jsonl" in error or "JSON" in error
    assert "Traceback" not in error


@pytest.mark.parametrize(
    "sql",
    [
        "select repeat('x', 3000000000)",
        "select list(repeat('y', 9999999)) from range(999)",
    ],
)
def test_a_text_that_a_query_computes_counts_as_memory(capsys, folder, sql):
    """DuckDB's own bound counts its buffers only: these took 6 GB and 20 seconds."""
    assert run(["query", str(folder), sql]) == 2
    assert "needs more than 1GB of memory" in capsys.readouterr().err


def test_ctrl_c_ends_a_query_that_has_no_end(folder, monkeypatch):
    """DuckDB itself heard no signal there; without an end of its process this test would wait."""

    def interrupt(_answers):
        raise KeyboardInterrupt

    monkeypatch.setattr(sql_module, "_answer", interrupt)
    endless = "with recursive t(n) as (select 1 union all select n + 1 from t) select max(n) from t"
    assert run(["query", str(folder), endless]) == 130


def test_rows_that_nobody_reads_are_not_queried(folder):
    command = [
        sys.executable,
        "-m",
        "clash",
        "query",
        str(folder),
        "select * from range(1000000000)",
    ]
    with subprocess.Popen(
        [*command, "--csv"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout.readline() == b"range\n"
        process.stdout.close()  # as `| head -1` does
        assert process.wait() == 0
        assert process.stderr.read() == b""
