"""``clash power``: the tables, the pilot, and one JSON object with all of it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from clash.cli.app import run


def _json(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict:
    assert run(["power", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_without_options_it_prints_the_published_tables_beside_ours(capsys) -> None:
    assert run(["power"]) == 0
    out = capsys.readouterr().out
    assert "72" in out
    assert "221" in out
    report = _json(capsys)
    assert [cell["needed"] for cell in report["cells"][:5]] == [72, 88, 122, 155, 222]
    assert [cell["published"] for cell in report["published"]["cells"][:2]] == [72, 88]


def test_json_has_what_the_terminal_shows(capsys) -> None:
    report = _json(
        capsys, "--for", "paired", "--panel", "0.9,0.6", "--icc", "0.3", "--n", "50",
        "--simulate", "--replications", "50",
    )  # fmt: skip
    cell = report["cells"][0]
    assert {"power_at_n", "detectable", "checked", "design_effect"} <= cell.keys()
    assert cell["checked"]["replications"] == 50
    assert report["published"] is None


@pytest.mark.parametrize("question", ["concordance", "kappa", "retest"])
def test_precision_questions_need_no_panel(question: str, capsys) -> None:
    report = _json(capsys, "--for", question, "--half-width", "0.1", "--icc", "0")
    assert report["panels"] == []
    assert report["cells"][0]["needed"] > 10


def test_the_answer_comes_before_the_table(capsys, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    assert run(["power", "--for", "compare", "--panel", "0.9", "--panel", "0.5"]) == 0
    answer, _, table = capsys.readouterr().out.partition("\n\n")
    ends = re.findall(r"(\d+) to (\d+) with panel A", " ".join(answer.split()))[0]
    sizes = [int(number) for number in ends]
    column = [line.split()[3] for line in table.splitlines() if re.match(r" *0\.\d+ ", line)]
    assert [str(size) for size in sizes] == [column[0], column[-1]]


def test_a_pilot_says_the_next_step(tmp_path, capsys) -> None:
    path = tmp_path / "votes.jsonl"
    lines = [
        {"item": f"q{i}", "judge": judge, "vote": vote}
        for i in range(30)
        for judge, vote in (("x", "AB"[i % 2]), ("y", ["A", "tie", "B"][i % 3]))
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert run(["power", "--from", str(path), "--for", "paired"]) == 0
    assert re.match(r"\d+ more prompts for 80% power", capsys.readouterr().out)
    report = _json(capsys, "--from", str(path), "--for", "paired")
    assert report["needed"] == report["clusters"] + report["more"]
    assert {rate["judge"] for rate in report["judges"]} == {"x", "y"}


def test_a_pilot_of_several_candidates_is_asked_about_two(tmp_path, capsys, monkeypatch) -> None:
    """By default the two with most points, then each pair beside them; a run and its votes alike."""
    monkeypatch.setenv("COLUMNS", "160")
    quickstart = str(Path(__file__).resolve().parents[2] / "datasets" / "quickstart.yaml")
    assert run(["eval", quickstart, "--out", str(tmp_path), "--run-id", "r", "-q"]) == 0
    report = json.loads((tmp_path / "r" / "report.json").read_text())
    best = {row["candidate"] for row in report["leaderboard"][:2]}
    words = ["--for", "paired", "--runs", str(tmp_path), "--from"]
    capsys.readouterr()
    actual_report = _json(capsys, *words, "r")
    assert {actual_report["pair"]["first"], actual_report["pair"]["second"]} == best
    assert len(actual_report["pairs"]) == 6
    assert actual_report["pairs"][0]["needed"] == actual_report["needed"]
    votes = tmp_path / "votes.jsonl"
    assert run(["export", "r", "--out", str(tmp_path), "--votes", "--to", str(votes)]) == 0
    capsys.readouterr()
    by_votes = _json(capsys, *words, str(votes))
    assert (by_votes["pair"], by_votes["pairs"]) == (actual_report["pair"], actual_report["pairs"])
    assert run(["power", *words, "r"]) == 0
    out = capsys.readouterr().out
    assert "the two best; --pair a,b selects two others" in out
    reverse_report = _json(capsys, *words, "r", "--pair", "dahlia,aspen")
    assert reverse_report["next_step"].startswith("dahlia against aspen: ")
    assert reverse_report["pairs"] == []
    assert run(["power", *words, "r", "--pair", "oak,ash"]) == 2
    assert "two of aspen, birch, cedar, dahlia" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--for", "nonsense"], "--for"),
        (["--panel", "half"], "--panel"),
        (["--icc", "1.5"], "--icc"),
        (["--effect", "0"], "effect"),
        (["--from", "nowhere.jsonl", "--for", "kappa"], "--for"),
    ],
)
def test_what_is_wrong_is_named(arguments: list[str], word: str, capsys) -> None:
    assert run(["power", *arguments]) == 2
    assert word in capsys.readouterr().err


def test_a_file_of_rankings_is_a_pilot_of_its_candidates(tmp_path, capsys) -> None:
    path = tmp_path / "ballots.jsonl"
    orders = (["ada", "bob", "eve"], ["ada", ["bob", "eve"]], ["bob", "ada", "eve"])
    with path.open("w") as file:
        for i in range(24):
            for k, judge in enumerate("xy"):
                line = {"item": f"q{i}", "judge": judge, "ranking": orders[(i + k) % 3]}
                file.write(json.dumps(line) + "\n")
    report = _json(capsys, "--for", "paired", "--from", str(path))
    assert report["pair"] == {"first": "ada", "second": "bob"}
    assert (report["clusters"], report["ballots"]) == (24, 48)
    assert report["base"]["estimate"] == pytest.approx(2 / 3)
    assert [pair["pair"]["second"] for pair in report["pairs"]] == ["bob", "eve", "eve"]
