"""A run is gone through again, offline, by the hash of each question."""

from __future__ import annotations

import asyncio
import json

import pytest

from clash.config import Limits, ModelRef, Options
from clash.errors import ConfigError, ProviderError
from clash.providers import open_provider, prices
from clash.providers.base import Request
from clash.records import Call, Tokens, Turn

MODEL = "openai/gpt-x"


def question(text="Which is better?", **more):
    return Request(turns=(Turn(role="user", content=text),), max_tokens=100, **more)


def call(request, text="answer", *, item="q1", judge="j1", attempt=1, call_id=None, **more):
    plain = {
        "call_id": call_id or f"{item}-{judge}-{text}",
        "purpose": "judge",
        "item_id": item,
        "judge": judge,
        "attempt": attempt,
        "model": MODEL,
        "request_hash": request.hash(MODEL),
        "text": text,
        "outcome": "ok",
        "time": "2026-11-20T12:00:00Z",
    }
    return Call(**{**plain, **more})


@pytest.fixture
def replay(tmp_path):
    """Writes a run, and answers questions from it."""

    def provider_of(*calls, tail=""):
        folder = tmp_path / "run"
        folder.mkdir(exist_ok=True)
        lines = "".join(c.model_dump_json() + "\n" for c in calls)
        (folder / "calls.jsonl").write_text(lines + tail)
        ref = ModelRef(model=f"replay/{MODEL}", base_url=str(folder))
        return open_provider(ref, environ={}, limits=Limits())

    return provider_of


def ask(provider, *requests):
    async def main():
        return [await provider.complete(request) for request in requests]

    return asyncio.run(main())


def test_the_answer_is_the_earlier_one(replay):
    call_record = call(
        question(),
        "earlier",
        finish_reason="stop",
        tokens=Tokens(input=5, output=7),
        served_model="gpt-x-2026",
        outcome="truncated",
    )
    (reply,) = ask(replay(call_record), question())
    assert (reply.text, reply.outcome, reply.finish_reason) == ("earlier", "truncated", "stop")
    assert reply.tokens == Tokens(input=5, output=7)
    assert (reply.served_model, reply.cost_usd) == ("gpt-x-2026", 0.0)
    assert reply.request == {"replayed": call_record.call_id}


@pytest.mark.parametrize(
    "alternative",
    [
        question("Which is worse?"),
        question(system="You are strict."),
        question(schema={"type": "object"}),
        question(options=Options(temperature=0.5)),
        Request(turns=question().turns, max_tokens=200),
    ],
    ids=["text", "system", "schema", "options", "cap"],
)
def test_another_question_has_no_answer(replay, alternative):
    with pytest.raises(ProviderError) as error:
        ask(replay(call(question())), alternative)
    assert (error.value.error_class, error.value.action) == ("replay_miss", "fail")
    assert not error.value.maybe_billed


def test_another_model_has_no_answer(replay):
    config_copy = call(question()).model_copy(
        update={"request_hash": question().hash("openai/other")}
    )
    with pytest.raises(ProviderError):
        ask(replay(config_copy), question())


def test_of_equal_questions_each_gets_its_own_answer(replay):
    """Two judges of one model, and two items with one prompt, ask the very same."""
    calls = [
        call(question(), f"{item} {judge}", item=item, judge=judge)
        for item in ("q1", "q2")
        for judge in ("j1", "j2")
    ]
    questions = [
        question(item_id=item, judge=judge) for item in ("q2", "q1") for judge in ("j2", "j1")
    ]
    texts = [reply.text for reply in ask(replay(*calls), *questions)]
    assert texts == ["q2 j2", "q2 j1", "q1 j2", "q1 j1"]


def test_an_item_without_an_answer_of_its_own_gets_another_items(replay):
    (reply,) = ask(replay(call(question(), "shared")), question(item_id="new", judge="new"))
    assert reply.text == "shared"


def test_a_question_put_twice_gets_its_two_answers_in_turn(replay):
    calls = [call(question(), text, call_id=text) for text in ("first", "second")]
    texts = [r.text for r in ask(replay(*calls), question(), question(), question())]
    assert texts == ["first", "second", "second"]


def test_of_several_attempts_the_last_counts(replay):
    call_record = call(
        question(), None, call_id="c", outcome="error", error_class="server", error="down"
    )
    (reply,) = ask(
        replay(call_record, call(question(), "in the end", call_id="c", attempt=2)), question()
    )
    assert reply.text == "in the end"


def test_a_failure_is_replayed_too(replay):
    """A verdict rests on the judges that failed as much as on those that answered."""
    call_record = call(question(), None, outcome="error", error_class="overloaded", error="busy")
    with pytest.raises(ProviderError) as error:
        ask(replay(call_record), question())
    assert (error.value.error_class, error.value.action) == ("overloaded", "fail")
    assert "busy" in error.value.message


def test_a_replay_can_be_replayed(replay):
    """A replayed run writes the hash of the model that it replays."""
    assert question().hash(f"replay/{MODEL}") == question().hash(MODEL)


def test_whom_a_question_is_about_is_no_part_of_it(replay):
    assert question(item_id="a", judge="b").hash(MODEL) == question().hash(MODEL)


def test_a_line_torn_by_a_crash_is_passed_over(replay):
    (reply,) = ask(replay(call(question()), tail='{"call_id": "torn'), question())
    assert reply.text == "answer"


def test_a_broken_line_in_the_middle_is_named(replay, tmp_path):
    provider = replay(call(question()), tail='{"call_id": 5}\n')
    with pytest.raises(ConfigError) as error:
        ask(provider, question())
    assert (error.value.line, error.value.path.name) == (2, "calls.jsonl")


def test_keys_of_a_newer_version_are_passed_over(replay):
    line = json.loads(call(question()).model_dump_json()) | {"new": {"a": 1}, "v": 2}
    (reply,) = ask(replay(tail=json.dumps(line) + "\n"), question())
    assert reply.text == "answer"


def test_the_run_may_be_named_by_the_environment(tmp_path):
    (tmp_path / "calls.jsonl").write_text(call(question()).model_dump_json() + "\n")
    ref = ModelRef(model=f"replay/{MODEL}")
    provider = open_provider(ref, environ={"CLASH_REPLAY": str(tmp_path)}, limits=Limits())
    assert ask(provider, question())[0].text == "answer"


@pytest.mark.parametrize("where", [None, "no/such/run"])
def test_a_run_that_is_not_there_is_found_out_before_the_first_question(where):
    with pytest.raises(ConfigError):
        open_provider(
            ModelRef(model=f"replay/{MODEL}", base_url=where), environ={}, limits=Limits()
        )


def test_a_replay_is_offline_and_costs_nothing(replay):
    provider = replay(call(question()))
    assert provider.offline
    (reply,) = ask(provider, question())
    assert prices.cost(ModelRef(model=f"replay/{MODEL}"), reply).usd == 0
