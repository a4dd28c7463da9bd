"""What ``clash aggregate`` prints and writes where candidates are ranked."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from analysis.ranked import ranked_run
from clash.cli.aggregate import aggregate
from clash.errors import ConfigError, InputError
from clash.pipeline.aggregate import MethodChoice
from clash.votes import VoteRow, write_votes

if TYPE_CHECKING:
    from pathlib import Path

app = typer.Typer()
app.command()(aggregate)
runner = CliRunner()

FIGURES = {"accuracy", "balanced_accuracy", "log_loss", "brier", "ece"}
PLACE = {"candidate", "rank", "score", "low", "high", "rank_low", "rank_high", "first"}


@pytest.fixture(scope="module")
def votes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three judges on pairs of four models, the last of which never wins."""
    rng = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("votes") / "votes.jsonl"
    rows = []
    for item in range(90):
        a, b = rng.choice(4, 2, replace=False).tolist()
        for judge in ("j0", "j1", "j2"):
            win = 1 / (1 + np.exp(b and (a - b) * -0.7))
            side = "A" if b == 3 else "B" if a == 3 else "A" if rng.random() > win else "B"
            names = {"model_a": f"m{a}", "model_b": f"m{b}"}
            rows.append(VoteRow(f"q{item}", judge, side, label="A", extra=names))
    write_votes(path, rows)
    return path


def output_of(*words: object) -> dict:
    result = runner.invoke(app, [*map(str, words), "--json"])
    assert result.exit_code == 0, result.exception
    record: dict = json.loads(result.stdout)
    return record


def test_rankings_have_the_keys_of_the_contract_and_their_own(votes: Path) -> None:
    output = output_of(votes, "--method", "rankings", "--bootstrap", "60", "--seed", "5")
    assert {"n_items", "n_judges", "selected", "reason", "methods", "clash"} <= set(output)
    assert (output["n_items"], output["n_judges"], output["rankings"]["seed"]) == (90, 3, 5)
    for name, method in output["methods"].items():
        assert {"status", "converged", *FIGURES} <= set(method)
        assert method["status"] == "ok", name
        assert [set(position) >= PLACE for position in method["ranking"]] == [True] * 4
        assert method["ranking"][-1]["candidate"] == "m3"
        assert method["ranking"][-1]["low"] < method["ranking"][-1]["high"] or name in (
            "copeland",
            "schulze",
            "kemeny",
        )
    fit = output["methods"]["bradley-terry"]
    assert fit["iterations"] > 0
    assert fit["residual"] < 1e-6
    assert fit["separated"]
    wins = np.array(output["rankings"]["pairwise"]["wins"])
    assert wins.shape == (4, 4)
    assert wins.sum() == 270
    assert output["rankings"]["condorcet_winner"] is not None


def test_methods_of_both_kinds_give_both_tables(votes: Path) -> None:
    output = output_of(votes, "--method", "borda,majority,dawid-skene,kemeny", "--bootstrap", "40")
    assert set(output["methods"]) == {"borda", "majority", "dawid-skene", "kemeny"}
    assert output["methods"]["majority"]["accuracy"] is not None
    assert len(output["methods"]["majority"]["ranking"]) == 4
    assert "ranking" not in output["methods"]["dawid-skene"]
    assert output["methods"]["kemeny"]["accuracy"] is None
    # With two sides the Borda count of an item is its majority.
    assert output["methods"]["borda"]["accuracy"] == output["methods"]["majority"]["accuracy"]
    assert output["n_labelled"] == 90


@pytest.mark.parametrize(
    ("method", "items", "rankings"),
    [
        ("majority,dawid-skene", ("majority", "dawid-skene"), ()),
        ("borda", (), ("borda",)),
        ("borda,majority", (), ("borda", "majority")),
        ("weighted-majority", ("weighted-majority",), ()),
        ("weighted,one-coin", ("weighted-majority", "one-coin"), ()),
        ("kemeny,majority", (), ("kemeny", "majority")),
        ("one-coin,borda", ("one-coin", "borda"), ("borda",)),
    ],
)
def test_a_method_stands_where_it_belongs(method: str, items: tuple, rankings: tuple) -> None:
    assert MethodChoice.parse(method) == MethodChoice(items, rankings)


