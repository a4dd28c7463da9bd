"""A plan is decided before anything is spent: who sits, with what weight, and what is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from clash.collect.load import Prompts
from clash.collect.plan import make_plan
from clash.collect.templates import Templates
from clash.config import Config, Panel
from clash.errors import ConfigError, InputError
from clash.records import Item, Response

TEMPLATES = Templates.load()
MODELS = ["compatible/ada", "compatible/bob"]
NAMES = ["ada", "bob"]


def prompts(rankings=("x", "y"), n=2, **more):
    items = tuple(Item(item_id=f"q{i}", prompt=f"Question {i}?", **more) for i in range(n))
    responses = tuple(
        Response(item_id=item.item_id, candidate=name, text=name, source="injected")
        for item in items
        for name in rankings
    )
    return Prompts(Path("prompts.yaml"), items, responses, "")


def panel(**more):
    judges = [
        {"id": "a", "model": "compatible/a"},
        {"id": "b", "model": "compatible/b", "weight": 3},
    ]
    judges.append({"id": "c", "model": "compatible/c", "role": "observer"})
    return Panel.model_validate({"name": "p", "judges": judges, **more})


def plan_of(config=None, rankings=("x", "y"), panel_=None, **more):
    config = Config.model_validate(config or {})
    return make_plan(config, panel_ or panel(), prompts(rankings, **more), TEMPLATES)


def seats(plan_seats):
    return {judge.id: (judge.role, judge.weight) for judge in plan_seats.judges}


def test_only_voting_judges_have_a_weight():
    assert seats(plan_of()) == {"a": ("voting", 1), "b": ("voting", 3), "c": ("observer", 0)}


def test_each_candidate_that_is_a_model_watches_unless_told_otherwise():
    watching = seats(plan_of({"candidates": MODELS}, rankings=()))
    assert watching["self:ada"] == ("observer", 0)
    assert list(watching) == ["a", "b", "c", *(f"self:{name}" for name in NAMES)]
    assert list(seats(plan_of({"candidates": MODELS, "observers": []}))) == ["a", "b", "c"]


def test_observers_that_vote_weigh_1_and_the_panel_twice_its_own():
    config = {"candidates": MODELS, "observers": {"judges": "candidates", "role": "voting"}}
    result = plan_of(config, panel_=panel(quorum=2))
    assert seats(result) == {
        "a": ("voting", 2),
        "b": ("voting", 6),
        "c": ("observer", 0),
        "self:ada": ("voting", 1),
        "self:bob": ("voting", 1),
    }
    assert result.quorum == 4
    assert plan_of(panel_=panel(quorum=2)).quorum == 2
    assert plan_of().quorum is None


def test_a_candidates_cap_on_answers_is_not_the_cap_on_its_judgments():
    candidate = {"model": MODELS[0], "options": {"max_tokens": 50, "temperature": 0.5}}
    result = plan_of({"candidates": [candidate]})
    watcher = next(judge for judge in result.judges if judge.id.startswith("self:"))
    assert (watcher.options.max_tokens, watcher.options.temperature) == (None, 0.5)


def test_present_responses_are_not_generated_and_missing_ones_are():
    result = plan_of({"candidates": [*MODELS, {"id": "x", "model": "compatible/x"}]})
    assert [(i.item_id, c.id) for i, c in result.missing()] == [
        (item, name) for item in ("q0", "q1") for name in NAMES
    ]
    assert list(plan_of().missing()) == []


def test_models_that_have_nothing_to_do_are_not_called_for():
    result = plan_of({"candidates": [{"id": "x", "model": "compatible/x"}], "observers": []})
    assert [ref.model for ref in result.refs()] == [f"compatible/{j}" for j in "abc"]


def test_a_repeated_item_keeps_its_cluster_and_its_responses():
    result = plan_of({"repeat": 2})
    assert [(i.item_id, i.cluster) for i in result.items] == [
        ("q0~1", "q0"),
        ("q0~2", "q0"),
        ("q1~1", "q1"),
        ("q1~2", "q1"),
    ]
    assert [(r.item_id, r.candidate) for r in result.responses][:4] == [
        ("q0~1", "x"),
        ("q0~2", "x"),
        ("q0~1", "y"),
        ("q0~2", "y"),
    ]
    again = plan_of({"repeat": 2}, group="g")
    assert {item.cluster for item in again.items} == {"g"}


@pytest.mark.parametrize(
    ("config", "rankings", "more", "kind", "problem"),
    [
        ({}, ("x",), {}, InputError, r"has one response \(x\), and nothing to compare"),
        ({}, (), {}, InputError, "has no response"),
        ({"candidates": MODELS[:1]}, (), {}, InputError, "nothing to compare it with"),
        ({}, ("x", "y"), {"label": "z"}, InputError, "label 'z', which is not a candidate"),
        (
            {"observers": [{"id": "a", "model": "compatible/z"}]},
            ("x", "y"),
            {},
            ConfigError,
            "'a' is in the panel already",
        ),
    ],
    ids=["one", "none", "alone", "label", "twice"],
)
def test_what_cannot_be_judged_is_refused_with_a_mend(config, rankings, more, kind, problem):
    with pytest.raises(kind, match=problem) as error:
        plan_of(config, rankings, **more)
    assert error.value.exit_code == 2
    assert error.value.field


def test_a_label_may_be_a_candidate_that_is_yet_to_answer_or_a_tie():
    assert plan_of({"candidates": MODELS}, label=NAMES[0]).items[0].label == NAMES[0]
    assert plan_of(label="tie").items[0].label == "tie"
