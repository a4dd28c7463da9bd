"""Who calls from Python reads of arguments: options of commands are of no use there."""

import asyncio

import pytest

import clash
from clash.library.arguments import in_python

VOTES = [{"item": f"i{k}", "judge": j, "vote": k % 2, "label": 1} for k in range(9) for j in "abc"]
PROMPTS = [{"prompt": "?", "responses": {"x": "hello there", "y": "hi"}}]


@pytest.mark.parametrize(
    ("call", "field", "hint"),
    [
        (lambda: clash.aggregate(VOTES, method="none"), "method", "one of"),
        (lambda: clash.power("paired", panels=[]), "panels, icc", ""),
        (lambda: clash.evaluate(PROMPTS, panel="baseline", until="?"), "until", 'until="ci<0.1"'),
        (lambda: clash.evaluate(PROMPTS * 2, panel="baseline"), "", "several times use repeat"),
    ],
)
def test_an_error_names_the_argument(call, field, hint, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(clash.ClashError) as refusal:
        call()
    assert (refusal.value.field or "") == field
    assert hint in (refusal.value.hint or "")
    assert "--" not in str(refusal.value)


def test_an_error_names_the_argument_where_it_is_awaited(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(clash.ClashError, match="until: no stopping rule"):
        asyncio.run(clash.evaluate_async(PROMPTS, panel="baseline", until="?"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("choose another --run-id", "choose another run_id"),
        ("--for paired", 'question="paired"'),
        ("--decisive", "decisive"),
        ("--seed 3", "seed=3"),
        ("`clash export RUN --seed 3`, or --seed", "`clash export RUN --seed 3`, or seed"),
        ("--unknown 3 --seedling", "--unknown 3 --seedling"),
    ],
)
def test_only_options_that_are_arguments_are_named_otherwise(text, words):
    arguments = {"run_id", "question", "decisive", "seed"}
    assert in_python(text, arguments, is_example=True) == words
