"""Which variable holds a key, and where a model is reached."""

from __future__ import annotations

import subprocess
import sys

import pytest

from clash.config import Limits, ModelRef
from clash.errors import ConfigError
from clash.providers import has_key, key_variable, open_provider
from clash.providers.accounts import account, base_url
from clash.secrets.destinations import Environ

DEFAULTS = {
    "openai/m": ("OPENAI_API_KEY", "https://api.openai.com/v1"),
    "anthropic/m": ("ANTHROPIC_API_KEY", "https://api.anthropic.com"),
    "google/m": ("GOOGLE_API_KEY", "https://generativelanguage.googleapis.com"),
    "openrouter/v/m": ("OPENROUTER_API_KEY", "https://openrouter.ai/api/v1"),
}


@pytest.mark.parametrize("model", DEFAULTS)
def test_every_vendor_has_its_own_variable_and_address(model):
    variable, address = DEFAULTS[model]
    ref = ModelRef(model=model)
    assert key_variable(ref, {}) == variable
    assert not has_key(ref, {})
    assert has_key(ref, {variable: "k"})
    assert not has_key(ref, {variable: "  "})
    assert base_url(ref, {}) == address
    assert account(ref, {variable: "k"}).key == "k"


@pytest.mark.parametrize(
    ("environ", "variable"),
    [
        ({"GEMINI_API_KEY": "a"}, "GEMINI_API_KEY"),
        ({"GOOGLE_API_KEY": "a", "GEMINI_API_KEY": "b"}, "GOOGLE_API_KEY"),
        ({"GOOGLE_API_KEY": "", "GEMINI_API_KEY": "b"}, "GEMINI_API_KEY"),
    ],
)
def test_google_has_two_variables(environ, variable):
    ref = ModelRef(model="google/m")
    assert key_variable(ref, environ) == variable
    assert account(ref, environ).key == environ[variable]


def test_a_named_variable_is_the_only_one_looked_at():
    ref = ModelRef(model="openai/m", api_key_env="WORK_KEY")
    assert key_variable(ref, {"OPENAI_API_KEY": "k"}) == "WORK_KEY"
    assert not has_key(ref, {"OPENAI_API_KEY": "k"})
    with pytest.raises(ConfigError, match="WORK_KEY"):
        account(ref, {"OPENAI_API_KEY": "k"})


@pytest.mark.parametrize("model", ["compatible/m", "baseline/longest", "replay/openai/m"])
def test_some_need_no_key(model):
    ref = ModelRef(model=model)
    assert key_variable(ref, {}) is None
    assert has_key(ref, {})


def test_a_server_of_ones_own_never_gets_openais_key():
    ref = ModelRef(model="compatible/m", base_url="http://localhost:1/v1").chosen_by("file")
    assert account(ref, {"OPENAI_API_KEY": "sk-not-for-you"}).key == ""
    assert account(ref, {"COMPATIBLE_API_KEY": "k"}).key == "k"


def test_the_address_comes_from_the_file_then_the_environment_then_the_vendor():
    environ = {"OPENAI_BASE_URL": "https://env.example/v1", "OPENAI_API_KEY": "k"}
    environ = Environ(environ, hosts=["file.example"])
    key_account = account(ModelRef(model="openai/m", base_url="https://file.example/v1/"), environ)
    input_key_account = account(ModelRef(model="openai/m"), environ)
    assert (key_account.base_url, key_account.has_own_url) == ("https://file.example/v1", True)
    assert (input_key_account.base_url, input_key_account.has_own_url) == (
        "https://env.example/v1",
        False,
    )


@pytest.mark.parametrize(
    ("address", "says"),
    [
        (None, "its address is missing"),
        ("localhost:11434/v1", "no http"),
        ("ftp://host/v1", "no http"),
        ("https://", "no http"),
        ("https://user:secret@host/v1", "password"),
    ],
)
def test_an_address_that_cannot_be_used_is_refused_with_the_mend(address, says):
    with pytest.raises(ConfigError, match=says) as error:
        account(ModelRef(model="compatible/m", base_url=address), {})
    assert error.value.hint
    assert "secret" not in str(error.value)


def test_a_missing_key_names_both_of_googles_variables():
    with pytest.raises(ConfigError) as error:
        account(ModelRef(model="google/m"), {})
    assert "GOOGLE_API_KEY (or GEMINI_API_KEY)" in str(error.value)


def test_models_at_one_account_share_its_name_and_others_do_not():
    environ = Environ({"OPENAI_API_KEY": "k", "OTHER": "o"}, hosts=["http://h", "api.openai.com"])
    account_name = account(ModelRef(model="openai/a"), environ).name
    assert account_name == account(ModelRef(model="openai/b"), environ).name
    assert account_name != account(ModelRef(model="openai/a", api_key_env="OTHER"), environ).name
    assert account_name != account(ModelRef(model="openai/a", base_url="http://h/v1"), environ).name


def test_the_environment_is_the_one_that_is_given(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-process-0123")
    with pytest.raises(ConfigError):
        open_provider(ModelRef(model="openai/m"), environ={}, limits=Limits())


def test_a_proxy_that_clash_does_not_speak_is_refused(monkeypatch):
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:1080")
    for model in ("compatible/m", "openai/m"):
        ref = ModelRef(model=model, base_url="http://model.invalid/v1")
        environ = Environ({"OPENAI_API_KEY": "k"}, hosts=["http://model.invalid"])
        with pytest.raises(ConfigError, match="socks5"):
            open_provider(ref, environ=environ, limits=Limits())


SDKS = ("openai", "anthropic", "google.genai", "aiohttp", "httpx2", "genai_prices")


@pytest.mark.parametrize(
    ("model", "imports"),
    [
        (None, ()),
        ("baseline/longest", ()),
        ("compatible/m", ("aiohttp",)),
        ("openai/m", ("openai", "httpx2", "aiohttp")),  # the SDK itself looks for aiohttp
    ],
)
def test_an_sdk_is_imported_by_the_model_that_needs_it_and_by_no_other(model, imports):
    code = f"""
import sys
from clash.config import Limits, ModelRef
from clash.providers import open_provider
from clash.secrets.destinations import Environ
if {model!r}:
    ref = ModelRef(model={model!r}, base_url={"http://h/v1" if model != "baseline/longest" else None!r})
    environ = Environ({{"OPENAI_API_KEY": "k"}}, hosts=["http://h"])
    open_provider(ref, environ=environ, limits=Limits())
print(*[name for name in {SDKS!r} if name in sys.modules])
"""
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert set(result.stdout.split()) == set(imports)
