"""The published raw results of "Multi-Agent Judging for LLM Evaluation" as runs.

What the files are, which is not what their names say:

* ``judge_matrix_data.json`` is a log, newest first. Items that were evaluated again stand in it
  twice; the newest record of each is the one that the result files rest on (same winner, same
  cost). ``arena_r1`` stops at 93 of 100 items; the other seven, and the final evaluation of four,
  stand in ``other``.
* The paper's ablation (Table 11) was computed on the newest records of ``mtbench`` and
  ``arena_r1`` alone (N = 99 and 93), its unanimity table (Table 12) on every record of the two
  lists, retries included. So the first Arena run is here twice: as published, and as ``…-log``.
* ``total_judges`` counts the candidates that judged, ``total_supreme`` the panel. The published
  tally adds the candidates' rankings (weight 1) to the panel's (weight 2); the published
  confidence is the tally's margin over the number of judging candidates, at least 1.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict

from clash.documents import read_yaml, validate
from clash.errors import InputError
from clash.reproduction.agent_clash import end_to_end, experiments, files

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clash.datasets.foreign_run import ForeignRun

is_here = files.is_here


def read(folder: Path) -> list[ForeignRun]:
    """Every run that the files of ``folder`` hold.

    ``mt-bench``, ``arena-1``, ``arena-2``, ``arena-3`` (the targeted one), ``arena-1-log``,
    the earlier evaluations of what was evaluated twice (``…-retries``), and the end-to-end test as
    ``e2e-1`` to ``e2e-3``. Experiments whose files are missing are left out.

    Raises:
        InputError: no experiment is whole, or a file is not of the published form.
    """
    published_files = files.read(folder)
    runs = [
        *experiments.mt_bench(published_files),
        *experiments.arena(published_files),
        *end_to_end.runs(published_files),
    ]
    if not runs:
        raise InputError("holds the log of the judges but no result file", path=folder)
    return [replace(run, claims=claims_of(run.name)) for run in runs]


# -- the figures that the paper reports on these results, to compare with recomputed ones ---------


_PAPER_FIGURES = Path(__file__).with_name("published.yaml")


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
    document = read_yaml(_PAPER_FIGURES)
    return tuple(validate(PaperFigures, document.at(index)) for index in range(len(document.value)))


def claims_of(run: str) -> tuple[Mapping[str, Any], ...]:
    """The figures of reports whose first run is ``run``, as plain data for its manifest."""
    return tuple(
        {**figure.model_dump(), **block.model_dump(exclude={"figures"})}
        for block in paper_figures()
        if block.runs[0] == run
        for figure in block.figures
    )
