"""Every row of the failure catalogue: what comes off the wire, and what clash makes of it."""

from __future__ import annotations

import json
import socket
from dataclasses import dataclass, replace

import httpx2
import pytest

from clash.config import Limits
from clash.errors import ProviderError
from clash.providers import sdk
from clash.providers.base import Reply
from clash.records import Turn
from clash.secrets.destinations import Environ
from wire import Fault, faults
from wire.asking import PROVIDERS, SCHEMA, Asker

ALL = PROVIDERS
CHAT = ("openai", "openrouter", "compatible")
NO_SDK = ("openrouter", "compatible")
NOT_GOOGLE = tuple(p for p in PROVIDERS if p != "google")


@dataclass(frozen=True)
class Row:
    """A failure, who it may come from, and what must follow.

    Attributes:
        then: error class and action.
        billed: whether the budget must count it; null where the test does not ask.
    """

    fault: Fault
    then: tuple[str, str]
    providers: tuple[str, ...] = ALL
    stream: bool = False
    retry_after: float | None = None
    billed: bool | None = None
    name: str = ""


ROWS = (
    # 1, 2: rate limits
    Row(faults.rate_limit("2"), ("rate_limit", "retry"), retry_after=2, billed=False),
    Row(faults.rate_limit("1.5"), ("rate_limit", "retry"), retry_after=1.5, name="fraction"),
    Row(faults.rate_limit("0"), ("rate_limit", "retry"), retry_after=0, name="zero"),
    Row(faults.rate_limit(), ("rate_limit", "retry"), name="no_hint"),
    Row(faults.rate_limit("-3"), ("rate_limit", "retry"), name="negative"),
    Row(faults.rate_limit("soon"), ("rate_limit", "retry"), name="junk"),
    Row(faults.rate_limit("nan"), ("rate_limit", "retry"), name="nan"),
    Row(
        faults.rate_limit("250", header="retry-after-ms"),
        ("rate_limit", "retry"),
        retry_after=0.25,
        name="ms",
    ),
    Row(faults.rate_limit_date(-60), ("rate_limit", "retry"), retry_after=0, name="past_date"),
    Row(faults.rate_limit("86400"), ("rate_limit", "stop"), name="too_long_a_wait"),
    Row(faults.rate_limit_date(9000), ("rate_limit", "stop"), name="far_date"),
    Row(faults.retry_info("7s"), ("rate_limit", "retry"), ("google",), retry_after=7),
    # 3, 4: money
    Row(faults.quota(), ("quota", "stop"), billed=False),
    Row(faults.payment_required(), ("quota", "stop")),
    Row(faults.credit_too_low(), ("quota", "stop"), ("anthropic",)),
    Row(
        faults.status(402, "in flight", headers={"retry-after": "3"}),
        ("rate_limit", "retry"),
        ("openrouter",),
        retry_after=3,
        name="credits_reserved_by_calls_in_flight",
    ),
    # 5, 6, 7: the server
    Row(faults.overloaded(), ("overloaded", "retry"), billed=False),
    Row(faults.server_error(500), ("server", "retry"), billed=False),
    Row(faults.bad_gateway(), ("server", "retry")),
    Row(faults.server_error(524), ("timeout", "retry"), billed=True, name="gateway_timeout"),
    Row(faults.status(408), ("timeout", "retry")),
    Row(faults.status(409), ("server", "retry")),
    Row(faults.should_not_retry(), ("server", "fail")),
    # 9, 10, 11, 12: the line
    Row(faults.reset_before_headers(), ("connection", "retry"), billed=True),
    Row(faults.reset_mid_body(), ("connection", "retry"), billed=True),
    Row(faults.reset_mid_stream(), ("connection", "retry"), stream=True, billed=True),
    Row(faults.clean_cut(), ("incomplete_stream", "retry"), stream=True, billed=True),
    # 13: errors within a stream
    Row(faults.error_in_stream(503), ("overloaded", "retry"), ("anthropic", "google"), True),
    Row(faults.error_in_stream(502), ("server", "retry"), (*CHAT, "responses"), True, billed=True),
    # 17, 18: something else
    Row(faults.html_200(), ("proxy", "retry")),
    Row(faults.not_json(), ("bad_payload", "retry"), billed=True),
    Row(faults.empty_200(), ("bad_payload", "retry")),
    Row(faults.no_content(), ("bad_payload", "retry")),
    Row(faults.raw(200, "[]", name="list"), ("bad_payload", "retry")),
    Row(faults.raw(200, "{}", name="object"), ("bad_payload", "retry")),
    Row(faults.raw(200, '{"choices": []}', name="no_choice"), ("bad_payload", "retry"), CHAT),
    Row(
        faults.raw(200, "<p>in</p>", "application/json", name="page_as_json"),
        ("bad_payload", "retry"),
    ),
    *(
        Row(
            faults.raw(200, f"data: {data}\n\n", "text/event-stream", name=f"field_{n}"),
            ("bad_payload", "retry"),
            ("google",),  # whose SDK builds objects of the events of a stream
            stream=True,
            billed=True,
        )
        for n, data in enumerate(
            ('{"candidates": [{"finishReason": -1}]}', '{"error": {"code": null}}', "5")
        )
    ),
    Row(faults.redirect(), ("not_found", "stop"), billed=False),
    # 19: errors under 200
    Row(faults.error_in_200(502), ("server", "retry"), ALL, billed=True),
    Row(faults.error_in_200(429), ("rate_limit", "retry"), ("openrouter", "google", "anthropic")),
    Row(faults.error_in_200(402), ("quota", "stop"), ("openrouter",), name="no_credits_in_200"),
    Row(faults.error_finish(502), ("server", "retry"), ("openrouter",)),
    Row(faults.failed_response("server_error"), ("server", "retry"), ("responses",)),
    Row(faults.failed_response("rate_limit_exceeded"), ("rate_limit", "retry"), ("responses",)),
    Row(faults.failed_response("invalid_prompt"), ("blocked", "fail"), ("responses",)),
    # 20, 21: keys and permissions
    Row(faults.unauthorized(), ("auth", "stop"), billed=False),
    Row(faults.key_invalid(), ("auth", "stop"), ("google",)),
    # A gateway's 400 for a wrong key: LiteLLM's own, and an upstream's that it passes on.
    *(
        Row(faults.status(400, text, name=f"wrong_key_400_{n}"), ("auth", "stop"))
        for n, text in enumerate(
            (
                "Authentication Error, Invalid proxy server token passed. Received API Key ="
                " sk-...89ab, Unable to find token in cache or `LiteLLM_VerificationTokenTable`",
                "litellm.AuthenticationError: AuthenticationError: OpenAIException",
                "API key not valid. Please pass a valid API key.",
                "Authentication Error, No api key passed in.",
                "Malformed API Key passed in. Ensure Key has `Bearer ` prefix.",
                "Invalid Virtual Key",
            )
        )
    ),
    Row(
        faults.status(400, "no", code="401", kind="auth_error", name="auth_error_400"),
        ("auth", "stop"),
        ("openai", "compatible"),
    ),
    Row(faults.forbidden(), ("permission", "stop")),
    Row(faults.region(), ("permission", "stop"), ("google",)),
    Row(faults.moderation(), ("blocked", "fail"), ("openrouter",)),
    # 22: no such model
    Row(faults.not_found(), ("not_found", "stop")),
    Row(
        faults.raw(404, '{"detail": "Not Found"}', name="fastapi_404"),
        ("not_found", "stop"),
        CHAT,
    ),
    Row(
        faults.status(400, "llama-9 is not a valid model ID"),
        ("not_found", "stop"),
        ("openrouter",),
        name="openrouter_400",
    ),
    Row(faults.status(405, "Method Not Allowed"), ("not_found", "stop")),
    # 25: length
    Row(faults.too_long(), ("too_long", "fail"), billed=False),
    Row(faults.status(413, "Request too large"), ("too_long", "fail")),
    # other refusals of the request itself
    Row(faults.status(400, "messages: at least one is required"), ("bad_request", "fail")),
    Row(faults.status(422, "cannot be processed"), ("bad_request", "fail")),
    Row(
        faults.status(400, "rejected by our content management policy", code="content_filter"),
        ("blocked", "fail"),
        ("openai", "compatible"),
        name="content_filter_400",
    ),
)


