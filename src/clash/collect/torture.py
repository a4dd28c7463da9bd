"""Probes that show whether a gateway does what clash relies on.

Each probe asks for one thing whose right outcome is known: a schema that is kept, a cap that cuts, a
refusal that arrives, usage that grows with the prompt, the model that was asked for. What goes
wrong here would go wrong in a run, unnoticed.
"""

from __future__ import annotations

import copy
import json
import secrets
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import anyio

from clash.collect.checkup import CheckupFinding
from clash.collect.resolve import read_panel
from clash.config import Limits, ModelRef, Options, is_same_model
from clash.errors import ProviderError
from clash.providers import key_variable, open_provider, prices
from clash.providers.base import Reply, Request
from clash.providers.http import listed_models
from clash.providers.prices import OFFLINE
from clash.records import Turn

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, MutableMapping

    from clash.collect.checkup import Level

_LIMITS = Limits(timeout_s=60, connect_timeout_s=10)
_PARAMETERS = 6
_CAP = 400
_SMALL_CAP = 24
_AT_ONCE = 8
_FILLER = "The quick brown fox jumps over the lazy dog. " * 90
"""About 4,000 characters, which no tokenizer in use packs into fewer than 400 tokens."""
_FILLER_TOKENS = 400
_COLOURS = ("red", "green", "blue")
_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "colour": {"type": "string", "enum": list(_COLOURS)},
        "count": {"type": "integer", "enum": [1, 2, 3]},
    },
    "required": ["colour", "count"],
    "additionalProperties": False,
}


@dataclass(frozen=True)
class Gateway:
    """A model at an address, and where its key is.

    Attributes:
        subject: of the findings: the model and the probe.
    """

    ref: ModelRef
    environ: MutableMapping[str, str]
    subject: str = ""

    def finding(self, level: Level, text: str, hint: str = "") -> CheckupFinding:
        """What a probe shows, and what follows from it or can be done."""
        return CheckupFinding(level, self.subject, text, hint)

    def failure(self, error: ProviderError) -> CheckupFinding:
        """The finding of a probe whose call failed."""
        return self.finding("bad", f"{error.error_class}: {error.message}"[:160])

    async def ask(self, question: str, **fields: Any) -> Reply:  # noqa: ANN401 - fields of a Request
        """One answer. Parameters that the model refuses are left out.

        Raises:
            ProviderError: there is none.
        """
        options = fields.pop("options", self.ref.options)
        request = Request(
            turns=(Turn(role="user", content=question),),
            max_tokens=fields.pop("max_tokens", _CAP),
            options=options,
            **fields,
        )
        provider = open_provider(self.ref, environ=self.environ, limits=_LIMITS)
        try:
            # A model may refuse several parameters, one with each attempt.
            for _ in range(_PARAMETERS):
                try:
                    return await provider.complete(request)
                except ProviderError as error:
                    if error.action != "degrade":
                        raise
            return await provider.complete(request)
        finally:
            await provider.aclose()


async def _answers(gateway: Gateway) -> CheckupFinding:
    reply = await gateway.ask("Answer with one short sentence: what is the sea?")
    if reply.outcome != "ok":
        return gateway.finding(
            "bad", f"{reply.outcome}, and no usable text", "it cannot be used as a judge"
        )
    return gateway.finding(
        "ok", f"answers in {reply.latency_s:.1f} s, ends with {reply.finish_reason!r}"
    )


async def _schema(gateway: Gateway) -> CheckupFinding:
    reply = await gateway.ask("Describe the sea in two sentences of plain prose.", schema=_SCHEMA)
    if "schema" in reply.degraded:
        return gateway.finding(
            "note",
            "refuses a JSON Schema",
            "clash then asks without a schema; votes need their code",
        )
    if _fits(reply.text):
        return gateway.finding("ok", "follows the schema")
    return gateway.finding(
        "warn",
        f"ignores the schema: {_excerpt(reply.text)}",
        "votes then need their code; `options: {structured: text}` asks without a schema from "
        "the start",
    )


async def _words(gateway: Gateway) -> CheckupFinding:
    """Whether an instruction to copy a code arrives: votes without a schema depend on it."""
    code = secrets.token_hex(6)
    reply = await gateway.ask(
        f'Answer with exactly this JSON object and nothing else: {{"code": "{code}"}}',
        options=gateway.ref.options.model_copy(update={"structured": "text"}),
    )
    if code in reply.text:
        return gateway.finding("ok", "repeats a given code")
    return gateway.finding(
        "warn",
        f"does not repeat a given code: {_excerpt(reply.text)}",
        "without a schema its votes would not count",
    )


