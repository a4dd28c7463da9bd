"""What may move a judge apart from quality, of each response as it was shown to a judge.

Four traits: how long a response is, how much Markdown it has, where on the page it stood, and
whether its author and the judge come from the same organisation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from clash.datasets import published_models

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clash.stats.typing import Floats

STYLES = ("length", "markdown", "position", "self")
"""The traits, in the order of the columns; ``self`` is the same organisation as the judge."""
POSITION = STYLES.index("position")
N_TEXT_STYLES = 2
"""The first traits are those of a text, wherever it is shown."""
_BULLETS = ("#", "- ", "* ", "+ ", "```", "|", "> ")


@dataclass(frozen=True)
class StyleSource:
    """Where traits come from; what is not there is not known.

    Attributes:
        texts: responses by item and candidate.
        families: organisation by judge.
        organisations: by candidate; where it is not there, what its name tells.
    """

    texts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    families: Mapping[str, str] = field(default_factory=dict)
    organisations: Mapping[str, str] = field(default_factory=dict)

    def traits(
        self, item: str, judge: str, names: Sequence[str], page_order: Sequence[float]
    ) -> Floats:
        """Of each response on a page, (m, 4): NaN where it is not known.

        Args:
            item: its id.
            judge: who saw the page.
            names: the m candidates.
            page_order: (m,), their places on the page, 0 is first.
        """
        of_page = self.of_page(judge, names, page_order)
        return np.hstack([self.of_texts(item, names), of_page])

    def of_texts(self, item: str, names: Sequence[str]) -> Floats:
        """Length and Markdown of each response to an item, (m, 2)."""
        texts, unknown = self.texts.get(item, {}), (math.nan, math.nan)
        return np.array([text_traits(texts[name]) if name in texts else unknown for name in names])

    def of_page(self, judge: str, names: Sequence[str], page_order: Sequence[float]) -> Floats:
        """Where each response stands on a page, and whether it is by the judge's maker, (m, 2)."""
        positions = zip(names, page_order, strict=True)
        return np.array([(position, self._is_own(judge, name)) for name, position in positions])

    def _is_own(self, judge: str, candidate: str) -> float:
        family = self.families.get(judge) or organisation(judge)
        author = self.organisations.get(candidate) or organisation(candidate)
        return math.nan if family is None or author is None else float(family == author)


@lru_cache(maxsize=1 << 12)
def text_traits(text: str) -> tuple[float, float]:
    """Binary logarithms of the length in characters and of the Markdown marks, each plus 1.

    A difference of 1 is twice as long, or twice as much Markdown. Marks are headings, items of
    lists, quotes, rows of tables, fences of code, and pairs of bold stars.
    """
    marks = text.count("**") // 2
    for line in text.splitlines():
        head = line.lstrip()
        marks += head.startswith(_BULLETS) or (head[:1].isdigit() and head[1:3] in (". ", ") "))
    return math.log2(1 + len(text)), math.log2(1 + marks)


@lru_cache(maxsize=4096)
def organisation(name: str) -> str | None:
    """The maker of a model, as far as its name tells (``openai/gpt-6``); null where it does not."""
    parts = name.split("/")
    if len(parts) > 1:
        return parts[-2]
    model = published_models.find(name)
    return model.family if model else None
