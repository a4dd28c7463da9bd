"""Models of every vendor over OpenRouter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clash.providers.dialects.chat import Chat
from clash.providers.http import HttpProvider

if TYPE_CHECKING:
    from clash.providers.base import Request


class OpenRouter(HttpProvider):
    """``openrouter/VENDOR/MODEL``. Costs are those that OpenRouter itself reports."""

    def _dialect(self, request: Request) -> Chat:  # noqa: ARG002 - one dialect for all
        return _CHAT


_CHAT = Chat("openrouter")
