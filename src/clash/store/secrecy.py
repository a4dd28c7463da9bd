"""Keep secrets out of a run folder: remove them from each record, and search again at the end."""

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


def without_secrets(record: R, redactor: Redactor) -> R:
    """``record`` without secrets; the same object where it holds none."""
    if not redactor.suspects(encode(record)):
        return record
    data = record.model_dump()
    clean = redactor.data(data)
    return record if clean == data else type(record).model_validate(clean)


def scan(folder: Path, redactor: Redactor) -> dict[str, Any]:
    """Search a finished folder for secrets; the result is ``secrets_scan`` of the manifest.

    Returns:
        ``secrets``, the number searched for; ``files``, the number read; ``hits``, for each file
        the variables whose values occur in it.
    """
    hits: dict[str, list[str]] = {}
    names = sorted(
        file.name
        for file in os.scandir(folder)
        if file.is_file(follow_symlinks=False) and file.name != layout.LOCK
    )
    for name in names:
        origins = {
            secret
            for text in _suspicious(folder / name, redactor)
            for secret in redactor.origins(text)
        }
        if origins:
            hits[name] = sorted(origins)
    return {"secrets": len(redactor.secrets), "files": len(names), "hits": hits}


def _suspicious(path: Path, redactor: Redactor) -> Iterator[object]:
    """The records (or lines that are no records) of a file that may hold a secret."""
    with run_files.open_to_read(path) as file:
        # Up to a line end, but no further than a bound: a stranger's file may have no line ends.
        while block := file.read(_BLOCK) + file.readline(run_files.LONGEST):
            if redactor.suspects(block):
                yield from (_value(line) for line in block.split(b"\n") if redactor.suspects(line))


def _value(line: bytes) -> object:
    """The decoded record, where quotes and line breaks are not escaped; otherwise the text."""
    try:
        return msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return line.decode("utf-8", "replace")
