"""Batches on a Ray cluster: what is handed to the job, and how its folder is read back."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from clash.config import Limits, ModelRef
from clash.errors import ConfigError, ProviderError
from clash.providers import open_batches, open_provider, require
from clash.providers.base import Request
from clash.providers.batch import Lot, never_came
from clash.providers.batch_vllm import question_of
from clash.providers.vllm_job import line, open_rows
from clash.records import Turn
from clash.secrets.destinations import Environ
from wire.asking import SCHEMA, run
from wire.jobs import JobsServer, answer_some, rows_in

LOT = Lot("mark", "run", 3, datetime.now(UTC))
FIRST = "clash-mark"


@pytest.fixture
def head():
    with JobsServer() as running:
        yield running


@pytest.fixture
def ref(head, tmp_path):
    return ModelRef.model_validate(
        {
            "model": "vllm/org/model",
            "base_url": head.address,
            "engine": {"folder": str(tmp_path / "shared"), "arguments": {"max_model_len": 400}},
        },
        context={"source": "owner"},
    )


def question(max_tokens: int = 300, **more: Any) -> Request:
    return Request((Turn(role="user", content="Which?"),), max_tokens, **more)


def do(ref: ModelRef, work: Any, **environ: str) -> Any:
    async def within() -> Any:
        api = open_batches(ref, environ, Limits(timeout_s=5, connect_timeout_s=2))
        try:
            return await work(api)
        finally:
            await api.aclose()

    return run(within())


def submit(ref: ModelRef, n: int = 3, **fields: Any) -> dict[str, Any]:
    """``n`` rows of a batch, submitted; by key."""

    async def work(api: Any) -> dict[str, Any]:
        rows = [api.row(question(**fields), f"judge-{i}-mark") for i in range(n)]
        assert await api.submit(LOT, rows) == FIRST
        return {row.key: row for row in rows}

    return do(ref, work)


def fetch(ref: ModelRef, rows: dict[str, Any]) -> dict[str, Any]:
    """A reply or an error for each row that has a line."""

    async def work(api: Any) -> dict[str, Any]:
        results: list[Any] = []
        await api.fetch(FIRST, results.append)
        replies: dict[str, Any] = {}
        for result in results:
            try:
                replies[result.key] = api.read(rows[result.key], result)
            except ProviderError as error:
                replies[result.key] = error
        return replies

    return do(ref, work)


def poll(ref: ModelRef) -> Any:
    return do(ref, lambda api: api.poll(FIRST))


def answers(ref: ModelRef) -> Path:
    return Path(ref.engine.folder) / FIRST / "answers.jsonl"


# -- what is handed over -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "sampling", "template"),
    [
        ({"max_tokens": 9}, {"max_tokens": 9}, {}),
        ({"max_completion_tokens": 9}, {"max_tokens": 9}, {}),
        ({"top_k": 4, "temperature": 0.0}, {"top_k": 4, "temperature": 0.0}, {}),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"schema": {"a": 1}}}},
            {"structured_outputs": {"json": '{"a":1}'}},
            {},
        ),
        (
            {"response_format": {"type": "json_object", "schema": {}}},
            {"structured_outputs": {"json_object": True}},
            {},
        ),
        (
            {"reasoning_effort": "low", "chat_template_kwargs": {"enable_thinking": False}},
            {},
            {"reasoning_effort": "low", "enable_thinking": False},
        ),
    ],
)
def test_a_chat_request_is_put_into_the_words_of_vllm(fields, sampling, template):
    messages = [{"role": "user", "content": "hi"}]
    body = {"model": "m", "messages": messages, **fields}
    assert question_of(body) == (messages, sampling, template)


def test_rows_that_arrow_would_mix_up_do_not_share_a_batch(ref):
    async def work(api: Any) -> list[str]:
        questions = [question(), question(200), question(schema=SCHEMA)]
        return [api.row(record).target for record in questions]

    same_cap, other_cap, with_schema = do(ref, work)
    assert same_cap == other_cap != with_schema


def test_a_stranger_cannot_name_code_for_the_cluster(ref):
    for source in ("auto", "run"):
        with pytest.raises(ConfigError, match="that you did not name"):
            require(ref.chosen_by(source), {})
    require(ref, {})
    require(ref.chosen_by("run"), Environ({}, hosts=[ref.base_url]))
    bare = ref.model_copy(update={"engine": None})
    with pytest.raises(ConfigError, match="its engine is missing"):
        require(bare, {})


def test_it_is_asked_in_batches_only(ref):
    with pytest.raises(ConfigError, match="in batches only"):
        open_provider(ref, environ={}, limits=Limits())
    live = open_provider(ref, environ={}, limits=Limits(batch=True))
    with pytest.raises(ProviderError, match="in batches only") as error:
        run(live.complete(question()))
    assert error.value.action == "stop"


def test_the_token_of_the_cluster_is_sent_and_a_wrong_one_named(head, ref):
    head.token = "ray-t0ken-4711"
    with pytest.raises(ProviderError, match="RAY_AUTH_TOKEN is not accepted") as error:
        do(ref, lambda api: api.find(LOT), RAY_AUTH_TOKEN="ray-t0ken-0815")
    assert error.value.action == "stop"
    assert "0815" not in error.value.message
    assert do(ref, lambda api: api.find(LOT), RAY_AUTH_TOKEN=head.token) is None


# -- how it proceeds ---------------------------------------------------------------------------


def test_a_batch_is_found_again_and_answered_as_a_live_call_would_be(head, ref):
    assert do(ref, lambda api: api.find(LOT)) is None
    rows = submit(ref, schema=SCHEMA)
    assert do(ref, lambda api: api.find(LOT)) == FIRST
    assert poll(ref).is_final
    replies = fetch(ref, rows)
    assert set(replies) == set(rows)
    for reply in replies.values():
        assert (reply.outcome, reply.finish_reason, reply.structured) == ("ok", "stop", "schema")
        assert (reply.tokens.input, reply.tokens.output) == (9, 5)
        assert json.loads(reply.text)["ranking"]


@pytest.mark.parametrize(
    ("tokens", "outcome"), [((10, 299), "ok"), ((10, 300), "truncated"), ((390, 10), "truncated")]
)
def test_an_answer_as_long_as_it_may_be_was_cut(head, ref, tokens, outcome):
    head.work = lambda _: "SUCCEEDED"
    rows = submit(ref, 1)
    counts = dict(zip(("input_tokens", "output_tokens"), tokens, strict=True))
    answers(ref).write_text(json.dumps({"custom_id": "judge-0-mark", "text": "A0", **counts}))
    assert fetch(ref, rows)["judge-0-mark"].outcome == outcome


@pytest.mark.parametrize(
    ("error", "error_class"),
    [
        ("VLLMValidationError: prompt is longer than the maximum model length of 9", "too_long"),
        ("TypeError: Unexpected keyword argument 'top_x'", "bad_request"),
        ("RuntimeError: CUDA error", "server"),
    ],
)
def test_a_row_that_the_engine_refuses_is_a_failure_with_its_reason(ref, error, error_class):
    rows = submit(ref, 1)
    answers(ref).write_text(json.dumps({"custom_id": "judge-0-mark", "error": error}) + "\n")
    failure = fetch(ref, rows)["judge-0-mark"]
    assert isinstance(failure, ProviderError)
    assert failure.error_class == error_class
    assert error.partition(": ")[2] in failure.message


def test_a_job_that_dies_is_started_again_while_it_gets_further(head, ref):
    rows = submit(ref)
    head.work = answer_some(1)
    states = [poll(ref).outcome for _ in range(2)]
    assert states == ["restarted", "restarted"]
    assert poll(ref).is_final
    assert list(head.jobs) == [FIRST, f"{FIRST}-2", f"{FIRST}-3"]
    assert set(fetch(ref, rows)) == set(rows)


def test_a_job_that_gets_no_further_ends_and_keeps_its_answers(head, ref):
    rows = submit(ref)
    head.work = answer_some(1)
    assert poll(ref).outcome == "restarted"
    head.work = lambda _: "FAILED"
    status = poll(ref)
    assert (status.is_final, status.failure, status.n_done) == (True, None, 1)
    assert list(fetch(ref, rows)) == ["judge-0-mark"]
    assert never_came(status).error_class == "bad_payload"


@pytest.mark.parametrize("n_forgotten", [False, True])
def test_a_job_without_any_answer_failed_and_says_why(head, ref, n_forgotten):
    submit(ref)
    head.work = lambda _: "FAILED"
    if n_forgotten:
        head.jobs.clear()
    status = poll(ref)
    assert status.is_final
    assert ("no longer knows" if n_forgotten else "no GPU here") in status.failure.message


def test_a_cancelled_batch_keeps_what_is_through(head, ref):
    rows = submit(ref)
    head.hold = True
    assert not poll(ref).is_final
    answer_some(1)(answers(ref).parent)
    do(ref, lambda api: api.cancel(FIRST))
    status = poll(ref)
    assert (status.is_final, status.n_done) == (True, 1)
    assert never_came(status).error_class == "interrupted"
    assert len(fetch(ref, rows)) == 1


# -- what others wrote into the folder ------------------------------------------------------------

GOOD = b'{"custom_id": "judge-0-mark", "text": "A0", "input_tokens": 1, "output_tokens": 1}\n'


@pytest.mark.parametrize(
    "bad",
    [
        b'{"custom_id": "judge-1-mark", "te',
        b"\xff\xfe\n",
        b"[1, 2]\n",
        b"\n\n",
        b'{"custom_id": NaN}\n',
        b"[" * 100_000 + b"\n",
        b'"' + b"x" * 9_000_000 + b'"\n',
    ],
)
def test_lines_that_cannot_be_read_cost_only_themselves(ref, bad):
    rows = submit(ref)
    answers(ref).write_bytes(GOOD + (bad if bad.endswith(b"\n") else bad + b"\n") + GOOD)

    async def work(api: Any) -> set[str]:
        keys: set[str] = set()
        await api.fetch(FIRST, lambda result: keys.add(result.key))
        return keys & set(rows)

    assert do(ref, work) == {"judge-0-mark"}


@pytest.mark.parametrize("text", [None, 5, [], {"a": 1}])
def test_a_text_that_is_none_is_a_failed_row(ref, text):
    rows = submit(ref, 1)
    answers(ref).write_text(json.dumps({"custom_id": "judge-0-mark", "text": text}))
    assert isinstance(fetch(ref, rows)["judge-0-mark"], ProviderError)


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_what_is_no_file_is_not_read(ref, tmp_path, kind):
    rows = submit(ref)
    if kind == "link":
        (tmp_path / "other").write_bytes(GOOD)
        answers(ref).symlink_to(tmp_path / "other")
    else:
        os.mkfifo(answers(ref))
    with pytest.raises(ProviderError, match="link" if kind == "link" else "pipe") as error:
        fetch(ref, rows)
    assert error.value.error_class == "bad_payload"


# -- the job --------------------------------------------------------------------------------------


def test_the_job_asks_only_rows_without_a_line(ref):
    submit(ref)
    folder = answers(ref).parent
    assert [row["custom_id"] for row in open_rows(folder)] == [f"judge-{i}-mark" for i in range(3)]
    answers(ref).write_bytes(GOOD + b'{"custom_id": "judge-1-ma')
    left = open_rows(folder)
    assert [row["custom_id"] for row in left] == ["judge-1-mark", "judge-2-mark"]
    assert json.loads(left[0]["question"]) == rows_in(folder)[1]["question"]


def test_a_line_of_answers_is_a_text_or_an_error():
    row = {"custom_id": "a", "generated_text": "hi", "num_input_tokens": 3}
    row |= {"num_generated_tokens": 2, "__inference_error__": ""}
    assert line(row) == {"custom_id": "a", "text": "hi", "input_tokens": 3, "output_tokens": 2}
    failed_row = {"custom_id": "a", "__inference_error__": "ValueError: no"}
    assert line(failed_row) == {"custom_id": "a", "error": "ValueError: no"}
