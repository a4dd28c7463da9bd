"""Read the commit of a working folder from the files of its repository.

The program ``git`` is not run: it runs what the repository configures (hooks, filters, a file
system monitor), and a folder received from a stranger may contain a bare repository.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from clash.errors import RunFolderError
from clash.files import run_files

_HASH = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_REF = re.compile(r"refs(/(?!\.)[^\s/:?*\[\\^~\x00-\x1f\x7f]+)+")
_MOST = 4096
"""Bytes of a file that names a commit, a branch or a folder."""


def git_state(folder: Path | None = None) -> dict[str, Any] | None:
    """The ``git`` entry of a manifest: the commit of the working folder; null outside a repository.

    ``dirty`` is null, which means unknown: only the program ``git`` can tell.
    """
    commit = _commit_at(folder or Path.cwd())
    return None if commit is None else {"commit": commit, "dirty": None}


def _commit_at(folder: Path) -> str | None:
    """The commit checked out in ``folder`` or above it; null where it cannot be read."""
    folder = folder.absolute()
    try:
        dots = (above / ".git" for above in (folder, *folder.parents))
        repository = next((dot for dot in dots if dot.exists()), None)
        return None if repository is None else _head(_git_folder(repository))
    except (OSError, RunFolderError, ValueError):
        return None


def _git_folder(dot: Path) -> Path:
    """The repository behind ``.git``: that folder, or for a worktree the folder that it names."""
    if dot.is_dir():
        return dot
    return _resolve_folder(dot.parent, _text(dot).removeprefix("gitdir: "))


def _head(folder: Path) -> str | None:
    head = _text(folder / "HEAD")
    if not head.startswith("ref: "):
        return head if _HASH.fullmatch(head) else None
    ref = head.removeprefix("ref: ")
    if not _REF.fullmatch(ref):
        return None
    common = folder / "commondir"  # a worktree shares the branches of its repository
    return _ref(_resolve_folder(folder, _text(common)) if common.exists() else folder, ref)


def _ref(folder: Path, ref: str) -> str | None:
    """The commit of a branch, from its own file or from ``packed-refs``."""
    loose = folder / ref
    if loose.exists():
        text = _text(loose)
        return text if _HASH.fullmatch(text) else None
    ending = f" {ref}\n".encode()
    line = next((li for li in run_files.lines(folder / "packed-refs") if li.endswith(ending)), b"")
    text = line.decode().partition(" ")[0]
    return text if _HASH.fullmatch(text) else None


def _text(path: Path) -> str:
    return run_files.read(path, most=_MOST).decode().strip()


def _resolve_folder(folder: Path, name: str) -> Path:
    # On Windows, opening such a path sends the user's credentials to a server of that name.
    if name.startswith(("\\\\", "//")):
        raise ValueError(f"{name!r} is on another machine")
    return folder / name
