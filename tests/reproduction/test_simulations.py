"""The published simulations come out as published, and where they do not it is said."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from clash.errors import InputError
from clash.report.simulations import as_json, table
from clash.reproduction.simulations import EXPERIMENTS, structured_tests, training_sweep
from clash.reproduction.simulations import design_study as study
from clash.reproduction.simulations.experiment import PaperComparison, SampleMean, Simulation
from clash.reproduction.simulations.finite_calibration import BEYOND
from clash.reproduction.simulations.learned_weights import SETUPS, PanelSetup
from clash.reproduction.simulations.semi_real import semi_real
from clash.reproduction.simulations.vote_readings import Telling, read_panel
from clash.reproduction.studies.sweep import PanelData, SweepPoint, sweep
from clash.stats.simulate.designs import DESIGNS, Design
from clash.stats.simulate.panels import IndependentPanel
from clash.votes import read_votes

if TYPE_CHECKING:
    from pathlib import Path

    from clash.votes import Votes

FEW = {"three-judges": 2, "independent": 8, "curie-weiss": 2, "latent-factor": 2, "weak-factor": 2}
FEW |= {"calibration-growth": 2, "aggregator-regimes": 2, "interaction-strength": 2}
FEW |= {"regime-map": 2}


@pytest.fixture(scope="module")
def results() -> dict[str, Simulation]:
    return {name: EXPERIMENTS[name].run(0, replications) for name, replications in FEW.items()}


def test_three_judges_are_exact(results: dict[str, Simulation]) -> None:
    """Appendix C to its last digit: 0.0384 against 0.9682, and 0.0305 against 0.9571."""
    rows = results["three-judges"].rows
    posteriors = [round(row.ours, 4) for row in rows if row.quantity.startswith("P(1 |")]
    assert posteriors == [0.0384, 0.9682, 0.0305, 0.9571]
    assert all(row.standing == "agrees" and row.se is None for row in rows)


def test_independent_judges_meet_table_4_but_for_setup_3(results: dict[str, Simulation]) -> None:
    """Uniform majority and priors at the truth agree; one weak prior stays below in setup 3."""
    rows = {row.quantity: row for row in results["independent"].rows}
    for setup in "1234":
        assert rows[f"setup {setup}: uniform majority, ties to class 1"].standing == "agrees"
        assert rows[f"setup {setup}: EM, priors at the true rates"].standing == "agrees"
    weak = rows["setup 3: EM, one weak prior for all judges"]
    assert weak.ours < weak.paper - 0.03


def test_only_one_reading_of_table_4_gives_its_uniform_majority() -> None:
    """Of five prevalences and three tie rules, balanced classes with ties to class 1 alone."""
    fitting = [
        (prevalence, tied)
        for prevalence in (0.3, 0.4, 0.5, 0.6, 0.7)
        for tied in (0.0, 0.5, 1.0)
        if all(_within(setup, prevalence, tied) for setup in SETUPS)
    ]
    assert fitting == [(0.5, 1.0)]


def _within(setup: PanelSetup, prevalence: float, tied: float) -> bool:
    panel = IndependentPanel.of(setup.sensitivity, setup.specificity, prevalence)
    own_accuracy = panel.majority_accuracy(tied)
    error = (own_accuracy * (1 - own_accuracy) / 4000) ** 0.5
    return abs(own_accuracy - setup.uniform) < 3 * error + 5e-4


def test_curie_weiss_meets_theorem_2_and_glauber_does_not(results: dict[str, Simulation]) -> None:
    rows = results["curie-weiss"].rows
    standing = {row.quantity: row.standing for row in rows if row.paper is not None}
    glauber = {name for name in standing if "Glauber" in name}
    assert len(glauber) == 2
    assert {standing[name] for name in glauber} == {"differs"}
    assert {standing[name] for name in set(standing) - glauber} == {"agrees"}


def test_latent_factor_of_figure_5_has_next_to_no_separation(
    results: dict[str, Simulation],
) -> None:
    """At the figure's parameters the exact rules are within 0.002; ten times as strong, 0.03."""
    largest = [
        row.ours for row in results["latent-factor"].rows if "largest excess risk" in row.quantity
    ]
    assert max(largest[:2]) < 0.002
    assert largest[2] > 0.03


def test_weak_factor_error_is_of_order_four(results: dict[str, Simulation]) -> None:
    assert {row.standing for row in results["weak-factor"].rows[1:]} == {"agrees"}


@pytest.mark.parametrize("name", ["independent", "latent-factor"])
def test_same_seed_same_figures(name: str, results: dict[str, Simulation]) -> None:
    """Everything but the wall clock is a function of seed and replications."""
    assert EXPERIMENTS[name].run(0, FEW[name]) == results[name]


def test_every_row_names_where_the_paper_has_its_figure(results: dict[str, Simulation]) -> None:
    for result in results.values():
        assert all(row.source for row in result.rows if row.paper is not None)