def test_votes_that_name_nobody_have_verdicts_and_a_reason(tmp_path: Path) -> None:
    path = tmp_path / "v.jsonl"
    rng = np.random.default_rng(0)
    rows = [VoteRow(f"q{i}", f"j{j}", int(rng.random() < 0.7)) for i in range(60) for j in range(4)]
    write_votes(path, rows)
    output = output_of(path, "--method", "borda,one-coin,bradley-terry")
    assert output["methods"]["bradley-terry"]["status"] == "refused"
    assert "name no candidates" in output["methods"]["bradley-terry"]["notes"][0]
    assert output["methods"]["borda"]["status"] == "ok"
    assert "rankings" not in output
    assert set(output_of(path, "--method", "borda")["methods"]) == {"borda", "majority"}
    result = runner.invoke(app, [str(path), "--method", "bradley-terry"])
    assert isinstance(result.exception, InputError)
    assert "model_a" in str(result.exception)


def test_a_line_for_each_method_and_candidate_is_written(votes: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    words = [str(votes), "--method", "borda,one-coin", "--bootstrap", "20", "--out", str(out)]
    assert runner.invoke(app, words).exit_code == 0
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    candidate_lines = [line for line in lines if "candidate" in line]
    assert {line["method"] for line in candidate_lines} == {"borda"}
    assert [line["rank"] for line in candidate_lines] == [1, 2, 3, 4]
    assert {line["method"] for line in lines if "item" in line} == {"borda", "one-coin", "majority"}


def test_terminal_shows_places_head_to_head_scores_and_reasons(votes: Path) -> None:
    words = [str(votes), "--method", "borda,bradley-terry", "--bootstrap", "40"]
    result = runner.invoke(app, [*words, "-v"], env={"COLUMNS": "120"})
    text = result.stdout
    parts = ["is first by all 2 methods", "head to head", "prior of half a game"]
    parts += ["4 candidates, 90 of 90 items", "seed 42", "Head to head", "borda: mean share"]
    parts += ["bradley-terry: log strength", "converged in"]
    places = [text.index(part) for part in parts]
    assert places == sorted(places)
    assert result.stderr == ""
    assert "borda: mean share" not in runner.invoke(app, words).stdout


def test_weights_of_a_file_reach_verdicts_and_rankings(votes: Path, tmp_path: Path) -> None:
    weights = tmp_path / "w.json"
    weights.write_text('{"j0": 1, "j1": 0, "j2": 0}')
    words = [votes, "--weights", weights, "--bootstrap", "0"]
    output = output_of(*words, "--method", "weighted-majority,one-coin,borda")
    alone = output_of(votes, "--judges", "j0", "--method", "borda", "--bootstrap", "0")
    assert output["methods"]["borda"]["ranking"] == alone["methods"]["borda"]["ranking"]
    assert output["rankings"]["weights"] == {"j0": 1, "j1": 0, "j2": 0}
    first = output_of(votes, "--judges", "j0", "--method", "majority")["methods"]["majority"]
    assert output["methods"]["weighted-majority"]["accuracy"] == first["accuracy"]


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (["--method", "kemeny", "--ties", "missing"], "--ties"),
        (["--method", "kemeny", "--use-labels"], "--use-labels"),
        (["--method", "kemeny", "--threshold", "2"], "--threshold"),
        (["--method", "majority", "--bootstrap", "30"], "--bootstrap"),
        (["--method", "majority", "--weights", "equal"], "--weights"),
        (["--method", "borda", "--weights", "nowhere.json"], "--weights"),
        (["--method", "borda", "--copies", "some"], "--copies"),
        (["--method", "kemeny", "--ridge", "0.1"], "--ridge"),
        (["--method", "majority", "--ridge", "0.1"], "--ridge"),
        (["--method", "ising-shared", "--ridge", "soft"], "--ridge"),
        (["--method", "borda,elo"], "--method"),
        (["--method", " , "], "--method"),
    ],
)
def test_what_would_do_nothing_or_is_unknown_is_refused(
    votes: Path, words: list[str], field: str
) -> None:
    result = runner.invoke(app, [str(votes), *words])
    assert isinstance(result.exception, ConfigError)
    assert result.exception.field == field


