"""Earlier calibrators as a prior: what is read from them, and what it changes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from clash.analysis.calibration.calibrator import read_calibrator
from clash.analysis.calibration.priors import panel_of, prior_for
from clash.cli.calibrate import calibrate
from clash.errors import InputError
from clash.stats.selection import blocks
from clash.stats.selection.candidate_methods import SelectionSettings
from clash.stats.selection.model_choice import choose, prior_weights
from clash.stats.selection.panel import PanelVotes

if TYPE_CHECKING:
    from pathlib import Path

app = typer.Typer()
app.command()(calibrate)
runner = CliRunner()
FAMILIES = ("logistic", "one-coin-isotonic", "majority")
FEW = ["--splits", "3", "--jobs", "1", "--families", ",".join(FAMILIES), "--k", "1,3"]


def _write(path: Path, n: int, labels: str = "sides", seed: int = 0) -> Path:
    """Three judges, the third of them turned; or one that scores, with two that do not know."""
    rng = np.random.default_rng(seed)
    with path.open("w") as out:
        for item in range(n):
            side = int(rng.integers(0, 2))
            for judge, skill in enumerate((0.75, 0.75, 0.2)):
                vote = side if rng.random() < skill else 1 - side
                vote_value = "AB"[vote] if labels == "sides" else 1 + 4 * vote
                label = "AB"[side] if labels == "sides" else 1 + 4 * side
                line = {
                    "item": f"q{item}",
                    "judge": f"j{judge}",
                    "vote": vote_value,
                    "label": label,
                }
                out.write(json.dumps(line) + "\n")
    return path


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A calibrator of 200 rows."""
    folder = tmp_path_factory.mktemp("earlier")
    out = folder / "earlier.json"
    votes = _write(folder / "v.jsonl", 200, seed=1)
    assert runner.invoke(app, [str(votes), "--out", str(out), *FEW]).exit_code == 0
    return out


def test_a_calibrators_rows_come_back_as_they_were_counted(earlier: Path) -> None:
    calibrator = read_calibrator(earlier)
    panel = panel_of(calibrator)
    assert int(panel.has_label.sum()) == calibrator.training.n
    counts = panel.rows(np.flatnonzero(panel.has_label)).evidence(panel.n_patterns)
    assert sorted(counts.n.tolist()) == sorted(p.n for p in calibrator.patterns)
    assert counts.s.sum() == pytest.approx(sum(p.s[0] for p in calibrator.patterns))
    assert panel.n_judges == len(calibrator.asked)


def test_a_panel_with_a_turned_judge_makes_learners_of_the_next(earlier: Path) -> None:
    """There majority is bad and logistic is good, which is what the prior says of others."""
    prior = prior_for("binary", 60, FAMILIES, {"a": read_calibrator(earlier)}, 0)
    weights = dict(prior.weights)
    assert weights["logistic"] + weights["one-coin-isotonic"] > 0.8
    assert prior_for("binary", 60, FAMILIES, {}, 0).family == "one-coin-isotonic"
    with pytest.raises(InputError, match="binary target") as error:
        prior_for("scalar", 60, FAMILIES, {"a.json": read_calibrator(earlier)}, 0)
    assert "a.json" in str(error.value)


def test_weights_before_any_label_are_shared_as_the_prior_says() -> None:
    """Majority's third, the menu's third over seven, and the prior's third on most judges."""
    settings = SelectionSettings(rules=("information-first",), sizes=(1, 3), families=FAMILIES)
    candidates = settings.candidates(3)
    usable = np.ones(len(candidates), bool)
    earlier = (("logistic", 0.75), ("one-coin-isotonic", 0.25))
    weights = prior_weights(candidates, usable, earlier)
    candidate_index = {(c.family, c.k, c.path): i for i, c in enumerate(candidates)}
    uniform_weight = 1 / 3 / len(candidates)
    assert weights[0] == pytest.approx(1 / 3 + uniform_weight)
    assert weights[candidate_index["logistic", 3, "information-first"]] == pytest.approx(
        0.25 + uniform_weight
    )
    assert weights[candidate_index["one-coin-isotonic", 3, "information-first"]] == pytest.approx(
        1 / 12 + uniform_weight
    )
    assert weights[candidate_index["logistic", 1, "information-first"]] == pytest.approx(
        uniform_weight
    )
    # A family that was refused passes its share on.
    usable[candidate_index["one-coin-isotonic", 3, "information-first"]] = False
    usable[candidate_index["one-coin-isotonic", 1, "information-first"]] = False
    assert prior_weights(candidates, usable, earlier).sum() == pytest.approx(1)


def test_where_nothing_is_clearly_better_the_prior_is_deployed() -> None:
    """Sixteen labels of three equal judges tell nothing apart."""
    rng = np.random.default_rng(0)
    label = rng.integers(0, 2, 16)
    right = rng.random((16, 3)) < 0.8
    votes = np.where(right, label[:, None], 1 - label[:, None]).astype(float)
    panel = PanelVotes.of(votes, label.astype(float), np.arange(16), "binary")
    roles = blocks.deal(panel.group, np.arange(16), blocks.SplitPlan(), rng)
    for family in ("one-coin-isotonic", "logistic"):
        settings = SelectionSettings(
            sizes=(1, 3), families=FAMILIES, combine="one", prior=((family, 1.0),)
        )
        choice = choose(panel, roles, panel.votes(np.arange(16)), settings, rng)
        assert (choice.candidate.family, choice.candidate.k) == (family, 3)


def test_sixteen_labels_are_enough_with_a_prior_and_too_few_without(
    earlier: Path, tmp_path: Path
) -> None:
    votes = _write(tmp_path / "new.jsonl", 16, seed=3)
    refused_result = runner.invoke(app, [str(votes), *FEW])
    assert isinstance(refused_result.exception, InputError)
    assert "--prior" in str(refused_result.exception)
    words = [str(votes), "--prior", str(earlier), "--json", "--out", str(tmp_path / "c.json"), *FEW]
    record = json.loads(runner.invoke(app, words).stdout)
    assert record["n"] == 16
    assert record["prior"]["panels"] == 1
    assert record["prior"]["labels"] == 16
    assert sum(record["prior"]["weights"].values()) == pytest.approx(1)
    assert (tmp_path / "c.json").is_file()
    output = runner.invoke(app, [str(votes), "--prior", "task", *FEW]).stdout
    assert "prior: one-coin-isotonic, for targets of this kind" in output


def test_a_prior_that_is_none_is_refused(earlier: Path, tmp_path: Path) -> None:
    scores = _write(tmp_path / "scores.jsonl", 60, labels="scores")
    for prior, error in ((str(earlier), "scalar"), (str(tmp_path / "none.json"), "none.json")):
        result = runner.invoke(app, [str(scores), "--prior", prior, *FEW])
        assert isinstance(result.exception, InputError)
        assert error in str(result.exception)