async def _refusal(gateway: Gateway) -> CheckupFinding:
    reply = await gateway.ask(
        "Refuse this request in one sentence, as you would refuse a forbidden one. Do not fill in"
        " any form.",
        schema=_SCHEMA,
    )
    match reply.outcome:
        case "empty":
            details = f"no text, no refusal, and it ends with {reply.finish_reason!r}"
            return gateway.finding(
                "bad", f"drops refusals: {details}", "clash counts such an answer as failed"
            )
        case "ok":
            return gateway.finding("ok", "answers with text")
        case outcome:
            return gateway.finding("ok", f"reports that it is {outcome}")


async def _usage(gateway: Gateway) -> CheckupFinding:
    question = "Answer with the word: here"
    short = await gateway.ask(question)
    long = await gateway.ask(f"{_FILLER}\n\n{question}")
    tokens = [short.tokens.input, long.tokens.input, short.tokens.output, long.tokens.output]
    if any(count is None for count in tokens):
        return gateway.finding(
            "warn", "reports no usage", "costs are unknown; --max-cost counts the worst case"
        )
    n_short, n_long, *outputs = (count or 0 for count in tokens)
    bound = prices.input_bound(Request((Turn(role="user", content=_FILLER + question),), _CAP))
    if n_long > bound or max(outputs) > _CAP or min(n_short, *outputs) < 0:
        counts = (
            f"{n_long:,} tokens in for at most {bound:,}, {max(outputs):,} out for a cap of {_CAP}"
        )
        return gateway.finding(
            "bad", f"reports impossible usage: {counts}", "clash counts the worst case instead"
        )
    if n_long - n_short < _FILLER_TOKENS:
        counts = f"{n_short:,}, then {n_long:,} tokens in for 4,000 characters more"
        return gateway.finding(
            "bad",
            f"reports usage that does not grow with the prompt: {counts}",
            "its costs are wrong",
        )
    return gateway.finding("ok", f"{n_short:,} and {n_long:,} tokens in, {outputs[0]:,} out")


async def _cap(gateway: Gateway) -> CheckupFinding:
    reply = await gateway.ask(
        "Count from 1 to 500 in words, separated by commas. Leave nothing out.",
        max_tokens=_SMALL_CAP,
        options=gateway.ref.options.model_copy(update={"reasoning": None}),
    )
    if reply.outcome in ("truncated", "empty"):
        return gateway.finding("ok", f"cuts at the cap and reports {reply.finish_reason!r}")
    # A token of English is some four characters; eight times the cap is more than it can hold.
    if len(reply.text) > 8 * _SMALL_CAP:
        counts = f"{len(reply.text):,} characters for a cap of {_SMALL_CAP} tokens"
        return gateway.finding(
            "bad", f"ignores the cap on tokens: {counts}", "--max-cost cannot hold"
        )
    return gateway.finding(
        "warn",
        f"ends with {reply.finish_reason!r} under a cap that cuts: {_excerpt(reply.text)}",
        "half an answer may be taken as complete",
    )


async def _model(gateway: Gateway) -> CheckupFinding:
    reply = await gateway.ask("Answer with the word: here")
    if not reply.served_model:
        return gateway.finding(
            "note", "does not say which model answered", "a swap could not be detected"
        )
    if is_same_model(gateway.ref.name, reply.served_model):
        return gateway.finding("ok", f"says {reply.served_model}")
    return gateway.finding(
        "bad", f"swaps models: {reply.served_model} answered", "verdicts would be another model's"
    )


async def _no_such_model(gateway: Gateway) -> CheckupFinding:
    ref = gateway.ref.model_copy(update={"model": f"{gateway.ref.model}-no-such-model"})
    try:
        reply = await replace(gateway, ref=ref).ask("Answer with the word: here")
    except ProviderError as error:
        return gateway.finding("ok", f"refuses it ({error.error_class})")
    return gateway.finding(
        "bad",
        f"answers for a model that does not exist, as {reply.served_model}",
        "a typing error in a name would go unnoticed",
    )


