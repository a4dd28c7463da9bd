"""A run folder as votes: judgments unblinded, and expanded to pairs where there are more than two.

An item of two candidates is one item, whose side A is the first of them by name, so that runs of
one prompts file share a frame whatever was shuffled or finished first. An item of K > 2 candidates
becomes K (K - 1) / 2 items, ``q1#a|b``, one for each pair. The pairs of one ranking are not
independent (a before b and b before c leave no choice for a and c), and a method that takes them
for independent counts one judgment several times; so they share the item's ``group``, by which
every interval is clustered.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from clash.analysis.verdicts import BlindingIndex, unblind, weighted_score, without_controls
from clash.labels import ranks_of, side, truths
from clash.votes.matrix import VoteRow

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from clash.labels import Truth
    from clash.records import Item, Judgment, Label
    from clash.store.folder import RunFolder


@dataclass(frozen=True)
class _RunRecords:
    """What a row needs to know of its run."""

    folder: RunFolder
    items: Mapping[str, Item]
    blinds: BlindingIndex
    families: Mapping[str, str]
    judgments: Sequence[Judgment]
    truths: Mapping[str, Truth]
    labels: Mapping[str, Sequence[Label]]
    presentations: int

    @classmethod
    def of(cls, folder: RunFolder, *, observers: bool) -> _RunRecords:
        manifest, labels_of = folder.manifest(), defaultdict(list)
        labels = folder.labels()
        for label in labels:
            labels_of[label.item_id].append(label)
        judges = manifest.panel.get("judges", [])
        blinding = folder.blinding()
        all_items = folder.items()
        items = {item.item_id: item for item in without_controls(all_items)}
        controls = {item.item_id for item in all_items} - items.keys()
        return cls(
            folder,
            items,
            BlindingIndex.of(blinding),
            {judge["id"]: judge["family"] for judge in judges if judge.get("family")},
            [
                j
                for j in folder.judgments()
                if (observers or j.role == "voting") and j.item_id not in controls
            ],
            truths(items.values(), labels),
            labels_of,
            1 + max((record.presentation for record in blinding), default=0),
        )

    def page_labels(self, judgment: Judgment) -> Mapping[str, str]:
        """The labels of the page behind a judgment, in the order shown."""
        return self.blinds.labels(judgment)

    def own_order(self, judgment: Judgment) -> bool:
        """Whether this judge saw a shuffle of its own."""
        return (judgment.item_id, judgment.presentation, judgment.seat) in self.blinds.own

    def cluster(self, item_id: str) -> str:
        return self.items[item_id].cluster if item_id in self.items else item_id

    def subset(self, item_id: str) -> str | None:
        tags = self.items[item_id].tags if item_id in self.items else []
        return tags[0] if tags else None


def vote_rows(folder: RunFolder, *, observers: bool = False) -> Iterator[VoteRow]:
    """The votes of a run, one for each judgment and pair of its candidates.

    ``presentation`` is ``orig`` where the pair's first candidate by name was shown first. Where
    each judge had a shuffle of its own, judges of one item would fall into different rows by
    that, so the order is kept in the extra key ``order`` instead. The label is what the truth of
    the item says of the pair (:mod:`clash.labels`). ``subset`` is the item's first tag.

    Args:
        folder: the run.
        observers: the observers' judgments too.

    Raises:
        RunFolderError: a judgment whose blinding is missing.
    """
    run = _RunRecords.of(folder, observers=observers)
    for judgment in run.judgments:
        labels = run.page_labels(judgment)
        ranking = unblind(judgment, labels)
        for first, second in combinations(sorted(labels.values()), 2):
            yield _pair_row(run, judgment, list(labels.values()), ranking, first, second)


def _pair_row(
    run: _RunRecords,
    judgment: Judgment,
    page: Sequence[str],
    ranking: list[list[str]] | None,
    first: str,
    second: str,
) -> VoteRow:
    several = len(page) > 2
    order = "orig" if page.index(first) < page.index(second) else "swap"
    own = run.own_order(judgment)
    item = run.items.get(judgment.item_id)
    truth = run.truths.get(judgment.item_id)
    return VoteRow(
        item=f"{judgment.item_id}#{first}|{second}" if several else judgment.item_id,
        judge=judgment.judge,
        vote=None if ranking is None else side(ranks_of(ranking), first, second),
        label=None if truth is None else truth.side(first, second),
        family=run.families.get(judgment.judge),
        subset=run.subset(judgment.item_id),
        group=run.cluster(judgment.item_id) if several or (item and item.group) else None,
        presentation=None if own else order,
        # Both orders of a pair already differ in their presentation.
        repeat=str(judgment.presentation) if own and run.presentations > 1 else None,
        extra={
            "model_a": first,
            "model_b": second,
            **({"order": order} if own else {}),
            **({"role": judgment.role} if judgment.role != "voting" else {}),
        },
    )


def score_rows(folder: RunFolder, *, observers: bool = False) -> Iterator[VoteRow]:
    """The scores of a run: an item ``q1#candidate`` for each response, grouped by item.

    The vote is the judge's mean over the criteria, weighted as the item's criteria say
    (:func:`~clash.analysis.verdicts.weighted_score`); null where the judge failed or gave that
    response no score. The label is people's mean score.

    Args:
        folder: the run.
        observers: the observers' judgments too.

    Raises:
        RunFolderError: a judgment whose blinding is missing.
    """
    run = _RunRecords.of(folder, observers=observers)
    weights = {
        record.item_id: {criterion.name: criterion.weight for criterion in record.criteria}
        for record in folder.criteria()
    }
    for judgment in run.judgments:
        rubric = weights.get(judgment.item_id, {})
        item_labels = run.labels.get(judgment.item_id, ())
        for label, candidate in run.page_labels(judgment).items():
            yield VoteRow(
                item=f"{judgment.item_id}#{candidate}",
                judge=judgment.judge,
                vote=weighted_score(judgment.scores.get(label, {}), rubric),
                label=_label_score(item_labels, candidate),
                family=run.families.get(judgment.judge),
                subset=run.subset(judgment.item_id),
                group=run.cluster(judgment.item_id),
                repeat=str(judgment.presentation) if run.presentations > 1 else None,
                extra={"model": candidate, "slot": label},
            )


def _label_score(labels: Sequence[Label], candidate: str) -> float | None:
    values = [value for label in labels for value in label.scores.get(candidate, {}).values()]
    return sum(values) / len(values) if values else None
