"""What is sent to each vendor, and how its answer is read."""

from __future__ import annotations

import json
import math

import pytest

from clash.records import Tokens, Turn
from wire import faults
from wire.asking import PROVIDERS, SCHEMA

STREAMS = (False, True)


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_reply_is_the_same_in_every_vendors_words(asker, provider, stream):
    model = asker(provider)
    reply = model.reply(stream=stream)
    (call,) = model.seen
    assert reply.text == call.text
    assert (reply.outcome, reply.status, reply.served_model) == ("ok", 200, model.model)
    assert reply.request_id == f"req-{call.n}"
    assert reply.tokens.input == (len("You are a judge.\nSay something.") // 4) + 1
    assert reply.tokens.output == len(call.text) // 4 + 1
    assert reply.request["body"] == call.body
    assert (
        reply.request["url"].endswith(call.path.rpartition("/")[2])
        or "alt=sse" in (reply.request["url"])
    )
    assert (reply.ttft_s is not None) == stream
    if stream:
        assert 0 < reply.ttft_s <= reply.latency_s
    assert reply.degraded == ()
    json.dumps(reply.response, allow_nan=False)


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("provider", PROVIDERS)
def test_structured_output_goes_through_the_vendors_own_feature(asker, provider, stream):
    model = asker(provider)
    reply = model.reply(schema=SCHEMA, stream=stream)
    assert sorted(json.loads(reply.text)["ranking"]) == [["A0"], ["A1"]]
    body = model.seen[0].body
    native = {
        "openai": lambda: body["response_format"]["json_schema"]["schema"],
        "responses": lambda: body["text"]["format"]["schema"],
        "anthropic": lambda: body["output_config"]["format"]["schema"],
        "google": lambda: body["generationConfig"]["responseJsonSchema"],
        "openrouter": lambda: body["response_format"]["json_schema"]["schema"],
        "compatible": lambda: body["response_format"]["json_schema"]["schema"],
    }[provider]
    assert native() == SCHEMA
    assert "JSON Schema" not in json.dumps(body)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_conversation_keeps_its_roles_and_its_order(asker, provider):
    model = asker(provider)
    turns = (
        Turn(role="user", content="one"),
        Turn(role="assistant", content="two"),
        Turn(role="user", content="three"),
    )
    model.reply(turns=turns, system=None)
    body = model.seen[0].body
    messages = body.get("messages") or body.get("input") or body.get("contents")
    texts = [t.get("content") or t["parts"][0]["text"] for t in messages]
    assert texts == ["one", "two", "three"]
    assert [t["role"] for t in messages] == ["user", "model" if provider == "google" else "assistant",
                                         "user"]  # fmt: skip


@pytest.mark.parametrize(
    ("provider", "field"),
    [
        ("openai", "max_completion_tokens"),
        ("responses", "max_output_tokens"),
        ("anthropic", "max_tokens"),
        ("google", "maxOutputTokens"),
        ("openrouter", "max_tokens"),
        ("compatible", "max_tokens"),
    ],
)
def test_the_cap_has_each_vendors_own_name(asker, provider, field):
    model = asker(provider)
    model.reply(max_tokens=123)
    body = model.seen[0].body
    assert {**body, **body.get("generationConfig", {})}[field] == 123


@pytest.mark.parametrize("provider", PROVIDERS)
def test_nothing_that_was_not_set_is_sent(asker, provider):
    model = asker(provider)
    model.reply()
    request_text = json.dumps(model.seen[0].body)
    for name in (
        "temperature",
        "top_p",
        "topP",
        "seed",
        "reasoning",
        "thinking",
        "response_format",
    ):
        assert f'"{name}' not in request_text


@pytest.mark.parametrize(
    ("provider", "reasoning", "expected_value"),
    [
        ("openai", "high", {"reasoning_effort": "high"}),
        ("responses", "high", {"reasoning": {"effort": "high"}}),
        (
            "anthropic",
            "high",
            {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}},
        ),
        ("anthropic", "none", {"thinking": {"type": "disabled"}}),
        ("anthropic", "2048", {"thinking": {"type": "enabled", "budget_tokens": 2048}}),
        ("openrouter", "low", {"reasoning": {"effort": "low"}}),
        ("openrouter", "512", {"reasoning": {"max_tokens": 512}}),
        ("compatible", "low", {"reasoning_effort": "low"}),
    ],
)
def test_reasoning_is_put_into_each_vendors_words(asker, provider, reasoning, expected_value):
    model = asker(provider)
    model.reply(options={"reasoning": reasoning})
    assert expected_value.items() <= model.seen[0].body.items()


