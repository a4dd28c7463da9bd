"""The parts of the page as data, which the templates lay out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markupsafe import Markup

    from clash.pages.bars import Kind
    from clash.pages.charts import Tone


@dataclass(frozen=True)
class KeyFigure:
    """One of the figures under the first chart."""

    name: str
    value: str
    note: str = ""
    tone: Tone = "plain"


@dataclass(frozen=True)
class PageAnswer:
    """What one sees first.

    Attributes:
        against: what speaks against the headline; null for nothing.
        notices: what is wrong with the run itself: it was stopped, a model refused.
        chart, caption: the first picture, and how to read it; null where there is nothing to draw.
        folded_rows: the rest of a long chart.
    """

    headline: str
    evidence: str
    against: str | None
    notices: tuple[str, ...]
    chart: Markup | None
    caption: str
    figures: tuple[KeyFigure, ...]
    folded_rows: Markup | None = None


@dataclass(frozen=True)
class Check:
    """One line under a picture: what was checked, what came out, and the figure."""

    name: str
    answer: str
    value: str = "–"
    unit: str = ""


@dataclass(frozen=True)
class PageFigure:
    """A picture, what it shows, how to read it, and what its parts mean by their kind."""

    title: str
    chart: Markup
    note: str = ""
    key: tuple[tuple[Kind, str], ...] = ()


@dataclass(frozen=True)
class Question:
    """A section: a question, its answer in the first words, one picture, then checks."""

    anchor: str
    title: str
    nav: str
    answer: str
    aside: str
    figure: PageFigure | None
    checks: tuple[Check, ...] = ()
