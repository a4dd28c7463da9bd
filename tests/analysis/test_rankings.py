"""Ballots of runs and votes files become rankings that say how sure they are and why they differ."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from analysis.ranked import ranked_run
from clash.analysis.rankings import rank_candidates, ranking_names
from clash.analysis.rankings.weights import judge_weights, read_weights, vote_weights
from clash.errors import ConfigError, InputError, StatisticsError
from clash.report.ranking_tables import as_json, lines, methods_json, tables
from clash.stats.voting.rankings import ranking_array
from clash.votes import VoteRow, encode, read_votes, write_votes
from clash.votes.from_run import score_rows, vote_rows
from clash.votes.named_rankings import NamedRankings, file_rankings, run_rankings

SHARED = Path(__file__).resolve().parents[2] / "../shared/data/votes"
NAN = np.nan


def rankings_of(ranks, judges=None, items=None, *, weights=None, clusters=None, names="abcdefgh"):
    """Ballots over candidates a, b, …"""
    table = np.asarray(ranks, dtype=float)
    judge_of_row = np.zeros(len(table), dtype=int) if judges is None else np.asarray(judges)
    n = int(judge_of_row.max()) + 1
    rankings = ranking_array(table, None, judge_of_row, items, clusters)
    return NamedRankings(
        candidates=tuple(names[: table.shape[1]]),
        judges=tuple(f"j{i}" for i in range(n)),
        weights=np.ones(n) if weights is None else np.asarray(weights, dtype=float),
        rankings=rankings,
        n_items=len(np.unique(rankings.items)),
        failed=0,
    )


def scores(findings, method):
    return {
        target_place.candidate: target_place.score
        for target_place in findings.result(method).places
    }


CYCLE = [[1, 2, 3], [3, 1, 2], [2, 3, 1]] * 4


def test_a_cycle_is_shown_and_is_a_tie_of_the_methods_that_ask_who_beats_whom():
    rankings = rank_candidates(
        rankings_of(CYCLE), ["copeland", "schulze", "kemeny", "borda"], replicates=100
    )
    assert rankings.condorcet is None
    assert len(rankings.cycle) == len(rankings.smith) == 3
    assert "is a cycle" in rankings.differences[0]
    assert "8:4" in rankings.differences[0]
    for method in rankings.methods:
        assert [target_place.rank for target_place in method.places] == [1, 1, 1]
        assert method.places[0].tied == ("b", "c")
        assert sum(target_place.first for target_place in method.places) == pytest.approx(1)


def test_where_borda_passes_over_the_condorcet_winner_the_reason_is_told():
    """Three of five put a before b, but two put it last: b leads on the average (Borda's own case)."""
    ranks = [[1, 2, 3], [1, 2, 3], [1, 2, 3], [3, 1, 2], [3, 1, 2]] * 3
    rankings = rank_candidates(rankings_of(ranks), ["borda", "kemeny"], replicates=50)
    assert rankings.condorcet == "a"
    assert rankings.result("borda").first == ("b",)
    assert rankings.result("kemeny").first == ("a",)
    warning_text = "\n".join(rankings.differences)
    assert "a beats every other candidate head to head" in warning_text
    assert "b first by borda: borda counts every position" in warning_text
    assert "head to head 6:9" in warning_text


def test_the_seed_is_told_and_gives_the_same_intervals():
    rankings = rankings_of(
        np.random.default_rng(0).permuted(np.tile(np.arange(4), (40, 1)), axis=1)
    )
    first_rankings, other_rankings = (
        rank_candidates(rankings, ranking_names()[:4], seed=3, replicates=60) for _ in range(2)
    )
    assert first_rankings.methods == other_rankings.methods
    assert first_rankings.seed == 3
    assert (
        rank_candidates(rankings, ["borda"], seed=4, replicates=60).methods
        != first_rankings.methods[:1]
    )


def test_places_of_one_method_hold_its_score_and_add_up():
    rng = np.random.default_rng(2)
    rankings = rankings_of(
        rng.integers(0, 4, (60, 4)), np.tile([0, 1, 2], 20), np.repeat(np.arange(20), 3)
    )
    actual_rankings = rank_candidates(rankings, ranking_names(), replicates=200)
    for method in actual_rankings.methods:
        assert method.converged
        assert sum(target_place.first for target_place in method.places) == pytest.approx(1)
        for target_place in method.places:
            assert target_place.low <= target_place.score <= target_place.high
            assert target_place.rank_low <= target_place.rank <= target_place.rank_high
        for target_place in method.places:
            for place_name in method.places:
                assert (place_name.candidate in target_place.close) == (
                    target_place.candidate in place_name.close
                )
    assert actual_rankings.n_clusters == 20
    assert actual_rankings.n_rankings == 60


def test_sets_that_never_met_are_said_and_no_place_across_them_is_believed():
    ranks = [[1, 2, NAN, NAN], [NAN, NAN, 1, 2]] * 5
    rankings = rank_candidates(rankings_of(ranks), ["bradley-terry", "copeland"], replicates=50)
    assert rankings.groups == (("a", "b"), ("c", "d"))
    warning_text = "\n".join(rankings.warnings)
    assert "2 unconnected sets (a and b | c and d)" in warning_text
    assert "4 of 6 pairs never met" in warning_text
    assert "only the prior of half a game" in warning_text


def test_one_item_has_a_ranking_and_no_interval():
    rankings = rank_candidates(
        rankings_of([[1, 2], [1, 2]], [0, 1], [0, 0]), ["borda", "bradley-terry"]
    )
    assert rankings.replicates == 0
    assert all(
        target_place.low is None and target_place.first is None
        for target_place in rankings.methods[0].places
    )
    assert "no interval" in rankings.warnings[0]


def test_a_candidate_of_one_item_takes_no_interval_and_leaves_the_others_theirs():
    ranks = [[1, 2, NAN], [2, 1, NAN], [1, 2, NAN]] * 4 + [[1, NAN, 2]]
    rankings = rank_candidates(rankings_of(ranks), ["borda"], replicates=100)
    places = {target_place.candidate: target_place for target_place in rankings.methods[0].places}
    assert places["c"].low is None
    assert places["a"].low < places["a"].score < places["a"].high


def test_strengths_that_do_not_lie_on_a_line_are_told():
    rng = np.random.default_rng(5)
    beats = {(0, 1): 0.9, (1, 2): 0.9, (0, 2): 0.1}
    ranks = np.full((600, 3), NAN)
    for row, (pair, p) in zip(ranks, list(beats.items()) * 200, strict=True):
        row[list(pair)] = [0, 1] if rng.random() < p else [1, 0]
    rankings = rank_candidates(rankings_of(ranks), ["bradley-terry"], replicates=0)
    assert any("the model predicts" in line for line in rankings.warnings)


def test_weights_count_in_all_but_the_majority():
    ranks, judges = [[1, 2], [2, 1], [2, 1]] * 6, [0, 1, 2] * 6
    items = np.repeat(np.arange(6), 3)
    rankings = rankings_of(ranks, judges, items, weights=[3, 1, 1])
    actual_rankings = rank_candidates(
        rankings, ["borda", "majority", "weighted-majority"], replicates=0, weights="panel"
    )
    assert actual_rankings.result("borda").first == ("a",)
    assert actual_rankings.result("majority").first == ("b",)
    assert actual_rankings.result("weighted-majority").first == ("a",)
    equal = rank_candidates(rankings, ["borda"], replicates=0, weights="equal")
    assert scores(equal, "borda") == pytest.approx({"a": 1 / 3, "b": 2 / 3})
    assert actual_rankings.weights == {"j0": 3, "j1": 1, "j2": 1}


def test_the_weighted_majority_weighs_by_the_one_coin_model():
    rng = np.random.default_rng(6)
    better = rng.random(400) < 0.7
    skill = np.array([0.95, 0.75, 0.6, 0.52])
    right = rng.random((400, 4)) < skill
    first = np.where(right, better[:, None], ~better[:, None])
    ranks = np.stack([1 - first, first], axis=2).reshape(-1, 2).astype(float)
    rankings = rankings_of(ranks, np.tile(np.arange(4), 400), np.repeat(np.arange(400), 4))
    weights = judge_weights("one-coin", rankings)
    assert weights == pytest.approx(np.log(skill / (1 - skill)), abs=0.6)
    assert np.all(np.diff(weights) < 0)
    share = scores(
        rank_candidates(rankings, ["weighted-majority", "majority"], replicates=0),
        "weighted-majority",
    )
    plain = scores(rank_candidates(rankings, ["majority"], replicates=0), "majority")
    assert abs(share["a"] - better.mean()) < abs(plain["a"] - better.mean()) + 0.02


def test_two_judges_have_no_weights_by_one_coin_and_the_others_are_ranked():
    rankings = rankings_of([[1, 2], [2, 1]] * 10, [0, 1] * 10, np.repeat(np.arange(10), 2))
    actual_rankings = rank_candidates(rankings, ["weighted-majority", "borda"], replicates=20)
    assert actual_rankings.result("weighted-majority").status == "refused"
    assert "needs 3 judges" in actual_rankings.result("weighted-majority").notes[0]
    assert actual_rankings.result("borda").status == "ok"


def test_discrimination_is_the_share_of_pairs_that_a_judge_does_not_tie():
    rankings = rankings_of([[1, 2, 3], [1, 1, 1], [1, 1, 2]], [0, 1, 2], [0, 0, 0])
    assert judge_weights("discrimination", rankings) == pytest.approx([1, 0, 2 / 3])
    votes = encode([VoteRow("q", "j", "A"), VoteRow("r", "j", "tie"), VoteRow("q", "k", "B")])
    assert vote_weights("discrimination", votes).tolist() == [0.5, 1]


def test_weights_of_a_file(tmp_path):
    rankings = rankings_of([[1, 2], [2, 1]], [0, 1], [0, 0])
    plain, table = tmp_path / "w.json", tmp_path / "w.csv"
    plain.write_text('{"j0": 2, "j1": 0.5, "other": 9}')
    table.write_text("judge,weight\nj0,2\nj1,0.5\n")
    assert (
        judge_weights(str(plain), rankings).tolist() == judge_weights(str(table), rankings).tolist()
    )
    table.write_text("judge,weight\nj0,2\nj1,heavy\n")
    with pytest.raises(InputError, match=r"w.csv:3: weight: 'heavy'"):
        read_weights(table)
    plain.write_text('{"j0": 2}')
    with pytest.raises(ConfigError, match="no weight for 'j1'"):
        judge_weights(str(plain), rankings)
    plain.write_text('{"j0": ')
    with pytest.raises(InputError, match="is not JSON"):
        read_weights(plain)
    plain.write_text('{"j0": 0, "j1": 0}')
    with pytest.raises(ConfigError, match="give no ranking a weight above 0"):
        rank_candidates(rankings, ["borda"], weights=str(plain))


def test_an_unknown_ranking_is_refused_with_the_known_ones():
    with pytest.raises(ConfigError, match="one of borda, majority"):
        rank_candidates(rankings_of([[1, 2]]), ["elo"])


def line(item, judge, vote, a="a", b="b", **more):
    return VoteRow(item, judge, vote, extra={"model_a": a, "model_b": b}, **more)


def test_a_votes_file_that_names_models_is_ballots_of_pairs(tmp_path):
    path = tmp_path / "v.jsonl"
    rows = [line("q1", "j", "A"), line("q2", "j", "tie", "b", "c"), line("q3", "j", None, "c", "a")]
    write_votes(path, rows)
    rankings = file_rankings(path)
    assert rankings.candidates == ("a", "b", "c")
    assert np.array_equal(rankings.rankings.ranks, [[0, 1, NAN], [NAN, 0.5, 0.5]], equal_nan=True)
    assert (rankings.n_items, rankings.n_ranked_items, rankings.failed) == (3, 2, 1)
    votes_file = tmp_path / "v.csv"
    write_votes(votes_file, rows)
    assert np.array_equal(
        file_rankings(votes_file).rankings.ranks, rankings.rankings.ranks, equal_nan=True
    )


def test_copies_of_an_item_share_a_judges_one_say(tmp_path):
    path = tmp_path / "v.jsonl"
    rows = [line("q1", "j", "A", presentation=p) for p in ("orig", "swap")] + [line("q2", "j", "B")]
    write_votes(path, rows)
    assert file_rankings(path).rankings.weights.tolist() == [0.5, 0.5, 1]
    assert file_rankings(path, copies="separate").rankings.weights.tolist() == [1, 1, 1]


def test_scores_of_models_in_a_group_are_ballots(tmp_path):
    path = tmp_path / "v.jsonl"
    rows = [
        VoteRow(f"q1#{name}", "j", score, group="q1", extra={"model": name})
        for name, score in (("a", 4.5), ("b", 2), ("c", 4.5))
    ]
    write_votes(path, [*rows, VoteRow("q2#a", "j", None, group="q2", extra={"model": "a"})])
    rankings = file_rankings(path)
    assert rankings.rankings.ranks.tolist() == [[-4.5, -2, -4.5]]
    assert (rankings.n_items, rankings.failed) == (2, 1)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([line("q1", "j", "A"), VoteRow("q2", "j", "A", extra={"model_a": "a"})], r":2: model_b"),
        ([line("q1", "j", "A"), line("q1", "j", "B")], "second vote"),
        ([line("q1", "j", 7), line("q2", "j", 3)], "scores of a pair"),
        ([VoteRow("q1", "j", 3, extra={"model": "a"})] * 1, r":1: group"),
        (
            [VoteRow(f"q{i}", "j", i, group="g", extra={"model": "a"}) for i in (3, 4)],
            "2 scores of one model",
        ),
    ],
)
def test_lines_that_are_no_ballots_are_refused(rows, message, tmp_path):
    path = tmp_path / "v.jsonl"
    write_votes(path, rows)
    with pytest.raises(InputError, match=message):
        file_rankings(path)


