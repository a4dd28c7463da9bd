"""What ``clash simulate`` prints and writes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import typer
from typer.testing import CliRunner

from clash.analysis.tasks import is_spread, on_processes, run_by, run_tasks
from clash.cli.simulate import simulate
from clash.errors import ConfigError
from clash.reproduction.simulations import EXPERIMENTS

if TYPE_CHECKING:
    from pathlib import Path

app = typer.Typer()
app.command()(simulate)
runner = CliRunner()


def test_a_simulation_without_figures_of_a_paper_says_what_it_is() -> None:
    result = runner.invoke(app, ["sweep", "--replications", "2"], env={"COLUMNS": "160"})
    assert result.exit_code == 0
    assert result.stdout.startswith(
        "Test accuracy without labels, by training items and by judges."
    )


def test_list_names_every_simulation() -> None:
    result = runner.invoke(app, ["--list"])
    assert result.exit_code == 0
    for name in ("three-judges", "independent", "curie-weiss", "latent-factor", "weak-factor"):
        assert name in result.stdout


def test_terminal_shows_ours_beside_the_papers() -> None:
    result = runner.invoke(app, ["three-judges"], env={"COLUMNS": "160"})
    assert result.exit_code == 0
    row = next(line for line in result.stdout.splitlines() if "Bayes at votes (0, 1, 1)" in line)
    assert row.count("0.0384") == 2
    assert "agrees" in row
    answer = result.stdout.splitlines()[0]
    assert answer == f"{result.stdout.count(' agrees')} of the paper's 8 figures reproduced."


def test_json_is_one_object_with_everything() -> None:
    result = runner.invoke(app, ["weak-factor", "--json", "--seed", "5"])
    record = json.loads(result.stdout)
    (simulation,) = record["simulations"]
    assert record["clash"]
    assert simulation["seed"] == 5
    assert simulation["rows"][1]["standing"] == "agrees"
    assert simulation["findings"]


def test_out_writes_figures_and_json(tmp_path: Path) -> None:
    """SVG and PNG of each plot and the JSON, each named on the terminal."""
    result = runner.invoke(app, ["curie-weiss", "--replications", "2", "--out", str(tmp_path)])
    assert result.exit_code == 0
    names = {path.name for path in tmp_path.iterdir()}
    stems = ("curie-weiss-risk", "curie-weiss-separation")
    assert names == {f"{s}.{e}" for s in stems for e in ("svg", "png")} | {"simulations.json"}
    assert (tmp_path / "curie-weiss-risk.svg").read_text().lstrip().startswith("<?xml")
    assert (tmp_path / "curie-weiss-risk.png").read_bytes().startswith(b"\x89PNG")
    output = result.stdout.replace("\n", "")
    assert all(name in output for name in names)


def test_plots_are_the_figures_alone_and_json_has_the_map(tmp_path: Path) -> None:
    words = ["regime-map", "--replications", "2", "--plots", str(tmp_path), "--json"]
    record = json.loads(runner.invoke(app, words).stdout)
    assert {path.name for path in tmp_path.iterdir()} == {"regime-map.svg", "regime-map.png"}
    assert len(record["written"]) == 2
    (risk_map,) = record["simulations"][0]["maps"]
    cells = {(cell["k"], cell["labels"]): cell for cell in risk_map["maps"]["parity"]}
    assert cells[6, 2048]["winner"] == "joint-table"
    assert "TABLE" in (tmp_path / "regime-map.svg").read_text()


def test_semi_real_reads_the_votes_it_is_given(tmp_path: Path) -> None:
    """And says so where there are none; other simulations take none."""
    file = tmp_path / "v.jsonl"
    with file.open("w") as out:
        for item in range(60):
            for judge in range(4):
                vote = "AB"[(item >> judge) % 2]
                out.write(json.dumps({"item": str(item), "judge": f"j{judge}", "vote": vote}))
                out.write("\n")
    words = ["semi-real", "--votes", str(file), "--replications", "2", "--json"]
    (simulation,) = json.loads(runner.invoke(app, words).stdout)["simulations"]
    assert "v.jsonl (60 rows, 16 patterns)" in simulation["setting"]["patterns"]
    for words in (["semi-real"], ["three-judges", "--votes", str(file)]):
        result = runner.invoke(app, words)
        assert isinstance(result.exception, ConfigError)
        assert result.exception.field == "--votes"


@pytest.mark.parametrize("arguments", [[], ["nothing"]])
def test_an_unknown_name_says_which_there_are(arguments: list[str]) -> None:
    result = runner.invoke(app, arguments)
    assert isinstance(result.exception, ConfigError)
    assert "three-judges" in str(result.exception)


class _SpreadError(Exception):
    """A task was handed out."""


def _hand_out(*_: object) -> None:
    raise _SpreadError


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_ray_is_refused_where_nothing_is_handed_out(name: str) -> None:
    """What says that it spreads hands its first task out; what says that it does not, none."""
    experiment = EXPERIMENTS[name]
    with run_by(_hand_out):  # type: ignore[arg-type]
        if experiment.spreads:
            with pytest.raises(_SpreadError):
                experiment.run(0, 2)
            return
        experiment.run(0, 2)
    refusal = runner.invoke(app, [name, "--ray", "local"]).exception
    assert isinstance(refusal, ConfigError)
    assert f"{name} is exact" in str(refusal)


def test_tasks_on_two_processes_are_those_of_one() -> None:
    alone = list(run_tasks(pow, 3, [1, 2, 3]))
    with on_processes(2):
        assert is_spread()
        assert list(run_tasks(pow, 3, [1, 2, 3])) == alone == [3, 9, 27]
    assert not is_spread()


def test_a_cluster_has_its_own_processes() -> None:
    result = runner.invoke(app, ["designs", "--jobs", "2", "--ray", "local"])
    assert isinstance(result.exception, ConfigError)
    assert result.exception.field == "--jobs"
