"""Files of records: every format says the same, and an error points at its place."""

import gzip
import json

import numpy as np
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
    with pytest.raises(InputError) as error:
        list(record_files.rows(path))
    assert where in str(error.value)
    assert str(path) in str(error.value)


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


def _text(data):
    offsets = pa.py_buffer(np.array([0, len(data)], np.int32).tobytes())
    return pa.Array.from_buffers(pa.string(), 1, [None, offsets, pa.py_buffer(data)])


SMALL_BOUNDS = {"_MAX_COLUMNS": 10, "_MAX_VALUES": 1000, "_MAX_COLUMN_BYTES": 1 << 20}
PARQUET_BOMBS = {
    "rows": ({"a": pa.nulls(1001, pa.int8())}, "holds 1,001 rows; 1,000 are read"),
    "columns": ({f"c{n}": [1] for n in range(11)}, "holds 11 columns; 10 are read"),
    "list": (
        {"a": pa.ListArray.from_arrays([0, 1001], pa.nulls(1001, pa.int8()))},
        "holds 1,001 values in 'a.list.element'",
    ),
    "text": ({"a": ["x" * (1 << 20)]}, "bytes in 'a'; 1,048,576 are read"),
    "ratio": ({n: [n * 1_000_000] for n in "abc"}, "bytes once unpacked; 1,048,576 are read"),
    "no UTF-8": ({"a": _text(b"\xff\xfe")}, "a value in or after record 1 cannot be read"),
    "year 148,000": ({"a": pa.array([2**62], pa.timestamp("us"))}, "record 1 cannot be read"),
}


@pytest.mark.parametrize("name", PARQUET_BOMBS)
def test_parquet_beyond_its_bounds_is_refused(tmp_path, monkeypatch, name):
    for bound, value in SMALL_BOUNDS.items():
        monkeypatch.setattr(record_files, bound, value)
    monkeypatch.setattr("clash.files.inputs._ANY_RATIO", 1 << 20)
    columns, words = PARQUET_BOMBS[name]
    parquet.write_table(pa.table(columns), tmp_path / "r.parquet", compression="zstd")
    with pytest.raises(InputError, match=words):
        list(record_files.rows(tmp_path / "r.parquet"))


def test_values_that_a_parquet_file_repeats_are_counted_as_often_as_they_stand(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(record_files, "_MAX_COLUMN_BYTES", 1 << 20)
    monkeypatch.setattr("clash.files.inputs._ANY_RATIO", 1 << 20)
    repeated_values = pa.DictionaryArray.from_arrays(pa.array([0] * 3000, pa.int32()), ["x" * 1000])
    parquet.write_table(pa.table({"a": repeated_values}), tmp_path / "r.parquet")
    with pytest.raises(InputError, match="characters once unpacked; 1,048,576 are read"):
        list(record_files.rows(tmp_path / "r.parquet"))


def test_rows_of_long_values_are_read_a_few_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(record_files, "_MAX_BATCH_BYTES", 5000)
    path = write(tmp_path / "r.parquet", [{"a": f"{n}" + "x" * 1000} for n in range(20)])
    with parquet.ParquetFile(path) as file:
        assert record_files._check_parquet(file.metadata, path) == 1
    assert [row.value["a"][:2] for row in record_files.rows(path)] == [
        f"{n}x"[:2] for n in range(20)
    ]
