"""A key is sent to its own address and comes out nowhere."""

from __future__ import annotations

import asyncio
import logging
import pickle
import traceback

import pytest

from clash.config import Limits, ModelRef, Options
from clash.errors import ConfigError, ProviderError
from clash.providers import open_provider
from clash.providers.accounts import account
from clash.secrets.redaction import Redactor
from wire import faults
from wire.asking import PROVIDERS

LEAKY = (
    faults.unauthorized(),
    faults.key_invalid(),
    faults.status(400, "you sent {key}"),
    faults.reset_before_headers(),
    faults.html_200(),
    faults.redirect(),
)


def everything(error: ProviderError) -> str:
    """All that could ever be shown or stored of an error."""
    trace_text = "".join(traceback.format_exception(error))
    chain = [error.__cause__, error.__context__ if not error.__suppress_context__ else None]
    return "\n".join([trace_text, repr(error), str(vars(error)), *map(repr, chain)])


def echo(key: str) -> faults.Fault:
    """An answer that repeats the key in a message, a header and a text."""

    async def play(line, request, reply):
        from dataclasses import replace

        await line.answer(request, replace(reply, text=f"your key is {line.key}"))

    return faults.Fault("echo", play)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_no_error_holds_the_key(asker, provider):
    model = asker(provider)
    key = model.server.keys[model.vendor]
    for fault in LEAKY:
        model.misbehave(fault)
        error = model.failure()
        assert key not in everything(error), fault.name
        assert key[:12] not in error.message


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("provider", PROVIDERS)
def test_no_reply_holds_the_key(asker, provider, stream):
    model = asker(provider)
    key = model.server.keys[model.vendor]
    model.misbehave(echo(key))
    reply = model.reply(stream=stream)
    assert key not in repr(reply)
    assert reply.text == "your key is [key]"


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_wrong_key_is_told_by_the_name_of_its_variable(asker, provider):
    model = asker(provider)
    environ = model.server.environ()
    name = next(k for k, v in environ.items() if v == model.server.keys[model.vendor])
    wrong = "sk-wrong-0123456789abcdef"
    model.server = _With(model.server, {**environ, name: wrong})
    error = model.failure()
    assert (error.error_class, error.action) == ("auth", "stop")
    assert name in error.message
    assert wrong not in everything(error)


class _With:
    def __init__(self, server, environ):
        self._server, self._environ = server, environ

    def environ(self):
        return self._environ

    def __getattr__(self, name):
        return getattr(self._server, name)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_prompt_that_holds_the_key_is_stored_without_it(asker, provider):
    model = asker(provider)
    key = model.server.keys[model.vendor]
    reply = model.reply(system=f"the key is {key}")
    assert key in str(model.seen[0].body)
    assert key not in repr(reply)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_headers_that_carry_secrets_are_hidden_in_what_is_stored(asker, provider):
    model = asker(provider)
    headers = {"X-Gateway-Key": "very-secret", "X-Team": "blue"}
    reply = model.reply(options={"headers": headers})
    assert model.seen[0].headers["x-gateway-key"] == "very-secret"
    assert reply.request["headers"] == {"X-Gateway-Key": "[key]", "X-Team": "blue"}


@pytest.mark.parametrize("provider", PROVIDERS)
def test_no_log_holds_key_or_prompt(asker, provider, caplog):
    """At debug level one SDK logs whole prompts and headers."""
    model = asker(provider)
    with caplog.at_level(logging.DEBUG):
        model.reply(system="a very private prompt")
    assert model.server.keys[model.vendor] not in caplog.text
    assert "very private" not in caplog.text


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_redirect_is_not_followed(asker, provider, wire):
    """The other host would get the key."""
    model = asker(provider)
    model.misbehave(faults.redirect(f"{wire.base_url('compatible')}/chat/completions"))
    error = model.failure()
    assert error.action == "stop"
    assert "redirects to" in error.message
    assert len(wire.calls) == 1


# -- what the environment must not add ------------------------------------------------------------

AMBIENT = {
    "OPENAI_ORG_ID": "org-ambient",
    "OPENAI_PROJECT_ID": "proj-ambient",
    "OPENAI_CUSTOM_HEADERS": "X-Ambient: yes\nAuthorization: Bearer sk-ambient-key-0123456789",
    "OPENAI_API_KEY": "sk-ambient-key-0123456789",
    "OPENAI_ADMIN_KEY": "sk-admin-key-0123456789",
    "ANTHROPIC_API_KEY": "sk-ant-ambient-0123456789",
    "ANTHROPIC_AUTH_TOKEN": "ambient-token",
    "ANTHROPIC_CUSTOM_HEADERS": "X-Ambient: yes",
    "GOOGLE_API_KEY": "AIza-ambient-key-0123456789",
    "GOOGLE_GENAI_USE_VERTEXAI": "true",
    "GOOGLE_CLOUD_PROJECT": "ambient-project",
    "OPENROUTER_API_KEY": "sk-or-ambient-0123456789",
}


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_process_environment_adds_nothing_at_a_chosen_address(asker, provider, monkeypatch):
    """Organisation, custom headers and other keys belong to the vendor's own address."""
    for name, value in AMBIENT.items():
        monkeypatch.setenv(name, value)
    model = asker(provider)
    ref = ModelRef(
        model=f"{model.vendor}/{model.model}",
        base_url=model.server.base_url(model.vendor),
        api_key_env="MY_KEY",
    ).chosen_by("file")
    environ = {**AMBIENT, "MY_KEY": model.server.keys[model.vendor]}

    async def main():
        provider = open_provider(ref, environ=environ, limits=Limits(timeout_s=5))
        try:
            return await provider.complete(model.request())
        finally:
            await provider.aclose()

    assert asyncio.run(main()).outcome == "ok"
    (call,) = model.seen
    header_text = str(call.headers)
    for word in ("ambient", "sk-admin"):
        assert word not in header_text.lower(), word