def cases():
    for row in ROWS:
        for provider in row.providers:
            then = "" if row.name else "_".join(row.then)
            name = "-".join(filter(None, (row.fault.name, row.name, then, provider)))
            yield pytest.param(row, provider, id=name)


@pytest.mark.parametrize(("row", "provider"), list(cases()))
def test_a_failure_on_the_wire_is_known_for_what_it_is(asker, row, provider):
    model = asker(provider)
    model.misbehave(row.fault)
    error = model.failure(stream=row.stream)
    assert (error.error_class, error.action) == row.then, error.message
    assert error.retry_after == (
        None if row.retry_after is None else pytest.approx(row.retry_after, abs=1.5)
    )
    if row.billed is not None:
        assert error.maybe_billed == row.billed
    assert len(model.seen) == 1, "no SDK may ask a second time of itself"
    assert error.request["body"]
    assert error.latency_s >= 0
    assert error.message
    json.dumps([error.request, error.response], allow_nan=False, ensure_ascii=False).encode()


@pytest.mark.parametrize("provider", ALL)
def test_a_redirect_says_nothing_of_the_model_and_what_to_write(asker, provider):
    model = asker(provider)
    model.misbehave(faults.redirect())
    message = model.failure().message
    assert message.startswith("the server redirects to https://elsewhere.invalid/v1, which is not")
    assert "base_url" in message


