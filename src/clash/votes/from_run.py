"""A run folder as votes: judgments unblinded, as rankings of candidates and as pairs of them.

An item of two candidates is one item, whose side A is the first of them by name, so that runs of
one prompts file share a frame whatever was shuffled or finished first. An item of K > 2 candidates
becomes K (K - 1) / 2 items, ``q1#a|b``, one for each pair. The pairs of one ranking are not
independent (a before b and b before c leave no choice for a and c), and a method that takes them
for independent counts one judgment several times; so they share the item's ``group``, by which
every interval is clustered.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from itertools import chain, combinations
from typing import TYPE_CHECKING, Any

from clash.config import JudgingConfig
from clash.errors import InputError
from clash.labels import ranks_of, side, truths
from clash.records import Blinding, Criteria, Item, Judgment, Response
from clash.store.stored import select
from clash.votes.ballots import weighted_score
from clash.votes.blinding_index import BlindingIndex, count_presentations, unblind
from clash.votes.matrix import VoteRow, pair_item
from clash.votes.read import encode
from clash.votes.text_labels import people_votes, text_names, text_truth

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from clash.labels import Truth
    from clash.records import Label
    from clash.store.folder import RunFolder
    from clash.store.manifest import Manifest
    from clash.votes.matrix import Votes


@dataclass(frozen=True)
class Panelist:
    """A judge as the manifest lists it."""

    id: str
    role: str
    weight: float
    family: str
    model: str
    stands_in_for: str | None = None

    @property
    def seat(self) -> str:
        """The judge whose place this one has on the panel."""
        return self.stands_in_for or self.id


def read_panelists(folder: RunFolder, manifest: Manifest) -> tuple[Panelist, ...]:
    """The judges that a run's manifest lists, without the fallbacks that nobody asked."""
    judges: list[Mapping[str, Any]] = manifest.panel["judges"]
    stand_ins = {j["id"] for j in judges if j.get("stands_in_for")}
    judges_with_judgments = {j.judge for j in folder.records(Judgment)} if stand_ins else set()
    return tuple(
        Panelist(j["id"], j["role"], j["weight"], j["family"], j["model"], j.get("stands_in_for"))
        for j in judges
        if j["id"] not in stand_ins or j["id"] in judges_with_judgments
    )


def read_judging(manifest: Manifest) -> JudgingConfig | None:
    """What was asked of each text, where a run judges each by itself; else null."""
    section = manifest.config.get("judging")
    judging = JudgingConfig() if section is None else JudgingConfig.model_validate(section)
    return judging if judging.is_single else None


_INSTEAD = {
    "clash review": "add people's labels to labels.jsonl of the run, one a line: "
    '{"item_id": "q1", "annotator": "ann", "vote": "yes"}; then `clash report`',
    "clash choose": "`clash report` compares the candidates by pass rate or score, and their cost",
    "clash variance": "`clash rerun` says how often the panel repeats itself, `--both-orders` how "
    "often the order of the labels changes a judge's answer",
}
"""What answers the question on single texts, by the command that does not."""


def require_rankings(manifest: Manifest, purpose: str) -> None:
    """Refuse a run that judges each text by itself where rankings are needed.

    Args:
        manifest: of the run.
        purpose: what needs them, as the beginning of a sentence.

    Raises:
        InputError: the run has none.
    """
    if read_judging(manifest) is not None:
        raise InputError(
            f"{purpose} compares responses, and {manifest.run} judges each text by itself",
            hint=_INSTEAD.get(
                purpose,
                "`clash report`, `explain`, `aggregate`, `compare`, `rerun` and `gate` take such runs",
            ),
        )


def without_controls(items: Sequence[Item]) -> Sequence[Item]:
    """The items without control items; all items where there are only controls."""
    rows = [row for row, item in enumerate(items) if item.control is None]
    return select(items, rows) if 0 < len(rows) < len(items) else items


