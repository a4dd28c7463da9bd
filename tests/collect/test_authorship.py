"""A response that says who wrote it is masked; a text about models and companies is left alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import labelled_texts
from clash.collect.authorship import claims
from clash.collect.blind import MASK, mask
from clash.collect.sentences import LONGEST

CLAIMS = list(labelled_texts.claims())
INNOCENT = list(labelled_texts.innocent())


def is_hidden(claim, disguise="plain"):
    text, names = labelled_texts.disguised(claim, disguise)
    masked_text = mask(text, claims(text))
    return not any(name in masked_text for name in names)


def test_the_labelled_texts_are_as_many_as_the_documents_say():
    assert len(CLAIMS) >= 150
    assert len(INNOCENT) >= 150
    assert len({text.language for text in CLAIMS}) == 10
    halves = [text.half for text in (*CLAIMS, *INNOCENT)]
    assert 0.4 < halves.count("held-out") / len(halves) < 0.6


@pytest.mark.parametrize("disguise", labelled_texts.DISGUISES)
def test_nine_claims_in_ten_are_masked_however_the_name_is_written(disguise):
    for half in ("development", "held-out"):
        hits = [is_hidden(claim, disguise) for claim in CLAIMS if claim.half == half]
        assert sum(hits) / len(hits) > 0.9, (half, disguise)


def test_an_innocent_text_is_left_alone():
    changed_texts = [text for text in INNOCENT if claims(text.text)]
    assert [text for text in changed_texts if text.half == "development"] == []
    assert len(changed_texts) / len(INNOCENT) < 0.03


@pytest.mark.parametrize(
    "text",
    [
        "The iPhone was designed by Apple.",
        "My name is Claude, and I paint.",
        "As Gemini season begins, take care.",
        '"I am Claude," said the painter.',
        "GPT-4, a model made by OpenAI, was the first to pass.",
        "Dear Aunt Rose,\n\nThe weather is fine.\n\nYours,\nClaude",
        "Claude: Where were you?\nMarie: At the market.\nClaude: All day?",
    ],
)
def test_what_used_to_be_masked_by_mistake_is_left_alone(text):
    assert claims(text) == []


@pytest.mark.parametrize(
    ("text", "visible_text"),
    [
        ("I am **Cl\u200baude**, an AI assistant.", f"I am **{MASK}**, an AI assistant."),
        ("Soy `ChatGPT`.", f"Soy `{MASK}`."),
        ("我是ＧＰＴ-4。", f"我是{MASK}。"),
        ("As Сlаudе, I would wait.", f"As {MASK}, I would wait."),
        ('I am "Claude".', f'I am "{MASK}".'),
        ('"As Claude, I would wait."', f'"As {MASK}, I would wait."'),
    ],
)
def test_the_spans_are_of_the_response_as_it_was_written(text, visible_text):
    assert mask(text, claims(text)) == visible_text


def test_a_name_alone_is_believed_where_the_response_says_that_an_ai_wrote_it():
    assert claims("My name is Claude, and I love painting.") == []
    assert len(claims("As an AI, I have no eyes. My name is Claude, and I love painting.")) == 1


def test_a_candidate_of_a_common_name_is_not_masked_for_using_the_word():
    assert claims("I am fast, and the train is on time.", ["acme/fast"]) == []
    assert len(claims("I am Rocket-9, and the train is on time.", ["acme/rocket-9"])) == 1


def test_a_name_that_is_torn_by_the_cut_of_a_long_sentence_ends_no_run():
    assert claims("a " * (LONGEST // 2 - 2) + "Claude") == []


PIECES = st.sampled_from(
    [
        "I am ",
        "GPT-4",
        "Claude",
        ", made by ",
        "OpenAI",
        "\u200b",
        "**",
        '"',
        ". ",
        "\n",
        "我是",
        "ﬁ",
        "İ",
    ]
)


@given(st.lists(PIECES | st.text(max_size=5), max_size=20).map("".join))
def test_spans_are_in_order_and_apart_whatever_the_text(text):
    spans = claims(text)
    ends = [0, *(end for _, end in spans)]
    assert all(end <= start < stop for end, (start, stop) in zip(ends, spans, strict=False))
    assert all(stop <= len(text) for _, stop in spans)
