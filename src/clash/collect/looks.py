"""A text by its looks, for matching: letters that look alike become one.

``Ｃｌаudе`` (fullwidth, Cyrillic) and ``**Claude**`` look like ``claude`` to a reader and to a model,
so they do to a pattern. Patterns that hold letters of other scripts pass through the same table.
"""

from __future__ import annotations

import re
import unicodedata

from clash.collect.normalise import is_hidden

# From Unicode's table of confusables (UTS 39), letters of Greek, Cyrillic, Armenian, Cherokee,
# Coptic, Lisu and of phonetic alphabets, by their lower case: capitals must fold as small letters
# do, or words of Russian would not match at the start of a sentence.
_LETTERS = {
    "a": "ɑαаᎪꓮᴀ",
    "b": "ƅβвьᏏᏴꓐꞵʙ",
    "c": "ϲсᏟᴄⲥꓚ",
    "d": "ԁᎠᏧꓒꓓᴅđ",
    "e": "εеҽᎬꓰꬲᴇ",
    "f": "ϝքẝꓝꞙꬵ𝈓",
    "g": "ƍɡԍցᏀᏳᶃꓖɢ",
    "h": "ηнһհᎻᏂⲏꓧʜħ",
    "i": "ıɩɪιіӏᎥⲓꓲꙇ",
    "j": "ʝϳјᎫꓙᴊ",
    "k": "κкᏦⲕꓗᴋ",
    "l": "ǀᏞⳑꓡ𝈪ʟł",
    "m": "μϻмᎷⲙꓟᴍ",
    "n": "νոռⲛꓠɴ",
    "o": "οσоօᴏᴑⲟꓳꬽø",
    "p": "ρрᏢⲣꓑᴘ",
    "q": "ԛգզ",
    "r": "ʀгᎡᎱᏒᴦⲅꓣꭇꭈ𝈖",
    "s": "ƽѕտᏕᏚꓢꜱ",
    "t": "τтᎢⲧꓔᴛ",
    "u": "ʋυսᴜꓴꞟꭎꭒ",
    "v": "ѵᏙᴠꓦ𝈍",
    "w": "ɯѡԝաᎳᏔᴡꓪ",
    "x": "χхⲭꓫꭓ",
    "y": "ɣʏγϒуүᎩᎽᶌỿⲩꓬꭚ",
    "z": "ζᏃᴢꓜ𐋵",
}
_SIGNS = {
    "<": "‹⟨〈〈˂ᐸᚲ❮❬≺⧼⋖",
    ">": "›⟩〉〉˃ᐳ❯❭≻⧽⋗",
    "/": "⁄∕╱⟋⧸",
    "-": "‐‑‒–—―−",
    '"': "“”„‟«»「」『』〝〞",
    "'": "‘’‚‛ʼʹ′`´",
    ",": "،、",
    "?": "؟",
    ";": "؛",
}
_MARKS = "*_`~"
"""Emphasis and code in Markdown, which are not shown."""
_MARKUP = re.compile(f"[{_MARKS}\\x00-\\x08\\x0e-\\x1b\\x7f]")
_FEW = 100


class _Looks(dict[int, str]):
    """What each character looks like, computed on first use: a table for ``str.translate``."""

    def __init__(self, marks: str = "") -> None:
        super().__init__()
        self._marks = marks

    def __missing__(self, code: int) -> str:
        looks = (look for look in _look(chr(code)) if look not in self._marks)
        return self.setdefault(code, "".join(looks))


def _look(character: str) -> str:
    if is_hidden(character) or character == _STRETCH:
        return ""
    looks = _CONFUSABLES.get(character) or _fold(character)
    return looks if looks == character else "".join(map(_look, looks))


def _fold(character: str) -> str:
    parts = unicodedata.normalize("NFKD", character)
    letters = "".join(part for part in parts if not _is_accent(part)).casefold()
    return unicodedata.normalize("NFC", letters)


def _is_accent(character: str) -> bool:
    """Accents of alphabets and of Arabic; the signs of other scripts are letters to their readers."""
    return "\u0300" <= character <= "\u036f" or "\u064b" <= character <= "\u0655"


_CONFUSABLES = {
    lookalike.casefold(): look
    for table in (_LETTERS, _SIGNS)
    for look, lookalikes in table.items()
    for lookalike in lookalikes
}
_STRETCH = "\u0640"
"""The Arabic kashida, which lengthens a word without changing it."""
_PLAIN = _Looks()
_TEXT = _Looks(_MARKS)


def look(text: str) -> str:
    """What ``text`` looks like, in lower case; markup stays."""
    return text.translate(_PLAIN)


def read(text: str) -> str:
    """What ``text`` looks like once its Markdown is shown, in lower case."""
    if text.isascii():
        return text.translate(_TEXT)
    changes = [c for c in set(text) if c > "\x7f" and _TEXT[ord(c)] != c]
    if len(changes) > _FEW:
        return text.translate(_TEXT)
    # Few letters of a text change, and to replace each is several times faster than to look up all.
    # The order does not matter: what a letter becomes looks like itself.
    for character in changes:
        text = text.replace(character, _TEXT[ord(character)])
    return _MARKUP.sub("", text.casefold())


def offsets(text: str) -> list[int]:
    """For each character of ``read(text)`` and for its end, the index in ``text`` it comes from."""
    lengths = [len(_TEXT[ord(character)]) for character in text]
    starts = [index for index, length in enumerate(lengths) for _ in range(length)]
    return [*starts, len(text)]
