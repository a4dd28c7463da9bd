"""Keep secrets out of everything that is stored, shown or raised.

A secret is a value: of a variable whose name marks it (in the environment or ``.env``), a password
in an address, the key of a model, a header value. The search covers the value and the forms in
which servers repeat what they receive:

- in any case, with anything but letters and digits between its characters: spaces, line breaks,
  zero-width characters, quotes and backslashes of JSON, ``%2F`` of addresses;
- reversed, in base64 (three alignments, either alphabet) and in hexadecimal;
- every part of at least eight characters, where the value looks random.

Once a text is folded to its lower-case letters and digits, all of these are substrings, so that one
automaton finds them in one pass and a text without secrets costs little. How common a value is in
ordinary text decides how far the search goes: see ``_weight``.
"""

from __future__ import annotations

import base64
import json
import re
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote, unquote, urlsplit

import ahocorasick_rs
import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

REPLACEMENT = "[key]"
SECRET_HEADER = re.compile(r"auth|key|token|cookie|secret|password", re.IGNORECASE)
"""Names of headers whose values are secrets."""
_SECRET_FIELD = re.compile(
    r"(?<!cache)(?<!cache[_-])key$|(?:^|[_-])token$|secret|passw|credential|cookie|^auth",
    re.IGNORECASE,
)
"""Names of request fields whose values are secrets; ``prompt_cache_key`` is not one."""

_VARIABLE = re.compile(
    r"KEY(?:_|S?\d*$)|TOKEN(?:_|\d*$)|SECRET|PASSW(?:OR)?D|PASSPHRASE|CREDENTIAL|COOKIE"
    r"|(?:^|_)(?:PASS|AUTH|PAT|PW)(?:_|\d*$)",
    re.IGNORECASE,
)
_PLACEHOLDER = re.compile(
    r"none|null|nil|true|false|yes|no|on|off|tests?|testing|dummy|fake|mock|placeholder|default"
    r"|empty|example|change[-_ ]?me|unused|anything|password|secret|token|key|api[-_ ]?key|ollama"
    r"|lm[-_ ]?studio|not[-_ ]?(?:needed|required|used|set)|(?:sk-)?no[-_ ]?key(?:[-_ ]required)?"
    r"|your[-_ ].*|<[^<>]*>|[x*.]+",
    re.IGNORECASE,
)
_PATH = re.compile(r"(?:~|\.{1,2})?/[\w.@+-]+(?:/[\w.@+-]+)*/?")
_WORD = re.compile(r"[a-z]+|[A-Z]+|[A-Z][a-z]+|[0-9]+")
_PUBLIC = re.compile(r"(?:(?:[A-Za-z]{2,10}|api\d+|v\d+)[-_])+|AIza(?:Sy)?")
"""Prefixes that all keys of a vendor share: not secret, and common in text about that vendor."""
_SHORTEST = 4
_LONG = 8
_WORDY = 16
_PART = 8
_HEX_PART = 16
"""Shortest hexadecimal part that counts. One of 75 million hashes holds a given part of eight digits
by chance, and a run holds millions of hashes."""
_MOST_IN_TABLE = 50_000
"""So many characters of secrets, in all their forms, are searched for by a table of states."""
_RANDOM = 0.25
"""Changes between letters, capitals and digits per character, from which on a value looks random.
Words have hardly any; random characters from an alphabet of 36 have 0.4, of 62 have 0.6."""

_LOOKS_LIKE_A_KEY = re.compile(
    r"\b(?:sk-|gsk_|xai-|hf_|ghp_|github_pat_|AIza)[\w*.…•-]{5,}[\w*…•-]"  # masked echoes too
    r"|(?i:\bbearer\s+)[\w.~+/-]{8,}=*"
    r"|(?i:[?&](?:key|api_key|apikey|token|access_token|password)=)[^&\s\"']+"
)
_USERINFO = re.compile(r"(?<=://)[^\s/@\"'<>]{1,500}@")

