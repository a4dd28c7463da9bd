"""The ladder: what a model refuses by name is left out, once, and written down."""

from __future__ import annotations

import json

import pytest

from clash.errors import ProviderError
from clash.providers.base import Request
from clash.providers.failures import from_answer, read_report
from clash.providers.ladder import Ladder, WireRequest, in_words
from clash.records import Turn
from wire import faults
from wire.asking import PROVIDERS, SCHEMA

STATUSES = (400, 422, 500)


def outcomes(reply):
    return [s.action if isinstance(s, ProviderError) else s.outcome for s in reply]


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_refused_temperature_is_dropped_once_and_remembered(asker, provider, status):
    model = asker(provider)
    model.server.conduct(model.model, refuses=("temperature",), refusal_status=status)
    answer = model.ask(3, options={"temperature": 0.5})
    assert outcomes(answer) == ["degrade", "ok", "ok"]
    assert answer[0].error_class == "unsupported"
    assert "temperature" in answer[0].message
    assert answer[1].degraded == answer[2].degraded == ("temperature",)
    assert len(model.seen) == 3
    assert "temperature" not in json.dumps(model.seen[1].body)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_structured_output_goes_down_from_schema_to_json_to_words(asker, provider):
    model = asker(provider)
    forms = {
        "anthropic": ("json_schema", "tool_choice"),
        "google": ("responseJsonSchema", "responseMimeType"),
    }.get(provider, ("json_schema", "json_object"))
    model.server.conduct(model.model, refuses=forms)
    answer = model.ask(4, schema=SCHEMA)
    assert outcomes(answer) == ["degrade", "degrade", "ok", "ok"]
    assert answer[3].degraded == ("schema", "json")
    first, second, third, _ = (call.body for call in model.seen)
    assert in_words(SCHEMA) not in _texts(first)
    assert in_words(SCHEMA) in _texts(second)
    assert in_words(SCHEMA) in _texts(third)
    # The model of the loopback server reads the schema in the words, as a real one would.
    assert sorted(json.loads(answer[3].text)["ranking"]) == [["A0"], ["A1"]]


def _texts(body):
    return "\n".join(_strings(body))


def _strings(value):
    if isinstance(value, str):
        yield value
    for part in (
        value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    ):
        yield from _strings(part)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_panel_may_begin_further_down(asker, provider):
    model = asker(provider)
    reply = model.reply(schema=SCHEMA, options={"structured": "text"})
    assert reply.degraded == ()
    request_text = json.dumps(model.seen[0].body)
    assert "json_schema" not in request_text
    assert "responseMimeType" not in request_text
    assert "tool_choice" not in request_text
    assert sorted(json.loads(reply.text)["ranking"]) == [["A0"], ["A1"]]


def test_anthropics_middle_rung_is_a_tool_that_must_be_called(asker):
    model = asker("anthropic")
    for stream in (False, True):
        reply = model.reply(schema=SCHEMA, stream=stream, options={"structured": "json"})
        assert sorted(json.loads(reply.text)["ranking"]) == [["A0"], ["A1"]]
        assert (reply.ttft_s is not None) == stream
    assert model.seen[0].body["tool_choice"]["type"] == "tool"
    assert model.seen[0].body["tools"][0]["input_schema"] == SCHEMA


def test_a_compatible_servers_middle_rung_carries_the_schema(asker):
    """llama.cpp turns it into a grammar."""
    model = asker("compatible")
    model.reply(schema=SCHEMA, options={"structured": "json"})
    wanted_format = {"type": "json_object", "schema": SCHEMA}
    assert model.seen[0].body["response_format"] == wanted_format


@pytest.mark.parametrize(
    ("provider", "first", "second"),
    [
        ("openai", "max_completion_tokens", "max_tokens"),
        ("openrouter", "max_tokens", "max_completion_tokens"),
        ("compatible", "max_tokens", "max_completion_tokens"),
    ],
)
def test_the_cap_changes_its_name_and_never_goes(asker, provider, first, second):
    model = asker(provider)
    model.server.conduct(model.model, refuses=(first,))
    answer = model.ask(2)
    assert outcomes(answer) == ["degrade", "ok"]
    assert answer[1].degraded == (first,)
    assert model.seen[1].body[second] == 300
    assert first not in model.seen[1].body


def test_a_cap_that_is_refused_under_both_names_ends_it(asker):
    model = asker("openai")
    model.server.conduct(model.model, refuses=("max_completion_tokens", "max_tokens"))
    assert outcomes(model.ask(3)) == ["degrade", "stop", "stop"]


def test_a_model_that_demands_the_responses_api_gets_it(asker):
    model = asker("openai")
    model.server.conduct(model.model, responses_only=True)
    answer = model.ask(3)
    assert outcomes(answer) == ["degrade", "ok", "ok"]
    paths = [call.path.rpartition("/v1")[2] for call in model.seen]
    assert paths == ["/chat/completions", "/responses", "/responses"]
    assert answer[1].degraded == ("chat",)


def test_a_model_that_shall_be_asked_by_chat_is_not_asked_otherwise(asker):
    model = asker("openai")
    model.server.conduct(model.model, responses_only=True)
    error = model.failure(options={"api": "chat"})
    assert (error.error_class, error.action) == ("not_found", "stop")


