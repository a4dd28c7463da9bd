"""The figures that the paper reports on these results, to compare with recomputed ones."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict

from clash.documents import read_yaml, validate

if TYPE_CHECKING:
    from collections.abc import Mapping

_FILE = Path(__file__).with_name("published.yaml")


class PaperFigure(BaseModel):
    """One published number.

    Attributes:
        table: where it stands.
        figure: the name that clash has for it.
        digits: decimals that are published.
        why: the reason for a difference, or how the figure comes about.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    table: str
    says: str
    figure: str
    value: float
    digits: int
    why: str = ""


class PaperFigures(BaseModel):
    """Figures of one report on some of the runs."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    report: Literal["run", "rerun", "compare"]
    runs: list[str]
    every_record: bool = False
    figures: list[PaperFigure]


@cache
def paper_figures() -> tuple[PaperFigures, ...]:
    """Everything that is published."""
    document = read_yaml(_FILE)
    return tuple(validate(PaperFigures, document.at(index)) for index in range(len(document.value)))


def claims_of(run: str) -> tuple[Mapping[str, Any], ...]:
    """The figures of reports whose first run is ``run``, as plain data for its manifest."""
    return tuple(
        {**figure.model_dump(), **block.model_dump(exclude={"figures"})}
        for block in paper_figures()
        if block.runs[0] == run
        for figure in block.figures
    )
