"""A secret is found in whatever form it is repeated, and nothing else is taken for one."""

from __future__ import annotations

import base64
import json
import random
import re
import string
import time
from urllib.parse import quote

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from clash.secrets.redaction import REPLACEMENT, Redactor, environment_secrets, secret_fields

KEY = "sk-proj-Ab3xY7qLm9ZtR2vW5nK8pQ1sD4fG6hJ0"
PASSWORD = "Tr0ub4dor&3/x"
SHORT = "hu7ter"
ALPHABET = string.ascii_letters + string.digits
CORES = st.builds(
    lambda seed, size: "".join(random.Random(seed).choices(ALPHABET, k=size)),
    st.integers(0, 10**9),
    st.integers(32, 60),
)
PREFIXES = st.sampled_from(["", "sk-", "sk-proj-", "sk-ant-api03-", "AIzaSy", "gsk_"])
PASSWORDS = st.text(ALPHABET + "!$%&/()=?+*-_.:;\"'\\ ", min_size=8, max_size=20).filter(
    lambda text: (
        len(set(text)) > 5
        and text.strip() == text
        and sum(c.isalnum() for c in text) >= 8
        and re.search(r"[g-zG-Z]", text)
        and not re.fullmatch(r"[A-Z]?[a-z]+|[A-Z]+", text)
        and not re.search(r"%[0-9a-fA-F]{2}", text)  # an escape counts as no letter
    )
)
AROUND = st.text(max_size=30)


def apart(text: str, separator: str) -> str:
    return separator.join(text)


