"""A run folder read once, for everything that is computed from it."""

from __future__ import annotations

import math
import sys
from array import array
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, TypeVar

import msgspec
import numpy as np

from clash import baselines
from clash.analysis.run_verdicts import decide_single_texts, decide_verdicts
from clash.analysis.served import swapped_models
from clash.analysis.spending import Tally
from clash.analysis.verdicts import VerdictRules
from clash.errors import RunFolderError, StatisticsError
from clash.labels import truths
from clash.records import Blinding, Criteria, Item, Judgment, Response
from clash.store import layout
from clash.store.stored import ByItem, HashedKeys, ItemPart, item_ids, of_items, parts
from clash.store.table import ItemRows
from clash.votes import LabelUse
from clash.votes.ballots import Ballots, ItemRankings, outcomes, unblind_rankings
from clash.votes.blinding_index import BlindingIndex
from clash.votes.by_item import ComputedByItem, SharedByItem, SharedVerdicts
from clash.votes.text_labels import people_votes, text_truth
from clash.votes.text_votes import TextVotes

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from clash.analysis.method_verdicts import MethodUse
    from clash.labels import Truth
    from clash.records import AnsweredTurn, CallSummary, Label, Reservation, Verdict
    from clash.stats.typing import Bools, Floats
    from clash.store.folder import RunFolder
    from clash.store.manifest import Manifest
    from clash.votes.from_run import Panelist
    from clash.votes.text_labels import TextKey

V = TypeVar("V")


class _Author(ItemPart, gc=False):
    """Who a response is by."""

    candidate: str


class _ItemGroup(ItemPart, gc=False):
    """The prompt that an item repeats."""

    group: str | None = None


class ControlFamily(msgspec.Struct, gc=False):
    """The attack of a control item; null for the clean one of a pair."""

    family: str | None = None


class ControlPart(ItemPart, gc=False):
    """Whether an item is a control item."""

    control: ControlFamily | None = None


class _Labelled(ItemPart, gc=False):
    """Who wins an item by the prompts file."""

    label: str | None = None


class _PageLabels(ItemPart, gc=False):
    """The candidates on a page."""

    labels: dict[str, str]


@dataclass
class Usage:
    """What one model did for one purpose.

    Attributes:
        cost_usd: the sum where it is known.
        unknown: calls whose cost is unknown; the sum is then a lower bound.
        errors: attempts that failed, by class.
        latencies: seconds, of attempts that were answered.
    """

    calls: int = 0
    attempts: int = 0
    cost_usd: float = 0.0
    unknown: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    latencies: array[float] = field(default_factory=lambda: array("d"))
    ttfts: array[float] = field(default_factory=lambda: array("d"))

    def add(self, call: CallSummary) -> None:
        """Count one attempt."""
        self.attempts += 1
        if call.outcome == "error":
            self.errors[call.error_class or "error"] += 1
            self.unknown += call.cost_bound_usd is not None
            return
        self.calls += 1
        self.unknown += call.cost_usd is None
        self.cost_usd += call.cost_usd or 0.0
        if call.tokens is not None:
            self.tokens_in += call.tokens.input or 0
            self.tokens_out += call.tokens.output or 0
        if call.latency_s is not None:
            self.latencies.append(call.latency_s)
        if call.ttft_s is not None:
            self.ttfts.append(call.ttft_s)


class _ReservedAmounts:
    """What was reserved for each attempt, by a hash of it: in a tenth of the memory of its id."""

    def __init__(self, reservations: Iterable[Reservation]) -> None:
        """Args: all of them, also several for an attempt, of which the last counts."""
        self._attempts, self._usd = array("q"), array("d")
        for reservation in reservations:
            self._attempts.append(hash((reservation.call_id, reservation.attempt)))
            self._usd.append(reservation.usd)

    def without(self, attempts: array[int]) -> list[float]:
        """The amounts for attempts that are not on record, given the hashes of those that are."""
        is_lost = ~np.isin(np.asarray(self._attempts, np.int64), np.asarray(attempts, np.int64))
        rows = np.flatnonzero(is_lost).tolist()
        return list({self._attempts[row]: self._usd[row] for row in rows}.values())


