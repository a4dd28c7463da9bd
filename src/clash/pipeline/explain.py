"""Explain the decision of a run, or one item of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from clash.analysis.explanation import explain
from clash.analysis.findings import compute_findings
from clash.analysis.rundata import RunData
from clash.analysis.single_text.explanation import explain_texts
from clash.analysis.walk import walk

if TYPE_CHECKING:
    from clash.analysis.explanation import Explanation
    from clash.analysis.findings import Findings
    from clash.analysis.single_text.explanation import TextExplanation
    from clash.analysis.walk import Walk
    from clash.store.folder import RunFolder
    from clash.votes import LabelUse


@dataclass(frozen=True)
class RunExplanation:
    """Why a run decides as it does, what its report says, and what became of its labels."""

    explanation: Explanation | TextExplanation
    findings: Findings
    labels: LabelUse


def explain_run(folder: RunFolder, *, use_labels: bool = True) -> RunExplanation:
    """Why a run decides as it does.

    Args:
        folder: of the run.
        use_labels: labels that are there are used.

    Raises:
        RunFolderError: the folder cannot be read.
    """
    run, labels = RunData.load(folder).by_label_rule(use_labels=use_labels)
    explanation = explain(run) if run.text_votes is None else explain_texts(run)
    return RunExplanation(explanation, compute_findings(run), labels)


def explain_item(folder: RunFolder, item_id: str) -> Walk:
    """Every step of one item, its calls included.

    Raises:
        InputError: the run has no such item.
        RunFolderError: the folder cannot be read.
    """
    return walk(RunData.load(folder), item_id, folder.call_summaries())
