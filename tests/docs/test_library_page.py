"""Every block of Python in docs/library.md runs as it stands, one after the other."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "library.md"
KEYS = re.compile(r"(_API_KEY|_BASE_URL|^CLASH_)")
NEEDS_A_KEY = "# needs a key\n"


def blocks() -> list[tuple[int, str]]:
    """The blocks, each with the line of the page that it begins on."""
    page = PAGE.read_text(encoding="utf-8")
    return [
        (page.count("\n", 0, match.start(1)) + 1, match[1])
        for match in re.finditer(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    ]


def test_every_block_of_the_library_page_runs(tmp_path, monkeypatch, capsys):
    pytest.importorskip("pandas")
    for name in filter(KEYS.search, list(os.environ)):
        monkeypatch.delenv(name)
    (tmp_path / "datasets").symlink_to(ROOT / "datasets")
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "library_page"}
    ran = 0
    for line, block in blocks():
        code = compile("\n" * (line - 1) + block, PAGE, "exec")
        if not block.startswith(NEEDS_A_KEY):
            exec(code, namespace)
            ran += 1
    assert ran >= 10
    output = capsys.readouterr().out
    assert "fix:" in output  # the mistake names its fix
    assert (tmp_path / "report.html").is_file()