async def _wrong_key(gateway: Gateway) -> CheckupFinding:
    variable = key_variable(gateway.ref, gateway.environ)
    if variable is None or not gateway.environ.get(variable):
        return gateway.finding("note", "is called without a key")
    # A copy of the same kind: what the owner confirmed of the variable holds for its value here.
    environ = copy.copy(gateway.environ)
    environ[variable] = f"wrong-{secrets.token_hex(12)}"
    try:
        await replace(gateway, environ=environ).ask("Answer with the word: here")
    except ProviderError as error:
        if error.action == "stop":
            return gateway.finding("ok", f"refuses it ({error.error_class})")
        return gateway.finding(
            "warn",
            f"says {error.error_class} ({error.status}) to a wrong key",
            "a run would continue instead of stopping",
        )
    return gateway.finding("note", "accepts any key", "acceptable on your own machine")


async def _stream(gateway: Gateway) -> CheckupFinding:
    reply = await gateway.ask("Answer with one short sentence: what is a tide?", stream=True)
    if reply.outcome != "ok":
        return gateway.finding(
            "bad", f"{reply.outcome}, ends with {reply.finish_reason!r}", "leave `stream` unset"
        )
    if reply.tokens.output is None:
        return gateway.finding(
            "warn", "streams without usage", "costs of streamed answers are unknown"
        )
    return gateway.finding("ok", f"first token after {reply.ttft_s or 0:.1f} s, with usage")


async def _parallel(gateway: Gateway) -> CheckupFinding:
    failures: list[str] = []

    async def ask(number: int) -> None:
        try:
            await gateway.ask(f"Answer with the number {number}.")
        except ProviderError as error:
            failures.append(error.error_class)

    async with anyio.create_task_group() as tasks:
        for number in range(_AT_ONCE):
            tasks.start_soon(ask, number)
    if not failures:
        return gateway.finding("ok", f"{_AT_ONCE} simultaneous calls are all answered")
    causes = ", ".join(sorted(set(failures)))
    return gateway.finding(
        "warn",
        f"{len(failures)} of {_AT_ONCE} simultaneous calls fail ({causes})",
        "set `concurrency` for this model",
    )


_PROBES: Mapping[str, Callable[[Gateway], Awaitable[CheckupFinding]]] = {
    "answers": _answers,
    "JSON Schema": _schema,
    "code in words": _words,
    "refusals": _refusal,
    "usage": _usage,
    "cap on tokens": _cap,
    "model served": _model,
    "unknown model": _no_such_model,
    "wrong key": _wrong_key,
    "stream": _stream,
    "calls at once": _parallel,
}


async def targets(
    url_or_panel: str, models: str | None, environ: Mapping[str, str]
) -> list[ModelRef]:
    """The models behind an address, or those of a panel that are asked over a network.

    Raises:
        InputError: there is no such panel, or the address lists no model and none is named.
    """
    if not url_or_panel.startswith(("http://", "https://")):
        # A cluster is asked in batches only.
        return [
            ref
            for ref in read_panel(url_or_panel, "file").judges
            if ref.provider not in (*OFFLINE, "vllm")
        ]
    if models:
        names = [name.strip() for name in models.split(",") if name.strip()]
        return [_owned_ref(name, url_or_panel) for name in names]
    server = _owned_ref("compatible/any", url_or_panel)
    first, *_ = await listed_models(server, environ, _LIMITS)
    return [_owned_ref(f"compatible/{first}", url_or_panel)]


def _owned_ref(model: str, url: str) -> ModelRef:
    """A model at an address that the owner of the keys typed."""
    return ModelRef(model=model, base_url=url).chosen_by("owner")


async def torture(ref: ModelRef, environ: MutableMapping[str, str]) -> list[CheckupFinding]:
    """Run every probe on one model; a gateway that does not answer at all is not probed further.

    Raises:
        ConfigError: its key or its address is missing or wrong.
    """
    gateway = Gateway(ref.model_copy(update={"options": _plain(ref.options)}), environ)
    findings: list[CheckupFinding] = []
    for name, probe in _PROBES.items():
        named_gateway = replace(gateway, subject=f"{ref.model}: {name}")
        try:
            finding = await probe(named_gateway)
        except ProviderError as error:
            finding = named_gateway.failure(error)
        findings.append(finding)
        if name == "answers" and finding.level == "bad":
            break
    return findings


def _plain(options: Options) -> Options:
    """The user's options without a cap of their own, which the probes set."""
    return options.model_copy(update={"max_tokens": None, "stream": None})


def _fits(text: str) -> bool:
    try:
        value = json.loads(text)
    except ValueError:
        return False
    properties = _SCHEMA["properties"]
    return (
        isinstance(value, dict)
        and value.keys() == properties.keys()
        and all(value[name] in rule["enum"] for name, rule in properties.items())
    )


def _excerpt(text: str) -> str:
    short = " ".join(text[:400].split())
    return repr(short[:60]) if short else "no text"