@pytest.mark.parametrize("provider", ALL)
def test_after_a_failure_the_same_provider_goes_on(asker, provider):
    model = asker(provider)
    model.misbehave(faults.reset_mid_body())
    model.misbehave(faults.server_error())
    first, second, third = model.ask(3)
    assert isinstance(first, ProviderError)
    assert isinstance(second, ProviderError)
    assert isinstance(third, Reply)


# -- time ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("provider", ALL)
@pytest.mark.parametrize("fault", [faults.hang(3), faults.slow_loris()], ids=lambda f: f.name)
def test_an_attempt_has_a_deadline_of_its_own(asker, provider, fault, stream):
    """A server that says one byte at a time never trips a timeout on reading."""
    model = asker(provider, limits=Limits(timeout_s=0.3))
    model.misbehave(fault)
    error = model.failure(stream=stream)
    assert (error.error_class, error.action, error.maybe_billed) == ("timeout", "retry", True)
    assert error.latency_s < 2.5


# -- what may have been billed --------------------------------------------------------------------


@dataclass
class _Transport(httpx2.AsyncBaseTransport):
    """Fails as if nothing had been sent: at once, or after the head of an answer."""

    error: Exception
    answers: bool

    async def handle_async_request(self, request):
        if not self.answers:
            raise self.error
        return httpx2.Response(200, request=request, stream=_Failing(self.error))


@dataclass
class _Failing(httpx2.AsyncByteStream):
    error: Exception

    async def __aiter__(self):
        yield b'{"id": "1",'
        raise self.error


@pytest.mark.parametrize("answers", [False, True])
@pytest.mark.parametrize("provider", [p for p in ALL if p not in NO_SDK])
@pytest.mark.parametrize("error", ["ConnectError", "ProxyError", "PoolTimeout"])
def test_a_call_that_was_answered_at_all_may_be_billed(
    asker, provider, answers, error, monkeypatch
):
    """These say that no request went out; an answer that had begun says that one did."""
    transport = _Transport(getattr(httpx2, error)("gone"), answers)
    monkeypatch.setattr(sdk, "AiohttpTransport", lambda *args, **more: transport)
    assert asker(provider).failure().maybe_billed is answers


# -- addresses ------------------------------------------------------------------------------------


@pytest.mark.parametrize("provider", ALL)
def test_a_server_of_ones_own_that_does_not_run_is_asked_after(asker, provider, unused_port):
    model = asker(provider)
    model.server = _At(f"http://127.0.0.1:{unused_port}/v1")
    error = model.failure()
    assert (error.error_class, error.action, error.maybe_billed) == ("connection", "stop", False)
    assert f"no server is running at 127.0.0.1:{unused_port}: is it running?" in error.message


