"""Pure functions from what is asked to a text: a judge, a writer of criteria, a generator.

They fill in whatever JSON Schema is asked for, so that they do not have to know the prompts.
"""

from __future__ import annotations

import hashlib
import json
import re
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wire.vendors import VendorRequest

CRITERIA = ("Accuracy", "Completeness", "Clarity", "Usefulness")
_LABEL = re.compile(r"^A\d+$")
_RESPONSE = re.compile(
    r"<response label=\"(?P<label>A\d+)\"[^>]*>\n(?P<text>.*?)\n</response", re.DOTALL
)


def deterministic(request: VendorRequest) -> str:
    """A judge, a writer of criteria or a generator, as the schema asks."""
    schema = schema_of(request)
    if schema is None:
        return generator(request)
    if labels(schema):
        return judge(request)
    return (
        criteria(request) if "criteria" in schema.get("properties", {}) else _dump(schema, request)
    )


def judge(request: VendorRequest) -> str:
    """Rank the responses by a hash of their text; the judge's name tilts it a little."""
    schema = schema_of(request)
    return generator(request) if schema is None else _dump(schema, request)


def criteria(request: VendorRequest) -> str:
    """Four criteria, always the same."""
    rows = [
        {"name": name, "weight": weight, "description": f"how the response does in {name}"}
        for name, weight in zip(CRITERIA, (40, 30, 20, 10), strict=True)
    ]
    return json.dumps({"criteria": rows})


def generator(request: VendorRequest) -> str:
    """Some sentences that depend on the model and on the prompt."""
    mark = hashlib.sha256(
        f"{request.model}\n{request.prompt}".encode("utf-8", "replace")
    ).hexdigest()
    words = ("a", "short", "answer", "with", "some", "words", "of", "no", "weight")
    picked_words = " ".join(
        words[int(char, 16) % len(words)] for char in mark[: 8 + int(mark[0], 16)]
    )
    return f"Answer {mark[:8]}: {picked_words}."


def schema_of(request: VendorRequest) -> dict[str, Any] | None:
    """The schema that was asked for; after a degrade it stands in the prompt."""
    if request.schema is not None:
        return request.schema
    match = re.search(r"JSON Schema:\s*(\{.*)", request.prompt, re.DOTALL)
    if not match:
        return None
    value, _ = json.JSONDecoder().raw_decode(match[1])
    return value


def code_of(request: VendorRequest) -> str | None:
    """The code that the page asks a judge to repeat, as a model would read it."""
    matches = re.findall(r"key `ballot`.*?value `(\w+)`", request.prompt)
    return matches[-1] if matches else None


def with_code(answer: dict[str, Any], request: VendorRequest) -> dict[str, Any]:
    """``answer`` with the page's code first, unless a schema that is enforced has no room for it."""
    has_schema = request.schema is not None and "ballot" not in request.schema.get("properties", {})
    code = code_of(request)
    return answer if has_schema or code is None else {"ballot": code, **answer}


def labels(schema: Any) -> list[str]:
    """The blinded labels that a schema names, in order."""
    matches = set(re.findall(r'"(A\d+)"', json.dumps(schema)))
    return sorted(matches, key=lambda label: int(label[1:]))


class _Opinion:
    """What the judge makes of the responses: a number for each, from their text."""

    def __init__(self, request: VendorRequest, names: list[str]) -> None:
        self._asked, self._names = request, names

    @cached_property
    def quality(self) -> dict[str, float]:
        texts = {m["label"]: m["text"] for m in _RESPONSE.finditer(self._asked.prompt)}
        model = self._asked.model
        return {
            name: share(texts.get(name, name)) + 0.4 * share(f"{model}\n{texts.get(name, name)}")
            for name in self._names
        }

    @cached_property
    def order(self) -> list[str]:
        return sorted(self._names, key=lambda name: self.quality[name], reverse=True)

    def score(self, label: str) -> int:
        return max(1, 5 - self.order.index(label))


def share(text: str) -> float:
    """A number in [0, 1) that depends on nothing but ``text``."""
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "replace")).digest()[:6]) / 2**48


def _dump(schema: dict[str, Any], request: VendorRequest) -> str:
    return json.dumps(_fill(schema, [], _Opinion(request, labels(schema))))


def _fill(schema: dict[str, Any], path: list[str], opinion: _Opinion) -> Any:
    if "enum" in schema:
        return _choose(schema["enum"], path, opinion)
    match schema.get("type"):
        case "object":
            parts = schema.get("properties", {})
            return {key: _fill(part, [*path, key], opinion) for key, part in parts.items()}
        case "array":
            return _list(schema["items"], path, opinion)
        case "integer" | "number":
            return _score(path, opinion)
        case "boolean":
            return True
        case _:
            return "wire: says so"


def _choose(options: list[Any], path: list[str], opinion: _Opinion) -> Any:
    if set(options) & set(opinion.order):
        return next(label for label in opinion.order if label in options)
    score = _score(path, opinion)
    return score if score in options else options[0]


def _score(path: list[str], opinion: _Opinion) -> int:
    label_steps = [step for step in path if _LABEL.match(step) and step in opinion.order]
    return opinion.score(label_steps[-1]) if label_steps else 3


def _list(items: dict[str, Any], path: list[str], opinion: _Opinion) -> list[Any]:
    if items.get("type") == "array":
        return [[label] for label in opinion.order]
    if set(items.get("enum", ())) & set(opinion.order):
        return list(opinion.order)
    return [_fill(items, path, opinion)]
