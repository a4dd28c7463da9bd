"""What judges say becomes a verdict: fair to names, to labels and to judges, and to nothing else."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import clash
from analysis.simulated_runs import NAMES, decided, grouped, records, rules
from clash.analysis.run_verdicts import decide_verdicts, verdicts
from clash.analysis.verdicts import VerdictRules, verdict
from clash.errors import RunFolderError
from clash.records import Blinding, Criteria, Criterion, Item, Response
from clash.report.formats import unanimity
from clash.stats.voting.borda import borda
from clash.votes.ballots import unblind_rankings, weighted_score
from clash.votes.blinding_index import BlindingIndex
from clash.votes.from_run import Panelist

WEIGHTS = (0.5, 1.0, 2.0, 3.0)


@st.composite
def panels(draw, *, candidates=(2, 4), judges=(1, 5), missing=False):
    """What each judge of a panel said of one item, and the weights of the judges."""
    k = draw(st.integers(*candidates))
    names = NAMES[:k]
    rows = draw(
        st.lists(
            st.lists(st.integers(0, k - 1), min_size=k, max_size=k),
            min_size=judges[0],
            max_size=judges[1],
        )
    )
    rankings = {f"j{n}": grouped(row, names) for n, row in enumerate(rows)}
    if missing:
        for judge in draw(st.sets(st.sampled_from(sorted(rankings)))):
            rankings[judge] = None
    weights = {judge: draw(st.sampled_from(WEIGHTS)) for judge in rankings}
    return rankings, weights


def renamed(groups, new):
    return None if groups is None else [sorted(new[name] for name in group) for group in groups]


def ahead(verdict, name):
    """How many are placed before ``name``."""
    rank = next(i for i, group in enumerate(verdict.ranking) if name in group)
    return sum(len(group) for group in verdict.ranking[:rank])


# -- fairness ---------------------------------------------------------------------------------------


@given(panels(), st.permutations(NAMES), st.sampled_from(["none", "scores"]))
def test_neutral_other_names_give_the_same_verdict_under_other_names(panel, names, tie_break):
    votes, weights = panel
    new = dict(zip(NAMES, names, strict=True))
    by = rules(weights, tie_break=tie_break)
    verdict = decided(votes, by)
    two = decided({judge: renamed(groups, new) for judge, groups in votes.items()}, by)
    assert two.winner == (new[verdict.winner] if verdict.winner else None)
    assert two.ranking == renamed(verdict.ranking, new)
    assert two.scores == {new[name]: score for name, score in verdict.scores.items()}
    assert (two.confidence, two.split, two.unanimous) == (
        verdict.confidence,
        verdict.split,
        verdict.unanimous,
    )


@given(panels(), st.integers(0, 1000))
def test_blind_no_order_on_the_page_changes_a_verdict(panel, seed):
    votes, weights = panel
    assert decided(votes, rules(weights), seed=0) == decided(votes, rules(weights), seed=seed)


@given(panels(), st.randoms(use_true_random=False))
def test_anonymous_it_does_not_matter_which_judge_said_what(panel, rng):
    votes, _ = panel
    rankings = list(votes.values())
    rng.shuffle(rankings)
    by = rules(dict.fromkeys(votes, 1.0))
    assert decided(dict(zip(votes, rankings, strict=True)), by) == decided(votes, by)


@given(panels(), st.data())
def test_monotone_to_raise_a_candidate_on_one_ballot_never_hurts_it(panel, data):
    votes, weights = panel
    by = rules(weights)
    judge = data.draw(st.sampled_from(sorted(votes)))
    candidate = data.draw(st.sampled_from(sorted(n for g in votes[judge] for n in g)))
    groups = [[name for name in group if name != candidate] for group in votes[judge]]
    at = next(i for i, group in enumerate(votes[judge]) if candidate in group)
    to = data.draw(st.integers(0, at))
    if data.draw(st.booleans()):
        groups[to] = [*groups[to], candidate]  # level with those there
    else:
        groups.insert(to, [candidate])
    raised_votes = {**votes, judge: [group for group in groups if group]}
    before, after = decided(votes, by), decided(raised_votes, by)
    assert after.scores[candidate] >= before.scores[candidate]
    assert ahead(after, candidate) <= ahead(before, candidate)
    assert before.winner != candidate or after.winner == candidate


# -- weights ----------------------------------------------------------------------------------------


@given(panels(judges=(1, 4)))
def test_a_judge_of_weight_2_is_two_judges_of_weight_1(panel):
    votes, _ = panel
    first = next(iter(votes))
    doubled_verdict = decided(votes, rules({j: 2.0 if j == first else 1.0 for j in votes}))
    twice = decided({**votes, "twin": votes[first]}, rules(dict.fromkeys([*votes, "twin"], 1.0)))
    assert doubled_verdict.scores == twice.scores
    assert (doubled_verdict.ranking, doubled_verdict.winner, doubled_verdict.confidence) == (
        twice.ranking,
        twice.winner,
        twice.confidence,
    )


@given(panels(), st.floats(0.01, 100))
def test_only_the_ratio_of_weights_counts(panel, factor):
    votes, weights = panel
    verdict = decided(votes, rules(weights))
    two = decided(votes, rules({judge: w * factor for judge, w in weights.items()}))
    assert (verdict.ranking, verdict.winner) == (two.ranking, two.winner)
    assert verdict.confidence == pytest.approx(two.confidence, abs=1e-6)


@given(panels(candidates=(2, 2)))
def test_with_two_candidates_it_is_the_weighted_majority(panel):
    votes, weights = panel
    lead = sum(
        weights[judge] * (1 if groups[0] == ["ada"] else -1)
        for judge, groups in votes.items()
        if len(groups) == 2
    )
    verdict = decided(votes, rules(weights))
    assert verdict.winner == (None if lead == 0 else "ada" if lead > 0 else "bob")
    assert verdict.confidence == pytest.approx(abs(lead) / sum(weights.values()))


@given(panels())
def test_points_add_up_and_ties_share_them(panel):
    votes, weights = panel
    verdict = decided(votes, rules(weights))
    k = len(verdict.scores)
    assert sum(verdict.scores.values()) == pytest.approx(sum(weights.values()) * k * (k - 1) / 2)
    for judge, groups in votes.items():
        alone = decided({judge: groups}, rules({judge: 1.0}))
        assert alone.ranking == [sorted(group) for group in groups]
        for group in groups:
            assert len({alone.scores[name] for name in group}) == 1


@given(panels())
def test_confidence_is_0_for_a_tie_and_1_only_for_the_clearest_lead(panel):
    votes, weights = panel
    verdict = decided(votes, rules(weights))
    assert 0 <= verdict.confidence <= 1
    assert (verdict.confidence == 0) == (verdict.winner is None)
    if len(verdict.scores) == 2:
        clear = all(groups == [[verdict.winner], *groups[1:]] for groups in votes.values())
        assert math.isclose(verdict.confidence, 1) == clear


@given(panels(judges=(2, 5)))
def test_the_winner_is_the_one_that_borda_names(panel):
    votes, weights = panel
    names = sorted({name for groups in votes.values() for group in groups for name in group})
    ranks = [
        [next(i for i, g in enumerate(groups) if name in g) for name in names]
        for groups in votes.values()
    ]
    winner = int(borda(ranks, list(weights.values())).winner)
    assert decided(votes, rules(weights)).winner == (None if winner < 0 else names[winner])


# -- missing judges and the quorum ------------------------------------------------------------------


@given(panels(missing=True), st.sampled_from([None, 1.0, 2.0, 4.0]))
def test_a_judge_that_failed_is_as_if_it_had_not_been_there_and_the_quorum_decides(panel, quorum):
    votes, weights = panel
    by = rules(weights, quorum=quorum)
    present = {judge: groups for judge, groups in votes.items() if groups is not None}
    weight = sum(weights[judge] for judge in present)
    total = sum(weights.values())
    enough = weight >= quorum if quorum is not None else weight > total / 2
    verdict = decided(votes, by)
    if not (enough and present):
        assert (verdict.ranking, verdict.winner, verdict.confidence) == (None, None, None)
        assert verdict.abstained
        assert not verdict.unanimous
        return
    same_verdict = decided(present, rules({judge: weights[judge] for judge in present}))
    assert (verdict.ranking, verdict.scores, verdict.split) == (
        same_verdict.ranking,
        same_verdict.scores,
        same_verdict.split,
    )
    assert verdict.abstained is None
    # Unanimous is a word about the whole panel.
    assert verdict.unanimous == (same_verdict.unanimous and len(present) == len(votes))


@given(panels(), panels(judges=(1, 3)))
def test_observers_are_never_counted(panel, watching):
    votes, weights = panel
    k = len({name for groups in votes.values() for group in groups for name in group})
    observer_votes = {f"o{j}": g for j, g in watching[0].items() if sum(map(len, g)) == k}
    alone = decided(votes, rules(weights))
    assert (
        decided({**votes, **observer_votes}, rules(weights, observers=list(observer_votes)))
        == alone
    )


def test_half_the_voting_weight_is_no_majority():
    by = rules({"a": 1.0, "b": 1.0})
    assert decided({"a": [["ada"], ["bob"]], "b": None}, by).ranking is None
    assert decided({"a": [["ada"], ["bob"]], "b": None}, rules({"a": 1.1, "b": 1.0})).ranking


# -- both orders ------------------------------------------------------------------------------------

FOR, AGAINST = [["ada"], ["bob"]], [["bob"], ["ada"]]


def test_a_judge_that_contradicts_itself_in_the_other_order_ties():
    by = rules({"a": 1.0, "b": 1.0}, presentations=2)
    verdict = decided({"a": [FOR, AGAINST], "b": [FOR, FOR]}, by)
    assert verdict.scores == {"ada": 1.5, "bob": 0.5}
    assert verdict.split == "1-0-1"
    assert not verdict.unanimous
    assert decided({"a": [FOR, FOR], "b": [FOR, FOR]}, by).unanimous


def test_a_judge_that_failed_in_one_order_counts_half_for_the_quorum():
    by = rules({"a": 1.0, "b": 1.0, "c": 1.0}, quorum=2, presentations=2)
    assert decided({"a": [FOR, None], "b": [FOR, FOR], "c": [None, None]}, by).ranking is None
    verdict = decided({"a": [FOR, None], "b": [FOR, FOR], "c": [None, AGAINST]}, by)
    assert verdict.ranking is not None
    assert not verdict.unanimous


@given(panels(judges=(1, 3)), st.data())
def test_two_orders_weigh_as_much_as_one(panel, data):
    votes, weights = panel
    both_votes = {
        judge: [groups, data.draw(st.sampled_from([groups, groups[::-1]]))]
        for judge, groups in votes.items()
    }
    k = len({name for groups in votes.values() for group in groups for name in group})
    verdict = decided(both_votes, rules(weights, presentations=2))
    assert sum(verdict.scores.values()) == pytest.approx(sum(weights.values()) * k * (k - 1) / 2)
    if all(record == two for record, two in both_votes.values()):
        assert verdict.scores == pytest.approx(decided(votes, rules(weights)).scores)


# -- ties -------------------------------------------------------------------------------------------


@given(panels(), st.data())
def test_scores_break_ties_at_the_top_and_nothing_else(panel, data):
    votes, weights = panel
    names = sorted({name for groups in votes.values() for group in groups for name in group})
    marks = {judge: {name: data.draw(st.integers(1, 5)) for name in names} for judge in votes}
    plain = decided(votes, rules(weights), scores=marks)
    broken = decided(votes, rules(weights, tie_break="scores"), scores=marks)
    assert (plain.scores, plain.confidence) == (broken.scores, broken.confidence)
    if plain.winner is not None:
        assert broken == plain
        return
    tied = plain.ranking[0]
    means = {
        name: round(sum(weights[j] * marks[j][name] for j in votes) / sum(weights.values()), 9)
        for name in tied
    }
    best = [name for name in tied if means[name] == max(means.values())]
    assert broken.ranking[0] == sorted(best)
    assert broken.winner == (best[0] if len(best) == 1 else None)
    assert broken.ranking[-1] == plain.ranking[-1] or len(plain.ranking) == 1


def test_without_scores_a_tie_stays_a_tie():
    by = rules({"a": 1.0, "b": 1.0}, tie_break="scores")
    assert decided({"a": FOR, "b": AGAINST}, by).winner is None


def test_every_tie_of_a_long_random_run_is_reported_as_one():
    """The A0 slot of the published system broke them; here nothing does."""
    rng = random.Random(5)
    by = rules({"a": 1.0, "b": 1.0})
    for seed in range(200):
        k = rng.randint(2, 4)
        order = rng.sample(NAMES[:k], k)
        groups = [[name] for name in order]
        verdict = decided({"a": groups, "b": groups[::-1]}, by, seed=seed)
        assert verdict.winner is None
        assert verdict.ranking == [sorted(order)]
        assert verdict.split.startswith("1-1")


def test_scores_that_break_a_tie_are_weighed_as_the_rubric_weighs_them():
    judgments, pages = records("q", {"a": FOR, "b": AGAINST})
    marks = {"ada": {"Truth": 5, "Wit": 1}, "bob": {"Truth": 2, "Wit": 5}}
    labels = {name: label for label, name in pages[0].labels.items()}
    judgments = [
        j.model_copy(update={"scores": {labels[name]: row for name, row in marks.items()}})
        for j in judgments
    ]
    by = rules({"a": 1.0, "b": 1.0}, tie_break="scores")
    for weights, winner in (((3, 1), "ada"), ((1, 3), "bob"), ((4, 3), None)):
        rubric = [
            Criterion(name=name, weight=weight)
            for name, weight in zip(("Truth", "Wit"), weights, strict=True)
        ]
        criteria = {"q": Criteria(item_id="q", source="fixed", criteria=rubric)}
        rankings = unblind_rankings(judgments, BlindingIndex.of(pages), 1, criteria)["q"]
        assert verdict("q", rankings, by).winner == winner


def test_scores_that_break_a_tie_weigh_as_much_as_their_judge():
    """By weight ada has (2 * 4 + 1 + 1) / 4 = 2.5 and bob 2; by head it would be 2 and 7/3."""
    votes = {"a": FOR, "b": AGAINST, "c": AGAINST}
    for_bob = {"ada": 1, "bob": 3}
    marks = {"a": {"ada": 4, "bob": 1}, "b": for_bob, "c": for_bob}
    by = rules({"a": 2.0, "b": 1.0, "c": 1.0}, tie_break="scores")
    assert decided(votes, replace(by, tie_break="none")).winner is None
    assert decided(votes, by, scores=marks).winner == "ada"


@pytest.mark.parametrize(
    ("rubric", "mean"),
    [
        ({"Truth": 3.0, "Wit": 1.0}, (3 * 5 + 2) / 4),
        ({"Truth": 3.0}, 5),  # what is not in the rubric weighs nothing
        ({"Tone": 2.0}, 3.5),  # none is: all weigh the same
        ({}, 3.5),
    ],
)
def test_the_mean_score_of_a_response_by_hand(rubric, mean):
    assert weighted_score({"Truth": 5, "Wit": 2}, rubric) == pytest.approx(mean)
    assert weighted_score({}, rubric) is None


# -- what a judge may not judge, and what it saw -----------------------------------------------------


def test_a_judge_of_whose_candidates_one_is_left_decides_nothing():
    by = replace(rules({"a": 1.0, "b": 1.0}), exclusions={"a": frozenset({"ada", "eve"})})
    assert [p.id for p in by.eligible(["ada", "bob"])] == ["b"]
    assert [p.id for p in by.eligible(["ada", "eve"])] == ["b"]
    assert [p.id for p in by.eligible(["ada", "bob", "cyd"])] == ["a", "b"]
    assert [p.id for p in by.eligible(["bob", "cyd"])] == ["a", "b"]


def test_a_page_of_a_judge_of_its_own_goes_before_the_shared_one():
    judgments, (shared,) = records("q", {"a": FOR, "b": FOR})
    swapped_labels = {
        label: {"ada": "bob", "bob": "ada"}[name] for label, name in shared.labels.items()
    }
    own_page = Blinding(item_id="q", presentation=0, judge="b", labels=swapped_labels)
    rankings = unblind_rankings(judgments, BlindingIndex.of([shared, own_page]))["q"]
    assert (rankings.top("a"), rankings.top("b")) == ("ada", "bob")
    assert not rankings.has_ranked("a", "cyd")
    assert not rankings.has_ranked("c", "ada")
    with pytest.raises(RunFolderError, match="lacks the page of 'q'"):
        unblind_rankings(judgments, BlindingIndex.of([own_page]))


def test_a_candidate_that_no_voting_judge_may_judge_leaves_no_verdict():
    votes = {"a": [["bob"], ["cyd"]], "b": [["bob"], ["cyd"]], "o": [["ada"], ["bob"], ["cyd"]]}
    by = rules({"a": 1.0, "b": 1.0}, observers=["o"])
    verdict = decided(votes, replace(by, exclusions=dict.fromkeys("ab", frozenset({"ada"}))))
    assert verdict.abstained == "excluded: no voting judge may judge ada"
    first_verdict = decided(
        {**votes, "b": votes["o"]}, replace(by, exclusions={"a": frozenset({"ada"})})
    )
    assert first_verdict.winner == "ada"
    assert first_verdict.split == "1-0"  # a is neither for nor against whom it does not judge


def test_an_abstention_names_the_judges_that_it_lacks():
    by = rules({"a": 1.0, "b": 1.0, "c": 1.0})
    verdict = decided({"a": FOR, "b": None, "c": None}, by)
    assert verdict.abstained == "below the quorum: no usable judgment by b, c"
    assert decided({"a": None, "b": None, "c": None}, by).abstained == "no judge judged it"
    twice = rules({"a": 1.0, "b": 1.0}, quorum=2, presentations=2)
    half = decided({"a": [FOR, FOR], "b": [FOR, None]}, twice)
    assert half.abstained == "below the quorum: no usable judgment by some"


def test_an_exclusion_names_every_candidate_without_a_judge():
    by = replace(rules({"a": 1.0}), exclusions={"a": frozenset({"ada", "cyd"})})
    by = replace(by, panelists=(*by.panelists, Panelist("o", "observer", 0.0, "o", "o")))
    names = [["ada"], ["bob"], ["cyd"], ["dan"]]
    verdict = decided({"a": names[1::2], "o": names}, by)
    assert verdict.abstained == "excluded: no voting judge may judge ada, cyd"


def test_a_tie_is_broken_by_scores_only_where_the_rules_say_so():
    marks = {"a": {"ada": 5, "bob": 1}, "b": {"ada": 5, "bob": 1}}
    weights = {"a": 1.0, "b": 1.0}
    tie, broken = (
        decided({"a": FOR, "b": AGAINST}, rules(weights, tie_break=setting), scores=marks).winner
        for setting in ("none", "scores")
    )
    assert (tie, broken) == (None, "ada")


def test_a_judge_that_misses_a_presentation_leaves_no_unanimous_verdict():
    """All three seats are there and all that was said is for ada; one page was not answered."""
    by = rules({"a": 1.0, "b": 1.0, "c": 1.0}, quorum=2, presentations=2)
    votes = {"a": [FOR, None], "b": [FOR, FOR], "c": [FOR, FOR]}
    assert not decided(votes, by).unanimous
    assert decided({**votes, "a": [FOR, FOR]}, by).unanimous


@pytest.mark.parametrize(
    ("reply", "weights", "split"),
    [
        ({"a": FOR, "b": AGAINST, "c": AGAINST}, {"a": 2.0, "b": 1.0, "c": 1.0}, "2-1"),
        (
            # Borda: 2 + 2, 1 + 1 + 2, and 1 + 2 + 1 points: three level, of whom ada leads twice.
            {
                "a": [["ada"], ["cyd"], ["bob"]],
                "b": [["ada"], ["bob"], ["cyd"]],
                "c": [["bob"], ["cyd"], ["ada"]],
                "d": [["cyd"], ["bob"], ["ada"]],
            },
            dict.fromkeys("abcd", 1.0),
            "2-1-1",
        ),
        ({"a": [["ada", "bob"]], "b": FOR, "c": AGAINST}, dict.fromkeys("abc", 1.0), "1-1-1"),
        ({"a": [["ada", "bob"]]}, {"a": 1.0}, "1"),
    ],
)
def test_the_split_of_a_tie_counts_the_most_first(reply, weights, split):
    verdict = decided(reply, rules(weights))
    assert (verdict.winner, verdict.split) == (None, split)


# -- stand-ins --------------------------------------------------------------------------------------


def _with_stand_in(weight: float = 1.0, presentations: int = 2) -> VerdictRules:
    by = rules({"a": weight, "b": 1.0}, presentations=presentations)
    stand_in = Panelist("a~2", "voting", weight, "a2", "a2", stands_in_for="a")
    return replace(by, panelists=(*by.panelists, stand_in))


def test_a_judge_and_its_stand_in_share_one_vote():
    """a answered the first page and its stand-in the second: half of a's weight of 3 each."""
    votes = {"a": [FOR, None], "a~2": [None, AGAINST], "b": [FOR, FOR]}
    verdict = decided(votes, _with_stand_in(weight=3.0))
    assert verdict.scores == {"ada": 2.5, "bob": 1.5}
    assert verdict.winner == "ada"
    assert decided({**votes, "a~2": [None, FOR]}, _with_stand_in(3.0)).scores == {
        "ada": 4,
        "bob": 0,
    }