@dataclass(frozen=True)
class RunData:
    """A run: its records, which stay on disk, and what follows from them.

    Records are read again each time that they are gone through, so go through them once and keep
    what counts, not the records. Calls are only counted.

    Attributes:
        usage: by purpose and by judge, candidate or ``criteria``.
        n_lost: attempts that a killed process began and nobody saw the end of.
        tally: the totals over all calls.
        controls: the items that clash added to test the judges, apart from the rest; null where
            there are none, or nothing else.
        swapped_models: by the model that was asked, others that answered for it.
        method_use: how the method of the run decided; null where that is the Borda count.
        text_votes: of the panel, where each text is judged by itself; else null.
    """

    manifest: Manifest
    rules: VerdictRules
    items: Sequence[Item]
    responses: Sequence[Response]
    criteria: Mapping[str, Criteria]
    judgments: Sequence[Judgment]
    blinds: BlindingIndex
    ballots: Mapping[str, ItemRankings]
    verdicts: Sequence[Verdict]
    labels: tuple[Label, ...]
    usage: Mapping[tuple[str, str], Usage]
    n_lost: int = 0
    tally: Tally = field(default_factory=Tally)
    controls: RunData | None = None
    swapped_models: Mapping[str, list[str]] = field(default_factory=dict)
    method_use: MethodUse | None = None
    text_votes: TextVotes | None = None

    @classmethod
    def load(cls, folder: RunFolder) -> RunData:
        """Read a run; verdicts are recomputed, not read. Control items are set apart."""
        run = cls._read_whole(folder)
        controls = {
            item.item_id for item in parts(run.items, ControlPart) if item.control is not None
        }
        if not controls:
            return run
        ids = run.rows.keys() - controls
        if not ids or controls <= ids:
            return run
        return replace(run.only(ids), controls=run.only(controls - ids))

    @classmethod
    def _read_whole(cls, folder: RunFolder) -> RunData:
        rules = VerdictRules.of(folder)
        items, responses = folder.records(Item), folder.records(Response)
        judgments = folder.records(Judgment)
        blinds = BlindingIndex.of(folder.records(Blinding))
        criteria = ByItem(folder.records(Criteria))
        _check_references(folder, items, responses, judgments, blinds)
        rankings = unblind_rankings(judgments, blinds, rules.presentations, criteria)
        usage: dict[tuple[str, str], Usage] = defaultdict(Usage)
        tally = Tally()
        names: set[tuple[str, str | None]] = set()
        amounts = _ReservedAmounts(folder.reservations())
        attempts = array("q")
        for call in folder.call_summaries():
            attempts.append(hash((call.call_id, call.attempt)))
            tally.add(call)
            names.add((call.model, call.served_model))
            usage[call.purpose, call.actor].add(call)
        lost_usd = amounts.without(attempts)
        tally.bound_usd += sum(lost_usd)
        votes = None
        if rules.judging is None:
            outcome = decide_verdicts(rules, items, responses, judgments, rankings)
        else:
            votes = TextVotes.of(
                items, responses, judgments, blinds, rules.seats, rules.presentations, rules.judging
            )
            outcome = decide_single_texts(votes, rules, responses, judgments)
        return cls(
            manifest=folder.manifest(),
            rules=rules,
            items=items,
            responses=responses,
            criteria=criteria,
            judgments=judgments,
            blinds=blinds,
            ballots=rankings,
            verdicts=outcome.verdicts,
            method_use=outcome.use,
            text_votes=votes,
            labels=tuple(folder.labels()),
            usage=dict(usage),
            n_lost=len(lost_usd),
            tally=tally,
            swapped_models=swapped_models(names),
        )

    def only(self, ids: Collection[str]) -> RunData:
        """The part of the run that is about some items; calls are counted whole."""
        return replace(
            self,
            items=of_items(self.items, ids),
            responses=of_items(self.responses, ids),
            criteria=_only(self.criteria, ids),
            judgments=of_items(self.judgments, ids),
            ballots=_only(self.ballots, ids),
            verdicts=SharedVerdicts(v for v in self.verdicts if v.item_id in ids),
            labels=tuple(label for label in self.labels if label.item_id in ids),
        )

    @cached_property
    def rows(self) -> dict[str, int]:
        """The place of each item, by id."""
        return {sys.intern(item_id): row for row, item_id in enumerate(item_ids(self.items))}

    @cached_property
    def responses_of(self) -> ItemRows[Response]:
        """The responses to an item."""
        return ItemRows(self.responses, self.rows)

    @cached_property
    def turns(self) -> Mapping[str, dict[str, list[AnsweredTurn]]]:
        """The turns of each response that is a conversation, by item and candidate."""
        return ComputedByItem(
            self.rows,
            lambda item_id: {r.candidate: r.turns for r in self.responses_of(item_id) if r.turns},
        )

    @cached_property
    def all_text_votes(self) -> TextVotes:
        """The votes on each text of the panel and of the observers."""
        if self.rules.judging is None:
            raise StatisticsError("this run ranks responses: it has no votes on single texts")
        judges = [p for p in self.rules.panelists if p.stands_in_for is None]
        return TextVotes.of(
            self.items,
            self.responses,
            self.judgments,
            self.blinds,
            judges,
            self.rules.presentations,
            self.rules.judging,
        )

    @cached_property
    def people_votes(self) -> dict[TextKey, dict[str, str | float]]:
        """What each person says of each labelled text; empty where responses are ranked."""
        if self.text_votes is None or self.rules.judging is None:
            return {}
        return people_votes(self.text_votes.texts, self.items, self.labels, self.rules.judging)

    def text_label(self, item_id: str, candidate: str | None) -> str | float | None:
        """What people say of a text, a label or a score; null without a label, or where two are level."""
        return text_truth(self.people_votes.get((item_id, candidate or ""), {}))

    def people_values(self, votes: TextVotes) -> Floats:
        """What people say of each text, (N,): the code of a label, or a score; NaN without a label."""
        codes = (
            {}
            if self.rules.judging is None
            else {name: float(code) for code, name in enumerate(self.rules.judging.labels)}
        )
        values = []
        for key in votes.texts:
            truth = self.text_label(*key)
            value = codes.get(truth) if isinstance(truth, str) else truth
            values.append(math.nan if value is None else value)
        return np.array(values, dtype=float)

    @property
    def n_voting_pages(self) -> int:
        """Voting judgments there should be: one for each voting judge, and item or text, and order."""
        return self._n_shown * len(self.rules.seats) * self.rules.presentations - self.n_excluded

    @property
    def n_pages(self) -> int:
        """Judgments there should be, those of observers too."""
        n_observers = sum(p.role == "observer" for p in self.rules.panelists)
        return self.n_voting_pages + self._n_shown * n_observers * self.rules.presentations

    @property
    def _n_shown(self) -> int:
        """Items, or texts where each is judged by itself."""
        return len(self.items) if self.text_votes is None else len(self.text_votes.texts)

    def item(self, item_id: str) -> Item:
        """An item by id."""
        return self.items[self.rows[item_id]]

    @cached_property
    def texts(self) -> Mapping[str, dict[str, str]]:
        """Response by item and candidate, where there is one."""
        return ComputedByItem(
            self.rows,
            lambda item_id: {
                r.candidate: r.text for r in self.responses_of(item_id) if r.text is not None
            },
        )

    @cached_property
    def n_excluded(self) -> int:
        """Voting judgments that ``exclude_self`` rules out: one candidate is left besides the judge."""
        if not self.rules.exclusions:
            return 0
        voting = len(self.rules.seats)
        if self.text_votes is not None:
            texts = (voting - len(self.rules.may_judge(name)) for _, name in self.text_votes.texts)
            return sum(texts) * self.rules.presentations
        apart = (
            voting - len(self.rules.eligible(texts))
            for texts in self.texts.values()
            if len(texts) > 1
        )
        return sum(apart) * self.rules.presentations

    @cached_property
    def unasked_judges(self) -> Mapping[str, frozenset[str]]:
        """Voting judges whom a run ended too early to ask, by labelled item.

        Not of an item that too few responses were had for: nobody was to be asked of it.
        """
        return self._unasked_judges(self.truth)

    @cached_property
    def unjudged_texts(self) -> Collection[tuple[str, str]]:
        """Without a verdict since the run ended before their judges were asked: item and text.

        The text is empty where responses are ranked.
        """
        abstained = [v for v in self.verdicts if v.abstained]
        judges_by_item = self._unasked_judges({v.item_id for v in abstained})
        return {(v.item_id, v.candidate or "") for v in abstained if v.item_id in judges_by_item}

    @cached_property
    def unjudged_items(self) -> Collection[str]:
        """The items of :attr:`unjudged_texts`."""
        return {item_id for item_id, _ in self.unjudged_texts}

    def _unasked_judges(self, item_ids: Collection[str]) -> dict[str, frozenset[str]]:
        """Of these items, those that a voting judge was not asked of, with these judges."""
        if self.manifest.status == "complete":
            return {}
        n_judged = Counter(
            (judgment.item_id, judgment.seat)
            for judgment in outcomes(self.judgments)
            if judgment.item_id in item_ids
        )
        judges_by_item: dict[str, frozenset[str]] = {}
        for name in item_ids:
            texts = self.texts[name]
            if len(texts) < 2 and any(r.text is None for r in self.responses_of(name)):
                continue
            judges = self.rules.eligible(texts) if len(texts) > 1 else self.rules.seats
            n_pages = self.rules.presentations
            n_pages *= 1 if self.text_votes is None else len(texts)
            missing = {p.id for p in judges if n_judged[name, p.id] < n_pages}
            if missing:
                judges_by_item[name] = frozenset(missing)
        return judges_by_item

    @property
    def labelled_verdicts(self) -> tuple[Verdict, ...]:
        """The verdicts on labelled items that were put to the panel, in the order of the items.

        An abstention is among them where judges failed, not where the run ended before they were
        asked.
        """
        return tuple(
            verdict
            for verdict in self.verdicts
            if verdict.item_id in self.truth
            and not (verdict.abstained and verdict.item_id in self.unasked_judges)
        )

    @cached_property
    def candidates(self) -> list[str]:
        """Everyone who has a response or should have one, sorted."""
        return sorted(self._item_rows)

    @cached_property
    def responders(self) -> Mapping[str, tuple[str, ...]]:
        """Who responds to each item, in the order of the source, those without a text included."""
        return ComputedByItem(
            self.rows,
            lambda item_id: tuple(response.candidate for response in self.responses_of(item_id)),
        )

    def items_asked(self, candidate: str) -> set[str]:
        """The ids of the items that a candidate was to answer, its failures included."""
        ids = list(self.rows)
        return {ids[row] for row in self._item_rows.get(candidate, ())}

    def is_asked(self, candidate: str) -> Bools:
        """Whether a candidate was to answer each item, its failures included, (N,)."""
        is_asked = np.zeros(len(self.items), dtype=bool)
        is_asked[np.asarray(self._item_rows.get(candidate, ()), np.intp)] = True
        return is_asked

    @cached_property
    def _item_rows(self) -> dict[str, array[int]]:
        """The rows of the items that each candidate was to answer."""
        item_rows: dict[str, array[int]] = defaultdict(lambda: array("i"))
        for response in parts(self.responses, _Author):
            item_rows[response.candidate].append(self.rows[response.item_id])
        return dict(item_rows)

    @cached_property
    def clusters(self) -> dict[str, int]:
        """The cluster of each item, as a code."""
        codes: dict[str, int] = {}
        clusters = {
            item_id: codes.setdefault(item.group or item_id, len(codes))
            for item_id, item in zip(self.rows, parts(self.items, _ItemGroup), strict=True)
        }
        return self.rows if clusters == self.rows else clusters

    @cached_property
    def cluster_codes(self) -> NDArray[np.intp]:
        """:attr:`clusters` in the order of the items, (N,)."""
        return np.fromiter((self.clusters[name] for name in self.rows), np.intp, len(self.rows))

    @cached_property
    def truth(self) -> dict[str, str]:
        """Who wins each item that has a label: a candidate, or ``tie``."""
        winners = {name: truth.winner for name, truth in self.truths.items()}
        return {name: winner for name, winner in winners.items() if winner is not None}

    @cached_property
    def truths(self) -> dict[str, Truth]:
        """What the labels of each item that has one come to; of single texts: ``people_votes``.

        A label of an item that the run does not have is left out; ``verify`` names it.
        """
        if self.text_votes is not None:
            return {}
        labels = (label for label in self.labels if label.item_id in self.rows)
        return truths(parts(self.items, _Labelled), labels)

    def wins(self, item: str, first: str, second: str) -> float:
        """Of a pair, by the labels: 1 or 0 where the first or the second is better, else NaN."""
        truth = self.truths.get(item)
        outcome = None if truth is None else truth.side(first, second)
        return {"A": 1.0, "B": 0.0}.get(outcome or "", math.nan)

    @cached_property
    def baseline_tops(self) -> dict[str, Mapping[str, list[str]]]:
        """Whom each baseline puts first, by baseline and item.

        Of items with two responses or more and some text in them: without text a baseline has
        nothing to read, and such an item counts nowhere.
        """
        tops: list[list[str]] = []
        numbers: dict[tuple[str, ...], int] = {}
        codes = {name: array("i") for name in baselines.BASELINES}
        # Item by item: the baselines share what they read of a text.
        for item in self.items:
            texts = self.texts[item.item_id]
            has_text = len(texts) > 1 and any(text.strip() for text in texts.values())
            criteria = self.criteria.get(item.item_id) if has_text else None
            case = baselines.Case(item.turns, texts, criteria.criteria if criteria else ())
            for name, codes_of_baseline in codes.items():
                code = -1
                if has_text:
                    top = baselines.top(name, case)
                    code = numbers.setdefault(tuple(top), len(tops))
                    if code == len(tops):
                        tops.append(top)
                codes_of_baseline.append(code)
        return {name: SharedByItem(self.rows, codes[name], tops) for name in codes}

    def with_labels(self, labels: Iterable[Label]) -> RunData:
        """The same run with other labels; what has no label in it is not recomputed."""
        run = replace(self, labels=tuple(labels))
        label_free = (
            "rows", "responses_of", "texts", "_item_rows", "candidates", "clusters", "baseline_tops"
        )  # fmt: skip
        run.__dict__.update({k: v for k, v in self.__dict__.items() if k in label_free})
        return run

    def without_labels(self) -> RunData:
        """The same run as if nobody had labelled an item."""
        items = tuple(
            item.model_copy(update={"label": None, "text_labels": None}) for item in self.items
        )
        return replace(self.with_labels(()), items=items)

    def by_label_rule(self, *, use_labels: bool) -> tuple[RunData, LabelUse]:
        """The run with or without its labels, and what became of them: one rule for every command."""
        run = self if use_labels else self.without_labels()
        if self.text_votes is not None:
            n_labelled = sum(bool(opinions) for opinions in self.people_votes.values())
            return run, LabelUse(len(self.text_votes.texts), n_labelled, use_labels, "text")
        n_unknown = len({label.item_id for label in self.labels} - self.rows.keys())
        return run, LabelUse(len(self.items), len(self.truths), use_labels, "item", n_unknown)

    def panelist(self, judge: str) -> Panelist:
        """A judge by id."""
        return next(p for p in self.rules.panelists if p.id == judge)


