"""Reading a judge's answer: mend what needs no guess, refuse the rest, invent nothing."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clash.collect.parsing import parse

LABELS = ["A0", "A1", "A2"]
GOOD = {
    "scores": {
        label: {"C1": {"score": 4, "reason": ""}, "C2": {"score": 2, "reason": "vague"}}
        for label in LABELS
    },
    "ranking": [["A1"], ["A0"], ["A2"]],
}
RANKING = [["A1"], ["A0"], ["A2"]]


def read(text, *, labels=LABELS, criteria=("Accuracy", "Clarity"), ties=True):
    return parse(text, labels, criteria, ties=ties)


def test_a_clean_answer_is_clean_and_scores_go_by_the_name_of_the_criterion():
    said = read(json.dumps(GOOD))
    assert (said.parse, said.ranking) == ("clean", RANKING)
    assert said.scores["A0"] == {"Accuracy": 4, "Clarity": 2}
    assert said.reasons["A2"] == {"Clarity": "vague"}


@pytest.mark.parametrize(
    "deform",
    [
        lambda text: f"```json\n{text}\n```",
        lambda text: f"```\n{text}\n```",
        lambda text: f"Here is my judgment:\n\n{text}\n\nI hope it helps!",
        lambda text: text[:-1] + ",}",
        lambda text: f"<think>A0 seems better at first</think>\n{text}",
        lambda text: "\ufeff" + text + "  \n\nDone.",
        lambda text: text + "\n" + text,
    ],
    ids=["fence", "bare fence", "prose", "trailing comma", "thinking", "bom", "said twice"],
)
def test_wrapping_is_passed_over_and_noted(deform):
    said = read(deform(json.dumps(GOOD)))
    assert said.ranking == RANKING
    assert said.parse in ("clean", "repaired")
    assert said.scores["A1"]["Accuracy"] == 4


@pytest.mark.parametrize(
    ("ranking", "expected"),
    [
        (["A1", "A0", "A2"], RANKING),
        ("A1 > A0 > A2", RANKING),
        ("A1 > A0 = A2", [["A1"], ["A0", "A2"]]),
        ({"A0": 2, "A1": 1, "A2": 3}, RANKING),
        ({"A0": 1, "A1": 1, "A2": 2}, [["A0", "A1"], ["A2"]]),
        (["Response A1", "a0", " A2 "], RANKING),
        ([{"label": "A1"}, {"label": "A0"}, {"label": "A2"}], RANKING),
        ([["A1"], ["A2", "A0"]], [["A1"], ["A0", "A2"]]),
    ],
)
def test_other_spellings_of_a_ranking(ranking, expected):
    assert read(json.dumps({"ranking": ranking})).ranking == expected


def test_a_line_of_text_is_a_ranking_too():
    said = read("After weighing all:\n\nRanking: A1 > A0 > A2")
    assert (said.ranking, said.parse) == (RANKING, "repaired")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        ("I cannot decide.", "no JSON"),
        ('{"ranking": ["A1", "A0"', "breaks off"),
        ('{"ranking": ["A1", "A0"]}', "leaves out A2"),
        ('{"ranking": ["A1", "A0", "A0", "A2"]}', "A0 twice"),
        ('{"ranking": ["A1", "A0", "A3"]}', "not shown"),
        ('{"ranking": ["Response 1", "Response 2", "Response 3"]}', "not shown"),
        ('{"ranking": []}', "not a list"),
        ('{"ranking": null}', "no ranking"),
        ('{"winner": "A1"}', "no ranking"),
        ('{"ranking": ["A1","A0","A2"]} or {"ranking": ["A0","A1","A2"]}', "differ"),
        ('{"ranking": ["A1","A0","A2"], "ranking": ["A0","A1","A2"]}', "not valid JSON"),
        ('{"ranking": {"A0": "first", "A1": 2, "A2": 3}}', "whole numbers"),
        ('{"ranking": {"A0": true, "A1": 2, "A2": 3}}', "whole numbers"),
    ],
)
def test_what_would_have_to_be_guessed_fails(text, reason):
    said = read(text)
    assert said.ranking is None
    assert said.parse == "failed"
    assert reason in said.error


@pytest.mark.parametrize("score", [0, 6, 9, 3.5, True, "10/10", "8", None, [4], NotImplemented])
def test_a_score_off_the_scale_fails_and_is_never_clamped(score):
    answer = json.loads(json.dumps(GOOD))
    answer["scores"]["A0"]["C1"]["score"] = "NaN!" if score is NotImplemented else score
    text = json.dumps(answer).replace('"NaN!"', "NaN")
    said = read(text)
    assert said.ranking is None
    assert said.scores == {}


@pytest.mark.parametrize("score", ["4/5", "4", 4.0, "4 out of 5"])
def test_a_score_on_the_scale_in_other_words(score):
    answer = {"ranking": ["A1", "A0", "A2"], "scores": {"A0": {"Accuracy": score}}}
    assert read(json.dumps(answer)).scores == {"A0": {"Accuracy": 4}}


def test_ties_are_refused_where_the_panel_forbids_them():
    text = json.dumps({"ranking": [["A0", "A1"], ["A2"]]})
    assert read(text, ties=True).ranking == [["A0", "A1"], ["A2"]]
    assert "ties are not allowed" in read(text, ties=False).error


def test_a_long_reason_is_cut_at_fifteen_words():
    answer = {
        "ranking": ["A1", "A0", "A2"],
        "scores": {"A0": {"C1": {"score": 2, "reason": "w " * 40}}},
    }
    said = read(json.dumps(answer))
    assert said.reasons["A0"]["Accuracy"].count("w") == 15
    assert "cut" in " ".join(said.repairs)


def test_a_huge_answer_is_refused_unread():
    assert "characters" in read("{" * 300_000).error


@given(st.text())
def test_it_never_raises_and_never_invents(text):
    said = read(text)
    if said.ranking is None:
        assert said.error
    else:
        assert sorted(name for group in said.ranking for name in group) == LABELS
        assert all(digit in text for digit in "012")


_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 9)
    | st.floats()
    | st.sampled_from(LABELS)
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from([*LABELS, "C1", "ranking", "scores", "score"]), inner, max_size=4
        )
    ),
    max_leaves=20,
)


@given(st.fixed_dictionaries({"ranking": _json, "scores": _json}))
def test_any_json_gives_a_whole_ranking_or_a_reason(value):
    said = read(json.dumps(value))
    if said.ranking is None:
        assert said.error
        assert said.parse == "failed"
    else:
        assert sorted(name for group in said.ranking for name in group) == LABELS
    assert all(1 <= s <= 5 for row in said.scores.values() for s in row.values())


@given(st.permutations(LABELS), st.booleans())
def test_every_ranking_written_out_is_read_back(order, nested):
    ranking = [[name] for name in order] if nested else list(order)
    assert read(json.dumps({"ranking": ranking})).ranking == [[name] for name in order]


def test_deep_nesting_and_brace_floods_end_quickly():
    for text in ('{"a":' * 5000, "[" * 50_000, "{" * 150_000, '{"ranking":' * 9000 + "1"):
        assert read(text).ranking is None
