"""Explain the decision of a run, or one item of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clash.analysis.explanation import explain
from clash.analysis.rundata import RunData
from clash.analysis.walk import walk

if TYPE_CHECKING:
    from clash.analysis.explanation import Explanation
    from clash.analysis.walk import Walk
    from clash.store.folder import RunFolder


def explain_run(folder: RunFolder) -> Explanation:
    """Why a run decides as it does.

    Raises:
        RunFolderError: the folder cannot be read.
    """
    return explain(RunData.load(folder))


def explain_item(folder: RunFolder, item_id: str) -> Walk:
    """Every step of one item, its calls included.

    Raises:
        InputError: the run has no such item.
        RunFolderError: the folder cannot be read.
    """
    return walk(RunData.load(folder), item_id, folder.call_summaries())
