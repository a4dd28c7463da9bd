"""Text that stays text, and shows what would otherwise act unseen."""

from __future__ import annotations

import re

HIDDEN = "\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
"""Control characters and those that turn the direction of what follows, as a set of a pattern.

Tab and line feed stay; so do joiners, of which emoji and several scripts are made.
"""

_HIDDEN = re.compile(f"[{HIDDEN}]")


def plain(text: str) -> str:
    """The text with every hidden character written out, as ``[U+202E]``."""
    return _HIDDEN.sub(lambda found: f"[U+{ord(found[0]):04X}]", text.replace("\r\n", "\n"))


def clipped(text: str, length: int) -> str:
    """One line of at most ``length`` characters."""
    line = plain(" ".join(text.split()))
    return line if len(line) <= length else line[: length - 1] + "…"
