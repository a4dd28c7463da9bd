"""The published inclusion rules, the draw, and the account of what was left out."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from clash.datasets import published_models
from clash.datasets.dataset import DatasetBuilder, ItemFacts
from clash.datasets.record_files import SourceRow
from clash.datasets.sampling import (
    PAPER_ARENA,
    SamplingRules,
    paper_rules,
    sample,
    with_paper_names,
)
from clash.errors import InputError

HERE = SourceRow(Path("f"), 1, {})
LONG = "x" * 30
GOOD = ItemFacts(language="English", anonymous=True, turns=1)


def dataset(*items):
    builder = DatasetBuilder("arena", "somewhere", "CC0")
    for number, (a, b, label, facts, texts) in enumerate(items):
        builder.add(
            HERE,
            f"i{number}",
            f"Question {number}?",
            dict(zip((a, b), texts, strict=True)),
            label=label,
            facts=facts,
            tags=[f"tag-{number % 3}"],
        )
    return builder.build()


def battle(a="gpt-4o-2024-05-13", b="claude-3-5-sonnet-20240620", label=None, facts=GOOD, **more):
    texts = more.get("texts", (LONG + "a", LONG + "b"))
    return a, b, label or a, facts, texts


def rng(seed=42):
    return np.random.default_rng(seed)


def test_each_rule_of_the_paper_excludes_what_it_should_and_says_so():
    random_sample = sample(
        dataset(
            battle(),
            battle(b="gpt-3.5-turbo-0125"),
            battle(label="tie"),
            battle(facts=replace(GOOD, anonymous=False)),
            battle(facts=replace(GOOD, language="Polish")),
            battle(facts=replace(GOOD, turns=2)),
            battle(texts=(LONG, "x" * 29)),
            battle(texts=(LONG, LONG)),
        ),
        PAPER_ARENA,
        rng(),
    )
    assert {e.item_id: e.reason for e in random_sample.dataset.exclusions} == {
        "i1": "a model is not in the frontier set",
        "i2": "no clear winner",
        "i3": "not anonymous",
        "i4": "not in English",
        "i5": "not single-turn",
        "i6": "a response is shorter than 30 characters",
    }
    assert [item.item_id for item in random_sample.dataset.items] == ["i0", "i7"]
    assert random_sample.counts["items"] == 8
    assert random_sample.counts["admitted"] == random_sample.counts["drawn"] == 2
    account = json.loads(random_sample.summary())
    assert account["counts"]["no clear winner"] == 1
    assert account["rules"]["min_chars"] == 30


def test_sampled_items_bear_the_names_of_the_paper():
    random_sample = sample(dataset(battle()), PAPER_ARENA, rng())
    assert random_sample.dataset.candidates == ["gpt-4o", "claude-3.5-sonnet"]
    assert random_sample.dataset.items[0].label == "gpt-4o"
    assert random_sample.dataset.responses[0].model == "gpt-4o-2024-05-13"


def test_two_versions_of_one_name_keep_the_names_they_have():
    rows = with_paper_names(dataset(battle("deepseek-coder-v2", "deepseek-coder-v2-0724")))
    assert rows.candidates == ["deepseek-coder-v2", "deepseek-coder-v2-0724"]
    assert rows.items[0].label == "deepseek-coder-v2"


def test_a_rule_that_the_source_cannot_answer_excludes_nothing_and_is_named():
    random_sample = sample(dataset(battle(facts=ItemFacts(turns=1))), PAPER_ARENA, rng())
    assert len(random_sample.dataset.items) == 1
    assert random_sample.open_rules == ("anonymous", "language")


def test_the_draw_depends_on_the_seed_alone():
    many = dataset(*[battle(texts=(LONG, f"{LONG}{n}")) for n in range(200)])
    rules = replace(PAPER_ARENA, n=20)
    first, again = (sample(many, rules, rng()).dataset for _ in range(2))
    assert first == again
    other_dataset = sample(many, rules, rng(43)).dataset
    assert {i.item_id for i in other_dataset.items} != {i.item_id for i in first.items}
    assert len(first.items) == 20
    assert first.excluded_by_reason() == {"not drawn (seed 42)": 180}
    places = [int(item.item_id[1:]) for item in first.items]
    assert places == sorted(places)


def test_every_item_is_drawn_equally_often():
    many = dataset(*[battle(texts=(LONG, f"{LONG}{n}")) for n in range(10)])
    rules = replace(PAPER_ARENA, n=3)
    draws = Counter(
        item.item_id for seed in range(500) for item in sample(many, rules, rng(seed)).dataset.items
    )
    # 150 expected, standard deviation 10.2: five of them either way.
    assert all(99 < count < 201 for count in draws.values())


def test_a_stratified_draw_keeps_the_proportions():
    winners = ["gpt-4o-2024-05-13"] * 70 + ["claude-3-5-sonnet-20240620"] * 30
    many = dataset(*[battle(label=w, texts=(LONG, f"{LONG}{n}")) for n, w in enumerate(winners)])
    random_sample = sample(many, replace(PAPER_ARENA, n=10, stratify="winner"), rng())
    assert random_sample.strata == {"gpt-4o": 7, "claude-3.5-sonnet": 3}
    uneven = sample(many, replace(PAPER_ARENA, n=11, stratify="tag"), rng())
    assert sum(uneven.strata.values()) == 11
    assert max(uneven.strata.values()) - min(uneven.strata.values()) <= 1


def test_tiers_are_those_of_the_first_experiment():
    rules = SamplingRules(n=2, stratify="tier", clear_winner=True)
    pairs = [battle("gpt-4", "llama-13b"), battle("alpaca-13b", "llama-13b", texts=("a", "b"))]
    random_sample = sample(dataset(*pairs), rules, rng())
    assert random_sample.strata == {"strong": 1, "weak": 1}


def test_asking_for_more_than_there_is_says_how_many_there_are():
    with pytest.raises(InputError, match="2 items are requested, but the rules admit only 1"):
        sample(dataset(battle()), replace(PAPER_ARENA, n=2), rng())


def test_a_pair_that_stands_twice_is_drawn_once():
    builder = DatasetBuilder("x", "somewhere", "CC0")
    for item_id in ("1", "2"):
        builder.add(HERE, item_id, "Q?", {"x": "a", "y": "b"}, label="x")
    random_sample = sample(builder.build(), SamplingRules(), rng())
    assert random_sample.dataset.excluded_by_reason() == {
        "same prompt and responses as another item": 1
    }
    assert "keep_repeats" not in random_sample.rules.record()
    full_sample = sample(builder.build(), SamplingRules(keep_repeats=True), rng())
    assert [item.item_id for item in full_sample.dataset.items] == ["1", "2"]
    assert full_sample.rules.record()["keep_repeats"] is True


def test_rules_follow_the_data_set():
    assert paper_rules("arena") is PAPER_ARENA
    assert paper_rules("mt-bench") == SamplingRules(clear_winner=True, turns=1)
    assert paper_rules("mine") == SamplingRules(clear_winner=True)


def test_the_frontier_set_is_table_5():
    frontier = [model for model in published_models.models().values() if model.frontier]
    assert len(frontier) == 27
    assert all(model.arena for model in frontier)
    arena = [name for model in frontier for name in model.arena]
    assert len(arena) == len(set(arena))


def test_a_model_is_found_by_any_of_its_names():
    assert published_models.find("claude-3-5-sonnet-20240620") is published_models.find(
        "claude-3.5-sonnet"
    )
    assert published_models.find("anthropic/claude-3.5-sonnet") is published_models.find(
        "claude-3.5-sonnet"
    )
    assert published_models.find("no-such-model") is None
    assert published_models.describe("vicuna-13b-v1.2") == {
        "id": "vicuna-13b-v1.2",
        "family": "lmsys",
        "tier": "weak",
    }
    assert published_models.describe("mine") == {"id": "mine"}
