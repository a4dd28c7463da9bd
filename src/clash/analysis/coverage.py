"""The outcome of every item, response and judgment, counted: denominators that include failures."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import msgspec

from clash.records import CONTRADICTION, MISSING_REASON
from clash.stats.intervals import Interval, wilson_clustered
from clash.store.stored import parts
from clash.votes.ballots import outcomes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clash.analysis.rundata import RunData
    from clash.records import Judgment, Verdict
    from clash.votes.ballots import JudgmentOutcome


@dataclass(frozen=True)
class Coverage:
    """Counts that add up.

    Attributes:
        items: all; decided, tied and abstained ones add up to it.
        abstained: items without a verdict, by reason.
        n_expected: voting judgments there should be: one a judge, item and presentation.
        n_clean, n_repaired, failures: what came, and failures by cause; ``not_run`` is the rest.
        responses_failed: responses that could not be had, by candidate.
        criteria: items by source of their criteria.
        n_flagged: responses in which something was defused, by what it was.
        n_contradicted: judgments whose scores contradict the ranking, of the voting judges.
        n_unreasoned: judgments with a low score and no reason for it, of the voting judges.
        n_excluded: voting judgments not to be made (``exclude_self``); not in ``n_expected``.
    """

    json_keys: ClassVar[Mapping[str, str]] = {
        "n_decided": "decided",
        "n_tied": "tied",
        "n_expected": "expected",
        "n_clean": "clean",
        "n_repaired": "repaired",
        "failures": "failed",
        "n_scrubbed": "scrubbed",
        "n_flagged": "flagged",
        "n_contradicted": "contradicted",
        "n_unreasoned": "unreasoned",
        "n_excluded": "excluded",
    }

    items: int
    n_decided: int
    n_tied: int
    abstained: dict[str, int]
    n_expected: int
    n_clean: int
    n_repaired: int
    failures: dict[str, int]
    not_run: int
    responses_failed: dict[str, int]
    criteria: dict[str, int]
    n_scrubbed: int
    n_flagged: int
    n_contradicted: int
    n_unreasoned: int
    n_excluded: int = 0


@dataclass(frozen=True)
class Unanimity:
    """How the panel split, over all items.

    Attributes:
        rate: unanimous items out of all, those without a verdict included; not those that an
            interrupted run has not judged.
        splits: items by split.
    """

    unanimous: int
    rate: Interval
    splits: dict[str, int]
    mean_confidence: float | None


class ResponseText(msgspec.Struct, gc=False):
    """The text of a response."""

    candidate: str
    text: str | None = None


def coverage(run: RunData) -> Coverage:
    """Count everything."""
    n_expected = run.n_voting_pages
    missing = Counter(r.candidate for r in parts(run.responses, ResponseText) if r.text is None)
    tally = _JudgmentTally()
    for judgment in outcomes(run.judgments):
        tally.add(judgment)
    decisions = Counter((v.is_decided, is_tied(v)) for v in run.verdicts)
    return Coverage(
        items=len(run.verdicts),
        n_decided=decisions[True, False],
        n_tied=decisions[True, True] + decisions[False, True],
        abstained=dict(Counter(v.abstained.partition(":")[0] for v in run.verdicts if v.abstained)),
        n_expected=n_expected,
        n_clean=tally.parses["clean"],
        n_repaired=tally.parses["repaired"],
        failures=dict(tally.failures),
        not_run=n_expected - tally.parses.total(),
        responses_failed=dict(missing),
        criteria=dict(Counter(record.source for record in run.criteria.values())),
        n_scrubbed=_count_scrubs(run),
        n_flagged=len(tally.flags),
        n_contradicted=tally.n_contradicted,
        n_unreasoned=tally.n_unreasoned,
        n_excluded=run.n_excluded,
    )


@dataclass
class _JudgmentTally:
    """What is counted of the judgments; of the voting judges', but for ``flags``.

    Attributes:
        flags: of responses, by item; what a judgment is flagged for itself is counted beside them.
    """

    parses: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    flags: set[tuple[str, str]] = field(default_factory=set)
    n_contradicted: int = 0
    n_unreasoned: int = 0

    def add(self, judgment: JudgmentOutcome) -> None:
        for flag in judgment.flags:
            if flag not in (CONTRADICTION, MISSING_REASON):
                self.flags.add((judgment.item_id, flag))
        if judgment.role == "voting":
            self.parses[judgment.parse] += 1
            if not judgment.is_usable:
                self.failures[cause(judgment)] += 1
            self.n_contradicted += CONTRADICTION in judgment.flags
            self.n_unreasoned += MISSING_REASON in judgment.flags


def is_tied(verdict: Verdict) -> bool:
    """Whether a verdict ranks two responses first."""
    return verdict.ranking is not None and verdict.winner is None


def cause(judgment: Judgment | JudgmentOutcome) -> str:
    """Why a judgment failed, in a word or two."""
    error = judgment.error or "unknown"
    head = error.partition(":")[0]
    return head if head.replace("_", "").isalpha() and len(head) < 24 else "unreadable"


def _count_scrubs(run: RunData) -> int:
    """Responses that said who wrote them."""
    pages = run.blinds.records
    return len({(b.item_id, scrub.candidate) for b in pages for scrub in b.scrubbed})


def unanimity(run: RunData) -> Unanimity:
    """Unanimous and split verdicts."""
    judged_verdicts = [v for v in run.verdicts if v.item_id not in run.unjudged_items]
    flags = [float(v.unanimous) for v in judged_verdicts]
    clusters = [run.clusters[verdict.item_id] for verdict in judged_verdicts]
    sure = [v.confidence for v in run.verdicts if v.confidence is not None]
    return Unanimity(
        unanimous=int(sum(flags)),
        rate=wilson_clustered(flags, clusters),
        splits=dict(Counter(v.split for v in run.verdicts if v.split)),
        mean_confidence=sum(sure) / len(sure) if sure else None,
    )
