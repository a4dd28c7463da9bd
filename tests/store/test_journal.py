"""A journal keeps every whole record, whatever was in it and wherever the process died."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clash.errors import RunFolderError
from clash.records import Call, Item, Tokens
from clash.store import journal, layout
from clash.store.folder import RunFolder
from clash.store.journal import Journal
from store.calls import call

RAW = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(codec=None))
    | st.sampled_from(["\ud800", "a\u2028b", "\x00", "\n", "\U0001f600", '"\\']),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(codec=None), max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
"""What a provider's JSON may be made of."""


def sayable(value):
    """What is left of a value that JSON in UTF-8 cannot say: '?' for lone surrogates, null for NaN."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {sayable(k): sayable(v) for k, v in value.items()}
    return [sayable(v) for v in value] if isinstance(value, list) else value


@given(RAW, st.text(st.characters(codec=None)))
def test_whatever_a_provider_answered_is_one_line_of_json_that_can_be_read_again(raw, text):
    record = call(response=raw, text=text)
    line = journal.encode(record)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    actual_record = Call.model_validate_json(line)
    assert actual_record.text == sayable(text)
    assert actual_record.response == sayable(raw)
    # A strict reader of JSON, of which there are more than ours, reads it too.
    json.loads(line, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


def test_a_record_is_in_the_file_when_append_returns(tmp_path):
    with Journal(tmp_path / "items.jsonl") as journal_file:
        for number in range(3):
            journal_file.append(Item(item_id=str(number), prompt="?"))
            answer = list(journal.read(tmp_path / "items.jsonl", Item))
            assert [item.item_id for item in answer] == [str(n) for n in range(number + 1)]


@pytest.mark.parametrize("text", ["plain", "zwei\u2028Zeilen", "\U0001f600" * 3])
def test_cut_at_any_byte_of_the_last_record_all_others_stay(tmp_path, text):
    path = tmp_path / "items.jsonl"
    records = [Item(item_id=str(n), prompt=text, tags=["a", "b"]) for n in range(3)]
    lines = [journal.encode(record) for record in records]
    head, last = b"".join(lines[:-1]), lines[-1]
    for cut in range(len(last) + 1):
        path.write_bytes(head + last[:cut])
        is_complete = cut >= len(last) - 1  # only its line feed is missing
        lost_tail = journal.repair_tail(path)
        assert lost_tail == (0 if is_complete else cut)
        assert path.read_bytes() == head + (last if is_complete else b"")
        assert journal.repair_tail(path) == 0


@pytest.mark.parametrize("size", [65_534, 65_535, 65_536, 65_537, 300_000])
def test_a_record_longer_than_what_is_read_at_once_is_found_from_the_end(tmp_path, size):
    path = tmp_path / "items.jsonl"
    short, long = (journal.encode(Item(item_id="q", prompt="?" * n)) for n in (1, size))
    for lines in (short + long, long, long + short):
        path.write_bytes(lines)
        assert journal.repair_tail(path) == 0
        path.write_bytes(lines + long[:-5])
        assert journal.repair_tail(path) == len(long) - 5
        assert path.read_bytes() == lines
        path.write_bytes(lines[:-1])
        assert journal.repair_tail(path) == 0
        assert path.read_bytes() == lines


def test_a_first_record_that_was_torn_leaves_an_empty_file(tmp_path):
    path = tmp_path / "items.jsonl"
    path.write_bytes(b'{"v":1,"item')
    assert journal.repair_tail(path) == 12
    assert path.read_bytes() == b""
    assert journal.repair_tail(path) == 0
    assert journal.repair_tail(tmp_path / "none.jsonl") == 0


@pytest.mark.parametrize(
    "tail",
    [b"nul\n", b"[1]\n", b"12\n", b"\n", b"\xff\xfe\n", b'"text"\n', b"[" * 100_000 + b"\n"],
    ids=["word", "list", "number", "empty", "no UTF-8", "text", "deep"],
)
def test_a_last_line_that_is_no_record_is_cut_though_it_ends(tmp_path, tail):
    path = tmp_path / "items.jsonl"
    line = journal.encode(Item(item_id="q", prompt="?"))
    path.write_bytes(line + tail)
    assert journal.repair_tail(path) == len(tail)
    assert path.read_bytes() == line


def test_what_is_wrong_in_the_middle_is_named_by_file_and_line_and_not_mended(tmp_path):
    path = tmp_path / "items.jsonl"
    line = journal.encode(Item(item_id="q", prompt="?"))
    path.write_bytes(line + b'{"item_id": 3}\n' + line)
    assert journal.repair_tail(path) == 0
    with pytest.raises(
        RunFolderError, match=r"items\.jsonl:2: is not a valid item record \(item_id"
    ):
        list(journal.read(path, Item))


def test_records_of_a_newer_clash_are_read_as_far_as_we_know_them(tmp_path):
    path = tmp_path / "items.jsonl"
    path.write_text('{"v":1,"item_id":"q","prompt":"?","mood":"new"}\n', encoding="utf-8")
    assert next(iter(journal.read(path, Item))).item_id == "q"


def test_a_file_that_cannot_be_written_is_said(tmp_path):
    with pytest.raises(RunFolderError, match="cannot be written"):
        Journal(tmp_path / "none" / "items.jsonl")


def spent_of(entry):
    tokens = entry.tokens and (entry.tokens.input, entry.tokens.output)
    known_fields = (
        entry.call_id,
        entry.attempt,
        entry.purpose,
        entry.outcome,
        entry.judge,
        entry.candidate,
    )
    money = (entry.error_class, entry.cost_usd, entry.cost_bound_usd, entry.latency_s, entry.ttft_s)
    return (*known_fields, tokens, *money)


def test_what_calls_came_to_is_what_the_whole_calls_say(tmp_path):
    calls = [
        call(
            f"c{i}",
            judge="j",
            attempt=1 + i,
            outcome=outcome,
            cost_usd=cost,
            latency_s=0.5,
            tokens=Tokens(input=3, output=None) if i else None,
            response={"raw": ["x"] * 50},
        )
        for i, (outcome, cost) in enumerate([("ok", 0.1), ("error", None), ("refusal", 0.0)])
    ]
    with Journal(tmp_path / layout.CALLS) as file:
        for first_call in calls:
            file.append(first_call)
    summaries = list(RunFolder(tmp_path).call_summaries())
    assert [spent_of(first_call) for first_call in summaries] == [
        spent_of(first_call) for first_call in calls
    ]


@pytest.mark.parametrize(
    "line", [b"{", b"[]", b'{"call_id": 1}', b'{"call_id": "\xff"}', b'{"outcome": "fine"}']
)
def test_a_line_that_is_no_call_is_named_by_file_and_line(tmp_path, line):
    (tmp_path / layout.CALLS).write_bytes(line + b"\n")
    with pytest.raises(RunFolderError, match=r"calls.jsonl:1: is not a valid call record"):
        list(RunFolder(tmp_path).call_summaries())