BALLOTS = [
    {"item": "q1", "judge": "j", "ranking": [["ada"], ["bob", "eve"]], "label": "ada"},
    {"item": "q1", "judge": "k", "ranking": ["eve", "ada", "bob"], "label": "ada", "family": "x"},
    {"item": "q2", "judge": "j", "ranking": None, "label": "tie", "subset": "s"},
    {"item": "q2", "judge": "k", "ranking": [["bob"], ["ada"]], "label": "tie", "group": "g"},
]


def dump(path, records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_a_file_of_ballots_is_ranked(tmp_path):
    rankings = file_rankings(dump(tmp_path / "b.jsonl", BALLOTS))
    assert (rankings.candidates, rankings.judges) == (("ada", "bob", "eve"), ("j", "k"))
    assert np.array_equal(
        rankings.rankings.ranks, [[0, 1, 1], [1, 2, 0], [1, 0, NAN]], equal_nan=True
    )
    assert (rankings.n_items, rankings.n_ranked_items, rankings.failed) == (2, 2, 1)
    assert file_rankings(tmp_path / "b.jsonl", judges=["j"]).n_rankings == 1
    assert file_rankings(tmp_path / "b.jsonl", decisive=True).n_items == 1


def test_models_of_two_sides_read_a_file_of_ballots_as_pairs(tmp_path):
    votes = read_votes(dump(tmp_path / "b.jsonl", BALLOTS))
    assert votes.items == ("q1#ada|bob", "q1#ada|eve", "q1#bob|eve", "q2")
    # Of the two in q2 a vote for A is for ada; j failed there.
    expected_scores = [[1, 1], [1, 0], [0.5, 0], [NAN, 0]]
    assert np.array_equal(votes.matrix, expected_scores, equal_nan=True)
    assert np.array_equal(votes.labels, [1, 1, NAN, 0.5], equal_nan=True)
    assert len(set(votes.groups[:3].tolist())) == 1
    assert votes.groups[3] != votes.groups[0]
    assert votes.failed.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ranking": ["ada", "ada"]}, r":5: ranking: candidate 'ada' appears twice"),
        ({"ranking": [[""], ["ada"]]}, r":5: ranking: a candidate has no name"),
        ({"ranking": "ada"}, r":5: ranking: Expected `array"),
        ({"judge": "j", "item": "q1"}, r":5: a second ranking of 'j'"),
        ({"item": "q1", "judge": "m", "label": "bob"}, r":5: label: item 'q1' has two labels"),
    ],
)
def test_lines_of_a_file_of_ballots_that_are_none_are_refused(change, message, tmp_path):
    line = {"item": "q3", "judge": "j", "ranking": ["ada", "bob"]} | change
    path = dump(tmp_path / "b.jsonl", [*BALLOTS, line])
    for read in (file_rankings, read_votes):
        with pytest.raises(InputError, match=message):
            read(path)


