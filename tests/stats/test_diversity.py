"""Diversity of texts by hand, and the split of ties on votes of known making."""

from __future__ import annotations

import math

import numpy as np
import pytest

from clash.analysis.diagnosis.response_diversity import equivalence
from clash.analysis.texts import Texts
from clash.errors import StatisticsError
from clash.stats.diversity import (
    Shape,
    diversity,
    length_variation,
    rouge_l,
    split_ties,
    structural_divergence,
    tfidf_similarity,
)
from clash.stats.logistic_regression import clustered_logistic
from clash.votes import VoteRow, encode


def test_rouge_l_by_hand() -> None:
    """Lin (2004): "police killed the gunman" against "police kill the gunman": 3 of 4 words."""
    assert rouge_l("police killed the gunman", "Police kill the gunman") == pytest.approx(0.75)
    assert rouge_l("the gunman kill police", "police killed the gunman") == pytest.approx(0.5)
    assert rouge_l("", "") == 1
    assert rouge_l("word", "") == 0


def test_shape_counts_markdown() -> None:
    text = "# Title\n\n- one\n- two\n1. three\n\n```python\nx = 1\n```\nwords here"
    shape = Shape.of(text)
    assert (shape.sections, shape.list_items, shape.code_blocks) == (1, 3, 1)
    assert structural_divergence(shape, shape) == 0
    assert structural_divergence(shape, Shape.of("plain")) == 1


def test_identical_texts_do_not_differ_and_others_do() -> None:
    same_diversity = diversity(["a b c", "…"], ["a b c", "…"], [1.0, 1.0])
    assert np.allclose(same_diversity, 0)
    apart = diversity(["alpha beta gamma"], ["# x\n- delta " + "epsilon " * 30], [0.1])
    assert np.all(apart > 0.5)
    assert length_variation([100, 300]) == 0.5
    assert length_variation([0, 0]) == 0


def test_tfidf_is_of_wording() -> None:
    near, far = tfidf_similarity(
        ["the cat sat on the mat", "the cat sat on the mat"],
        ["the cat sits on a mat", "quarterly revenue grew"],
    )
    assert near > 0.4 > 0.1 > far
    with pytest.raises(StatisticsError):
        tfidf_similarity([], [])


def by_scikit_learn(firsts: list[str], seconds: list[str], max_grams: int) -> np.ndarray:
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(
        analyzer="char_wb", ngram_range=(3, 5), min_df=1, max_features=max_grams
    )
    matrix = vectorizer.fit_transform([*firsts, *seconds])
    n = len(firsts)
    return np.asarray(matrix[:n].multiply(matrix[n:]).sum(axis=1)).ravel()


@pytest.mark.parametrize("max_grams", [200_000, 150, 7])
def test_tfidf_is_scikit_learns(max_grams: int) -> None:
    """To 1e-12, with and without a limit on the grams, on words of every length and script."""
    rng = np.random.default_rng(5)
    words = ["a", "an", "the", "Cat", "ÉCOLE", "straße", "İstanbul", "日本語", "x1", "don't", "…"]
    blanks = [" ", "  ", "\n", "\t ", "\u00a0", "\u2003"]

    def text() -> str:
        size = int(rng.integers(1, 40))
        parts = [str(rng.choice(words)) * int(rng.integers(1, 3)) for _ in range(size)]
        return "".join(part + str(rng.choice(blanks)) for part in parts)

    firsts, seconds = [text() for _ in range(60)], [text() for _ in range(60)]
    expected_similarity = np.clip(by_scikit_learn(firsts, seconds, max_grams), 0, 1)
    similarity = tfidf_similarity(firsts, seconds, max_grams=max_grams)
    np.testing.assert_allclose(similarity, expected_similarity, rtol=0, atol=1e-12)


def test_tfidf_of_texts_without_a_gram() -> None:
    assert list(tfidf_similarity(["", " "], ["", ""])) == [1, 1]
    assert list(tfidf_similarity(["", "word", ""], ["word", "word", ""])) == [0, 1, 1]


