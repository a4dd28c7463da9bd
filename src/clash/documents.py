"""Read files that people write, so that an error can name file, line and field."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from clash.errors import ConfigError, InputError, field_path, nearest, one_of
from clash.files.encodings import SAVE_AS_UTF8, is_utf16
from clash.files.inputs import MAX_DEPTH, MAX_WHOLE, byte_lines, open_bytes, read_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from pydantic import BaseModel, ValidationError
    from pydantic_core import ErrorDetails

    from clash.files.yaml_reader import Lines

    Loc = tuple[int | str, ...]

M = TypeVar("M", bound="BaseModel")

MAX_YAML = 64 << 20
"""Bytes of a YAML file."""

_QUOTE_HINT = 'write it in quotes: "…"'
_PLAIN_MESSAGES = {
    "missing": "is missing",
    "string_type": "expected text",
    "list_type": "expected a list",
    "dict_type": "expected keys and values",
}
"""What is wrong, by pydantic's name of it, where pydantic's own words are those of a programmer."""

_SECRET_FIELD = re.compile(r"key|secret|password|auth|headers", re.IGNORECASE)
_KEY = re.compile(r"\b(?:sk-|AIza|gsk_|xai-|hf_)[\w-]{6,}")


@dataclass(frozen=True)
class Document:
    """A parsed value and the line of every field in it.

    Attributes:
        path: where it was read from, for messages.
        value: plain Python data.
        lines: its line, counted from 1, and those of its parts; None where the format has none.
    """

    path: Path
    value: Any
    lines: Lines | None = None

    def line(self, loc: Loc) -> int | None:
        """The line of ``loc``, or of the innermost part around it that has a line."""
        lines = _lines_at(self.lines, loc)
        return lines if lines is None or isinstance(lines, int) else lines.line

    def at(self, *loc: int | str) -> Document:
        """The part at ``loc``, with its own lines."""
        value = self.value
        for step in loc:
            value = value[step]
        return Document(self.path, value, _lines_at(self.lines, loc))

    def error(self, message: str, *loc: int | str, hint: str | None = None) -> InputError:
        """An :class:`InputError` that points at ``loc``."""
        return InputError(
            message, path=self.path, line=self.line(loc), field=field_path(loc) or None, hint=hint
        )


def _lines_at(lines: Lines | None, loc: Loc) -> Lines | None:
    for step in loc:
        if lines is None or isinstance(lines, int) or step not in lines.parts:
            break
        lines = lines.parts[step]
    return lines


def read_text(path: Path, limit: int = MAX_WHOLE) -> str:
    """The text of a UTF-8 or UTF-16 file, unpacked where it is gzip.

    Raises:
        InputError: it is missing, no regular file, larger than ``limit``, or not UTF-8.
    """
    data = read_bytes(path, limit)
    try:
        return data.decode("utf-16" if is_utf16(data) else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"is not UTF-8 (byte {error.start})", path=path, hint=SAVE_AS_UTF8
        ) from None


def read_yaml(path: Path) -> Document:
    """A YAML file (JSON is YAML too) with the line of each field.

    Raises:
        InputError: it is not YAML, repeats a key in a mapping, or exceeds a bound on size, depth
            or repetition that no file written by a person comes near.
    """
    from clash.files.yaml_reader import compose

    return Document(path, *compose(read_text(path, MAX_YAML), path))


def read_json(path: Path) -> Document:
    """A JSON file, plain or ``.gz``.

    Raises:
        InputError: it is missing, too large, or not JSON.
    """
    return Document(path, parse_json(read_bytes(path), path))


def read_jsonl(path: Path) -> Iterator[Document]:
    """The records of a JSON Lines file, each with its line; blank lines are skipped.

    Raises:
        InputError: a line is not a JSON object.
    """
    with open_bytes(path) as file:
        for number, line in enumerate(byte_lines(file, path), start=1):
            text = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
            if text.strip():
                yield Document(path, parse_record(text, path, number), number)


def parse_record(text: bytes, path: Path, line: int) -> dict[str, Any]:
    """One line of a JSON Lines file.

    Raises:
        InputError: it is not a JSON object.
    """
    value = parse_json(text, path, line, hint="one JSON object a line")
    if not isinstance(value, dict):
        raise InputError(
            "expected a JSON object",
            path=path,
            line=line,
            hint='names and values: {"name": "value"}',
        )
    return value


def parse_json(
    text: str | bytes, path: Path, line: int | None = None, *, hint: str | None = None
) -> Any:  # noqa: ANN401 - any JSON value
    """Parse a JSON value of a file; ``NaN`` is allowed, because pandas writes it.

    Raises:
        InputError: it is not JSON, not UTF-8, repeats a key in an object, or is nested deeper than
            ``MAX_DEPTH``.
    """
    try:
        value = json.loads(text, object_pairs_hook=_unique_keys)
    except _KeyTwiceError as error:
        message, hint = f"the key {error.key!r} appears twice", "remove one of the two"
        raise InputError(message, path=path, line=line, field=error.key, hint=hint) from None
    except UnicodeDecodeError as error:
        raise InputError(
            f"is not UTF-8 (byte {error.start})", path=path, line=line, hint="save it as UTF-8"
        ) from None
    except json.JSONDecodeError as error:
        where, hint = error.lineno if line is None else line, hint or "check that the file is whole"
        raise InputError(f"is not JSON: {error}", path=path, line=where, hint=hint) from None
    except ValueError as error:  # an integer of more digits than Python converts
        message = str(error).partition(";")[0]
        raise InputError(f"is not JSON: {message}", path=path, line=line, hint=hint) from None
    except RecursionError:
        raise _too_deep(path, line) from None
    if _is_deep(text, value):
        raise _too_deep(path, line)
    return value


class _KeyTwiceError(Exception):
    """An object has a key twice, and which of the two counts would be the parser's choice."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        keys = Counter(key for key, _ in pairs)
        raise _KeyTwiceError(next(key for key in keys if keys[key] > 1))
    return value


