"""A run folder that somebody changed costs a reader a message, whatever command reads it."""

from __future__ import annotations

import shutil

import pytest

from clash.cli.app import run
from hostile import samples

COMMANDS = {
    "verify": [],  # first: `report` writes the report and the seal anew
    "report": [],
    "gate": ["--min", "unanimity=0", "--allow-partial"],
    "aggregate": [],
    "diagnose": [],
    "dependence": [],
    "export": ["--csv", "--to", "-"],
    "query": ["select * from judgments", "--csv"],
}


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    folder = tmp_path_factory.mktemp("honest")
    assert run(["demo", "--out", str(folder), "-q"]) == 0
    return next(folder.glob("*quickstart*"))


@pytest.mark.parametrize("name", samples.SPOILT)
def test_a_spoilt_run_folder_is_an_error_and_never_a_traceback(honest, tmp_path, capsys, name):
    samples.SPOILT[name](shutil.copytree(honest, tmp_path / "run"))
    for command, more in COMMANDS.items():
        capsys.readouterr()
        code = run([command, str(tmp_path / "run"), *more])
        # What a command does not read, it does not miss; only verify reads everything.
        assert code == 5 if command == "verify" else code in (0, 2), (command, code)
        if code == 2:
            assert capsys.readouterr().err.startswith("error: ")


def test_an_error_without_a_run_folder_is_a_bug_and_keeps_its_traceback(monkeypatch):
    def stumble(*_: object, **__: object) -> None:
        raise KeyError("ours")

    monkeypatch.setattr("clash.store.folder.runs", stumble)
    with pytest.raises(KeyError, match="ours"):
        run(["runs", "--out", "."])
