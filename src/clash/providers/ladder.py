"""The degrade ladder: what a model refuses is left out, once and for all, and written down.

Models and servers differ in what they take: a schema or only JSON or neither, the new or the old
name of the cap on tokens, a temperature. Nothing of that can be asked beforehand. So the first
request carries everything; where the answer refuses a part of it by name, the part goes and the
request is made again.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clash.providers.base import Request
    from clash.providers.failures import Failure, Report
    from clash.records import JsonMode

Feature = Literal[
    "schema",
    "json",
    "max_tokens",
    "max_completion_tokens",
    "temperature",
    "top_p",
    "seed",
    "reasoning",
    "stream_usage",
    "require_parameters",
    "chat",
    "stable_api",
]
_LEVELS: tuple[JsonMode, ...] = ("schema", "json", "text")
_REFUSALS = frozenset({400, 404, 422, 500, 501})
_MODEL = re.compile(r"\bmodels?\b", re.IGNORECASE)
_CANDIDATES = frozenset({"bad_request", "not_found", "server"})


@dataclass(frozen=True, slots=True)
class Sent:
    """One request in a vendor's words.

    Attributes:
        body: what is sent.
        features: what in it a model may refuse, with the names by which an error would blame it.
        dropped: what was asked for and left out.
        structured: how JSON is asked for; null where the request wants text.
    """

    body: dict[str, Any]
    features: Mapping[Feature, tuple[str, ...]] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()
    structured: JsonMode | None = None


class Ladder:
    """What one model has been found to refuse."""

    def __init__(self) -> None:
        self._refused: set[Feature] = set()

    def takes(self, feature: Feature) -> bool:
        """Whether ``feature`` has not been refused."""
        return feature not in self._refused

    @property
    def refused(self) -> list[Feature]:
        """What has been refused, sorted."""
        return sorted(self._refused)

    def level(self, request: Request) -> JsonMode | None:
        """How JSON is to be asked for; null where the request wants text."""
        if request.schema is None:
            return None
        wanted = _LEVELS[_LEVELS.index(request.options.structured) :]
        return next(level for level in wanted if level == "text" or self.takes(level))

    def cap(self, first: Feature, second: Feature) -> Feature:
        """The name of the cap on tokens, which is always sent: ``first`` unless refused."""
        return first if self.takes(first) else second

    def refuse(self, feature: Feature) -> None:
        """Never send ``feature`` again."""
        self._refused.add(feature)

    def learn(self, failure: Failure, said: Report, sent: Sent) -> Feature | None:
        """Which part of ``sent`` the answer refuses; it is then remembered.

        Returns:
            The feature, or null where the answer blames nothing that could be left out.
        """
        if failure.status not in _REFUSALS or failure.error_class not in _CANDIDATES:
            return None
        if (
            failure.status == 404
            and "stable_api" in sent.features
            and not _MODEL.search(said.message)
        ):
            # What does not speak of the model does not know the path.
            self.refuse("stable_api")
            return "stable_api"
        # The longest name first: output_config.effort is not output_config.
        names = [(name, feature) for feature, all_ in sent.features.items() for name in all_]
        for name, feature in sorted(names, key=lambda pair: -len(pair[0])):
            if _blames(said, name):
                self.refuse(feature)
                return feature
        return None


def _blames(said: Report, name: str) -> bool:
    """Whether an error speaks of the parameter ``name``, as a word of its own."""
    if said.param and (said.param == name or said.param.startswith((f"{name}.", f"{name}["))):
        return True
    return bool(re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", said.message))


def in_words(schema: Mapping[str, Any]) -> str:
    """The schema as an instruction, for models that take none; OpenAI wants the word JSON."""
    compact = json.dumps(schema, separators=(",", ":"), ensure_ascii=False)
    return (
        "Answer with one JSON object and nothing else. It must be valid against this"
        f" JSON Schema: {compact}"
    )


def system_of(request: Request, level: JsonMode | None) -> str | None:
    """The system message, with the schema in words where it is not sent as a schema."""
    schema = request.schema_with_code
    if schema is None or level == "schema":
        return request.system
    words = in_words(schema)
    return f"{request.system}\n\n{words}" if request.system else words


def extended(body: Mapping[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """``body`` with the user's own fields; where both hold an object, the two become one."""
    made = dict(body)
    for key, value in extra.items():
        ours = made.get(key)
        both = isinstance(ours, dict) and isinstance(value, dict)
        made[key] = {**ours, **value} if both else value  # type: ignore[dict-item] # it is a dict
    return made


def left_out(ladder: Ladder, request: Request, *never: Feature) -> tuple[str, ...]:
    """What ``request`` asks for and does not get.

    Args:
        ladder: what the model refuses.
        request: what is asked.
        never: what the vendor's API has no word for.
    """
    options = request.options
    asked: dict[Feature, bool] = {
        "temperature": options.temperature is not None,
        "top_p": options.top_p is not None,
        "seed": options.seed is not None,
        "reasoning": options.reasoning is not None,
        "schema": request.schema is not None and options.structured == "schema",
        "json": request.schema is not None and options.structured != "text",
    }
    gone = [name for name, on in asked.items() if on and (name in never or not ladder.takes(name))]
    if "schema" not in gone and "json" in gone and options.structured == "schema":
        gone.remove("json")  # the schema went through; JSON was never tried
    return tuple(gone)
