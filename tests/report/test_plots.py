"""Figures are files that a browser and an eye can read."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from clash.report.plots import PlotCurve, curves, heat_map, png, save, svg

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ["first judge", "second & third"]
MATRIX = np.array([[np.nan, 0.25], [0.25, np.nan]])


def heat() -> str:
    return svg(heat_map(MATRIX, NAMES, title="Residual correlation", unit="r"))


def test_the_same_data_gives_the_same_svg() -> None:
    assert heat() == heat()


def test_heat_map_says_names_values_and_nothing_for_missing() -> None:
    """Names and numbers are text in the SVG; a NaN cell has no number."""
    texts = [
        "".join(node.itertext()).strip()
        for node in ET.fromstring(heat()).iter()
        if node.tag.endswith("text")
    ]
    assert set(NAMES) <= set(texts)
    assert texts.count("0.25") == 2
    assert "nan" not in texts


@pytest.mark.parametrize("matrix", [np.zeros((2, 2)), np.full((2, 2), np.nan)])
def test_a_matrix_without_contrast_is_drawn(matrix: np.ndarray) -> None:
    assert png(heat_map(matrix, NAMES, title="", unit="")).startswith(b"\x89PNG")


def test_many_judges_are_colours_only() -> None:
    names = [f"j{i}" for i in range(20)]
    text = svg(heat_map(np.full((20, 20), 0.25), names, title="", unit=""))
    assert ">0.25<" not in text


def test_curves_have_a_legend_entry_each() -> None:
    lines = [
        PlotCurve("exact", [1, 2], [0.3, 0.2]),
        PlotCurve("sampled", [1, 2], [0.31, 0.2], error=[0.02, 0.02]),
        PlotCurve("limit", [], [0.1], style="level"),
    ]
    text = svg(curves([lines], titles=["panel"], x_label="judges", y_label="risk"))
    for word in ("exact", "sampled", "limit", "panel", "judges", "risk"):
        assert f">{word}<" in text


def test_save_makes_the_folder(tmp_path: Path) -> None:
    figure = heat_map(MATRIX, NAMES, title="", unit="")
    assert [path.name for path in save(figure, tmp_path / "new", "map")] == ["map.svg", "map.png"]
