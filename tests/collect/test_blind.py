"""Blinding: every order equally likely, reversible, and silent about who wrote what."""

import json
from collections import Counter
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clash.collect.authorship import claims
from clash.collect.blind import MASK, mask, presentations
from clash.collect.normalise import normalise
from clash.config import BlindingConfig

TEXTS = {"m-a": "first", "m-b": "second", "m-c": "third"}


def pages(texts=TEXTS, *, item="q1", judges=("j1", "j2"), seed=1, names=(), **config):
    return list(presentations(item, texts, judges, BlindingConfig(**config), seed, names=names))


def test_every_permutation_is_equally_likely():
    orders = Counter(tuple(pages(item=f"q{i}")[0].blinding.labels.values()) for i in range(6000))
    assert set(orders) == set(permutations(TEXTS))
    chi2 = sum((count - 1000) ** 2 / 1000 for count in orders.values())
    assert chi2 < 20.5  # the 0.1% point of chi-square with 5 degrees of freedom


def test_items_and_judges_are_shuffled_independently():
    same_counts = Counter(
        tuple(p.blinding.labels["A0"] for p in pages(item=f"q{i}", per_judge=True))
        for i in range(3000)
    )
    assert len(same_counts) == 9
    assert all(abs(count - 3000 / 9) < 5 * (3000 / 9) ** 0.5 for count in same_counts.values())


@given(st.dictionaries(st.text(min_size=1), st.text(), min_size=2, max_size=6), st.integers())
def test_labels_undo_the_shuffle(texts, seed):
    (page,) = pages(texts, seed=seed, scrub="off")
    assert sorted(page.blinding.labels.values()) == sorted(texts)
    for label, name in page.blinding.labels.items():
        assert page.texts[label] == normalise(texts[name])[0]


def test_the_shuffle_depends_on_the_seed_and_not_on_how_the_file_was_written():
    backwards = dict(reversed(TEXTS.items()))
    assert pages(seed=5)[0].blinding == pages(backwards, seed=5)[0].blinding
    assert len({json.dumps(pages(seed=s)[0].blinding.labels) for s in range(50)}) == 6


def test_both_orders_are_one_shuffle_and_its_reverse():
    first, second = pages(both_orders=True)
    assert list(first.blinding.labels.values()) == list(second.blinding.labels.values())[::-1]
    assert (first.blinding.presentation, second.blinding.presentation) == (0, 1)


def test_a_shuffle_is_shared_unless_each_judge_gets_its_own():
    assert [p.blinding.judge for p in pages()] == [None]
    assert [p.blinding.judge for p in pages(per_judge=True)] == ["j1", "j2"]


@pytest.mark.parametrize(
    ("text", "hidden_names"),
    [
        ("As Claude, made by Anthropic, I would say yes.", ["Claude", "Anthropic"]),
        ("I'm ChatGPT, a large language model trained by OpenAI.", ["ChatGPT", "OpenAI"]),
        ("I am Gemini. The answer is 4.", ["Gemini"]),
        ("I was created by Mistral AI to help.", ["Mistral AI"]),
        ("My name is Claude Opus 4.5 and", ["Claude Opus 4.5"]),
        ("As an AI assistant developed by Google DeepMind, no.", ["Google DeepMind"]),
        ("GPT-4: the answer is 4", ["GPT-4"]),
        ("I’m Llama 3, built by Meta.", ["Llama 3", "Meta"]),
        ("Best regards, Claude", ["Claude"]),
    ],
)
def test_what_says_who_wrote_it_is_masked(text, hidden_names):
    spans = claims(text)
    assert [text[a:b] for a, b in spans] == hidden_names
    assert mask(text, spans).count(MASK) == len(hidden_names)


@pytest.mark.parametrize(
    "text",
    [
        "Claude Monet painted water lilies.",
        "OpenAI released GPT-4 in 2023, and Google answered with Gemini.",
        "Ask Gemini or ChatGPT for help with that.",
        "The Gemini twins are a constellation; Llama are animals of the Andes.",
        "Use the Meta key, then type Apple.",
        "Trained by experience, she won.",
        "",
    ],
)
def test_a_text_about_models_is_left_alone(text):
    assert claims(text) == []


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "text",
    [
        "By gpt-4 3.14159265358979323846264338327950288 is pi.",
        "By gpt-4 " + "3.14159" * 100_000 + " is pi.",
        "As gpt " + "1" * 1_000_000 + "!",
        "gpt" + " " * 1_000_000 + "x",
    ],
)
def test_no_text_takes_long_to_claims(text):
    assert claims(text) == []


def test_a_candidate_that_names_itself_is_masked_by_its_own_name():
    texts = {"acme/rocket-9": "I am Rocket-9 and I know.", "b": "I do not."}
    (page,) = pages(texts, names=["acme/rocket-9", "b"])
    label = next(k for k, v in page.blinding.labels.items() if v == "acme/rocket-9")
    assert page.texts[label] == f"I am {MASK} and I know."
    assert page.blinding.scrubbed[0].text == "Rocket-9"


def test_scrubbing_can_only_flag_or_be_off():
    texts = {"a": "I am Claude.", "b": "no"}
    (flagged_page,) = pages(texts, scrub="flag")
    (off,) = pages(texts, scrub="off")
    assert "I am Claude." in flagged_page.texts.values()
    assert len(flagged_page.blinding.scrubbed) == 1
    assert off.blinding.scrubbed == []
