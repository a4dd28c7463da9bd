"""The commit is read without running anything that the folder at hand could name."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from clash.store.git import git_state

if TYPE_CHECKING:
    from pathlib import Path

HASH = "0123456789abcdef0123456789abcdef01234567"
needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git makes the repositories")


def git(folder: Path, *words: str) -> str:
    identity = ("-c", "user.name=n", "-c", "user.email=e@x", "-c", "commit.gpgsign=false")
    result = subprocess.run(
        ["git", *identity, *words], cwd=folder, check=True, capture_output=True, text=True
    )
    return result.stdout.strip()


@pytest.fixture
def repository(tmp_path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "a/branch")
    (folder / "file").write_text("x", encoding="utf-8")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "one")
    return folder


def write_repository(folder: Path, head: str, **refs: str) -> Path:
    """A repository as far as it is read."""
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text(head, encoding="utf-8")
    for name, text in refs.items():
        (folder / ".git" / name).write_text(text, encoding="utf-8")
    return folder


@needs_git
def test_it_is_the_commit_that_git_tells_however_its_branch_is_kept(repository):
    (repository / "deep" / "er").mkdir(parents=True)
    for words in (
        ("pack-refs", "--all"),
        ("checkout", "-q", "-b", "other"),
        ("checkout", "--detach"),
    ):
        git(repository, *words)
        expected_state = {"commit": git(repository, "rev-parse", "HEAD"), "dirty": None}
        assert git_state(repository) == git_state(repository / "deep" / "er") == expected_state


@needs_git
def test_a_worktree_shares_the_branches_of_its_repository(repository, tmp_path):
    git(repository, "worktree", "add", "-q", "-b", "side", str(tmp_path / "beside"))
    git(tmp_path / "beside", "commit", "-q", "--allow-empty", "-m", "two")
    commit = git(tmp_path / "beside", "rev-parse", "HEAD")
    assert commit != git(repository, "rev-parse", "HEAD")
    assert git_state(tmp_path / "beside") == {"commit": commit, "dirty": None}


@needs_git
@pytest.mark.parametrize("where", ["own", "bare", "path"])
def test_no_program_is_run_because_of_what_the_folder_holds(
    repository, tmp_path, monkeypatch, where
):
    """``git status`` runs what ``core.fsmonitor`` names, in an embedded bare repository too."""
    marker = tmp_path / "was-run"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {marker}\necho {HASH}\n", encoding="utf-8")
    program.chmod(0o755)
    folder = repository
    if where == "own":
        git(repository, "config", "core.fsmonitor", str(program))
    elif where == "bare":
        folder = tmp_path / "unpacked"
        shutil.copytree(repository / ".git", folder)
        with (folder / "config").open("a", encoding="utf-8") as file:
            file.write(f'[core]\n bare = false\n worktree = "."\n fsmonitor = "{program}"\n')
    else:
        shutil.copy(program, repository / "git")
        monkeypatch.setenv("PATH", f".{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(folder)
    state = git_state()
    assert not marker.exists()
    assert (state is None) == (where == "bare")


@pytest.mark.parametrize(
    ("head", "refs"),
    [
        ("", {}),
        ("not a hash", {}),
        ("ref: refs/heads/none\n", {}),
        ("ref: refs/heads/../../../secret\n", {}),
        ("ref: /etc/passwd\n", {}),
        ("ref: refs/heads/x\n", {"packed-refs": f"{HASH} refs/heads/xx\nno hash refs/heads/x\n"}),
        (HASH + "0" * 10_000_000, {}),
    ],
    ids=["empty", "word", "none", "dots", "absolute", "packed", "huge"],
)
def test_what_names_no_commit_is_none(tmp_path, head, refs):
    (tmp_path / "secret").write_text(HASH, encoding="utf-8")
    assert git_state(write_repository(tmp_path / "a" / "b", head, **refs)) is None


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
@pytest.mark.parametrize("name", ["HEAD", "packed-refs", "commondir"])
def test_a_pipe_is_not_waited_for(tmp_path, name):
    folder = write_repository(tmp_path / "r", "ref: refs/heads/x\n")
    (folder / ".git" / name).unlink(missing_ok=True)
    os.mkfifo(folder / ".git" / name)
    assert git_state(folder) is None


@pytest.mark.parametrize("name", ["\\\\server\\share", "//server/share"])
def test_a_repository_on_another_machine_is_not_asked_for(tmp_path, name, monkeypatch):
    (tmp_path / ".git").write_text(f"gitdir: {name}\n", encoding="utf-8")
    opened_files = []
    real = os.open
    monkeypatch.setattr(
        os, "open", lambda path, *more: (opened_files.append(str(path)), real(path, *more))[1]
    )
    assert git_state(tmp_path) is None
    assert [path for path in opened_files if "server" in path] == []


def test_outside_of_a_repository_there_is_none(tmp_path):
    assert git_state(tmp_path) is None
