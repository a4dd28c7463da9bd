"""What a notebook has (paths, lists of dicts, data frames, callables) in the form of files.

Data in memory are written to a temporary file and read as any other, so that they meet the same
checks and the same messages.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from clash.errors import ConfigError, InputError

if TYPE_CHECKING:
    from collections.abc import Iterator


_RESPONSE = "response:"

Prompts = Any
"""A path, a list of texts or dicts, or a data frame."""
Candidates = Any
"""A list of models, dicts and callables, or a dict of name to one of these."""
PanelSpec = Any
"""A name or path of a panel, a dict, or judges (models, dicts, callables) in a list or by name."""
VotesSource = Any
"""A path, a :class:`~clash.Run`, a list of dicts, or a data frame."""


@contextmanager
def as_file(source: Any, name: str) -> Iterator[Path]:  # noqa: ANN401 - what a notebook has
    """The source as a file: itself where it is a path, else JSON lines called ``name``.

    Raises:
        InputError: it is neither a path, a sequence of texts or dicts, nor a data frame.
    """
    if isinstance(source, str | Path):
        _check_path(source, Path(name).stem)
        yield Path(source)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        rows = _rows(source, path.stem)
        path.write_bytes(b"".join(_line(row, i, path.stem) for i, row in enumerate(rows, 1)))
        try:
            yield path
        except InputError as error:
            if error.path is not None and Path(error.path) == path:
                error.path = path.stem  # entry 3 of the prompts, not line 3 of a file that is gone
            raise


def _check_path(source: str | Path, name: str) -> None:
    """Refuse a text that was meant as a prompt; other paths are checked where they are read."""
    is_text = isinstance(source, str) and (" " in source or "\n" in source)
    if is_text and not os.path.exists(source):  # noqa: PTH110 - a long text is no path, and no error
        raise InputError(
            f"no such file: {source!r:.60}", field=name, hint="a text is an entry of a list: [text]"
        )


def _rows(source: Any, name: str) -> list[dict[str, Any]]:  # noqa: ANN401 - what a notebook has
    if hasattr(source, "to_dict") and hasattr(source, "columns"):
        return [_without_blanks(row) for row in source.to_dict(orient="records")]
    # A set has no order, and another one in the next process.
    if isinstance(source, Mapping | Set | bytes) or not isinstance(source, Iterable):
        raise InputError(
            f"cannot be read: {type(source).__name__}",
            field=name,
            hint="give a path, a list of texts or dicts, or a data frame",
        )
    return [_row(prompt) for prompt in source]


def _line(row: dict[str, Any], number: int, name: str) -> bytes:
    try:
        return json.dumps(row, ensure_ascii=False, allow_nan=False).encode() + b"\n"
    except (TypeError, ValueError) as error:
        raise InputError(
            f"cannot be written as JSON: {error}",
            field=f"{name}:{number}",
            hint="texts, numbers, lists and dicts; str() of everything else",
        ) from None


def _row(prompt: object) -> dict[str, Any]:
    if isinstance(prompt, str):
        return {"prompt": prompt}
    if isinstance(prompt, Mapping):
        return {str(name): _scalar(value) for name, value in prompt.items()}
    if hasattr(prompt, "model_dump"):
        return prompt.model_dump(mode="json", exclude_none=True)  # type: ignore[no-any-return]
    raise InputError(f"cannot be read: {prompt!r:.60}", hint="each entry is a text or a dict")


def _without_blanks(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of a data frame: NaN is a blank cell, ``response:NAME`` columns are responses.

    A blank vote stays, as null: the judge was asked and failed.
    """
    values = {str(k): _scalar(v) for k, v in row.items()}
    values = {k: v for k, v in values.items() if v is not None or k == "vote"}
    responses = {k.removeprefix(_RESPONSE): v for k, v in values.items() if k.startswith(_RESPONSE)}
    plain = {k: v for k, v in values.items() if not k.startswith(_RESPONSE)}
    return {**plain, "responses": responses} if responses else plain


def _scalar(value: Any) -> Any:  # noqa: ANN401 - any cell
    if hasattr(value, "tolist") and not isinstance(value, str | bytes):
        value = value.tolist()  # a numpy scalar or array
    # The blanks of pandas, which need not be installed.
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    return None if isinstance(value, float) and math.isnan(value) else value


@dataclass
class Callables:
    """Models as the configuration writes them, and the Python functions among them by name."""

    functions: dict[str, Callable[..., Any]] = field(default_factory=dict)

    def candidates(self, candidates: Candidates) -> list[Any] | None:
        """Candidates as entries of ``clash.yaml``."""
        if candidates is None:
            return None
        if isinstance(candidates, str) or callable(candidates):
            candidates = [candidates]
        if isinstance(candidates, Mapping):
            return [self._settings_of(spec, str(name)) for name, spec in candidates.items()]
        if not isinstance(candidates, Iterable):
            candidates = [candidates]  # which is refused
        return [self._settings_of(spec, None) for spec in candidates]

    def panel(self, panel: PanelSpec) -> Any:  # noqa: ANN401 - a name or an entry
        """A panel as an entry of ``clash.yaml``."""
        if panel is None or isinstance(panel, str):
            return panel
        if isinstance(panel, Path):
            return str(panel)
        if callable(panel):
            panel = [panel]
        if hasattr(panel, "model_dump"):
            return panel.model_dump(mode="json", exclude_unset=True)
        if isinstance(panel, Mapping) and "judges" in panel:
            return {"name": "custom", **panel, "judges": self.candidates(panel["judges"])}
        if isinstance(panel, Mapping) and not any(map(callable, panel.values())):
            return dict(panel)
        return {"name": "custom", "judges": self.candidates(panel)}

    def _settings_of(self, spec: Any, name: str | None) -> dict[str, Any]:  # noqa: ANN401 - a model
        if isinstance(spec, str):
            return {"model": spec} if name is None else {"id": name, "model": spec}
        if isinstance(spec, Mapping):
            return dict(spec) if name is None else {"id": name, **spec}
        if not callable(spec):
            raise ConfigError(
                f"is not a model: {spec!r:.60}",
                field=name,
                hint='give "provider/model", a dict as in clash.yaml, or a function',
            )
        from clash.providers import python_callable

        label = name or getattr(spec, "__name__", type(spec).__name__).strip("<>")
        if label in self.functions and self.functions[label] != spec:
            raise ConfigError(
                f"two functions are called {label!r}", hint="name them: {'mine': f, 'other': g}"
            )
        self.functions[label] = spec
        return {"id": label, **python_callable.describe(label, spec)}


class HasPath(Protocol):
    """A run that is open."""

    @property
    def path(self) -> Path:
        """The run folder."""
        ...


def run_path(run: str | Path | HasPath) -> str | Path:
    """The path of a run, or the text that names one."""
    return run if isinstance(run, str | Path) else run.path
