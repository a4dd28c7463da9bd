"""What is wrong with a published evaluation, by its own records, and what its headline should be."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np

from clash.errors import StatisticsError
from clash.stats.agreement import Kappa, cohen_kappa
from clash.stats.hypothesis_tests import PairedDifference, paired_difference, sign_test
from clash.stats.intervals import Interval, wilson, wilson_clustered
from clash.wording import part, plural

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

Status = Literal["present", "absent", "unknown"]
TIE = "tie"
_SIDES = {"A": 0, "B": 1, TIE: 2}
_BASELINE_WORDS = ("baseline", "heuristic", "length", "longest", "random", "first")
"""Words in the names of judges that are rules instead of models."""


@dataclass(frozen=True)
class PairEvaluation:
    """One evaluation of one pair, as its makers recorded it; sides are in the frame of the label.

    Attributes:
        row: where it stands, for people: a line or an id.
        item: the pair.
        cluster: what it shares its errors with: the question, the group.
        content: equal for pairs whose prompt and responses are equal; empty where not known.
        copy: the declared presentation and repeat; empty where there is one of each.
        label: ``A``, ``B`` or ``tie``; null without one.
        verdict: the published outcome, likewise; null where there is none.
        votes: by voting judge; null for one that failed.
        first: the side in the first slot of the page.
        longer: the side with the longer text; null where not known or equal.
        is_earlier: the makers' own result rests on a later evaluation of the pair.
    """

    row: str
    item: str
    cluster: str
    label: str | None
    verdict: str | None
    votes: Mapping[str, str | None]
    content: str = ""
    copy: str = ""
    first: str = "A"
    longer: str | None = None
    is_earlier: bool = False

    @property
    def tally(self) -> str | None:
        """What most judges say; ``tie`` where as many say one side as the other; null for none."""
        counts = Counter(vote for vote in self.votes.values() if vote is not None)
        if not counts:
            return None
        lead = counts["A"] - counts["B"]
        return TIE if lead == 0 else "A" if lead > 0 else "B"

    @property
    def is_split(self) -> bool:
        """Whether as many judges say A as B, and some do."""
        tally = Counter(self.votes.values())
        return tally["A"] == tally["B"] > 0


@dataclass(frozen=True)
class Flaw:
    """One thing that may be wrong with a published evaluation.

    Attributes:
        name: ``repeats``, ``retries``, ``slot-ties``, ``pseudo-replication``, ``kappa``,
            ``dropped-failures`` or ``baselines``.
        status: whether it is there, or the records cannot tell.
        sentence: what was counted, for people.
        rows: the records that show it.
        headline: the headline with this alone put right; null where that is not its subject.
    """

    name: str
    status: Status
    sentence: str
    rows: tuple[str, ...] = ()
    headline: Interval | None = None


@dataclass(frozen=True)
class BaselineRate:
    """A simple rule in place of the judges, on the same pairs.

    Attributes:
        difference: corrected headline less this, on the same pairs.
    """

    name: str
    rate: Interval
    difference: PairedDifference


@dataclass(frozen=True)
class PublishedFigures:
    """What the makers say; null where they, or the person who asks, do not."""

    concordance: float | None = None
    kappa: float | None = None
    n: int | None = None


@dataclass(frozen=True)
class PublishedAudit:
    """An evaluation, as published and corrected.

    Attributes:
        name: of the evaluation.
        basis: where the published headline comes from.
        published_headline: agreement with the labels as its makers count it, as if all were independent.
        corrected_headline: each pair once, its last evaluation, a split panel worth half, a failure a miss,
            clustered.
        kappa: of the corrected verdicts with the labels, over sides.
        n_records: evaluations, with and without a label.
        flaws: each of the seven, in a fixed order.
        baselines: on the corrected pairs.
    """

    name: str
    basis: str
    published_headline: Interval
    corrected_headline: Interval
    kappa: Kappa
    published_kappa: float | None
    n_records: int
    flaws: tuple[Flaw, ...]
    baselines: tuple[BaselineRate, ...] = field(default=())

    @property
    def n_present(self) -> int:
        """Flaws that are there."""
        return sum(flaw.status == "present" for flaw in self.flaws)


def audit_evaluations(
    name: str,
    evaluations: Sequence[PairEvaluation],
    figures: PublishedFigures,
    *,
    has_baselines: bool = False,
) -> PublishedAudit:
    """Look for seven flaws and correct the headline.

    Args:
        name: of the evaluation.
        evaluations: in the order of their records.
        figures: what is published; else the headline is counted as is usual without care.
        has_baselines: the evaluation is reported beside baselines.

    Raises:
        StatisticsError: no evaluation has a label.
    """
    rows = [e for e in evaluations if e.label is not None]
    records = [e for e in rows if not e.is_earlier]
    if not records:
        raise StatisticsError(
            "no record has a label, so there is no headline to correct"
            "\n  fix: name a file whose rows have a label"
        )
    published_headline, basis = _as_published(records, figures)
    sound_records = _unique(_newest(records))
    corrected_headline = _rate(sound_records, _fair_credit)
    flaws = (
        _repeats(records),
        _retries(rows),
        _slot_ties(records),
        _pseudo_replication(records),
        _kappa_flaw(records, sound_records, figures),
        _dropped_failures(records, figures),
        _baseline_flaw(records, has_baselines=has_baselines),
    )
    return PublishedAudit(
        name,
        basis,
        published_headline,
        corrected_headline,
        _kappa(sound_records),
        figures.kappa,
        len(evaluations),
        flaws,
        tuple(_baselines(sound_records)),
    )


# -- headlines ------------------------------------------------------------------------------------


def _outcome(evaluation: PairEvaluation) -> str | None:
    """The published outcome; where only votes are, a majority that gives ties to the first slot."""
    if evaluation.verdict is not None or not evaluation.votes:
        return evaluation.verdict
    tally = evaluation.tally
    return evaluation.first if tally == TIE and evaluation.is_split else tally


def _as_published(
    rows: Sequence[PairEvaluation], figures: PublishedFigures
) -> tuple[Interval, str]:
    with_outcome = [row for row in rows if _outcome(row) is not None]
    has_verdicts = any(row.verdict is not None for row in rows)
    if figures.concordance is not None:
        n = figures.n or len(rows)
        return wilson(round(figures.concordance * n), n), "as published"
    right = sum(_outcome(row) == row.label for row in with_outcome)
    basis = "the verdicts in the records" if has_verdicts else "a majority, ties to the first slot"
    return wilson(right, len(with_outcome)), basis


def _naive_credit(row: PairEvaluation) -> float:
    return float(_outcome(row) == row.label)


def _fair_credit(row: PairEvaluation) -> float:
    """1 where right, half where the judges are split and the label is a side, 0 without a vote."""
    outcome = row.tally if any(row.votes.values()) else row.verdict
    if outcome == row.label:
        return 1.0
    return 0.5 if outcome == TIE and row.label != TIE else 0.0


def _rate(rows: Sequence[PairEvaluation], credit: Callable[[PairEvaluation], float]) -> Interval:
    return wilson_clustered([credit(row) for row in rows], _clusters(rows))


def _clusters(rows: Sequence[PairEvaluation]) -> list[int]:
    codes: dict[str, int] = {}
    return [codes.setdefault(row.cluster, len(codes)) for row in rows]


def _newest(rows: Sequence[PairEvaluation]) -> list[PairEvaluation]:
    """The last evaluation of each pair and declared copy."""
    return list({(row.item, row.copy): row for row in rows}.values())


def _unique(rows: Sequence[PairEvaluation]) -> list[PairEvaluation]:
    """Pairs whose prompt and responses are those of an earlier one are left out."""
    first = {(row.content or row.item, row.copy): row for row in reversed(rows)}
    return [row for row in rows if first[row.content or row.item, row.copy] is row]


# -- flaws ----------------------------------------------------------------------------------------


def _repeats(rows: Sequence[PairEvaluation]) -> Flaw:
    by_content: dict[tuple[str, str], dict[str, PairEvaluation]] = defaultdict(dict)
    for row in rows:
        if row.content:
            by_content[row.content, row.copy].setdefault(row.item, row)
    if not by_content:
        return Flaw(
            "repeats", "unknown", "The records hold no texts, so equal pairs cannot be seen."
        )
    groups = [list(group.values()) for group in by_content.values() if len(group) > 1]
    if not groups:
        return Flaw("repeats", "absent", "No pair occurs under two names.")
    extra = sum(len(group) - 1 for group in groups)
    return Flaw(
        "repeats",
        "present",
        f"{part(extra, len(_newest(rows)), 'pair', ('repeats', 'repeat'))} another word for word.",
        tuple(" = ".join(row.row for row in group) for group in groups),
        _rate(_unique(rows), _naive_credit),
    )


def _retries(rows: Sequence[PairEvaluation]) -> Flaw:
    newest = set(map(id, _newest([row for row in rows if not row.is_earlier])))
    again = [row for row in rows if id(row) not in newest]
    if not again:
        return Flaw("retries", "absent", "Every pair was evaluated once.")
    in_table = [row for row in again if not row.is_earlier]
    every = _rate(rows, _naive_credit)
    last = _rate([row for row in rows if id(row) in newest], _naive_credit)
    scope = (
        "are counted" if in_table else "are in the log, where a table over every record counts them"
    )
    return Flaw(
        "retries",
        "present",
        f"{plural(len(again), 'earlier evaluation')} of pairs that were evaluated again {scope}:"
        f" {every.estimate:.1%} of {every.n:.0f} records, {last.estimate:.1%} of {last.n:.0f} pairs.",
        tuple(row.row for row in again),
        last,
    )


def _slot_ties(rows: Sequence[PairEvaluation]) -> Flaw:
    split = [row for row in rows if row.is_split]
    if not split:
        return Flaw("slot-ties", "absent", "No panel is split evenly.")
    with_winner = [row for row in split if row.verdict in ("A", "B")]
    rate_of_halves = _rate(rows, lambda row: (_fair_credit if row.is_split else _naive_credit)(row))
    names = tuple(row.row for row in split)
    if all(row.verdict == TIE for row in split):
        return Flaw("slot-ties", "absent", "Evenly split panels stay ties.", names)
    if not with_winner:
        text = f"{plural(len(split), 'evenly split panel')}; the records do not say who won there."
        return Flaw("slot-ties", "unknown", text, names, rate_of_halves)
    first = sum(row.verdict == row.first for row in with_winner)
    by_slot = sign_test(first, len(with_winner) - first)
    is_same_slot = first in (0, len(with_winner))
    text = (
        f"{plural(len(with_winner), 'evenly split panel')} with a winner, {first} of them the response in"
        f" the first slot (sign test p = {by_slot.p:.3f})."
    )
    # A few ties that all go to one slot show no rule, and rule none out.
    status: Status = "present" if by_slot.p < 0.05 else "unknown" if is_same_slot else "absent"
    return Flaw("slot-ties", status, text, tuple(row.row for row in with_winner), rate_of_halves)


def _pseudo_replication(rows: Sequence[PairEvaluation]) -> Flaw:
    sizes = Counter(row.cluster for row in rows)
    by_question = _rate(rows, _naive_credit)
    if len(sizes) == len(rows):
        return Flaw("pseudo-replication", "absent", "Every record has a question of its own.")
    text = (
        f"{plural(len(rows), 'record')} share {plural(len(sizes), 'question')}, and are worth"
        f" {by_question.n_effective:.0f} independent ones."
    )
    names = tuple(f"{name}: {n} records" for name, n in sizes.most_common() if n > 1)
    return Flaw("pseudo-replication", "present", text, names, by_question)


def _kappa(rows: Sequence[PairEvaluation]) -> Kappa:
    outcomes = [row.tally if any(row.votes.values()) else row.verdict for row in rows]
    return cohen_kappa(
        [_SIDES.get(outcome or "", -1) for outcome in outcomes],
        [_SIDES.get(row.label or "", -1) for row in rows],
        3,
        clusters=_clusters(rows),
    )


def _kappa_flaw(
    records: Sequence[PairEvaluation],
    sound_records: Sequence[PairEvaluation],
    figures: PublishedFigures,
) -> Flaw:
    kappa = _kappa(sound_records).interval
    value = "not defined" if math.isnan(kappa.estimate) else f"{kappa.estimate:.3f}"
    beside = f"Cohen's kappa of the corrected verdicts is {value}"
    if figures.kappa is None:
        return Flaw(
            "kappa", "unknown", f"No published kappa to check (--published kappa=…); {beside}."
        )
    rate = figures.concordance
    if rate is None:
        rate = _as_published(records, figures)[0].estimate
    is_linear = math.isclose(figures.kappa, 2 * rate - 1, abs_tol=0.0055)
    cohens = _kappa(records).interval.estimate
    if is_linear and math.isclose(cohens, figures.kappa, abs_tol=0.0005):
        text = f"{figures.kappa:.3f} is 2p - 1 and Cohen's kappa at once: the sides are even."
        return Flaw("kappa", "absent", text)
    if not is_linear:
        return Flaw("kappa", "absent", f"{figures.kappa:.3f} is not 2p - 1; {beside}.")
    text = (
        f"The published kappa {figures.kappa:.3f} is 2p - 1 = {2 * rate - 1:.3f}: the share of"
        f" agreement again, with no correction for chance; over the published verdicts Cohen's is"
        f" {cohens:.3f}. {beside}."
    )
    return Flaw("kappa", "present", text)


def _dropped_failures(rows: Sequence[PairEvaluation], figures: PublishedFigures) -> Flaw:
    failures = [row for row in rows if _outcome(row) is None]
    absent_votes = sum(vote is None for row in rows for vote in row.votes.values())
    gap_note = f" Votes of judges that are missing: {absent_votes}." if absent_votes else ""
    if not failures:
        return Flaw("dropped-failures", "absent", f"Every labelled pair has an outcome.{gap_note}")
    names = tuple(row.row for row in failures)
    all_rows = _rate(rows, _naive_credit)
    text = f"{part(len(failures), len(rows), 'labelled pair')} no outcome.{gap_note}"
    if figures.concordance is not None and len(failures) < len(rows):
        rate_of_judged = all_rows.estimate * len(rows) / (len(rows) - len(failures))
        gaps = [abs(figures.concordance - rate) for rate in (rate_of_judged, all_rows.estimate)]
        if gaps[1] < gaps[0]:
            return Flaw("dropped-failures", "absent", f"{text} They count as misses.", names)
    return Flaw(
        "dropped-failures", "present", f"{text} The headline leaves them out.", names, all_rows
    )


def _baseline_flaw(rows: Sequence[PairEvaluation], *, has_baselines: bool) -> Flaw:
    judges = {judge for row in rows for judge in row.votes}
    names = sorted(j for j in judges if any(word in j.lower() for word in _BASELINE_WORDS))
    if has_baselines or names:
        return Flaw("baselines", "absent", "Baselines stand beside the judges.", tuple(names))
    return Flaw(
        "baselines", "present", "The judges are compared with no simple rule; see the baselines."
    )


def _baselines(rows: Sequence[PairEvaluation]) -> list[BaselineRate]:
    sides = Counter(row.label for row in rows if row.label != TIE)
    commonest = sides.most_common(1)[0][0] if sides else "A"
    rules: dict[str, Callable[[PairEvaluation], str | None]] = {
        "the first slot": lambda row: row.first,
        f"always {commonest}": lambda _: commonest,
    }
    if any(row.longer for row in rows):
        rules["the longer response"] = lambda row: row.longer
    judges = {judge for row in rows for judge in row.votes}
    if len(judges) > 1:
        best = max(
            sorted(judges), key=lambda judge: sum(row.votes.get(judge) == row.label for row in rows)
        )
        rules[f"the best single judge ({best})"] = lambda row: row.votes.get(best)
    clusters, credit = _clusters(rows), np.array([_fair_credit(row) for row in rows])
    rates = []
    for name, rule in rules.items():
        guesses = np.array([_guess(rule(row), row.label) for row in rows])
        rates.append(
            BaselineRate(
                name,
                wilson_clustered(guesses, clusters),
                paired_difference(credit, guesses, clusters),
            )
        )
    return rates


def _guess(outcome: str | None, label: str | None) -> float:
    """1 where right, half for a tie or nothing where the label is a side."""
    if outcome == label:
        return 1.0
    return 0.5 if outcome in (None, TIE) and label != TIE else 0.0
