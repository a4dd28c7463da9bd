"""Every rule, as a function of the clusters' weights, is the rule itself on repeated rankings."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from clash.errors import StatisticsError
from clash.stats.voting.borda import borda
from clash.stats.voting.bradley_terry import bradley_terry, count_comparisons
from clash.stats.voting.condorcet import copeland_scores, kemeny_scores, places, schulze_scores
from clash.stats.voting.majority import majority
from clash.stats.voting.plackett_luce import ChoiceCounts, plackett_luce, ranking_choices
from clash.stats.voting.rankings import pairwise_outcomes, ranking_array, with_twins
from clash.stats.voting.rules import FIT_SLACK, RANKING_RULES, PairwiseTable

NAN = np.nan


def scores(name, rankings, weights=None):
    tally = PairwiseTable.of(rankings)
    row = tally.own_weights() if weights is None else np.asarray(weights, dtype=float)[None]
    return RANKING_RULES[name](tally).scores(row)[0]


def count_choices(ranks):
    """The choices of all rankings, each of weight 1."""
    choices = ranking_choices(ranks)
    counts = np.zeros(choices.choice_sets.shape)
    np.add.at(counts, (choices.set_index, choices.candidate), choices.share)
    return ChoiceCounts(choices.choice_sets, counts)


def complete_rankings(n=40, k=4, seed=0):
    """Complete rankings with ties."""
    return np.random.default_rng(seed).integers(0, k, (n, k)).astype(float)


def partial(n=60, k=5, seed=0):
    """Rankings of two to five of five candidates, with ties."""
    rng = np.random.default_rng(seed)
    table = rng.integers(0, 4, (n, k)).astype(float)
    for row in table:
        row[rng.permutation(k)[: rng.integers(0, k - 1)]] = NAN
    return table


def test_borda_is_the_borda_count_of_complete_rankings():
    ranks, weights = complete_rankings(), np.random.default_rng(1).random(40)
    score_table = scores("borda", ranking_array(ranks, weights))
    assert score_table == pytest.approx(borda(ranks, weights).scores / weights.sum() / 3)


def test_head_to_head_rules_are_those_of_the_table_of_pairs():
    array = ranking_array(partial())
    counts = PairwiseTable.of(array).counts()
    d = counts.wins + counts.ties / 2
    assert scores("copeland", array).tolist() == copeland_scores(d).tolist()
    assert scores("schulze", array).tolist() == schulze_scores(d).tolist()
    assert scores("kemeny", array).tolist() == kemeny_scores(d[None])[0].tolist()


def test_of_two_candidates_majority_and_borda_give_each_item_the_same_winner():
    """The Borda count of an item with two candidates is its majority vote."""
    votes = np.random.default_rng(3).choice([1.0, 0.0, 0.5, NAN], size=(50, 3))
    vote = votes[~np.isnan(votes).all(axis=1)]
    verdict = majority(vote).verdict
    rows = np.stack([1 - vote, vote], axis=2)
    for item, row in enumerate(rows):
        score_table = scores("borda", ranking_array(row[~np.isnan(row).any(axis=1)]))
        assert np.sign(score_table[0] - score_table[1]) == np.sign(2 * verdict[item] - 1)
    items = np.repeat(np.arange(len(vote)), 3)
    share = scores("majority", ranking_array(rows.reshape(-1, 2), items=items))
    assert share[0] == pytest.approx(verdict.mean())


def test_majority_of_many_candidates_shares_an_item_among_those_with_most_first_places():
    ranks = [[1, 2, 3], [2, 1, 3], [1, 2, 3], [3, 2, 1], [1, 1, 2]]
    score_table = scores("majority", ranking_array(ranks, items=[0, 0, 1, 1, 2]))
    # Item 0 is shared by the first two, item 1 by the outer two, item 2 by the first two.
    assert score_table == pytest.approx(np.array([1.5, 1.0, 0.5]) / 3)


@pytest.mark.parametrize("davidson", [True, False])
def test_strengths_solve_the_equation_of_the_fit(davidson):
    ranks = (
        partial() if davidson else np.argsort(np.argsort(complete_rankings(seed=5), axis=1), axis=1)
    )
    rankings = ranking_array(ranks)
    outcomes = pairwise_outcomes(rankings)
    outcome = np.where(outcomes.tied, 0.5, 1.0)
    k = rankings.n_candidates
    fit = bradley_terry(count_comparisons(outcomes.first, outcomes.second, outcome, k))
    assert scores("bradley-terry", rankings) == pytest.approx(
        fit.theta - fit.theta.mean(), abs=1e-7
    )
    assert (fit.nu > 0) == davidson
    luce = plackett_luce(count_choices(ranks))
    assert scores("plackett-luce", rankings) == pytest.approx(
        luce.theta - luce.theta.mean(), abs=1e-7
    )


def test_of_pairs_plackett_luce_is_bradley_terry_with_ties_as_half_wins():
    rng = np.random.default_rng(2)
    ranks = np.full((80, 4), NAN)
    for row in ranks:
        row[rng.choice(4, 2, replace=False)] = rng.choice([[0, 1], [1, 1]])
    luce = plackett_luce(count_choices(ranks))
    score_table = scores("plackett-luce", ranking_array(ranks))
    assert score_table == pytest.approx(luce.theta - luce.theta.mean(), abs=1e-7)


@pytest.mark.parametrize("name", RANKING_RULES)
def test_a_cluster_of_weight_two_is_there_twice(name):
    ranks, clusters = partial(30), np.repeat(np.arange(10), 3)
    weights = np.random.default_rng(4).integers(0, 3, 10)
    copies = np.repeat(np.arange(10), weights)
    again = (copies[:, None] * 3 + np.arange(3)).ravel()
    repeated_rankings = ranking_array(ranks[again], items=np.repeat(np.arange(len(copies)), 3))
    score_table = scores(name, ranking_array(ranks, items=clusters), weights)
    assert score_table == pytest.approx(scores(name, repeated_rankings), abs=1e-6)


@pytest.mark.parametrize("name", RANKING_RULES)
def test_a_candidate_that_was_not_drawn_has_no_score(name):
    ranks = [[1, 2, NAN], [2, 1, NAN], [1, 2, NAN], [NAN, 1, 2]]
    score_table = scores(name, ranking_array(ranks), [1, 1, 1, 0])
    assert np.isnan(score_table).tolist() == [False, False, True]
    assert places(score_table).tolist()[2] == 0


DEGENERATE = {
    "one judge, one item": [[1, 2, 3]],
    "all ties": [[1, 1, 1]] * 6,
    "one wins everything": [[1, 2, 3], [1, 3, 2]] * 4,
    "no overlap": [[1, 2, NAN, NAN], [NAN, NAN, 1, 2]] * 3,
    "pairs only": [[1, 2, NAN], [NAN, 1, 2], [2, NAN, 1]],
}


@pytest.mark.parametrize("name", RANKING_RULES)
@pytest.mark.parametrize("case", DEGENERATE)
def test_degenerate_rankings_have_finite_scores(name, case):
    rankings = ranking_array(DEGENERATE[case])
    rule = RANKING_RULES[name](PairwiseTable.of(rankings))
    actual_scores = rule.scores(PairwiseTable.of(rankings).own_weights())[0]
    assert np.all(np.isfinite(actual_scores))
    assert rule.fit is None or rule.fit.converged
    if case == "all ties":
        assert np.ptp(actual_scores) == pytest.approx(0, abs=1e-9)
    if case == "one wins everything":
        assert places(actual_scores, rule.slack)[0] == 1
        assert rule.fit is None or rule.fit.is_separated


@settings(deadline=None, max_examples=40)
@given(
    hnp.arrays(
        float,
        st.tuples(st.integers(2, 12), st.just(4)),
        elements=st.sampled_from([0, 1, 2, 3, NAN]),
    ),
    st.permutations(range(4)),
)
def test_renaming_candidates_renames_the_scores(ranks, order):
    if not ((~np.isnan(ranks)).sum(axis=1) > 1).any():
        with pytest.raises(StatisticsError, match="orders two"):
            ranking_array(ranks)
        return
    before, after = ranking_array(ranks), ranking_array(ranks[:, order])
    for name in RANKING_RULES:
        reordered_scores = np.array(scores(name, before))[list(order)]
        assert np.allclose(reordered_scores, scores(name, after), atol=FIT_SLACK, equal_nan=True), (
            name
        )


def test_a_twin_has_the_sizes_and_ties_of_its_cluster_and_nobody_is_better():
    ranks, clusters = partial(12), np.repeat(np.arange(4), 3)
    rankings = ranking_array(ranks, items=clusters)
    pool = with_twins(rankings, 4000, np.random.default_rng(0))
    assert pool.n_clusters == 4 + 4000
    own_rows = {tuple(np.sort(np.nan_to_num(row, nan=9))) for row in rankings.ranks}
    assert {tuple(np.sort(np.nan_to_num(row, nan=9))) for row in pool.ranks} == own_rows
    everyone = ranking_array([[1, 2, 3]] * 5)
    twins = with_twins(everyone, 6000, np.random.default_rng(1))
    share = RANKING_RULES["borda"](PairwiseTable.of(twins, 5)).scores(
        (np.arange(6005) >= 5).astype(float)[None]
    )
    assert share[0] == pytest.approx([0.5] * 3, abs=0.02)


@pytest.mark.parametrize(
    ("ranks", "more", "message"),
    [
        ([[1]], {}, "K >= 2"),
        ([[1, 2]], {"weights": [-1]}, "weights"),
        ([[1, 2]], {"weights": [np.inf]}, "weights"),
        ([[1, 2]], {"items": [1, 2]}, "for each ranking"),
        ([[1, NAN]], {}, "orders two"),
        ([[1, 2]], {"weights": [0]}, "orders two"),
    ],
)
def test_bad_rankings_are_refused(ranks, more, message):
    with pytest.raises(StatisticsError, match=message):
        ranking_array(ranks, **more)


def test_kemeny_says_from_where_on_it_is_refused():
    with pytest.raises(StatisticsError, match="16 candidates, and there are 17"):
        RANKING_RULES["kemeny"](PairwiseTable.of(ranking_array([np.arange(17.0)])))
