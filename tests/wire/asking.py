"""Asks a model of the loopback server through the provider that clash would use."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from clash.config import Limits, ModelRef, Options
from clash.errors import ProviderError
from clash.providers import open_provider
from clash.providers.base import Reply, Request
from clash.records import Turn

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from wire.server import WireServer

SCHEMA = {
    "type": "object",
    "properties": {
        "ranking": {
            "type": "array",
            "items": {"type": "array", "items": {"type": "string", "enum": ["A0", "A1"]}},
        }
    },
    "required": ["ranking"],
    "additionalProperties": False,
}
PROVIDERS = ("openai", "responses", "anthropic", "google", "openrouter", "compatible")
"""``responses`` is openai through the Responses API."""


def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(coroutine)


@dataclass
class Asker:
    """One model, opened afresh in an event loop of its own for each test."""

    server: WireServer
    provider: str
    model: str
    limits: Limits = field(default_factory=lambda: Limits(timeout_s=5, connect_timeout_s=2))
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def vendor(self) -> str:
        return "openai" if self.provider == "responses" else self.provider

    @property
    def api(self) -> dict[str, Any]:
        return {"api": "responses"} if self.provider == "responses" else {}

    def ref(self, **more: Any) -> ModelRef:
        return ModelRef(model=f"{self.vendor}/{self.model}", **more)

    def request(self, **changes: Any) -> Request:
        options = Options(**{**self.api, **self.options, **changes.pop("options", {})})
        plain = {
            "turns": (Turn(role="user", content="Say something."),),
            "max_tokens": 300,
            "system": "You are a judge.",
        }
        return Request(**{**plain, "options": options, **changes})

    def ask(self, times: int = 1, **changes: Any) -> list[Reply | ProviderError]:
        """Ask ``times`` times, one after the other; failures come back as they are."""

        async def main() -> list[Reply | ProviderError]:
            provider = open_provider(self.ref(), environ=self.server.environ(), limits=self.limits)
            outcomes: list[Reply | ProviderError] = []
            try:
                for _ in range(times):
                    try:
                        outcomes.append(await provider.complete(self.request(**changes)))
                    except ProviderError as error:
                        outcomes.append(error)
            finally:
                await provider.aclose()
            return outcomes

        return run(main())

    def reply(self, **changes: Any) -> Reply:
        (answer,) = self.ask(**changes)
        if isinstance(answer, ProviderError):
            raise answer
        return answer

    def failure(self, **changes: Any) -> ProviderError:
        (answer,) = self.ask(**changes)
        assert isinstance(answer, ProviderError), answer
        return answer

    def misbehave(self, fault: Any, **when: Any) -> None:
        self.server.misbehave(fault, model=self.model, **when)

    @property
    def seen(self) -> list[Any]:
        return [call for call in self.server.calls if call.model == self.model]