def _too_deep(path: Path, line: int | None) -> InputError:
    message = f"is nested more than {MAX_DEPTH} levels deep"
    return InputError(message, path=path, line=line, hint="flatten it")


def _is_deep(text: str | bytes, value: object) -> bool:
    """Whether a value is nested so deep that recursion over it may end the process."""
    brackets = ("[", "{") if isinstance(text, str) else (b"[", b"{")
    if sum(map(text.count, brackets)) <= MAX_DEPTH:  # type: ignore[arg-type]
        return False
    level: list[object] = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [part for outer in level for part in _parts(outer)]
        if not level:
            return False
    return True


def _parts(value: object) -> Iterable[object]:
    """The lists and objects in a value."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [part for part in inner if isinstance(part, dict | list)]


def validate(
    model: type[M],
    document: Document,
    *,
    error: type[InputError] = ConfigError,
    context: Mapping[str, str] | None = None,
) -> M:
    """Validate ``document`` as a ``model``; ``context`` reaches the validators of every part.

    Raises:
        InputError: the first error, with file, line, field and what was expected.
    """
    from pydantic import ValidationError

    try:
        return model.model_validate(document.value, context=context)
    except ValidationError as invalid:
        raise _explain(invalid, model, document, error) from None


def _explain(
    invalid: ValidationError,
    model: type[BaseModel],
    document: Document,
    error: type[InputError],
) -> InputError:
    errors = invalid.errors(include_url=False)
    # Where either a name or a section is allowed, a wrong section is reported as "no name" too.
    errors = [e for e in errors if not _is_no_name(e["type"], e.get("input"))] or errors
    # A misspelt key is missing under its right name too: the misspelling is the one to mend.
    first, *remaining = sorted(errors, key=lambda e: e["type"] != "extra_forbidden")
    loc = _file_loc(first, document)
    n_remaining = len({_file_loc(e, document) for e in remaining} - {loc})
    line = document.line(loc)
    message = _PLAIN_MESSAGES.get(first["type"], first["msg"].removeprefix("Value error, "))
    hint = first.get("ctx", {}).get("hint")
    if first["type"] == "extra_forbidden":
        message = f'unknown key "{loc[-1]}"'
        loc, hint = loc[:-1], _nearest_key(model, loc)
    elif first["type"] == "model_type" and not loc:
        message, hint = "expected keys and values", f"keys are {', '.join(_keys_at(model, ()))}"
    elif not isinstance(first.get("input"), dict | list):
        if first["type"] == "string_type":
            hint = _QUOTE_HINT
        elif choices := _texts_allowed(first):
            message, hint = "is none of the choices", one_of(str(first["input"]), choices)
        message += _quote_value(first["input"], loc)
    if n_remaining:
        message += f" (and {n_remaining} more)"
    return error(
        message,
        path=document.path,
        line=line,
        field=field_path(loc) or None,
        hint=hint,
    )


def _texts_allowed(problem: ErrorDetails) -> list[str]:
    """The texts that may stand where another one stands; empty where others may, too."""
    if problem["type"] != "literal_error":
        return []
    return re.findall(r"'([^']*)'", problem["ctx"]["expected"])


def _nearest_key(model: type[BaseModel], loc: Loc) -> str | None:
    """The hint for an unknown key at ``loc``: the nearest key that may stand there."""
    keys = _keys_at(model, loc[:-1])
    match = nearest(str(loc[-1]), keys)
    return f'did you mean "{match}"?' if match else f"one of {', '.join(keys)}" if keys else None


def _keys_at(model: type[BaseModel], loc: Loc) -> list[str]:
    """The keys of the section at ``loc``, where the models along the way are plain to see."""
    from pydantic import BaseModel

    models: list[type[BaseModel]] = [model]
    for step in loc:
        if isinstance(step, int):
            continue
        annotations = [m.model_fields[step].annotation for m in models if step in m.model_fields]
        models = [m for a in annotations for m in _models_in(a) if issubclass(m, BaseModel)]
    return list(dict.fromkeys(key for m in models for key in m.model_fields))


def _models_in(annotation: object) -> Iterator[type]:
    """The classes in an annotation such as ``list[Annotated[Judge, …]] | None``."""
    if isinstance(annotation, type) and not get_args(annotation):
        yield annotation
    for part in get_args(annotation):
        yield from _models_in(part)


def _is_no_name(kind: str, value: object) -> bool:
    return kind == "string_type" and isinstance(value, dict)


def _quote_value(value: object, loc: Loc) -> str:
    """The value, quoted for a message; empty where it may be a secret."""
    secret = any(_SECRET_FIELD.search(str(step)) for step in loc) or _KEY.search(str(value))
    if secret:
        return ""
    as_written = value.isoformat() if isinstance(value, date) else repr(value)
    return f" (found {as_written})"


def _file_loc(problem: ErrorDetails, document: Document) -> Loc:
    """Where a problem is in the file: pydantic names members of unions on the way, too."""
    loc = problem["loc"]
    return tuple(step for step in loc if not _is_variant(step, document, loc))


def _is_variant(step: int | str, document: Document, loc: Loc) -> bool:
    """Whether ``step`` is pydantic's name for a member of a union, not a place in the file."""
    value = document.value
    for loc_step in loc:
        if loc_step is step:
            if isinstance(value, dict):
                return step not in value and step != loc[-1]
            return not (isinstance(value, list) and isinstance(step, int))
        try:
            value = value[loc_step]
        except (KeyError, IndexError, TypeError):
            continue
    return False
