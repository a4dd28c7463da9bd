"""The calculated tables of docs/scale.md are those that docs/tables/scale.py prints."""

from __future__ import annotations

import runpy
import sys
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")


def test_the_calculated_tables_are_current(monkeypatch, capsys):
    script = ROOT / "docs" / "tables" / "scale.py"
    monkeypatch.setattr(sys, "argv", [str(script)])
    runpy.run_path(str(script), run_name="__main__")
    _, costs, *tables = capsys.readouterr().out.strip().split("\n\n")
    assert len(tables) == 3
    for table in tables:
        assert table in PAGE
    # Prices change with each version of the price table; the page names the one that it has.
    has_prices_of_page = f"genai-prices {version('genai-prices')})" in PAGE
    assert (costs in PAGE) == has_prices_of_page