@pytest.mark.parametrize("provider", ALL)
def test_a_host_that_is_not_found_may_be_found_later(asker, provider):
    model = asker(provider)
    model.server = _At("http://no-such-host.invalid/v1")
    error = model.failure()
    assert (error.error_class, error.action, error.maybe_billed) == ("connection", "retry", False)
    assert "no-such-host.invalid" in error.message


@dataclass
class _At:
    """In place of a server: an address."""

    address: str

    def environ(self):
        keys = {f"{name}_API_KEY": "sk-some-key-or-other" for name in
                ("OPENAI", "ANTHROPIC", "GOOGLE", "OPENROUTER")}  # fmt: skip
        names = ("OPENAI", "ANTHROPIC", "GOOGLE_GEMINI", "OPENROUTER", "COMPATIBLE")
        addresses = {f"{name}_BASE_URL": self.address for name in names}
        return Environ(keys | addresses, hosts=[self.address])


@pytest.mark.parametrize("provider", ALL)
def test_a_certificate_that_nobody_vouches_for_is_named(asker, provider, tls_server):
    model = asker(provider)
    model.server = _At(tls_server.replace("http://", "https://"))
    error = model.failure()
    assert (error.error_class, error.action, error.maybe_billed) == ("tls", "stop", False)
    assert "certificate" in error.message.lower()
    assert "SSL_CERT_FILE" in error.message


@pytest.mark.parametrize("provider", ALL)
def test_a_private_authority_is_trusted_where_the_environment_says_so(
    asker, provider, tls_server, authority, monkeypatch, wire
):
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    model = asker(provider)
    plain = wire.base_url(model.vendor)
    address = plain.replace(f"http://127.0.0.1:{wire.port}", tls_server)
    model.server = _Redirect(wire, plain, address)
    assert model.reply().outcome == "ok"


@dataclass
class _Redirect:
    """A server whose one address is another."""

    server: object
    old: str
    new: str

    def __getattr__(self, name):
        return getattr(self.server, name)

    def environ(self):
        moved = {k: self.new if v == self.old else v for k, v in self.server.environ().items()}
        return Environ(moved, hosts=[self.new])


