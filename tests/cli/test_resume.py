"""`clash resume` of a run that is complete reads its seals, and no more."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from clash.cli.app import run as clash
from clash.pipeline import execute
from clash.store import layout

PROMPTS = "".join(
    json.dumps(
        {"id": f"q{i}", "prompt": f"Say {i}.", "responses": {"a": f"It is {i}.", "b": "No."}}
    )
    + "\n"
    for i in range(3)
)


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.jsonl").write_text(PROMPTS)
    assert clash(["eval", "p.jsonl", "--panel", "baseline", "-q", "--yes", "--run-id", "r"]) == 0
    capsys.readouterr()
    return tmp_path / "runs" / "r"


def seal_again(run, name, text):
    from clash.store.folder import RunFolder
    from clash.store.manifest import seals_of

    (run / name).write_text(text)
    with RunFolder(run).write() as writer:
        manifest = writer.manifest()
        files = {**manifest.files, **seals_of(run, [name])}
        writer.save(manifest.model_copy(update={"files": files}).with_seal())


def test_ctrl_c_while_the_report_is_computed_says_how_to_go_on(run, capsys, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    words = ["eval", "p.jsonl", "--panel", "baseline", "-q", "--yes", "--run-id", "s"]
    with monkeypatch.context() as patch:
        patch.setattr(execute, "finish", interrupt)
        assert clash(words) == 130
    assert f"`clash resume {Path('runs/s')}` goes on" in capsys.readouterr().err
    assert clash(["resume", "s"]) == 0


def test_a_complete_run_is_left_as_it_is(run, capsys):
    before = {path.name: path.read_bytes() for path in run.iterdir()}
    assert clash(["resume", "r"]) == 0
    output = capsys.readouterr()
    assert "nothing to ask" in output.err
    assert "clash report latest" in output.out
    assert {path.name: path.read_bytes() for path in run.iterdir()} == before


@pytest.mark.parametrize(
    ("how", "answer"),
    [([], "clash report latest"), (["-q"], "a leads b"), (["--json"], '"winner": "a"')],
)
def test_a_headline_that_somebody_wrote_and_sealed_is_never_shown(run, capsys, how, answer):
    report = json.loads((run / layout.REPORT_JSON).read_text())
    report["headline"] |= {"text": "b is the better one", "evidence": "trust me"}
    report["decision"] |= {"winner": "b", "headline": "b is the better one"}
    seal_again(run, layout.REPORT_JSON, json.dumps(report))
    assert clash(["resume", "r", *how]) == 0
    output = capsys.readouterr().out
    assert "better one" not in output
    assert "trust me" not in output
    assert answer in output


@pytest.mark.parametrize("name", [layout.JUDGMENTS, layout.REPORT_MD])
@pytest.mark.parametrize("is_gone", [True, False])
def test_a_change_since_the_seal_is_told_and_mended(run, capsys, name, is_gone):
    full_data = (run / name).read_bytes()
    (run / name).unlink()
    if not is_gone:
        (run / name).write_bytes(full_data[: full_data.index(b"\n") + 1])
    assert clash(["resume", "r"]) == 0
    assert name in capsys.readouterr().err
    assert len((run / name).read_bytes().splitlines()) == len(full_data.splitlines())


def test_a_sealed_report_of_another_shape_is_computed_again(run, capsys):
    seal_again(run, layout.REPORT_JSON, '{"coverage": 3}')
    assert clash(["resume", "r"]) == 0
    assert "coverage" in json.loads((run / layout.REPORT_JSON).read_text())
    assert "a leads b" in capsys.readouterr().out


def test_a_run_of_which_a_file_is_not_sealed_is_worked_through(run, capsys):
    """Else whoever writes a seal that leaves judgments out has the report read as it stands."""
    from clash.store.folder import RunFolder

    with RunFolder(run).write() as writer:
        manifest = writer.manifest()
        files = {name: seal for name, seal in manifest.files.items() if name != layout.JUDGMENTS}
        writer.save(manifest.model_copy(update={"files": files}).with_seal())
    assert clash(["resume", "r"]) == 0
    assert "nothing to ask" not in capsys.readouterr().err
    assert layout.JUDGMENTS in RunFolder(run).manifest().files


DYING = """
import os, sys
from clash.cli.app import run
from clash.store.journal import Journal

write, pages = Journal._write, []

def dying(journal, data):
    if journal.path.name == "judgments.jsonl":
        pages.append(data)
        if len(pages) == 2:
            os._exit(9)
    write(journal, data)

Journal._write = dying
run(sys.argv[1:])
"""


def test_a_kill_between_the_calls_and_the_judgments_of_a_page_of_rules_loses_and_doubles_nothing(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.jsonl").write_text(PROMPTS)
    words = ["eval", "p.jsonl", "--panel", "baseline", "-q", "--yes", "--run-id", "r"]
    assert subprocess.run([sys.executable, "-c", DYING, *words], check=False).returncode == 9
    run = tmp_path / "runs" / "r"
    before = (run / layout.CALLS).read_bytes()
    n_judges = len((run / layout.JUDGMENTS).read_bytes().splitlines())
    assert before.count(b"\n") == 2 * n_judges
    assert clash(["resume", "r", "-q"]) == 0
    after = (run / layout.CALLS).read_bytes()
    assert after.startswith(before)
    for text in (after, (run / layout.JUDGMENTS).read_bytes()):
        assert text.count(b"\n") == 3 * n_judges
    assert clash(["verify", "r"]) == 0, capsys.readouterr()
