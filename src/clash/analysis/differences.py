"""Where judges and people disagree: items by how the panel split, and the most telling ones."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from clash.analysis.concordance.cases import CaseRate, concordance_of, labelled_cases
from clash.analysis.explanation.disagreements import telling_disagreements

if TYPE_CHECKING:
    from clash.analysis.concordance.cases import LabelledCase
    from clash.analysis.rundata import RunData
    from clash.records import Verdict

Agreement = Literal["unanimous", "split", "tied", "none"]
MOST_TELLING = 5
_ORDER: tuple[Agreement, ...] = ("unanimous", "split", "tied", "none")


@dataclass(frozen=True)
class SplitGroup:
    """Items on which the panel split in the same way.

    Attributes:
        kind: every judge put the same response first; they did not, but there is a winner; the
            panel ties; there is no verdict.
        disagree, agree, n_unlabelled: what people say of them; these add up to all of them.
    """

    kind: Agreement
    disagree: int
    agree: int
    n_unlabelled: int

    @property
    def n(self) -> int:
        """All items of the group."""
        return self.disagree + self.agree + self.n_unlabelled


@dataclass(frozen=True)
class Differences:
    """Where judges and people disagree.

    Attributes:
        groups: those with an item; items that an interrupted run has not judged are in none.
        longest: agreement with people where they preferred the longest response; null where no
            label does, or a label is all there is.
        shorter: the same where they preferred a shorter one.
        telling: the most telling disagreements, at most five.
    """

    groups: tuple[SplitGroup, ...]
    longest: CaseRate | None
    shorter: CaseRate | None
    telling: tuple[str, ...]

    @property
    def disagree(self) -> int:
        """Labelled items on which panel and people disagree."""
        return sum(group.disagree for group in self.groups)

    @property
    def n_labelled(self) -> int:
        """Items with a label."""
        return sum(group.disagree + group.agree for group in self.groups)


def differences(run: RunData) -> Differences:
    """Sort the items of a run by how its panel split and what people say."""
    counts: Counter[tuple[Agreement, bool | None]] = Counter()
    for verdict in run.verdicts:
        if verdict.item_id in run.unjudged_items:
            continue
        label = run.truth.get(verdict.item_id)
        is_match = None if label is None else verdict.outcome == label
        counts[_kind(verdict), is_match] += 1
    groups = [SplitGroup(k, counts[k, False], counts[k, True], counts[k, None]) for k in _ORDER]
    cases = labelled_cases(run)
    return Differences(
        groups=tuple(group for group in groups if group.n),
        longest=_rate([case for case in cases if _prefers_longest(case) is True]),
        shorter=_rate([case for case in cases if _prefers_longest(case) is False]),
        telling=tuple(line.item_id for line in telling_disagreements(run, MOST_TELLING)),
    )


def _kind(verdict: Verdict) -> Agreement:
    if verdict.ranking is None:
        return "none"
    if verdict.winner is None:
        return "tied"
    return "unanimous" if verdict.unanimous else "split"


def _rate(cases: list[LabelledCase]) -> CaseRate | None:
    return concordance_of(cases) if cases else None


def _prefers_longest(case: LabelledCase) -> bool | None:
    """Whether people chose the longest response; null for a tie or where several are longest."""
    longest = max(case.lengths.values(), default=0)
    names = [name for name, length in case.lengths.items() if length == longest]
    if len(names) != 1 or case.label not in case.lengths:
        return None
    return case.label == names[0]
