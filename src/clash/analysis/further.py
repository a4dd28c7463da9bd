"""What the page of a run shows beyond the findings that every format has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from clash.analysis.criterion_scores import CriterionScores, criterion_scores
from clash.analysis.lengths import Longer, longer
from clash.analysis.shared_errors import SharedErrors, UnknownErrors, shared_errors
from clash.errors import ClashError

if TYPE_CHECKING:
    from pathlib import Path

    from clash.analysis.retest import Retest
    from clash.analysis.rundata import RunData


@dataclass(frozen=True)
class Further:
    """What takes more room than a terminal has.

    Attributes:
        retest: this run against its parent; null where it has none.
    """

    scores: CriterionScores
    lengths: list[Longer]
    error_overlap: SharedErrors | UnknownErrors
    retest: Retest | UnknownErrors | None


def further(run: RunData, folder: Path) -> Further:
    """Compute it.

    Args:
        run: the run.
        folder: its folder, beside which that of its parent is looked for.
    """
    return Further(criterion_scores(run), longer(run), shared_errors(run), _retest(run, folder))


def _retest(run: RunData, folder: Path) -> Retest | UnknownErrors | None:
    name = run.manifest.parent
    if name is None:
        return None
    from clash.analysis.retest import retest
    from clash.analysis.rundata import RunData
    from clash.store.folder import RunFolder

    try:
        return retest([RunData.load(RunFolder(folder).sibling(name)), run])
    except ClashError as error:
        return UnknownErrors(str(error).partition("\n")[0])
