"""Shells complete commands, options, run ids, panels, data sets and methods."""

from __future__ import annotations

import pytest

from clash.cli.app import app, run


def completions(monkeypatch, capsys, words, shell="bash"):
    """What the shell's own script would be told for a line that ends in the last of ``words``."""
    line = ["clash", *words]
    monkeypatch.setenv("_CLASH_COMPLETE", f"complete_{shell}")
    monkeypatch.setenv("COMP_WORDS", " ".join(line))
    monkeypatch.setenv("COMP_CWORD", str(len(line) - 1))
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", " ".join(line))
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
    with pytest.raises(SystemExit):
        app([], prog_name="clash")
    return capsys.readouterr().out


@pytest.fixture
def runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(["demo", "--run-id", "monday", "-q"]) == 0
    (tmp_path / "runs" / "no-run").mkdir()
    return tmp_path


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_script_that_asks_clash(monkeypatch, capsys, shell):
    monkeypatch.setenv("_CLASH_COMPLETE", f"source_{shell}")
    with pytest.raises(SystemExit):
        app([], prog_name="clash")
    assert f"_CLASH_COMPLETE=complete_{shell}" in capsys.readouterr().out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("ver",), "verify"),
        (("eval", "--pan"), "--panel"),
        (("eval", "--panel", "supr"), "supreme-court"),
        (("validate", "mt-"), "mt-bench"),
        (("aggregate", "votes.csv", "--method", "borda,daw"), "borda,dawid-skene"),
    ],
)
def test_names_are_completed(monkeypatch, capsys, shell, words, name):
    assert name in completions(monkeypatch, capsys, words, shell)


def test_runs_are_completed_and_other_folders_are_not(runs, monkeypatch, capsys):
    capsys.readouterr()
    assert completions(monkeypatch, capsys, ("report", "")).split() == ["latest", "monday"]
    assert completions(monkeypatch, capsys, ("report", "mo")).split() == ["monday"]