_LETTERS = "0123456789abcdefghijklmnopqrstuvwxyz"
_LOWER = bytes(range(256)).lower()
_NOISE = bytes(byte for byte in range(256) if chr(_LOWER[byte]) not in _LETTERS)
_ESCAPE = re.compile(r"\\u[0-9a-fA-F]{4}|\\[nrt]|%[0-9a-fA-F]{2}")
# Two patterns, each with a beginning to leap to: one for both is fifty times slower.
_UNICODE_ESCAPE = re.compile(rb"\\u[0-9a-fA-F]{4}")
_PERCENT_ESCAPE = re.compile(rb"%[0-9a-fA-F]{2}")
_ENDS = re.compile(r"^[^0-9A-Za-z]*|[^0-9A-Za-z]*$")
_BETWEEN = "[\\s\u200b-\u200f\u2060-\u2064\ufeff\u00ad]*"

Weight = Literal["long", "short", "word"]


def environment_secrets(environ: Mapping[str, str]) -> dict[str, str]:
    """Secrets by value, each with the name of its variable.

    Args:
        environ: the environment, ``.env`` included.
    """
    secrets: dict[str, str] = {}
    for name, text in environ.items():
        value = text.strip()
        if _VARIABLE.search(name) and (_looks_random(value) or not _PATH.fullmatch(value)):
            secrets.setdefault(value, name)
        if "://" in value and "@" in value:
            proxy = name.lower().endswith("_proxy")
            secrets |= {
                part: name for part in _in_address(value, user=proxy) if part not in secrets
            }
    return secrets


def secret_fields(value: object) -> Iterator[tuple[str, str]]:
    """Name and text of each field of ``value``, at any depth, whose name marks a secret."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if not isinstance(inner, str):
                yield from secret_fields(inner)
            elif _SECRET_FIELD.search(str(name)) and _weight(inner) is not None:
                yield str(name), inner
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from secret_fields(inner)


def _in_address(url: str, *, user: bool) -> Iterator[str]:
    """The password in an address, the user where ``user`` is set, and both as they are sent."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return
    name, password = unquote(parts.username or ""), unquote(parts.password or "")
    if password:
        yield password
        yield f"{name}:{password}"
    if user and name:
        yield name


