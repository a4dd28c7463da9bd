"""A full disk, a folder that cannot be written, a stream that takes no more, another encoding:
a message and exit code 2, never a traceback; and the run goes on once there is room."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from clash.cli.app import run as clash

pytestmark = pytest.mark.skipif(os.name == "nt", reason="limits and devices of POSIX")

PROMPTS = """\
- {id: q1, prompt: Wähle 🎲, responses: {"ada→🎲": Это первый., bob: That one is longer.}, label: bob}
- {id: q2, prompt: And now?, responses: {"ada→🎲": Again this., bob: No.}, label: tie}
"""


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory) -> Path:
    base = tmp_path_factory.mktemp("finished")
    (base / "prompts.yaml").write_text(PROMPTS, encoding="utf-8")
    words = ("eval", base / "prompts.yaml", "--panel", "baseline", "--out", base / "runs", "-q")
    assert clash([*map(str, words), "--run-id", "r"]) == 0
    return base


@pytest.fixture(autouse=True)
def _here(finished_run, tmp_path, monkeypatch):
    shutil.copytree(finished_run, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)


def process(
    *words: str,
    room: int | None = None,
    program: tuple[str, ...] = ("-m", "clash"),
    **more: Any,
) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, where no file may grow beyond ``room`` bytes."""
    import resource

    def limit() -> None:
        if room is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))

    more.setdefault("stdout", subprocess.PIPE)
    environ = {**os.environ, **more.pop("env", {})}
    result = subprocess.run(
        [sys.executable, *program, *words],
        stderr=subprocess.PIPE,
        encoding="latin-1",
        preexec_fn=limit,
        env=environ,
        timeout=240,
        **more,
    )
    assert "Traceback" not in result.stderr, result.stderr
    return result


IN_TURN = """
import sys
from clash.cli import main
for line in sys.argv[1:]:
    sys.argv[1:] = line.split()
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise
"""
"""Command lines one after the other in one process."""


@pytest.mark.parametrize("encoding", ["latin-1", "ascii"])
def test_a_letter_that_the_terminal_lacks_is_a_question_mark(encoding):
    lines = ("report r", "gate r --max cost=1", "runs", "report r --item q1", "verify r")
    final_process = process(*lines, program=("-c", IN_TURN), env={"PYTHONIOENCODING": encoding})
    assert final_process.returncode == 0, final_process.stderr
    assert final_process.stdout.count("ada??") >= 2
    assert ("W\xe4hle ?" if encoding == "latin-1" else "W?hle ?") in final_process.stdout


def test_what_programs_read_is_whole_in_any_encoding():
    import json

    env = {"PYTHONIOENCODING": "ascii"}
    report = json.loads(process("report", "r", "--json", env=env).stdout)
    assert report["headline"]["text"]
    assert {line["candidate"] for line in report["leaderboard"]} == {"ada→🎲", "bob"}
    votes = process("export", "r", "--votes", "--to", "-", env=env).stdout.encode("latin-1")
    assert clash(["export", "r", "--votes", "--to", "votes.jsonl"]) == 0
    assert votes == Path("votes.jsonl").read_bytes()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
def test_a_stdout_that_is_full_is_said_and_not_a_traceback():
    with Path("/dev/full").open("w") as full:
        final_process = process("report", "r", stdout=full)
    assert final_process.returncode == 2
    assert "stdout: cannot be written (No space left on device)" in final_process.stderr


@pytest.mark.parametrize("room", [0, 600, 2_000, 5_000, 20_000, 60_000])
def test_a_disk_that_fills_up_at_any_point_ends_with_a_message_and_the_run_goes_on(
    room, finished_run
):
    words = ("eval", "prompts.yaml", "--panel", "baseline", "--run-id", "full", "-q")
    final_process = process(*words, room=room)
    assert final_process.returncode == 2
    assert "cannot be written (File too large)" in final_process.stderr
    assert "make room" in final_process.stderr
    again = ("resume", "full", "-q") if Path("runs/full/manifest.json").exists() else words
    assert clash(again) == 0
    assert clash(["verify", "full"]) == 0


def test_a_report_that_finds_no_room_leaves_the_old_one():
    before = {path.name: path.read_bytes() for path in Path("runs/r").iterdir()}
    final_process = process("report", "r", room=4_000)
    assert final_process.returncode == 2
    assert "cannot be written (File too large)" in final_process.stderr
    after = {path.name: path.read_bytes() for path in Path("runs/r").iterdir()}
    assert after.keys() == before.keys()
    assert clash(["verify", "r"]) == 0


@pytest.mark.parametrize(
    "words",
    [
        ("init", "/dev/null/x"),
        ("eval", "prompts.yaml", "--panel", "baseline", "--out", "/dev/null/x"),
        ("demo", "--out", "/dev/null/x"),
        ("report", "r", "--plots", "/dev/null/x"),
        ("export", "r", "--votes", "--to", "/dev/null/x"),
        ("export", "r", "--csv", "--to", "/dev/null/x"),
        ("gate", "r", "--junit", "/dev/null/x/y"),
        ("compare", "r", "r", "--to", "/dev/null/x/y.md"),
        ("aggregate", "r", "--out", "/dev/null/x"),
        ("prereg", "--items", "100", "--out", "/dev/null/x"),
        ("simulate", "majority-failure", "--out", "/dev/null/x"),
        ("review", "r", "--export-static", "/dev/null/x"),
        ("datasets", "convert", "prompts.yaml", "--out", "/dev/null/x"),
    ],
    ids=" ".join,
)
def test_a_place_that_cannot_be_written_is_named(capsys, words):
    assert clash(words) == 2
    message = capsys.readouterr().err
    assert message.count("error: ") == 1


def test_init_follows_no_link_that_leads_nowhere_yet(tmp_path, capsys):
    outside = tmp_path / "outside"
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "clash.yaml").symlink_to(outside)
    assert clash(["init", str(tmp_path / "new")]) == 2
    assert "clash.yaml is there already" in capsys.readouterr().err
    assert not outside.exists()


def test_init_where_nothing_may_be_written_names_the_file(capsys, monkeypatch):
    def read_only(path, *_args, **_more):
        raise OSError(30, "Read-only file system", str(path))

    monkeypatch.setattr("clash.files.run_files.replace", read_only)
    assert clash(["init", "new"]) == 2
    message = capsys.readouterr().err
    assert "new/clash.yaml: cannot be read or written (Read-only file system)" in message
    assert "choose a folder that you may write to" in message


def test_the_report_of_a_folder_that_cannot_be_written_is_shown(capsys, monkeypatch):
    page = Path("runs/r/report.html")
    page.write_text("as it was", encoding="utf-8")
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    assert clash(["report", "r"]) == 0
    streams = capsys.readouterr()
    assert "Panel vs. people" in streams.out
    assert "cannot be written to, so its report files are left as they are" in streams.err
    assert page.read_text(encoding="utf-8") == "as it was"
