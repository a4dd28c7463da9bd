"""Reading what comes off the wire never raises, never invents, and keeps nothing unstorable."""

from __future__ import annotations

import itertools
import json
import time
from contextlib import suppress

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from clash.providers.dialects.chat import Chat
from clash.providers.dialects.gemini import Gemini
from clash.providers.dialects.messages import Messages
from clash.providers.dialects.protocol import Answer
from clash.providers.dialects.responses import Responses
from clash.providers.failures import Failure, from_answer, read_report
from clash.providers.network import loosely
from clash.providers.payload import (
    MAX_BYTES,
    EventSplitter,
    NotPayload,
    TooMuch,
    clean,
    count,
    decode,
    money,
)
from clash.secrets.redaction import Redactor

SECRET = "sk-proj-Ab3dE9fGh1JkLmN0pQrS"
REDACTOR = Redactor.of(SECRET)
PATIENT = settings(deadline=None, max_examples=60)  # a busy machine is no failure
DIALECTS = {
    "openai": Chat("openai"),
    "openrouter": Chat("openrouter"),
    "responses": Responses(),
    "messages": Messages(),
    "gemini": Gemini(),
}
KEY_NAMES = (
    "choices", "message", "content", "refusal", "finish_reason", "usage", "prompt_tokens",
    "error", "code", "type", "status", "output", "text", "parts", "candidates", "finishReason",
    "stop_reason", "delta", "index", "details", "metadata", "reasons", "cost", "input_tokens",
    "promptFeedback", "blockReason", "thought", "incomplete_details", "reason", "model",
    "content_block", "response", "partial_json", "input", "violations", "quotaId", "retryDelay",
)  # fmt: skip
WORD_LIST = (
    "error", "stop", "length", "message", "tool_use", "text", "thinking", "message_start",
    "message_delta", "message_stop", "content_block_start", "content_block_delta",
    "response.completed", "response.failed", "failed", "completed", "incomplete", "429",
    "rate_limit_error", "²",
)  # fmt: skip
KEYS, WORDS = st.sampled_from(KEY_NAMES), st.sampled_from(WORD_LIST)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=20,
)
OBJECTS = st.dictionaries(KEYS, JSON, max_size=6)
EVENTS = st.builds(lambda event, kind: {**event, "type": kind}, OBJECTS, WORDS | JSON) | OBJECTS


@pytest.mark.parametrize("dialect", DIALECTS)
@PATIENT
@given(data=EVENTS)
def test_any_json_is_an_answer_or_a_failure(dialect, data):
    answer = DIALECTS[dialect].read(data)
    assert isinstance(answer, Answer | Failure)
    if isinstance(answer, Answer):
        words = (answer.served_model, answer.finish_reason)
        assert isinstance(answer.text, str)
        assert all(word is None or isinstance(word, str) for word in words)
        counts = (answer.tokens.input, answer.tokens.output, answer.tokens.cached)
        assert all(n is None or n >= 0 for n in counts)


@PATIENT
@given(status=st.integers(100, 999), body=OBJECTS | JSON)
@example(status=400, body=[{"error": {"message": "a list of one", "code": 400}}])
@example(status=500, body={"error": "a plain string"})
@example(status=422, body={"detail": [{"loc": ["body"], "msg": "wrong"}]})
@example(status=200, body={"error": {"code": "²"}})
@example(status=429, body={"error": {"details": [{"violations": 5}]}})
def test_any_error_body_is_a_failure_with_words(status, body):
    failure = from_answer(status, {}, body)
    assert failure.message
    assert len(failure.message) < 5000
    if status >= 400:
        assert failure.action in ("retry", "fail", "stop")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"error": {"message": "plain"}}, "plain"),
        ({"error": "a string"}, "a string"),
        ({"detail": "Not Found"}, "Not Found"),
        ({"message": "bare"}, "bare"),
        ([{"error": {"message": "a list of one"}}], "a list of one"),
        ("<html><h1>502</h1><p>Bad  Gateway</p></html>", "502 Bad Gateway"),
        (
            {"error": {"message": "Provider returned error", "metadata": {"raw": "the cause"}}},
            "Provider returned error: the cause",
        ),
    ],
)
def test_every_shape_of_error_has_its_message_found(body, message):
    assert read_report(body).message == message


