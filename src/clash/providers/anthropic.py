"""Anthropic through its SDK."""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING, Any

import anthropic

from clash.providers.dialects.messages import LAST_WITH_SAMPLING, Messages
from clash.providers.sdk import SdkProvider, custom_headers, read_streamed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clash.config import Limits, ModelRef
    from clash.providers.accounts import Account
    from clash.providers.base import Request
    from clash.providers.dialects.protocol import Dialect
    from clash.providers.ladder import WireRequest
    from clash.providers.network import Exchange
    from clash.providers.sdk import Kind

ERRORS: Mapping[str, Kind] = {
    "AnthropicError": "misuse",
    "APIError": "event",
    "APIResponseValidationError": "payload",
    "APIWebhookValidationError": "misuse",
    "APIStatusError": "answer",
    "APIConnectionError": "line",
    "APITimeoutError": "line",
    "RetryableError": "misuse",
    "CredentialsError": "misuse",
    "IdentityTokenFileError": "misuse",
    "BadRequestError": "answer",
    "AuthenticationError": "answer",
    "PaymentRequiredError": "answer",
    "PermissionDeniedError": "answer",
    "NotFoundError": "answer",
    "RequestTimeoutError": "answer",
    "ConflictError": "answer",
    "PreconditionFailedError": "answer",
    "ContentTooLargeError": "answer",
    "UnprocessableEntityError": "answer",
    "RateLimitError": "answer",
    "RequestHeaderFieldsTooLargeError": "answer",
    "ClientClosedRequestError": "answer",
    "InternalServerError": "answer",
    "HTTPNotImplementedError": "answer",
    "ServiceUnavailableError": "answer",
    "GatewayTimeoutError": "answer",
    "OverloadedError": "answer",
}
"""What each of the SDK's exceptions is about; those for single error codes mean what their bases
do, and the code itself is read from the body."""

_SAMPLING = ("temperature", "top_p")
_MANDATORY = ("model", "max_tokens", "messages")
_PARAMETERS = (*_MANDATORY, "system", "thinking", "output_config", "tools", "tool_choice", "stream")
"""What the dialect writes and ``messages.create`` has a parameter for."""


class Anthropic(SdkProvider):
    """``anthropic/MODEL``."""

    raises: tuple[type[Exception], ...] = (anthropic.AnthropicError,)
    meanings = ERRORS

    def __init__(
        self, ref: ModelRef, account: Account, limits: Limits, environ: Mapping[str, str]
    ) -> None:
        super().__init__(ref, account, limits)
        self._headers = default_headers(account, environ)
        self._sdk: anthropic.AsyncAnthropic | None = None

    def _dialect(self, request: Request) -> Messages:  # noqa: ARG002 - one dialect for all
        return _MESSAGES

    def _client(self) -> anthropic.AsyncAnthropic:
        if self._sdk is None:
            # `clash doctor` names the models that retire; once for each call is too often.
            warnings.filterwarnings("ignore", message=r"The model '.*' is deprecated")
            warnings.filterwarnings("ignore", message=r"Using Claude with .*thinking")
            self._sdk = anthropic.AsyncAnthropic(
                api_key=self._account.key,
                base_url=self._account.base_url,
                max_retries=0,
                timeout=self._clients.get().timeout,
                default_headers=self._headers,
                http_client=self._clients.get(),
                open_telemetry=False,
            )
        return self._sdk

    async def _ask(
        self, exchange: Exchange, wire_request: WireRequest, request: Request, dialect: Dialect
    ) -> None:
        messages = self._client().messages
        arguments = _arguments(wire_request, request)
        if not request.stream:
            answer = await messages.with_raw_response.create(**arguments)
            exchange.data = await answer.read()
            return
        async with messages.with_streaming_response.create(**arguments) as stream:
            await read_streamed(stream.http_response, exchange, dialect)

    async def aclose(self) -> None:
        """Close the connections, where no other model uses them."""
        self._sdk = None
        await super().aclose()


def headers_of(wire_request: WireRequest, request: Request) -> dict[str, str] | None:
    """The request's own headers.

    The SDK has no temperature any more. Models that still take one need the API version that
    had it; the others answer with a 400, and it is left out.
    """
    headers = dict(request.options.headers)
    if any(name in wire_request.body for name in _SAMPLING):
        headers.setdefault("anthropic-version", LAST_WITH_SAMPLING)
    return headers or None


def _arguments(wire_request: WireRequest, request: Request) -> dict[str, Any]:
    """The arguments of ``messages.create``.

    The SDK checks some of its parameters, so the user's own fields are no parameters but
    ``extra_body``, and so are temperature and top_p, which it no longer has.
    """
    user_fields = request.options.extra
    parameters = {
        name: wire_request.body[name]
        for name in _PARAMETERS
        if name in wire_request.body and (name in _MANDATORY or name not in user_fields)
    }
    return {
        "stream": False,
        **parameters,
        "extra_body": {
            key: value for key, value in wire_request.body.items() if key not in parameters
        },
        "extra_headers": headers_of(wire_request, request),
    }


def default_headers(account: Account, environ: Mapping[str, str]) -> dict[str, Any]:
    """Headers that the SDK adds to the key's, or is told to omit.

    Custom headers of the environment go to the vendor's own address only. Older gateways read the
    key from ``x-api-key``, so at another address it is sent in both headers.
    """
    ambient = custom_headers(os.environ.get("ANTHROPIC_CUSTOM_HEADERS", ""))
    headers: dict[str, Any] = dict.fromkeys(ambient, anthropic.omit)
    if account.has_own_url:
        headers["x-api-key"] = account.key
    else:
        headers |= custom_headers(environ.get("ANTHROPIC_CUSTOM_HEADERS", ""))
    for name in headers:
        if name.lower() == "authorization":
            headers[name] = f"Bearer {account.key}"
    return headers


_MESSAGES = Messages()
