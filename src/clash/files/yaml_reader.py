"""Build YAML from its events, so that a hostile file is refused while it is read.

PyYAML's own composer recurses in C, where 200,000 brackets end the process. It also shares the
values that an alias repeats, so that ten lines can stand for a billion values, which cost time once
something walks over them. This reader counts depth, values and repetitions while it reads, and
keeps the line of each field.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import yaml

from clash.errors import InputError, field_path
from clash.files.inputs import MAX_DEPTH

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping
    from pathlib import Path

    Lines: TypeAlias = "int | Branch"

MAX_NODES = 500_000
"""Values in a file. An item of a prompts file has about ten and takes half a kilobyte of memory."""

MAX_REPEATED = 100_000
"""Values that all aliases together may repeat."""

_LONGEST_NUMBER = 64
_MAX_STEPS = 8
_STR, _MERGE = "tag:yaml.org,2002:str", "tag:yaml.org,2002:merge"
_COLLECTIONS = {None, "!", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"}
_Loader = yaml.CSafeLoader if hasattr(yaml, "CSafeLoader") else yaml.SafeLoader


@dataclass(frozen=True, slots=True)
class Branch:
    """The line of a mapping or list, and those of its parts; a scalar has only a line."""

    line: int
    parts: Mapping[object, Lines]


def compose(text: str, path: Path) -> tuple[Any, Lines | None]:
    """The value of a YAML text, and the line of every part of it.

    Raises:
        InputError: it is not YAML, or exceeds a bound.
    """
    try:
        return _Tree(text, path).document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise InputError(
            f"is not valid YAML: {error.problem or error.context}",
            path=path,
            line=mark.line + 1 if mark else None,
            hint="check indentation, quotes and colons there",
        ) from None
    except yaml.YAMLError as error:
        raise InputError(f"is not valid YAML: {error}", path=path) from None


class _Tree:
    """Builds values and their lines from the events of one text."""

    def __init__(self, text: str, path: Path) -> None:
        self._loader: Any = _Loader(text)
        self._path = path
        self._loc: list[Any] = []
        self._anchors: dict[str, tuple[Any, int] | None] = {}
        """By anchor: the value and the number of values in it; None while it is being read."""
        self._nodes = self._n_repeats = 0

    def document(self) -> tuple[Any, Lines | None]:
        loader = self._loader
        loader.get_event()  # the start of the stream
        if loader.check_event(yaml.StreamEndEvent):
            return None, None
        loader.get_event()  # the start of the document
        value, lines = self._node(loader.get_event())
        loader.get_event()  # its end
        if not loader.check_event(yaml.StreamEndEvent):
            self._refuse(loader.get_event(), "contains a second document", "keep one, without ---")
        return value, lines

    def _node(self, event: Any, line: int | None = None) -> tuple[Any, Lines]:  # noqa: ANN401 - yaml events
        """A value and its lines; ``line`` is the line of its key, where it has one."""
        line = event.start_mark.line + 1 if line is None else line
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event), line
        self._nodes += 1
        if self._nodes > MAX_NODES:
            self._refuse(event, f"holds more than {MAX_NODES:,} values", "write JSON Lines instead")
        if len(self._loc) > MAX_DEPTH:
            self._refuse(event, f"is nested more than {MAX_DEPTH} levels deep", "flatten it")
        if event.anchor is None:
            return self._content(event, line)
        self._anchors[event.anchor] = None
        before = self._nodes + self._n_repeats
        value, lines = self._content(event, line)
        self._anchors[event.anchor] = value, self._nodes + self._n_repeats - before + 1
        return value, lines

    def _part(self, event: Any, step: object, line: int | None = None) -> tuple[Any, Lines]:  # noqa: ANN401 - yaml events
        """The value at ``step`` of the list or mapping that is being read."""
        self._loc.append(step)
        part = self._node(event, line)
        self._loc.pop()
        return part

    def _content(self, event: Any, line: int) -> tuple[Any, Lines]:  # noqa: ANN401 - yaml events
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event, self._tag(event)), line
        if event.tag not in _COLLECTIONS:
            self._refuse(event, f"the tag {event.tag} is not supported", "remove it")
        read = self._list if isinstance(event, yaml.SequenceStartEvent) else self._mapping
        value, parts = read()
        return value, Branch(line, parts)

    def _alias(self, event: Any) -> Any:  # noqa: ANN401 - any value
        name = event.anchor
        if name not in self._anchors:
            self._refuse(event, f"the alias *{name} is used before its anchor", "define it first")
        target = self._anchors[name]
        if target is None:
            self._refuse(event, f"&{name} contains itself", "write the value out")
        value, size = target
        self._n_repeats += size
        if self._n_repeats > MAX_REPEATED:
            self._refuse(
                event, f"aliases repeat more than {MAX_REPEATED:,} values", "write them out"
            )
        return value

    def _list(self) -> tuple[list[Any], dict[object, Lines]]:
        values: list[Any] = []
        parts: dict[object, Lines] = {}
        while not isinstance(event := self._loader.get_event(), yaml.SequenceEndEvent):
            value, parts[len(values)] = self._part(event, len(values))
            values.append(value)
        return values, parts

    def _mapping(self) -> tuple[dict[Hashable, Any], dict[object, Lines]]:
        fields: dict[Hashable, Any] = {}
        merged_fields: dict[Hashable, Any] = {}
        parts: dict[object, Lines] = {}
        while not isinstance(event := self._loader.get_event(), yaml.MappingEndEvent):
            line = event.start_mark.line + 1
            key = self._key(event)
            value, lines = self._part(self._loader.get_event(), key, line)
            if key is _MERGE:
                merged_fields = {**self._sources(event, value), **merged_fields}
            elif key in fields:
                self._loc.append(key)
                self._refuse(event, f"the key {event.value!r} appears twice", "keep one of them")
            else:
                fields[key], parts[key] = value, lines
        return {**merged_fields, **fields}, parts

    def _key(self, event: Any) -> Hashable:  # noqa: ANN401 - yaml events
        if isinstance(event, yaml.ScalarEvent) and event.value == "<<" and event.implicit[0]:
            return _MERGE
        key, _ = self._node(event)
        if isinstance(key, list | dict):
            self._refuse(event, "a list or mapping cannot be a key", "write the key as text")
        return key  # type: ignore[no-any-return]

    def _sources(self, event: Any, value: Any) -> dict[Hashable, Any]:  # noqa: ANN401 - yaml
        """The fields that ``<<:`` merges in; the first mapping that has a key counts."""
        sources = value if isinstance(value, list) else [value]
        if not all(isinstance(source, dict) for source in sources):
            self._refuse(event, "<< merges mappings only", "write `<<: *anchor` of a mapping")
        return {key: part for source in reversed(sources) for key, part in source.items()}

    def _tag(self, event: Any) -> str:  # noqa: ANN401 - yaml events
        if event.tag is not None and event.tag != "!":
            return str(event.tag)
        if not event.implicit[0] or event.value[:1] not in self._loader.yaml_implicit_resolvers:
            return _STR
        # Long digits parsed as sexagesimal numbers take quadratic time; nobody writes such numbers.
        if len(event.value) > _LONGEST_NUMBER:
            return _STR
        return str(self._loader.resolve(yaml.ScalarNode, event.value, event.implicit))

    def _scalar(self, event: Any, tag: str) -> Any:  # noqa: ANN401 - any scalar
        if tag == _STR:
            return event.value
        construct = self._loader.yaml_constructors.get(tag)
        if construct is None or tag in _COLLECTIONS or len(event.value) > _LONGEST_NUMBER:
            self._refuse(event, f"the tag {tag} is not supported here", "remove it")
        node = yaml.ScalarNode(tag, event.value, event.start_mark, event.end_mark)
        try:
            return construct(self._loader, node)
        except ValueError as error:  # a date of month 13, an explicit !!int of a million digits
            self._refuse(event, f"is not a valid value: {error}", "write it in quotes")

    def _refuse(self, event: Any, message: str, hint: str) -> NoReturn:  # noqa: ANN401 - yaml events
        line = event.start_mark.line + 1
        # Deeper down, the path tells no more than the line.
        field = field_path(self._loc[:_MAX_STEPS]) or None
        raise InputError(message, path=self._path, line=line, field=field, hint=hint)