WHOLE = {
    "plain": str,
    "upper": str.upper,
    "reversed": lambda text: text[::-1],
    "hex": lambda text: text.encode().hex(),
    "hex_upper": lambda text: text.encode().hex().upper(),
    "json": lambda text: json.dumps(text)[1:-1],
    "json_twice": lambda text: json.dumps(json.dumps(text))[1:-1],
    "url": lambda text: quote(text, safe=""),
    "spaces": lambda text: apart(text, " "),
    "lines": lambda text: apart(text, "\r\n"),
    "zero_width": lambda text: apart(text, "\u200b"),
    "dashes": lambda text: apart(text, "-"),
    "escaped_lines": lambda text: apart(text, "\\n"),
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64_bare": lambda text: base64.b64encode(text.encode()).decode().rstrip("="),
    "base64_url": lambda text: base64.urlsafe_b64encode(text.encode()).decode(),
    "basic": lambda text: base64.b64encode(f"u:{text}".encode()).decode(),
    "bearer": lambda text: base64.b64encode(f"Bearer {text}".encode()).decode(),
}
PARTS = {
    "first_half": lambda text: text[: len(text) // 2],
    "last_half": lambda text: text[len(text) // 2 :],
    "last_ten": lambda text: text[-10:],
    "middle": lambda text: text[-24:-8],
    "half_reversed": lambda text: text[len(text) // 2 :][::-1],
}


def without(redactor: Redactor, text: str, echo: str) -> str:
    """``text`` after redaction, whichever way it is given."""
    clean_data = redactor.data({"a": ["b", {echo: text}]})
    ((key, output),) = clean_data["a"][1].items()
    assert REPLACEMENT in key
    assert redactor.message(text).count(REPLACEMENT) >= 1
    assert redactor.suspects(json.dumps(text, ensure_ascii=False).encode("utf-8", "replace"))
    assert redactor.suspects(text.encode("utf-8", "replace"))
    return output


def letters(text: str) -> str:
    return re.sub(r"[^0-9a-z]", "", text.lower())


@settings(max_examples=60)
@given(
    prefix=PREFIXES,
    core=CORES,
    before=AROUND,
    after=AROUND,
    form=st.sampled_from([*WHOLE, *PARTS]),
)
def test_a_key_is_hidden_in_every_form_and_part(prefix, core, before, after, form):
    echo = (WHOLE[form](prefix + core)) if form in WHOLE else PARTS[form](core)
    fields = without(Redactor.of(prefix + core), f"{before} {echo} {after}", echo)
    assert echo not in fields
    windows = {core[i : i + 8].lower() for i in range(len(core) - 7)}
    assert not [w for w in windows if w in letters(fields) or w[::-1] in letters(fields)]


@settings(max_examples=60)
@given(secret=PASSWORDS, before=AROUND, after=AROUND, form=st.sampled_from(list(WHOLE)))
@example(secret=PASSWORD, before="", after="", form="url")
def test_a_password_is_hidden_in_every_form(secret, before, after, form):
    echo = WHOLE[form](secret)
    fields = without(Redactor.of(secret), f"{before} {echo} {after}", echo)
    assert echo not in fields
    assert secret not in fields


SHORT_FORMS = ("plain", "reversed", "hex", "url", "spaces", "zero_width", "base64", "base64_url")


@pytest.mark.parametrize("form", SHORT_FORMS)
def test_a_short_secret_is_hidden_as_a_word_of_its_own(form):
    echo = WHOLE[form](SHORT)
    redactor = Redactor.of(SHORT)
    assert redactor.data(f"it is '{echo}', is it not?") == f"it is '{REPLACEMENT}', is it not?"
    assert redactor.data(f"shu7ters {SHORT}ing") == f"shu7ters {SHORT}ing"


def test_a_secret_that_is_a_plain_word_is_hidden_in_messages_only():
    redactor = Redactor.of("banana", "471100")
    assert redactor.data("a banana costs 471100") == "a banana costs 471100"
    assert redactor.message("banana is no key, 471100") == f"{REPLACEMENT} is no key, {REPLACEMENT}"
    assert redactor.message("bananas") == "bananas"


@pytest.mark.parametrize(
    "value",
    ["none", "ollama", "1", "true", "EMPTY", "sk-no-key-required", "<your key>", "xxxx", "abc"],
)
def test_what_stands_in_for_a_key_is_none(value):
    redactor = Redactor.of(value)
    assert redactor.secrets == ()
    assert redactor.data(f"there is {value} of it") == f"there is {value} of it"


def test_ordinary_text_about_a_key_is_left_alone():
    redactor = Redactor.of(KEY, PASSWORD, SHORT, "Summer-Garden-2024!")
    text = (
        "Use sk-proj-your-key-here. A0 > A1, scores 4/5; troubadour and 3 x; shutter;"
        " in the summer of 2024 the garden grew. 2026-11-22T10:00:00Z"
    )
    assert redactor.data(text) == text


def test_hashes_are_left_alone():
    """A run is full of them, and a hexadecimal secret shares eight digits with some by chance."""
    secret = "3f9a0c1d2e4b5a69788796a5b4c3d2e1"
    redactor = Redactor.of(secret, "deadbeef01")
    digest = "0" * 20 + secret[:12] + "f" * 20 + "deadbeef01" + "00"
    assert redactor.data(digest) == digest
    assert redactor.data(f"x{secret[:20]}y") == f"x{REPLACEMENT}y"


@pytest.mark.parametrize(
    "echo", ["sk-...6hJ0", "sk-proj-****6hJ0", "sk-…6hJ0", "Tr**********x", "Tr0…3x"]
)
def test_masked_echoes_are_hidden_in_messages(echo):
    assert Redactor.of(KEY, "Tr0ub4dor-3x").message(f"the key {echo} is wrong") == (
        f"the key {REPLACEMENT} is wrong"
    )


def test_addresses_in_messages_lose_user_and_password():
    text = "407, url=http://bob:s%40crt@proxy:3128/ and https://a@b/c"
    redacted_text = f"407, url=http://{REPLACEMENT}@proxy:3128/ and https://{REPLACEMENT}@b/c"
    assert Redactor().message(text) == redacted_text


def test_an_environment_tells_its_secrets_by_name_and_by_address():
    secret_values = environment_secrets(
        {
            "OPENAI_API_KEY": "a", "HF_TOKEN": "b", "DB_PASSWORD": "c", "MY_SECRETS": "d",
            "AWS_SECRET_ACCESS_KEY": "e", "GITHUB_PAT": "f", "GOOGLE_APPLICATION_CREDENTIALS": "g",
            "https_proxy": "http://bob:p%40ss@proxy:1", "DATABASE_URL": "postgres://ann:pw@db/x",
            "PWD": "/tmp", "PATH": "/bin", "MAX_TOKENS": "4096", "KEYBOARD": "us", "AUTHOR": "me",
            "SSH_AUTH_SOCK": "/tmp/agent.sock", "KEY_FILE": "/etc/keys/my.pem",
        }
    )  # fmt: skip
    assert set(secret_values) == {
        *"abcdefg", "bob", "p@ss", "bob:p@ss", "pw", "ann:pw",
    }  # fmt: skip
    assert secret_values["p@ss"] == "https_proxy"


def test_fields_of_a_request_tell_their_secrets_by_name_at_any_depth():
    extra = {
        "api_key": "s3cretone", "list": [{"auth": {"access_token": "s3crettwo"}}],
        "max_tokens": 100, "prompt_cache_key": "shared-prefix", "eos_token": "</s>", "user": "bob",
    }  # fmt: skip
    assert dict(secret_fields(extra)) == {"api_key": "s3cretone", "access_token": "s3crettwo"}


def test_nothing_of_a_secret_is_shown_by_what_knows_it():
    assert KEY not in repr(Redactor.of(KEY))


@pytest.mark.parametrize(
    "unit", [KEY[8:16], KEY[8:-1] + " ", "%2", "\\u00", "h\u200b", "hu7te", "s"]
)
def test_hostile_text_takes_linear_time(unit):
    redactor = Redactor.of(KEY, PASSWORD, SHORT, "hhhh1hhhh")

    def seconds(size: int) -> float:
        text = unit * (size // len(unit))
        began = time.process_time()
        redactor.message(text)
        return time.process_time() - began

    seconds(1_000)
    small, large = seconds(30_000), seconds(300_000)
    assert large < 30 * max(small, 0.005)