def test_filters_that_leave_no_ballot_are_refused(tmp_path):
    path = dump(tmp_path / "b.jsonl", BALLOTS)
    with pytest.raises(InputError, match="no ranking is left"):
        file_rankings(path, subset=["nothing"])
    with pytest.raises(StatisticsError, match="no ranking orders two"):
        file_rankings(path, subset=["s"])


def test_repeated_ballots_share_one_say_and_are_copies_of_the_item(tmp_path):
    twice = [{**BALLOTS[0], "repeat": i} for i in (0, 1)]
    path = dump(tmp_path / "b.jsonl", twice)
    assert file_rankings(path).rankings.weights.tolist() == [0.5, 0.5]
    assert file_rankings(path, copies="separate").rankings.weights.tolist() == [1, 1]
    assert read_votes(path).n_rows == 6


def test_votes_that_name_nobody_are_no_ballots(tmp_path):
    path = tmp_path / "v.jsonl"
    write_votes(path, [VoteRow("q1", "j", "A")])
    assert file_rankings(path) is None


def test_a_model_against_itself_is_left_out_and_counted(tmp_path):
    path = tmp_path / "v.jsonl"
    write_votes(path, [line("q1", "j", "A", "a", "a"), line("q2", "j", "A")])
    rankings = file_rankings(path)
    assert rankings.n_rankings == 1
    assert "1 votes compare a model with itself" in rankings.notes[0]
    write_votes(path, [line("q1", "j", "A", "a", "a")])
    with pytest.raises(StatisticsError, match="no ranking"):
        file_rankings(path)