@pytest.mark.parametrize(
    ("reasoning", "expected_value"),
    [("high", {"thinkinglevel": "HIGH"}), ("1024", {"thinkingbudget": 1024})],
)
def test_google_thinks_by_level_or_by_budget(asker, reasoning, expected_value):
    model = asker("google")
    model.reply(options={"reasoning": reasoning})
    thinking = model.seen[0].body["generationConfig"]["thinkingConfig"]
    # The SDK sends this part in snake case, which the API takes as well.
    assert {
        name.replace("_", "").lower(): value for name, value in thinking.items()
    } == expected_value


@pytest.mark.parametrize("provider", PROVIDERS)
def test_options_that_are_set_are_sent(asker, provider):
    model = asker(provider)
    options = {"temperature": 0.25, "top_p": 0.5, "seed": 7, "headers": {"X-Wire": "yes"}}
    reply = model.reply(options=options)
    (call,) = model.seen
    body = {**call.body, **call.body.get("generationConfig", {})}
    assert body["temperature"] == 0.25
    assert (body.get("top_p") or body.get("topP")) == 0.5
    assert call.headers["x-wire"] == "yes"
    no_seed = provider in ("responses", "anthropic")
    assert body.get("seed") == (None if no_seed else 7)
    assert reply.degraded == (("seed",) if no_seed else ())


def test_anthropics_temperature_goes_with_the_version_that_knew_it(asker):
    model = asker("anthropic")
    model.reply(options={"temperature": 0.0})
    model.reply()
    first, second = model.seen
    assert (first.body["temperature"], first.headers["anthropic-version"]) == (0.0, "2023-06-01")
    assert "temperature" not in second.body
    assert second.headers["anthropic-version"] != "2023-06-01"


@pytest.mark.parametrize("provider", PROVIDERS)
def test_extra_fields_reach_the_body(asker, provider):
    model = asker(provider)
    model.reply(options={"extra": {"wire_extra": {"a": 1}}})
    assert model.seen[0].body["wire_extra"] == {"a": 1}


def test_extra_fields_join_the_objects_that_clash_sends(asker):
    model = asker("openrouter")
    ceiling = {"provider": {"max_price": {"prompt": 1, "completion": 2}}}
    model.reply(schema=SCHEMA, options={"extra": ceiling})
    provider = model.seen[0].body["provider"]
    assert provider == {"require_parameters": True, **ceiling["provider"]}


@pytest.mark.parametrize("version", ["v1", "v1beta"])
def test_googles_api_version_is_an_option(asker, version):
    model = asker("google")
    model.reply(options={"api_version": version})
    assert model.seen[0].path == f"/google/{version}/models/{model.model}:generateContent"


def test_openai_stores_nothing(asker):
    model = asker("responses")
    model.reply()
    assert model.seen[0].body["store"] is False


def test_openai_accepts_no_cap_below_sixteen_on_responses(asker):
    model = asker("responses")
    model.reply(max_tokens=5)
    assert model.seen[0].body["max_output_tokens"] == 16


def test_openrouter_may_not_drop_the_schema_in_silence(asker):
    model = asker("openrouter")
    model.reply(schema=SCHEMA)
    model.reply()
    with_schema, without = model.seen
    assert with_schema.body["provider"] == {"require_parameters": True}
    assert "provider" not in without.body


@pytest.mark.parametrize("provider", PROVIDERS)
def test_tokens_are_counted_in_one_convention(asker, provider):
    """Input with cached tokens, output with reasoning, whatever the vendor's own way."""
    model = asker(provider)
    counts = {"input": 100, "output": 50, "cached": 40, "reasoning": 30}
    model.misbehave(faults.altered("counts", lambda reply: _with_tokens(reply, counts)), times=2)
    for stream in STREAMS:
        assert model.reply(stream=stream).tokens == Tokens(**counts)


