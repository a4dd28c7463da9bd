"""Calibration pairs have the gap they say, keep code, and are the same for the same seed."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest

from clash.cli.app import run
from clash.datasets.calibration_pairs import (
    KINDS,
    alter,
    calibration_pairs,
    to_jsonl,
)
from clash.errors import InputError
from clash.records import Item

TEXT = (
    "Water boils at 100 degrees at sea level. The pressure is lower on a mountain. "
    "Because of this, water boils before it reaches 100 degrees there. "
    "You do not need to change the recipe much, however it takes 10 minutes more.\n\n"
    "```python\nboil = 100\n```\n\nThe first thing to check is always the altitude of the place."
)


def _pairs(seed: int = 1):
    items = [Item(item_id=f"q{i}", prompt="Why?") for i in range(5)]
    return calibration_pairs(items, {f"q{i}": {"m": TEXT} for i in range(5)}, seed=seed, most=3)


def test_same_seed_same_pairs_and_another_seed_others() -> None:
    assert to_jsonl(_pairs(1)) == to_jsonl(_pairs(1))
    assert to_jsonl(_pairs(1)) != to_jsonl(_pairs(2))


def test_every_kind_is_there_with_its_label() -> None:
    pairs = _pairs()
    assert {pair.kind for pair in pairs} == set(KINDS)
    for pair in pairs:
        assert pair.label == ("tie" if pair.kind in ("identical", "paraphrased") else "original")
        assert (pair.altered == pair.original) == (pair.kind == "identical")
        assert f"gap:{pair.gap:.4f}" in pair.as_prompt()["tags"]
    assert len({pair.source for pair in pairs}) == 3


@pytest.mark.parametrize("share_left", [0.75, 0.5, 0.25])
def test_truncation_removes_what_it_says(share_left: float) -> None:
    copy_text, gap = alter(TEXT, "truncated", share_left, Random(0))
    assert TEXT.startswith(copy_text)
    assert len(copy_text.split()) == pytest.approx(share_left * len(TEXT.split()), abs=1)
    assert gap == pytest.approx(1 - share_left, abs=0.02)


def test_facts_change_numbers_or_claims_and_no_more_than_asked() -> None:
    copy_text, gap = alter(TEXT, "facts", 0.2, Random(0))
    words = set(zip(TEXT.split(), copy_text.split(), strict=False))
    assert copy_text != TEXT
    assert 0 < gap <= 0.4
    assert any(a != b for a, b in words)
    _, changed_text = alter(TEXT, "facts", 1.0, Random(0))
    assert changed_text == 1.0


@pytest.mark.parametrize("kind", ["facts", "disfluent", "padded", "paraphrased"])
def test_code_is_not_touched(kind) -> None:
    copy_text, _ = alter(TEXT, kind, 1.0, Random(3))
    assert "```python\nboil = 100\n```" in copy_text


def test_padding_adds_words_and_clumsiness_keeps_most_of_them() -> None:
    copy_text, _ = alter(TEXT, "padded", 1.0, Random(1))
    assert len(copy_text.split()) > 1.5 * len(TEXT.split())
    clumsy, gap = alter(TEXT, "disfluent", 0.5, Random(1))
    assert set(clumsy.replace(",", "").split()) <= set(TEXT.replace(",", "").split())
    assert 0.3 < gap < 0.7


def test_what_cannot_be_altered_that_way_makes_no_pair() -> None:
    plain = "word " * 30
    pairs = calibration_pairs([Item(item_id="q", prompt="?")], {"q": {"m": plain}})
    assert "paraphrased" not in {pair.kind for pair in pairs}
    assert "facts" not in {pair.kind for pair in pairs}


def test_items_that_share_a_response_do_not_make_a_pair_twice() -> None:
    items = [Item(item_id=f"q{i}", prompt="Why?") for i in range(3)]
    pairs = calibration_pairs(items, {f"q{i}": {"m": TEXT} for i in range(3)}, kinds=["truncated"])
    assert len({pair.content for pair in pairs}) == len(pairs) == 3


def test_short_responses_are_no_source() -> None:
    with pytest.raises(InputError, match="25 words"):
        calibration_pairs([Item(item_id="q", prompt="?")], {"q": {"m": "Yes."}})


# -- clash datasets sample calibration-pairs --------------------------------------------------------

QUICKSTART = str(Path(__file__).resolve().parents[2] / "datasets" / "quickstart.yaml")


def _sampled(location: Path, *more: str) -> str:
    words = [
        "datasets",
        "sample",
        "calibration-pairs",
        "--from",
        QUICKSTART,
        "--out",
        str(location),
    ]
    assert run([*words, *more]) == 0
    return location.read_text(encoding="utf-8")


def test_sampling_writes_the_same_pairs_for_the_same_seed(tmp_path: Path, capsys) -> None:
    first = _sampled(tmp_path / "a" / "p.jsonl", "-n", "5")
    assert "pairs with known gaps, from 5 responses (seed 42)" in capsys.readouterr().out
    assert first == _sampled(tmp_path / "b.jsonl", "-n", "5", "--seed", "42")
    assert first != _sampled(tmp_path / "c.jsonl", "-n", "5", "--seed", "7")


def test_what_is_sampled_is_what_diagnose_judges(tmp_path: Path, capsys) -> None:
    """A run serves as well as the file that it judged, and eval reads what is written."""
    own_text = _sampled(tmp_path / "p.jsonl", "-n", "4", "--seed", "5")
    words = ["diagnose", QUICKSTART, "--calibrate-judges", "--dry-run", "--sources", "4"]
    assert run([*words, "--seed", "5", "--runs", str(tmp_path / "d")]) == 0
    assert (tmp_path / "d" / "known-gaps-quickstart-5.jsonl").read_text("utf-8") == own_text
    assert (
        run(["eval", str(tmp_path / "p.jsonl"), "--out", str(tmp_path), "--run-id", "g", "-q"]) == 0
    )
    capsys.readouterr()
    assert run(["diagnose", "g", "--runs", str(tmp_path), "--similarity", "tfidf", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["calibration"]) == 4
    again = ["datasets", "sample", "calibration-pairs", "--from", "g", "--runs", str(tmp_path)]
    assert run([*again, "--out", str(tmp_path / "q.jsonl"), "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert set(record["counts"]) >= {"facts", "truncated", "padded", "identical"}
    assert len((tmp_path / "q.jsonl").read_text().splitlines()) == sum(record["counts"].values())


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (["calibration-pairs"], "--from"),
        (["mt-bench", "--from", QUICKSTART], "--from"),
        (["calibration-pairs", "--from", QUICKSTART, "--rules", "all"], "--rules"),
        (["calibration-pairs", "--from", QUICKSTART, "--stratify", "tag"], "--stratify"),
    ],
    ids=["no source", "another data set", "rules", "strata"],
)
def test_what_makes_no_pairs_is_refused(words: list[str], field: str, capsys) -> None:
    assert run(["datasets", "sample", *words]) == 2
    assert f"error: {field}" in capsys.readouterr().err
