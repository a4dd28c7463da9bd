"""Pairs that repeat another one: left out, judged where asked for, and one figure in both commands."""

from __future__ import annotations

import json

import pytest

from clash.cli.app import run


@pytest.fixture
def pairs(tmp_path, monkeypatch):
    """Six pairs, of which the last two show what the first two show."""
    monkeypatch.chdir(tmp_path)
    lines = [
        {
            "id": f"p{i}",
            "prompt": f"Question {i % 4}?",
            "responses": {"a": f"short {i % 4}", "b": f"longer, with more words, {i % 4}"},
            "label": "a" if i % 4 == 0 else "b",
        }
        for i in range(6)
    ]
    (tmp_path / "pairs.jsonl").write_text("\n".join(map(json.dumps, lines)))
    return ["validate", "pairs.jsonl", "--panel", "baseline", "--json"]


def _read(capsys, *words: str) -> dict:
    assert run([*words]) == 0
    return json.loads(capsys.readouterr().out)


def test_validate_and_report_have_one_figure_for_unique_pairs(pairs, capsys):
    _read(capsys, *pairs, "--run-id", "unique")
    alone = _read(capsys, "report", "unique", "--no-write", "--json")["concordance"]
    assert (alone["headline"]["rate"]["n"], alone["unique"]) == (4, None)
    _read(capsys, *pairs, "--run-id", "all", "--keep-repeats")
    full_concordance = _read(capsys, "report", "all", "--no-write", "--json")["concordance"]
    assert full_concordance["headline"]["rate"]["n"] == 6
    assert full_concordance["repeats"] == {"p4": "p0", "p5": "p1"}
    concordance = _read(capsys, "report", "all", "--drop-repeats", "--json")["concordance"]
    rates = [full_concordance["unique"], concordance["headline"]["rate"], alone["headline"]["rate"]]
    assert [(rate["right"], rate["n"]) for rate in rates] == [(rates[0]["right"], 4)] * 3


def test_a_report_without_repeats_is_not_written(pairs, capsys, tmp_path):
    _read(capsys, *pairs, "--run-id", "all", "--keep-repeats")
    before = (tmp_path / "runs/all/report.json").read_bytes()
    assert run(["report", "all", "--drop-repeats", "-q"]) == 0
    assert (tmp_path / "runs/all/report.json").read_bytes() == before
    assert run(["report", "all", "--drop-repeats", "--write"]) == 2
    assert "leave --write and --open out" in capsys.readouterr().err
