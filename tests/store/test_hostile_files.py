"""A stranger's run folder: no link, pipe or device in it is followed, waited for or written through."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
import tracemalloc
from typing import TYPE_CHECKING

import pytest

from clash.cli import app as cli
from clash.errors import RunFolderError
from clash.files import run_files
from clash.secrets.redaction import Redactor
from clash.store import layout
from clash.store.folder import RunFolder
from clash.store.secrecy import scan

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(os.name == "nt", reason="links take a privilege on Windows")

PROMPTS = """\
- {id: q1, prompt: Which?, responses: {ada: This one., bob: That one is longer.}, label: bob}
- {id: q2, prompt: And now?, responses: {ada: Again this., bob: No.}}
"""
SECRET = '{"v":1,"secret":"of the victim"}\n'
NAMES = (
    *layout.COLLECTED_FILES,
    *layout.OPTIONAL_FILES,
    *layout.DERIVED_FILES,
    layout.LABELS,
    layout.MANIFEST,
    layout.LOCK,
    ".report.md.part",
    ".manifest.json.part",
    "votes.jsonl",
)
COMMANDS = (("verify",), ("report",), ("resume",), ("export", "--votes"))


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory) -> Path:
    base = tmp_path_factory.mktemp("finished")
    (base / "prompts.yaml").write_text(PROMPTS, encoding="utf-8")
    words = ("eval", base / "prompts.yaml", "--panel", "baseline", "--out", base, "--run-id", "r")
    assert cli.run([*map(str, words), "--quiet"]) == 0
    return base / "r"


@pytest.fixture
def run(finished_run, tmp_path) -> Path:
    return shutil.copytree(finished_run, tmp_path / "runs" / "r")


@pytest.fixture
def victim(tmp_path) -> Path:
    path = tmp_path / "home" / "victim"
    path.parent.mkdir()
    path.write_text(SECRET, encoding="utf-8")
    return path


def lay(path: Path, kind: str, victim: Path) -> None:
    path.unlink(missing_ok=True)
    match kind:
        case "link":
            path.symlink_to(victim)
        case "dangling":
            path.symlink_to(victim.with_name("new"))
        case "pipe":
            os.mkfifo(path)
        case "device":
            path.symlink_to("/dev/zero")
        case "hard link":
            os.link(victim, path)


def clash(capsys, *words: object) -> tuple[int, str]:
    code = cli.run([str(word) for word in words])
    output = capsys.readouterr()
    return code, output.out + output.err


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *((name, kind) for name in NAMES for kind in ("link", "pipe")),
        *((name, "dangling") for name in (layout.LABELS, layout.LOCK, ".report.md.part")),
        *((name, "device") for name in (layout.CALLS, layout.MANIFEST, layout.REPORT_JSON)),
    ],
)
def test_nothing_outside_of_the_folder_is_touched_and_no_command_waits(
    capsys, run, victim, name, kind
):
    lay(run / name, kind, victim)
    for command, *options in COMMANDS:
        code, output = clash(capsys, command, run, *options)
        assert code in (0, 1, 2, 5), output
        assert "of the victim" not in output
    assert victim.read_text(encoding="utf-8") == SECRET
    assert [path.name for path in victim.parent.iterdir()] == ["victim"]


@pytest.mark.parametrize("name", [layout.LOCK, layout.PUBLISHED_VERDICTS, layout.SIGNATURE])
def test_the_search_for_secrets_reads_no_file_of_holes(capsys, run, name):
    """A terabyte of zero bytes takes no room on the disk, and hours to read."""
    with (run / name).open("wb") as file:
        file.truncate(1 << 40)
    code, output = clash(capsys, "resume", run, "-q")
    if name == layout.LOCK:
        assert code == 0, output
    else:
        assert (code, f"{run / name}: has holes" in output) == (2, True)


def test_the_search_for_secrets_holds_no_endless_line_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(run_files, "LONGEST", 1 << 20)
    (tmp_path / "published.jsonl").write_bytes(b"-" * (40 << 20) + b" Xk3-tail-9Qz7Lm2vR8")
    redactor = Redactor.of("Xk3-tail-9Qz7Lm2vR8")
    tracemalloc.start()
    hits = scan(tmp_path, redactor)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert hits["hits"] == {"published.jsonl": ["a key"]}
    assert peak < 20 << 20


@pytest.mark.parametrize("name", ["report.md", "calls.jsonl", "labels.jsonl", "manifest.json"])
@pytest.mark.parametrize(
    ("kind", "word"), [("link", "a symbolic link"), ("pipe", "a named pipe")], ids=["link", "pipe"]
)
def test_what_is_refused_is_named(capsys, run, victim, name, kind, word):
    lay(run / name, kind, victim)
    code, output = clash(capsys, "report", run)
    assert code == 2
    assert f"{run / name}: is {word}" in output


def test_a_report_is_written_though_a_link_lies_where_earlier_versions_wrote_it_first(
    capsys, run, victim
):
    """A fixed temporary name let whoever packed the folder choose what a report overwrote."""
    for name in (".report.md.part", ".report.html.part"):
        (run / name).symlink_to(victim)
    assert clash(capsys, "report", run)[0] == 0
    assert victim.read_text(encoding="utf-8") == SECRET
    assert [path for path in run.iterdir() if path.name.endswith(".part")] == []
    assert clash(capsys, "verify", run)[0] == 0


@pytest.mark.parametrize("name", ["labels.jsonl", "calls.jsonl", "judgments.jsonl"])
def test_a_file_with_a_second_name_is_read_but_not_added_to(run, victim, name):
    """GNU tar makes hard links too; a backup of hard links can still be reported."""
    if (run / name).exists():
        victim.write_bytes((run / name).read_bytes())
    before = victim.read_bytes()
    lay(run / name, "hard link", victim)
    with RunFolder(run).write() as writer, pytest.raises(RunFolderError, match="second name"):
        writer.journal(name)
    assert victim.read_bytes() == before


def test_a_replaced_file_leaves_its_second_name_alone(tmp_path):
    (tmp_path / "a").write_bytes(b"old")
    os.link(tmp_path / "a", tmp_path / "b")
    run_files.replace(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"new"
    assert (tmp_path / "b").read_bytes() == b"old"


def test_a_name_that_is_swapped_after_the_look_is_not_followed(tmp_path, victim, monkeypatch):
    (tmp_path / "x").write_bytes(b"mine")
    real = os.open

    def swap(path, flags, *more, **name):
        if str(path).endswith("x"):
            lay(tmp_path / "x", "link", victim)
        return real(path, flags, *more, **name)

    monkeypatch.setattr(os, "open", swap)
    for opener in (run_files.open_to_read, run_files.open_to_append, run_files.open_to_update):
        lay(tmp_path / "x", "file", victim)
        (tmp_path / "x").write_bytes(b"mine")
        with pytest.raises(RunFolderError, match="cannot be"):
            opener(tmp_path / "x")
    assert victim.read_text(encoding="utf-8") == SECRET


def test_a_folder_that_is_swapped_while_a_file_is_written_does_not_help(
    tmp_path, victim, monkeypatch
):
    run = tmp_path / "r"
    run.mkdir()
    real = os.fsync

    def swap(fd):
        real(fd)
        if run.is_symlink() or not stat.S_ISREG(os.fstat(fd).st_mode):
            return
        run.rename(tmp_path / "moved")
        run.symlink_to(victim.parent)

    monkeypatch.setattr(os, "fsync", swap)
    run_files.replace(run / "victim", b"forged")
    assert victim.read_text(encoding="utf-8") == SECRET
    assert (tmp_path / "moved" / "victim").read_bytes() == b"forged"


def test_a_run_folder_that_is_a_link_of_the_user_is_their_business(capsys, run, tmp_path):
    (tmp_path / "mine").symlink_to(run)
    assert clash(capsys, "report", tmp_path / "mine")[0] == 0


def test_leftovers_of_a_killed_process_are_removed_by_the_next_writer(run):
    (run / ".report.json.0123456789abcdef.part").write_bytes(b"half")
    RunFolder(run).write().close()
    assert not [path for path in run.iterdir() if path.name.endswith(".part")]


@pytest.mark.parametrize(
    ("name", "field", "number", "where"),
    [
        ("manifest.json", "cost_usd", "NaN", "manifest.json: is not a manifest (cost_usd: "),
        ("manifest.json", "cost_usd", "-5", "manifest.json: is not a manifest (cost_usd: "),
        ("manifest.json", "wall_s", "Infinity", "manifest.json: is not a manifest (wall_s: "),
        ("calls.jsonl", "latency_s", "-1", "calls.jsonl:1: is not a valid call record (latency_s"),
    ],
)
def test_no_cost_and_no_time_is_negative_or_without_end(capsys, run, name, field, number, where):
    text = (run / name).read_text(encoding="utf-8")
    text = re.sub(rf'("{field}": ?)[\d.e-]+', rf"\g<1>{number}", text)
    (run / name).write_text(text, encoding="utf-8")
    for command in ("report", "resume"):
        code, streams = clash(capsys, command, run)
        assert code == 2
        assert where in streams


@pytest.mark.parametrize("name", ["calls.jsonl", "manifest.json", "report.json", "items.jsonl"])
def test_a_huge_file_of_nothing_is_refused_at_once_and_in_little_memory(run, name):
    with (run / name).open("ab") as file:
        file.truncate(1 << 40)
    code = (
        "import resource, sys; from clash.cli.app import run\n"
        "resource.setrlimit(resource.RLIMIT_DATA, (1 << 30,) * 2)\n"
        "codes = [run([c, sys.argv[1]]) for c in ('verify', 'report', 'resume')]\n"
        "print('codes', codes)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code, str(run)], capture_output=True, text=True, timeout=240
    )
    assert "Traceback" not in result.stderr, result.stderr
    assert name in result.stderr + result.stdout
    codes = {"manifest.json": [5, 2, 2], "report.json": [5, 0, 0]}.get(name, [5, 2, 2])
    assert f"codes {codes}" in result.stdout
