"""Win rates: ties count half, every opponent counts the same, and other items need a model."""

from __future__ import annotations

import numpy as np
import pytest

from analysis.simulated_runs import run_data
from clash.analysis.corrected import correction
from clash.analysis.leaderboard import standings
from clash.analysis.preference import preference
from clash.analysis.win_rates import pair_outcomes, win_rates
from clash.records import Label

NAMES = ("ada", "bob", "cyd")


def rates(table, *, same_items=True, clusters=None):
    scores = np.array(table, dtype=float)
    groups = np.arange(len(scores)) if clusters is None else np.array(clusters)
    return win_rates(pair_outcomes(scores), groups, scores.shape[1], same_items=same_items)


def test_ties_count_half_and_every_opponent_counts_the_same():
    # ada beats bob 3 of 4 and ties cyd once in 2: (0.75 + 0.75) / 2.
    table = [[3, 1, np.nan], [3, 1, np.nan], [3, 1, 3], [1, 3, 0]]
    ada = rates(table).rates[0]
    assert ada.estimate == pytest.approx((3 / 4 + 1.5 / 2) / 2)
    assert 0 <= ada.low < ada.estimate < ada.high <= 1


def test_a_candidate_that_nobody_judged_has_no_win_rate():
    data = run_data([{"x": [["ada"], ["bob"]]}] * 6, NAMES, missing=[(i, "cyd") for i in range(6)])
    board = standings(data)
    assert board[-1].candidate == "cyd"
    assert board[-1].win_rate_ties_half is None
    assert board[0].win_rate_ties_half.estimate == 1


def test_an_easy_opponent_does_not_put_a_candidate_first():
    """bob loses to ada and only ever beats cyd, whom ada hardly meets."""
    nan = np.nan
    table = [[1, 0, nan]] * 15 + [[0, 1, nan]] * 9 + [[nan, 1, 0]] * 38 + [[nan, 0, 1]] * 2
    table += [[1, nan, 0]] * 2 + [[0, nan, 1]] * 1
    plain, modelled_rates = rates(table), rates(table, same_items=False)
    assert not plain.by_strengths
    assert modelled_rates.by_strengths
    assert plain.rates[1].estimate > plain.rates[0].estimate
    assert modelled_rates.rates[0].estimate > modelled_rates.rates[1].estimate


@pytest.mark.parametrize("same_items", [True, False])
def test_intervals_cover_the_truth_about_as_often_as_they_say(same_items):
    """Three candidates of known strengths; 95% intervals of the best one's win rate."""
    rng = np.random.default_rng(5)
    strength = np.array([0.8, 0.0, -0.4])
    utility = strength + rng.gumbel(size=(400_000, 3))
    truth = np.mean([(utility[:, 0] > utility[:, k]).mean() for k in (1, 2)])
    hits = 0
    for _ in range(300):
        table = strength + rng.gumbel(size=(40, 3))
        if not same_items:
            table[:10, 1] = np.nan
        interval = rates(table, same_items=same_items).rates[0]
        hits += interval.low <= truth <= interval.high
    assert 0.92 <= hits / 300 <= 0.99


def test_repeated_prompts_do_not_narrow_the_interval():
    table = [[2, 1, 0]] * 20 + [[0, 1, 2]] * 10
    own_rate = rates(table).rates[0]
    repeated_rate = rates(table, clusters=[i // 10 for i in range(30)]).rates[0]
    assert repeated_rate.high - repeated_rate.low > 1.3 * (own_rate.high - own_rate.low)


@pytest.mark.parametrize(("n_bob", "contradicts"), [(12, True), (7, False), (0, False)])
def test_labels_contradict_the_panel_only_where_they_do_so_clearly(n_bob, contradicts):
    data = run_data([{"x": [["ada"], ["bob"]]}] * 12, NAMES[:2])
    labels = [
        Label(item_id=f"q{i}", annotator="p", winner="bob" if i < n_bob else "ada", time="2026")
        for i in range(12)
    ]
    preference_findings = preference(data.with_labels(labels), standings(data), None)
    assert (preference_findings.contradiction is not None) == contradicts
    if contradicts:
        assert (
            preference_findings.contradiction.panel_first,
            preference_findings.contradiction.people_first,
        ) == ("ada", "bob")


@pytest.mark.parametrize("n_candidates", [0, 1, 3])
def test_without_a_comparison_there_is_no_rate(n_candidates):
    """A run that ended before its first verdict has a report all the same."""
    empty = np.zeros((0, n_candidates))
    assert rates(empty, same_items=False).rates == [None] * n_candidates


def test_labels_correct_how_often_people_would_prefer_the_first():
    """The panel gives ada 45 of 60; people agree on ada's wins in half of the labelled items only."""
    rows = [{"x": [["ada"], ["bob"]]}] * 45 + [{"x": [["bob"], ["ada"]]}] * 15
    data = run_data(rows, NAMES[:2])
    labels = [
        Label(
            item_id=f"q{i}",
            annotator="p",
            winner="bob" if i % 4 == 0 or i > 44 else "ada",
            time="2026",
        )
        for i in range(0, 60, 2)
    ]
    board = standings(data)
    few, data = data.with_labels(labels[:9]), data.with_labels(labels)
    duel = preference(data, board, correction(data, NAMES[:2])).corrected_duel
    assert (duel.first, duel.second, duel.n_labelled) == ("bob", "ada", 30)
    assert 0.55 < duel.rate.estimate < 0.7
    assert duel.panel == pytest.approx(1 - board[0].win_rate_ties_half.estimate)
    assert preference(few, board, correction(few, NAMES[:2])).corrected_duel is None
