"""Standings and duels add up, whatever the judges said, and say so when they know nothing."""

from __future__ import annotations

import numpy as np
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.simulated_runs import NAMES, grouped, run_data
from clash.analysis.coverage import coverage, unanimity
from clash.analysis.leaderboard import duels, points_table, standings


@st.composite
def runs(draw):
    """A small run in which judges fail and responses are missing."""
    k = draw(st.integers(2, 4))
    names = NAMES[:k]
    table, missing = [], []
    for item in range(draw(st.integers(1, 6))):
        absent = draw(st.sets(st.sampled_from(names), max_size=k)) if draw(st.booleans()) else set()
        missing += [(item, name) for name in absent]
        visible_names = [name for name in names if name not in absent]
        row = {}
        for judge in ("x", "y", "z"):
            ranks = [draw(st.integers(0, k - 1)) for _ in visible_names]
            has_failed = draw(st.integers(0, 4)) == 0
            row[judge] = (
                None if has_failed or len(visible_names) < 2 else grouped(ranks, visible_names)
            )
        table.append(row)
    clusters = None
    if draw(st.booleans()):
        clusters = [draw(st.sampled_from("pqr")) for _ in table]
    return run_data(table, names, clusters=clusters, missing=missing)


@settings(max_examples=40)
@given(runs())
def test_won_tied_and_lost_are_what_was_judged_and_no_item_is_forgotten(data):
    board = standings(data)
    assert [row.candidate for row in board] != []
    for row in board:
        assert row.wins + row.ties + row.losses == row.n_judged <= row.items == len(data.items)
        assert row.win_rate.estimate == pytest.approx(row.wins / len(data.items))
        assert (row.points is None) == (row.n_judged == 0)
        if row.points is not None:
            assert row.points.n == row.n_judged
            low, high = row.points.low - 1e-9, row.points.high + 1e-9
            assert -1e-9 <= low <= row.points.estimate <= high <= 1 + 1e-8
    coverage_counts = coverage(data)
    assert sum(row.wins for row in board) == coverage_counts.n_decided
    assert (
        coverage_counts.n_decided + coverage_counts.n_tied + sum(coverage_counts.abstained.values())
        == coverage_counts.items
    )
    parts = (
        coverage_counts.n_clean
        + coverage_counts.n_repaired
        + sum(coverage_counts.failures.values())
        + coverage_counts.not_run
    )
    assert parts == coverage_counts.n_expected == 3 * len(data.items)
    assert (
        sum(unanimity(data).splits.values()) == coverage_counts.n_decided + coverage_counts.n_tied
    )


@settings(max_examples=40)
@given(runs())
def test_the_shares_of_an_item_average_to_one_half(data):
    table = points_table(data)
    for row, verdict in zip(table, data.verdicts, strict=True):
        shares = row[~np.isnan(row)]
        if verdict.ranking is None:
            assert not len(shares)
        else:
            assert shares.mean() == pytest.approx(0.5)
            assert len(shares) == len(verdict.scores)


@settings(max_examples=40)
@given(runs())
def test_a_duel_is_the_same_seen_from_either_side(data):
    names = data.candidates
    other_duels = {frozenset((duel.first, duel.second)): duel for duel in duels(data, names[::-1])}
    for record in duels(data, names):
        two = other_duels.pop(frozenset((record.first, record.second)))
        is_same = record.first == two.first
        assert (record.wins, record.losses) == (
            (two.wins, two.losses) if is_same else (two.losses, two.wins)
        )
        assert record.ties == two.ties
        share = two.share.estimate if is_same else 1 - two.share.estimate
        assert record.share.estimate == pytest.approx(share)
        assert record.p == pytest.approx(two.p)
        assert record.p_holm >= record.p
    assert not other_duels


@settings(max_examples=40)
@given(runs())
def test_the_chances_to_be_best_add_up_to_one(data):
    best = [row.best for row in standings(data) if row.best is not None]
    assert not best or sum(best) == pytest.approx(1)