@dataclass(frozen=True)
class _RunRecords:
    """What the votes of a run are made from; records stay on disk.

    Attributes:
        items: those that count.
        controls: the ids of the others.
        places: group and first tag of each item that has one.
    """

    folder: RunFolder
    items: Sequence[Item]
    controls: Collection[str]
    places: Mapping[str, tuple[str | None, str | None]]
    blinds: BlindingIndex
    families: Mapping[str, str]
    truths: Mapping[str, Truth]
    labels: Mapping[str, Sequence[Label]]
    presentations: int
    pages_of_text: int
    observers: bool

    @classmethod
    def of(cls, folder: RunFolder, *, observers: bool) -> _RunRecords:
        manifest, labels_of = folder.manifest(), defaultdict(list)
        labels = folder.labels()
        for label in labels:
            labels_of[label.item_id].append(label)
        judges = manifest.panel.get("judges", [])
        blinds = BlindingIndex.of(folder.records(Blinding))
        all_items = folder.records(Item)
        items = without_controls(all_items)
        return cls(
            folder,
            items,
            frozenset(
                ()
                if items is all_items
                else (i.item_id for i in all_items if i.control is not None)
            ),
            {
                item.item_id: (item.group, item.tags[0] if item.tags else None)
                for item in items
                if item.group or item.tags
            },
            blinds,
            {judge["id"]: judge["family"] for judge in judges if judge.get("family")},
            truths(items, labels),
            labels_of,
            blinds.presentations,
            count_presentations(manifest),
            observers,
        )

    def judgments(self) -> Iterator[Judgment]:
        """Those of the voting judges, on items that count; of the observers too where asked for."""
        for judgment in self.folder.records(Judgment):
            is_of_panel = self.observers or judgment.role == "voting"
            if is_of_panel and judgment.item_id not in self.controls:
                yield judgment

    def page_labels(self, judgment: Judgment) -> Mapping[str, str]:
        """The labels of the page behind a judgment, in the order shown."""
        return self.blinds.labels(judgment)

    def own_order(self, judgment: Judgment) -> bool:
        """Whether this judge saw a shuffle of its own."""
        return self.blinds.is_own(judgment)

    def group(self, item_id: str) -> str | None:
        """The group of an item; null where it has none."""
        return self.places.get(item_id, (None, None))[0]

    def cluster(self, item_id: str) -> str:
        """The group of an item, or the item alone."""
        return self.group(item_id) or item_id

    def subset(self, item_id: str) -> str | None:
        """The first tag of an item."""
        return self.places.get(item_id, (None, None))[1]


def vote_rows(folder: RunFolder, *, observers: bool = False) -> Iterator[VoteRow]:
    """The votes of a run, one for each judgment and pair of its candidates.

    ``presentation`` is ``orig`` where the pair's first candidate by name was shown first. Where
    each judge had a shuffle of its own, judges of one item would fall into different rows by
    that, so the order is kept in the extra key ``order`` instead. The label is what the truth of
    the item says of the pair (:mod:`clash.labels`). ``subset`` is the item's first tag.

    A run that judges each text by itself has a vote for each judgment: 1 for the first of two labels
    and 0 for the second, or the score. With three labels or more, each label is an item (``q1#spam``)
    with votes of 1 and 0, all in the group of the text. ``presentation`` is then ``orig`` where the
    page lists the labels in the order of the configuration.

    Args:
        folder: the run.
        observers: the observers' judgments too.

    Raises:
        RunFolderError: a judgment whose blinding is missing.
    """
    judging = read_judging(folder.manifest())
    run = _RunRecords.of(folder, observers=observers)
    if judging is not None:
        yield from _text_rows(run, judging)
        return
    for judgment in run.judgments():
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
    has_own_order = run.own_order(judgment)
    truth = run.truths.get(judgment.item_id)
    return VoteRow(
        item=pair_item(judgment.item_id, first, second, len(page)),
        judge=judgment.judge,
        vote=None if ranking is None else side(ranks_of(ranking), first, second),
        label=None if truth is None else truth.side(first, second),
        family=run.families.get(judgment.judge),
        subset=run.subset(judgment.item_id),
        group=run.cluster(judgment.item_id) if several else run.group(judgment.item_id),
        presentation=None if has_own_order else order,
        # Both orders of a pair already differ in their presentation.
        repeat=str(judgment.presentation) if has_own_order and run.presentations > 1 else None,
        extra={
            "model_a": first,
            "model_b": second,
            **({"order": order} if has_own_order else {}),
            **({"role": judgment.role} if judgment.role != "voting" else {}),
        },
    )