@pytest.mark.parametrize(
    ("row", "standing"),
    [
        (PaperComparison("", 0.5), "no figure"),
        (PaperComparison("", 0.50004, 0.5, resolution=5e-5), "agrees"),
        (PaperComparison("", 0.5002, 0.5, resolution=5e-5), "differs"),
        (PaperComparison("", 0.529, 0.5, se=0.01), "agrees"),
        (PaperComparison("", 0.54, 0.5, se=0.01), "differs"),
        (PaperComparison("", 0.54, 0.5, se=0.01, paper_se=0.01), "agrees"),
    ],
)
def test_standing(row: PaperComparison, standing: str) -> None:
    """Three standard errors of both sides, or rounding where both are exact."""
    assert row.standing == standing


def test_standard_error_of_a_mean() -> None:
    mean = SampleMean.of([1.0, 2.0, 3.0, 4.0])
    assert mean.value == 2.5
    assert mean.se == pytest.approx((5 / 3) ** 0.5 / 2)


def test_winners_of_the_finite_calibration_tables(results: dict[str, Simulation]) -> None:
    """The table wins in every mixed and parity cell from 256 labels on, as in tables 22 and 24."""
    growth = {row.quantity: row.ours for row in results["calibration-growth"].rows}
    for regime in ("mixed", "parity"):
        assert all(growth[f"{regime}, {n} labels"] > 0 for n in (256, 1024, 2048))
    assert growth["additive, 256 labels"] < 0
    risk = {row.quantity: row.ours for row in results["aggregator-regimes"].rows}
    for budget in (50, 3000):
        additive = {f: risk[f"additive, {budget} labels, {f}"] for f in ("joint-table", "logistic")}
        assert additive["logistic"] < additive["joint-table"]
        xor = {f: risk[f"xor, {budget} labels, {f}"] for f in ("joint-table", "logistic")}
        assert xor["joint-table"] < xor["logistic"]


def test_what_the_text_says_of_parity_is_met_and_what_the_table_says_is_not(
    results: dict[str, Simulation],
) -> None:
    """Unseen mass and error of the table agree; the gap stays where the paper's falls to 0.010."""
    rows = {row.quantity: row for row in results["calibration-growth"].rows}
    assert rows["parity, 16 labels, unseen mass of the table"].ours == pytest.approx(
        0.768, abs=0.04
    )
    assert rows["parity, 512 labels, error of the table"].ours == pytest.approx(0.061, abs=0.01)
    assert rows["parity, 2048 labels"].ours > 0.15
    assert rows["parity, 2048 labels"].note == BEYOND


def test_strength_of_an_interaction_moves_the_winner_as_published(
    results: dict[str, Simulation],
) -> None:
    """Table 25: the scalar families without interaction, the table from 0.5 on, growing with it."""
    rows = {row.quantity: row.ours for row in results["interaction-strength"].rows}
    at_1000 = [rows[f"gamma {g}, 1000 labels"] for g in ("0", "0.3", "0.5", "0.7", "1")]
    assert at_1000[0] < 0.001 < at_1000[2]
    assert at_1000 == sorted(at_1000)


def test_the_map_has_the_regimes_that_were_made(results: dict[str, Simulation]) -> None:
    (risk_map,) = results["regime-map"].maps
    additive, _, parity = risk_map.maps
    assert additive.cell(256, 7).gap < 0 < parity.cell(256, 7).gap
    assert parity.cell(2048, 6).winner == "joint-table"
    assert abs(parity.cell(2048, 5).gap) < 0.02


def _votes(tmp_path: Path, judges: int, rows: int = 200) -> Votes:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, rows)
    file = tmp_path / "v.votes.jsonl"
    with file.open("w") as out:
        for item, side in enumerate(truth.tolist()):
            for judge in range(judges):
                vote = side if rng.random() < 0.7 else 1 - side
                vote_letter = None if judge == judges - 1 and item % 4 == 0 else "AB"[vote]
                line = {"item": f"q{item}", "judge": f"j{judge}", "vote": vote_letter}
                out.write(json.dumps(line) + "\n")
    return read_votes(file)


def test_semi_real_takes_the_judges_that_voted_most_and_whole_rows(tmp_path: Path) -> None:
    """Of nine the seven that never failed; all rows. Of seven, the rows of all seven."""
    panel_data = semi_real(0, 2, [_votes(tmp_path, 9)])
    assert "(200 rows" in panel_data.setting["patterns"]
    assert panel_data.setting["judges"] == "7"
    panel_data = semi_real(0, 2, [_votes(tmp_path, 7)])
    assert "(150 rows" in panel_data.setting["patterns"]
    rows = {row.quantity: row for row in panel_data.rows}
    assert rows["parity, 2048 labels"].ours > 0.02
    assert abs(rows["additive, 2048 labels"].ours) < 0.02
    assert rows["parity, 16 labels, unseen mass of the table"].paper == 0.273


def test_semi_real_refuses_what_it_cannot_draw_from(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="too few"):
        semi_real(0, 2, [_votes(tmp_path, 2)])
    with pytest.raises(InputError, match="rows only"):
        semi_real(0, 2, [_votes(tmp_path, 5, rows=20)])
    scores = replace(_votes(tmp_path, 4), kind="numeric")
    with pytest.raises(InputError, match="scores"):
        semi_real(0, 2, [scores])


