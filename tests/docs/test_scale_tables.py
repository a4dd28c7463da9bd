"""The calculated tables of docs/scale.md are those that docs/tables/scale.py prints."""

from __future__ import annotations

import re
import runpy
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")


def test_the_calculated_tables_are_current(monkeypatch, capsys):
    named = re.search(r"genai-prices (\S+)\)", PAGE)[1]
    if named != version("genai-prices"):
        pytest.skip(f"the page has the prices of genai-prices {named}")
    script = ROOT / "docs" / "tables" / "scale.py"
    monkeypatch.setattr(sys, "argv", [str(script)])
    runpy.run_path(str(script), run_name="__main__")
    _, *tables = capsys.readouterr().out.strip().split("\n\n")
    assert len(tables) == 4
    for table in tables:
        assert table in PAGE
