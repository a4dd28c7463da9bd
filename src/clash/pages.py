"""What every page of ours is made with: text that stays text, and nothing loaded from elsewhere."""

from __future__ import annotations

import base64
import hashlib
import re
import zlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from jinja2 import Environment

HIDDEN = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff"
)
"""What acts or hides unseen, as a set of a pattern: control characters, those that turn the
direction of what follows, blanks without width, and the tags in which text is smuggled past eyes.

Tab and line feed stay; so do joiners, of which emoji and several scripts are made.
"""

_HIDDEN = re.compile(f"[{HIDDEN}]")
_LEVEL = 4  # two thirds of the time of zlib's own choice, for a page larger by 5%


def plain(text: str) -> str:
    """The text with every hidden character written out, as ``[U+202E]``."""
    return _HIDDEN.sub(lambda found: f"[U+{ord(found[0]):04X}]", text.replace("\r\n", "\n"))


def clipped(text: str, length: int) -> str:
    """One line of at most ``length`` characters."""
    line = plain(" ".join(text.split()))
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
    return plain(value) if type(value) is str else value