@dataclass(frozen=True, slots=True)
class Redactor:
    """Removes known secrets from data, messages and headers.

    Text that a model writes or reads may mention keys, so only known secrets are removed from it.
    Messages about failures lose everything that looks like a key.

    Attributes:
        secrets: each value with its origin (a variable, a header).
    """

    secrets: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, *values: str) -> Redactor:
        """A redactor for ``values``."""
        return cls().with_secrets(dict.fromkeys(values, "a key"))

    @classmethod
    def of_environ(cls, environ: Mapping[str, str]) -> Redactor:
        """A redactor for the secrets of an environment."""
        return cls().with_secrets(environment_secrets(environ))

    def with_secrets(self, secrets: Mapping[str, str]) -> Redactor:
        """A redactor that knows these secrets too; ``secrets`` maps each value to its origin."""
        all_secrets = {**secrets, **dict(self.secrets)}
        return Redactor(tuple(sorted((v, n) for v, n in all_secrets.items() if _weight(v))))

    @property
    def _index(self) -> _Index:
        return _index(self.secrets)

    def suspects(self, data: bytes) -> bool:
        """Whether ``data`` (UTF-8) may hold a secret; false is certain, true is not."""
        return bool(self.secrets) and self._index.may_be_in(data)

    def origins(self, value: Any) -> list[str]:  # noqa: ANN401 - any JSON value
        """The origins of the secrets that occur in ``value``."""
        texts = _texts(value)
        return sorted({name for text in texts for _, _, name in self._index.spans(text)})

    def data(self, value: Any) -> Any:  # noqa: ANN401 - any JSON value
        """``value`` without the secrets, at any depth."""
        if not self.secrets:
            return value
        # Hardly any value holds a secret, and searching its bytes takes a tenth of walking through
        # it. MessagePack, since in JSON every line feed is an escape, which has to be unfolded.
        try:
            encoding = msgspec.msgpack.encode(value)
        except (UnicodeEncodeError, TypeError, OverflowError):
            return self._without(value)
        return self._without(value) if self._index.may_be_in(encoding) else value

    def _without(self, value: Any) -> Any:  # noqa: ANN401 - any JSON value
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, dict):
            return {self._without(str(key)): self._without(part) for key, part in value.items()}
        if isinstance(value, list | tuple):
            return [self._without(part) for part in value]
        return value

    def _text(self, text: str) -> str:
        if not self._index.may_be_in(text.encode("utf-8", "replace")):
            return text
        return _cut(text, self._index.spans(text))

    def message(self, text: str) -> str:
        """``text`` without the secrets, and without anything that looks like a key."""
        if self.secrets:
            text = self._index.in_messages.sub(REPLACEMENT, self._text(text))
        return _LOOKS_LIKE_A_KEY.sub(REPLACEMENT, _USERINFO.sub(f"{REPLACEMENT}@", text))

    def evidence(self, value: Any) -> Any:  # noqa: ANN401 - any JSON value
        """An error body, with every text in it treated as a message."""
        if isinstance(value, str):
            return self.message(value)
        if isinstance(value, dict):
            return {self.message(str(key)): self.evidence(part) for key, part in value.items()}
        if isinstance(value, list):
            return [self.evidence(part) for part in value]
        return value

    def headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        """``headers`` with the values of secret headers hidden."""
        return {
            name: REPLACEMENT if SECRET_HEADER.search(name) else self.message(value)
            for name, value in headers.items()
        }


def _cut(text: str, spans: Iterable[tuple[int, int, str]]) -> str:
    """``text`` with each span replaced; overlapping spans become one replacement."""
    pieces, end = [], 0
    for start, stop, _ in sorted(spans):
        if start >= end:
            pieces += [text[end:start], REPLACEMENT]
        end = max(end, stop)
    return "".join([*pieces, text[end:]])


