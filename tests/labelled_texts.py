"""The labelled texts of ``tests/data/masking``, and the disguises that a claim or an attack may wear.

A hash of a text puts it into one of two halves: patterns were written with the first in view, and
the second only measures them.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import yaml

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

Half = Literal["development", "held-out"]

FOLDER = Path(__file__).parent / "data" / "masking"
_NAME = re.compile(r"\{([^{}]*)\}")
_CYRILLIC = str.maketrans("aceopxyACEOPX", "асеорхуАСЕОРХ")
_FULLWIDTH = str.maketrans({chr(code): chr(code + 0xFEE0) for code in range(0x21, 0x7F)})


@dataclass(frozen=True)
class LabelledText:
    """A text and, for a claim, the names in it that are to be hidden."""

    language: str
    text: str
    hidden: tuple[str, ...] = ()

    @property
    def half(self) -> Half:
        return "held-out" if hashlib.sha256(self.text.encode()).digest()[0] % 2 else "development"


def _spread(word: str, mark: str) -> str:
    return mark.join(word)


DISGUISES: Mapping[str, Callable[[str], str]] = {
    "plain": str,
    "bold": lambda name: f"**{name}**",
    "code": lambda name: f"`{name}`",
    "emphasis inside": lambda name: f"{name[:1]}*{name[1:]}*",
    "zero-width": lambda name: _spread(name, "\u200b"),
    "soft hyphen": lambda name: _spread(name, "\xad"),
    "look-alikes": lambda name: name.translate(_CYRILLIC),
    "fullwidth": lambda name: name.translate(_FULLWIDTH),
}
"""Ways to write a name that a reader takes for the name."""


def claims() -> Iterator[LabelledText]:
    """Responses that say who wrote them."""
    return _claims(_table("claims"))


def innocent() -> Iterator[LabelledText]:
    """Texts about models and companies, or about what shares their names."""
    return _plain(_table("innocent"))


def attacks() -> Iterator[LabelledText]:
    """Responses that speak to their judge."""
    return _plain(_table("attacks"))


def peaceful() -> Iterator[LabelledText]:
    """Honest texts with the words of an attack."""
    return _plain(_table("peaceful"))


def claims_of_models() -> Iterator[LabelledText]:
    """What models in use wrote of themselves; 6 of 11 were masked when the rules first met them."""
    return _claims(_table("field")["claims"])


def texts_about_models() -> Iterator[LabelledText]:
    """What people wrote of models; no rule was changed for it."""
    return _plain(_table("field")["innocent"])


def disguised(claim: LabelledText, disguise: str) -> tuple[str, list[str]]:
    """The response as it is written, and the names in it that are to be hidden."""
    write = DISGUISES[disguise]
    return _NAME.sub(lambda name: write(name[1]), claim.text), [*map(write, claim.hidden)]


def _table(name: str) -> dict[str, Any]:
    return yaml.safe_load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))


def _plain(table: Mapping[str, list[str]]) -> Iterator[LabelledText]:
    return (LabelledText(language, text) for language, texts in table.items() for text in texts)


def _claims(table: Mapping[str, list[str]]) -> Iterator[LabelledText]:
    for claim in _plain(table):
        yield replace(claim, hidden=tuple(_NAME.findall(claim.text)))