def test_stream_usage_is_left_out_where_a_server_does_not_know_it(asker):
    model = asker("compatible")
    model.server.conduct(model.model, refuses=("stream_options",))
    answer = model.ask(2, stream=True)
    assert outcomes(answer) == ["degrade", "ok"]
    assert answer[1].tokens.output is None


def test_openrouter_without_an_upstream_for_all_parameters(asker):
    model = asker("openrouter")
    model.misbehave(faults.no_endpoint())
    answer = model.ask(2, schema=SCHEMA)
    assert outcomes(answer) == ["degrade", "ok"]
    assert answer[1].degraded == ("require_parameters",)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_several_refusals_are_met_one_after_the_other(asker, provider):
    model = asker(provider)
    model.server.conduct(model.model, refuses=("temperature", "top_p", "topP"))
    answer = model.ask(3, options={"temperature": 0.5, "top_p": 0.5})
    assert outcomes(answer) == ["degrade", "degrade", "ok"]
    assert answer[2].degraded == ("temperature", "top_p")


def test_calls_in_flight_at_the_first_refusal_go_down_one_rung_and_not_three(asker):
    """Sixty calls that were all sent with a schema have all refused one thing."""
    import asyncio

    from clash.providers import open_provider

    model = asker("compatible")
    model.server.conduct(model.model, refuses=("json_schema",), latency_s=0.05)

    async def main():
        provider = open_provider(model.ref(), environ=model.server.environ(), limits=model.limits)

        async def one():
            try:
                await provider.complete(model.request(schema=SCHEMA))
            except ProviderError as error:
                return error.action
            return "ok"

        async with asyncio.TaskGroup() as tasks:
            first = [tasks.create_task(one()) for _ in range(20)]
        reply = await provider.complete(model.request(schema=SCHEMA))
        await provider.aclose()
        return [task.result() for task in first], reply

    actions, reply = asyncio.run(main())
    assert actions == ["degrade"] * 20
    assert reply.degraded == ("schema",)


def test_a_parameter_that_was_not_sent_cannot_be_left_out(asker):
    model = asker("openai")
    model.misbehave(faults.unsupported("temperature"))
    error = model.failure()
    assert (error.error_class, error.action) == ("bad_request", "fail")


# -- the words of refusals, as vendors and servers have written them -----------------------------

REFUSALS = (
    ("temperature", 400, "Unsupported value: 'temperature' does not support 0.3 with this model."),
    ("temperature", 400, "temperature: Extra inputs are not permitted"),
    ("temperature", 422, [{"loc": ["body", "temperature"], "msg": "extra fields not permitted"}]),
    ("schema", 400, "Invalid parameter: 'response_format' of type 'json_schema' is not supported"),
    ("schema", 500, "2 validation errors: body.response_format.type Input should be 'text'"),
    ("schema", 400, "output_config.format: Extra inputs are not permitted"),
    ("reasoning", 400, "output_config.effort: this model does not support effort"),
    ("reasoning", 400, "Unrecognized request argument supplied: reasoning_effort"),
    ("seed", 400, "Unknown name \"seed\" at 'generation_config': Cannot find field."),
)
_FEATURES = {
    "schema": ("response_format", "json_schema", "output_config.format", "output_config"),
    "temperature": ("temperature",),
    "seed": ("seed",),
    "reasoning": ("reasoning_effort", "reasoning", "output_config.effort"),
}


@pytest.mark.parametrize(("feature", "status", "text"), REFUSALS)
def test_refusals_are_understood_as_they_are_written(feature, status, text):
    body = {"detail": text} if isinstance(text, list) else {"error": {"message": text}}
    ladder = Ladder()
    failure = from_answer(status, {}, body)
    assert ladder.learn(failure, read_report(body), WireRequest({}, _FEATURES)) == feature
    assert not ladder.takes(feature)


NOT_REFUSALS = (
    (400, "maximum context length is 8192 tokens, max_tokens: 9000, temperature"),
    (401, "Incorrect API key provided for temperature"),
    (429, "Rate limit reached, temperature"),
    (503, "temperature of the datacentre too high"),
    (400, "non-temperature and seedless reasons"),
    (500, "The server had an error while processing your request"),
)


@pytest.mark.parametrize(("status", "text"), NOT_REFUSALS)
def test_other_failures_are_no_refusals(status, text):
    body = {"error": {"message": text}}
    ladder = Ladder()
    assert (
        ladder.learn(from_answer(status, {}, body), read_report(body), WireRequest({}, _FEATURES))
        is None
    )
    assert all(ladder.takes(feature) for feature in _FEATURES)


def test_a_request_for_text_has_no_rung():
    request = Request(turns=(Turn(role="user", content="x"),), max_tokens=1)
    assert Ladder().level(request) is None


GONE = "models/x is not found for API version v1, or is not supported for generateContent"


@pytest.mark.parametrize(
    "fault",
    [
        faults.raw(
            404, json.dumps({"error": {"code": 404, "message": GONE, "status": "NOT_FOUND"}})
        ),
        faults.raw(404, "Not Found", "text/plain"),
        faults.raw(404, '{"error": {"message": "Not found", "type": "not_found"}}'),
    ],
    ids=["a preview", "a server without the stable path", "one that says so in JSON"],
)
def test_what_googles_stable_api_does_not_have_is_asked_of_the_beta(asker, fault):
    model = asker("google")
    model.server.misbehave(fault, model=model.model, times=1)
    assert outcomes(model.ask(2)) == ["degrade", "ok"]
    assert ["v1beta" in call.path for call in model.seen] == [False, True]
