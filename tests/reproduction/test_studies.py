"""The papers' experiments on votes: what they measure is what is there, and no source is on both sides."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest
from typer.testing import CliRunner

from clash.cli.study import app
from clash.errors import ConfigError, InputError
from clash.report.studies import fcps_figures
from clash.reproduction.studies.fcps_study import (
    INFORMATION,
    SCALARS,
    TABLE,
    FcpsPlan,
    _deal,
    _Menu,
    fcps_study,
)
from clash.reproduction.studies.ising_study import IsingPlan, ising_study
from clash.reproduction.studies.sweep import PanelData, SweepPoint, _Draw, sweep
from clash.reproduction.studies.trials import over_items
from clash.stats.intervals import mean_clustered, wilson
from clash.stats.selection.panel import PanelVotes
from clash.stats.simulate.interactions import regime
from clash.stats.simulate.panels import IndependentPanel
from clash.votes import read_votes

if TYPE_CHECKING:
    from pathlib import Path

    from clash.votes import Votes

runner = CliRunner()
PANEL = IndependentPanel.of([0.9, 0.8, 0.75, 0.7, 0.65], [0.85, 0.8, 0.75, 0.7, 0.6], 0.5)


def _data(n: int = 600, seed: int = 0) -> PanelData:
    sample = PANEL.sample(n, np.random.default_rng(seed))
    return PanelData(sample.votes.astype(np.int8), sample.labels.astype(float), np.arange(n))


def _write(path: Path, votes: np.ndarray, labels: np.ndarray, copies: int = 1) -> Votes:
    lines = [
        {"item": f"q{i}-{c}", "group": f"g{i}", "judge": f"j{j}", "vote": v, "label": float(y)}
        for i, (row, y) in enumerate(zip(votes.tolist(), labels.tolist(), strict=True))
        for c in range(copies)
        for j, v in enumerate(row)
    ]
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return read_votes(path)


def test_each_rows_mean_and_each_trials_spread_are_in_the_interval():
    """One trial, each row tested once: the clustered interval; no difference: not a point."""
    rng = np.random.default_rng(1)
    x, groups = rng.normal(0.1, 0.3, 200).clip(-1, 1), np.arange(200) // 2
    single_block = over_items([np.arange(200)], [x], groups, least=-1.0)
    alone = mean_clustered(x, groups)
    assert (single_block.low, single_block.high) == pytest.approx((alone.low, alone.high))
    half = np.arange(100)
    two = over_items([half, half + 100], [x[:100], x[100:] + 0.2], groups, least=-1.0)
    assert two.half_width > mean_clustered(np.r_[x[:100], x[100:] + 0.2], groups).half_width
    empty_block = over_items([np.arange(50)], [np.zeros(50)], np.arange(50), least=-1.0)
    assert empty_block.high == -empty_block.low == wilson(0, 50).high


def test_majority_and_dawid_skene_reach_what_theory_says():
    """Uniform majority's accuracy has a closed form; Dawid-Skene is near Bayes' rule here."""
    cells = sweep(_data(1500), [SweepPoint(1200, 5)], ["majority", "dawid-skene"], 6, 0)
    exact = PANEL.majority_accuracy(0.5)
    for cell in cells:
        assert cell.n_fitted == cell.n_converged == 6
        assert cell.accuracy.low < exact + 0.03
        assert cell.accuracy.high > exact
    uniform, weighted_cell = cells
    assert uniform.against_uniform is None
    assert weighted_cell.against_weighted is None
    assert weighted_cell.against_uniform.high > 0
    assert uniform.accuracy.estimate == pytest.approx(uniform.by_trial.mean)


def test_a_model_that_needs_more_judges_is_counted_as_not_fitted():
    (cell,) = sweep(_data(), [SweepPoint(300, 3)], ["ising-class"], 2, 0)
    assert (cell.n_trials, cell.n_fitted, cell.accuracy) == (2, 0, None)
    assert "judges" in cell.refusal


def test_trials_nest_their_items_and_split_no_source():
    data = PanelData(np.zeros((90, 4), np.int8), np.tile([0.0, 1.0], 45), np.arange(90) // 3)
    draw = _Draw.of(data, np.random.default_rng(3))
    assert not set(data.groups[draw.train]) & set(data.groups[draw.test])
    assert (len(draw.test), len(draw.train)) == (18, 72)
    few = _Draw.of(data, np.random.default_rng(3)).train[:20]
    assert (few == draw.train[:20]).all()


def test_more_trials_keep_the_first_ones():
    few, more = (sweep(_data(), [SweepPoint(200, 4)], ["majority"], t, 7)[0] for t in (1, 2))
    again = sweep(_data(), [SweepPoint(200, 4)], ["majority"], 1, 7)[0]
    assert few == again
    assert few.accuracy != more.accuracy


def test_unlabelled_items_train_and_are_not_tested():
    data = _data(400)
    hidden_panel = PanelData(
        data.codes, np.where(np.arange(400) < 200, np.nan, data.truth), data.groups
    )
    draw = _Draw.of(hidden_panel, np.random.default_rng(0))
    assert (draw.test >= 200).all()
    assert (draw.train < 200).any()


def test_a_joint_table_is_equation_12_on_its_own_blocks(tmp_path: Path):
    """Risk of a prefix, its unseen share and its cell pressure, counted by hand."""
    rng = np.random.default_rng(2)
    votes, labels = rng.integers(0, 2, (160, 3)), rng.integers(0, 2, 160)
    panel = PanelVotes.of(votes, labels, np.arange(160), "binary")
    blocks = _deal(panel, np.arange(160), (24, 24, 48), np.random.default_rng(0))
    menu = _Menu(panel)
    (outcome,) = menu.run(blocks, (20,))
    rows = blocks.calibration[:20]
    base = (labels[rows].sum() + 0.5) / 21
    cells: dict[tuple[int, ...], list[int]] = {}
    for row in rows:
        cells.setdefault(tuple(votes[row]), []).append(labels[row])
    p = [
        (sum(record) + 0.5 * base) / (len(record) + 0.5)
        if (record := cells.get(tuple(votes[r])))
        else base
        for r in blocks.test
    ]
    edge = 1 / 44
    expected_risk = ((np.clip(p, edge, 1 - edge) - labels[blocks.test]) ** 2).mean()
    at = next(
        i for i, c in enumerate(menu.candidates)
        if (c.path, c.k, c.family) == (INFORMATION, 3, TABLE)
    )  # fmt: skip
    assert outcome.risks[at] == pytest.approx(expected_risk)
    pressure = outcome.pressures[INFORMATION, 3]
    counts = [len(cells.get(tuple(votes[r]), ())) for r in blocks.test]
    assert pressure.unseen == pytest.approx(np.mean([n == 0 for n in counts]))
    assert pressure.cell_pressure - pressure.unseen == pytest.approx(
        sum(1 / n for n in counts if n) / len(counts)
    )


ALIKE = IndependentPanel.of([0.7] * 7, [0.7] * 7, 0.5)


@pytest.mark.parametrize(
    ("sample", "labels", "favours_scalar"),
    [(ALIKE.sample, 64, True), (regime("parity").draw, 512, False)],
    ids=["additive", "parity"],
)
def test_known_laws_have_their_winner(tmp_path: Path, sample, labels: int, favours_scalar: bool):
    """Judges that are alike favour a scalar family; parity the joint table, its cells filled."""
    random_sample = sample(1400, np.random.default_rng(5))
    votes = _write(tmp_path / "v.jsonl", random_sample.votes, random_sample.labels)
    study = fcps_study(votes, FcpsPlan(splits=3, budgets=(labels,)), 0)
    (contest,) = study.contests
    assert contest.gap.excludes(0.0)
    assert (contest.gap.estimate > 0) == favours_scalar
    assert {line.name for line in study.scalars} == set(SCALARS)
    oracle, envelope = study.baselines[-1], study.baselines[-2]
    assert oracle.by_split.mean <= envelope.by_split.mean


def test_copies_of_a_source_stay_together(tmp_path: Path):
    sample = PANEL.sample(60, np.random.default_rng(0))
    votes = _write(tmp_path / "v.jsonl", sample.votes, sample.labels, copies=2)
    study = ising_study(votes, IsingPlan(trials=2, methods=("majority",)), 0)
    assert (study.n_rows, study.n_sources) == (120, 60)
    panel = PanelVotes.of(votes.matrix, votes.labels, votes.groups, "binary")
    blocks = _deal(panel, np.arange(120), (18, 18, 36), np.random.default_rng(0))
    parts = (blocks.selection, blocks.validation, blocks.test, blocks.calibration)
    sources = [set(votes.groups[part].tolist()) for part in parts]
    assert sum(map(len, sources)) == len(set.union(*sources)) == 60


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("study") / "v.jsonl"
    sample = PANEL.sample(240, np.random.default_rng(0))
    _write(path, sample.votes, sample.labels)
    return path


def test_json_and_files(file: Path, tmp_path: Path):
    words = ["--trials", "2", "--methods", "majority", "--train", "50,100", "--k", "3,5"]
    result = runner.invoke(app, ["ising", str(file), *words, "--json", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    assert record["seed"] == 0
    assert [cell["n_train"] for cell in record["by_train"]] == [50, 100]
    assert [cell["n_judges"] for cell in record["by_judges"]] == [3, 5]
    stems = {"ising-train", "ising-judges"}
    names = {f"{stem}.{kind}" for stem in stems for kind in ("svg", "png")} | {"study.json"}
    assert {path.name for path in tmp_path.iterdir()} == names
    assert len(record["written"]) == len(names)
    assert ">100</text>" in (tmp_path / "ising-train.svg").read_text(encoding="utf-8")


def test_every_figure_of_the_fourth_paper_is_drawn_from_the_study(file: Path):
    study = fcps_study(read_votes(file), FcpsPlan(splits=2, budgets=(20, 60)), 0)
    figures = fcps_figures(study)
    assert len(figures) == 7
    by_k = figures["fcps-risk-by-k"].axes[0].containers[0].lines[0].get_ydata()
    assert list(by_k) == [p.test.mean for p in study.prefixes if p.path == INFORMATION]
    dots = figures["fcps-risk-by-unseen"].axes[0].containers
    assert sum(len(line.lines[0].get_xdata()) for line in dots) == 2 * 2 * 5
    result = runner.invoke(app, ["fcps", str(file), "--splits", "2", "--labels", "20,60", "--json"])
    record = json.loads(result.stdout)
    assert [c["budget"] for c in record["contests"]] == [20, 60]
    assert "points" not in record


def test_terminal_answers_first(file: Path):
    result = runner.invoke(app, ["ising", str(file), "--trials", "2", "--methods", "one-coin"])
    assert result.stdout.startswith("Clearly right more often than the uniform majority: ")
    assert "by judges" in result.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--train", "20,x"], "not whole numbers"),
        (["--train", "5"], "out of range"),
        (["--train", "500"], "more than the 192"),
        (["--methods", "isnig-class"], "there is no model"),
    ],
)
def test_wrong_options_are_named(file: Path, words: list[str], message: str):
    result = runner.invoke(app, ["ising", str(file), *words])
    assert isinstance(result.exception, ConfigError | InputError)
    assert message in str(result.exception)


@pytest.mark.parametrize("command", ["ising", "fcps"])
@pytest.mark.parametrize(
    ("n", "judges", "labels"),
    [(20, 4, "both"), (100, 1, "both"), (100, 4, "one"), (100, 4, "none")],
)
def test_votes_that_cannot_be_studied(
    tmp_path: Path, command: str, n: int, judges: int, labels: str
):
    rng = np.random.default_rng(0)
    y = {"both": rng.integers(0, 2, n), "one": np.ones(n), "none": np.full(n, np.nan)}[labels]
    lines = [
        {"item": f"q{i}", "judge": f"j{j}", "vote": int(rng.integers(2))}
        | ({} if np.isnan(y[i]) else {"label": int(y[i])})
        for i in range(n)
        for j in range(judges)
    ]
    path = tmp_path / "v.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    result = runner.invoke(app, [command, str(path), "-q"])
    assert isinstance(result.exception, InputError)
    assert "fix" in str(result.exception) or "needed" in str(result.exception)
