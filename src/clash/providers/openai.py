"""OpenAI through its SDK: chat completions, and the Responses API where a model demands it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import httpx2
import openai

from clash.providers.dialects.chat import Chat
from clash.providers.dialects.responses import Responses
from clash.providers.sdk import SdkProvider, custom_headers, read_streamed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openai._types import RequestOptions

    from clash.config import Limits, ModelRef
    from clash.providers.accounts import Account
    from clash.providers.base import Request
    from clash.providers.dialects.protocol import Dialect
    from clash.providers.ladder import WireRequest
    from clash.providers.network import Exchange
    from clash.providers.sdk import Kind

ERRORS: Mapping[str, Kind] = {
    "OpenAIError": "misuse",
    "SubjectTokenProviderError": "misuse",
    "APIError": "event",
    "APIResponseValidationError": "payload",
    "APIStatusError": "answer",
    "APIConnectionError": "line",
    "APITimeoutError": "line",
    "BadRequestError": "answer",
    "AuthenticationError": "answer",
    "OAuthError": "answer",
    "PermissionDeniedError": "answer",
    "NotFoundError": "answer",
    "ConflictError": "answer",
    "UnprocessableEntityError": "answer",
    "RateLimitError": "answer",
    "InternalServerError": "answer",
    # Of calls that clash does not make: parse(), webhooks, websockets, the module as a client.
    "_AmbiguousModuleClientUsageError": "misuse",
    "LengthFinishReasonError": "misuse",
    "ContentFilterFinishReasonError": "misuse",
    "InvalidWebhookSignatureError": "misuse",
    "WebSocketConnectionClosedError": "misuse",
    "WebSocketQueueFullError": "misuse",
}
"""What each of the SDK's exceptions is about."""


class OpenAI(SdkProvider):
    """``openai/MODEL``."""

    raises: tuple[type[Exception], ...] = (openai.OpenAIError,)
    meanings = ERRORS

    def __init__(
        self, ref: ModelRef, account: Account, limits: Limits, environ: Mapping[str, str]
    ) -> None:
        super().__init__(ref, account, limits)
        self._headers = default_headers(account, environ)
        self._sdk: openai.AsyncOpenAI | None = None

    def _dialect(self, request: Request) -> Dialect:
        api = request.options.api
        if api == "responses" or (api == "auto" and not self._ladder.takes("chat")):
            return _RESPONSES
        return _CHAT

    def _client(self) -> openai.AsyncOpenAI:
        if self._sdk is None:
            self._sdk = openai.AsyncOpenAI(
                api_key=self._account.key,
                base_url=self._account.base_url,
                max_retries=0,
                timeout=self._clients.get().timeout,
                default_headers=self._headers,
                http_client=self._clients.get(),
            )
        return self._sdk

    async def _ask(
        self, exchange: Exchange, wire_request: WireRequest, request: Request, dialect: Dialect
    ) -> None:
        # `post` sends the body as the dialect wrote it. The typed `create` of the same endpoint
        # walks each message through every variant of its type, which takes as long as the rest of
        # the call (docs/decisions/sdks.md).
        path = "/responses" if dialect is _RESPONSES else "/chat/completions"
        body = {"stream": request.stream, **wire_request.body}
        options: RequestOptions = {"headers": request.options.headers}
        post = self._client().post
        if not request.stream:
            answer = await post(path, cast_to=httpx2.Response, body=body, options=options)
            exchange.data = answer.content
            return
        async with await post(
            path,
            cast_to=object,
            body=body,
            options=options,
            stream=True,
            stream_cls=openai.AsyncStream[object],
        ) as stream:
            await read_streamed(stream.response, exchange, dialect)

    async def aclose(self) -> None:
        """Close the connections, where no other model uses them."""
        self._sdk = None
        await super().aclose()


def default_headers(account: Account, environ: Mapping[str, str]) -> dict[str, Any]:
    """Headers that the SDK adds to the key's, or is told to omit.

    The SDK puts the organisation, the project and custom headers of the process's environment
    into every client, whatever its address. They are meant for the vendor's own address, so they
    are omitted at any other.
    """
    vendor_environ = {} if account.has_own_url else dict(environ)
    headers: dict[str, Any] = {
        "OpenAI-Organization": vendor_environ.get("OPENAI_ORG_ID") or openai.omit,
        "OpenAI-Project": vendor_environ.get("OPENAI_PROJECT_ID") or openai.omit,
    }
    ambient = custom_headers(os.environ.get("OPENAI_CUSTOM_HEADERS", ""))
    headers |= dict.fromkeys(ambient, openai.omit)
    headers |= custom_headers(vendor_environ.get("OPENAI_CUSTOM_HEADERS", ""))
    for name in headers:
        if name.lower() == "authorization":
            headers[name] = f"Bearer {account.key}"
    return headers


_CHAT = Chat("openai")
_RESPONSES = Responses()