def ada_and_bob(*outcomes, clusters=None):
    """Items that ada wins (1), ties (0) or loses (-1), by one judge."""
    groups = {1: [["ada"], ["bob"]], 0: [["ada", "bob"]], -1: [["bob"], ["ada"]]}
    return run_data([{"x": groups[o]} for o in outcomes], ["ada", "bob"], clusters=clusters)


@pytest.mark.parametrize(("wins", "losses", "ties"), [(9, 1, 0), (6, 4, 3), (0, 5, 1), (0, 0, 4)])
def test_where_every_item_is_its_own_prompt_the_test_is_the_exact_sign_test(wins, losses, ties):
    data = ada_and_bob(*[1] * wins, *[-1] * losses, *[0] * ties)
    (duel,) = duels(data, ["ada", "bob"])
    expected_p = scipy.stats.binomtest(wins, wins + losses).pvalue if wins + losses else 1.0
    assert duel.p == pytest.approx(expected_p)
    assert duel.test == "sign test"
    assert duel.share.estimate == pytest.approx((wins + ties / 2) / (wins + losses + ties))


def test_a_prompt_repeated_ten_times_is_one_prompt():
    """Three prompts that one candidate wins ten times each are 3 heads of a coin, not 30."""
    data = ada_and_bob(*[1] * 30, clusters=[f"p{i // 10}" for i in range(30)])
    (duel,) = duels(data, ["ada", "bob"])
    assert duel.p == pytest.approx(2 / 2**3)
    (first, _) = standings(data)
    assert first.win_rate.n_effective < 30


def test_one_prompt_alone_decides_nothing():
    data = ada_and_bob(*[1] * 8, clusters=["p"] * 8)
    (duel,) = duels(data, ["ada", "bob"])
    assert duel.p == 1
    (first, _) = standings(data)
    assert (first.points.low, first.points.high) == (0, 1)
    assert first.best is None


def test_a_candidate_seen_on_one_prompt_has_no_interval_though_others_have():
    """Its mean never varies over the prompts that are drawn, which is not to say that it is sure."""
    rows = [[["ada"], ["bob"], ["cyd"]], [["ada"], ["bob"]], [["bob"], ["ada"]]]
    data = run_data(
        [{"x": row} for row in rows], ["ada", "bob", "cyd"], missing=[(1, "cyd"), (2, "cyd")]
    )
    points = {row.candidate: row.points for row in standings(data)}
    assert (points["cyd"].estimate, points["cyd"].low, points["cyd"].high) == (0, 0, 1)
    assert (points["cyd"].n, points["ada"].n) == (1, 3)
    assert "bootstrap" in points["ada"].method
    assert "none" in points["cyd"].method


def test_candidates_that_answered_little_take_no_interval_from_the_others():
    """Two guests on a prompt each are missing in most replicates."""
    both_tied, table, missing = [["ada"], ["bob"]], [], []
    for i in range(24):
        order = both_tied if i % 3 else both_tied[::-1]
        guest = {0: "cyd", 1: "dan"}.get(i)
        table.append({"x": [*order, [guest]] if guest else order})
        missing += [(i, name) for name in ("cyd", "dan") if name != guest]
    rows = {row.candidate: row for row in standings(run_data(table, NAMES[:4], missing=missing))}
    alone = standings(run_data([{"x": row["x"][:2]} for row in table], NAMES[:2]))
    for row in alone:
        points = rows[row.candidate].points
        assert 0.1 < points.low < points.estimate < points.high < 0.95
        assert points.high - points.low == pytest.approx(row.points.high - row.points.low, abs=0.1)
    assert {(rows[n].points.low, rows[n].points.high) for n in ("cyd", "dan")} == {(0, 1)}
    assert {row.best for row in rows.values()} == {None}


def test_nothing_judged_is_said_as_nothing():
    data = run_data([{"x": None}, {"x": None}], ["ada", "bob"])
    for row in standings(data):
        assert (row.n_judged, row.points, row.best, row.win_rate.estimate) == (0, None, None, 0)
    assert duels(data, data.candidates) == []
