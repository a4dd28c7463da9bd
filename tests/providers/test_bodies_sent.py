"""The body that each SDK sends is the body that the dialect writes, and the record shows it."""

from __future__ import annotations

import pytest

from clash.providers.dialects.chat import Chat
from clash.providers.dialects.messages import Messages
from clash.providers.dialects.responses import Responses
from clash.providers.ladder import Ladder
from clash.records import Turn
from wire.asking import SCHEMA

TURNS = (
    Turn(role="user", content="Hé ✓ 😀 \u2028"),
    Turn(role="assistant", content="b"),
    Turn(role="system", content="s"),
    Turn(role="user", content="c"),
)
OPTIONS = {
    "temperature": 0.3,
    "top_p": 0.9,
    "seed": 7,
    "reasoning": "high",
    "headers": {"x-team": "blue"},
    # Fields that the SDKs have a parameter for, fields that none of them knows, and names of
    # the SDKs' own arguments.
    "extra": {
        "metadata": {"user_id": "u"},
        "service_tier": "auto",
        "custom": [1, {"a": None}],
        "timeout": 5,
        "extra_query": {"x": 1},
    },
}
DIALECTS = {"openai": Chat("openai"), "responses": Responses(), "anthropic": Messages()}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("json_mode", ["schema", "json", "text"])
@pytest.mark.parametrize("provider", DIALECTS)
def test_the_sdk_sends_what_the_dialect_writes(asker, provider, json_mode, stream):
    model = asker(provider, options={**OPTIONS, "structured": json_mode})
    wanted_fields = {"schema": SCHEMA, "ballot_code": "code", "stream": stream, "turns": TURNS}
    reply = model.reply(**wanted_fields)
    body = DIALECTS[provider].write(model.model, model.request(**wanted_fields), Ladder()).body
    (call,) = model.seen
    assert call.body == {"stream": stream, **body}
    assert reply.request["body"] == call.body
    assert call.headers["x-team"] == "blue"


@pytest.mark.parametrize("field", ["model", "max_tokens", "messages", "thinking", "stream"])
@pytest.mark.parametrize("value", ["x", 12, None])
def test_a_field_of_the_users_own_is_sent_as_it_stands(asker, field, value):
    """Whatever the SDK has a parameter of that name for."""
    model = asker("anthropic", options={"extra": {field: value}})
    model.ask()
    (call,) = (observed_call for observed_call in model.server.calls)
    assert call.body[field] == value


@pytest.mark.parametrize("stream", [False, True])
def test_googles_sdk_sends_the_dialects_fields_in_the_spelling_of_the_wire(asker, stream):
    model = asker("google", options=OPTIONS)
    reply = model.reply(schema=SCHEMA, stream=stream)
    (call,) = model.seen
    assert call.body == {
        "contents": [{"role": "user", "parts": [{"text": "Say something."}]}],
        "systemInstruction": {"role": "user", "parts": [{"text": "You are a judge."}]},
        "generationConfig": {
            "maxOutputTokens": 300,
            "responseMimeType": "application/json",
            "responseJsonSchema": SCHEMA,
            "temperature": 0.3,
            "topP": 0.9,
            "seed": 7,
            "thinkingConfig": {"thinkingLevel": "HIGH"},
        },
        **OPTIONS["extra"],
    }
    assert reply.request["body"] == call.body
    assert call.headers["x-team"] == "blue"


@pytest.mark.parametrize("settings", ["generationConfig", "generation_config"])
@pytest.mark.parametrize("field", ["maxOutputTokens", "max_output_tokens"])
def test_googles_fields_of_the_users_own_take_the_place_of_ours_in_either_spelling(
    asker, settings, field
):
    model = asker("google", options={"extra": {settings: {field: 7, "topK": 3}, "contents": []}})
    model.ask()
    (call,) = model.seen
    assert call.body["generationConfig"] == {"maxOutputTokens": 7, "topK": 3}
    assert call.body["contents"] == []
