"""What people's decisions on a run change, and decisions made on a page from disk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clash.analysis.corrected import correction
from clash.analysis.findings import compute_findings
from clash.documents import read_json, read_text
from clash.errors import InputError
from clash.report.formats import percent
from clash.review.page import order, parse_returned_file, proof
from clash.review.session import label, name_of
from clash.review.tasks import review_tasks
from clash.store import layout
from clash.store.journal import Journal, repair_tail
from clash.store.manifest import seal_file
from clash.wording import plural

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from clash.analysis.findings import Findings
    from clash.analysis.label_change import LabelChange
    from clash.analysis.rundata import RunData
    from clash.records import Label
    from clash.review.tasks import ReviewTask
    from clash.store.folder import RunFolder
    from clash.votes import Votes


@dataclass(frozen=True)
class ReviewEffect:
    """What a number of decisions change.

    Attributes:
        run: with the labels there are by now; ``findings`` of it.
    """

    change: LabelChange
    run: RunData
    findings: Findings


@dataclass
class Review:
    """A run before its review, and what the review changes.

    Attributes:
        findings: before the review.
        votes: of the run, with the labels there were; null where nobody judged anything.
    """

    folder: RunFolder
    run: RunData
    findings: Findings
    votes: Votes | None
    _last: ReviewEffect | None = None

    @classmethod
    def of(cls, folder: RunFolder, run: RunData) -> Review:
        """The review of a run."""
        return cls(folder, run, compute_findings(run), _votes(folder))

    def effect(self, decisions: int) -> ReviewEffect:
        """What the labels change that there are by now, computed once for each number of decisions."""
        if self._last is None or self._last.change.written != decisions:
            self._last = self._compute(decisions)
        return self._last

    def _compute(self, decisions: int) -> ReviewEffect:
        from clash.analysis.calibration_change import compare_calibrations
        from clash.analysis.label_change import label_change

        run = self.run.with_labels(self.folder.labels())
        findings = compute_findings(run)
        votes = _votes(self.folder)
        calibrations = None
        if self.votes is not None and votes is not None:
            leader = findings.leaderboard[0].candidate
            calibrations = compare_calibrations(run, self.votes, votes, leader)
        change = label_change(self.findings, findings, decisions, calibrations)
        return ReviewEffect(change, run, findings)


def _votes(folder: RunFolder) -> Votes | None:
    from clash.votes import run_votes

    try:
        return run_votes(folder)
    except InputError:
        return None  # nobody judged anything


def _drawn_tasks(run: RunData, draw: Mapping[str, Any] | None) -> list[ReviewTask]:
    """All items of a run, each with how a page from disk drew it."""
    if draw is None:
        return review_tasks(run, "all")
    return review_tasks(run, seed=draw["seed"], sample=len(run.items) if draw["equal"] else None)


def why_decision_stands(run: RunData, labels: Sequence[Label], *, names: bool = True) -> str | None:
    """Why no more labels are needed: people's decision holds at every number of labels; else null.

    Args:
        run: the run.
        labels: that there are by now.
        names: say who wins.
    """
    people = correction(run.with_labels(labels), run.candidates)
    decision = None if people is None else people.decision
    if decision is None or not decision.any_time or decision.status == "leading":
        return None
    n = plural(decision.n_labelled, "label")
    duel, rate = decision.duel, percent(decision.duel.rate)
    if not names:
        return f"The decision stands after {n}"
    if decision.status == "equal":
        return f"{duel.first} and {duel.second} are as good as equal ({rate}, {n})"
    return f"The decision stands: people would prefer {duel.first} to {duel.second} ({rate}, {n})"


def page_secret(folder: RunFolder) -> str:
    """What only the run knows and no review changes: the hash of who was shown where to judges."""
    return seal_file(folder.path / layout.BLINDING).sha256


def read_item_list(path: Path) -> list[str]:
    """The ids of a file, one a line; empty lines are left out.

    Raises:
        InputError: the file cannot be read, or names no item.
    """
    names = [line.strip() for line in read_text(path).splitlines() if line.strip()]
    if not names:
        raise InputError("names no item", path=path, hint="one id a line")
    return names


def import_decisions(folder: RunFolder, run: RunData, path: Path) -> int:
    """Write the decisions that a page from disk gave back as labels of the run.

    Returns:
        How many there are.

    Raises:
        InputError: the file is not one of ours, or of another run.
    """
    document = parse_returned_file(read_json(path).value)
    if document is None or document.get("run") != folder.path.name:
        raise InputError(
            f"is not a review file of {folder.path.name}", path=path, hint="see --export-static"
        )
    secret = page_secret(folder)
    draw = document.get("draw")
    if document.get("proof") != proof(document["key"], draw, secret):
        raise InputError(
            "names a draw that no page of this run had",
            path=path,
            field="draw",
            hint="ask for the file as the page gave it, or export the page again",
        )
    tasks = {task.item.item_id: task for task in _drawn_tasks(run, draw)}
    annotator = name_of(document.get("annotator"))
    key = order(document["key"], secret)
    labels = []
    for decision in document["decisions"]:
        name = decision.get("item") if isinstance(decision, dict) else None
        if not isinstance(name, str) or name not in tasks:
            raise InputError(f"decides on {name!r}, which is not an item of the run", path=path)
        labels.append(label(tasks[name], key, annotator, decision))
    repair_tail(folder.path / layout.LABELS)
    with Journal(folder.path / layout.LABELS) as journal:
        for record in labels:
            journal.append(record)
    return len(labels)