def test_a_stand_in_has_the_whole_vote_of_a_judge_that_said_nothing():
    votes = {"a": [None, None], "a~2": [AGAINST, AGAINST], "b": [FOR, FOR]}
    verdict = decided(votes, _with_stand_in(weight=3.0))
    assert verdict.scores == {"ada": 1, "bob": 3}
    assert verdict.abstained is None
    assert decided({**votes, "b": [AGAINST, AGAINST]}, _with_stand_in()).unanimous


# -- a whole run ------------------------------------------------------------------------------------


def test_why_an_item_has_no_verdict():
    """Of one item each judge failed, of one a response is missing, of one nobody may judge it."""
    judgments, pages = records("all failed", {"a": None, "b": None})
    more, more_pages = records("judged", {"a": FOR, "b": FOR})
    items = ("judged", "all failed", "one response", "own", "open")
    texts = dict.fromkeys(items, ("ada", "bob")) | {"one response": ("ada",), "own": ("x", "y")}
    responses = [
        Response(item_id=item, candidate=name, text="t", source="generated")
        for item, names in texts.items()
        for name in names
    ]
    for name, error in (("bob", "timeout: 60 s"), ("cyd", "refusal: no")):
        responses.append(
            Response(item_id="one response", candidate=name, error=error, source="generated")
        )
    own_family_ids = frozenset({"x", "y"})
    by = replace(rules({"a": 1.0, "b": 1.0}), exclusions={"a": own_family_ids, "b": own_family_ids})
    rankings = unblind_rankings(
        [*judgments, *more], BlindingIndex.of([*pages, *more_pages]), by.presentations
    )
    verdicts = decide_verdicts(
        by,
        [Item(item_id=name, prompt="?") for name in items],
        responses,
        [*judgments, *more],
        rankings,
    ).verdicts
    assert [v.item_id for v in verdicts] == list(items)
    assert verdicts[0].winner == "ada"
    assert [v.abstained for v in verdicts] == [
        None,
        "every judge failed: a: refusal: no; b: refusal: no",
        "fewer than two responses: bob: timeout: 60 s; cyd: refusal: no",
        "excluded: every voting judge wrote one of the responses",
        "not judged: the run is incomplete",
    ]


