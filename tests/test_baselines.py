"""The control group: blind to labels, deterministic, and honest about what it measures."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clash.baselines import BASELINES, Case, find, judge, top
from clash.baselines.text import (
    count_sentences,
    count_words,
    prose,
    sentences,
    stem,
    terms,
)
from clash.collect.parsing import parse
from clash.errors import ConfigError, ProviderError
from clash.providers.base import JudgeTask, Request
from clash.providers.baseline import BaselineProvider
from clash.records import Criterion, Turn

NAMES = sorted(BASELINES)
PAIRS = Path(__file__).resolve().parents[1] / "../shared/data/pairs/mtbench-panel.pairs.jsonl.gz"

WORDS = "the sorted list merge of two lists a function returns it and 42 because however"
PIECES = [
    "- ",
    "1. ",
    "\n",
    "\n\n",
    "```python\n",
    "```",
    "| a | b |\n",
    ". ",
    "? ",
    ", ",
    "日本語。",
]
TEXTS = st.lists(st.sampled_from([*WORDS.split(), *PIECES]), max_size=60).map(" ".join)
PROMPTS = st.sampled_from(
    [
        "Write a Python function that merges two sorted lists.",
        "Explain it in at most 20 words, as a bulleted list.",
        "Return a JSON object.",
        "Put it into a table. In two sentences!",
        "",
    ]
)
CRITERIA = st.sampled_from(
    [
        [],
        [Criterion(name="Accuracy", weight=1)],
        [
            Criterion(name="Correctness", weight=0.7, description="Does it merge lists?"),
            Criterion(name="Clarity", weight=0.3),
        ],
    ]
)
CASES = st.builds(
    lambda prompt, texts, criteria, ties: case(prompt, texts, criteria, ties=ties),
    PROMPTS,
    st.lists(TEXTS, min_size=2, max_size=5),
    CRITERIA,
    st.booleans(),
)


def case(prompt, texts, criteria=(), *, ties=True):
    responses = {f"A{number}": text for number, text in enumerate(texts)}
    return Case((Turn(role="user", content=prompt),), responses, criteria, ties)


def best(name, prompt, texts, **more):
    """Indices of the texts that share the first rank."""
    return [int(label[1:]) for label in judge(name, case(prompt, texts, **more)).ranking[0]]


@pytest.mark.parametrize("name", NAMES)
@settings(deadline=None)
@given(case=CASES, data=st.data())
def test_labels_play_no_part(name, case, data):
    """The same texts under other labels, in another order, get the same ranks and scores."""
    old = list(case.responses)
    new = data.draw(st.permutations(old))
    renamed_fields = dict(zip(old, new, strict=True))
    order = data.draw(st.permutations(old))
    other_case = Case(
        case.turns,
        {renamed_fields[label]: case.responses[label] for label in order},
        case.criteria,
        case.ties,
    )

    before, after = judge(name, case), judge(name, other_case)

    assert [{renamed_fields[label] for label in group} for group in before.ranking] == [
        set(group) for group in after.ranking
    ]
    assert {renamed_fields[label]: row for label, row in before.scores.items()} == after.scores
    assert {renamed_fields[label]: row for label, row in before.reasons.items()} == after.reasons


@pytest.mark.parametrize("name", NAMES)
@settings(deadline=None)
@given(case=CASES)
def test_every_answer_is_a_whole_judgment(name, case):
    """Every label is ranked once; scores are 1 to 5 and low ones have a short reason."""
    judgment = judge(name, case)

    assert top(name, case) == judgment.ranking[0]
    assert sorted(label for group in judgment.ranking for label in group) == sorted(case.responses)
    names = {criterion.name for criterion in case.criteria}
    assert set(judgment.scores) == (set(case.responses) if names else set())
    for label, row in judgment.scores.items():
        assert set(row) == names
        for criterion, score in row.items():
            reason = judgment.reasons.get(label, {}).get(criterion, "")
            assert score in {1, 2, 3, 4, 5}
            assert reason or score > 3
            assert len(reason.split()) <= 15


@pytest.mark.parametrize("name", NAMES)
@settings(deadline=None)
@given(case=CASES)
def test_only_identical_texts_tie_where_ties_are_not_allowed(name, case):
    strict = Case(case.turns, case.responses, case.criteria, ties=False)
    for group in judge(name, strict).ranking:
        assert len({case.responses[label] for label in group}) == 1


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("ties", [True, False])
def test_identical_texts_share_a_rank(name, ties):
    """Nothing but the label could order them, and that would be a position bias."""
    judgment = judge(name, case("Merge two lists.", ["Use a loop."] * 3, ties=ties))
    assert judgment.ranking == [["A0", "A1", "A2"]]


@pytest.mark.parametrize("name", NAMES)
def test_an_empty_response_is_last_and_fails_every_criterion(name):
    criteria = [Criterion(name="Accuracy", weight=1)]
    judgment = judge(name, case("Merge two lists.", ["", "Merge two lists with a loop."], criteria))
    assert judgment.ranking == [["A1"], ["A0"]]
    assert judgment.scores["A0"] == {"Accuracy": 1}
    assert judgment.reasons["A0"] == {"Accuracy": "empty response"}


@pytest.mark.parametrize("name", NAMES)
def test_nothing_but_empty_responses_is_a_tie(name):
    assert judge(name, case("Merge two lists.", ["", " \n"])).ranking == [["A0", "A1"]]


@pytest.mark.parametrize("name", NAMES)
def test_a_broken_tie_is_owned_up_to(name):
    """Two texts that measure the same are ordered by hash, and every reason says so."""
    criteria = [Criterion(name="Accuracy", weight=1)]
    texts = ["Alpha beta gamma.", "Gamma beta alpha."]
    judgment = judge(name, case("What?", texts, criteria, ties=False))
    assert len(judgment.ranking) == 2
    assert all("hash" in row["Accuracy"] for row in judgment.reasons.values())


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "text", ["\n" * 200_000, "| " * 100_000, "- \n" * 60_000, "```" * 60_000, "a" * 300_000]
)
def test_a_hostile_text_does_not_stall_a_baseline(name, text):
    """Patterns that backtrack would need hours for these."""
    assert judge(name, case(text, [text, "Fine."], [])).ranking


def test_longest_counts_words():
    assert best("longest", "Why?", ["one two three", "fourteenletters more"]) == [0]


def test_coverage_finds_other_forms_of_the_prompt_s_words():
    texts = ["It merged the sorted lists.", "It is done with a loop."]
    assert best("coverage", "Merge a list by sorting", texts) == [0]


def test_coverage_reads_the_criteria():
    """A response that names what a criterion asks for scores higher under that criterion."""
    criteria = [
        Criterion(name="Edge cases", weight=0.5, description="empty input"),
        Criterion(name="Speed", weight=0.5, description="linear runtime"),
    ]
    judgment = judge("coverage", case("Merge.", ["Empty input gives an edge case."], criteria))
    assert judgment.scores["A0"]["Edge cases"] > judgment.scores["A0"]["Speed"]
    assert "merge" in judgment.reasons["A0"]["Speed"]


def test_dense_prefers_substance_to_repetition_and_to_a_single_word():
    substance = "Roots in wet soil get no air, rot, and stop drinking; repot them in fresh soil."
    filler = "It is what it is, and as it is so it is. " * 4
    assert best("dense", "Why?", [filler, substance, "Water."]) == [1]


@pytest.mark.parametrize(
    ("prompt", "good", "bad", "fault"),
    [
        ("Explain it.", "It falls. " * 8, "It falls. " * 8 + "and then it " * 4, "mid-sentence"),
        ("Why?", "```\nx = 1\n```", "```\nx = 1", "code block"),
        ("Name it in at most 5 words.", "A short name.", "one two three four five six", "6 words"),
        ("Say it in one sentence.", "It works.", "It works. It does. It did.", "3 sentences"),
        ("Write a Python function f.", "```\ndef f(): ...\n```", "Use a loop.", "No code"),
        ("Three tips as a bulleted list.", "- a\n- b\n- c", "a, b and c", "No list"),
        ("Answer as valid JSON.", '{"a": 1}', "a is 1", "Not valid JSON"),
        ("Put it into a table.", "| a |\n| - |\n| 1 |", "a is 1", "No table"),
        ("Why?", "It is short. So is this.", "word " * 60 + "end.", "Sentences average 61 words"),
    ],
)
def test_structure_names_the_fault_of_form(prompt, good, bad, fault):
    criteria = [Criterion(name="Form", weight=1)]
    judgment = judge("structure", case(prompt, [bad, good], criteria))
    assert judgment.ranking == [["A1"], ["A0"]]
    assert fault in judgment.reasons["A0"]["Form"]
    assert "A1" not in judgment.reasons


def test_structure_leaves_limits_that_hold_for_each_part_alone():
    names = "One two three. Four five six. Seven eight nine."
    each_criterion, all_of_it = "Names of at most 4 words each.", "Names in at most 4 words."
    assert best("structure", each_criterion, [names, "One."]) == [0, 1]
    assert best("structure", all_of_it, [names, "One."]) == [1]


def test_criteria_count_by_weight():
    """The ranking follows the heavier criterion."""
    responses = ["Merge with empty input.", "Merge in linear runtime."]

    def winner(edge, speed):
        criteria = [
            Criterion(name="Edge", weight=edge, description="empty input"),
            Criterion(name="Speed", weight=speed, description="linear runtime"),
        ]
        return best("coverage", "Merge.", responses, criteria=criteria)

    assert winner(0.9, 0.1) == [0]
    assert winner(0.1, 0.9) == [1]


@pytest.mark.parametrize(
    "family",
    [
        {"merge", "merges", "merged", "merging"},
        {"query", "queries"},
        {"run", "running", "runs"},
        {"process", "processes", "processed"},
    ],
)
def test_stems_of_one_word_meet(family):
    assert len({stem(word) for word in family}) == 1


@pytest.mark.parametrize("word", ["is", "bus", "class", "string", "analysis", "status"])
def test_words_that_only_look_inflected_stay(word):
    assert stem(word) == word


def test_words_of_a_language_without_spaces_are_counted():
    assert count_words("空が青い") == 4
    assert count_words("two words") == 2


def test_terms_leave_function_words_out():
    assert list(terms("Please explain the Lists to me")) == ["list"]


@pytest.mark.parametrize("name", NAMES)
def test_each_baseline_says_that_it_is_no_language_model(name):
    assert "is not a language model" in BASELINES[name].statement


def test_an_unknown_baseline_is_refused_with_the_known_ones():
    with pytest.raises(ConfigError, match="baseline/longest"):
        find("shortest")


def test_longest_is_right_on_mt_bench_as_often_as_was_published():
    """Seven of ten decisive human votes go to the longer response."""
    if not PAIRS.exists():
        pytest.skip("needs ../shared/data/pairs, which is not here")
    with gzip.open(PAIRS, "rt", encoding="utf-8") as lines:
        rows = [row for row in map(json.loads, lines) if row["label"] in {"A", "B"}]
    credit = 0.0
    for row in rows:
        first = best("longest", row["prompt"], [row["response_a"], row["response_b"]])
        credit += ("AB".index(row["label"]) in first) / len(first)
    assert 0.66 < credit / len(rows) < 0.74


# -- the provider -------------------------------------------------------------------------------


def ask(name, task):
    request = Request(turns=(Turn(role="user", content="judge"),), max_tokens=100, task=task)
    return anyio.run(BaselineProvider(name).complete, request)


@pytest.mark.parametrize("name", NAMES)
@settings(deadline=None)
@given(case=CASES)
def test_a_baseline_s_answer_reads_like_any_judge_s(name, case):
    """What it answers is parsed clean, to the very judgment it made."""
    task = JudgeTask(case.turns, case.criteria, case.responses, case.ties)
    names = [criterion.name for criterion in case.criteria]
    judgment = judge(name, task)

    reply = ask(name, task)
    parsed_answer = parse(reply.text, list(case.responses), names, ties=case.ties)

    if not case.ties and any(len(group) > 1 for group in judgment.ranking):
        assert parsed_answer.parse == "failed"
        return
    assert parsed_answer.parse == "clean"
    assert parsed_answer.ranking == judgment.ranking
    assert parsed_answer.scores == judgment.scores
    assert parsed_answer.reasons == judgment.reasons


def test_a_baseline_costs_nothing_and_needs_no_network():
    task = JudgeTask((Turn(role="user", content="Why?"),), (), {"A0": "a b", "A1": "c"})
    reply = ask("longest", task)
    assert BaselineProvider("longest").offline
    assert (reply.outcome, reply.cost_usd, reply.tokens.output) == ("ok", 0.0, 0)
    assert json.loads(reply.text) == {"ranking": [["A0"], ["A1"]]}
    assert reply.request["responses"] == {"A0": "a b", "A1": "c"}


def test_a_baseline_refuses_to_generate_or_to_write_criteria():
    with pytest.raises(ProviderError, match="not a language model") as error:
        ask("longest", None)
    assert (error.value.action, error.value.error_class) == ("stop", "unsupported")


SCRAPS = ["word", "def", "-", "*", "##", "1.", "12)", ".", "…", "?", "。", " ", "\t", "\r", "\n", "\x0b", "\u2028"]  # fmt: skip


@given(text=st.lists(st.sampled_from(SCRAPS), max_size=14).map("".join))
@settings(deadline=None, max_examples=500)
def test_sentences_are_counted_as_they_are_split_and_marks_leave_the_start_of_any_line(
    text: str,
) -> None:
    markers = re.compile(r"^[ \t]*(?:[-*+•]|#{1,6}|\d{1,3}[.)])[ \t]+", re.MULTILINE)
    assert prose(text) == markers.sub("", text)
    assert count_sentences(text) == len(sentences(text))
