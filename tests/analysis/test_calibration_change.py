"""What labels make of a run's verdicts: too few are refused, enough turn a blind majority."""

import dataclasses

import numpy as np
import pytest

from analysis.simulated_runs import run_data
from clash.analysis.calibration_change import (
    CalibratedResult,
    CalibrationChange,
    CalibrationRefusal,
    _winners,
    calibrate_run,
    compare_calibrations,
)
from clash.analysis.label_change import LabelChange
from clash.analysis.rundata import RunData
from clash.analysis.serialize import to_dict
from clash.report.review_effect import tables
from clash.votes import VoteRow, encode, run_votes
from review.runs import judged

ADA, BOB = [["ada"], ["bob"]], [["bob"], ["ada"]]
N = 120


def panel_rows(rng):
    """Two judges that say one and the same thing, which is a coin, and one that knows."""
    truth, coin = rng.random(N) < 0.6, rng.random(N) < 0.5
    rows = [
        {"echo": ADA if c else BOB, "copy": ADA if c else BOB, "knows": ADA if t else BOB}
        for c, t in zip(coin, truth, strict=True)
    ]
    return rows, truth


@pytest.fixture(scope="module")
def panel_run():
    rows, truth = panel_rows(np.random.default_rng(5))
    return run_data(rows, ["ada", "bob"]), rows, truth


def votes(rows, truth, n_labelled):
    return encode(
        VoteRow(
            item=f"q{i}", judge=judge, vote="A" if groups is ADA else "B",
            label=("A" if truth[i] else "B") if i < n_labelled else None,
        )
        for i, row in enumerate(rows)
        for judge, groups in row.items()
    )  # fmt: skip


def test_too_few_labels_are_refused_and_the_reason_says_how_many_are_missing(panel_run):
    data, rows, truth = panel_run
    change = calibrate_run(data, votes(rows, truth, 7), "ada")
    assert isinstance(change, CalibrationRefusal)
    assert (change.labels, change.missing) == (7, 3)
    assert "at least 10" in change.why


def test_labels_are_counted_in_items_where_each_was_judged_in_both_orders(panel_run):
    """3 items are 6 rows; 10 rows are 2 items more, not 4 labels."""
    data, rows, truth = panel_run
    both_votes = encode(
        VoteRow(item=f"q{i}", judge=judge, vote="A" if groups is ADA else "B", presentation=order,
                label=("A" if truth[i] else "B") if i < 3 else None)
        for i, row in enumerate(rows)
        for judge, groups in row.items()
        for order in ("orig", "swap")
    )  # fmt: skip
    change = calibrate_run(data, both_votes, "ada")
    assert isinstance(change, CalibrationRefusal)
    assert (change.labels, change.items, change.missing) == (6, 3, 2)
    assert change.why.startswith("6 rows of 3 items have a label")
    (table,) = tables(
        LabelChange(3, None, None, None, None, CalibrationChange(change, change, ())), "r"
    )[1:]
    assert table.rows[0] == ["labelled items", "3 (6 rows)", "3 (6 rows)"]
    assert any("2 more labelled items are needed" in note for note in table.notes)


def test_labels_of_one_kind_are_refused_for_another_reason_than_their_number(panel_run):
    data, rows, _ = panel_run
    change = calibrate_run(data, votes(rows, np.ones(N, bool), 60), "ada")
    assert isinstance(change, CalibrationRefusal)
    assert change.missing == 0
    assert "the same" in change.why


def test_labels_turn_the_verdicts_of_a_majority_that_is_a_coin(panel_run):
    data, rows, truth = panel_run
    comparison = compare_calibrations(data, votes(rows, truth, 7), votes(rows, truth, 100), "ada")
    assert isinstance(comparison.before, CalibrationRefusal)
    after = comparison.after
    assert isinstance(after, CalibratedResult)
    assert "knows" in after.judges
    assert [after.winners[f"q{i}"] == "ada" for i in range(N)] == truth.tolist()
    wrong = {f"q{i}" for i in range(N) if (rows[i]["echo"] is ADA) != truth[i]}
    assert set(after.against_panel) == wrong
    assert comparison.changed == ()  # there was no calibrated verdict to change
    assert after.gain.low > 0
    assert after.win_rate.low <= truth.mean() <= after.win_rate.high
    panel = np.mean([row["echo"] is ADA for row in rows])
    assert after.panel_rate == pytest.approx(panel)


def test_more_labels_change_verdicts_and_the_report_names_them(panel_run):
    data, rows, truth = panel_run
    lying = truth.copy()
    lying[:40] = [row["echo"] is ADA for row in rows[:40]]  # the first labels side with the echo
    comparison = compare_calibrations(data, votes(rows, lying, 40), votes(rows, truth, N), "ada")
    then, now = comparison.before.winners, comparison.after.winners
    assert comparison.changed == tuple(row for row in now if then[row] != now[row])
    assert comparison.changed
    change = LabelChange(80, None, None, None, None, comparison)
    (table,) = tables(change, "runs/x")[1:]
    assert any(comparison.changed[0] in note for note in table.notes)


def test_the_win_rates_of_two_candidates_add_up_to_one(panel_run):
    data, rows, truth = panel_run
    both_win_rates = [
        calibrate_run(data, votes(rows, truth, 80), name).win_rate for name in ("ada", "bob")
    ]
    assert both_win_rates[0].estimate + both_win_rates[1].estimate == pytest.approx(1)
    assert both_win_rates[0].low == pytest.approx(1 - both_win_rates[1].high)


def test_an_item_shown_in_both_orders_has_one_verdict_and_it_is_that_of_both():
    pairs = {"q0": ("ada", "bob"), "q1": ("ada", "bob"), "q2": ("ada", "bob")}
    rows = ("q0", "q0", "q1", "q1", "q2", "unknown")
    winners = _winners(rows, [1.0, 1.0, 1.0, 0.0, 0.0, 1.0], pairs)
    assert winners == {"q0": "ada", "q1": "tie", "q2": "bob"}


def test_the_change_is_plain_data(panel_run):
    data, rows, truth = panel_run
    fields = to_dict(
        compare_calibrations(data, votes(rows, truth, 7), votes(rows, truth, 60), "ada")
    )
    assert fields["before"]["missing"] == 3
    assert set(fields["after"]["winners"].values()) <= {"ada", "bob", "tie"}
    assert {f.name for f in dataclasses.fields(CalibratedResult)} == set(fields["after"])


def test_of_three_candidates_every_pair_is_a_row_and_the_leader_is_in_two_of_them(tmp_path):
    rng = np.random.default_rng(1)
    prompts = [
        {
            "id": f"q{i}",
            "prompt": f"Name {i + 2} colours.",
            "responses": {n: "red " * int(rng.integers(1, 40)) for n in ("ada", "bob", "cyd")},
            "label": ("ada", "bob")[i % 2],
        }
        for i in range(40)
    ]
    folder = judged(tmp_path, prompts)
    data = RunData.load(folder)
    change = calibrate_run(data, run_votes(folder), "ada")
    assert isinstance(change, CalibratedResult)
    assert len(change.winners) == 120
    assert (change.labels, change.items) == (80, 40)  # a winner labels the two pairs that it is in
    beaten = [
        0.5 if v.ranking and any({"ada", alternative} <= set(group) for group in v.ranking)
        else float(next(n for group in v.ranking for n in group if n in ("ada", alternative)) == "ada")
        for v in data.verdicts
        for alternative in ("bob", "cyd")
    ]  # fmt: skip
    assert change.panel_rate == pytest.approx(np.mean(beaten))
    assert change.win_rate.low <= change.win_rate.estimate <= change.win_rate.high
