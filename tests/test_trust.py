"""Where a key may go without a question: decided from who chose what, and from nothing else."""

from __future__ import annotations

import json
import os
import stat
from itertools import product

import pytest

from clash.errors import ConfigError
from clash.secrets.destinations import (
    Destination,
    Environ,
    config_folder,
    destination_named,
    is_confirmed,
    is_expected,
    is_tagged,
    read_confirmed,
    run_tag,
    server_of,
    write_confirmed,
)

SOURCES = ("owner", "file", "auto", "run")
GATEWAY = Destination("GATEWAY_KEY", "https://gateway.example")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("CLASH_CONFIG_DIR", str(tmp_path / "config"))
    return tmp_path / "config"


# -- deciding -------------------------------------------------------------------------------------

EXPECTED = {
    "https://gateway.example": {("owner", "owner"), ("owner", "file")},
    "http://gateway.example": set(),
    "http://127.0.0.9:8000": set(product(("owner", "file", "auto"), ("owner", "file"))),
    "http://localhost:11434": set(product(("owner", "file", "auto"), ("owner", "file"))),
    "https://[::1]": set(product(("owner", "file", "auto"), ("owner", "file"))),
    "http://127.0.0.1.evil.example": set(),
    "http://0.0.0.0": set(),
}
"""Who may choose the address and the variable of a key that was issued for no server we know."""


@pytest.mark.parametrize("server", EXPECTED)
def test_a_key_without_a_home_goes_only_where_its_owner_sends_it(server):
    where = Destination("COMPATIBLE_API_KEY", server)
    free = {
        (address, variable)
        for address, variable in product(SOURCES, SOURCES)
        if is_expected(where, address=address, variable=variable)
    }
    assert free == EXPECTED[server]


@pytest.mark.parametrize(("address", "variable"), [*product(SOURCES, SOURCES)])
def test_a_vendors_key_may_always_go_to_its_vendor_and_never_in_clear(address, variable):
    home = Destination("OPENAI_API_KEY", "https://api.openai.com")
    clear = Destination("OPENAI_API_KEY", "http://api.openai.com")
    assert is_expected(home, address=address, variable=variable)
    assert not is_expected(clear, address=address, variable=variable)


@pytest.mark.parametrize("variable", ["auto", "run"])
def test_another_key_does_not_go_to_a_vendor_because_a_strangers_file_says_so(variable):
    where = Destination("GITHUB_TOKEN", "https://api.openai.com")
    assert not is_expected(where, address="owner", variable=variable)


@pytest.mark.parametrize(
    ("url", "server"),
    [
        ("https://API.OpenAI.com:443/v1", "https://api.openai.com"),
        ("http://h:80/", "http://h"),
        ("http://h:8000/v1", "http://h:8000"),
        ("http://[::1]:8000/v1", "http://[::1]:8000"),
    ],
)
def test_a_server_has_one_spelling(url, server):
    assert server_of(url) == server


@pytest.mark.parametrize(
    "url",
    [
        "https://evil.example\\@api.openai.com",
        "https://api.open\tai.com",
        "https://api.openai.com\n.evil.example",
        "https://api.openаi.com",  # the second a is Cyrillic
        "https://api.openai.com /",
        "https://h:port",
        "https://h:99999",
        "ftp://h",
        "//h",
        "",
    ],
)
def test_an_address_that_two_programs_may_read_differently_is_none(url):
    with pytest.raises(ValueError):  # noqa: PT011 - of ours and of urllib
        server_of(url)


# -- what was confirmed -----------------------------------------------------------------------------


def test_a_plain_mapping_and_a_copy_confirm_nothing():
    environ = Environ({"GATEWAY_KEY": "k"}, destinations=[GATEWAY])
    assert is_confirmed(GATEWAY, environ)
    assert not is_confirmed(Destination("GITHUB_TOKEN", GATEWAY.server), environ)
    assert not is_confirmed(GATEWAY, dict(environ))
    assert not is_confirmed(GATEWAY, {**environ})


def test_a_trusted_host_is_https_unless_it_says_otherwise():
    environ = Environ({}, hosts=["gateway.example", "http://10.0.0.5:8000"])
    assert is_confirmed(GATEWAY, environ)
    assert is_confirmed(Destination("K", "http://10.0.0.5:8000"), environ)
    assert not is_confirmed(Destination("GATEWAY_KEY", "http://gateway.example"), environ)
    assert not is_confirmed(Destination("K", "https://other.gateway.example"), environ)
    with pytest.raises(ConfigError, match="no http"):
        Environ({}, hosts=["ftp://h"])


def test_what_is_confirmed_is_kept_privately_and_whole(folder):
    assert read_confirmed() == frozenset()
    file = write_confirmed([GATEWAY])
    assert read_confirmed() == {GATEWAY}
    if os.name == "posix":
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in folder.iterdir()] == ["trust.json"]
    file.write_text('{"confirmed": [{"variable": "A"}]}')
    with pytest.raises(ConfigError, match=r"trust\.json") as error:
        read_confirmed()
    assert "delete it" in str(error.value)


def test_a_folder_that_cannot_be_written_to_is_an_error_with_the_mend(folder):
    folder.write_text("a file where the folder should be")
    with pytest.raises(ConfigError, match="--trust-host"):
        write_confirmed([GATEWAY])
    assert run_tag("r", [GATEWAY]) is None
    assert not is_tagged("r", [GATEWAY], "")


def test_a_working_folder_cannot_be_the_users_configuration(monkeypatch):
    monkeypatch.delenv("CLASH_CONFIG_DIR")
    monkeypatch.setenv("XDG_CONFIG_HOME", "here")
    assert config_folder().is_absolute()


def test_a_key_in_place_of_its_variable_is_not_repeated():
    with pytest.raises(ConfigError) as error:
        destination_named("sk-abcdefgh-0123456789", "h")
    assert "abcdefgh" not in str(error.value)


# -- runs made here ---------------------------------------------------------------------------------


def test_a_tag_holds_for_one_run_its_destinations_and_this_user(folder):
    tag = run_tag("r1", [GATEWAY])
    assert tag is not None
    assert is_tagged("r1", [GATEWAY], tag)
    assert run_tag("r1", [GATEWAY]) == tag
    assert not is_tagged("r2", [GATEWAY], tag)
    assert not is_tagged("r1", [Destination("GITHUB_TOKEN", GATEWAY.server)], tag)
    assert not is_tagged("r1", [GATEWAY], "é" * 64)
    (folder / "origin.key").unlink()
    assert not is_tagged("r1", [GATEWAY], tag)
    assert json.dumps(tag) not in "".join(p.read_text("latin-1") for p in folder.iterdir())
