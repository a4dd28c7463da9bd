"""Every message that the troubleshooting page explains is one that the code prints."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")

TITLES = re.findall(r"^(`[^\n]+)\n:   ", PAGE, re.MULTILINE)


def printed() -> str:
    """All literal text of the package, with one character where a value is filled in."""
    texts = []
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = (v.value if isinstance(v, ast.Constant) else "…" for v in node.values)
                texts.append("".join(map(str, parts)))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.append(node.value)
    return " ".join(" ".join(texts).split())


PRINTED = printed()


def fragments(title: str) -> list[str]:
    """The parts of a title in backquotes that are long enough to be of one message."""
    matches = re.findall(r"`([^`]+)`", title)
    pieces = [
        piece.strip() for text in matches for piece in re.split(r"…|[A-Z_]{6,}|\"|\bN\b", text)
    ]
    return [piece for piece in pieces if len(piece) >= 8]


@pytest.mark.parametrize("title", TITLES)
def test_a_title_quotes_a_message(title):
    missing = [piece for piece in fragments(title) if piece not in PRINTED]
    assert fragments(title)
    assert not missing
