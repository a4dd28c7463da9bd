"""``clash calibrate --plots``: the pictures, and the numbers behind them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from clash.cli.calibrate import calibrate

if TYPE_CHECKING:
    from pathlib import Path

app = typer.Typer()
app.command()(calibrate)
runner = CliRunner()
WORDS = ["--splits", "3", "--jobs", "1", "--families", "logistic,joint-table", "--labels", "80"]


@pytest.fixture
def parity(tmp_path: Path) -> Path:
    """The label is the parity of three judges; a fourth is a coin."""
    rng = np.random.default_rng(0)
    file = tmp_path / "parity.votes.jsonl"
    with file.open("w") as out:
        for item, votes in enumerate(rng.integers(0, 2, (160, 4)).tolist()):
            label = sum(votes[:3]) % 2
            for judge, vote in enumerate(votes):
                line = {"item": f"q{item}", "judge": f"j{judge}", "vote": vote, "label": label}
                out.write(json.dumps(line) + "\n")
    return file


def test_map_and_stopping_plot_are_drawn_and_in_the_json(parity: Path, tmp_path: Path) -> None:
    """The whole panel's table sees the parity at 100 labels; one judge says nothing."""
    folder = tmp_path / "plots"
    result = runner.invoke(app, [str(parity), "--plots", str(folder), "--json", *WORDS])
    record = json.loads(result.stdout)
    names = {
        f"{stem}.{end}" for stem in ("regime-map", "stopping", "risk") for end in ("svg", "png")
    }
    assert {path.name for path in folder.iterdir()} == names
    assert {path.rpartition("/")[2] for path in record["plots"]} == names
    cells = {(cell["k"], cell["labels"]): cell for cell in record["regime_map"]}
    assert cells[4, 100]["winner"] == "joint-table"
    assert cells[4, 100]["gap"] > 0.1
    assert abs(cells[1, 100]["gap"]) < 0.02
    text = (folder / "regime-map.svg").read_text()
    assert "4 judges, 160 labelled rows" in text
    assert "steps help" in (folder / "stopping.svg").read_text()
    assert "with 90% confidence" in (folder / "risk.svg").read_text()


def test_without_a_table_in_the_menu_there_is_a_map_but_no_gap(
    parity: Path, tmp_path: Path
) -> None:
    words = [w.replace("logistic,joint-table", "logistic,mean-isotonic") for w in WORDS]
    result = runner.invoke(app, [str(parity), "--plots", str(tmp_path / "p"), *words])
    assert result.exit_code == 0
    assert "wrote" in result.stdout
    assert "regime-map.svg" in result.stdout.replace("\n", "")