def test_logistic_like_statsmodels() -> None:
    """statsmodels 0.15.0, Logit(y, [1, x]).fit(): -1.6094 and 1.6094 + log 2 for this 2 x 2 table
    by hand: odds 0.2 at x = 0 and 2 at x = 1."""
    x = np.repeat([0.0, 1.0], [12, 12])
    y = np.concatenate([np.repeat([1, 0], [2, 10]), np.repeat([1, 0], [8, 4])]).astype(float)
    fit = clustered_logistic(np.stack([np.ones(24), x], axis=1), y, np.arange(24), ridge=0.0)
    assert fit.coefficients == pytest.approx([math.log(0.2), math.log(10)], abs=1e-6)
    assert fit.converged


def test_split_by_hand() -> None:
    """Two judges, three ballots of the shy one: 0.9, 0.7, 0.5 against 0.6, 0.3, 0.1 of the ready."""
    tied = np.array([0.9, 0.7, 0.5])
    at = np.array([[0.9, 0.6], [0.7, 0.3], [0.5, 0.1]])
    split = split_ties(tied, at, np.array([0.5, 0.1]), eligible=np.array([True, True]))
    assert split.no_guidance == pytest.approx(0.3 / 2.1)
    assert split.equivalence == pytest.approx((0.5 + 0.2) / 2.1)
    assert split.conservatism == pytest.approx((0.3 + 0.4 + 0.4) / 2.1)
    no_split = split_ties(tied * 0, at, np.zeros(2), eligible=np.array([True, True]))
    assert math.isnan(no_split.equivalence)


def _responses(n: int, shift: dict[str, float], slope: float, seed: int = 0, floor: float = 0.0):
    """Responses that share a share of their words; judges decide where they differ enough."""
    rng = np.random.default_rng(seed)
    words = [f"w{k}" for k in range(2000)]
    rows, texts = [], {}
    for i in range(n):
        apart = rng.random()
        base = rng.choice(words, 60)
        other_indices = np.where(rng.random(60) < apart, rng.choice(words, 60), base)
        texts[f"q{i}"] = Texts(" ".join(base), " ".join(other_indices))
        for judge, ease in shift.items():
            p = 1 / (1 + np.exp(-(slope * (apart - 0.5) + ease)))
            decides = rng.random() < p * (1 - floor)
            rows.append(VoteRow(f"q{i}", judge, "A" if decides else "tie"))
    return encode(rows), texts


def test_ties_of_alike_responses_are_equivalence() -> None:
    votes, texts = _responses(250, {"a": 0.0, "b": 0.0}, slope=14)
    test = equivalence(votes, texts, seed=1)
    assert test.reading == "equivalence"
    assert test.r2.low > 0.4
    assert test.shares.equivalence.low > 0.7
    assert test.shares.conservatism.estimate < 0.15
    total = sum(
        part.estimate
        for part in (test.shares.equivalence, test.shares.conservatism, test.shares.unguided)
    )
    assert total == pytest.approx(1)


def test_ties_whatever_the_responses_are_failure() -> None:
    votes, texts = _responses(250, {"a": -1.0, "b": -1.0}, slope=0)
    test = equivalence(votes, texts, seed=1)
    assert test.published == "failure"
    assert test.shares.unguided.estimate > 0.7


def test_a_shy_judge_beside_a_ready_one_is_conservative() -> None:
    votes, texts = _responses(250, {"ready": 3.0, "shy": -3.0}, slope=3)
    test = equivalence(votes, texts, seed=1)
    assert test.shares.conservatism.low > 0.6


def test_a_coin_that_never_ties_sets_no_standard() -> None:
    votes, texts = _responses(200, {"coin": 20.0, "a": 0.0}, slope=14)
    with_coin = equivalence(votes, texts, seed=1)
    without = equivalence(votes, texts, standard=["a"], seed=1)
    assert with_coin.shares.conservatism.estimate > 0.9
    assert without.shares.conservatism.estimate < 0.05
    assert without.standard == ("a",)


def test_no_ties_have_no_split_and_few_items_no_regression() -> None:
    votes, texts = _responses(40, {"a": 30.0}, slope=0)
    assert equivalence(votes, texts).shares is None
    few, some_responses = _responses(5, {"a": 0.0}, slope=1)
    with pytest.raises(StatisticsError, match="20 items"):
        equivalence(few, some_responses)
