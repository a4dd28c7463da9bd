"""Runs of the same items side by side: verdicts as codes, in one order."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from clash.errors import StatisticsError
from clash.labels import TIE, outcome_code

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from clash.analysis.rundata import RunData
    from clash.stats.typing import Codes, Floats


@dataclass(frozen=True)
class AlignedRuns:
    """Runs on the items of the first one.

    Attributes:
        names: of the runs.
        items: ids, in the order of the first run. Not those that one of the runs was interrupted
            before it judged: ``n_unjudged`` of them.
        candidates: by item, in the order of the source.
        verdicts: (n, R), place of the winner among the candidates, K for a tie, -1 for none.
        present: (n, R), the run has the item at all.
        labels: (n,), -1 where nobody labelled it.
        confidence: (n, R), NaN without a verdict.
        clusters: (n,), codes.
        responses: (n, R), codes: the same where the response texts are the same; -1 where the run lacks the item.
    """

    runs: tuple[RunData, ...]
    items: tuple[str, ...]
    candidates: tuple[tuple[str, ...], ...]
    verdicts: Codes
    present: NDArray[np.bool_]
    labels: Codes
    confidence: Floats
    clusters: Codes
    responses: Codes
    n_unjudged: int = 0

    @property
    def names(self) -> list[str]:
        """Run names."""
        return [run.manifest.run for run in self.runs]

    @cached_property
    def n_classes(self) -> int:
        """Codes are below this."""
        return max(len(names) for names in self.candidates) + 1

    @cached_property
    def complete_runs(self) -> list[int]:
        """Runs that hold every item of the first."""
        return [int(run) for run in np.flatnonzero(self.present.all(axis=0))]

    @property
    def partial(self) -> list[int]:
        """Runs on a part of the items: targeted ones."""
        return [run for run in range(len(self.runs)) if run not in self.complete_runs]

    @cached_property
    def has_label(self) -> NDArray[np.bool_]:
        """(n,), somebody labelled it."""
        return self.labels >= 0

    @property
    def right(self) -> NDArray[np.bool_]:
        """(n, R), the verdict is the label; no verdict is a miss."""
        is_right: NDArray[np.bool_] = (self.verdicts == self.labels[:, None]) & (self.verdicts >= 0)
        return is_right

    @property
    def fresh(self) -> bool:
        """Some whole runs judged other responses than the first."""
        first = self.responses[:, [self.complete_runs[0]]]
        return bool(np.any(self.responses[:, self.complete_runs] != first))


def align(runs: Sequence[RunData]) -> AlignedRuns:
    """Put runs side by side.

    Raises:
        StatisticsError: fewer than two runs, a name that appears twice, or no shared item that
            was judged.
    """
    if len(runs) < 2:
        raise StatisticsError("a retest needs at least two runs of the same items")
    first = runs[0]
    order = first.responders
    unjudged_items = {item for run in runs for item in run.unjudged_items} & first.rows.keys()
    is_judged = np.array([item not in unjudged_items for item in first.rows], dtype=bool)
    items = tuple(item for item in first.rows if item not in unjudged_items)
    if not items:
        raise StatisticsError(
            "no item was judged in all of the runs, since one was interrupted"
            "\n  fix: `clash resume` finishes it"
        )
    tables = [_table(run, items, order) for run in runs]
    present = np.stack([table.present for table in tables], axis=1)
    if not present[:, 1:].any():
        raise StatisticsError(
            f"{first.manifest.run} and {runs[1].manifest.run} share no item: they are not runs of"
            " the same items (`clash compare` compares other runs)"
        )
    truth = first.truth
    return AlignedRuns(
        runs=tuple(runs),
        items=items,
        candidates=tuple(order[item] for item in items),
        verdicts=np.stack([table.verdicts for table in tables], axis=1),
        present=present,
        labels=np.array(
            [outcome_code(truth.get(item), order[item]) for item in items], dtype=np.intp
        ),
        confidence=np.stack([table.confidence for table in tables], axis=1),
        clusters=first.cluster_codes[is_judged],
        responses=_response_codes([table.texts for table in tables]),
        n_unjudged=len(unjudged_items),
    )


@dataclass(frozen=True)
class _Table:
    verdicts: Codes
    present: NDArray[np.bool_]
    confidence: Floats
    texts: list[str]


def _table(run: RunData, items: Sequence[str], order: Mapping[str, tuple[str, ...]]) -> _Table:
    verdicts = {verdict.item_id: verdict for verdict in run.verdicts}
    texts = _texts(run)
    codes, confidence = [], []
    for item in items:
        verdict = verdicts.get(item)
        outcome = None if verdict is None else verdict.outcome
        is_candidate = outcome is None or outcome == TIE or outcome in order[item]
        if not is_candidate:
            raise StatisticsError(
                f"{run.manifest.run}: item {item} has other candidates than in the first run"
            )
        codes.append(outcome_code(outcome, order[item]))
        sure = None if verdict is None else verdict.confidence
        confidence.append(np.nan if sure is None else sure)
    present = np.array([item in verdicts for item in items])
    return _Table(
        np.array(codes, dtype=np.intp),
        present,
        np.array(confidence),
        [texts.get(i, "") for i in items],
    )


def _texts(run: RunData) -> dict[str, str]:
    """A digest of an item's responses; a text that is not there is told by what is said of it."""
    parts_by_item: dict[str, list[str]] = {}
    for r in sorted(run.responses, key=lambda r: r.candidate):
        parts_by_item.setdefault(r.item_id, []).append(f"{r.candidate}\0{r.text or r.error}")
    return {
        item: hashlib.sha256("\0\0".join(parts).encode("utf-8", "replace")).hexdigest()
        for item, parts in parts_by_item.items()
    }


def _response_codes(texts: Sequence[Sequence[str]]) -> Codes:
    code_of_text: dict[str, int] = {"": -1}
    rows = [
        [code_of_text.setdefault(text, len(code_of_text)) for text in column] for column in texts
    ]
    return np.array(rows, dtype=np.intp).T
