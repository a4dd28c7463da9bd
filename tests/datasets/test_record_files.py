"""Files of records: every format says the same, and an error points at its place."""

import gzip
import json

import pyarrow as pa
import pytest
from pyarrow import parquet

from clash.datasets import record_files
from clash.errors import InputError

RECORDS = [{"prompt": "Why?", "n": 1}, {"prompt": "a\u2028b\u0085c\x0bd", "n": 2}]


def write(path, records):
    name = path.name.lower().removesuffix(".gz")
    if name.endswith(".parquet"):
        parquet.write_table(pa.Table.from_pylist(records), path)
        return path
    if name.endswith(".json"):
        data = json.dumps(records, ensure_ascii=False)
    elif name.endswith("jsonl"):
        data = "".join(json.dumps(r, ensure_ascii=False) + "\n" for r in records)
    else:
        mark = "\t" if name.endswith(".tsv") else ","
        lines = [mark.join(records[0])]
        lines += [mark.join(f'"{value}"' for value in r.values()) for r in records]
        data = "".join(line + "\r\n" for line in lines)
    raw = data.encode()
    path.write_bytes(gzip.compress(raw) if path.suffix.lower() == ".gz" else raw)
    return path


@pytest.mark.parametrize(
    "name",
    [
        "r.jsonl",
        "r.jsonl.gz",
        "r.json",
        "r.json.gz",
        "r.csv",
        "r.csv.gz",
        "R.CSV.GZ",
        "r.tsv",
        "r.parquet",
    ],
)
def test_every_format_yields_the_same_records(tmp_path, name):
    rows = list(record_files.rows(write(tmp_path / name, RECORDS)))
    assert [row.text("prompt") for row in rows] == [r["prompt"] for r in RECORDS]
    assert [row.text("n") for row in rows] == ["1", "2"]
    assert [row.number for row in rows] == [1, 2]


def test_blank_lines_do_not_shift_the_line_numbers(tmp_path):
    path = tmp_path / "r.jsonl"
    path.write_text('{"a": 1}\n\n{"a": 2}\n')
    assert [row.line for row in record_files.rows(path)] == [1, 3]


@pytest.mark.parametrize(
    ("name", "content", "where"),
    [
        ("r.jsonl", b'{"a": 1}\n{"a": \n', "r.jsonl:2: is not JSON"),
        ("r.jsonl", b'{"a": 1}\n[1]\n', "r.jsonl:2: expected a JSON object"),
        ("r.jsonl", b'{"a": "\xff"}\n', "r.jsonl:1: is not UTF-8 (byte 7)"),
        ("r.jsonl.gz", b"not gzip", "is not gzip"),
        ("r.json", b'{"a": 1}', "expected a list of objects"),
        ("r.json", b'[{"a": 1}, 2]', "record 2: expected an object"),
        ("r.json", b'[\n{"a": }\n]', "r.json:2: is not JSON"),
        ("r.csv", b"a,b\n1,2\n1,2,3\n", "r.csv:3: has more cells than the header"),
        ("r.csv", b'a,b\n1,"2\n', "is not CSV"),
        ("r.parquet", b"PAR1 no", "is not Parquet"),
        ("r.xlsx", b"", "has an ending that holds no records (.xlsx)"),
    ],
)
def test_a_broken_file_is_named_with_its_place(tmp_path, name, content, where):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        list(record_files.rows(path))
    assert where in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        record_files.rows(tmp_path / "none.jsonl")
    with pytest.raises(InputError, match="is a folder"):
        record_files.rows(tmp_path)


def test_a_field_without_a_value_is_missing_but_an_empty_text_is_verbatim():
    from pathlib import Path

    row = record_files.SourceRow(
        Path("f"), 3, {"a": "", "b": float("nan"), "c": "x", "d": [1]}, line=7
    )
    assert row.get("a", "b", "c") == "x"
    assert row.optional("a", "b") is None
    assert row.verbatim("a") == ""
    assert row.verbatim("b") is None
    with pytest.raises(InputError, match=r"f:7: a: is missing or empty"):
        row.text("a")
    with pytest.raises(InputError, match=r"f:7: d: expected text, found list"):
        row.text("d")
    with pytest.raises(InputError, match=r"f:7: e: is missing"):
        row.verbatim("e")


def test_a_record_without_lines_is_named_by_its_number(tmp_path):
    path = write(tmp_path / "r.parquet", RECORDS)
    second = list(record_files.rows(path))[1]
    assert "record 2, label: is wrong" in str(second.error("is wrong", "label"))
