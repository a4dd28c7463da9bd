"""A review session: what each person has yet to decide, and their decisions, at once on disk."""

from __future__ import annotations

import secrets
import threading
import unicodedata
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from clash.analysis.labelled import matches
from clash.errors import InputError
from clash.labels import BOTH_BAD, TIE, ItemLabel
from clash.records import Label
from clash.review.agreement import agreement
from clash.store import layout
from clash.store.journal import Journal, repair_tail
from clash.store.manifest import now

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clash.analysis.rundata import RunData
    from clash.records import Criterion, Verdict
    from clash.review.queue import Task
    from clash.store.folder import RunFolder

SKIP = "skip"
_LONGEST_NAME = 60
_LONGEST_NOTE = 2000


@dataclass
class _Person:
    """Where one annotator stands. ``key`` decides which response stands on which side."""

    key: str = field(default_factory=lambda: secrets.token_hex(16))
    skipped: list[str] = field(default_factory=list)
    decided: list[str] = field(default_factory=list)


class Session:
    """Serves tasks to any number of annotators and writes what they decide.

    Labels are appended without the lock of the run: one line is one write to a file opened for
    appending, so that several sessions may write side by side. Everything already there is read
    anew each time, so that they see each other too.

    Args:
        folder: the run.
        data: the run, read.
        tasks: what is to be decided, in order.
        reveal: tell who wrote what and what the panel said, once a person has decided.
    """

    def __init__(
        self, folder: RunFolder, data: RunData, tasks: Sequence[Task], *, reveal: bool = True
    ) -> None:
        self.folder, self.reveal = folder, reveal
        self.tasks = {task.item.item_id: task for task in tasks}
        self._verdicts = {verdict.item_id: verdict for verdict in data.verdicts}
        self._data = data
        self._people: dict[str, _Person] = defaultdict(_Person)
        self._lock = threading.Lock()
        path = folder.path / layout.LABELS
        repair_tail(path)
        self._journal = Journal(path)
        self.written = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Sync and close the labels."""
        self._journal.close()

    def state(self, annotator: object) -> dict[str, Any]:
        """What an annotator sees now: progress, the next item blinded, agreement so far.

        Raises:
            InputError: the name is empty, too long, or holds what cannot be seen.
        """
        with self._lock:
            return self._state(name_of(annotator))

    def decide(self, annotator: object, said: Mapping[str, Any]) -> dict[str, Any]:
        """Write a decision, at once, and move on; ``skip`` writes nothing and comes back later.

        Args:
            annotator: who decides.
            said: ``item``, ``choice`` (a side, ``tie``, ``both bad``, ``skip``), and optional
                ``scores`` ({side: {criterion: 1 to 5}}) and ``note``.

        Raises:
            InputError: it is not a decision on an item of this session.
        """
        with self._lock:
            who = name_of(annotator)
            person, task = self._people[who], self._task(said.get("item"))
            name = task.item.item_id
            if said.get("choice") == SKIP:
                person.skipped = [*(s for s in person.skipped if s != name), name]
                return self._state(who)
            self._append(label(task, person.key, who, said))
            person.decided.append(name)
            return self._state(who, name)

    def undo(self, annotator: object) -> dict[str, Any]:
        """Take the last decision of this session back: a line that says so; nothing is erased."""
        with self._lock:
            who = name_of(annotator)
            person = self._people[who]
            if person.decided:
                name = person.decided.pop()
                self._append(Label(item_id=name, annotator=who, note="taken back", time=now()))
                person.skipped = [s for s in person.skipped if s != name]
                return self._state(who, first=name)
            return self._state(who)

    def _append(self, record: Label) -> None:
        self._journal.append(record)
        self._journal.sync()
        self.written += 1

    def _task(self, name: object) -> Task:
        if not isinstance(name, str) or name not in self.tasks:
            raise InputError("is no item of this session", field="item")
        return self.tasks[name]

    def _state(
        self, who: str, last: str | None = None, *, first: str | None = None
    ) -> dict[str, Any]:
        labels = self.folder.labels()
        mine = {
            one.item_id
            for one in labels
            if one.annotator == who and ItemLabel.of(one).choice is not None
        }
        person = self._people[who]
        open_ = [name for name in self.tasks if name not in mine]
        waiting = [name for name in open_ if name not in person.skipped]
        upcoming = [*waiting, *(name for name in person.skipped if name in open_)]
        if first is not None:
            upcoming = [first]
        state: dict[str, Any] = {
            "run": self.folder.path.name,
            "total": len(self.tasks),
            "done": len(self.tasks) - len(open_),
            "skipped": sum(name in open_ for name in person.skipped),
            "undo": bool(person.decided),
            "item": shown(self.tasks[upcoming[0]], person.key) if upcoming else None,
            "last": None,
            "agreement": [],
        }
        if self.reveal:
            state["agreement"] = agreement(self._data, labels, who)
            if last is not None:
                said = next(one for one in labels if (one.item_id, one.annotator) == (last, who))
                state["last"] = self._revealed(self.tasks[last], person.key, said)
        return state

    def _revealed(self, task: Task, key: str, said: Label) -> dict[str, Any]:
        verdict: Verdict = self._verdicts[task.item.item_id]
        return {
            "item": task.item.item_id,
            "sides": task.sides(key),
            "you": said.winner,
            "panel": verdict.winner or ("no verdict" if verdict.ranking is None else TIE),
            "split": verdict.split,
            "unanimous": verdict.unanimous,
            "same": matches(verdict, ItemLabel.of(said).choice or TIE),
        }


def shown(task: Task, key: str) -> dict[str, Any]:
    """An item as a person sees it before deciding: no name, no verdict, no label."""
    return {
        "item": task.item.item_id,
        "turns": [turn.model_dump() for turn in task.item.turns],
        "system": task.item.system,
        "reference": task.item.reference,
        "criteria": [
            {"name": criterion.name, "description": criterion.description}
            for criterion in task.criteria
        ],
        "responses": {side: task.text(who) for side, who in task.sides(key).items()},
    }


def label(task: Task, key: str, annotator: str, said: Mapping[str, Any]) -> Label:
    """A decision, unblinded.

    Raises:
        InputError: the choice, a score or the note is not what it may be.
    """
    sides = task.sides(key)
    choice = said.get("choice")
    if choice not in (*sides, TIE, BOTH_BAD):
        raise InputError(f"may be {', '.join(sides)}, {TIE} or {BOTH_BAD}", field="choice")
    winner = sides.get(str(choice), str(choice))
    note = said.get("note") or None
    if note is not None and (not isinstance(note, str) or len(note) > _LONGEST_NOTE):
        raise InputError(f"is text of at most {_LONGEST_NOTE} characters", field="note")
    return Label(
        item_id=task.item.item_id,
        annotator=annotator,
        winner=winner,
        scores=_scores(said.get("scores") or {}, sides, task.criteria),
        note=note,
        time=now(),
    )


def _scores(
    given: object, sides: Mapping[str, str], criteria: Sequence[Criterion]
) -> dict[str, dict[str, int]]:
    known = {criterion.name for criterion in criteria}
    found: dict[str, dict[str, int]] = {}
    for side, row in given.items() if isinstance(given, dict) else [("?", None)]:
        if side not in sides or not isinstance(row, dict) or not row.keys() <= known:
            raise InputError("name a side and criteria of this item", field="scores")
        if not all(type(score) is int and 1 <= score <= 5 for score in row.values()):
            raise InputError("are whole numbers from 1 to 5", field="scores")
        if row:
            found[sides[side]] = dict(row)
    return found


def name_of(annotator: object) -> str:
    """An annotator's name as it is written down.

    Raises:
        InputError: the name is empty, too long, or holds what cannot be seen.
    """
    name = " ".join(annotator.split()) if isinstance(annotator, str) else ""
    if not 0 < len(name) <= _LONGEST_NAME or any(
        unicodedata.category(letter).startswith("C") for letter in name
    ):
        raise InputError(f"is 1 to {_LONGEST_NAME} visible characters", field="annotator")
    return name