def test_a_study_of_designs_compares_auto_with_majority_and_with_what_is_possible(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Paired differences are those of the accuracies, and nobody beats Bayes' rule by much."""
    monkeypatch.setattr(study, "DESIGNS", [DESIGNS[4], DESIGNS[6]])
    simulation = study.designs(1, 2, sizes=(400,))
    for cell in simulation.cells:
        assert cell.against_majority.estimate == pytest.approx(cell.auto - cell.majority)
        assert cell.against_majority.low <= cell.against_majority.estimate
        assert max(cell.auto, cell.majority, cell.dawid_skene) < cell.oracle + 0.03
        assert sum(cell.chosen.values()) == cell.n_panels == 2
    assert [cell.design for cell in simulation.cells] == ["one-sided factor", "expert"]
    expert = simulation.cells[1]
    assert expert.auto > expert.majority + 0.05
    table_text = table(simulation)
    assert table_text.rows[1][0] == "expert"
    assert as_json(simulation)["cells"][1]["against_majority"]["estimate"] > 0.05


@pytest.mark.parametrize(
    ("name", "n_items", "telling"),
    [
        ("equal skill", 3000, Telling.EVEN),
        ("class-dependent", 3000, Telling.YES),
        ("adversary", 3000, Telling.YES),
        ("shared factor", 300, Telling.NO),
        ("shared factor", 300_000, Telling.YES),
    ],
)
def test_what_votes_tell_follows_from_their_law(name: str, n_items: int, telling: Telling) -> None:
    design = next(design for design in DESIGNS if design.name == name)
    rng = np.random.default_rng([4712, 1 if name == "shared factor" else 0])
    readings = read_panel(design.draw_panel(rng), rng)
    assert readings.telling(n_items) is telling
    assert readings.share.sum() == pytest.approx(1)
    assert readings.best.right >= max(reading.right for reading in readings.readings)


@pytest.mark.parametrize("design", DESIGNS, ids=lambda design: design.name)
def test_the_oracle_of_a_design_is_its_law(design: Design) -> None:
    """Its probabilities are right as often as they say, which no rule fitted to other laws is."""
    sample = design.sample(4000, np.random.default_rng(9))
    sure = np.maximum(sample.oracle, 1 - sample.oracle)
    right = (sample.oracle > 0.5) == sample.truth
    assert (sample.votes >= 0).any(axis=1).all()
    assert abs(right.mean() - sure.mean()) < 4 * (sure * (1 - sure)).mean() ** 0.5 / 4000**0.5
    for low, high in ((0.5, 0.8), (0.8, 1.0)):
        part = (sure >= low) & (sure <= high)
        if part.sum() > 100:
            assert abs(right[part].mean() - sure[part].mean()) < 0.05


def test_theorem_1_holds_in_the_exact_laws() -> None:
    rows = EXPERIMENTS["zero-field"].run(0, 2).rows
    published_rows = [row for row in rows if row.paper is not None]
    assert len(published_rows) == 15
    assert {row.standing for row in published_rows} == {"agrees"}


def test_shared_couplings_are_learned_where_the_votes_have_them() -> None:
    """The shared Ising model is near Bayes' rule, which independence misses by far."""
    panel = training_sweep.PANELS["the same couplings in both classes"]
    sample = panel.sample(2000, np.random.default_rng(0))
    data = PanelData(sample.votes, sample.labels.astype(float), np.arange(2000))
    methods = ["ising-shared", "dawid-skene"]
    shared_sweep, independent = sweep(data, [SweepPoint(1600, 10)], methods, 2, 0)
    bayes = training_sweep._bayes_accuracy(panel, 10)
    assert abs(shared_sweep.by_trial.mean - bayes) < 0.03
    assert independent.by_trial.mean < bayes - 0.08


def test_bayes_accuracy_of_some_judges_is_that_of_their_own_votes() -> None:
    """Against a panel of two: every vote vector counted by hand."""
    panel = training_sweep.PANELS["couplings in class 1 alone"]
    states, (zero, one) = panel.states, panel.pmf()
    accuracies = []
    for judge in range(10):
        mass = [
            [0.5 * pmf[states[:, judge] == vote].sum() for pmf in (zero, one)] for vote in (0, 1)
        ]
        accuracies.append(sum(map(max, mass)))
    assert training_sweep._bayes_accuracy(panel, 1) == pytest.approx(np.mean(accuracies))


def test_structured_hypotheses_hold_in_their_panel_and_are_seen_where_broken() -> None:
    couplings = structured_tests.family_panel().couplings
    assert (couplings[0] == couplings[1]).all()
    assert set(couplings[0][0]) == {0.0, 1.0}
    rows = {row.quantity: row for row in EXPERIMENTS["hypotheses"].run(0, 2).rows}
    assert len(rows) == 24
    broken = "family independence, broken by 0.9, 700 items with labels"
    assert rows[broken].ours == 1.0
    true = "family independence, true, 700 items with labels"
    assert (rows[true].paper, rows[true].source) == (0.05, "nominal level")
