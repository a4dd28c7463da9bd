"""What ``clash dependence`` prints and writes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from clash.cli.dependence import dependence
from clash.errors import ConfigError, InputError, NotIdentifiedError

if TYPE_CHECKING:
    from pathlib import Path

app = typer.Typer()
app.command()(dependence)
runner = CliRunner()


@pytest.fixture(scope="module")
def votes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four judges, two of them copies that differ now and then, and one that failed once."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 200)
    first = np.where(rng.random(200) < 0.75, labels, 1 - labels)
    copy = np.where(rng.random(200) < 0.95, first, 1 - first)
    own_indices = [np.where(rng.random(200) < 0.8, labels, 1 - labels) for _ in range(2)]
    path = tmp_path_factory.mktemp("votes") / "votes.jsonl"
    with path.open("w") as file:
        for i in range(200):
            for judge, column in zip(
                ("a#0", "a#1", "b", "c"), (first, copy, *own_indices), strict=True
            ):
                line = {"item": f"q{i}", "judge": judge, "vote": int(column[i])}
                line |= {"label": int(labels[i]), "family": judge[0]}
                file.write(json.dumps(line) + "\n")
    return path


def test_terminal_says_what_follows_first(votes: Path) -> None:
    """The answer, what to beware of, what it is about, then tables; nothing on stderr."""
    result = runner.invoke(
        app, [str(votes), "--no-labels", "--bootstrap", "40", "-v"], env={"COLUMNS": "120"}
    )
    assert result.exit_code == 0
    text = result.stdout
    parts = [
        "4 judges are worth at most",
        "note: The truth is estimated",
        "4 judges, 200 rows",
        "What each judge adds",
        "Hypotheses",
    ]
    places = [text.index(part) for part in [*parts, "Models"]]
    assert places == sorted(places)
    assert result.stderr == ""


def test_json_is_one_object_with_all_the_terminal_shows(votes: Path) -> None:
    arguments = [str(votes), "--bootstrap", "40", "--seed", "3", "--json"]
    record = json.loads(runner.invoke(app, arguments).stdout)
    assert record["clash"]
    assert record["seed"] == 3
    assert record["truth"]["method"] == "labels"
    assert record["effective"]["by_mean"]["low"] < record["effective"]["by_mean"]["high"]
    assert np.shape(record["correlations"]) == (4, 4)
    assert np.shape(record["couplings_by_class"]) == (2, 4, 4)
    assert len(record["pairs"]) == 6
    assert record["blocs"][0]["judges"] == ["a#0", "a#1"]
    assert {test["name"] for test in record["tests"]} >= {"independence", "family independence"}
    assert record["conclusions"]


def test_plots_are_written_and_named(votes: Path, tmp_path: Path) -> None:
    arguments = [str(votes), "--bootstrap", "20", "--plots", str(tmp_path)]
    result = runner.invoke(app, arguments)
    names = {
        "residual-correlations.svg",
        "residual-correlations.png",
        "couplings.svg",
        "couplings.png",
    }
    assert {path.name for path in tmp_path.iterdir()} == names
    output = result.stdout.replace("\n", "")
    assert all(name in output for name in names)
    assert "a#0" in (tmp_path / "couplings.svg").read_text()


def test_judges_are_chosen_by_name(votes: Path) -> None:
    arguments = [str(votes), "--judges", "a#0,b,c", "--no-labels", "--bootstrap", "20", "--json"]
    record = json.loads(runner.invoke(app, arguments).stdout)
    assert record["panel"]["judges"] == ["a#0", "b", "c"]
    assert record["truth"]["method"] == "dawid-skene"


def test_verbose_shows_every_pair(votes: Path) -> None:
    arguments = [str(votes), "--judges", "a*,b", "--bootstrap", "20", "--verbose"]
    text = runner.invoke(app, arguments, env={"COLUMNS": "140"}).stdout
    assert "\nPairs\n" in text


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        (["--judges", "a#0,b", "--no-labels"], NotIdentifiedError, "third judge"),
        (["--judges", "nobody"], InputError, "there is: a#0, a#1, b, c"),
        (["--method", "magic"], ConfigError, "one of auto"),
    ],
)
def test_what_cannot_be_done_says_what_can(
    votes: Path, arguments: list[str], error: type[Exception], says: str
) -> None:
    result = runner.invoke(app, [str(votes), *arguments])
    assert isinstance(result.exception, error)
    assert says in str(result.exception)


def test_the_short_screen_has_no_hypotheses(votes: Path) -> None:
    text = runner.invoke(app, [str(votes), "--bootstrap", "20"], env={"COLUMNS": "80"}).stdout
    assert "4 judges are worth" in text.partition("\n\n")[0]
    assert "Hypotheses" not in text
    assert len(text.splitlines()) < 60


def test_votes_that_all_say_the_same_are_refused_with_a_fix(tmp_path: Path) -> None:
    path = tmp_path / "v.jsonl"
    lines = [{"item": f"q{i}", "judge": f"j{j}", "vote": "A"} for i in range(30) for j in range(3)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    refusal = str(runner.invoke(app, [str(path)]).exception)
    assert refusal.startswith("the truth cannot be estimated from these votes: dawid-skene needs 3")
    assert "fix: label some items" in refusal


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_judges_that_only_tie_have_no_accuracy(tmp_path: Path) -> None:
    path = tmp_path / "v.jsonl"
    lines = [
        {"item": f"q{i}", "judge": f"j{j}", "vote": "tie" if i == 0 else None, "label": "A"}
        for i in range(5)
        for j in range(3)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    result = runner.invoke(app, [str(path), "--bootstrap", "20"])
    assert result.exception is None
    assert "is unknown" in result.stdout.partition("\n\n")[0]