# -- bytes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data", [b"", b"  ", b"{", b"[]", b'"x"', b"<html>", b"\xff\xfe", b"[" * 100_000]
)
def test_what_is_no_object_is_said_to_be_none(data):
    with pytest.raises(NotPayload):
        decode(data)


def test_numbers_that_are_none_become_unknown():
    decoded_answer = decode(
        b'{"a": NaN, "b": -Infinity, "c": 1e999, "d": 1.5, "e": 12345678901234567890}'
    )
    assert decoded_answer == {"a": None, "b": None, "c": None, "d": 1.5, "e": 12345678901234567890}


def test_lone_surrogates_become_the_replacement_character():
    assert decode(rb'{"a": ["x\ud83d", {"\uDC00": "\ud83d\ude00"}]}') == {
        "a": ["x\ufffd", {"\ufffd": "\U0001f600"}]
    }


def test_a_flood_is_not_parsed():
    with pytest.raises(TooMuch):
        decode(b'{"a": "' + b"x" * MAX_BYTES + b'"}')


@PATIENT
@given(JSON)
def test_what_is_clean_can_be_written(value):
    json.dumps(clean(value), allow_nan=False, ensure_ascii=False).encode()


@pytest.mark.parametrize(
    ("value", "expected_value"),
    [(5, 5), (5.0, 5), (0, 0), (-1, None), (float("nan"), None), (float("inf"), None),
     (True, None), ("5", None), (None, None), ([5], None)],
    ids=repr,
)  # fmt: skip
def test_a_count_is_a_number_or_unknown(value, expected_value):
    assert count(value) == expected_value


@pytest.mark.parametrize(
    ("value", "expected_value"),
    [(0.5, 0.5), ("0.5", 0.5), (0, 0.0), (-0.5, None), (float("nan"), None), ("nan", None),
     (True, None), ("cheap", None), (None, None)],
    ids=repr,
)  # fmt: skip
def test_an_amount_is_a_number_or_unknown(value, expected_value):
    assert money(value) == expected_value


# -- server-sent events -----------------------------------------------------------------------------

STREAM = (
    b": a comment\n\n"
    b'event: named\ndata: {"n": 1}\n\n'
    b'data: {"n":\r\ndata: 2}\r\n\r\n'
    b'data:{"n": "\xc3\xa9"}\n\n'
    b"id: 5\nretry: 10\n\n"
    b"data: [DONE]\n\n"
)


@PATIENT
@given(st.lists(st.integers(1, len(STREAM) - 1), max_size=8))
def test_events_do_not_depend_on_how_the_bytes_are_cut(cuts):
    places = [0, *sorted(set(cuts)), len(STREAM)]
    events = EventSplitter()
    actual_events = [
        event
        for start, end in itertools.pairwise(places)
        for event in events.feed(STREAM[start:end])
    ]
    assert actual_events == [{"n": 1}, {"n": 2}, {"n": "é"}]


@pytest.mark.parametrize("line", [b"data: {broken\n\n", b"data: [1]\n\n"])
def test_an_event_that_is_no_object_is_said_to_be_none(line):
    with pytest.raises(NotPayload):
        list(EventSplitter().feed(line))


