"""Files that people write, read so that an error can name file, line and field."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from clash.errors import ConfigError, InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pydantic import BaseModel, ValidationError

    Loc = tuple[int | str, ...]

M = TypeVar("M", bound="BaseModel")
_SECRET_FIELD = re.compile(r"key|secret|password|auth|headers", re.IGNORECASE)
_KEY = re.compile(r"\b(?:sk-|AIza|gsk_|xai-|hf_)[\w-]{6,}")


@dataclass(frozen=True)
class Document:
    """A parsed value and the line of every field in it.

    Attributes:
        path: where it was read from, for messages.
        value: plain Python data.
        lines: line (from 1) by location, such as ``("judges", 2, "model")``.
    """

    path: Path
    value: Any
    lines: Mapping[Loc, int] = field(default_factory=dict)

    def line(self, loc: Loc) -> int | None:
        """The line of ``loc``, or of the nearest thing around it that has one."""
        while loc not in self.lines:
            if not loc:
                return None
            loc = loc[:-1]
        return self.lines[loc]

    def at(self, *loc: int | str) -> Document:
        """The part at ``loc``, with its own lines."""
        value = self.value
        for step in loc:
            value = value[step]
        lines = {k[len(loc) :]: n for k, n in self.lines.items() if k[: len(loc)] == loc}
        return Document(self.path, value, lines)

    def error(self, message: str, *loc: int | str, mend: str | None = None) -> InputError:
        """An :class:`InputError` that points at ``loc``."""
        return InputError(
            message, path=self.path, line=self.line(loc), field=dotted(loc) or None, mend=mend
        )


def dotted(loc: Loc) -> str:
    """``("judges", 2, "model")`` as ``judges[2].model``."""
    text = ""
    for step in loc:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def read_text(path: Path) -> str:
    """The text of a UTF-8 file.

    Raises:
        InputError: it is missing, a folder, or not UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError("no such file", path=path, mend="check the path") from None
    except IsADirectoryError:
        raise InputError("is a folder, expected a file", path=path) from None
    except PermissionError:
        raise InputError("may not be read (permission denied)", path=path) from None
    except UnicodeDecodeError as error:
        raise InputError(
            f"is not UTF-8 (byte {error.start})", path=path, mend="save it as UTF-8"
        ) from None


def read_yaml(path: Path) -> Document:
    """A YAML file (JSON is YAML too) with the line of each field.

    Raises:
        InputError: not YAML, or a key stands twice in one mapping.
    """
    import yaml

    text = read_text(path)
    loader = yaml.CSafeLoader if hasattr(yaml, "CSafeLoader") else yaml.SafeLoader
    try:
        root = yaml.compose(text, Loader=loader)
        value = yaml.load(text, Loader=loader)  # noqa: S506 - a safe loader either way
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise InputError(
            f"is not valid YAML: {error.problem or error.context}",
            path=path,
            line=mark.line + 1 if mark else None,
            mend="check indentation, quotes and colons there",
        ) from None
    except yaml.YAMLError as error:
        raise InputError(f"is not valid YAML: {error}", path=path) from None
    lines: dict[Loc, int] = {}
    if root is not None:
        _walk(path, root, (), lines)
    return Document(path, value, lines)


def _walk(path: Path, node: Any, loc: Loc, lines: dict[Loc, int]) -> None:  # noqa: ANN401 - yaml nodes
    lines.setdefault(loc, node.start_mark.line + 1)
    if node.id == "mapping":
        for key, value in node.value:
            here = (*loc, key.value)
            if here in lines:
                raise InputError(
                    f"the key {key.value!r} stands twice",
                    path=path,
                    line=key.start_mark.line + 1,
                    field=dotted(here),
                    mend="keep one of them",
                )
            lines[here] = key.start_mark.line + 1
            _walk(path, value, here, lines)
    elif node.id == "sequence":
        for index, value in enumerate(node.value):
            _walk(path, value, (*loc, index), lines)


def read_jsonl(path: Path) -> Iterator[Document]:
    """The records of a JSON Lines file, each with its line; blank lines are passed over.

    Raises:
        InputError: a line is not a JSON object.
    """
    # Not splitlines(): it also splits at U+2028 and its like, which JSON strings may hold as they are.
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except ValueError as error:
            raise InputError(
                f"is not JSON: {error}", path=path, line=number, mend="one JSON object a line"
            ) from None
        if not isinstance(value, dict):
            raise InputError("expected a JSON object", path=path, line=number)
        yield Document(path, value, {(): number})


def validate(
    model: type[M],
    document: Document,
    *,
    error: type[InputError] = ConfigError,
    context: Mapping[str, str] | None = None,
) -> M:
    """``document`` as a ``model``; ``context`` reaches the validators of every part of it.

    Raises:
        InputError: the first thing that is wrong, with file, line, field and what was expected.
    """
    from pydantic import ValidationError

    try:
        return model.model_validate(document.value, context=context)
    except ValidationError as invalid:
        raise _explain(invalid, document, error) from None


def _explain(invalid: ValidationError, document: Document, error: type[InputError]) -> InputError:
    first, *rest = invalid.errors(include_url=False)
    loc = tuple(step for step in first["loc"] if not _is_variant(step, document, first["loc"]))
    message = first["msg"].removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        message = "is not a key that clash knows"
    elif first["type"] != "missing" and not isinstance(first.get("input"), dict | list):
        message += _found(first["input"], loc)
    if rest:
        message += f" (and {len(rest)} more)"
    return error(message, path=document.path, line=document.line(loc), field=dotted(loc) or None)


def _found(value: object, loc: Loc) -> str:
    """What stands there, unless it may be a secret."""
    secret = any(_SECRET_FIELD.search(str(step)) for step in loc) or _KEY.search(str(value))
    return "" if secret else f" (found {value!r})"


def _is_variant(step: int | str, document: Document, loc: Loc) -> bool:
    """Whether ``step`` is pydantic's name for a member of a union, not a place in the file."""
    value = document.value
    for here in loc:
        if here is step:
            return isinstance(value, dict) and step not in value and step != loc[-1]
        try:
            value = value[here]
        except (KeyError, IndexError, TypeError):
            continue
    return False
