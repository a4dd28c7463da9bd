"""Keeps keys out of everything that is stored, shown or raised."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

HIDDEN = "[key]"
_SHORTEST = 8
"""Shorter values (``none``, ``ollama``) are placeholders, and words of ordinary text."""
_LOOKS_LIKE_A_KEY = re.compile(
    r"\b(?:sk-|gsk_|xai-|hf_|AIza)[\w*-]{6,}"  # vendors' own forms, and their masked echoes
    r"|(?i:\bbearer\s+)[\w.~+/-]{8,}=*"
    r"|(?i:[?&](?:key|api_key|token)=)[^&\s\"']+"
)
_SECRET_HEADER = re.compile(r"auth|key|token|cookie|secret", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Redactor:
    """Knows the keys of one account.

    A model's answer may well speak of keys, so only the account's own key is taken out of answers;
    of messages about failures everything that looks like one.
    """

    keys: tuple[str, ...] = field(repr=False)

    @classmethod
    def of(cls, *keys: str) -> Redactor:
        """A redactor for ``keys``; what is too short to be one is left alone."""
        return cls(tuple(key for key in keys if len(key) >= _SHORTEST))

    def holds_key(self, data: bytes) -> bool:
        """Whether one of the keys is in ``data``."""
        return any(key.encode() in data for key in self.keys)

    def data(self, value: Any) -> Any:  # noqa: ANN401 - any JSON value
        """``value`` without the keys, wherever in it they stand."""
        return self._without(value) if self._may_hold_key(value) else value

    def _may_hold_key(self, value: Any) -> bool:  # noqa: ANN401 - any JSON value
        # Hardly any value does, and to look at its JSON takes a tenth of walking through it.
        try:
            text = msgspec.json.encode(value)
        except UnicodeEncodeError:
            return True
        return any(msgspec.json.encode(key)[1:-1] in text for key in self.keys)

    def _without(self, value: Any) -> Any:  # noqa: ANN401 - any JSON value
        if isinstance(value, str):
            return self._own(value)
        if isinstance(value, dict):
            return {self._own(str(key)): self._without(part) for key, part in value.items()}
        if isinstance(value, list):
            return [self._without(part) for part in value]
        return value

    def message(self, text: str) -> str:
        """``text`` without the keys, and without anything that looks like one."""
        return _LOOKS_LIKE_A_KEY.sub(HIDDEN, self._own(text))

    def headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        """``headers`` with the values of those that carry secrets hidden."""
        return {
            name: HIDDEN if _SECRET_HEADER.search(name) else self._own(value)
            for name, value in headers.items()
        }

    def _own(self, text: str) -> str:
        for key in self.keys:
            text = text.replace(key, HIDDEN)
        return text
