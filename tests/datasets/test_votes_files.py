"""The votes that ship with clash are found by name anywhere, and show what they are said to show."""

from __future__ import annotations

import gzip
import json

import pytest

import clash
from clash import assets
from clash.cli.app import run
from clash.datasets.votes_files import votes_files, votes_path

NAMES = ("mt-bench-panel", "arena-panel", "wrong-majority", "near-copies")
KEYS = {"item", "judge", "vote", "label", "family", "subset", "group", "presentation"}


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def accuracy(name, judges=None):
    fields = clash.aggregate(name, method="majority", judges=judges).to_dict()
    return fields["methods"]["majority"]["accuracy"]


def test_each_file_is_small_attributed_and_holds_no_text():
    assert tuple(votes_files()) == NAMES
    readme = assets.path("datasets", "README.md").read_text(encoding="utf-8")
    for name, record in votes_files().items():
        path = votes_path(name)
        assert path.stat().st_size < 150_000
        assert record.command in readme
        assert record.source in readme
        assert record.commit[:7] in readme
        assert name in record.command
        rows = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
        assert {key for row in rows for key in row} <= KEYS | {"model_a", "model_b"}
        assert max(len(str(value)) for row in rows for value in row.values()) < 40


@pytest.mark.parametrize(
    ("name", "items", "judges"),
    [
        ("mt-bench-panel", 99, 3),
        ("arena-panel", 100, 3),
        ("wrong-majority", 256, 6),
        ("near-copies", 593, 12),
    ],
)
def test_a_name_is_read_by_the_library_wherever_one_is(name, items, judges):
    votes = clash.read_votes(name)
    assert votes.matrix.shape == (items, judges)
    assert votes.labelled.all()


def test_they_show_what_the_readme_says():
    assert accuracy("mt-bench-panel") == pytest.approx(0.889, abs=0.0005)
    assert accuracy("arena-panel") == pytest.approx(0.76)
    assert accuracy("wrong-majority") == pytest.approx(0.396, abs=0.0005)
    one_copy = "gpt-5.4-nano#1,gpt-5.4,gpt-5.4-mini,claude-*"
    assert accuracy("near-copies") < accuracy("near-copies", judges=one_copy) - 0.01


@pytest.mark.parametrize(
    "command",
    [
        ["aggregate", "mt-bench-panel", "--method", "majority"],
        ["diagnose", "arena-panel"],
        ["power", "--from", "arena-panel"],
        ["dependence", "mt-bench-panel", "--bootstrap", "20"],
    ],
)
def test_a_name_is_read_by_every_command_on_votes(command, capsys):
    assert run([*command, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["clash"] == clash.__version__


def test_a_misspelt_name_is_answered_with_the_nearest(capsys):
    assert run(["aggregate", "near_copies"]) == 2
    assert 'did you mean "near-copies"?' in capsys.readouterr().err


def test_a_file_of_the_same_name_comes_first_and_is_named(tmp_path, capsys):
    rows = [
        {"item": f"q{i}", "judge": judge, "vote": "A", "label": "A"}
        for i in range(3)
        for judge in "xy"
    ]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "near-copies").write_text(text, encoding="utf-8")
    assert run(["aggregate", "near-copies", "--method", "majority", "--json"]) == 0
    output = capsys.readouterr()
    assert json.loads(output.out)["n_items"] == 3
    assert "reads near-copies, not the votes of this name that ship with clash" in output.err


def test_the_list_shows_them_with_their_licences(capsys):
    assert run(["datasets", "list", "--json"]) == 0
    listing = json.loads(capsys.readouterr().out)["votes"]
    assert [record["name"] for record in listing] == list(NAMES)
    assert all(record["licence"] and record["citation"] for record in listing)
