"""From votes to a calibrator and back: what is deployed, where it refuses and where it falls back."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from clash.analysis.calibration.calibrated_votes import calibrate_votes
from clash.analysis.calibration.calibrator import (
    RiskLimit,
    apply,
    check_panel,
    parse_calibrator,
    read_calibrator,
)
from clash.analysis.calibration.fitting import fit
from clash.analysis.calibration.frame import ScoreFrame
from clash.analysis.calibration.study import sizes_for, study
from clash.errors import InputError
from clash.stats.selection import blocks
from clash.stats.selection.candidate_methods import SelectionSettings
from clash.stats.selection.metrics import credits_of
from clash.stats.selection.panel import PanelVotes
from clash.stats.selection.selector import learn, plain_majority
from clash.votes import VoteRow, encode, read_votes

DATA = Path(__file__).resolve().parents[3] / "../shared/data/votes"
QUICK = SelectionSettings(
    rules=("information-first",), families=("mean-isotonic", "one-coin-isotonic", "logistic")
)
JUDGES = ("ann", "bob", "cleo", "dan")


def rows(n=240, skill=(0.9, 0.7, 0.6, 0.35), seed=0, with_labels=True):
    rng = np.random.default_rng(seed)
    for item in range(n):
        truth = int(rng.random() < 0.5)
        for judge, right in zip(JUDGES, skill, strict=True):
            vote = truth if rng.random() < right else 1 - truth
            yield VoteRow(f"q{item}", judge, vote, truth if with_labels else None)


def fitted_calibrator(votes, seed=0, settings=QUICK):
    frame = ScoreFrame.of(votes)
    panel = frame.panel(votes)
    settings = replace(settings, sizes=sizes_for(panel.n_judges))
    return fit(votes, frame, panel, settings, seed=seed)


def test_a_calibrator_survives_its_file(tmp_path):
    result = fitted_calibrator(encode(rows()))
    path = tmp_path / "calibrator.json"
    path.write_text(json.dumps(result.as_json()))
    again = read_calibrator(path)
    assert again == result
    new = np.array([[1, 1, 0, np.nan], [0, 0, 0, 1]])[:, : len(result.asked)]
    assert np.array_equal(apply(again, new).p, apply(result, new).p)


def test_a_prediction_does_not_depend_on_what_else_is_asked():
    result = fitted_calibrator(encode(rows()))
    votes = np.random.default_rng(1).integers(0, 2, (15, len(result.asked))) * 1.0
    together = apply(result, votes).p
    apart = np.vstack([apply(result, row[None]).p for row in votes])
    assert together == pytest.approx(apart)


def test_on_its_own_domain_it_is_calibrated_and_better_than_majority():
    result = fitted_calibrator(encode(rows()))
    new = encode(rows(2000, seed=9))
    calibration = calibrate_votes(result, new, None, "")
    assert calibration.rows.fallback is False
    assert calibration.test.accuracy > 0.86
    assert calibration.test.ece < 0.07


def test_another_panel_or_prompt_is_refused():
    result = fitted_calibrator(encode(rows()))
    with pytest.raises(InputError, match="not in this panel"):
        check_panel(result, ["someone"])
    config_copy = result.model_copy(
        update={"models": dict.fromkeys(JUDGES, "m/1"), "templates": "a" * 64}
    )
    with pytest.raises(InputError, match="a different model"):
        check_panel(config_copy, JUDGES, models=dict.fromkeys(JUDGES, "m/2"))
    with pytest.raises(InputError, match="prompts"):
        check_panel(config_copy, JUDGES, templates="b" * 64)
    assert check_panel(result, JUDGES, templates="b" * 64)
    assert check_panel(config_copy, JUDGES, templates="a" * 64) == ()


def test_a_changed_file_is_refused():
    value = fitted_calibrator(encode(rows())).as_json()
    with pytest.raises(InputError, match="hash differs"):
        parse_calibrator({**value, "judges": [*value["judges"], "eve"]})
    with pytest.raises(InputError, match="unknown key"):
        parse_calibrator({**value, "more": 1})
    with pytest.raises(InputError, match="unknown"):
        parse_calibrator({**value, "family": "guess"})


def test_under_a_shift_it_warns_and_falls_back_to_majority():
    result = fitted_calibrator(encode(rows(skill=(0.9, 0.2, 0.25, 0.3))))
    new = encode(rows(400, skill=(0.9, 0.85, 0.85, 0.8), seed=3))
    calibration = calibrate_votes(result, new, RiskLimit(0.1), "")
    assert calibration.rows.shift.is_shift
    assert calibration.rows.fallback or result.family == "majority"
    assert not calibration.rows.is_answered.any()
    assert any("shifted domain" in warning for warning in calibration.warnings)


@pytest.mark.parametrize(
    ("values", "target", "unanimous", "expected_value"),
    [
        ((1, 2, 3, 4, 5), "scalar", 5, [1.0]),
        (("B", "tie", "A"), "three", "A", [2 / 3 / 6, 2 / 3 / 6, 14 / 3 / 6]),
    ],
)
def test_what_a_shifted_domain_falls_back_to_is_the_majority_that_calibrate_compares_with(
    values, target, unanimous, expected_value
):
    """Four judges who all give the highest score predict the highest, not 5/6 of the way to it."""
    rng = np.random.default_rng(0)
    label_pairs = []
    for item in range(300):
        truth = int(rng.integers(len(values)))
        for judge in JUDGES:
            vote = truth if rng.random() < 0.8 else int(rng.integers(len(values)))
            label_pairs.append(VoteRow(f"q{item}", judge, values[vote], values[truth]))
    settings = replace(QUICK, families=("logistic",), sizes=(4,))
    result = fitted_calibrator(encode(label_pairs), settings=settings)
    new = encode([VoteRow(f"n{i}", judge, unanimous) for i in range(60) for judge in JUDGES])
    assert result.target == target
    votes = np.full((60, len(result.asked)), float(new.matrix[0, 0]))
    printed_result = apply(result, votes)
    assert printed_result.fallback
    assert printed_result.p[0] == pytest.approx(expected_value)
    panel = PanelVotes.of(votes / votes.max(), np.full(60, np.nan), np.arange(60), result.target)
    assert printed_result.p == pytest.approx(plain_majority(panel)[panel.pattern])


def test_study_gives_every_figure_with_its_error_and_does_not_depend_on_jobs():
    votes = encode(rows())
    study_result = study(votes, settings=QUICK, splits=3, seed=1, jobs=1)
    assert study_result.selected.k == len(study_result.judges)
    for name in ("accuracy", "mse", "nll", "ece", "balanced_accuracy"):
        assert np.isfinite([study_result.test[name].mean, study_result.test[name].se]).all()
    again = study(votes, settings=QUICK, splits=3, seed=1, jobs=2)
    assert again.test == study_result.test
    assert again.selected == study_result.selected


def test_too_few_labels_or_one_label_for_all_is_said():
    with pytest.raises(InputError, match="at least 30"):
        ScoreFrame.of(encode(rows(10)))
    with pytest.raises(InputError, match="0 rows have a label, at least 10"):
        study(encode(rows(10, with_labels=False)))  # the pool, as with ten labels
    rows_of_one_class = [VoteRow(f"q{i}", j, i % 2, 1) for i in range(40) for j in JUDGES]
    with pytest.raises(InputError, match="all labels are the same"):
        ScoreFrame.of(encode(rows_of_one_class))
    nobody = [VoteRow(f"q{i}", j, None, i % 2) for i in range(40) for j in JUDGES]
    with pytest.raises(InputError, match="no judge voted on any labelled row"):
        ScoreFrame.of(encode(nobody))


@pytest.mark.skipif(not DATA.is_dir(), reason="../shared/data is absent")
def test_trained_on_adversarial_pairs_it_falls_back_on_natural_ones():
    pattern = "[CGPL]*/Metrics_Reference"
    train = read_votes(
        DATA / "llmbar-casestudy.votes.jsonl.gz", judges="ChatGPT/M*,GPT-4/M*,LLaMA2/M*,PaLM2/M*"
    )
    result = fitted_calibrator(train)
    new = read_votes(DATA / "llmbar-processed.votes.jsonl.gz", judges=pattern)
    calibration = calibrate_votes(result, new, None, "")
    assert calibration.rows.shift.is_shift
    assert calibration.test.accuracy > 0.7


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_dir(), reason="../shared/data is absent")
def test_the_risk_is_kept_on_a_real_panel_over_200_repetitions():
    votes = read_votes(DATA / "rb2-replicates.votes.jsonl.gz", judges="*#s0")
    frame = ScoreFrame.of(votes)
    panel = frame.panel(votes)
    rng = np.random.default_rng(0)
    from clash.stats.selection.conformal import ConformalControl
    from clash.stats.selection.families import FAMILIES, fit_family
    from clash.stats.selection.metrics import confidence

    cells = panel.cells(range(panel.n_judges))
    shares, coverages = [], []
    for _ in range(200):
        order = rng.permutation(panel.n_rows)
        train, held_out, batch = order[:200], order[200:300], order[300:]
        cell_counts = panel.rows(train).evidence(panel.n_patterns).on(cells)
        p = fit_family(FAMILIES["logistic"], cells, cell_counts)[cells.of_pattern]
        sure = confidence(p)
        row_list = panel.rows(held_out)
        control = ConformalControl(sure[row_list.pattern][row_list.credits(p) < 1], 100, 0.05)
        answers_by_row = control.answers(sure[panel.pattern[batch]])
        wrong = panel.rows(batch).credits(p) < 1
        shares.append(wrong[answers_by_row].mean() if answers_by_row.any() else 0.0)
        coverages.append(answers_by_row.mean())
    assert np.mean(shares) <= 0.05 + 2 * np.std(shares) / np.sqrt(200)
    assert np.mean(coverages) > 0.5


@pytest.mark.slow
@pytest.mark.parametrize("risk", [0.05, 0.15])
def test_what_is_deployed_keeps_the_risk_over_200_repetitions(risk):
    votes, shares, is_answered = encode(rows(400, skill=(0.95, 0.8, 0.7, 0.6))), [], []
    frame = ScoreFrame.of(votes)
    full_panel_data = frame.panel(votes)
    settings = replace(QUICK, sizes=(1, 2, 4))
    for repetition in range(200):
        is_first_half = np.random.default_rng(repetition).random(400) < 0.5
        labels = np.where(is_first_half, votes.labels, np.nan)
        panel = PanelVotes.of(
            full_panel_data.values[full_panel_data.pattern],
            labels,
            full_panel_data.group,
            frame.target,
        )
        fit_result = fit(votes, frame, panel, settings, seed=repetition)
        columns = [JUDGES.index(judge) for judge in fit_result.asked]
        result = apply(fit_result, votes.matrix[~is_first_half][:, columns], RiskLimit(risk))
        wrong = 1 - credits_of(result.p, votes.labels[~is_first_half][:, None])[result.is_answered]
        shares.append(wrong.mean() if len(wrong) else 0.0)
        is_answered.append(result.is_answered.mean())
    assert np.mean(shares) <= risk + 2 * np.std(shares) / np.sqrt(200)
    assert np.mean(is_answered) > 0.2


def test_a_calibrator_of_one_family_as_earlier_versions_wrote_it_still_works():
    result = fitted_calibrator(
        encode(rows()), settings=replace(QUICK, combine="one", guard=-np.inf)
    )
    value = result.as_json()
    assert len(value["maps"]) == 1
    older = parse_calibrator({key: part for key, part in value.items() if key != "maps"})
    new = np.random.default_rng(1).integers(0, 2, (15, len(result.asked))) * 1.0
    assert apply(older, new).p == pytest.approx(apply(result, new).p)


def test_a_map_of_a_judge_that_is_not_asked_is_refused():
    value = fitted_calibrator(encode(rows())).as_json()
    value["maps"][0]["judges"] = [99]
    with pytest.raises(InputError, match="unknown"):
        parse_calibrator(value)


def test_what_is_deployed_from_its_file_is_what_was_fitted():
    votes = encode(rows())
    frame = ScoreFrame.of(votes)
    panel = frame.panel(votes)
    settings = replace(QUICK, sizes=(1, 2, 4))
    fit_result = fit(votes, frame, panel, settings, seed=3)
    assert sum(part.weight for part in fit_result.maps) == pytest.approx(1)
    columns = [JUDGES.index(judge) for judge in fit_result.asked]
    p = apply(parse_calibrator(fit_result.as_json()), votes.matrix[:, columns]).p
    # The same choice and fit, made by hand on the same rows.
    rng = np.random.default_rng([3, 3])
    indices = np.flatnonzero(panel.has_label)
    calibration_rows, test_rows = blocks.divide(panel.group[indices], (0.7, 0.3), rng)
    roles = blocks.deal(panel.group, indices[calibration_rows], blocks.SplitPlan(), rng)
    vote_rows = panel.votes(np.setdiff1d(np.arange(panel.n_rows), indices[test_rows]))
    learner = learn(panel, indices[calibration_rows], roles, vote_rows, settings, rng)
    assert p == pytest.approx(learner.model.p[panel.pattern], abs=1e-6)
