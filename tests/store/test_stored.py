"""Records that stay on disk: the same as in memory, as strictly read, and once per kind."""

import json

import pytest

from clash.errors import RunFolderError
from clash.records import Call, Criteria, Item, Judgment, Response
from clash.store import journal, layout
from clash.store.stored import ByItem, StoredCalls, StoredRecords, decode_fast, of_items, with_item

JUDGMENT = {
    "item_id": "q1",
    "presentation": 0,
    "judge": "j",
    "role": "voting",
    "weight": 1,
    "ranking": [["A0"], ["A1"]],
    "scores": {"A0": {"true": 5}},
    "parse": "clean",
}
CRITERIA = {"item_id": "q1", "source": "fixed", "criteria": [{"name": "true", "weight": 1}]}
ITEM = {"item_id": "q1", "messages": [{"role": "user", "content": "é"}], "more": [1, {"a": None}]}


def line_with(fields, **update):
    return json.dumps({**fields, **update}).encode() + b"\n"


@pytest.mark.parametrize(
    ("model", "line"),
    [
        (Judgment, line_with(JUDGMENT)),
        (Judgment, line_with(JUDGMENT, weight="1.5")),
        (Judgment, line_with(JUDGMENT, presentation=1.0)),
        (Judgment, line_with(JUDGMENT, weight=float("nan"))),
        (Judgment, line_with(JUDGMENT, weight=True)),
        (Judgment, line_with(JUDGMENT, role="judge")),
        (Judgment, line_with(JUDGMENT, scores={"A0": {"true": "five"}})),
        (Judgment, line_with({k: v for k, v in JUDGMENT.items() if k != "parse"})),
        (Judgment, b'{"item_id": "q1"'),
        (Judgment, b"[]\n"),
        (Judgment, line_with(JUDGMENT)[:-2] + b', "judge": "last"}\n'),
        (Judgment, line_with(JUDGMENT)[:-2] + b', "unknown": "\xff"}\n'),
        (Judgment, line_with(JUDGMENT)[:-2] + b', "error": "\\ud800"}\n'),
        (Judgment, line_with(JUDGMENT)[:-2] + b', "x": ' + b"[" * 5000 + b"]" * 5000 + b"}\n"),
        (Criteria, line_with(CRITERIA)),
        (Criteria, line_with(CRITERIA, criteria=[{"name": "true", "weight": 0}])),
        (Criteria, line_with(CRITERIA, criteria=[{"name": "true", "weight": 1, "more": 1}])),
        (Item, line_with(ITEM)),
        (Item, line_with(ITEM, messages=[{"role": "judge", "content": ""}])),
        (Response, line_with({"item_id": "q1", "candidate": "a", "source": "injected"})),
    ],
)
def test_a_line_is_read_or_refused_as_the_model_does(tmp_path, model, line):
    def outcome(read):
        try:
            record = read(tmp_path / "x.jsonl", 7, line, model)
        except RunFolderError as error:
            return str(error)
        return [(name, repr(value)) for name, value in record.__dict__.items()]

    assert outcome(decode_fast) == outcome(journal.decode)


def write(path, lines):
    path.write_bytes(b"".join(lines))
    return path


def test_records_are_those_of_the_file_however_they_are_asked_for(tmp_path):
    lines = [line_with(JUDGMENT, item_id=f"q{n}") for n in range(100)]
    path = write(tmp_path / layout.JUDGMENTS, lines)
    stored_records, every = StoredRecords.of(path, Judgment), list(journal.read(path, Judgment))
    assert list(stored_records) == every
    assert list(stored_records[90:]) == every[90:]
    assert [stored_records[n] for n in (99, 0, -1, 50)] == [every[n] for n in (99, 0, -1, 50)]
    assert [r.item_id for r in of_items(stored_records, {"q7", "q70"})] == ["q7", "q70"]
    assert ByItem(stored_records)["q31"] == every[31]
    assert with_item(every[0], "q1") == every[1]
    with pytest.raises(IndexError):
        stored_records[100]
    assert list(StoredRecords.of(tmp_path / "none.jsonl", Judgment)) == []


def test_of_two_records_about_the_same_the_last_counts_in_the_place_of_the_first(tmp_path):
    lines = [line_with(JUDGMENT, weight=n, presentation=n % 2) for n in range(5)]
    path = write(tmp_path / layout.JUDGMENTS, lines)
    stored_records = StoredRecords.of(path, Judgment, lambda judgment: judgment.presentation)
    assert [judgment.weight for judgment in stored_records] == [4, 3]


def test_a_file_that_changes_while_it_is_read_is_an_error(tmp_path):
    path = write(tmp_path / layout.JUDGMENTS, [line_with(JUDGMENT)] * 3)
    stored_records = StoredRecords.of(path, Judgment)
    write(path, [b"x" * len(line_with(JUDGMENT))] * 3)
    with pytest.raises(RunFolderError, match="was changed while it was read"):
        list(stored_records)
    path.unlink()
    with pytest.raises(RunFolderError, match="is missing"):
        list(stored_records)


def test_of_a_call_the_last_attempt_counts_without_its_raw_answer(tmp_path):
    call = {
        "purpose": "judge",
        "item_id": "q1",
        "model": "m",
        "request_hash": "",
        "response": {"raw": 1},
        "outcome": "ok",
        "time": "",
    }
    lines = [
        line_with(call, call_id=name, attempt=attempt)
        for name, attempt in (("a", 1), ("b", 1), ("a", 2))
    ]
    calls = StoredCalls(write(tmp_path / layout.CALLS, lines))
    assert (calls["a"].attempt, calls["a"].response, len(calls)) == (2, None, 2)
    assert calls["b"] == Call.model_validate_json(lines[1]).model_copy(update={"response": None})
    assert calls.get("c") is None