def test_a_stream_without_end_is_cut_off():
    events = EventSplitter()
    for _ in range(MAX_BYTES // 1_000_000):
        assert not list(events.feed(b"x" * 1_000_000))
    with pytest.raises(TooMuch):
        list(events.feed(b"x" * 1_000_000))


@pytest.mark.parametrize("size", [1, 10, 100])
def test_a_line_in_many_pieces_takes_no_longer_than_in_one(size):
    events, line = EventSplitter(), b'data: {"n": "' + b"x" * 200_000 + b'"}\n\n'
    began = time.process_time()
    actual_events = [
        event
        for start in range(0, len(line), size)
        for event in events.feed(line[start : start + size])
    ]
    assert len(actual_events) == 1
    assert time.process_time() - began < 2


# -- streams are put together into what an unstreamed answer is ---------------------------------------


@pytest.mark.parametrize("dialect", DIALECTS)
@PATIENT
@given(events=st.lists(EVENTS, max_size=4))
def test_any_events_are_an_answer_or_none(dialect, events):
    stream = DIALECTS[dialect].stream()
    for event in events:
        stream.feed(event)
    whole = stream.result()
    if whole is not None:
        assert isinstance(DIALECTS[dialect].read(whole), Answer | Failure)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_stream_of_nothing_is_no_answer(dialect):
    assert DIALECTS[dialect].stream().result() is None


@pytest.mark.parametrize(
    ("dialect", "data"),
    [
        (
            "gemini",
            {"candidates": [{"content": {"parts": 5}, "finishReason": "STOP"}]},
        ),
        ("responses", {"status": "completed", "output": [{"type": "message", "content": 5}]}),
    ],
)
def test_content_that_is_no_list_is_no_text(dialect, data):
    assert DIALECTS[dialect].read(data).outcome == "empty"


def _chat(content):
    choice = {"index": 0, "finish_reason": "stop", "message": {"content": content}}
    return "openai", {"choices": [choice]}


def _response(*content, status="completed"):
    message = {"type": "message", "status": status, "content": list(content)}
    return "responses", {"status": "completed", "output": [message]}


@pytest.mark.parametrize("kind", ["thinking", "reasoning", "reasoning_text", "summary_text"])
def test_a_thought_among_the_parts_is_no_answer(kind):
    for dialect, data in (
        _chat([{"type": kind, "text": "draft"}, {"type": "text", "text": "answer"}]),
        _response({"type": kind, "text": "draft"}, {"type": "output_text", "text": "answer"}),
    ):
        assert DIALECTS[dialect].read(data).text == "answer"


def test_a_refusal_among_the_parts_is_one():
    dialect, data = _chat([{"type": "text", "text": "x"}, {"type": "refusal", "refusal": "No."}])
    assert DIALECTS[dialect].read(data).outcome == "refusal"


def test_a_message_that_is_incomplete_in_a_response_that_is_complete_is_no_answer():
    dialect, data = _response({"type": "output_text", "text": "half"}, status="incomplete")
    assert DIALECTS[dialect].read(data).error_class == "unfinished"


def test_streamed_pieces_of_several_answers_are_not_mixed():
    stream = Chat("openai").stream()
    for index, piece in ((0, "A"), (1, "x"), (0, "0"), (1, "y")):
        stream.feed({"choices": [{"index": index, "delta": {"content": piece}}]})
    stream.feed({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    assert Chat("openai").read(stream.result()).text == "A0"


def test_streamed_parts_are_read_like_whole_ones():
    stream = Chat("openai").stream()
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "draft"}]}
    for content in ([thought], [{"type": "text", "text": "answer"}]):
        stream.feed({"choices": [{"index": 0, "delta": {"content": content}}]})
    stream.feed({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    assert Chat("openai").read(stream.result()).text == "answer"


def test_a_streamed_tool_call_that_names_a_key_twice_is_left_as_it_is():
    twice = '{"ranking": ["A0", "A1"], "ranking": ["A1", "A0"]}'
    stream = Messages().stream()
    for event in (
        {"type": "message_start", "message": {"content": []}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use"}},
        {"type": "content_block_delta", "index": 0, "delta": {"partial_json": twice}},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
        {"type": "message_stop"},
    ):
        stream.feed(event)
    assert Messages().read(stream.result()).text == twice


@pytest.mark.parametrize("depth", [600, 900, 5000])
def test_a_deep_answer_with_a_lone_surrogate_is_read_or_no_payload(depth):
    data = b'{"a":"\\ud800","x":' + b"[" * depth + b"]" * depth + b"}"
    with suppress(NotPayload):
        assert decode(data)["a"] == "\ufffd"


@pytest.mark.parametrize("depth", [300, 600, 900])
@pytest.mark.parametrize("end", [b'{"echo": "' + SECRET.encode() + b'"}', b"1e999"])
def test_what_is_nested_too_deep_is_left_out_of_an_answer_and_of_an_error(depth, end):
    body = b'{"id":"x","of":' + b'{"a":' * depth + end + b"}" * (depth + 1)
    for value in (decode(body), loosely(body)):
        assert value["id"] == "x"
        record = json.dumps(REDACTOR.data(value)) + json.dumps(REDACTOR.evidence(value))
        assert SECRET not in record