def test_a_run_is_ranked_by_its_panels_weights_and_named_in_json(tmp_path: Path) -> None:
    folder = ranked_run(tmp_path)
    words = ["r", "--runs", tmp_path, "--method", "borda,majority,one-coin", "--bootstrap", "20"]
    output = output_of(*words)
    assert output["run"] == str(folder.path)
    assert output["rankings"]["weights"] == {"j1": 2, "j2": 1}
    assert output["rankings"]["absent"] == ["never"]
    assert output["methods"]["one-coin"]["status"] == "refused"
    assert output_of(*words, "--judges", "j1")["rankings"]["n_ballots"] == 3
    sides = {}
    for weights in ("panel", "equal"):
        out = tmp_path / f"{weights}.jsonl"
        output_of(*words[:4], "weighted-majority", "--weights", weights, "--out", out)
        lines = [json.loads(line) for line in out.read_text().splitlines()]
        sides[weights] = next(x["winner"] for x in lines if x["item"] == "q1#a|b")
    # j1, of weight 2, puts a first; j2 puts b first.
    assert sides == {"panel": "A", "equal": "tie"}
    result = runner.invoke(app, [*map(str, words), "--presentation", "orig"])
    assert isinstance(result.exception, ConfigError)
    assert result.exception.field == "--presentation"


def test_ties_as_outcomes_and_refused_rankings_stand_beside_each_other(tmp_path: Path) -> None:
    path = tmp_path / "v.jsonl"
    rows = [VoteRow(f"q{i}", f"j{j}", "AB"[(i + j) % 2]) for i in range(30) for j in range(3)]
    write_votes(path, [*rows, VoteRow("q99", "j0", "tie")])
    words = [str(path), "--method", "majority,schulze,one-coin", "--ties", "outcome"]
    result = runner.invoke(app, words, env={"COLUMNS": "120"})
    assert result.exit_code == 0
    assert "one-coin refused: a two-sided model" in " ".join(result.stdout.split())
    assert "warning: schulze refused: the votes name no candidates" in result.stdout
    weighted_output = output_of(
        path, "--method", "weighted-majority", "--weights", "discrimination"
    )
    assert weighted_output["methods"]["weighted-majority"]["status"] == "ok"


def test_a_ranking_that_is_refused_is_not_the_one_to_use(tmp_path: Path) -> None:
    path = tmp_path / "v.jsonl"
    rows = [
        VoteRow(f"q{i}", "j", "A", extra={"model_a": f"m{i:02}", "model_b": f"m{i + 1:02}"})
        for i in range(17)
    ]
    write_votes(path, rows)
    output = output_of(path, "--method", "kemeny,borda", "--bootstrap", "10")
    assert output["methods"]["kemeny"]["status"] == "refused"
    assert output["methods"]["kemeny"]["converged"] is None
    assert output["selected"] == "borda"
    alone = output_of(path, "--method", "kemeny")
    assert alone["selected"] is None
    assert "16 candidates" in alone["methods"]["kemeny"]["notes"][0]


def test_quiet_is_the_first_sentence_alone(votes: Path) -> None:
    full_output = runner.invoke(app, [str(votes), "--method", "majority,dawid-skene"]).stdout
    line = runner.invoke(app, [str(votes), "--method", "majority,dawid-skene", "-q"]).stdout
    assert line.startswith("The majority is right on ")
    assert line.count("\n") == 1
    assert " ".join(line.split()) in " ".join(full_output.split())


def test_the_answer_comes_first_and_the_details_with_verbose(votes: Path) -> None:
    words = [str(votes), "--method", "majority,dawid-skene,ising-class"]
    text = runner.invoke(app, words, env={"COLUMNS": "80"}).stdout
    answer, _, table = text.partition("\n\n")
    assert re.match(r"The majority is right on \d+% \[\d+, \d+\]", answer)
    assert "Use majority: named first on the command line." in answer
    # A refused method has no row, and one line says why.
    assert [line.split()[0] for line in table.splitlines()[3:5]] == ["majority", "dawid-skene"]
    assert "ising-class refused: " in table
    whole_text = runner.invoke(app, [*words, "-v"], env={"COLUMNS": "120"}).stdout
    assert whole_text.startswith(answer.split("]")[0])
    assert "balanced" in whole_text
    assert "balanced" not in text


