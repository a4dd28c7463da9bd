"""How much better than chance each judge is: by labels where there are some, else by agreement.

The one place where this is decided; ``diagnose`` and ``power`` both ask here, so that one does not
recommend what the other condemns.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from clash.stats.intervals import Interval, difference, wilson_clustered
from clash.stats.triangle import FEWEST_CLUSTERS, Triangle, agreement_triangle

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.stats.typing import Codes, Floats
    from clash.votes import LabelUse, Votes

ENOUGH_LABELS = 30
"""Decisive ballots with a label from which on a judge is measured by labels."""
DEPENDENT = 0.01
"""A fit of independent judges less likely than this is no ground to act against a judge."""
PEOPLE = ("human", "people", "crowd", "annotator")
Source = Literal["labels", "agreement"]


@dataclass(frozen=True)
class JudgeEdge:
    """One judge.

    Attributes:
        edge: rates of being right on either side, less 1, over decisive ballots: 1 follows the
            truth, 0 tosses a coin or always says the same, -1 inverts the truth. Null where
            nothing tells.
        accuracy: share of its decisive ballots that are right: against labels as counted, from
            agreement (1 + edge) / 2.
        source: what tells.
        evidence: whether the interval may be held against the judge: not where it rests on an
            agreement that independent judges would not show.
    """

    judge: str
    edge: Interval | None
    accuracy: Interval | None
    source: Source | None
    evidence: bool

    @property
    def estimate(self) -> float:
        """The edge; NaN where nothing tells."""
        return math.nan if self.edge is None else self.edge.estimate


@dataclass(frozen=True)
class PanelEdges:
    """The judges of a panel.

    Attributes:
        judges: in the order of the votes.
        source: what tells of most of them; null where nothing does.
        accuracy: share of items that the majority of all judges gets right, half for a tie:
            counted against labels, or what independent judges of these edges would reach.
        mean_accuracy: of a judge, over those that are known.
        p_independent: of the agreement, if the judges erred independently; null where agreement
            was not asked or cannot tell.
        unknown: why the edges of some judges are not known; empty where all are.
    """

    judges: tuple[JudgeEdge, ...]
    source: Source | None
    accuracy: Interval | None
    mean_accuracy: float | None
    p_independent: float | None
    unknown: str

    @property
    def is_dependent(self) -> bool:
        """Whether the agreement is not that of judges that err independently."""
        return self.p_independent is not None and self.p_independent < DEPENDENT

    def label_use(self, labels: LabelUse) -> str:
        """What becomes of the labels, for a screen: where they are few, no judge is measured by them."""
        if not labels.used or not labels.labelled or any(j.source == "labels" for j in self.judges):
            return labels.sentence
        have, _, _ = labels.sentence.partition(";")
        return (
            f"{have}; no judge has the {ENOUGH_LABELS} decisive votes on decisive labels that would"
            " measure it"
        )


def judge_edges(votes: Votes, seed: int = 0) -> PanelEdges:
    """The edge of every judge.

    People are measured by agreement: labels are made of their votes.

    Args:
        votes: sides and ties; ties count neither for nor against a judge.
        seed: of the bootstrap behind the accuracy of a panel without labels.
    """
    by_label = [_by_labels(votes, index) for index in range(len(votes.judges))]
    if all(edge is not None for edge in by_label):
        judges = tuple(edge for edge in by_label if edge is not None)
        return _panel(judges, "labels", _labelled_accuracy(votes), None, "")
    spins = np.where(np.isin(votes.matrix, (0.0, 1.0)), 2 * votes.matrix - 1, 0.0)
    triangle = agreement_triangle(
        spins, own_voices(votes), votes.groups, rng=np.random.default_rng(seed)
    )
    judges = tuple(
        edge or _by_agreement(votes, index, triangle) for index, edge in enumerate(by_label)
    )
    source = _commonest([judge.source for judge in judges])
    accuracy = triangle.accuracy if source == "agreement" else _labelled_accuracy(votes)
    p = None if math.isnan(triangle.p_independent) else triangle.p_independent
    unknown = "" if all(j.edge is not None for j in judges) else _reason(spins, votes)
    return _panel(judges, source, accuracy, p, unknown)


def own_voices(votes: Votes) -> Codes:
    """(J,), equal where two judges do not count as two; all differ where there is one family.

    A family says the same thing twice; people are a family of one each.
    """
    names = [
        f"\0{judge}" if family is None or family.lower() in PEOPLE else family
        for judge, family in zip(votes.judges, votes.families, strict=True)
    ]
    if len(set(names)) == 1:
        return np.arange(len(names))
    return np.unique(names, return_inverse=True)[1].astype(np.intp)


def _panel(
    judges: tuple[JudgeEdge, ...],
    source: Source | None,
    accuracy: Interval | None,
    p_independent: float | None,
    unknown: str,
) -> PanelEdges:
    shares = [judge.accuracy.estimate for judge in judges if judge.accuracy is not None]
    mean = float(np.mean(shares)) if shares else None
    return PanelEdges(judges, source, accuracy, mean, p_independent, unknown)


def _commonest(sources: Sequence[Source | None]) -> Source | None:
    by_labels, by_agreement = sources.count("labels"), sources.count("agreement")
    if not by_labels and not by_agreement:
        return None
    return "labels" if by_labels >= by_agreement else "agreement"


def _by_labels(votes: Votes, index: int) -> JudgeEdge | None:
    """By the labels; null for a person, and where fewer than 30 ballots have one."""
    column = votes.matrix[:, index]
    decisive = np.isin(column, (0.0, 1.0)) & np.isin(votes.labels, (0.0, 1.0))
    is_person = (votes.families[index] or "").lower() in PEOPLE
    if is_person or decisive.sum() < ENOUGH_LABELS:
        return None
    vote, label, groups = column[decisive], votes.labels[decisive], votes.groups[decisive]
    accuracy = wilson_clustered((vote == label).astype(float), groups)
    if np.ptp(label) == 0:
        # Labels of one side cannot tell a judge that follows it from one that always says so.
        edge = accuracy.transform(lambda share: 2 * share - 1)
    else:
        sides = [wilson_clustered(vote[label == side], groups[label == side]) for side in (1, 0)]
        edge = difference(*sides)
    return JudgeEdge(votes.judges[index], edge, accuracy, "labels", evidence=True)


def _by_agreement(votes: Votes, index: int, triangle: Triangle) -> JudgeEdge:
    if not triangle.is_identified[index]:
        return JudgeEdge(votes.judges[index], None, None, None, evidence=False)
    estimate, low, high = (
        float(part[index]) for part in (triangle.edges, triangle.low, triangle.high)
    )
    n = float(np.isin(votes.matrix[:, index], (0.0, 1.0)).sum())
    method = "agreement triangle, by distance"
    edge = Interval(estimate, low, high, 0.95, n, triangle.n_clusters, method)
    accuracy = edge.transform(lambda end: (1 + end) / 2)
    # A NaN is no rejection: three judges' covariances always fit.
    independent = not triangle.p_independent < DEPENDENT
    return JudgeEdge(votes.judges[index], edge, accuracy, "agreement", evidence=independent)


def _labelled_accuracy(votes: Votes) -> Interval | None:
    """The majority of all judges against labels that are a side; a tied majority is half right."""
    has_label = np.isin(votes.labels, (0.0, 1.0))
    leans = np.nansum(2 * votes.matrix[has_label] - 1, axis=1)
    has_vote = ~np.isnan(votes.matrix[has_label]).all(axis=1)
    if not has_vote.any():
        return None
    credit = 0.5 + 0.5 * np.sign(leans) * (2 * votes.labels[has_label] - 1)
    return wilson_clustered(credit[has_vote], votes.groups[has_label][has_vote])


def _reason(spins: Floats, votes: Votes) -> str:
    """Why agreement does not tell how good a judge is."""
    n_voices = len(np.unique(own_voices(votes)[(spins != 0).any(axis=0)]))
    if n_voices < 3:
        return (
            "agreement tells how good judges are where there are three of different families, not"
            f" with {n_voices}"
        )
    if len(np.unique(votes.groups)) < FEWEST_CLUSTERS:
        return f"fewer than {FEWEST_CLUSTERS} items are too few to tell it from agreement"
    if len(np.unique(spins[spins != 0])) < 2:
        return "every vote is for the same side, so agreement tells nothing about any judge"
    return "the judges agree on too little for their agreement to tell how good each of them is"
