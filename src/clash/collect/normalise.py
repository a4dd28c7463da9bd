"""Text as a judge may see it: without characters that only a model can read.

Pure. Removals are counted by kind. Characters that honest writing needs stay where they have an effect
that a reader can see: joiners inside words of scripts that join their letters and inside an emoji,
the emoji style after a symbol, the flags of England, Scotland and Wales. Everywhere else they can hide
an instruction, a signature or a broken delimiter.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

# Two tables, since a set within the basic plane is looked up at once and one beyond it range by
# range: a pattern of both takes ten times as long.
_BASIC: Mapping[str, str] = {
    # Neither line feed nor tab; a carriage return is a line feed.
    "control": "\x00-\x08\x0b-\x1f\x7f-\x9f",
    "bidi": "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069",
    "joiner": "\u200c\u200d",
    "tag": "",
    "variation": "\u180b-\u180d\u180f\ufe00-\ufe0f",
    # Blanks and fillers without width, soft hyphens, separators and format characters.
    "invisible": (
        "\xad\u034f\u115f\u1160\u17b4\u17b5\u180e\u200b\u2028\u2029\u2060-\u2065\u206a-\u206f"
        "\u3164\ufeff\uffa0\ufff0-\ufffb"
    ),
}
_BEYOND: Mapping[str, str] = {
    "tag": "\U000e0000-\U000e007f",
    "variation": "\U000e0100-\U000e01ef",
    # Controls of layout, music and shorthand, and the rest of the plane of tags, all unassigned.
    "invisible": (
        "\U00013430-\U0001345f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
        "\U000e0080-\U000e00ff\U000e01f0-\U000e0fff"
    ),
}
_KINDS = {kind: basic + _BEYOND.get(kind, "") for kind, basic in _BASIC.items()}
_OF_KIND = {kind: re.compile(f"[{characters}]") for kind, characters in _KINDS.items()}
_SUSPECTS = tuple(re.compile("[{}]".format("".join(table.values()))) for table in (_BASIC, _BEYOND))
_ASCII_SUSPECTS = bytes(code for code in range(128) if _SUSPECTS[0].match(chr(code)))
_REMOVABLE = re.compile("\r\n|[{}]".format("".join(_KINDS.values())))
_LINE_ENDS = frozenset("\r\x0b\x0c\x85\u2028\u2029")

# Scripts whose letters join or stack: Arabic, Syriac, N'Ko and their like, the scripts of India and
# of South-East Asia, Mongolian.
_JOINING = re.compile(
    "[\u0600-\u08ff\u0900-\u0dff\u0f00-\u109f\u1780-\u17ff\u1800-\u18af\u1a20-\u1aaf\u1b00-\u1bff"
    "\ua840-\ua87f\ua8e0-\ua8ff\ua980-\ua9ff\ufb50-\ufdff\ufe70-\ufefc\U00011000-\U000114ff]"
)
_SYMBOLS = (
    "#*0-9\xa9\xae\u203c\u2049\u2100-\u214f\u2190-\u21ff\u2300-\u23ff\u2460-\u24ff\u25a0-\u27bf"
    "\u2900-\u297f\u2b00-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
)
_SYMBOL = re.compile(f"[{_SYMBOLS}]")
_JOINING_PAIRS = (_JOINING, re.compile(f"[{_SYMBOLS}\ufe0f]"))
_SELECTOR_BASES = {
    **dict.fromkeys("\ufe0e\ufe0f", _SYMBOL),
    **dict.fromkeys("\u180b\u180c\u180d\u180f", re.compile("[\u1820-\u18aa]")),
}
"""What each selector of a variant may follow."""
_VIRAMA = 9
_FLAG = re.compile(
    "\U0001f3f4\U000e0067\U000e0062(?:{})\U000e007f".format(
        "|".join(
            "".join(chr(0xE0000 + ord(letter)) for letter in region)
            for region in ("eng", "sct", "wls")
        )
    )
)


def is_hidden(character: str) -> bool:
    """Whether a reader sees nothing of ``character`` as it stands alone, not even a blank."""
    return _REMOVABLE.match(character) is not None and not character.isspace()


def normalise(text: str) -> tuple[str, dict[str, int]]:
    """``text`` without hidden characters, and how many were removed of each kind.

    Line ends of every sort become line feeds, which is not counted.
    """
    if text.isascii():
        # A tenth of the time of a search; most text is of this kind.
        data = text.encode()
        is_clean = len(data.translate(None, _ASCII_SUSPECTS)) == len(data)
    else:
        is_clean = not any(suspect.search(text) for suspect in _SUSPECTS)
    if is_clean:
        return text, {}
    flags = {index for flag in _FLAG.finditer(text) for index in range(*flag.span())}
    counts: Counter[str] = Counter()

    def visible(match: re.Match[str]) -> str:
        character = match[0]
        if character == "\r\n" or character in _LINE_ENDS:
            return "\n"
        kind = next(kind for kind, pattern in _OF_KIND.items() if pattern.match(character))
        if match.start() in flags or _has_effect(kind, match):
            return character
        counts[kind] += 1
        return ""

    return _REMOVABLE.sub(visible, text), dict(sorted(counts.items()))


def _has_effect(kind: str, match: re.Match[str]) -> bool:
    """Whether a joiner or a selector changes what a reader sees of its neighbours."""
    text, index = match.string, match.start()
    before, after = text[index - 1 : index], text[index + 1 : index + 2]
    if kind == "joiner":
        return _is_virama(before) or any(s.match(before) and s.match(after) for s in _JOINING_PAIRS)
    if kind == "variation":
        base = _SELECTOR_BASES.get(match[0])
        return base is not None and base.match(before) is not None
    return False


def _is_virama(character: str) -> bool:
    """The sign of India's scripts after which a joiner chooses the form of the letter before."""
    return character != "" and unicodedata.combining(character) == _VIRAMA
