"""Find the files that ship with clash: ``prompts/``, ``configs/`` and ``datasets/``.

A wheel holds them inside the package; a checkout and an editable install at the top of the
repository.
"""

from __future__ import annotations

from pathlib import Path

from clash.errors import ConfigError, one_of

_WHEEL_ROOT = Path(__file__).parent / "_assets"
_CHECKOUT_ROOT = Path(__file__).parents[2]


def root() -> Path:
    """The folder that holds ``prompts``, ``configs`` and ``datasets``."""
    return _WHEEL_ROOT if _WHEEL_ROOT.is_dir() else _CHECKOUT_ROOT


def path(*parts: str) -> Path:
    """The path of a shipped file: ``path("prompts", "judge.md")``.

    Raises:
        ConfigError: it does not exist.
    """
    file = root().joinpath(*parts)
    if not file.exists():
        raise ConfigError("is not among the files that ship with clash", path="/".join(parts))
    return file


def panels() -> dict[str, Path]:
    """The shipped panels by name."""
    return {file.stem: file for file in sorted(path("configs", "panels").glob("*.yaml"))}


def panel(name_or_path: str) -> Path:
    """The path of a panel file, given as the name of a shipped panel or as a path.

    Raises:
        ConfigError: neither exists.
    """
    shipped_panels = panels()
    if name_or_path in shipped_panels:
        return shipped_panels[name_or_path]
    if Path(name_or_path).is_file():
        return Path(name_or_path)
    raise ConfigError(
        f"no panel {name_or_path!r}",
        field="panel",
        hint=one_of(name_or_path, shipped_panels, beside="or the path of a panel file"),
    )
