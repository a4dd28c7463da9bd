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


def rows(n=240, skill=(0.9, 0.7, 0.6, 0.35), seed=0, labelled=True):
    rng = np.random.default_rng(seed)
    for item in range(n):
        truth = int(rng.random() < 0.5)
        for judge, right in zip(JUDGES, skill, strict=True):
            vote = truth if rng.random() < right else 1 - truth
            yield VoteRow(f"q{item}", judge, vote, truth if labelled else None)


def made(votes, seed=0, settings=QUICK):
    frame = ScoreFrame.of(votes)
    panel = frame.panel(votes)
    settings = replace(settings, sizes=sizes_for(panel.n_judges))
    return fit(votes, frame, panel, settings, seed=seed)


def test_a_calibrator_survives_its_file(tmp_path):
    found = made(encode(rows()))
    path = tmp_path / "calibrator.json"
    path.write_text(json.dumps(found.as_json()))
    again = read_calibrator(path)
    assert again == found
    new = np.array([[1, 1, 0, np.nan], [0, 0, 0, 1]])[:, : len(found.asked)]
    assert np.array_equal(apply(again, new).p, apply(found, new).p)


def test_a_prediction_does_not_depend_on_what_else_is_asked():
    found = made(encode(rows()))
    votes = np.random.default_rng(1).integers(0, 2, (15, len(found.asked))) * 1.0
    together = apply(found, votes).p
    apart = np.vstack([apply(found, row[None]).p for row in votes])
    assert together == pytest.approx(apart)


def test_on_its_own_domain_it_is_calibrated_and_better_than_majority():
    found = made(encode(rows()))
    new = encode(rows(2000, seed=9))
    told = calibrate_votes(found, new, None, "")
    assert told.rows.fallback is False
    assert told.test.accuracy > 0.86
    assert told.test.ece < 0.07


def test_another_panel_or_prompt_is_refused():
    found = made(encode(rows()))
    with pytest.raises(InputError, match="not in this panel"):
        check_panel(found, ["someone"])
    known = found.model_copy(update={"models": dict.fromkeys(JUDGES, "m/1"), "templates": "a" * 64})
    with pytest.raises(InputError, match="a different model"):
        check_panel(known, JUDGES, models=dict.fromkeys(JUDGES, "m/2"))
    with pytest.raises(InputError, match="prompts"):
        check_panel(known, JUDGES, templates="b" * 64)
    assert check_panel(found, JUDGES, templates="b" * 64)
    assert check_panel(known, JUDGES, templates="a" * 64) == ()


def test_a_changed_file_is_refused():
    value = made(encode(rows())).as_json()
    with pytest.raises(InputError, match="hash differs"):
        parse_calibrator({**value, "judges": [*value["judges"], "eve"]})
    with pytest.raises(InputError, match="unknown key"):
        parse_calibrator({**value, "more": 1})
    with pytest.raises(InputError, match="unknown"):
        parse_calibrator({**value, "family": "guess"})


def test_under_a_shift_it_warns_and_falls_back_to_majority():
    found = made(encode(rows(skill=(0.9, 0.2, 0.25, 0.3))))
    new = encode(rows(400, skill=(0.9, 0.85, 0.85, 0.8), seed=3))
    moved = calibrate_votes(found, new, RiskLimit(0.1), "")
    assert moved.rows.shift.is_shift
    assert moved.rows.fallback or found.family == "majority"
    assert not moved.rows.answered.any()
    assert any("shifted domain" in warning for warning in moved.warnings)


@pytest.mark.parametrize(
    ("values", "target", "unanimous", "expected"),
    [
        ((1, 2, 3, 4, 5), "scalar", 5, [1.0]),
        (("B", "tie", "A"), "three", "A", [2 / 3 / 6, 2 / 3 / 6, 14 / 3 / 6]),
    ],
)
def test_what_a_shifted_domain_falls_back_to_is_the_majority_that_calibrate_compares_with(
    values, target, unanimous, expected
):
    """Four judges who all give the highest score predict the highest, not 5/6 of the way to it."""
    rng = np.random.default_rng(0)
    labelled = []
    for item in range(300):
        truth = int(rng.integers(len(values)))
        for judge in JUDGES:
            given = truth if rng.random() < 0.8 else int(rng.integers(len(values)))
            labelled.append(VoteRow(f"q{item}", judge, values[given], values[truth]))
    settings = replace(QUICK, families=("logistic",), sizes=(4,))
    found = made(encode(labelled), settings=settings)
    new = encode([VoteRow(f"n{i}", judge, unanimous) for i in range(60) for judge in JUDGES])
    assert found.target == target
    votes = np.full((60, len(found.asked)), float(new.matrix[0, 0]))
    told = apply(found, votes)
    assert told.fallback
    assert told.p[0] == pytest.approx(expected)
    panel = PanelVotes.of(votes / votes.max(), np.full(60, np.nan), np.arange(60), found.target)
    assert told.p == pytest.approx(plain_majority(panel)[panel.pattern])


def test_study_gives_every_figure_with_its_error_and_does_not_depend_on_jobs():
    votes = encode(rows())
    found = study(votes, settings=QUICK, splits=3, seed=1, jobs=1)
    assert found.selected.k == len(found.judges)
    for name in ("accuracy", "mse", "nll", "ece", "balanced_accuracy"):
        assert np.isfinite([found.test[name].mean, found.test[name].se]).all()
    again = study(votes, settings=QUICK, splits=3, seed=1, jobs=2)
    assert again.test == found.test
    assert again.selected == found.selected


