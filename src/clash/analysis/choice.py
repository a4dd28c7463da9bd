"""Which candidate to take within limits of price and time, and what a wrong choice would cost."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from clash.analysis.corrected import correction, people_evidence
from clash.analysis.leaderboard import points_table, standings
from clash.analysis.win_rates import pair_outcomes
from clash.errors import ConfigError, InputError, one_of
from clash.stats.choice import (
    DRAWS,
    PairSample,
    Regrets,
    StrengthSample,
    draw_candidates,
    price_of_a_win,
    regrets,
)
from clash.stats.intervals import LEVEL, Interval, mean_clustered, t_quantile, wilson_clustered
from clash.votes.from_run import require_rankings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clash.analysis.leaderboard import Standing
    from clash.analysis.rundata import RunData
    from clash.stats.choice import Draws
    from clash.stats.selection.corrected_strengths import CorrectedStrengths
    from clash.stats.typing import Floats, Index
    from clash.votes import LabelUse

Source = Literal["measured", "given"]
_MOST = 1e9
"""Dollars or seconds beyond which a record of a response is no measurement."""


@dataclass(frozen=True)
class ChoiceLimits:
    """What a candidate may cost and how long it may take.

    Attributes:
        cost_usd: the most that a response may cost, on average; null for any price.
        latency_s: the longest that a response may take, in seconds, at ``quantile``; null for any.
        quantile: of the response times, 0.5 for the median.
        worth_usd: what one more preferred answer is worth; null where quality alone counts.
        prices: US dollars per response by candidate, in place of what the run measured.
        latencies: seconds by candidate, likewise.
    """

    json_omits: ClassVar[tuple[str, ...]] = ("prices", "latencies")

    cost_usd: float | None = None
    latency_s: float | None = None
    quantile: float = 0.5
    worth_usd: float | None = None
    prices: Mapping[str, float] = field(default_factory=dict)
    latencies: Mapping[str, float] = field(default_factory=dict)

    def check(self, candidates: Sequence[str]) -> None:
        """Refuse limits that are no amounts, and figures of candidates that do not exist.

        Raises:
            ConfigError: names the option.
        """
        for option, value in (
            ("--max-cost-per-call", self.cost_usd),
            ("--max-latency", self.latency_s),
            ("--worth", self.worth_usd),
            *(("--price", price) for price in self.prices.values()),
            *(("--latency", latency) for latency in self.latencies.values()),
        ):
            if value is not None and not (math.isfinite(value) and value >= 0):
                hint = "give a number of 0 or more"
                raise ConfigError(f"{value} is no amount", field=option, hint=hint)
        if not 0 < self.quantile < 1:
            raise ConfigError(
                f"{self.quantile} is no quantile",
                field="--latency-quantile",
                hint="give a number between 0 and 1: 0.5 is the median, 0.9 the slowest tenth",
            )
        for option, names in (("--price", self.prices), ("--latency", self.latencies)):
            for name in names:
                if name not in candidates:
                    raise ConfigError(
                        f"the run has no candidate {name!r}",
                        field=option,
                        hint=one_of(name, candidates),
                    )


@dataclass(frozen=True)
class ChoiceOption:
    """One candidate as an option.

    Attributes:
        win_rate: ties count half; people's where labels correct it.
        cost_usd: mean per response; null where nobody knows it. A price that was given has no
            spread.
        latency_s: at the quantile of the limits, likewise.
        cost_source, latency_source: whether the run measured it or the user gave it.
        is_within: keeps every limit; null where a figure that a limit needs is missing.
        p_cost: chance that its mean cost keeps the limit (Student's t, clustered); null without a
            limit, and where too few responses tell.
        p_latency: chance that its quantile keeps the limit (Jeffreys).
        p_front: share of the draws in which it is on the Pareto front; null where no other candidate
            has the cost or latency to compare it by.
        p_best: share of the draws in which it is the best of those within the limits.
        regret: what is lost on average by taking it where another is better: in win rate, or in US
            dollars a response where an answer has a worth.
        regret_high: the loss that 95% of the draws do not exceed.
    """

    candidate: str
    win_rate: Interval
    cost_usd: Interval | None
    latency_s: Interval | None
    cost_source: Source | None
    latency_source: Source | None
    is_within: bool | None
    p_cost: float | None
    p_latency: float | None
    p_front: float | None
    p_best: float | None
    regret: float | None
    regret_high: float | None


@dataclass(frozen=True)
class PriceQuestion:
    """Is the dearer of two candidates worth its price?

    Attributes:
        ratio: of the two prices; null where the cheaper one is free.
        extra_usd: what the dearer one costs more, per response.
        preferred: how often its answer is preferred, ties counting half.
        usd_per_win: what one more preferred answer costs; ``high`` and ``estimate`` are null where
            no amount buys one.
        p_worth: chance that an answer costs less than it is worth; null without a worth.
    """

    dearer: str
    cheaper: str
    ratio: float | None
    extra_usd: float
    preferred: Interval
    usd_per_win: Interval
    p_worth: float | None


@dataclass(frozen=True)
class Choice:
    """The best candidate within limits.

    Attributes:
        candidate: null where no candidate is known to keep the limits.
        limits: what was asked.
        by: whose preference counts: the panel's, or people's, by labels and verdicts together.
        n_items, n_labelled: items of the run, and those of them with a label.
        labels_unused: why labels that are there do not count; null where they do, or there are none.
        options: best first.
        unknown: candidates without a cost or a latency that a limit needs.
        questions: the choice beside each other candidate with a price.
        without_limits: the best of all where it is another one; null otherwise.
        draws, seed: of the Bayesian bootstrap.
        labels: what became of the labels that are there.
    """

    candidate: str | None
    limits: ChoiceLimits
    by: Literal["panel", "people"]
    n_items: int
    n_labelled: int
    labels_unused: str | None
    options: list[ChoiceOption]
    unknown: list[str]
    questions: list[PriceQuestion]
    without_limits: str | None
    draws: int
    seed: int
    labels: LabelUse

    def option(self, name: str) -> ChoiceOption:
        """A candidate's line."""
        return next(option for option in self.options if option.candidate == name)


def choose(
    run: RunData, limits: ChoiceLimits, *, use_labels: bool = True, seed: int | None = None
) -> Choice:
    """The best candidate of a run under a price and a time.

    Args:
        run: the run; its responses tell cost and latency.
        limits: what a response may cost and take.
        use_labels: labels that suffice decide what is better; without, the panel alone does.
        seed: of the draws; by default the run's.

    Raises:
        InputError: fewer than two candidates were compared, or a limit needs a figure that no
            candidate has.
        ConfigError: a limit is no amount, or names no candidate.
    """
    require_rankings(run.manifest, "clash choose")
    limits.check(run.candidates)
    run, labels = run.by_label_rule(use_labels=use_labels)
    table = _Economics(run, limits)
    board = [row for row in standings(run) if row.win_rate_ties_half is not None]
    if len(board) < 2:
        raise InputError(
            "no two candidates have been compared, so that there is nothing to choose",
            hint="judge two or more candidates: clash eval PROMPTS --models A,B",
        )
    quality = _Quality.of(run, board)
    number = run.manifest.seeds.get("seed", 0) if seed is None else seed
    draws = draw_candidates(
        quality.sample,
        table.cost,
        table.latency,
        table.clusters,
        np.random.default_rng(number),
        quantile=limits.quantile,
        by_strengths=quality.by_strengths,
    )
    return _Chooser(run, limits, table, quality, draws, number, labels).choice()


class _Economics:
    """Cost and latency of each response, (N, K); what a user gives stands in every row."""

    def __init__(self, run: RunData, limits: ChoiceLimits) -> None:
        self.clusters: Index = run.cluster_codes
        shape = len(run.items), len(run.candidates)
        self.cost, self.latency = np.full(shape, np.nan), np.full(shape, np.nan)
        row = {item.item_id: n for n, item in enumerate(run.items)}
        column = {name: k for k, name in enumerate(run.candidates)}
        for response in run.responses:
            at = row[response.item_id], column[response.candidate]
            for values, value in (
                (self.cost, response.cost_usd),
                (self.latency, response.latency_s),
            ):
                is_possible = value is not None and 0 <= value <= _MOST
                values[at] = value if is_possible else math.nan
        for values, figures in ((self.cost, limits.prices), (self.latency, limits.latencies)):
            for name, value in figures.items():
                values[:, column[name]] = value

    def mean_cost(self, k: int) -> Interval | None:
        """The mean cost of a candidate's responses; null where none is known."""
        rows = np.flatnonzero(~np.isnan(self.cost[:, k]))
        if not len(rows):
            return None
        return mean_clustered(self.cost[rows, k], self.clusters[rows], LEVEL)

    def p_cost(self, k: int, limit: float) -> float | None:
        """The chance that the mean cost keeps a limit; null for fewer than two prompts."""
        from scipy.special import stdtr

        mean = self.mean_cost(k)
        if mean is None or not math.isfinite(mean.half_width):
            return None
        freedom = len(np.unique(self.clusters[~np.isnan(self.cost[:, k])])) - 1
        error = mean.half_width / t_quantile(LEVEL, freedom)
        if error <= 1e-12 * max(limit, mean.estimate):
            return float(mean.estimate <= limit)
        return float(stdtr(freedom, (limit - mean.estimate) / error))

    def latency_at(self, k: int, quantile: float, draws: Floats) -> Interval | None:
        """The quantile of a candidate's latencies, with the range of 95% of its draws."""
        rows = np.flatnonzero(~np.isnan(self.latency[:, k]))
        if not len(rows):
            return None
        values = self.latency[rows, k]
        value = float(np.quantile(values, quantile, method="inverted_cdf"))
        low, high = np.quantile(draws[:, k], [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
        n_clusters = len(np.unique(self.clusters[rows]))
        if n_clusters < 2:
            low, high = 0.0, math.inf
        method = "Bayesian bootstrap over clusters"
        return Interval(
            value, min(low, value), max(high, value), LEVEL, len(rows), n_clusters, method
        )

    def p_latency(self, k: int, quantile: float, limit: float) -> float | None:
        """The chance that a share ``quantile`` of responses keeps a limit, by Jeffreys' prior."""
        from scipy.special import betainc

        rows = np.flatnonzero(~np.isnan(self.latency[:, k]))
        if len(np.unique(self.clusters[rows])) < 2:
            return None
        rate = wilson_clustered((self.latency[rows, k] <= limit).astype(float), self.clusters[rows])
        n_kept = rate.estimate * rate.n_effective
        return float(1 - betainc(n_kept + 0.5, rate.n_effective - n_kept + 0.5, quantile))


@dataclass(frozen=True)
class _Quality:
    """How good the candidates are, and whose preference says so.

    Attributes:
        rates: of the candidates, best first.
        labels_unused: see :class:`Choice`.
    """

    rates: Mapping[str, Interval]
    sample: Sequence[PairSample] | StrengthSample
    by_strengths: bool
    by: Literal["panel", "people"]
    labels_unused: str | None

    @classmethod
    def of(cls, run: RunData, board: Sequence[Standing]) -> _Quality:
        """People's, where labels suffice; otherwise the panel's."""
        panel = {row.candidate: row.win_rate_ties_half for row in board}
        people = correction(run, list(panel))
        refusal = None
        if people is not None:
            rates, evidence = people.win_rates(), people_evidence(run)
            if set(rates) == set(panel) and evidence is not None:
                ranking = sorted(rates, key=lambda name: -rates[name].estimate)
                by_rank = {name: rates[name] for name in ranking}
                return cls(by_rank, _sample(evidence), False, "people", None)
            refusal = people.refusal or "they compare too few of the candidates"
        pairs = [
            PairSample(pair.first, pair.second, pair.rows, pair.outcomes)
            for pair in pair_outcomes(points_table(run))
        ]
        by_strengths = any(row.by_strengths for row in board)
        rates = {name: rate for name, rate in panel.items() if rate is not None}
        return cls(rates, pairs, by_strengths, "panel", refusal)


def _sample(evidence: PairSample | CorrectedStrengths) -> Sequence[PairSample] | StrengthSample:
    if isinstance(evidence, PairSample):
        return [evidence]
    theta = np.array([strength.estimate for strength in evidence.strengths])
    return StrengthSample(theta, evidence.influence)


@dataclass(frozen=True)
class _Chooser:
    """Everything that a choice is made from."""

    run: RunData
    limits: ChoiceLimits
    economics: _Economics
    quality: _Quality
    draws: Draws
    seed: int
    labels: LabelUse

    def choice(self) -> Choice:
        """Choose."""
        limits, names = self.limits, list(self.quality.rates)
        bare = [self._bare(name) for name in names]
        unknown = [option.candidate for option in bare if option.is_within is None]
        if len(unknown) == len(bare):
            raise self._without_figures(names[0])
        within = [option for option in bare if option.is_within]
        worth = self._worth_draws()
        table = regrets(worth, [self._column(option.candidate) for option in within])
        front = self.draws.front()
        options = [self._with_draws(option, table, front) for option in bare]
        pick = max(within, key=self._worth, default=None)
        best = max(bare, key=self._worth)
        elsewhere = pick is not None and best.candidate != pick.candidate
        return Choice(
            candidate=None if pick is None else pick.candidate,
            limits=limits,
            by=self.quality.by,
            n_items=len(self.run.items),
            n_labelled=len(self.run.truths),
            labels_unused=self.quality.labels_unused,
            options=options,
            unknown=unknown,
            questions=[] if pick is None else self._questions(pick, bare),
            without_limits=best.candidate if elsewhere else None,
            draws=DRAWS,
            seed=self.seed,
            labels=self.labels,
        )

    def _column(self, name: str) -> int:
        return self.run.candidates.index(name)

    def _bare(self, name: str) -> ChoiceOption:
        """A candidate's figures beside the limits, before any draw."""
        limits, k = self.limits, self._column(name)
        cost = self.economics.mean_cost(k)
        latency = self.economics.latency_at(k, limits.quantile, self.draws.latency)
        given_price, given_time = name in limits.prices, name in limits.latencies
        answers = [
            (None if figure is None else figure.estimate <= limit)
            for figure, limit in ((cost, limits.cost_usd), (latency, limits.latency_s))
            if limit is not None
        ]
        if limits.worth_usd is not None and cost is None:
            answers.append(None)
        is_within = False if False in answers else None if None in answers else True
        return ChoiceOption(
            candidate=name,
            win_rate=self.quality.rates[name],
            cost_usd=None if cost is None else cost.within(0.0, math.inf),
            latency_s=latency,
            cost_source=_source(cost, is_given=given_price),
            latency_source=_source(latency, is_given=given_time),
            is_within=is_within,
            p_cost=None
            if limits.cost_usd is None or given_price
            else self.economics.p_cost(k, limits.cost_usd),
            p_latency=None
            if limits.latency_s is None or given_time
            else self.economics.p_latency(k, limits.quantile, limits.latency_s),
            p_front=None,
            p_best=None,
            regret=None,
            regret_high=None,
        )

    def _with_draws(
        self, option: ChoiceOption, table: Regrets, front: Floats | None
    ) -> ChoiceOption:
        """The line with what the draws say; nothing where there is one prompt only."""
        k = self._column(option.candidate)
        if len(np.unique(self.economics.clusters)) < 2:
            return option
        return replace(
            option,
            p_front=None if front is None else _unless_nan(front[k]),
            p_best=_unless_nan(table.best[k]),
            regret=_unless_nan(table.mean[k]),
            regret_high=_unless_nan(table.high[k]),
        )

    def _worth(self, option: ChoiceOption) -> float:
        """Win rate; where an answer has a worth, what that comes to less the cost."""
        worth = self.limits.worth_usd
        if worth is None:
            return option.win_rate.estimate
        if option.cost_usd is None:
            return -math.inf
        return worth * option.win_rate.estimate - option.cost_usd.estimate

    def _worth_draws(self) -> Floats:
        worth = self.limits.worth_usd
        return self.draws.quality if worth is None else worth * self.draws.quality - self.draws.cost

    def _questions(
        self, pick: ChoiceOption, options: Sequence[ChoiceOption]
    ) -> list[PriceQuestion]:
        """The chosen candidate beside each other that it met and whose price is known."""
        questions = [self._question(pick, rival) for rival in options if rival is not pick]
        return [question for question in questions if question is not None]

    def _question(self, pick: ChoiceOption, rival: ChoiceOption) -> PriceQuestion | None:
        if pick.cost_usd is None or rival.cost_usd is None:
            return None
        extra = pick.cost_usd.estimate - rival.cost_usd.estimate
        dearer, cheaper = (pick, rival) if extra >= 0 else (rival, pick)
        a, b = self._column(dearer.candidate), self._column(cheaper.candidate)
        share = self._preference_share(a, b)
        if share is None or not abs(extra) > 0:
            return None
        prices = self.draws.cost[:, a] - self.draws.cost[:, b]
        per_win = price_of_a_win(self.draws.shares[:, a, b], prices)
        point = float(price_of_a_win(np.array([share.estimate]), np.array([abs(extra)]))[0])
        ends = np.quantile(per_win, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], method="inverted_cdf")
        low, high = ends.tolist()
        interval = Interval(
            point, min(low, point), max(high, point), LEVEL, share.n,
            share.n_effective, "Bayesian bootstrap over clusters",
        )  # fmt: skip
        cheap = float(cheaper.cost_usd.estimate) if cheaper.cost_usd else 0.0
        worth = self.limits.worth_usd
        return PriceQuestion(
            dearer=dearer.candidate,
            cheaper=cheaper.candidate,
            ratio=(cheap + abs(extra)) / cheap if cheap > 0 else None,
            extra_usd=abs(extra),
            preferred=share,
            usd_per_win=interval,
            p_worth=None if worth is None else float((per_win <= worth).mean()),
        )

    def _preference_share(self, a: int, b: int) -> Interval | None:
        """How often the first is preferred to the second; null where they never met."""
        sample, n_items = self.quality.sample, len(self.run.items)
        n_clusters = len(np.unique(self.economics.clusters))
        if isinstance(sample, StrengthSample):
            share = float(sample.shares(np.ones((1, n_clusters)))[0, a, b])
        else:
            pair = next((p for p in sample if {p.first, p.second} == {a, b}), None)
            if pair is None:
                return None
            of_first = float(pair.share(np.ones((1, n_items)))[0][0])
            share = of_first if pair.first == a else 1 - of_first
            n_items = len(pair.rows)
            n_clusters = len(np.unique(self.economics.clusters[pair.rows]))
        low, high = np.quantile(self.draws.shares[:, a, b], [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
        if n_clusters < 2:
            low, high = 0.0, 1.0
        return Interval(
            share, min(float(low), share), max(float(high), share), LEVEL, n_items,
            n_clusters, "Bayesian bootstrap over clusters",
        )  # fmt: skip

    def _without_figures(self, name: str) -> InputError:
        """The error where a limit needs a figure that no candidate has."""
        cost_is_needed = self.limits.cost_usd is not None or self.limits.worth_usd is not None
        is_cost = cost_is_needed and np.isnan(self.draws.cost).all()
        figure, mend = ("cost", f"--price {name}=0.002") if is_cost else (
            "latency", f"--latency {name}=800ms"
        )  # fmt: skip
        return InputError(
            f"no candidate has a {figure}: their responses were injected, not generated in this run",
            field="responses.jsonl",
            hint=f"state it for each candidate: {mend}",
        )


def _source(figure: Interval | None, *, is_given: bool) -> Source | None:
    return None if figure is None else "given" if is_given else "measured"


def _unless_nan(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
