"""Requests to a provider and its replies, independent of any vendor."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import msgspec

from clash.config import Options
from clash.records import Tokens

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clash.records import Criterion, JsonMode, Outcome, Turn


@dataclass(frozen=True, slots=True)
class JudgeTask:
    """The blinded item behind a judge's prompt, for baselines, which read no prompt.

    Attributes:
        responses: text by label, as a judge may see it.
        choices: the labels to choose from, where a single text is judged.
        scale: the lowest and the highest score, likewise.
    """

    turns: Sequence[Turn]
    criteria: Sequence[Criterion]
    responses: Mapping[str, str]
    ties: bool = True
    choices: tuple[str, ...] = ()
    scale: tuple[int, int] | None = None
    _data: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def data(self) -> Mapping[str, Any]:
        """The task as plain data, for the record; the judges of a page share it."""
        if not self._data:
            self._data["turns"] = [turn.model_dump() for turn in self.turns]
            self._data["criteria"] = [criterion.model_dump() for criterion in self.criteria]
            self._data["responses"] = dict(self.responses)
            self._data["ties"] = self.ties
            if self.choices:
                self._data["choices"] = list(self.choices)
            if self.scale is not None:
                self._data["scale"] = list(self.scale)
        return self._data


@dataclass(frozen=True, slots=True)
class Request:
    """One question to one model.

    Attributes:
        max_tokens: cap on the answer, reasoning included; always set, so that a call has a
            worst-case price.
        schema: JSON Schema of the wanted answer; null asks for text.
        ballot_code: what the answer must repeat under the key ``ballot`` wherever the provider
            does not enforce the schema; no part of the schema, since vendors cache each one.
        stream: read the answer as a stream, so that the time to first token is known.
        item_id: the item that is asked about, and ``judge`` who is asked: never sent, and no part
            of the hash. A replay tells by them which of several answers to equal questions.
    """

    turns: tuple[Turn, ...]
    max_tokens: int
    system: str | None = None
    schema: Mapping[str, Any] | None = None
    ballot_code: str | None = None
    stream: bool = False
    options: Options = field(default_factory=Options)
    task: JudgeTask | None = None
    item_id: str | None = None
    judge: str | None = None
    _n_bytes: list[int] = field(default_factory=list, init=False, repr=False, compare=False)

    @property
    def n_bytes(self) -> int:
        """Bytes of everything in the question that costs tokens; counted once."""
        if not self._n_bytes:
            texts = (self.system or "", *(turn.content for turn in self.turns))
            size = sum(
                len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
                for text in texts
            )
            for value in (self.schema_with_code, self.options.extra):
                if value:
                    size += len(msgspec.json.encode(value, enc_hook=str))
            self._n_bytes.append(size)
        return self._n_bytes[0]

    @property
    def schema_with_code(self) -> Mapping[str, Any] | None:
        """The schema with the ballot's code as the first key: for models that follow it in words.

        One that the provider enforces has no such key: a run is to have few schemas.
        """
        if self.schema is None or self.ballot_code is None:
            return self.schema
        code = {"type": "string", "enum": [self.ballot_code]}
        return {
            **self.schema,
            "properties": {"ballot": code, **self.schema["properties"]},
            "required": ["ballot", *self.schema["required"]],
        }

    def content(self, model: str) -> dict[str, Any]:
        """What is asked, as plain data: what is hashed, and what replay looks up.

        A replayed model is the model that it replays, so that a replay can be replayed.
        """
        content = {
            "model": model.removeprefix("replay/"),
            "system": self.system,
            "turns": [[turn.role, turn.content] for turn in self.turns],
            "max_tokens": self.max_tokens,
            "schema": self.schema,
            "options": self.options.model_dump(exclude_defaults=True),
        }
        # Left out where there is none, so that runs made before there were codes can be replayed.
        return content if self.ballot_code is None else content | {"ballot": self.ballot_code}

    def hash(self, model: str) -> str:
        """SHA-256 of :meth:`content`."""
        content = self.content(model)
        try:
            text = msgspec.json.encode(content, order="sorted")
        except UnicodeEncodeError:  # lone surrogates; a line of ASCII can hold them
            text = json.dumps(content, sort_keys=True).encode()
        return hashlib.sha256(text).hexdigest()


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer of a model, usable or not.

    Attributes:
        outcome: ``ok``, or why the text may not be used: ``truncated``, ``refusal``, ``blocked``,
            ``empty``.
        request: the request as sent, without keys.
        response: the raw answer as plain data.
        cost_usd: the cost the provider itself reports; null where it reports none.
        structured: how JSON was asked for; null where the request wanted text. Only ``schema``
            is enforced by the provider.
        degraded: what the model refused earlier and was therefore not sent.
        latency_s: seconds from sending to the last byte.
        ttft_s: seconds to the first token; null where the answer was not streamed.
        address: the server that answered, where the model has several.
    """

    text: str
    outcome: Outcome
    request: Mapping[str, Any]
    response: Any
    status: int | None = 200
    finish_reason: str | None = None
    tokens: Tokens = field(default_factory=Tokens)
    cost_usd: float | None = None
    served_model: str | None = None
    request_id: str | None = None
    structured: JsonMode | None = None
    degraded: tuple[str, ...] = ()
    latency_s: float = 0.0
    ttft_s: float | None = None
    address: str | None = None


@runtime_checkable
class AtOnce(Protocol):
    """A provider that judges without waiting for anything: a rule."""

    def answer(self, request: Request) -> Reply:
        """Judge the task of a request.

        Raises:
            ProviderError: the request has no task.
        """
        ...


class Provider(Protocol):
    """One model behind one account: the only thing that the rest of clash calls.

    Attributes:
        account: what rate limits are shared by (vendor, address, name of the key's variable).
        offline: it makes no network call and costs nothing.
    """

    account: str
    offline: bool

    async def complete(self, request: Request) -> Reply:
        """Make exactly one attempt.

        Returns:
            The reply. A refusal, a block, a truncated or an empty answer is a reply with that
            outcome, not an error.

        Raises:
            ProviderError: there is no usable answer; it says what to do about it. With
                ``action="degrade"`` the provider has taken note of what the model refuses and
                will not send it again: call once more, at once.
        """
        ...

    async def aclose(self) -> None:
        """Close what was opened. Safe to call twice."""
        ...
