"""A name that becomes a path is a run id, whoever wrote it; nothing leaves the folder of runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clash.cli.app import run
from clash.store import layout
from clash.store.manifest import digest, manifest_text

PROMPTS = """\
- {id: q1, prompt: Which?, responses: {ada: This one., bob: That one is longer.}}
- {id: q2, prompt: And now?, responses: {ada: Again this., bob: No.}}
"""
NO_IDS = ["../x", "../../x", "a/b", "/tmp/x", "..", ".", ".x", "-x", "", "a b", "a\n", "x" * 101]
EVAL = ("eval", "prompts.yaml", "--panel", "baseline", "-q")


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    (tmp_path / "deep" / "er").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "deep" / "er")
    Path("prompts.yaml").write_text(PROMPTS, encoding="utf-8")


def entries(folder: Path) -> set[Path]:
    return set(folder.rglob("*"))


@pytest.mark.parametrize("command", ["report", "explain", "export --csv", "resume", "verify"])
def test_a_manifest_that_names_its_run_as_a_command_is_refused(capsys, command):
    """The page and the next steps hold the name in commands that people paste."""
    assert run([*EVAL, "--run-id", "r"]) == 0
    path = Path("runs/r") / layout.MANIFEST
    record = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**record, "run": "$(touch x)"}), encoding="utf-8")
    name, *options = command.split()
    assert run([name, "r", *options]) in (2, 5)
    assert "'$(touch x)' is not a run id" in "".join(capsys.readouterr())


def test_a_next_step_quotes_the_name_of_a_folder(capsys):
    assert run([*EVAL, "--run-id", "r"]) == 0
    Path("runs/r").rename("runs/$(touch x)")
    capsys.readouterr()
    assert run(["report", "$(touch x)"]) == 0
    output = capsys.readouterr().out
    assert "clash report latest --open" in output or "'$(touch x)'" in output
    assert run([*EVAL, "--run-id", "s"]) == 0
    assert run(["report", "$(touch x)"]) == 0
    assert "clash report '$(touch x)' --open" in capsys.readouterr().out


@pytest.mark.parametrize("name", NO_IDS)
@pytest.mark.parametrize("command", ["eval", "demo", "validate"])
def test_a_run_id_that_is_a_path_is_refused_and_nothing_is_made(capsys, tmp_path, command, name):
    before = entries(tmp_path)
    words = {"eval": EVAL, "demo": ("demo",), "validate": ("validate", "prompts.yaml")}[command]
    assert run([*words, f"--run-id={name}"]) == 2
    assert "is not a run id" in capsys.readouterr().err
    assert entries(tmp_path) == before


@pytest.mark.parametrize("name", ["v1.2_b-3", "Ünï", "x" * 100])
def test_what_is_a_run_id_stays_one(name):
    assert run([*EVAL, "--run-id", name]) == 0
    assert Path("runs", name, layout.MANIFEST).is_file()


def forge(name: str, **fields: object) -> None:
    """A manifest that a stranger wrote, sealed as it should be."""
    path = Path("runs", name, layout.MANIFEST)
    manifest = json.loads(path.read_bytes())
    manifest = {**manifest, **fields}
    path.write_text(manifest_text({**manifest, "seal": digest(manifest)}), encoding="utf-8")


@pytest.mark.parametrize("name", ["../../x", "/tmp/x", "..", "a/../../b"])
def test_a_rerun_of_a_run_that_calls_itself_a_path_is_refused(capsys, tmp_path, name):
    assert run([*EVAL, "--run-id", "r"]) == 0
    forge("r", run=name)
    before = entries(tmp_path)
    capsys.readouterr()
    assert run(["rerun", "r", "--yes"]) == 2
    assert "manifest.json: run: " in capsys.readouterr().err
    assert entries(tmp_path) == before


@pytest.mark.parametrize("name", ["../outside", "..", "../../deep/outside"])
def test_a_parent_that_is_a_path_is_not_read(capsys, name):
    assert run([*EVAL, "--run-id", "r"]) == 0
    assert run(["eval", "prompts.yaml", "--panel", "baseline", "-q", "--out", "."]) == 0
    outside = next(path for path in Path().glob("*/manifest.json") if path.parent.name != "runs")
    outside.parent.rename("outside")
    forge("r", parent=name)
    assert run(["report", "r"]) == 0
    page = Path("runs/r/report.html").read_text(encoding="utf-8")
    assert "is not a run id" in page


# -- the newest run ----------------------------------------------------------------------------


@pytest.mark.parametrize("broken", ["{", '{"v": 99, "run": "zz", "kind": "eval"}', "[" * 9999])
@pytest.mark.parametrize(
    "words",
    [
        ("report", "latest", "--json"),
        ("gate", "latest", "--min", "coverage=0", "--json"),
        ("verify", "latest", "--json"),
        ("aggregate", "latest", "--json"),
        ("compare", "latest", "r", "--json"),
        ("rerun", "latest", "--yes", "--json"),
        ("runs", "--json"),
    ],
)
def test_a_broken_run_is_passed_over_and_named(capsys, words, broken):
    assert run([*EVAL, "--run-id", "r"]) == 0
    Path("runs/zz").mkdir()
    Path("runs/zz", layout.MANIFEST).write_text(broken, encoding="utf-8")
    capsys.readouterr()
    assert run(list(words)) == 0
    output = capsys.readouterr()
    assert json.loads(output.out)
    assert "left out: runs/zz/manifest.json: " in output.err


def test_where_every_run_is_broken_the_message_names_them(capsys):
    Path("runs/zz").mkdir(parents=True)
    Path("runs/zz", layout.MANIFEST).write_text("{", encoding="utf-8")
    assert run(["report", "latest"]) == 2
    message = capsys.readouterr().err
    assert "left out: runs/zz/manifest.json: " in message
    assert f"none of the runs in {Path('runs').resolve()} can be read" in message


RUN_READERS = (
    "report",
    "explain",
    "review",
    "compare latest",
    "choose",
    "gate --min concordance=0.5",
    "verify",
    "seal",
    "export --votes",
    "aggregate",
    "dependence",
    "diagnose",
    "calibrate",
    "audit",
    "power --from",
    "rerun",
    "variance",
    "resume",
    "favouritism",
)


@pytest.mark.parametrize("command", RUN_READERS)
def test_where_no_run_is_the_message_says_where_it_looked_and_how_to_make_one(
    capsys, monkeypatch, tmp_path, command
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.setenv("CLASH_OUT", "elsewhere")
    assert run([*command.split(), "latest"]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith(
        f"error: latest: {tmp_path / 'elsewhere'} holds no run yet\nfix: `clash demo` makes one"
    )


def test_a_name_that_no_run_has_says_that_there_are_no_runs(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert run(["report", "monday"]) == 2
    message = capsys.readouterr().err
    assert "monday: is not a run folder (no manifest.json)" in message
    assert f"fix: {tmp_path / 'runs'} holds no run yet; `clash demo` makes one" in message


# -- criteria of another run ------------------------------------------------------------------------


def reusing(earlier: str) -> None:
    assert run([*EVAL, "--run-id", "old"]) == 0
    assert run([*EVAL, "--run-id", "new", "--criteria-from", earlier]) == 0


@pytest.mark.parametrize("earlier", ["old", "runs/old", "latest"])
def test_criteria_of_an_earlier_run_are_in_the_folder_and_named_by_its_id(earlier):
    reusing(earlier)
    manifest = json.loads(Path("runs/new", layout.MANIFEST).read_bytes())
    assert manifest["config"]["criteria"]["reuse"] == "old"
    # Neither to resume nor to repeat the run takes the earlier one.
    Path("runs/old").rename("elsewhere")
    assert run(["resume", "new", "-q"]) == 0
    assert run(["rerun", "new", "--yes", "-q"]) == 0
    assert run([*EVAL, "--replay", "new", "--run-id", "replayed"]) == 0


def test_a_folder_names_no_other_place_to_read_criteria_from(capsys):
    reusing("old")
    manifest = json.loads(Path("runs/new", layout.MANIFEST).read_bytes())
    config = manifest["config"]
    Path("runs/old").rename("old")
    reuse = {**config["criteria"], "reuse": str(Path("old").absolute())}
    forge("new", config={**config, "criteria": reuse})
    Path("runs/new", layout.CRITERIA).write_bytes(b"")
    capsys.readouterr()
    assert run(["resume", "new", "-q"]) == 2
    assert "runs/old: is not a run folder" in capsys.readouterr().err
