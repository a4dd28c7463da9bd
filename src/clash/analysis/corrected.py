"""What people would decide: a few labels, and the panel's verdicts on all items.

Every figure is a mean over items that people's labels give and the panel's verdicts make more
precise (:func:`clash.stats.selection.corrected_share.corrected_share`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from clash.analysis.label_sample import LabelSample, label_sample
from clash.analysis.leaderboard import points_table
from clash.analysis.settling import MARGIN, SMALL
from clash.errors import StatisticsError
from clash.stats.choice import PairSample
from clash.stats.selection.corrected_share import CorrectedShare, corrected_share
from clash.stats.selection.corrected_strengths import CorrectedStrengths, corrected_strengths
from clash.stats.selection.sample_design import SampleDesign

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clash.analysis.rundata import RunData
    from clash.stats.intervals import Interval
    from clash.stats.typing import Floats, Index

LEVEL = 0.95
FEWEST_FOR_STRENGTHS = 20
"""Labelled prompts from which strengths of three candidates or more are given."""
_OUTCOMES = {"A": 1.0, "tie": 0.5, "B": 0.0}


@dataclass(frozen=True)
class CorrectedRate:
    """How often people prefer a candidate, as labels and verdicts together say.

    Attributes:
        rate: share of the items it was to answer that people give to it alone.
        labels_only: the same by the labelled items alone.
        panel: share of these items that the panel gives to it.
        bias: the panel's share minus people's on the labelled items.
        power: how much of the panel's say is used, 0 or more.
    """

    candidate: str
    rate: Interval
    labels_only: Interval
    panel: float
    bias: float
    power: float


@dataclass(frozen=True)
class CorrectedDuel:
    """How often people would prefer a candidate to another.

    Attributes:
        rate: share of the items that both answered on which people would prefer the first, ties and
            items on which they prefer a third counting half. Where a review drew the items, it holds
            at every number of labels at once, so that the review may stop at any of them.
        difference: first minus second, the same in points: 2 rate - 1.
        labels_only: ``rate`` from the labels alone, for a number of labels fixed before.
        once: ``rate`` for a number of labels that was fixed before.
        panel: the rate by the panel's verdicts, whose error nothing corrects.
        n_labelled: items of these with a label.
        n_verdicts: items of these with a verdict.
        power: how much of the panel's say is used.
    """

    first: str
    second: str
    rate: Interval
    n_labelled: int
    difference: Interval
    labels_only: Interval
    once: Interval
    panel: float
    n_verdicts: int
    power: float

    def seen_from(self, candidate: str) -> CorrectedDuel:
        """The same comparison with one of the two as the first."""
        if candidate == self.first:
            return self
        return replace(
            self,
            first=self.second,
            second=self.first,
            rate=_mirror(self.rate, 1.0),
            difference=_mirror(self.difference, 0.0),
            labels_only=_mirror(self.labels_only, 1.0),
            once=_mirror(self.once, 1.0),
            panel=1 - self.panel,
        )


@dataclass(frozen=True)
class CorrectedStrength:
    """A candidate on people's Bradley-Terry scale.

    Attributes:
        strength: log-odds; those of all candidates sum to 0.
        win_rate: mean chance that people prefer it to each of the others.
    """

    candidate: str
    strength: Interval
    win_rate: Interval


@dataclass(frozen=True)
class PeopleDecision:
    """What people would decide.

    Attributes:
        status: ``decided``: people would prefer the winner to each other candidate, at 5% over all
            these; ``equal``: no difference of more than 10 points is left, and one of less than 5
            seen; ``leading``: neither.
        winner: whom people would prefer most; null where two are level.
        duel: the winner against the candidate that comes closest.
        n_labelled: items with a label.
        n_verdicts: items with a verdict.
        any_time: the review may stop at any label without raising the error of 5%.
    """

    status: Literal["decided", "equal", "leading"]
    winner: str | None
    duel: CorrectedDuel
    n_labelled: int
    n_verdicts: int
    any_time: bool


@dataclass(frozen=True)
class Correction:
    """What labels make of the leaderboard.

    Labels must come from a review that drew its items, or be a random sample of the items on which
    the panel was unanimous and one of those on which it was not, so that people may be asked more
    often where the panel is split; or all items are labelled.

    Attributes:
        n_labelled: items with a label.
        items: all.
        rates: by candidate; empty where ``refusal`` says why.
        refusal: why no rate is given, and what to do; null where rates are.
        duels: of people's first against each other.
        strengths: best first; empty with fewer than three candidates, or fewer than 20 labelled
            prompts.
        decision: null where nothing is compared.
    """

    json_keys: ClassVar[Mapping[str, str]] = {"n_labelled": "labelled", "refusal": "refused"}

    n_labelled: int
    items: int
    rates: tuple[CorrectedRate, ...]
    refusal: str | None = None
    duels: tuple[CorrectedDuel, ...] = ()
    strengths: tuple[CorrectedStrength, ...] = ()
    decision: PeopleDecision | None = None

    def of(self, candidate: str) -> CorrectedRate | None:
        """The rate of a candidate."""
        return next((rate for rate in self.rates if rate.candidate == candidate), None)

    def win_rates(self) -> dict[str, Interval]:
        """How often people would prefer each candidate to another, ties counting half."""
        if self.strengths:
            return {line.candidate: line.win_rate for line in self.strengths}
        if len(self.rates) != 2 or not self.duels:
            return {}
        duel = self.duels[0]
        return {duel.first: duel.rate, duel.second: duel.seen_from(duel.second).rate}

    def leads(self) -> dict[str, Interval]:
        """By how much people would prefer a candidate to the best of the others, -1 to 1."""
        if not self.duels:
            return {}
        leader = self.duels[0].first
        closest = min(self.duels, key=lambda duel: duel.rate.estimate)
        leads = {duel.second: duel.seen_from(duel.second).difference for duel in self.duels}
        return {leader: closest.difference, **leads}


def correction(run: RunData, order: Sequence[str]) -> Correction | None:
    """Correct the win rates of these candidates by the labels; null without a label.

    Raises:
        Nothing: where the labels do not suffice, ``refusal`` says so.
    """
    sample = label_sample(run)
    n_labelled, items = int(sample.has_label.sum()), len(sample.has_label)
    if not n_labelled:
        return None
    if sample.refusal is not None:
        return Correction(n_labelled, items, (), sample.refusal)
    table = _Table(run, sample)
    rates = tuple(rate for name in order if (rate := table.rate(name)) is not None)
    strengths = table.strengths(order)
    if strengths:
        names = [line.candidate for line in strengths]
    else:
        rate_of = {rate.candidate: rate.rate.estimate for rate in rates}
        names = sorted(order, key=lambda name: -rate_of.get(name, -1.0))
    duels = table.leader_duels(names)
    decision = _decide(duels, n_labelled, sum(v.ranking is not None for v in run.verdicts), sample)
    return Correction(
        n_labelled,
        items,
        rates,
        duels=tuple(duel for duel, _ in duels),
        strengths=strengths,
        decision=decision,
    )


def people_evidence(run: RunData) -> PairSample | CorrectedStrengths | None:
    """What labels and verdicts together say of the candidates; null where labels do not suffice.

    A pair of two candidates, or the strengths of three or more, in the columns of
    ``run.candidates``.
    """
    sample = label_sample(run)
    if sample.refusal is not None or not sample.has_label.any():
        return None
    table = _Table(run, sample)
    if len(run.candidates) == 2:
        return table.pair_sample(0, 1)
    return table.fit_strengths(run.candidates)


def _decide(
    duels: Sequence[tuple[CorrectedDuel, bool]],
    n_labelled: int,
    n_verdicts: int,
    sample: LabelSample,
) -> PeopleDecision | None:
    """The decision from the leader's duels, each with whether it is won at the level of all."""
    if not duels:
        return None
    closest = min((duel for duel, _ in duels), key=lambda duel: duel.rate.estimate)
    gap = closest.difference
    if all(is_won for _, is_won in duels):
        status: Literal["decided", "equal", "leading"] = "decided"
    elif abs(gap.estimate) < SMALL and max(gap.high, -gap.low) <= MARGIN:
        status = "equal"
    else:
        status = "leading"
    winner = None if gap.estimate <= 0 else closest.first
    return PeopleDecision(status, winner, closest, n_labelled, n_verdicts, sample.any_time)


