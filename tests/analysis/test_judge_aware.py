"""Strengths with the judges' reliability and at equal style, from runs and files, hold their truth."""

import json

import numpy as np
import pytest

from clash.analysis.rankings.judge_aware import parse_styles, rank_by_judges
from clash.errors import ConfigError
from clash.pipeline.aggregate import AggregateOptions, aggregate_votes
from clash.pipeline.sources import VoteSelection
from clash.votes.named_rankings import file_rankings
from clash.votes.style import StyleSource, organisation, text_traits

MODELS = ("acme/big", "acme/small", "other/mid")
TRUTH = {"acme/big": 0.0, "acme/small": -0.6, "other/mid": 0.6}
JUDGES = {"acme/judge": 1.4, "third/judge": 1.2, "third/coin": 0.0}


def write(path, lines):
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.fixture(scope="module")
def votes(tmp_path_factory):
    """Judges that like long answers (each doubling by 0.7), the first place and their own house."""
    rng, lines, pairs = np.random.default_rng(1), [], []
    for i in range(350):
        a, b = rng.choice(len(MODELS), 2, replace=False)
        first, second = MODELS[a], MODELS[b]
        doublings = rng.normal(size=2) + [0.8 * (m == "acme/big") for m in (first, second)]
        sizes = np.round(200 * 2**doublings).astype(int)
        texts = ["x" * size for size in sizes]
        pairs.append({"item_id": f"q{i}", "response_a": texts[0], "response_b": texts[1]})
        for judge, reliability in JUDGES.items():
            swap = rng.random() < 0.5
            is_same_family = (first[:4] == judge[:4]) - float(second[:4] == judge[:4])
            eta = reliability * (TRUTH[first] - TRUTH[second])
            eta += (
                0.7 * np.log2(sizes[0] / sizes[1]) + (-0.4 if swap else 0.4) + 0.8 * is_same_family
            )
            u = rng.random() * (np.exp(eta / 2) + 0.5 + np.exp(-eta / 2))
            vote = "A" if u < np.exp(eta / 2) else "tie" if u < np.exp(eta / 2) + 0.5 else "B"
            lines.append(
                {
                    "item": f"q{i}",
                    "judge": judge,
                    "vote": vote,
                    "model_a": first,
                    "model_b": second,
                    "presentation": "swap" if swap else "orig",
                }
            )
    folder = tmp_path_factory.mktemp("style")
    return write(folder / "votes.jsonl", lines), write(folder / "pairs.jsonl", pairs)


@pytest.fixture(scope="module")
def ranking(votes):
    file, pairs = votes
    options = AggregateOptions("bradley-terry", style="all", pairs=pairs, bootstrap=0)
    return aggregate_votes(VoteSelection(file), options)


def test_equal_style_puts_the_stronger_before_the_longer(ranking):
    result = ranking.judge_aware
    rows = {row.candidate: row for row in result.rows}
    assert result.adjusted_for == ("length", "position", "self")
    assert [row.candidate for row in result.rows] == ["other/mid", "acme/big", "acme/small"]
    assert rows["acme/big"].plain.rank == 1
    for name, row in rows.items():
        assert abs(row.at_equal_style.strength.estimate - TRUTH[name]) < 0.3
        assert (
            row.at_equal_style.rank_low <= row.at_equal_style.rank <= row.at_equal_style.rank_high
        )


def test_style_effects_and_reliabilities_are_those_of_the_judges(ranking):
    effects = {row.style: row.effect for row in ranking.judge_aware.styles}
    for name, truth in (("length", 0.7), ("position", 0.4), ("self", 0.8)):
        assert not effects[name].excludes(truth), name
    assert effects["length"].excludes(0)
    assert effects["position"].excludes(0)
    judges = {row.judge: row.reliability for row in ranking.judge_aware.judges}
    assert judges["third/coin"].high < judges["acme/judge"].low
    assert judges["third/coin"].low < 0.3


def test_what_cannot_be_adjusted_for_says_why(ranking, votes):
    assert ranking.judge_aware.left_out == {"markdown": "no difference in any comparison"}
    without_texts = rank_by_judges(file_rankings(votes[0], texts={}), ("length", "position"))
    assert without_texts.left_out == {"length": "not known"}
    assert without_texts.adjusted_for == ("position",)


def test_a_style_that_goes_with_the_candidates_is_left_out(tmp_path):
    lines = [
        {
            "item": f"q{i}",
            "judge": "j",
            "vote": "AB"[i % 3 == 0],
            "model_a": "a",
            "model_b": "b",
            "presentation": "orig",
        }
        for i in range(30)
    ]
    rankings = rank_by_judges(
        file_rankings(write(tmp_path / "v.jsonl", lines), texts={}), ("position",)
    )
    assert "cannot be told apart" in rankings.left_out["position"]
    assert rankings.rows[0].at_equal_style == rankings.rows[0].plain


def test_the_json_and_the_tables_say_the_same(ranking):
    record = ranking.as_json()["judge_aware"]
    assert record["candidates"][0]["candidate"] == "other/mid"
    assert {row["style"] for row in record["styles"]} == {"length", "position", "self"}
    titles = [table.title for table in ranking.tables()]
    assert "Strengths with the judges' reliability, at equal length, position, self" in titles
    assert titles[-2:] == ["Style", "Reliability of the judges"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (AggregateOptions("bradley-terry", style="colour"), "no style 'colour'"),
        (AggregateOptions("borda", style="all"), "belongs to --method bradley-terry"),
        (AggregateOptions("bradley-terry", pairs="p.jsonl"), "needs --style"),
    ],
)
def test_options_that_do_not_fit_are_refused(votes, options, words):
    with pytest.raises(ConfigError, match=words):
        aggregate_votes(VoteSelection(votes[0]), options)


def test_styles_are_named_one_by_one_or_together():
    assert parse_styles("all") == ("length", "markdown", "position", "self")
    assert parse_styles("none") == ()
    assert parse_styles("self, length") == ("self", "length")


def test_traits_of_a_text_and_the_maker_of_a_model():
    assert text_traits("") == (0, 0)
    assert text_traits("# Title\n\n- one\n- **two**\n1. three\n") == pytest.approx(
        (np.log2(35), np.log2(6))
    )
    assert organisation("openrouter/openai/gpt-6") == organisation("openai/gpt-6") == "openai"
    assert organisation("nobody-knows-this") is None
    unknown = StyleSource().traits("q", "acme/j", ("x", "acme/y"), (1.0, 0.0))
    assert unknown[:, 2].tolist() == [1, 0]
    assert np.isnan(unknown[0, 3])
    assert unknown[1, 3] == 1