def _text_rows(run: _RunRecords, judging: JudgingConfig) -> Iterator[VoteRow]:
    """A vote for each judgment of a text; of three labels or more, one for each label."""
    texts = [
        (response.item_id, response.candidate)
        for response in run.folder.records(Response)
        if response.item_id not in run.controls
    ]
    names = text_names(texts)
    opinions = people_votes(
        texts,
        run.items,
        [label for labels_of_item in run.labels.values() for label in labels_of_item],
        judging,
    )
    labels = list(judging.labels)
    for judgment in run.judgments():
        candidate = next(iter(run.page_labels(judgment).values()), None)
        if candidate is None:
            continue  # it failed before it saw a page
        key = judgment.item_id, candidate
        truth = text_truth(opinions.get(key, {}))
        own_order = run.own_order(judgment)
        choices = list(run.blinds.choices(judgment))
        order = "orig" if choices == judging.choices else "swap"
        several = len(labels) > 2
        for label in labels if several else labels[:1] or [""]:
            yield VoteRow(
                item=f"{names[key]}#{label}" if several else names[key],
                judge=judgment.judge,
                vote=_text_vote(judgment.vote, label),
                label=_text_vote(truth, label),
                family=run.families.get(judgment.judge),
                subset=run.subset(judgment.item_id),
                group=run.cluster(judgment.item_id)
                if several or names[key] != judgment.item_id
                else run.group(judgment.item_id),
                presentation=None if own_order or several else order,
                repeat=str(judgment.presentation % run.pages_of_text)
                if (own_order or several) and run.pages_of_text > 1
                else None,
                extra={
                    "model": candidate,
                    **({"says": judgment.vote} if labels else {}),
                    **({"role": judgment.role} if judgment.role != "voting" else {}),
                },
            )


def _text_vote(vote: str | float | None, label: str) -> float | None:
    """1 for a label and 0 for another one; a score as it is; null for none."""
    return float(vote == label) if isinstance(vote, str) else vote


def score_rows(folder: RunFolder, *, observers: bool = False) -> Iterator[VoteRow]:
    """The scores of a run: an item ``q1#candidate`` for each response, grouped by item.

    The vote is the judge's mean over the criteria, weighted as the item's criteria say
    (:func:`~clash.votes.ballots.weighted_score`); null where the judge failed or gave that
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
        for record in folder.records(Criteria)
    }
    for judgment in run.judgments():
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


def run_votes(
    folder: RunFolder,
    *,
    judges: str | Sequence[str] | None = None,
    subset: str | Sequence[str] | None = None,
    presentation: str | None = None,
    decisive: bool = False,
    observers: bool = False,
    scores: bool = False,
) -> Votes:
    """The votes of a run folder, as :func:`clash.votes.read_votes` would read its export.

    Args:
        folder: the run.
        judges: as there.
        subset: as there.
        presentation: as there.
        decisive: as there.
        observers: the observers' judgments too.
        scores: mean criteria scores of each response, instead of outcomes of pairs.

    Raises:
        InputError: as :func:`read_votes`, without lines; a run without judgments.
        RunFolderError: a judgment whose blinding is missing.
    """
    rows = (score_rows if scores else vote_rows)(folder, observers=observers)
    first = next(rows, None)
    if first is None:
        raise InputError(
            "holds no judgment that can be used",
            path=folder.path,
            hint=f"`clash resume {folder.path}`, if it was interrupted",
        )
    votes = encode(
        chain([first], rows),
        judges=judges,
        subset=subset,
        presentation=presentation,
        decisive=decisive,
        source=folder.path,
    )
    judging = read_judging(folder.manifest())
    has_scores = scores or (judging is not None and judging.mode == "score")
    # Scores that all happen to be 0 or 1 are scores still.
    return replace(votes, kind="numeric") if has_scores else votes
