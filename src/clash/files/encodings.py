"""Tell the encoding of a text file: UTF-8, UTF-16 as Excel's "Unicode Text" has it, or Windows-1252."""

from __future__ import annotations

import codecs
import re
from typing import TYPE_CHECKING

from clash.errors import InputError
from clash.files.inputs import open_bytes

if TYPE_CHECKING:
    from pathlib import Path

SAVE_AS_UTF8 = (
    'save it as UTF-8 (Excel: File > Save As > "CSV UTF-8 (Comma delimited)"; Google Sheets:'
    " File > Download > .csv)"
)
UTF8 = "utf-8-sig"
WINDOWS = "cp1252"
_CHUNK = 1 << 20
_FOREIGN = re.compile(rb"[\x80-\xff]{4}")
"""Western text has hardly four letters with accents in a row; other alphabets have whole words."""


def is_utf16(data: bytes) -> bool:
    """Whether a file begins with the byte order mark of UTF-16."""
    # The mark of UTF-32 begins with that of UTF-16; nothing that people use writes it.
    return data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) and not data.startswith(
        codecs.BOM_UTF32_LE
    )


def encoding_of(path: Path, *, guess: bool) -> str:
    """The encoding of a text file.

    Args:
        path: the file, read once from end to end.
        guess: take what is not UTF-8 for Windows-1252, where it looks like Western text.

    Returns:
        ``utf-8-sig``, ``utf-16`` or ``cp1252``.

    Raises:
        InputError: it is none of them, or a guess would be needed.
    """
    decoder, position = codecs.getincrementaldecoder("utf-8")(), 0
    may_be_western = True
    with open_bytes(path) as file:
        chunk = file.read(_CHUNK)
        if is_utf16(chunk):
            return "utf-16"
        wrong_at: int | None = None
        while chunk:
            following = file.read(_CHUNK)
            if wrong_at is None:
                try:
                    decoder.decode(chunk, final=not following)
                except UnicodeDecodeError as error:
                    wrong_at = position + error.start
            may_be_western = may_be_western and _is_western(chunk)
            position += len(chunk)
            chunk = following
    if wrong_at is None:
        return UTF8
    if guess and may_be_western:
        return WINDOWS
    raise InputError(f"is not UTF-8 (byte {wrong_at})", path=path, hint=SAVE_AS_UTF8)


def note_on(encoding: str) -> str | None:
    """What to say of an encoding that a person may not have meant; null for UTF-8."""
    if encoding == WINDOWS:
        return f"read as Windows-1252, since it is not UTF-8; if letters look wrong, {SAVE_AS_UTF8}"
    return None if encoding == UTF8 else "read as UTF-16"


def _is_western(chunk: bytes) -> bool:
    try:
        chunk.decode(WINDOWS)
    except UnicodeDecodeError:
        return False
    return b"\0" not in chunk and _FOREIGN.search(chunk) is None
