"""A review session: the open items of each person, and their decisions, written at once."""

from __future__ import annotations

import secrets
import threading
import unicodedata
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from clash.errors import InputError
from clash.labels import BOTH_BAD, TIE, ItemLabel
from clash.records import Label
from clash.review.rater_agreement import agreement
from clash.store import layout
from clash.store.journal import Journal, repair_tail
from clash.store.manifest import now

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from clash.analysis.rundata import RunData
    from clash.records import Criterion, Verdict
    from clash.review.tasks import ReviewTask
    from clash.store.folder import RunFolder

SKIP = "skip"
_LONGEST_NAME = 60
_LONGEST_NOTE = 2000


@dataclass
class _Person:
    """The progress of one annotator. ``key`` decides the side of each response."""

    key: str = field(default_factory=lambda: secrets.token_hex(16))
    skips: list[str] = field(default_factory=list)
    decisions: list[str] = field(default_factory=list)


class Session:
    """Serves tasks to any number of annotators and writes their decisions.

    Labels are appended without the lock of the run: a line is one write to a file opened for
    appending, so that several sessions can write at the same time. Labels are read again for each
    request, so that sessions see each other's.

    Args:
        folder: the run.
        data: the records of the run.
        tasks: the items to decide, in order.
        reveal: after a decision, show the authors and the verdict of the panel.
        stop: asked after each decision with all labels; says in a sentence why no more are needed,
            or null. The page then offers no further item.
    """

    def __init__(
        self,
        folder: RunFolder,
        run: RunData,
        tasks: Sequence[ReviewTask],
        *,
        reveal: bool = True,
        stop: Callable[[Sequence[Label]], str | None] | None = None,
    ) -> None:
        self.folder, self.reveal, self._stop = folder, reveal, stop
        self.tasks = {task.item.item_id: task for task in tasks}
        self._verdicts = {verdict.item_id: verdict for verdict in run.verdicts}
        self._data = run
        self._people: dict[str, _Person] = defaultdict(_Person)
        self._lock = threading.Lock()
        path = folder.path / layout.LABELS
        repair_tail(path)
        self._journal = Journal(path)
        self.n_written = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Sync and close the file of labels."""
        self._journal.close()

    def state(self, annotator: object) -> dict[str, Any]:
        """The view of an annotator: progress, the next item (blinded), agreement so far.

        Raises:
            InputError: the name is empty, too long, or holds invisible characters.
        """
        with self._lock:
            return self._state(name_of(annotator))

    def decide(self, annotator: object, decision: Mapping[str, Any]) -> dict[str, Any]:
        """Write a decision and go on; ``skip`` writes nothing and shows the item again later.

        Args:
            annotator: the name of the person.
            decision: ``item``, ``choice`` (a side, ``tie``, ``both bad``, ``skip``), and optional
                ``scores`` ({side: {criterion: 1 to 5}}) and ``note``.

        Raises:
            InputError: it is not a valid decision on an item of this session.
        """
        with self._lock:
            annotator_name = name_of(annotator)
            person, task = self._people[annotator_name], self._task(decision.get("item"))
            name = task.item.item_id
            if decision.get("choice") == SKIP:
                person.skips = [*(s for s in person.skips if s != name), name]
                return self._state(annotator_name)
            self._append(label(task, person.key, annotator_name, decision))
            person.decisions.append(name)
            return self._state(annotator_name, name)

    def undo(self, annotator: object) -> dict[str, Any]:
        """Withdraw the last decision of this session by an additional line; nothing is erased."""
        with self._lock:
            annotator_name = name_of(annotator)
            person = self._people[annotator_name]
            if person.decisions:
                name = person.decisions.pop()
                self._append(
                    Label(item_id=name, annotator=annotator_name, note="taken back", time=now())
                )
                person.skips = [s for s in person.skips if s != name]
                return self._state(annotator_name, first=name)
            return self._state(annotator_name)

    def _append(self, record: Label) -> None:
        self._journal.append(record)
        self._journal.sync()
        self.n_written += 1

    def _task(self, name: object) -> ReviewTask:
        if not isinstance(name, str) or name not in self.tasks:
            raise InputError("is no item of this session", field="item")
        return self.tasks[name]

    def _state(
        self, annotator: str, last: str | None = None, *, first: str | None = None
    ) -> dict[str, Any]:
        labels = self.folder.labels()
        decided_ids = {
            record.item_id
            for record in labels
            if record.annotator == annotator and ItemLabel.of(record).choice is not None
        }
        person = self._people[annotator]
        open_ = [name for name in self.tasks if name not in decided_ids]
        waiting = [name for name in open_ if name not in person.skips]
        upcoming = [*waiting, *(name for name in person.skips if name in open_)]
        if first is not None:
            upcoming = [first]
        stands = None if self._stop is None or first is not None else self._stop(labels)
        if stands is not None:
            upcoming = []
        state: dict[str, Any] = {
            "run": self.folder.path.name,
            "total": len(self.tasks),
            "done": len(self.tasks) - len(open_),
            "skipped": sum(name in open_ for name in person.skips),
            "undo": bool(person.decisions),
            "item": blinded_item(self.tasks[upcoming[0]], person.key) if upcoming else None,
            "last": None,
            "agreement": [],
            "stands": stands,
        }
        if self.reveal:
            state["agreement"] = agreement(self._data, labels, annotator)
            if last is not None:
                own_label = next(
                    record
                    for record in labels
                    if (record.item_id, record.annotator) == (last, annotator)
                )
                state["last"] = self._reveal(self.tasks[last], person.key, own_label)
        return state

    def _reveal(self, task: ReviewTask, key: str, own_label: Label) -> dict[str, Any]:
        verdict: Verdict = self._verdicts[task.item.item_id]
        return {
            "item": task.item.item_id,
            "sides": task.sides(key),
            "you": own_label.winner,
            "panel": verdict.winner or ("no verdict" if verdict.ranking is None else TIE),
            "split": verdict.split,
            "unanimous": verdict.unanimous,
            "same": verdict.outcome == (ItemLabel.of(own_label).choice or TIE),
        }


def blinded_item(task: ReviewTask, key: str) -> dict[str, Any]:
    """An item as a person sees it before deciding: without names, verdict or labels."""
    return {
        "item": task.item.item_id,
        "turns": [turn.model_dump() for turn in task.item.turns],
        "system": task.item.system,
        "reference": task.item.reference,
        "criteria": [
            {"name": criterion.name, "description": criterion.description}
            for criterion in task.criteria
        ],
        "responses": {side: task.text(candidate) for side, candidate in task.sides(key).items()},
        "conversations": {
            side: [{"user": turn.user, "text": turn.text} for turn in task.turns[candidate]]
            for side, candidate in task.sides(key).items()
            if candidate in task.turns
        },
    }


def label(task: ReviewTask, key: str, annotator: str, decision: Mapping[str, Any]) -> Label:
    """The label for a decision, with the candidate in place of the side.

    Raises:
        InputError: the choice, a score or the note is invalid.
    """
    sides = task.sides(key)
    choice = decision.get("choice")
    if choice not in (*sides, TIE, BOTH_BAD):
        raise InputError(f"may be {', '.join(sides)}, {TIE} or {BOTH_BAD}", field="choice")
    winner = sides.get(str(choice), str(choice))
    note = decision.get("note") or None
    if note is not None and (not isinstance(note, str) or len(note) > _LONGEST_NOTE):
        raise InputError(f"is text of at most {_LONGEST_NOTE} characters", field="note")
    return Label(
        item_id=task.item.item_id,
        annotator=annotator,
        winner=winner,
        scores=_scores(decision.get("scores") or {}, sides, task.criteria),
        note=note,
        time=now(),
        draw=task.draw,
    )


def _scores(
    scores: object, sides: Mapping[str, str], criteria: Sequence[Criterion]
) -> dict[str, dict[str, int]]:
    criterion_names = {criterion.name for criterion in criteria}
    by_candidate: dict[str, dict[str, int]] = {}
    for side, row in scores.items() if isinstance(scores, dict) else [("?", None)]:
        if side not in sides or not isinstance(row, dict) or not row.keys() <= criterion_names:
            raise InputError("name a side and criteria of this item", field="scores")
        if not all(type(score) is int and 1 <= score <= 5 for score in row.values()):
            raise InputError("are whole numbers from 1 to 5", field="scores")
        if row:
            by_candidate[sides[side]] = dict(row)
    return by_candidate


def name_of(annotator: object) -> str:
    """An annotator's name with its white space normalised.

    Raises:
        InputError: the name is empty, too long, or holds invisible characters.
    """
    name = " ".join(annotator.split()) if isinstance(annotator, str) else ""
    if not 0 < len(name) <= _LONGEST_NAME or any(
        unicodedata.category(letter).startswith("C") for letter in name
    ):
        raise InputError(f"is 1 to {_LONGEST_NAME} visible characters", field="annotator")
    return name
