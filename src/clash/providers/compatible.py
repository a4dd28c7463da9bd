"""Servers that speak OpenAI's chat completions: Ollama, vLLM, llama.cpp, LM Studio, gateways."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clash.providers.dialects.chat import Chat
from clash.providers.http import HttpProvider
from clash.providers.payload import money

if TYPE_CHECKING:
    from clash.providers.base import Request
    from clash.providers.dialects.common import Answer
    from clash.providers.network import Exchange


class Compatible(HttpProvider):
    """``compatible/MODEL`` at its ``base_url``, with a key only where one is named."""

    def _dialect(self, request: Request) -> Chat:  # noqa: ARG002 - one dialect for all
        return _CHAT

    def _reported(self, exchange: Exchange, answer: Answer) -> float | None:
        # A LiteLLM gateway tells the cost in a header.
        if answer.cost_usd is not None:
            return answer.cost_usd
        return money(exchange.answer_headers.get("x-litellm-response-cost"))


_CHAT = Chat("compatible")
