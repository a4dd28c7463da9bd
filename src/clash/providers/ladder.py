"""The degrade ladder: what a model refuses is left out from then on, and recorded.

Models and servers differ in what they take: a schema or only JSON or neither, the new or the old
name of the cap on tokens, a temperature. None of this can be asked beforehand. So the first request
carries everything; where the answer refuses a part of it by name, the request is made again without
that part.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clash.config import Options
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
class WireRequest:
    """One request as a vendor's API takes it.

    Attributes:
        body: the JSON body.
        features: parts that a model may refuse, with the names that an error would use for each.
        omissions: what was asked for and left out.
        structured: how JSON is asked for; null where the request wants text.
    """

    body: dict[str, Any]
    features: Mapping[Feature, tuple[str, ...]] = field(default_factory=dict)
    omissions: tuple[str, ...] = ()
    structured: JsonMode | None = None


class Ladder:
    """The parts of a request that one model refuses."""

    def __init__(self) -> None:
        self._refusals: set[Feature] = set()

    def takes(self, feature: Feature) -> bool:
        """Whether ``feature`` has not been refused."""
        return feature not in self._refusals

    @property
    def refusals(self) -> list[Feature]:
        """What has been refused, sorted."""
        return sorted(self._refusals)

    def level(self, request: Request) -> JsonMode | None:
        """How JSON is to be asked for; null where the request wants text."""
        if request.schema is None:
            return None
        levels = _LEVELS[_LEVELS.index(request.options.structured) :]
        return next(level for level in levels if level == "text" or self.takes(level))

    def add_sampling(
        self,
        fields: dict[str, Any],
        features: dict[Feature, tuple[str, ...]],
        options: Options,
        *names: Feature,
    ) -> None:
        """Put those of the options ``names`` that are set and not refused into ``fields``."""
        for name in names:
            value = getattr(options, name)
            if value is not None and self.takes(name):
                fields[name] = value
                features[name] = (name,)

    def cap(self, first: Feature, second: Feature) -> Feature:
        """The name of the cap on tokens, which is always sent: ``first`` unless refused."""
        return first if self.takes(first) else second

    def refuse(self, feature: Feature) -> None:
        """Never send ``feature`` again."""
        self._refusals.add(feature)

    def learn(self, failure: Failure, report: Report, wire_request: WireRequest) -> Feature | None:
        """Which part of ``wire_request`` the answer refuses; it is remembered.

        Returns:
            The feature, or null where the answer blames nothing that could be left out.
        """
        if failure.status not in _REFUSALS or failure.error_class not in _CANDIDATES:
            return None
        if (
            failure.status == 404
            and "stable_api" in wire_request.features
            and not _MODEL.search(report.message)
        ):
            # A 404 that does not mention the model means that the path is unknown.
            self.refuse("stable_api")
            return "stable_api"
        # The longest name first: output_config.effort is not output_config.
        names = [
            (name, feature)
            for feature, parameters in wire_request.features.items()
            for name in parameters
        ]
        for name, feature in sorted(names, key=lambda pair: -len(pair[0])):
            if _blames(report, name):
                self.refuse(feature)
                return feature
        return None


def _blames(report: Report, name: str) -> bool:
    """Whether an error names the parameter ``name``, as a word of its own."""
    if report.param and (report.param == name or report.param.startswith((f"{name}.", f"{name}["))):
        return True
    return bool(re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", report.message))


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


def one_system_text(request: Request, level: JsonMode | None) -> str:
    """The system messages as one text, for APIs that take none among the turns."""
    texts = [turn.content for turn in request.turns if turn.role == "system"]
    system = system_of(request, level)
    return "\n\n".join([system, *texts] if system else texts)


def merge_fields(body: Mapping[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """``body`` with the user's own fields; where both hold an object, the two become one."""
    fields = dict(body)
    for key, value in extra.items():
        present = fields.get(key)
        if isinstance(present, dict) and isinstance(value, dict):
            value = {**present, **value}
        fields[key] = value
    return fields


def omissions_of(ladder: Ladder, request: Request, *never: Feature) -> tuple[str, ...]:
    """What ``request`` asks for and does not get.

    Args:
        ladder: what the model refuses.
        request: what is asked.
        never: parameters that the vendor's API does not have.
    """
    options = request.options
    wishes: dict[Feature, bool] = {
        "temperature": options.temperature is not None,
        "top_p": options.top_p is not None,
        "seed": options.seed is not None,
        "reasoning": options.reasoning is not None,
        "schema": request.schema is not None and options.structured == "schema",
        "json": request.schema is not None and options.structured != "text",
    }
    omissions = [
        name for name, on in wishes.items() if on and (name in never or not ladder.takes(name))
    ]
    if "schema" not in omissions and "json" in omissions and options.structured == "schema":
        omissions.remove("json")  # the schema went through; JSON was never tried
    return tuple(omissions)
