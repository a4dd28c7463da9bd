"""Finds what ships with clash: ``prompts/``, ``configs/`` and ``datasets/``.

In a wheel they lie inside the package, in a checkout and an editable install at its top.
"""

from __future__ import annotations

from pathlib import Path

from clash.errors import ConfigError

_PACKAGED = Path(__file__).parent / "_assets"
_CHECKOUT = Path(__file__).parents[2]


def root() -> Path:
    """The folder that holds ``prompts``, ``configs`` and ``datasets``."""
    return _PACKAGED if _PACKAGED.is_dir() else _CHECKOUT


def path(*parts: str) -> Path:
    """A shipped file, as ``path("prompts", "judge.md")``.

    Raises:
        ConfigError: it does not exist.
    """
    found = root().joinpath(*parts)
    if not found.exists():
        raise ConfigError("is not among the files that ship with clash", path="/".join(parts))
    return found


def panels() -> dict[str, Path]:
    """The shipped panels by name."""
    return {file.stem: file for file in sorted(path("configs", "panels").glob("*.yaml"))}


def panel(name_or_path: str) -> Path:
    """A panel file, by the name of a shipped one or by path.

    Raises:
        ConfigError: neither exists.
    """
    shipped = panels()
    if name_or_path in shipped:
        return shipped[name_or_path]
    if Path(name_or_path).is_file():
        return Path(name_or_path)
    raise ConfigError(
        f"no panel {name_or_path!r}",
        field="panel",
        hint=f"one of {', '.join(shipped)}, or the path of a panel file",
    )