def test_too_few_labels_or_one_label_for_all_is_said():
    with pytest.raises(InputError, match="at least 30"):
        ScoreFrame.of(encode(rows(10)))
    with pytest.raises(InputError, match="0 rows have a label, at least 10"):
        study(encode(rows(10, labelled=False)))  # the pool, as with ten labels
    same = [VoteRow(f"q{i}", j, i % 2, 1) for i in range(40) for j in JUDGES]
    with pytest.raises(InputError, match="all labels are the same"):
        ScoreFrame.of(encode(same))


@pytest.mark.skipif(not DATA.is_dir(), reason="../shared/data is absent")
def test_trained_on_adversarial_pairs_it_falls_back_on_natural_ones():
    shared = "[CGPL]*/Metrics_Reference"
    train = read_votes(
        DATA / "llmbar-casestudy.votes.jsonl.gz", judges="ChatGPT/M*,GPT-4/M*,LLaMA2/M*,PaLM2/M*"
    )
    found = made(train)
    new = read_votes(DATA / "llmbar-processed.votes.jsonl.gz", judges=shared)
    told = calibrate_votes(found, new, None, "")
    assert told.rows.shift.is_shift
    assert told.test.accuracy > 0.7


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
    shares, covered = [], []
    for _ in range(200):
        order = rng.permutation(panel.n_rows)
        train, held, batch = order[:200], order[200:300], order[300:]
        seen = panel.rows(train).evidence(panel.n_patterns).on(cells)
        p = fit_family(FAMILIES["logistic"], cells, seen)[cells.of_pattern]
        sure = confidence(p)
        known = panel.rows(held)
        control = ConformalControl(sure[known.pattern][known.credits(p) < 1], 100, 0.05)
        answered = control.answers(sure[panel.pattern[batch]])
        wrong = panel.rows(batch).credits(p) < 1
        shares.append(wrong[answered].mean() if answered.any() else 0.0)
        covered.append(answered.mean())
    assert np.mean(shares) <= 0.05 + 2 * np.std(shares) / np.sqrt(200)
    assert np.mean(covered) > 0.5


@pytest.mark.slow
@pytest.mark.parametrize("risk", [0.05, 0.15])
def test_what_is_deployed_keeps_the_risk_over_200_repetitions(risk):
    votes, shares, answered = encode(rows(400, skill=(0.95, 0.8, 0.7, 0.6))), [], []
    frame = ScoreFrame.of(votes)
    whole = frame.panel(votes)
    settings = replace(QUICK, sizes=(1, 2, 4))
    for repetition in range(200):
        ours = np.random.default_rng(repetition).random(400) < 0.5
        labels = np.where(ours, votes.labels, np.nan)
        panel = PanelVotes.of(whole.values[whole.pattern], labels, whole.group, frame.target)
        found = fit(votes, frame, panel, settings, seed=repetition)
        columns = [JUDGES.index(judge) for judge in found.asked]
        told = apply(found, votes.matrix[~ours][:, columns], RiskLimit(risk))
        wrong = 1 - credits_of(told.p, votes.labels[~ours][:, None])[told.answered]
        shares.append(wrong.mean() if len(wrong) else 0.0)
        answered.append(told.answered.mean())
    assert np.mean(shares) <= risk + 2 * np.std(shares) / np.sqrt(200)
    assert np.mean(answered) > 0.2


def test_a_calibrator_of_one_family_as_earlier_versions_wrote_it_still_works():
    found = made(encode(rows()), settings=replace(QUICK, combine="one", guard=-np.inf))
    value = found.as_json()
    assert len(value["maps"]) == 1
    older = parse_calibrator({key: part for key, part in value.items() if key != "maps"})
    new = np.random.default_rng(1).integers(0, 2, (15, len(found.asked))) * 1.0
    assert apply(older, new).p == pytest.approx(apply(found, new).p)


def test_a_map_of_a_judge_that_is_not_asked_is_refused():
    value = made(encode(rows())).as_json()
    value["maps"][0]["judges"] = [99]
    with pytest.raises(InputError, match="unknown"):
        parse_calibrator(value)


def test_what_is_deployed_from_its_file_is_what_was_fitted():
    votes = encode(rows())
    frame = ScoreFrame.of(votes)
    panel = frame.panel(votes)
    settings = replace(QUICK, sizes=(1, 2, 4))
    found = fit(votes, frame, panel, settings, seed=3)
    assert sum(part.weight for part in found.maps) == pytest.approx(1)
    columns = [JUDGES.index(judge) for judge in found.asked]
    p = apply(parse_calibrator(found.as_json()), votes.matrix[:, columns]).p
    # The same choice and fit, made by hand on the same rows.
    rng = np.random.default_rng([3, 3])
    known = np.flatnonzero(panel.has_label)
    ours, held = blocks.divide(panel.group[known], (0.7, 0.3), rng)
    roles = blocks.deal(panel.group, known[ours], blocks.SplitPlan(), rng)
    seen = panel.votes(np.setdiff1d(np.arange(panel.n_rows), known[held]))
    learnt = learn(panel, known[ours], roles, seen, settings, rng)
    assert p == pytest.approx(learnt.model.p[panel.pattern], abs=1e-6)
