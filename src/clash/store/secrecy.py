"""No secret in a run folder: taken out of each record, and looked for once more at the end."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from clash.files import run_files
from clash.store import layout
from clash.store.journal import encode

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pydantic import BaseModel

    from clash.secrets.redaction import Redactor

R = TypeVar("R", bound="BaseModel")
_BLOCK = 1 << 20


def without_secrets(record: R, redact: Redactor) -> R:
    """``record`` as it may be written; the same object where it holds no secret."""
    if not redact.suspects(encode(record)):
        return record
    data = record.model_dump()
    clean = redact.data(data)
    return record if clean == data else type(record).model_validate(clean)


def scan(folder: Path, redact: Redactor) -> dict[str, Any]:
    """What the manifest says of the search for secrets in a finished folder.

    Returns:
        ``secrets``, how many were looked for; ``files``, how many were read; ``hits``, by file the
        variables whose values were found in it.
    """
    hits: dict[str, list[str]] = {}
    names = sorted(
        entry.name
        for entry in os.scandir(folder)
        if entry.is_file(follow_symlinks=False) and entry.name != layout.LOCK
    )
    for name in names:
        origins = {
            secret for text in _suspicious(folder / name, redact) for secret in redact.origins(text)
        }
        if origins:
            hits[name] = sorted(origins)
    return {"secrets": len(redact.secrets), "files": len(names), "hits": hits}


def _suspicious(path: Path, redact: Redactor) -> Iterator[object]:
    """What of a file has to be looked at closely: records, or lines where it has none."""
    with run_files.open_to_read(path) as file:
        # To a line end, but not through all of a stranger's file that has none.
        while block := file.read(_BLOCK) + file.readline(run_files.LONGEST):
            if redact.suspects(block):
                yield from (_value(line) for line in block.split(b"\n") if redact.suspects(line))


def _value(line: bytes) -> object:
    """A record as it was before its quotes and line breaks were escaped; else the text."""
    try:
        return msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return line.decode("utf-8", "replace")