def _check_references(
    folder: RunFolder,
    items: Iterable[Item],
    responses: Iterable[Response],
    judgments: Iterable[Judgment],
    blinds: BlindingIndex,
) -> None:
    """Refuse to compute from a folder that lost records which others speak of, or has an item twice.

    Raises:
        RunFolderError: names the file that lacks one, or has it twice.
    """
    rows: dict[str, int] = {}
    for item_id in item_ids(items):
        if item_id in rows:
            raise RunFolderError(
                f"{folder.path / layout.ITEMS}: has the item {item_id!r} twice"
                "\n  fix: restore it from a copy"
            )
        rows[item_id] = len(rows)
    ids = chain(item_ids(responses), item_ids(judgments), item_ids(blinds.records))
    absent = next((item_id for item_id in ids if item_id not in rows), None)
    if absent is not None:
        raise _lacks(folder, layout.ITEMS, f"the item {absent!r}", "restore it from a copy")
    on_record = HashedKeys((r.item_id, r.candidate) for r in parts(responses, _Author))
    pairs = (
        (page.item_id, name)
        for page in parts(blinds.records, _PageLabels)
        for name in page.labels.values()
    )
    unwritten = next((pair for pair in pairs if pair not in on_record), None)
    if unwritten is not None:
        missing = f"the response of {unwritten[1]!r} to {unwritten[0]!r}"
        hint = f"`clash resume {folder.path}` writes it again"
        raise _lacks(folder, layout.RESPONSES, missing, hint)


def _only(records: Mapping[str, V], ids: Collection[str]) -> Mapping[str, V]:
    """The part of a map that is about some items."""
    if isinstance(records, ByItem | Ballots):
        return records.only(ids)
    return {item_id: record for item_id, record in records.items() if item_id in ids}


def _lacks(folder: RunFolder, name: str, record: str, hint: str) -> RunFolderError:
    return RunFolderError(
        f"{folder.path / name}: lacks {record}, which other files refer to\n  fix: {hint}"
    )
