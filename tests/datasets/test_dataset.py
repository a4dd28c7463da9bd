"""The common noun, and its way through a prompts file."""

from pathlib import Path

import pytest

from clash.datasets import dataset as pairs
from clash.datasets import loaders
from clash.datasets.dataset import (
    DatasetBuilder,
    ItemFacts,
    distinct_names,
    labels_path,
    majority,
    to_prompts,
)
from clash.datasets.record_files import SourceRow
from clash.errors import InputError
from clash.records import Label

HERE = SourceRow(Path("f.jsonl"), 1, {}, line=1)


def built(*items):
    builder = DatasetBuilder("set", "somewhere", "CC0")
    for item_id, prompt, texts, fields in items:
        builder.add(HERE, item_id, prompt, texts, **fields)
    return builder.build()


def test_the_majority_is_the_plurality_and_a_shared_first_place_is_a_tie():
    assert majority(["a", "a", "b"]) == "a"
    assert majority(["a", "b"]) == "tie"
    assert majority(["tie", "both bad", "a"]) == "tie"
    assert majority(["a", "a", "b", "b", "tie"]) == "tie"
    assert majority([]) is None


def test_each_response_has_a_name_of_its_own():
    assert distinct_names(["x", "y"]) == ["x", "y"]
    assert distinct_names(["x", "x"]) == ["x#a", "x#b"]
    assert distinct_names([None, None]) == ["response-a", "response-b"]
    many = distinct_names([None] * 30)
    assert len(set(many)) == 30


def test_what_cannot_be_used_is_excluded_with_its_reason():
    dataset = built(
        ("1", "Why?", {"x": "because", "y": ""}, {"label": "x"}),
        ("2", "Why?", {"x": "because", "y": None}, {"label": "x"}),
        ("3", "  ", {"x": "because", "y": "so"}, {"label": "x"}),
        ("1", "Who?", {"x": "me", "y": "you"}, {"label": "y"}),
    )
    assert [item.item_id for item in dataset.items] == ["1"]
    assert dataset.texts() == {"1": {"x": "because", "y": ""}}
    assert [(e.item_id, e.reason) for e in dataset.exclusions] == [
        ("2", "a response is missing"),
        ("3", "the prompt is empty"),
        ("1", "the id appears twice"),
    ]


def test_a_label_that_names_nobody_is_refused():
    with pytest.raises(InputError, match="'z' is not one of x, y, tie"):
        built(("1", "Why?", {"x": "a", "y": "b"}, {"label": "z"}))


def test_items_that_ask_the_same_share_a_group_and_repeats_are_found():
    dataset = built(
        ("1", "Why?", {"x": "a", "y": "b"}, {"label": "x"}),
        ("2", "Why?", {"x": "a", "z": "c"}, {"label": "z"}),
        ("3", "Who?", {"x": "a", "y": "b"}, {"label": "x"}),
        ("4", "Why?", {"y": "b", "x": "a"}, {"label": "y"}),
    )
    assert [item.cluster for item in dataset.items] == ["1", "1", "3", "1"]
    assert [item.group for item in dataset.items] == ["1", "1", None, "1"]
    assert pairs.repeats(dataset) == {"4": "1"}


def test_characters_that_are_not_unicode_are_replaced_and_counted():
    dataset = built(("1", "Why \ud83d?", {"x": "a", "y": "b"}, {"label": "x"}))
    assert dataset.items[0].prompt == "Why \ufffd?"
    assert "1 texts" in dataset.notes[0]


def test_a_prompts_file_carries_everything_to_clash_and_back(tmp_path):
    from clash.collect.load import load

    dataset = built(
        (
            "1",
            "Why?\nReally?",
            {"vendor/x": "because\u2028so", "y": ""},
            {
                "label": "vendor/x",
                "labels": [
                    Label(item_id="1", annotator="ann", winner="vendor/x"),
                    Label(item_id="1", annotator="bob", winner="both bad"),
                ],
                "tags": ["math"],
                "reference": "42",
                "facts": ItemFacts(turns=1),
            },
        ),
        ("2", "Who?", {"vendor/x": "me", "y": "you"}, {"label": "tie", "group": "g"}),
    )
    path = tmp_path / "sample.jsonl"
    path.write_text("".join(f"{line}\n" for line in to_prompts(dataset)), encoding="utf-8")
    label_lines = "".join(f"{x.model_dump_json(exclude_defaults=True)}\n" for x in dataset.labels)
    labels_path(path).write_text(label_lines)
    again = loaders.load(path)
    assert again.items == dataset.items
    assert again.texts() == dataset.texts()
    assert again.labels == dataset.labels
    prompts = load(path)
    assert [i.label for i in prompts.items] == ["vendor/x", "tie"]
    assert {(r.item_id, r.candidate): r.text for r in prompts.responses} == {
        (r.item_id, r.candidate): r.text for r in dataset.responses
    }


def test_a_broken_label_file_is_named(tmp_path):
    path = tmp_path / "x.labels.jsonl"
    path.write_text('{"item_id": "1", "annotator": "a"}\n{"item_id": "1"}\n')
    with pytest.raises(InputError, match=r"x.labels.jsonl:2: annotator"):
        pairs.read_labels(path)
