"""Models behind one protocol, and the only place that imports the vendors' SDKs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clash.errors import ConfigError
from clash.providers.accounts import (
    STEERING,
    account,
    base_url,
    destination,
    engine_destination,
    has_key,
    key_variable,
    needs_confirmation,
    not_confirmed,
    secrets,
)
from clash.secrets.redaction import Redactor

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from clash.config import Limits, ModelRef
    from clash.providers.base import Provider, Request
    from clash.providers.batch import BatchProvider

__all__ = [
    "BATCHING",
    "STEERING",
    "base_url",
    "can_batch",
    "destination",
    "engine_destination",
    "has_key",
    "key_variable",
    "needs_confirmation",
    "not_confirmed",
    "open_batches",
    "open_provider",
    "redactor_for",
    "require",
]


BATCHING = ("openai", "anthropic", "google", "vllm")
"""Providers with a batch API that clash speaks."""
TRANSFER_S = 600.0
"""Seconds that submitting or fetching a batch may stand still: a file is larger than a question."""


_OWN_FIELDS = frozenset(
    {
        *("model", "messages", "input", "contents", "n", "best_of"),
        *("max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens"),
        *("candidate_count", "candidateCount"),
    }
)
"""The question, and what multiplies its answer or lifts the cap on it, in every vendor's words."""
_PAID_FIELDS = frozenset(
    {
        *("tools", "plugins", "web_search_options", "mcp_servers", "container"),
        *("models", "fallbacks", "prediction"),
    }
)
"""What is billed beside the tokens of question and answer, or lets a dearer model answer."""
_DEAR_VALUES = {"service_tier": "priority", "serviceTier": "priority", "speed": "fast"}
"""Values that multiply the price of a token."""
_OBJECTS_WITH_CAPS = ("generationConfig", "generation_config")


def can_batch(ref: ModelRef, request: Request) -> bool:
    """Whether this question can go into a batch.

    Google's SDK has no place for fields of one's own in a row, so such questions are asked live.
    """
    if ref.provider not in BATCHING:
        return False
    return ref.provider != "google" or not request.options.extra


def require(ref: ModelRef, environ: Mapping[str, str]) -> None:
    """Refuse a model that could not be called, before anything is made, opened or spent.

    Raises:
        ConfigError: its key, its address, its run to replay, its function or its name is missing
            or wrong, or its ``options.extra`` replaces what clash itself asks for.
    """
    _check_extra(ref.model, ref.options.extra)
    match ref.provider:
        case "replay":
            from clash.providers.replay import calls_file

            calls_file(ref, environ)
        case "baseline":
            from clash.baselines import find

            find(ref.name)
        case "python":
            from clash.providers import python_callable

            python_callable.find(ref)
        case "vllm":
            from clash.providers.batch_vllm import check_engine

            check_engine(ref, environ)
            account(ref, environ)
        case _:
            for server in ref.servers:
                account(server, environ)


def _check_extra(model: str, fields: Mapping[str, Any]) -> None:
    """Refuse fields of the user's own that change the question, or how much an answer may cost."""
    for name, value in fields.items():
        if name in _OWN_FIELDS:
            raise ConfigError(
                f"{name} of {model} is what clash itself sets, and what budgets rest on",
                field="options.extra",
                hint="leave it out; max_tokens beside extra caps answers",
            )
        if name in _PAID_FIELDS or (name in _DEAR_VALUES and value == _DEAR_VALUES[name]):
            raise ConfigError(
                f"{name} of {model} can cost more than its tokens at their price, "
                "which budgets rest on",
                field="options.extra",
                hint="leave it out; a Python function as a candidate may use tools",
            )
        if name in _OBJECTS_WITH_CAPS and isinstance(value, dict):
            _check_extra(model, value)


def redactor_for(refs: Iterable[ModelRef], environ: Mapping[str, str]) -> Redactor:
    """A redactor for every secret of the environment and of each entry in ``refs``."""
    values: dict[str, str] = {}
    for ref in refs:
        values = secrets(ref, environ) | values
    return Redactor.of_environ(environ).with_secrets(values)


def open_provider(ref: ModelRef, *, environ: Mapping[str, str], limits: Limits) -> Provider:
    """The model that ``ref`` names, ready to be called.

    Nothing is sent. The vendor's SDK is imported here, and only the vendor's own.

    Args:
        ref: the model and how to reach it.
        environ: where keys and addresses are looked up; never ``os.environ`` behind its back.
        limits: timeouts.

    Raises:
        ConfigError: the key or the address is missing or wrong; the message names the variable.
    """
    match ref.provider:
        case "openai":
            from clash.providers.openai import OpenAI

            return OpenAI(ref, account(ref, environ), limits, environ)
        case "anthropic":
            from clash.providers.anthropic import Anthropic

            return Anthropic(ref, account(ref, environ), limits, environ)
        case "google":
            from clash.providers.google import Google

            return Google(ref, account(ref, environ), limits)
        case "openrouter":
            from clash.providers.http import OpenRouter

            return OpenRouter(ref, account(ref, environ), limits)
        case "compatible":
            from clash.providers.http import Compatible
            from clash.providers.replicas import Replicas

            accounts = [account(server, environ) for server in ref.servers]
            servers = [
                (server_account.base_url, Compatible(server, server_account, limits))
                for server, server_account in zip(ref.servers, accounts, strict=True)
            ]
            return servers[0][1] if len(servers) == 1 else Replicas(servers)
        case "vllm":
            if not limits.batch:
                raise ConfigError(
                    f"{ref.model} runs on a Ray cluster, which is asked in batches only",
                    field="limits.batch",
                    hint="add --batch",
                )
            return open_batches(ref, environ, limits)
        case "replay":
            from clash.providers.replay import Replay

            return Replay(ref, environ)
        case "python":
            from clash.providers.python_callable import PythonFunction

            return PythonFunction(ref, limits, environ)
        case _:
            from clash.providers.baseline import BaselineProvider

            return BaselineProvider(ref.name)


def open_batches(ref: ModelRef, environ: Mapping[str, str], limits: Limits) -> BatchProvider:
    """The batch API of the model that ``ref`` names; nothing is sent.

    Raises:
        ConfigError: its key or its address is missing or wrong.
    """
    limits = limits.model_copy(update={"timeout_s": max(limits.timeout_s, TRANSFER_S)})
    match ref.provider:
        case "openai":
            from clash.providers.batch_openai import OpenAIBatches

            return OpenAIBatches(ref, account(ref, environ), limits, environ)
        case "anthropic":
            from clash.providers.batch_anthropic import AnthropicBatches

            return AnthropicBatches(ref, account(ref, environ), limits, environ)
        case "vllm":
            from clash.providers.batch_vllm import VllmBatches

            return VllmBatches(ref, account(ref, environ), limits)
        case _:
            from clash.providers.batch_google import GoogleBatches

            return GoogleBatches(ref, account(ref, environ), limits)
