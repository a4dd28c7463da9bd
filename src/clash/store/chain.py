"""The hash chain over ``calls.jsonl``: each line carries the SHA-256 of the line before it.

The hash of one line, known from a sealed manifest or a signature, fixes every line before it: none
can be changed, removed, inserted or moved without breaking a link.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

from clash.files import run_files
from clash.store.journal import Journal, last_line

if TYPE_CHECKING:
    from pathlib import Path

START = "0" * 64
"""The link of the first line."""
_LINK = re.compile(rb',"chain":"([0-9a-f]{64})"\}\n?\Z')
MOST_PLAIN = 8 << 20
"""Bytes of lines that are moved into frames at a time."""
_LENGTH = len(',"chain":""}\n') + len(START)


class ChainedJournal(Journal):
    """A journal whose lines each carry the hash of the line before, also after a resume.

    Args:
        path: the file.
        packs: compress lines that are older than the last megabytes (:mod:`clash.files.packed`).
    """

    def __init__(self, path: Path, *, packs: bool = False) -> None:
        super().__init__(path)
        self._head = head(path)
        self._packs = packs
        self._n_plain = path.stat().st_size if packs else 0

    def append_line(self, line: bytes) -> None:
        """Write a line that carries no link yet, with its link as the last key."""
        line = line[:-2] + b',"chain":"' + self._head.encode() + b'"}\n'
        self._add(line)
        self._head = digest(line)

    def _write(self, data: bytes) -> None:
        super()._write(data)
        self._n_plain += len(data)
        if self._packs and self._n_plain >= MOST_PLAIN:
            self.pack()

    def pack(self) -> None:
        """Move the lines into frames, in a journal that packs its lines."""
        if self._packs and self._n_plain:
            run_files.pack_lines(self.path)
            self._n_plain = 0


def head(path: Path) -> str:
    """The hash of the last line, which the next line has to carry."""
    line = last_line(path)
    return digest(line) if line else START


def digest(line: bytes) -> str:
    """SHA-256 of a line without its line feed."""
    return hashlib.sha256(line.removesuffix(b"\n")).hexdigest()


def without_link(line: bytes) -> bytes:
    """A line without the hash that it carries; one without a hash as it is."""
    match = _LINK.search(line, max(0, len(line) - _LENGTH))
    return line[: match.start()] + b"}\n" if match else line


def link(line: bytes) -> str | None:
    """The hash that a line carries; null where it was written without one."""
    match = _LINK.search(line, max(0, len(line) - _LENGTH))
    return match[1].decode() if match else None
