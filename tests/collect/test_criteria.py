"""Criteria: strictly read, from the prompt alone, and from where they were asked for first."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clash.collect.criteria import FALLBACK, criteria_request, parse, ready_criteria
from clash.collect.jsontext import Unreadable
from clash.collect.load import Prompts
from clash.collect.plan import make_plan
from clash.collect.templates import Templates
from clash.config import Config, ModelRef, Panel
from clash.records import Criteria, Criterion, Item, Response

ROWS = [
    {"name": "Accuracy", "weight": 50, "description": "is it true?"},
    {"name": "Clarity", "weight": 30, "description": ""},
    {"name": "Wit", "weight": 20, "description": "does it amuse?"},
]
WRITER = ModelRef(model="compatible/writer")


def criteria_text(rows, **more):
    return json.dumps({"criteria": rows, **more})


@pytest.mark.parametrize(
    "text",
    [
        criteria_text(ROWS),
        f"```json\n{criteria_text(ROWS)}\n```",
        f"Here you are: {criteria_text(ROWS)} Enjoy!",
        json.dumps(ROWS),
        criteria_text(ROWS, comment="three of them"),
        f"```json\n{json.dumps(ROWS)}\n```",
        f"Here you are:\n```\n{json.dumps(ROWS, indent=1)}\n```\nEnjoy!",
        f"Here you are: {json.dumps(ROWS)}",
    ],
    ids=[
        "plain",
        "fenced",
        "in prose",
        "a bare list",
        "with more",
        "a fenced list",
        "a fenced list in prose",
        "a list in prose",
    ],
)
def test_what_can_be_read_is_read_and_weights_add_up_to_one(text):
    answer = parse(text)
    assert [c.name for c in answer] == ["Accuracy", "Clarity", "Wit"]
    assert [c.weight for c in answer] == [0.5, 0.3, 0.2]


@pytest.mark.parametrize(
    "text", ['["A", "B", "C"]', '```json\n["A", "B", "C"]\n```', criteria_text(["A", "B", "C"])]
)
def test_names_alone_weigh_the_same(text):
    assert [(c.name, round(c.weight, 3)) for c in parse(text)] == [(n, 0.333) for n in "ABC"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (criteria_text(ROWS[:2]), "found 2"),
        (criteria_text(ROWS * 2), "found 6"),
        (criteria_text([ROWS[0], ROWS[1], {**ROWS[2], "name": "accuracy "}]), "two have the same"),
        (criteria_text([ROWS[0], ROWS[1], {**ROWS[2], "name": "  "}]), "has no name"),
        (criteria_text([ROWS[0], ROWS[1], {**ROWS[2], "weight": 0}]), "weight"),
        (criteria_text([ROWS[0], ROWS[1], {**ROWS[2], "weight": -1}]), "weight"),
        (criteria_text([ROWS[0], ROWS[1], {"weight": 1}]), "name"),
        (criteria_text("Accuracy"), "no list of criteria"),
        (criteria_text(["A", "B", ROWS[2]]), "valid"),
        ('["A", "A ", "B"]', "two have the same"),
        ("``` ```", "JSON"),
        (criteria_text(ROWS)[:60], "JSON|ends inside"),
        ("", "empty"),
        ("I cannot help with that.", "JSON"),
    ],
    ids=str,
)
def test_what_cannot_is_refused_with_the_reason(text, reason):
    with pytest.raises(Unreadable, match=reason):
        parse(text)


@given(st.text() | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(json.dumps))
def test_no_answer_makes_it_raise_anything_else(text):
    try:
        answer = parse(text)
    except Unreadable:
        return
    assert 3 <= len(answer) <= 5


def plan_and_item(mode="dynamic", *, item=None, ref=WRITER, earlier=None, items=()):
    item = item or Item(item_id="q", prompt="Say it.")
    responses = tuple(
        Response(item_id="q", candidate=name, text=f"{name} says so", source="injected")
        for name in ("ada", "bob")
    )
    config = Config.model_validate({"criteria": {"mode": mode, "items": list(items)}})
    panel = Panel.model_validate({"name": "p", "judges": [{"model": "baseline/longest"}]})
    prompts = Prompts("prompts.yaml", (item,), responses, "")
    return make_plan(
        config,
        panel,
        prompts,
        Templates.load(),
        criteria_ref=ref,
        criteria_why=None if ref else "no model is named",
        reused_criteria=earlier,
    ), item


def test_an_items_own_criteria_come_before_the_configurations_and_a_reused_run_before_both():
    own_criteria = [Criterion(name="Rhyme", weight=1)]
    item = Item(item_id="q", prompt="Say it.", criteria=own_criteria)
    earlier = Criteria(item_id="q", source="dynamic", criteria=list(FALLBACK), call_id="old")
    for mode in ("dynamic", "none", "fixed"):
        criteria = ready_criteria(item, plan_and_item(mode, item=item)[0])
        assert (criteria.source, criteria.criteria) == ("fixed", own_criteria)
    criteria = ready_criteria(item, plan_and_item(item=item, earlier={"q": earlier})[0])
    assert (criteria.source, criteria.criteria, criteria.call_id) == (
        "dynamic",
        list(FALLBACK),
        None,
    )


@pytest.mark.parametrize(
    ("mode", "items", "source", "names"),
    [
        ("none", (), "none", []),
        ("fixed", ({"name": "Wit", "weight": 1},), "fixed", ["Wit"]),
        ("fixed", (), "fixed", [c.name for c in FALLBACK]),
    ],
)
def test_what_needs_no_model_is_settled_at_once(mode, items, source, names):
    criteria = ready_criteria(*reversed(plan_and_item(mode, items=items)))
    assert (criteria.source, [c.name for c in criteria.criteria]) == (source, names)
    assert criteria.error is None


def test_without_a_model_the_generic_four_stand_in_and_say_why():
    criteria = ready_criteria(*reversed(plan_and_item(ref=None)))
    assert (criteria.source, criteria.error) == ("fallback", "no model is named")
    assert ready_criteria(*reversed(plan_and_item())) is None


def test_the_writer_sees_the_prompt_and_no_response():
    plan, item = plan_and_item()
    request = criteria_request(item, plan, WRITER)
    page = f"{request.system}\n{request.turns[0].content}"
    assert "Say it." in page
    assert "ada" not in page
    assert "says so" not in page
    assert request.max_tokens == 150
    assert request.schema["properties"]["criteria"]["type"] == "array"