@pytest.fixture
def run(tmp_path):
    return ranked_run(tmp_path)


def test_the_ballots_of_a_run_are_its_voting_judges_rankings(run):
    rankings = run_rankings(run)
    assert (rankings.candidates, rankings.absent) == (("a", "b", "c"), ("never",))
    assert (rankings.judges, rankings.weights.tolist()) == (("j1", "j2"), [2, 1])
    # j1 ranks a, b, c in both orders, which share its one say; j2 failed on one page.
    assert np.array_equal(
        rankings.rankings.ranks,
        [[0, 1, 2], [0, 1, 2], [1, 0, 1], [0, 1, NAN], [0, 1, NAN]],
        equal_nan=True,
    )
    assert rankings.rankings.weights.tolist() == [0.5, 0.5, 1, 1, 1]
    assert (
        rankings.n_items,
        rankings.n_ranked_items,
        rankings.failed,
        rankings.rankings.n_clusters,
    ) == (
        3,
        2,
        1,
        2,
    )
    warnings = rank_candidates(rankings, ["borda"], replicates=20).warnings
    assert any("1 of 3 items has no ranking" in line for line in warnings)
    assert any("never is in no ranking" in line for line in warnings)
    assert any("1 failed judgment" in line for line in warnings)


def test_filters_of_a_run(run):
    assert run_rankings(run, judges=["j2"]).n_rankings == 2
    assert run_rankings(run, subset=["q2"]).candidates == ("a", "b")
    # People decided that q2 is a tie.
    assert run_rankings(run, decisive=True).n_items == 2
    with pytest.raises(InputError, match="no ranking is left"):
        run_rankings(run, judges=["nobody"])