class _Table:
    """A run's labels and verdicts, as arrays over its items.

    Args:
        run: the run.
        sample: how its labelled items were chosen.
    """

    def __init__(self, run: RunData, sample: LabelSample) -> None:
        self.run, self.sample = run, sample
        self.clusters = run.cluster_codes
        self.has_verdict = np.array([verdict.ranking is not None for verdict in run.verdicts])
        self.scores = points_table(run)

    def rate(self, name: str) -> CorrectedRate | None:
        """The share that people give to a candidate alone; null where no item of it has a label."""
        rows = np.flatnonzero(self.run.is_asked(name))
        wins = np.array([float(self.run.verdicts[i].winner == name) for i in rows.tolist()])
        people = np.array(
            [
                float(self.run.truth[item_id] == name) if item_id in self.run.truth else np.nan
                for item_id in (self.run.items[i].item_id for i in rows.tolist())
            ]
        )
        share = self._share(people, wins, rows, votes=self._first_places(name, rows))
        if share is None:
            return None
        rate = share.always_valid if self.sample.any_time else share.interval
        return CorrectedRate(
            name, rate, share.labels_only, share.panel_mean, share.bias, share.power
        )

    def leader_duels(self, names: Sequence[str]) -> list[tuple[CorrectedDuel, bool]]:
        """The first of some candidates against each other, and whether it wins at the level of all.

        Of two candidates the one that people prefer comes first.
        """
        rivals = [name for name in names[1:] if self._rows_of_pair(names[0], name).size]
        level = 1 - (1 - LEVEL) / max(len(rivals), 1)
        duels = []
        for name in rivals:
            duel, strict = self.duel(names[0], name), self.duel(names[0], name, level)
            if duel is not None and strict is not None:
                leader = names[0]
                if len(names) == 2 and duel.rate.estimate < 0.5:
                    leader = name
                duels.append((duel.seen_from(leader), strict.seen_from(leader).rate.low > 0.5))
        return duels

    def duel(self, first: str, second: str, level: float = LEVEL) -> CorrectedDuel | None:
        """Two candidates on the items that both answered; null where none has a label."""
        rows = self._rows_of_pair(first, second)
        if not len(rows):
            return None
        panel = self._panel_outcomes(first, second)[rows]
        people = np.array([self._outcome(row, first, second) for row in rows.tolist()])
        share = self._share(people, panel, rows, level, self._sides(first, second, rows))
        if share is None:
            return None
        rate = share.always_valid if self.sample.any_time else share.interval
        panel_values = np.round(panel[self.has_verdict[rows]], 9)
        return CorrectedDuel(
            first,
            second,
            rate,
            int((~np.isnan(people)).sum()),
            _points(rate),
            share.labels_only,
            share.interval,
            float(((np.sign(panel_values - 0.5) + 1) / 2).mean())
            if len(panel_values)
            else float("nan"),
            len(panel_values),
            share.power,
        )

    def pair_sample(self, first: int, second: int) -> PairSample | None:
        """Two candidates, by their columns, with what each judge's vote is worth."""
        names = self.run.candidates[first], self.run.candidates[second]
        rows = self._rows_of_pair(*names)
        panel = self._panel_outcomes(*names)[rows]
        people = np.array([self._outcome(row, *names) for row in rows.tolist()])
        share = self._share(people, panel, rows, votes=self._sides(*names, rows))
        if share is None:
            return None
        weights = None
        if self.sample.chances is not None or self.sample.strata is not None:
            weights = self._design(rows).weights(~np.isnan(people))
        return PairSample.of_labels((first, second), rows, share, self.clusters[rows], weights)

    def strengths(self, order: Sequence[str]) -> tuple[CorrectedStrength, ...]:
        """Strengths of three candidates or more, best first; none where labels are few."""
        fit = self.fit_strengths(order)
        if fit is None:
            return ()
        lines = [
            CorrectedStrength(name, strength, rate)
            for name, strength, rate in zip(order, fit.strengths, fit.win_rates, strict=True)
        ]
        return tuple(sorted(lines, key=lambda line: -line.strength.estimate))

    def fit_strengths(self, order: Sequence[str]) -> CorrectedStrengths | None:
        """Strengths in this order; null for two candidates, few prompts and a fit that fails."""
        prompts = np.unique(self.clusters[self.sample.has_label])
        if len(order) < 3 or len(prompts) < FEWEST_FOR_STRENGTHS:
            return None
        pairs = [(i, j) for i in range(len(order)) for j in range(i + 1, len(order))]
        people = np.column_stack([self._people_side(order[i], order[j]) for i, j in pairs])
        panel = np.column_stack([self._panel_outcomes(order[i], order[j]) for i, j in pairs])
        rows = np.arange(len(people))
        votes = np.stack([self._sides(order[i], order[j], rows) for i, j in pairs], axis=1)
        try:
            fit = corrected_strengths(people, panel, pairs, len(order), self._design(), votes=votes)
        except StatisticsError:
            return None
        return fit if fit.converged else None

    def _design(self, rows: Index | slice = slice(None)) -> SampleDesign:
        """Sources of some items, and how they came to be labelled."""
        chances, strata = self.sample.chances, self.sample.strata
        return SampleDesign(
            self.clusters[rows],
            None if chances is None else chances[rows],
            None if strata is None else strata[rows],
        )

    def _share(
        self,
        people: Floats,
        panel: Floats,
        rows: Index,
        level: float = LEVEL,
        votes: Floats | None = None,
    ) -> CorrectedShare | None:
        try:
            return corrected_share(people, panel, self._design(rows), votes=votes, level=level)
        except StatisticsError:
            return None

    def _rows_of_pair(self, first: str, second: str) -> Index:
        """Items to which both have a response."""
        texts = self.run.texts
        return np.array(
            [
                row
                for row, item in enumerate(self.run.items)
                if first in texts[item.item_id] and second in texts[item.item_id]
            ],
            dtype=np.intp,
        )

    def _panel_outcomes(self, first: str, second: str) -> Floats:
        """(N,), 0 to 1, how far the judges put the first above the second; 0.5 without a verdict."""
        column = self.run.candidates.index
        lead = self.scores[:, column(first)] - self.scores[:, column(second)]
        return np.asarray(np.clip((1 + np.nan_to_num(lead)) / 2, 0.0, 1.0), np.float64)

    @cached_property
    def _ranks(self) -> Floats:
        """(N, J, K), the mean rank that each judge gives to each candidate; NaN where it gives none."""
        judges = {name: at for at, name in enumerate(self._judge_names())}
        column = {name: at for at, name in enumerate(self.run.candidates)}
        table = np.full((len(self.run.items), len(judges), len(column)), np.nan)
        for row, item in enumerate(self.run.items):
            if (ballot := self.run.ballots.get(item.item_id)) is None:
                continue
            columns = [column[name] for name in ballot.candidates]
            for judge, ranks in ballot.ranks.items():
                table[row, judges[judge], columns] = np.mean(ranks, axis=0)
        return table

    def _judge_names(self) -> list[str]:
        names = {judge for ballot in self.run.ballots.values() for judge in ballot.ranks}
        return sorted(names)

    def _sides(self, first: str, second: str, rows: Index) -> Floats:
        """(n, J), 1 where a judge ranks the first above the second, 0 below; NaN where neither."""
        column = self.run.candidates.index
        ranks = self._ranks[rows]
        return np.clip((1 + ranks[:, :, column(second)] - ranks[:, :, column(first)]) / 2, 0.0, 1.0)

    def _first_places(self, name: str, rows: Index) -> Floats:
        """(n, J), 1 where a judge ranks a candidate above all others, else 0; NaN without a rank."""
        ranks, at = self._ranks[rows], self.run.candidates.index(name)
        rival_ranks = np.delete(ranks, at, axis=2)
        best = np.nanmin(rival_ranks, axis=2, initial=np.inf)
        return np.where(np.isnan(ranks[:, :, at]), np.nan, (ranks[:, :, at] < best).astype(float))

    def _outcome(self, row: int, first: str, second: str) -> float:
        """What the label of an item says of two candidates; half where it prefers a third."""
        truth = self.run.truths.get(self.run.items[row].item_id)
        if truth is None or truth.winner is None:
            return float("nan")
        return _OUTCOMES.get(truth.side(first, second) or "", 0.5)

    def _people_side(self, first: str, second: str) -> Floats:
        """(N,), what labels say of two candidates; NaN where they do not."""
        return np.array([self.run_wins(item.item_id, first, second) for item in self.run.items])

    def run_wins(self, item_id: str, first: str, second: str) -> float:
        """The outcome of a pair by the label of an item; NaN where it does not tell."""
        truth = self.run.truths.get(item_id)
        side = None if truth is None else truth.side(first, second)
        return _OUTCOMES.get(side or "", float("nan"))


def _points(rate: Interval) -> Interval:
    """A rate as a difference of two shares, -1 to 1."""
    return replace(
        rate,
        estimate=2 * rate.estimate - 1,
        low=2 * rate.low - 1,
        high=2 * rate.high - 1,
    )


def _mirror(interval: Interval, total: float) -> Interval:
    """The interval of ``total`` less the figure."""
    return replace(
        interval,
        estimate=total - interval.estimate,
        low=total - interval.high,
        high=total - interval.low,
    )