def test_a_gain_is_told_from_one_that_is_not_significant(tmp_path: Path) -> None:
    """Of three judges one is always right; then one that is right a little more often."""
    path, answers = tmp_path / "v.jsonl", []
    for n_apart in (60, 2):
        rows = [
            VoteRow(f"q{i}", f"j{j}", label if j == 0 or i >= n_apart else "BA"[i % 2], label=label)
            for i in range(100)
            for label in "AB"[i % 2]
            for j in range(3)
        ]
        write_votes(path, rows)
        words = [str(path), "--method", "weighted-majority,majority", "--weights"]
        (tmp_path / "w.json").write_text('{"j0": 5, "j1": 1, "j2": 1}')
        text = runner.invoke(app, [*words, str(tmp_path / "w.json")]).stdout
        answers.append(" ".join(text.split()))
    assert "is right on 100% [96, 100] of 100 labelled items, the majority on 40%" in answers[0]
    assert "The difference is +60.0" in answers[0]
    assert "The difference is not significant: +2.0" in answers[1]


def test_auto_alone_may_select_a_model_that_was_not_named(tmp_path: Path) -> None:
    path, rng = tmp_path / "v.jsonl", np.random.default_rng(1)
    sides = rng.integers(0, 2, 300).tolist()
    rows = [
        VoteRow(f"q{i}", f"j{j}", side if rng.random() < share else 1 - side, label=side)
        for i, side in enumerate(sides)
        for j, share in enumerate((0.95, 0.9, 0.6, 0.55, 0.5))
    ]
    write_votes(path, rows)
    words = [path, "--method", "auto", "--no-labels"]
    output = output_of(*words)
    assert output["selected"] == "one-coin"
    assert set(output["methods"]) == {"auto", "majority"}
    text = runner.invoke(app, [*map(str, words)]).stdout
    assert text.startswith("auto is right on ")
    assert "Use one-coin: no model of dependence" in text


def test_without_labels_the_answer_is_the_advice_and_how_it_decides(tmp_path: Path) -> None:
    path = tmp_path / "v.jsonl"
    write_votes(
        path, [VoteRow(f"q{i}", f"j{j}", "ABA"[i % 3]) for i in range(30) for j in range(3)]
    )
    text = runner.invoke(app, [str(path), "--method", "majority"]).stdout
    assert text.startswith("Use majority: named first on the command line.\n")
    assert "Its verdicts: 20 for A, 10 for B." in text


def test_the_accuracy_of_a_method_has_an_interval(votes: Path) -> None:
    for method in output_of(votes, "--method", "majority,dawid-skene")["methods"].values():
        interval = method["accuracy_interval"]
        assert 0 <= interval["low"] < method["accuracy"] < interval["high"] <= 1


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three judges, a label on the first 12 of 80 items."""
    rng = np.random.default_rng(1)
    path = tmp_path_factory.mktemp("few") / "votes.jsonl"
    rows = []
    for item in range(80):
        truth = int(rng.integers(0, 2))
        for j in range(3):
            vote = truth if rng.random() < 0.75 else 1 - truth
            rows.append(VoteRow(f"q{item}", f"j{j}", vote, truth if item < 12 else None))
    write_votes(path, rows)
    return path


def test_the_range_of_votes_names_unlabelled_items_for_a_review(few: Path, tmp_path: Path) -> None:
    out = tmp_path / "next.txt"
    printed_range = output_of(few, "--method", "majority", "--range", "--out", out)["range"]
    assert printed_range["n_labels"] == 12
    assert out.read_text().split() == printed_range["label_next"]
    assert len(printed_range["label_next"]) == 20
    assert not set(printed_range["label_next"]) & {f"q{item}" for item in range(12)}
    assert 0 <= printed_range["majority"]["low"] <= printed_range["majority"]["high"] <= 1
    assert set(printed_range["judges"]) == {"j0", "j1", "j2"}
    assert all(0 < low <= high < 1 for low, high in printed_range["items"].values())
    without = output_of(few, "--method", "majority", "--range", "--no-labels")["range"]
    assert without["n_labels"] == 0


def test_a_list_of_items_needs_a_range(few: Path, tmp_path: Path) -> None:
    result = runner.invoke(
        app, [str(few), "--method", "majority", "--out", str(tmp_path / "n.txt")]
    )
    assert isinstance(result.exception, ConfigError)
    assert "add --range" in str(result.exception)
