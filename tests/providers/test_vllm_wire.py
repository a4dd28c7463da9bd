"""vLLM's chat completions as it writes them (0.29, from its protocol), over real HTTP."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from clash.config import Limits, ModelRef
from clash.errors import ProviderError
from clash.providers import open_provider
from clash.providers.base import Request
from clash.records import Turn
from wire.asking import SCHEMA, run
from wire.loopback import LoopbackServer

if TYPE_CHECKING:
    from collections.abc import Mapping

USAGE = {"prompt_tokens": 12, "total_tokens": 19, "completion_tokens": 7}


def completion(content: str | None, finish: str = "stop", reasoning: str | None = None) -> Any:
    """A ``ChatCompletionResponse`` with every field that vLLM sends, null where it has nothing."""
    message = {"role": "assistant", "content": content, "refusal": None, "annotations": None}
    message |= {"audio": None, "function_call": None, "reasoning": reasoning}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
    choice |= {"stop_reason": None, "token_ids": None}
    body = {"id": "chatcmpl-8f", "object": "chat.completion", "created": 1, "model": "org/m"}
    body |= {"choices": [choice], "service_tier": None, "system_fingerprint": None}
    body |= {"usage": {**USAGE, "prompt_tokens_details": None}, "prompt_logprobs": None}
    return body | {"prompt_token_ids": None, "prompt_text": None, "kv_transfer_params": None}


def error(code: int, kind: str, message: str, param: str | None = None) -> tuple[int, Any]:
    return code, {"error": {"message": message, "type": kind, "param": param, "code": code}}


class VllmServer(LoopbackServer):
    """Answers every chat completion with the next of ``answers``, the last one again and again."""

    def __init__(self, *answers: tuple[int, Any]) -> None:
        self.answers = list(answers)
        self.bodies: list[dict[str, Any]] = []
        super().__init__()
        self.url = f"{self.address}/v1"

    def answer(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes
    ) -> tuple[int, Any]:
        self.bodies.append(json.loads(body))
        more = len(self.answers) > 1
        status, value = self.answers.pop(0) if more else self.answers[0]
        return (status if path == "/v1/chat/completions" else 404), value


def ask(*urls: str, n: int = 1) -> list[Any]:
    """``n`` questions, one after another: a reply or an error each."""

    async def work() -> list[Any]:
        ref = ModelRef(model="compatible/org/m", base_urls=list(urls))
        model = open_provider(ref, environ={}, limits=Limits(timeout_s=5, connect_timeout_s=2))
        answers: list[Any] = []
        for _ in range(n):
            try:
                question = Request((Turn(role="user", content="Which?"),), 300, schema=SCHEMA)
                answers.append(await model.complete(question))
            except ProviderError as failure:
                answers.append(failure)
        await model.aclose()
        return answers

    return run(work())


@pytest.mark.parametrize(
    ("body", "outcome", "text"),
    [
        (completion('{"ranking": [["A0"]]}'), "ok", '{"ranking": [["A0"]]}'),
        (completion("A0", reasoning="hm"), "ok", "A0"),
        (completion("A", "length"), "truncated", "A"),
        (completion(None, "length", "hm"), "truncated", ""),
    ],
)
def test_its_answers_are_read(body, outcome, text):
    with VllmServer((200, body)) as server:
        (reply,) = ask(server.url)
    assert (reply.outcome, reply.text, reply.served_model) == (outcome, text, "org/m")
    assert (reply.tokens.input, reply.tokens.output) == (12, 7)
    (request_body,) = server.bodies
    assert (request_body["max_tokens"], request_body["response_format"]["type"]) == (
        300,
        "json_schema",
    )


@pytest.mark.parametrize(
    ("answer", "error_class", "action"),
    [
        (
            error(
                400,
                "BadRequestError",
                "This model's maximum context length is 400 tokens. However, you requested 300 "
                "output tokens and your prompt contains at least 101 input tokens",
                "input_tokens",
            ),
            "too_long",
            "fail",
        ),
        (error(404, "NotFoundError", "The model `org/m` does not exist."), "not_found", "stop"),
        (error(500, "InternalServerError", "EngineCore died"), "server", "retry"),
        (error(503, "ServiceUnavailableError", "paused"), "overloaded", "retry"),
        ((200, completion("A", "abort")), "unfinished", "retry"),
    ],
)
def test_its_errors_mean_what_they_say(answer, error_class, action):
    with VllmServer(answer) as server:
        (failure,) = ask(server.url)
    assert (failure.error_class, failure.action) == (error_class, action)


def test_a_server_whose_engine_died_rests_and_the_others_answer():
    dead = error(500, "InternalServerError", "EngineCore encountered an issue")
    with VllmServer(dead) as first_server, VllmServer((200, completion("A0"))) as two:
        answers = ask(first_server.url, two.url, n=8)
    assert len(first_server.bodies) == 1
    assert sum(not isinstance(answer, ProviderError) for answer in answers) == 7