def _texts(value: Any) -> Iterator[str]:  # noqa: ANN401 - any JSON value
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, part in value.items():
            yield str(key)
            yield from _texts(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _texts(part)


# -- how far a value is searched for --------------------------------------------------------------


def _weight(value: str) -> Weight | None:
    """How far a secret is searched for.

    Returns:
        ``long``: everywhere and in every form. ``short`` (fewer than eight letters and digits, or
        fewer than sixteen that are all hexadecimal): everywhere, but only as a separate word and in
        its own case, because chance matches would be frequent. ``word`` (one plain word or number):
        only in messages; a password "banana" would otherwise remove the fruit from every answer.
        Null: never; these are placeholders for servers without keys (``none``, ``ollama``) and
        values of fewer than four characters.
    """
    if len(value) < _SHORTEST or _PLACEHOLDER.fullmatch(value):
        return None
    if len(value) < _WORDY and _WORD.fullmatch(value):
        return "word"
    letters = _fold_text(value)
    if len(letters) < _LONG or (len(letters) < _HEX_PART and _is_hexadecimal(letters)):
        return "short"
    return "long"


def _is_hexadecimal(letters: str) -> bool:
    return not letters.strip("0123456789abcdef")


def _looks_random(value: str) -> bool:
    kinds = ["0" if c.isdigit() else "A" if c.isupper() else "a" for c in value if c.isalnum()]
    changes = sum(left != right for left, right in pairwise(kinds))
    return len(kinds) >= _WORDY and changes >= _RANDOM * len(kinds)


# -- folding --------------------------------------------------------------------------------------


def _fold(data: bytes) -> bytes:
    """The letters and digits of ``data`` in lower case; escapes such as ``%2F`` do not count."""
    if b"\\" in data:
        # By spaces: joining both sides of an escape could form another escape. By two of them:
        # bytes of the same length are replaced in place, in less than half the time.
        data = data.replace(b"\\n", b"  ").replace(b"\\r", b"  ").replace(b"\\t", b"  ")
    data = _PERCENT_ESCAPE.sub(b" ", _UNICODE_ESCAPE.sub(b" ", data))
    return data.translate(_LOWER, _NOISE)


def _fold_text(text: str) -> str:
    return _fold(text.encode("utf-8", "replace")).decode()


def _fold_with_positions(text: str) -> tuple[str, list[int]]:
    """As :func:`_fold_text`, with the position of each of its characters in ``text``."""
    plain_text = _ESCAPE.sub(lambda match: " " * len(match[0]), text)
    positions = [i for i, c in enumerate(plain_text) if c.isascii() and c.isalnum()]
    return "".join([plain_text[i] for i in positions]).lower(), positions


# -- searching ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Form:
    """One way of writing a long secret, folded.

    Attributes:
        name: the origin of the secret.
        parts: whether a part of it counts as a match; the first ``public`` characters do not count.
        head: the characters before the first letter or digit; ``tail`` those after the last.
    """

    text: str
    name: str
    parts: bool
    public: int = 0
    head: str = ""
    tail: str = ""

    def seeds(self) -> Iterator[tuple[str, int]]:
        """Pieces such that every match contains one, each with its offset in the form."""
        if not self.parts:
            yield self.text, 0
            return
        last = len(self.text) - _PART
        for start in {*range(self.public, last + 1, _PART), last}:
            yield self.text[start : start + _PART], start

    def span(self, letters: str, at: int, offset: int) -> tuple[int, int] | None:
        """The longest match around a seed at position ``at``; null where it is too short."""
        start, end = at, at + (_PART if self.parts else len(self.text))
        before, after = offset, offset + end - at
        while start and before and letters[start - 1] == self.text[before - 1]:
            start, before = start - 1, before - 1
        while end < len(letters) and after < len(self.text) and letters[end] == self.text[after]:
            end, after = end + 1, after + 1
        shortest = _HEX_PART if _is_hexadecimal(letters[start:end]) else _PART
        enough = after - max(before, self.public) >= shortest
        return (start, end) if enough or end - start == len(self.text) else None


def _forms(value: str, name: str) -> Iterator[_Form]:
    """Every way of writing a long secret, each with a different folded text."""
    parts = _looks_random(value)
    prefix = _PUBLIC.match(value)
    public = len(_fold_text(prefix[0])) if prefix else 0
    letters = _fold_text(value)
    parts = parts and len(letters) - public >= _WORDY
    head, tail = _ENDS.findall(value)[0], _ENDS.findall(value)[-1]
    yield _Form(letters, name, parts, public if parts else 0, head, tail)
    for spelling in {_fold_text(quote(value, safe="")), _fold_text(json.dumps(value)[1:-1])} - {
        letters
    }:
        yield _Form(spelling, name, parts=False)
    yield _Form(letters[::-1], name, parts)
    raw = value.encode("utf-8", "replace")
    yield _Form(raw.hex(), name, parts and 2 * len(raw) >= 2 * _HEX_PART)
    for shift in range(3):
        code = base64.b64encode(b"\0" * shift + raw).rstrip(b"=")
        # The first and last characters of the base64 text depend on the bytes around the secret.
        first = (8 * shift + 5) // 6
        last = 8 * (shift + len(raw)) // 6
        text = _fold_text(code[first:last].decode())
        if len(text) >= _PART:
            yield _Form(text, name, parts and len(text) >= _WORDY)


def _spellings(value: str) -> set[str]:
    """The forms of a short secret, not folded."""
    raw = value.encode("utf-8", "replace")
    plain = {value, value[::-1], quote(value, safe=""), json.dumps(value)[1:-1], raw.hex()}
    plain |= {base64.b64encode(raw).decode(), base64.urlsafe_b64encode(raw).decode()}
    return plain | {text.rstrip("=") for text in plain if text.endswith("=")}


def _hints(value: str) -> set[str]:
    """Texts of which one must occur before a short secret is searched for."""
    return _spellings(value) if _weight(value) == "short" else set()


def _as_a_word(value: str) -> str:
    """A pattern that matches a short secret as a separate word."""
    plain = _spellings(value)
    apart = _BETWEEN.join(map(re.escape, value))
    words = [*map(re.escape, sorted(plain, key=len, reverse=True)), apart]
    return rf"(?<![0-9A-Za-z])(?:{'|'.join(words)})(?![0-9A-Za-z])"


class _Index:
    """The automaton and the patterns of a set of secrets, built once for each set."""

    def __init__(self, secrets: tuple[tuple[str, str], ...]) -> None:
        self._secrets = secrets
        self._owners: dict[str, list[tuple[_Form, int]]] = {}
        long = [pair for pair in secrets if _weight(pair[0]) == "long"]
        for form in (form for value, name in long for form in _forms(value, name)):
            for seed, offset in form.seeds():
                self._owners.setdefault(seed, []).append((form, offset))
        self._short = [
            (re.compile(_as_a_word(value)), name)
            for value, name in secrets
            if _weight(value) == "short"
        ]
        hints = {_fold_text(form) for value, _ in secrets for form in _hints(value)}
        self._always = "" in hints
        self._seeds = [*self._owners, *(hints - {"", *self._owners})]
        # Half the time of the default, for 200 bytes a character.
        is_small = sum(map(len, self._seeds)) <= _MOST_IN_TABLE
        self._automaton = ahocorasick_rs.BytesAhoCorasick(
            [seed.encode() for seed in self._seeds],
            implementation=ahocorasick_rs.Implementation.DFA if is_small else None,
        )

    def may_be_in(self, data: bytes) -> bool:
        """Whether ``data`` needs a full search."""
        return self._always or bool(self._automaton.find_matches_as_indexes(_fold(data)))

    def spans(self, text: str) -> Iterator[tuple[int, int, str]]:
        """The secrets in ``text``: start, end and origin of each."""
        for pattern, name in self._short:
            yield from ((*match.span(), name) for match in pattern.finditer(text))
        letters, positions = _fold_with_positions(text)
        matches = self._automaton.find_matches_as_indexes(letters.encode(), overlapping=True)
        for seed, at, _ in matches:
            for form, offset in self._owners.get(self._seeds[seed], ()):
                if (span := form.span(letters, at, offset)) is not None:
                    start, end = positions[span[0]], positions[span[1] - 1] + 1
                    if text.endswith(form.head, 0, start):
                        start -= len(form.head)
                    if text.startswith(form.tail, end):
                        end += len(form.tail)
                    yield start, end, form.name

    @cached_property
    def in_messages(self) -> re.Pattern[str]:
        """Plain words, and masked echoes of any secret (``0wn-…alue``)."""
        words = [_as_a_word(value) for value, _ in self._secrets if _weight(value) == "word"]
        masked_echoes = [
            rf"(?<!\w){re.escape(value[:2])}[\w-]{{0,8}}(?:[*…•]{{2,}}|\.{{3,}}|…)[\w*…•-]{{0,8}}"
            for value, _ in self._secrets
            if _weight(value) == "long"
        ]
        return re.compile("|".join([*words, *masked_echoes]) or r"(?!)")


@lru_cache(maxsize=64)
def _index(secrets: tuple[tuple[str, str], ...]) -> _Index:
    return _Index(secrets)


NO_SECRETS = Redactor()
"""Knows no secrets; messages still lose everything that looks like a key."""