@pytest.mark.parametrize("provider", ALL)
def test_a_proxy_that_is_not_there_is_the_proxys_fault(asker, provider, unused_port, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", f"http://user:hunter2hunter2@127.0.0.1:{unused_port}")
    model = asker(provider)
    model.server = _At("http://model.invalid/v1")
    error = model.failure()
    assert error.error_class in ("proxy", "connection")
    assert f"127.0.0.1:{unused_port}" in error.message
    assert "hunter2" not in error.message


@pytest.mark.parametrize("provider", ALL)
def test_calls_go_through_the_proxy_of_the_environment(asker, provider, wire, monkeypatch):
    """The loopback server stands in for a proxy: it is sent the whole URL of another host."""
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{wire.port}")
    model = asker(provider)
    plain = wire.base_url(model.vendor)
    model.server = _Redirect(wire, plain, plain.replace(f"127.0.0.1:{wire.port}", "model.invalid"))
    assert model.reply().outcome == "ok"
    assert model.seen[0].headers["host"] == "model.invalid"


@pytest.mark.parametrize("provider", ALL)
def test_a_proxy_that_says_nothing_costs_the_time_to_connect_and_no_money(
    asker, provider, monkeypatch
):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{silent.getsockname()[1]}")
        model = asker(provider)
        model.server = _At("https://model.invalid/v1")
        model.limits = Limits(timeout_s=5, connect_timeout_s=0.3)
        error = model.failure()
    assert (error.error_class, error.action) == ("connection", "retry")
    assert not error.maybe_billed


@pytest.mark.parametrize("provider", ALL)
def test_no_proxy_is_obeyed(asker, provider, unused_port, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{unused_port}")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    assert asker(provider).reply().outcome == "ok"


# -- answers that are worth less than they look ------------------------------------------------


def outcomes():
    refusal = dict.fromkeys(ALL, "refusal") | {"google": "blocked"}
    blocked = dict.fromkeys(ALL, "blocked") | {"anthropic": "refusal"}
    table = (
        (faults.truncated(), dict.fromkeys(ALL, "truncated")),
        (faults.reasoning_only(), dict.fromkeys(ALL, "truncated")),
        (faults.refusal(), refusal),
        (replace(faults.refusal(""), name="mute"), {"anthropic": "refusal", "google": "blocked"}),
        (faults.safety(), blocked),
        (faults.prompt_blocked(), {"google": "blocked"}),
        (faults.empty(), dict.fromkeys(ALL, "empty")),
        (replace(faults.text("  \n "), name="blank"), dict.fromkeys(ALL, "empty")),
    )
    for fault, expected_value in table:
        for provider, outcome in expected_value.items():
            for stream in (False, True):
                if stream and fault.name == "prompt_blocked":
                    continue
                name = f"{fault.name}-{provider}-{'stream' if stream else 'whole'}"
                yield pytest.param(fault, provider, stream, outcome, id=name)


@pytest.mark.parametrize(("fault", "provider", "stream", "outcome"), list(outcomes()))
def test_an_answer_that_is_none_is_a_reply_with_its_outcome(
    asker, fault, provider, stream, outcome
):
    model = asker(provider)
    model.misbehave(fault)
    reply = model.reply(stream=stream)
    assert reply.outcome == outcome
    assert reply.tokens.output is not None or fault.name == "prompt_blocked"
    assert reply.response


@pytest.mark.parametrize("provider", [p for p in ALL if p != "google"])
def test_the_words_of_a_refusal_are_kept(asker, provider):
    model = asker(provider)
    model.misbehave(faults.refusal("No, sorry."), times=2)
    assert [model.reply(stream=s).text for s in (False, True)] == ["No, sorry."] * 2


@pytest.mark.parametrize("provider", ALL)
def test_the_cap_of_a_real_call_truncates(asker, provider):
    """No fault: the server cuts at the cap that it was sent."""
    model = asker(provider)
    long = (Turn(role="user", content="x"),)
    model.server.conduct(model.model, answer=lambda request: "word " * 500)
    assert model.reply(turns=long, max_tokens=20).outcome == "truncated"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("provider", ALL)
def test_an_answer_of_many_megabytes_is_not_kept(asker, provider, stream):
    model = asker(provider)
    model.misbehave(faults.huge())
    error = model.failure(stream=stream)
    assert (error.error_class, error.action, error.maybe_billed) == ("bad_payload", "fail", True)
    assert len(json.dumps(error.response)) < 100_000


# What each API says when an answer is whole, and everything else that it is known to say.
REASONS = {
    "chat": (
        ("choices", 0, "finish_reason"),
        ("stop", "STOP", "eos", "eos_token", "end_turn", "stop_sequence", "COMPLETE"),
        ("tool_calls", "function_call", "abort", "cancelled", "OTHER", "NEW_REASON", 7),
    ),
    "responses": (
        ("status",),
        ("completed",),
        ("cancelled", "in_progress", "queued", "NEW_REASON", 7),
    ),
    "messages": (
        ("stop_reason",),
        ("end_turn", "stop_sequence", "tool_use"),
        ("pause_turn", "NEW_REASON", 7),
    ),
    "gemini": (
        ("candidates", 0, "finishReason"),
        ("STOP",),
        (
            *("MALFORMED_RESPONSE", "OTHER", "FINISH_REASON_UNSPECIFIED", "NO_IMAGE"),
            *("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS"),
            *("MISSING_THOUGHT_SIGNATURE", "IMAGE_OTHER", "NEW_REASON"),
        ),
    ),
}
API = {"responses": "responses", "anthropic": "messages", "google": "gemini"}


def ends_with(location: tuple[str | int, ...], reason: object) -> Fault:
    """The plain answer, with another reason for its end; null leaves the field out."""

    async def play(line, request, reply):
        from wire import vendors

        whole = vendors.body(request, reply)
        inner = whole
        for step in location[:-1]:
            inner = inner[step]
        inner[location[-1]] = reason
        if reason is None:
            del inner[location[-1]]
        await line.json(200, whole)

    return Fault(f"ends_with_{reason}", play, billed=True)


@pytest.mark.parametrize("provider", ALL)
def test_only_a_reason_that_says_so_makes_an_answer_whole(asker, provider):
    """A half answer can read like a vote, and vendors add reasons as they like."""
    place, whole, others = REASONS[API.get(provider, "chat")]
    for reason in whole:
        model = asker(provider)
        model.misbehave(ends_with(place, reason))
        assert model.reply(schema=SCHEMA).outcome == "ok", reason
    for reason in others:
        model = asker(provider)
        model.misbehave(ends_with(place, reason))
        error = model.failure(schema=SCHEMA)
        assert (error.error_class, error.action) == ("unfinished", "retry"), reason
        assert error.maybe_billed
        assert not isinstance(reason, str) or repr(reason) in error.message


@pytest.mark.parametrize("provider", ALL)
@pytest.mark.parametrize("reason", [None, ""])
def test_small_local_servers_alone_may_leave_the_reason_out(asker, provider, reason):
    place, *_ = REASONS[API.get(provider, "chat")]
    model = asker(provider)
    model.misbehave(ends_with(place, reason))
    (answer,) = model.ask(schema=SCHEMA)
    outcome = "ok" if provider == "compatible" else "unfinished"
    assert getattr(answer, "outcome", getattr(answer, "error_class", None)) == outcome


def test_every_reason_of_googles_sdk_is_decided_on(asker):
    """A new one in a later SDK shall be looked at."""
    from google.genai.types import FinishReason

    from clash.providers.dialects.gemini import Gemini

    answer = {"content": {"parts": [{"text": '{"ranking": [["A0"], ["A1"]]}'}]}}
    outcomes = {
        reason.value: getattr(
            Gemini().read({"candidates": [{**answer, "finishReason": reason.value}]}),
            "outcome",
            "unfinished",
        )
        for reason in FinishReason
    }
    assert [name for name, outcome in outcomes.items() if outcome == "ok"] == ["STOP"]
    assert {n for n, o in outcomes.items() if o == "unfinished"} <= set(REASONS["gemini"][2])


def test_an_incomplete_response_says_why(asker):
    for reason, outcome in (
        ("max_output_tokens", "truncated"),
        ("content_filter", "blocked"),
        ("steered", "unfinished"),
        ("max_messages", "unfinished"),
        (None, "unfinished"),
    ):
        model = asker("responses")

        async def play(line, request, reply, reason=reason):
            from wire import vendors

            whole = vendors.body(request, reply) | {
                "status": "incomplete",
                "incomplete_details": {"reason": reason},
            }
            await line.json(200, whole)

        model.misbehave(Fault("incomplete", play))
        (answer,) = model.ask()
        assert getattr(answer, "outcome", getattr(answer, "error_class", None)) == outcome, reason


def test_googles_continuation_is_not_bought_unasked(asker):
    model = asker("google")

    async def play(line, request, reply):
        from wire import vendors

        body = vendors.body(request, reply)
        body["candidates"][0] |= {"finishReason": "CONTINUATION", "continuationToken": "YWJj"}
        await line.json(200, body)

    model.misbehave(Fault("continuation", play), times=5)
    assert model.reply().outcome == "truncated"
    assert len(model.seen) == 1


def test_a_cancelled_call_stays_cancelled(server):
    """Ctrl-C is no failure of the provider's."""
    import asyncio

    model = Asker(server, "openai", "cancelled")
    model.misbehave(faults.hang(5))

    async def main():
        from clash.providers import open_provider

        provider = open_provider(model.ref(), environ=server.environ(), limits=model.limits)
        task = asyncio.create_task(provider.complete(model.request()))
        await asyncio.sleep(0.3)
        task.cancel()
        try:
            with pytest.raises(asyncio.CancelledError):
                await task
        finally:
            await provider.aclose()

    asyncio.run(main())