def _with_tokens(reply, counts):
    from dataclasses import replace

    return replace(reply, tokens=counts)


def test_openrouter_tells_what_it_cost(asker, server):
    model = asker("openrouter")
    server.conduct(model.model, cost=0.00123)
    assert [model.reply(stream=s).cost_usd for s in STREAMS] == [0.00123, 0.00123]


def test_with_a_key_of_ones_own_the_vendors_bill_comes_on_top(asker):
    model = asker("openrouter")
    usage = {
        "prompt_tokens": 1,
        "completion_tokens": 1,
        "cost": 0.01,
        "is_byok": True,
        "cost_details": {"upstream_inference_cost": 0.2},
    }
    model.misbehave(faults.usage(usage))
    assert model.reply().cost_usd == pytest.approx(0.21)


def test_a_gateway_may_tell_the_cost_in_a_header(asker):
    model = asker("compatible")

    async def play(line, request, reply):
        from wire import vendors

        await line.json(200, vendors.body(request, reply), {"x-litellm-response-cost": "0.0042"})

    model.misbehave(faults.Fault("litellm", play))
    assert model.reply().cost_usd == 0.0042


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("bad", [math.nan, math.inf, -5, "many", None, True])
def test_counts_that_are_none_are_unknown_and_never_numbers(asker, provider, bad):
    model = asker(provider)
    names = ("prompt_tokens", "completion_tokens", "input_tokens", "output_tokens",
             "promptTokenCount", "candidatesTokenCount", "cost")  # fmt: skip
    model.misbehave(faults.usage(dict.fromkeys(names, bad)))
    reply = model.reply()
    assert reply.text
    assert (reply.tokens.input, reply.tokens.output, reply.cost_usd) == (None, None, None)
    json.dumps(reply.response, allow_nan=False)


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("provider", PROVIDERS)
def test_missing_usage_is_unknown(asker, provider, stream):
    model = asker(provider)
    model.misbehave(faults.no_usage())
    reply = model.reply(stream=stream)
    assert reply.text
    assert reply.tokens.input is None
    assert reply.tokens.output is None


@pytest.mark.parametrize("provider", PROVIDERS)
def test_another_model_than_asked_is_told(asker, provider):
    model = asker(provider)
    model.misbehave(faults.swapped("cheaper-model"), times=2)
    assert [model.reply(stream=s).served_model for s in STREAMS] == ["cheaper-model"] * 2


@pytest.mark.parametrize("provider", PROVIDERS)
def test_lone_surrogates_never_come_out(asker, provider):
    model = asker(provider)
    model.misbehave(faults.text("half a smile: \ud83d."), times=2)
    for stream in STREAMS:
        reply = model.reply(stream=stream)
        assert reply.text == "half a smile: \ufffd."
        json.dumps(reply.response, ensure_ascii=False).encode()


@pytest.mark.parametrize("provider", PROVIDERS)
def test_lone_surrogates_in_a_prompt_fail_the_call_and_nothing_else(asker, provider):
    model = asker(provider)
    answer = model.ask(turns=(Turn(role="user", content="half a smile: \ud83d."),))[0]
    # Some clients escape them, some cannot send them.
    assert getattr(answer, "error_class", "bad_request") == "bad_request"
    assert getattr(answer, "action", "fail") == "fail"


def test_comments_in_a_stream_are_no_events(asker):
    model = asker("openrouter")
    assert model.reply(stream=True).text == model.seen[0].text


def test_a_server_that_streams_unasked_is_read_all_the_same(asker):
    model = asker("compatible")

    async def play(line, request, reply):
        from wire import vendors

        await line.events(vendors.events(request, reply))

    model.misbehave(faults.Fault("unasked", play))
    assert model.reply(stream=False).text == model.seen[0].text


def test_a_server_that_does_not_stream_is_read_all_the_same(asker):
    for provider in PROVIDERS[:3] + PROVIDERS[4:]:
        model = asker(provider)

        async def play(line, request, reply):
            from wire import vendors

            await line.json(200, vendors.body(request, reply))

        model.misbehave(faults.Fault("unstreamed", play))
        assert model.reply(stream=True).text == model.seen[0].text
