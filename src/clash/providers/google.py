"""Google's Gemini through its SDK."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, cast

from google import genai
from google.genai import errors, types

from clash.providers.dialects.gemini import Gemini
from clash.providers.network import CutOff
from clash.providers.sdk import SdkProvider

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
    "APIError": "answer",
    "ClientError": "answer",
    "ServerError": "answer",
    "UnknownApiResponseError": "payload",
    # Of calls that clash does not make: functions as tools, automatic continuation.
    "ContinuationInterruptedError": "misuse",
    "UnknownFunctionCallArgumentError": "misuse",
    "UnsupportedFunctionError": "misuse",
    "FunctionInvocationError": "misuse",
}
"""What each of the SDK's exceptions is about."""


class Google(SdkProvider):
    """``google/MODEL``."""

    raises: tuple[type[Exception], ...] = (errors.APIError, errors.UnknownApiResponseError)
    meanings = ERRORS

    def __init__(self, ref: ModelRef, account: Account, limits: Limits) -> None:
        super().__init__(ref, account, limits)
        self._sdk: genai.Client | None = None

    def _dialect(self, request: Request) -> Gemini:  # noqa: ARG002 - one dialect for all
        return _GEMINI

    def _client(self) -> genai.Client:
        if self._sdk is None:
            # An unknown finish reason becomes a new member of an enumeration, with a warning.
            warnings.filterwarnings(
                "ignore", message=r".* is not a valid ", module=r"google\.genai"
            )
            self._sdk = genai.Client(
                api_key=self._account.key,
                vertexai=False,
                http_options=types.HttpOptions(
                    base_url=self._account.base_url,
                    timeout=round(self._limits.timeout_s * 1000),
                    # Without a client given, the SDK takes aiohttp where it is installed, and
                    # then repeats calls of itself.
                    httpx_async_client=self._clients.get(),
                    retry_options=types.HttpRetryOptions(attempts=1),
                ),
            )
        return self._sdk

    async def _ask(
        self, exchange: Exchange, wire_request: WireRequest, request: Request, dialect: Dialect
    ) -> None:
        models = self._client().aio.models
        model, contents = wire_request.body["model"], wire_request.body["contents"]
        config = _config(wire_request, request)
        if not request.stream:
            config["should_return_http_response"] = True
            answer = await models.generate_content(model=model, contents=contents, config=config)
            raw = answer.sdk_http_response
            exchange.data = ((raw and raw.body) or "").encode()
            return
        exchange.keep_plain_body = True
        stream = dialect.stream()
        async for event in await models.generate_content_stream(
            model=model, contents=contents, config=config
        ):
            chunk = event.model_dump(mode="json", by_alias=True, exclude_none=True)
            chunk.pop("sdkHttpResponse", None)
            exchange.feed(stream, chunk)
        exchange.data = stream.result()
        if exchange.data is None:
            raise CutOff

    async def aclose(self) -> None:
        """Close the connections, where no other model uses them."""
        sdk, self._sdk = self._sdk, None
        if sdk is not None:
            await sdk.aio.aclose()
            sdk.close()
        await super().aclose()


def _config(wire_request: WireRequest, request: Request) -> types.GenerateContentConfigDict:
    """The configuration of the call, as a dict: the SDK would copy a model of it deeply first."""
    options = request.options
    config = {
        **wire_request.body["config"],
        "http_options": types.HttpOptions(
            api_version=wire_request.body["api_version"],
            headers=dict(options.headers) or None,
            extra_body=dict(options.extra) or None,
        ),
        # On by default it would send further, billed, requests of itself.
        "automatic_continuation": False,
    }
    return cast("types.GenerateContentConfigDict", config)


_GEMINI = Gemini()