@pytest.mark.parametrize("kind", ["judgment", "response"])
def test_the_errors_of_an_item_without_a_verdict_are_cut_to_300_characters(kind):
    judgments, _ = records("q", {"a": None})
    judgments = [j.model_copy(update={"error": "e" * 400}) for j in judgments]
    response = Response(item_id="q", candidate="ada", error="e" * 400, source="generated")
    verdicts = decide_verdicts(
        rules({"a": 1.0}),
        [Item(item_id="q", prompt="?")],
        [response],
        judgments if kind == "judgment" else [],
        {},
    ).verdicts
    reason = (verdicts[0].abstained or "").partition(": ")[2]
    assert reason == {"judgment": "a: ", "response": "ada: "}[kind].ljust(300, "e")


def test_the_rules_of_a_run_are_those_of_its_manifest(tmp_path, monkeypatch):
    """Two judges over both orders: the one by length for bob, the one by place for nobody."""
    run = clash.evaluate(
        [{"prompt": "Why?", "responses": {"ada": "Because.", "bob": "Because it is so."}}],
        None,
        {
            "long": lambda _, responses: max(responses, key=lambda label: len(responses[label])),
            "first": lambda _, responses: min(responses),
        },
        out=tmp_path,
        both_orders=True,
    )
    (verdict,) = verdicts(run.folder)
    assert verdict == run.verdicts[0]
    assert (verdict.winner, verdict.scores, verdict.split) == (
        "bob",
        {"ada": 0.5, "bob": 1.5},
        "1-0-1",
    )
    config = {"tie_break": "scores", "method": "borda", "max_risk": 0.1}
    manifest = run.manifest.model_copy(
        update={
            "panel": {**run.manifest.panel, "quorum": 1.5, "excluded": {"long": ["ada", "cyd"]}},
            "config": {**run.manifest.config, "aggregate": config},
            "calibrator": {"kind": "a calibrator"},
        }
    )
    monkeypatch.setattr(type(run.folder), "manifest", lambda _: manifest)
    by = VerdictRules.of(run.folder)
    assert [(p.id, p.role, p.weight) for p in by.panelists] == [
        ("long", "voting", 1.0),
        ("first", "voting", 1.0),
    ]
    assert replace(by, panelists=()) == VerdictRules(
        panelists=(),
        quorum=1.5,
        tie_break="scores",
        method="borda",
        presentations=2,
        calibrator={"kind": "a calibrator"},
        max_risk=0.1,
        exclusions={"long": frozenset({"ada", "cyd"})},
        seed=42,
    )
    del config["method"]  # a run of a version that knew no other
    assert VerdictRules.of(run.folder).method == "borda"


def test_candidates_that_vote_do_not_break_the_unanimity_of_the_panel():
    """2 judges of the panel for ada, a candidate against: 2-1, and the panel is unanimous."""
    votes = {"a": [["ada"], ["bob"]], "b": [["ada"], ["bob"]], "self:bob": [["bob"], ["ada"]]}
    by = rules({"a": 2, "b": 2, "self:bob": 1})
    guests = replace(by, voting_observers=frozenset({"self:bob"}))
    verdict = decided(votes, guests)
    assert (verdict.unanimous, verdict.split, unanimity(verdict)) == (
        True,
        "2-1",
        "panel unanimous",
    )
    assert not decided(votes, by).unanimous
    # A candidate's voice is no judge's of the panel, nor in place of one that failed.
    assert not decided({**votes, "b": None, "self:bob": votes["a"]}, guests).unanimous
    alike = decided({**votes, "self:bob": votes["a"]}, guests)
    assert (alike.split, unanimity(alike)) == ("3-0", "unanimous")
    assert not decided({**votes, "b": votes["self:bob"]}, guests).unanimous