def test_at_the_vendors_own_address_the_given_environment_counts_and_no_other(asker, monkeypatch):
    monkeypatch.setenv("OPENAI_ORG_ID", "org-of-the-process")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Of-The-Process: yes")
    model = asker("openai")
    given_variables = {"OPENAI_ORG_ID": "org-given", "OPENAI_CUSTOM_HEADERS": "X-Given: yes"}
    model.server = _With(model.server, {**model.server.environ(), **given_variables})
    model.reply()
    headers = model.seen[0].headers
    assert headers["openai-organization"] == "org-given"
    assert headers["x-given"] == "yes"
    assert "x-of-the-process" not in headers


def test_gateways_of_older_make_find_anthropics_key_where_they_look(asker, server):
    model = asker("anthropic")
    key = server.keys["anthropic"]
    address = server.base_url("anthropic")
    ref = ModelRef(model=f"anthropic/{model.model}", base_url=address).chosen_by("file")

    async def main():
        provider = open_provider(ref, environ={"ANTHROPIC_API_KEY": key}, limits=Limits())
        await provider.complete(model.request())
        await provider.aclose()

    asyncio.run(main())
    model.reply()
    headers, own_headers = (call.headers for call in model.seen)
    assert (headers["x-api-key"], headers["authorization"]) == (key, f"Bearer {key}")
    assert own_headers["authorization"] == f"Bearer {key}"
    assert own_headers.get("x-api-key") in (None, key)


def test_a_server_without_a_key_is_sent_none(asker, server, monkeypatch):
    for name, value in AMBIENT.items():
        monkeypatch.setenv(name, value)
    model = asker("compatible")
    model.server = _With(server, {"COMPATIBLE_BASE_URL": server.base_url("compatible"), **AMBIENT})
    model.reply()
    assert "authorization" not in model.seen[0].headers


# -- values ---------------------------------------------------------------------------------------


def test_an_account_does_not_show_its_key():
    key_account = account(ModelRef(model="openai/m"), {"OPENAI_API_KEY": "sk-0123456789abcdef"})
    assert "sk-0123456789abcdef" not in repr(key_account)
    assert "sk-0123456789abcdef" not in key_account.name
    assert "OPENAI_API_KEY" in key_account.name


def test_a_redactor_does_not_show_its_keys():
    assert "hunter2hunter2" not in repr(Redactor.of("hunter2hunter2"))


@pytest.mark.parametrize(
    ("text", "visible_text"),
    [
        ("key sk-proj-abcdefghij is wrong", "key [key] is wrong"),
        ("key sk-proj-****wxyz is wrong", "key [key] is wrong"),
        ("key AIzaSyA0123456789 is wrong", "key [key] is wrong"),
        ("Authorization: Bearer abcdefghijklmnop", "Authorization: [key]"),
        ("https://h/v1?key=abcdef&x=1", "https://h/v1[key]&x=1"),
        ("my own 0wn-s3cret-value here", "my own [key] here"),
        ("task-oriented risk-free words", "task-oriented risk-free words"),
    ],
)
def test_what_looks_like_a_key_is_hidden_in_messages(text, visible_text):
    assert Redactor.of("0wn-s3cret-value").message(text) == visible_text


def test_placeholders_are_words_and_no_secrets():
    redactor = Redactor.of("none")
    assert redactor.data({"none": ["none of them"]}) == {"none": ["none of them"]}


def test_only_the_own_key_is_taken_out_of_answers():
    """A model may well be asked to write about keys."""
    redactor = Redactor.of("sk-mine-0123456789")
    text = "use sk-proj-your-key-here, not sk-mine-0123456789"
    assert redactor.data(text) == "use sk-proj-your-key-here, not [key]"


@pytest.mark.parametrize("provider", ["openai", "anthropic", "google", "openrouter"])
def test_a_missing_key_is_named_before_anything_is_sent(provider, server):
    with pytest.raises(ConfigError) as error:
        open_provider(ModelRef(model=f"{provider}/m"), environ={}, limits=Limits())
    assert f"{provider.upper()}_API_KEY" in str(error.value)
    assert server.calls == []


def test_a_key_with_a_line_break_is_refused_without_being_shown():
    environ = {"OPENAI_API_KEY": "sk-abc\ndef0123456789"}
    with pytest.raises(ConfigError) as error:
        open_provider(ModelRef(model="openai/m"), environ=environ, limits=Limits())
    assert "def0123456789" not in str(error.value)


def test_an_error_survives_a_pickle_without_the_key(asker):
    model = asker("openai")
    model.misbehave(faults.unauthorized())
    error = model.failure(options=Options().model_dump(exclude_defaults=True))
    assert model.server.keys["openai"].encode() not in pickle.dumps(vars(error))