def test_an_exported_run_ranks_as_the_run_does(run, tmp_path):
    """By the methods that only look at pairs; with one judge, as an export has no weights."""
    path = tmp_path / "v.jsonl"
    write_votes(path, list(vote_rows(run)))
    for method in ("copeland", "schulze", "kemeny"):
        rankings = rank_candidates(run_rankings(run, judges=["j1"]), [method], replicates=0)
        leaderboard = rank_candidates(file_rankings(path, judges=["j1"]), [method], replicates=0)
        assert scores(leaderboard, method) == scores(rankings, method)
    write_votes(path, list(score_rows(run)))
    by_score = rank_candidates(file_rankings(path, judges=["j1"]), ["kemeny"], replicates=0)
    assert scores(by_score, "kemeny") == {"a": 2, "b": 1, "c": 0}


@settings(deadline=None, max_examples=60)
@drawn(
    hnp.arrays(
        float,
        st.tuples(st.integers(1, 10), st.integers(2, 4)),
        elements=st.sampled_from([0, 1, 2, NAN]),
    ),
    st.lists(st.integers(0, 3), min_size=10, max_size=10),
    st.lists(st.integers(0, 2), min_size=10, max_size=10),
)
def test_whatever_the_ballots_a_ranking_is_finite_or_refused(ranks, items, judges):
    n = len(ranks)
    try:
        rankings = rankings_of(ranks, judges[:n], items[:n])
    except StatisticsError:
        return
    actual_rankings = rank_candidates(rankings, ranking_names(), replicates=12)
    json.dumps(
        [as_json(actual_rankings), methods_json(actual_rankings), list(lines(actual_rankings))],
        allow_nan=False,
    )
    assert all(table.rows for table in tables(actual_rankings))
    for method in actual_rankings.methods:
        assert method.status == "ok" or method.notes
        for target_place in method.places:
            assert 1 <= target_place.rank <= len(actual_rankings.candidates)
            assert np.isfinite(target_place.score)
            assert target_place.first is None or 0 <= target_place.first <= 1


