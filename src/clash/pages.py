"""What every page of ours is made with: text that stays text, and nothing loaded from elsewhere."""

from __future__ import annotations

import base64
import hashlib
import zlib
from functools import cache
from typing import TYPE_CHECKING, Any

from clash.escape import visible

if TYPE_CHECKING:
    from pathlib import Path

    from jinja2 import Environment

_LEVEL = 4  # two thirds of the time of zlib's own choice, for a page larger by 5%


def clipped(text: str, length: int) -> str:
    """One line of at most ``length`` characters."""
    line = visible(" ".join(text.split()))
    return line if len(line) <= length else line[: length - 1] + "…"


def pack(data: bytes) -> str:
    """Deflated, in base64: nothing in it can end a script element or start another."""
    return base64.b64encode(zlib.compress(data, _LEVEL)).decode()


def policy(css: str, script: str, *, connect: str = "'none'", frame: str = "'none'") -> str:
    """What a page may do: run its one script, use its one style sheet, load nothing.

    Nor may the script make markup of a string, where the browser knows trusted types.
    """
    return (
        f"default-src 'none'; script-src '{digest(script)}'; style-src '{digest(css)}';"
        f" connect-src {connect}; frame-src {frame}; base-uri 'none'; form-action 'none';"
        " require-trusted-types-for 'script'; trusted-types 'none'"
    )


def digest(text: str) -> str:
    """The hash of an inline element, as a content security policy names it."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def source(file: Path) -> str:
    """A script or a style sheet, which goes into the page."""
    return file.read_text(encoding="utf-8")


def environment(folder: Path) -> Environment:
    """Templates that escape whatever is put into them, and show hidden characters."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )


def _finalize(value: Any) -> Any:  # noqa: ANN401 - whatever a template prints
    return visible(value) if type(value) is str else value
