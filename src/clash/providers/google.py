"""Google's Gemini through its SDK."""

from __future__ import annotations

import warnings
from functools import cache
from typing import TYPE_CHECKING, Any, cast

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
        model = wire_request.body["model"]
        config = _config(wire_request, request)
        if not request.stream:
            config["should_return_http_response"] = True
            answer = await models.generate_content(
                model=model, contents=_PLACEHOLDER, config=config
            )
            raw = answer.sdk_http_response
            exchange.data = ((raw and raw.body) or "").encode()
            return
        exchange.keep_plain_body = True
        stream = dialect.stream()
        async for event in await models.generate_content_stream(
            model=model, contents=_PLACEHOLDER, config=config
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
    """The configuration of the call, as a dict: the SDK would copy a model of it deeply first.

    The whole body goes as ``extra_body``. Typed contents and settings are copied, checked and walked
    part by part, which takes longer than all else that the SDK does.
    """
    options = request.options
    config = {
        "http_options": types.HttpOptions(
            api_version=wire_request.body["api_version"],
            headers=dict(options.headers) or None,
            extra_body=merge_spellings(body_of(wire_request), options.extra),
        ),
        # On by default it would send further, billed, requests of itself.
        "automatic_continuation": False,
    }
    return cast("types.GenerateContentConfigDict", config)


def body_of(wire_request: WireRequest) -> dict[str, Any]:
    """The body of a request in the spelling of the wire."""
    settings = dict(wire_request.body["config"])
    system = settings.pop("system_instruction", None)
    if "thinking_config" in settings:
        settings["thinking_config"] = _in_camel_case(settings["thinking_config"])
    body = {
        "contents": wire_request.body["contents"],
        "generationConfig": _Settings(_in_camel_case(settings)),
    }
    if system is not None:
        body["systemInstruction"] = {"role": "user", "parts": [{"text": system}]}
    return body


class _Settings(dict[str, Any]):
    """Settings that never change, so that the SDK need not copy them and the schema in them."""

    def __deepcopy__(self, _: dict[int, Any]) -> _Settings:
        return self


def _in_camel_case(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {_camel(name): value for name, value in fields.items()}


@cache
def _camel(name: str) -> str:
    first, *further_words = name.split("_")
    return first + "".join(map(str.capitalize, further_words))


def merge_spellings(body: Mapping[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """``body`` with the user's own fields, which may be spelled as the SDK or as the wire does.

    Where both hold an object, the two become one.
    """
    fields = dict(body)
    names = {_letters(name): name for name in body} if extra else {}
    for key, value in extra.items():
        name = names.get(_letters(key), key)
        present = fields.get(name)
        if isinstance(present, dict) and isinstance(value, dict):
            value = merge_spellings(present, value)
        fields[name] = value
    return fields


def _letters(name: str) -> str:
    return name.replace("_", "").lower()


_GEMINI = Gemini()
_PLACEHOLDER = "."
"""The contents that the SDK asks for; those of the body take their place."""