def test_an_exact_search_that_is_slow_has_fewer_replicates_and_says_so():
    ranks = np.random.default_rng(0).permuted(np.tile(np.arange(13.0), (12, 1)), axis=1)
    rankings = rank_candidates(
        rankings_of(ranks, names="abcdefghijklm"), ["kemeny", "borda"], replicates=110
    )
    assert rankings.result("kemeny").replicates == 100
    assert "100 replicates" in rankings.result("kemeny").notes[0]
    assert rankings.result("borda").replicates == 110


@pytest.mark.skipif(not SHARED.is_dir(), reason="../shared/data is absent")
def test_59_models_of_the_crowd_are_ranked_and_agree_with_the_published_strengths():
    """llmfao: our Bradley-Terry order against evalica's golden one."""
    path = SHARED / "llmfao.votes.jsonl.gz"
    rankings = rank_candidates(
        file_rankings(path, judges=["*/crowd"]), ["bradley-terry", "kemeny"], replicates=30
    )
    assert rankings.result("kemeny").status == "refused"
    golden = {}
    with (SHARED.parent / "llmfao-golden.csv").open(encoding="utf-8") as file:
        for row in file.read().splitlines()[1:]:
            algorithm, *name, value = row.split(",")
            if algorithm == "bradley_terry":
                golden[",".join(name).strip('"')] = float(value)
    own_candidates = [
        target_place.candidate for target_place in rankings.result("bradley-terry").places
    ]
    reference_golden = sorted(golden, key=golden.__getitem__, reverse=True)
    assert set(own_candidates) == set(reference_golden)
    gaps = [
        abs(own_candidates.index(name) - target_place)
        for target_place, name in enumerate(reference_golden)
    ]
    assert max(gaps) <= 5
    assert np.mean(gaps) < 1
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        crowd = sum(json.loads(row)["judge"].endswith("/crowd") for row in lines)
    assert rankings.n_rankings == crowd
