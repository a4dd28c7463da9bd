"""How often each interval of clash holds the truth: simulations with a truth that is known.

    python benchmarks/coverage.py [--runs 1000] [--seed 1] [CASE…]

Prints for each case the share of runs whose interval holds the truth, at nominal 95%, and the mean
length of the interval. At 1,000 runs the share itself is known to ± 1.4 points. Every run of a case
has a seed of its own, so that cases can be run by name, or added, without changing the others.

A case is a function of a random generator, registered with ``@cases``. It simulates data, estimates,
and returns a ``Trial``: whether the interval holds the truth, and how long it is.
"""

from __future__ import annotations

import argparse
import zlib
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

import corrected
from clash.analysis.rankings import rank_candidates
from clash.analysis.win_rates import PairOutcomes, win_rates
from clash.stats.agreement import cohen_kappa
from clash.stats.choice import PairSample, draw_candidates
from clash.stats.intervals import (
    difference,
    mean_clustered,
    newcombe_paired,
    wilson,
    wilson_clustered,
)
from clash.stats.meta_analysis import random_effects, share_effects
from clash.stats.selection.calibration_gap import MeasuredBlock, calibration_gap
from clash.stats.selection.conformal import BinomialControl
from clash.stats.selection.corrected_share import corrected_share
from clash.stats.selection.corrected_strengths import corrected_strengths
from clash.stats.selection.ppi import powered_mean
from clash.stats.selection.sample_design import SampleDesign
from clash.stats.voting.judge_aware import judge_aware, judged_pairs
from clash.stats.voting.rankings import ranking_array
from clash.votes.named_rankings import NamedRankings

if TYPE_CHECKING:
    from collections.abc import Callable

    from clash.stats.intervals import Interval

NOMINAL = 0.95


@dataclass(frozen=True)
class Trial:
    """One run of a case: whether the truth is inside, and the length; NaN where there is none."""

    holds: bool
    length: float


@dataclass(frozen=True)
class Case:
    """An interval and the data that it is tried on.

    Attributes:
        estimate: what is estimated, the rows of the table that belong together.
        design: the data.
        note: why the share is not between 93 and 97%, where it is not.
    """

    estimate: str
    design: str
    run: Callable[[np.random.Generator], Trial]
    note: str = ""

    @property
    def name(self) -> str:
        """What it is called on the command line."""
        return f"{self.estimate}: {self.design}"


CASES: list[Case] = []


def cases(estimate, *designs, notes=MappingProxyType({})):
    """Register a function of (rng, *arguments) for designs (name, *arguments).

    ``notes`` are by design; that of "" is for all others.
    """

    def register(function):
        for design, *arguments in designs:
            run = partial(_call, function, arguments)
            CASES.append(Case(estimate, design, run, notes.get(design, notes.get("", ""))))
        return function

    return register


def _call(function, arguments, rng):
    return function(rng, *arguments)


def trial(interval: Interval, truth: float) -> Trial:
    """Whether an interval holds a truth."""
    return Trial(interval.low - 1e-9 <= truth <= interval.high + 1e-9, interval.high - interval.low)


def clustered(rng, p, rho, sizes):
    """Successes in clusters: shares beta distributed with mean p and correlation rho, and codes."""
    n_clusters, codes = len(sizes), np.repeat(np.arange(len(sizes)), sizes)
    if rho == 0:
        share = np.full(n_clusters, p)
    elif rho == 1:
        share = (rng.random(n_clusters) < p).astype(float)
    else:
        weight = 1 / rho - 1
        share = rng.beta(p * weight, (1 - p) * weight, n_clusters)
    return (rng.random(len(codes)) < share[codes]).astype(float), codes


UNEQUAL = np.array([1] * 20 + [2] * 10 + [4] * 6 + [10] * 3 + [25])
DISCRETE = "few outcomes are possible, so that coverage jumps with p"


@cases(
    "rate",
    ("n 30, p .5", 30, 0.5),
    ("n 30, p .8", 30, 0.8),
    ("n 30, p .95", 30, 0.95),
    ("n 200, p .95", 200, 0.95),
)
def rate(rng, n, p):
    return trial(wilson(int(rng.binomial(n, p)), n), p)


@cases(
    "rate, clustered",
    ("30 clusters of 5, p .5, ICC .1", 0.5, 0.1, [5] * 30),
    ("30 of 5, p .8, ICC .4", 0.8, 0.4, [5] * 30),
    ("30 of 5, p .95, ICC .1", 0.95, 0.1, [5] * 30),
    ("30 of 5, p .95, ICC .4", 0.95, 0.4, [5] * 30),
    ("30 of 5, p .95, ICC .8", 0.95, 0.8, [5] * 30),
    ("30 of 20, p .95, ICC .4", 0.95, 0.4, [20] * 30),
    ("100 of 20, p .98, ICC .4", 0.98, 0.4, [20] * 100),
    ("100 of 2, p .7, ICC .8", 0.7, 0.8, [2] * 100),
    ("40 of 1 to 25, p .8, ICC .4", 0.8, 0.4, UNEQUAL),
    ("40 of 1 to 25, p .95, ICC .4", 0.95, 0.4, UNEQUAL),
    ("5 of 5, p .7, ICC .1", 0.7, 0.1, [5] * 5),
    notes={
        "30 of 5, p .95, ICC .1": "few failures: possible outcomes are few",
        "30 of 5, p .95, ICC .4": "few failures: possible outcomes are few",
        "5 of 5, p .7, ICC .1": "five clusters cannot show how little they correlate",
    },
)
def rate_clustered(rng, p, rho, sizes):
    return trial(wilson_clustered(*clustered(rng, p, rho, sizes)), p)


@cases(
    "difference of rates",
    ("60 and 60, p .9 and .7", 60, 0.9, 0.7),
    ("20 and 20, p .95 and .95", 20, 0.95, 0.95),
    notes={"20 and 20, p .95 and .95": DISCRETE},
)
def difference_of_rates(rng, n, p, q):
    first, second = (wilson(int(rng.binomial(n, share)), n) for share in (p, q))
    return trial(difference(first, second), p - q)


@cases(
    "difference of rates, same items",
    ("100 items, .80 and .75", 100, (0.7, 0.1, 0.05, 0.15)),
    ("30 items, .9 and .8", 30, (0.75, 0.15, 0.05, 0.05)),
)
def difference_paired(rng, n, cells):
    counts = rng.multinomial(n, cells)
    return trial(newcombe_paired(*counts.tolist()), cells[1] - cells[2])


@cases(
    "mean, clustered",
    ("30 of 5, normal, ICC .4", 30),
    ("6 of 5, normal, ICC .4", 6),
)
def mean(rng, n_clusters):
    codes = np.repeat(np.arange(n_clusters), 5)
    values = np.sqrt(0.4) * rng.normal(size=n_clusters)[codes] + np.sqrt(0.6) * rng.normal(
        size=len(codes)
    )
    return trial(mean_clustered(values, codes), 0.0)


@cases(
    "kappa",
    ("100 items, agreement .85", 100, 0.85),
    ("30 items, agreement .85", 30, 0.85),
    ("100 items, agreement .95", 100, 0.95),
)
def kappa(rng, n, agreement):
    first = rng.integers(0, 2, n)
    second = np.where(rng.random(n) < agreement, first, 1 - first)
    return trial(cohen_kappa(first, second).interval, 2 * agreement - 1)


def _labelled_panel(rng, p, copies, accuracy, n_sources):
    """Labels and vote shares of three judges, in sources that share the rate of success."""
    of_source = rng.beta(p * 1.5, (1 - p) * 1.5, n_sources) if copies > 1 else np.full(n_sources, p)
    y = (rng.random((n_sources, copies)) < of_source[:, None]).astype(float)
    right = (rng.random((3, *y.shape)) < accuracy).mean(axis=0)
    shares = np.where(y == 1, right, 1 - right)
    return y.ravel(), shares.ravel(), np.repeat(np.arange(n_sources), copies)


@cases(
    "win rate corrected by labels",
    *(
        (
            f"{n} labels of {n + 600}, rate {p:g}, three judges right on {accuracy:.0%}",
            n,
            p,
            1,
            accuracy,
        )
        for n in (20, 30, 100)
        for p in (0.5, 0.8, 0.95, 0.98)
        for accuracy in (0.75, 0.9)
    ),
    *(
        (f"{n} sources of 3, rate {p:g}, correlation 0.4, judges right on 75%", n, p, 3, 0.75)
        for n in (20, 30, 100)
        for p in (0.5, 0.95, 0.98)
    ),
)
def corrected_rate(rng, n, p, copies, accuracy):
    y, judges, source = _labelled_panel(rng, p, copies, accuracy, n + 600 // copies)
    has_label = source < n
    estimate = powered_mean(np.where(has_label, y, np.nan), judges, source, are_shares=True)
    return trial(estimate.interval, p)


def _error_of_map(sharpness, level, noise):
    """A map of five judges' votes for each split, and its true root mean squared error."""

    def blocks(rng, n, copies):
        label = np.repeat((rng.random(n) < level).astype(float), copies)
        source = np.repeat(np.arange(n), copies)
        votes = np.where(
            label == 1, rng.binomial(5, 0.7, n * copies), rng.binomial(5, 0.3, n * copies)
        )
        k = np.arange(6)
        ways = np.array([1, 5, 10, 10, 5, 1])
        right, wrong = ways * 0.7**k * 0.3 ** (5 - k), ways * 0.3**k * 0.7 ** (5 - k)
        share = level * right + (1 - level) * wrong
        odds = np.log(0.7 / 0.3) * (2 * k - 5)
        truth = expit(np.log(level / (1 - level)) + odds)
        measured_blocks, squares = [], []
        for _ in range(30):
            scale, shift = sharpness * np.exp(rng.normal(0, noise)), rng.normal(0, noise)
            p = expit(np.log(level / (1 - level)) + scale * odds + shift)
            test = np.isin(source, rng.permutation(n)[: n // 5])
            measured_blocks.append(
                MeasuredBlock(p[votes[test], None], label[test, None], source[test])
            )
            squares.append(share @ (p - truth) ** 2)
        return measured_blocks, float(np.sqrt(np.mean(squares)))

    return blocks


PESSIMISTIC = (
    "bins pool predictions of few labels, and errors of several maps count as one until they"
    " show otherwise"
)


@cases(
    "calibration error of one map",
    *(
        (f"{n} labels{copies_text}, {name}", n, copies, sharpness, level, noise)
        for n, copies, copies_text in (
            *((n, 1, "") for n in (50, 100, 350, 1000)),
            (100, 3, " of 3 copies"),
        )
        for name, sharpness, level, noise in (
            ("perfect maps", 1.0, 0.5, 0.0),
            ("maps that scatter", 1.0, 0.5, 0.3),
            ("maps too sure by a fifth", 1.2, 0.5, 0.0),
            ("maps too sure by half", 1.5, 0.5, 0.1),
            ("maps too sure by half, 90% of one class", 1.5, 0.9, 0.1),
        )
    ),
    notes={"": PESSIMISTIC},
)
def calibration_error(rng, n, copies, sharpness, level, noise):
    blocks, truth = _error_of_map(sharpness, level, noise)(rng, n, copies)
    return trial(calibration_gap(blocks, rng), truth)


RISK_WORLDS = {
    "calibrated": lambda sure: 1 - sure,
    "too sure": lambda sure: np.minimum(2.5 * (1 - sure), 1),
    "every verdict just above the risk": lambda sure: np.full(len(sure), 0.1001),
    "wrong where it is sure": lambda sure: np.where(sure > 0.8, 0.16, 0.02),
    "2% errors": lambda sure: np.full(len(sure), 0.02),
    "no errors": lambda sure: np.zeros(len(sure)),
    "all wrong": lambda sure: np.ones(len(sure)),
}


@cases(
    "at most 10% wrong, 90% confidence",
    *(
        (f"{n} held out, {name}", n, errors)
        for name, errors in RISK_WORLDS.items()
        for n in (20, 90, 300, 900)
    ),
    notes={"": "a promise, not an interval: kept in at least 90%; length is the share answered"},
)
def risk_with_confidence(rng, n, errors):
    everybody = np.linspace(0.5, 1, 5000)
    sure = rng.uniform(0.5, 1, n)
    wrong = rng.random(n) < errors(sure)
    reference = everybody[::25]
    bound = BinomialControl(sure[~wrong], sure[wrong], reference, np.ones(len(reference)), 0.1)
    answers_by_row = bound.answers(everybody)
    is_kept = not answers_by_row.any() or errors(everybody)[answers_by_row].mean() <= 0.1
    return Trial(bool(is_kept), float(answers_by_row.mean()))


def judged(rng, theta, reliability, n):
    """Items of two candidates before four judges: ties, a length, a random position, shared noise."""
    k, j = len(theta), len(reliability)
    first = rng.integers(0, k, n)
    second = (first + rng.integers(1, k, n)) % k
    item, judge = np.repeat(np.arange(n), j), np.tile(np.arange(j), n)
    length, shared_noise = rng.normal(size=n)[item], 0.5 * rng.normal(size=n)[item]
    position = rng.choice([-1.0, 1.0], n * j)
    eta = reliability[judge] * (theta[first] - theta[second])[item]
    eta = eta + STYLE[0] * length + STYLE[1] * position + shared_noise
    parts = np.stack([np.exp(eta / 2), np.full(n * j, 0.6), np.exp(-eta / 2)])
    u = rng.random(n * j) * parts.sum(axis=0)
    points = np.where(u < parts[0], 1.0, np.where(u < parts[:2].sum(axis=0), 0.5, 0.0))
    style = np.stack([length, position], axis=1)
    return judged_pairs(first[item], second[item], points, judge, item, n_candidates=k, style=style)


STYLE = (0.5, 0.3)
RELIABILITY = np.array([1.7, 1.2, 0.9, 0.2])


@cases("strength, judge-aware", ("4 candidates, 60 items, 4 judges", 60, "theta"))
@cases("style effect", ("4 candidates, 60 items, 4 judges", 60, "style"))
@cases("reliability", ("4 candidates, 60 items, 4 judges", 60, "reliability"))
def judge_aware_estimate(rng, n, hypothesis):
    theta = rng.normal(size=4) * 0.7
    reliability = RELIABILITY / RELIABILITY.mean()
    fit = judge_aware(judged(rng, theta, reliability, n))
    if hypothesis == "theta":
        return trial(fit.strengths()[0], theta[0] - theta.mean())
    if hypothesis == "style":
        return trial(fit.style_effects()[0], STYLE[0])
    return trial(fit.reliabilities()[0], reliability[0])


SAFE = "a miss is a wrong order, which a true difference makes rare"


@cases(
    "all ranks together",
    ("5 candidates, equal, 50 items, borda", 50, 0.0, "borda"),
    ("5 candidates, spread .3, 50 items, borda", 50, 0.3, "borda"),
    ("5 candidates, equal, 50 items, copeland", 50, 0.0, "copeland"),
    ("5 candidates, equal, 50 items, bradley-terry", 50, 0.0, "bradley-terry"),
    notes={
        "5 candidates, spread .3, 50 items, borda": SAFE,
    },
)
def ranks(rng, n, spread, method):
    k, judges = 5, 3
    theta = spread * rng.normal(size=k)
    worth = theta + 0.7 * rng.normal(size=(n, 1, k)) + rng.gumbel(size=(n, judges, k))
    order = (-worth).argsort(axis=2).argsort(axis=2).reshape(n * judges, k).astype(float)
    array = ranking_array(
        order, judges=np.tile(np.arange(judges), n), items=np.repeat(np.arange(n), judges)
    )
    names = tuple("abcde")
    rankings = NamedRankings(names, ("x", "y", "z"), np.ones(judges), array, n, 0)
    actual_rankings = rank_candidates(
        rankings, [method], seed=int(rng.integers(1 << 30)), replicates=400
    )
    best = 1 + (theta[:, None] > theta).sum(axis=0)
    worst = k - (theta[:, None] < theta).sum(axis=0)
    places = {
        target_place.candidate: target_place for target_place in actual_rankings.methods[0].places
    }
    holds = [
        places[name].rank_low <= best[i] and worst[i] <= places[name].rank_high
        for i, name in enumerate(names)
    ]
    return Trial(all(holds), float(np.mean([p.rank_high - p.rank_low for p in places.values()])))


@cases(
    "people's preference, corrected",
    *(
        (
            f"{n} labels of 300, {name}, {'equal chances' if equal else 'more where unsure'}",
            n,
            panel,
            equal,
        )
        for n in (10, 20, 50, 100)
        for name, panel in (
            ("65%, judges right on 80%, lean", (0.65, (0.8,) * 3, 0.2, 0.0)),
            ("80%, judges right on 97%", (0.8, (0.97,) * 3, 0.0, 0.0)),
            ("65%, judges right on 90, 50 and 20%", (0.65, (0.9, 0.5, 0.2), 0.0, 0.0)),
        )
        for equal in (True, False)
    ),
)
def corrected_decision(rng, n, panel, equal):
    labels, votes = corrected.simulated(rng, *panel)
    order_and_chances = corrected.reorder(corrected.draw(rng, votes.mean(axis=1), equal=equal), n)
    known_labels, chances = corrected.labelled(labels, *order_and_chances)
    corrected_fit = corrected.estimate(known_labels, votes, None if equal else chances)
    return trial(corrected_fit.interval, panel[0])


@cases(
    "win rate of one of three, corrected",
    *(
        (
            f"{n} labels of 300, people's first wins {best:.0%}, {who} of three, {name}",
            n,
            best,
            place,
            skills,
        )
        for n in (20, 50)
        for best in (0.96, 0.75)
        for place, who in enumerate(("first", "second"))
        for name, skills in (
            ("judges right on 80%", (0.8,) * 3),
            ("one judge right on 85%, seven on 55%", (0.85, *(0.55,) * 7)),
        )
    ),
    notes={"": DISCRETE},
)
def corrected_strength(rng, n, best, place, skills):
    """People rank by strength and Gumbel noise; judges see each pair as people do, or not."""
    theta = np.array([1.0, 0.0, -1.0]) * brentq(
        lambda s: (expit(s) + expit(2 * s)) / 2 - best, 0.0, 10.0
    )
    first, second = np.array([0, 0, 1]), np.array([1, 2, 2])
    worth = theta + rng.gumbel(size=(corrected.ITEMS, 3))
    people = (worth[:, first] > worth[:, second]).astype(float)
    is_right = rng.random((*people.shape, len(skills))) < np.array(skills)
    votes = np.where(is_right, people[:, :, None], 1 - people[:, :, None])
    labels = np.where(np.arange(len(people))[:, None] < n, people, np.nan)
    pairs = np.column_stack([first, second])
    fit = corrected_strengths(labels, votes.mean(axis=2), pairs, 3, votes=votes)
    chances = expit(theta[place] - np.delete(theta, place))
    return trial(fit.win_rates[place], float(chances.mean()))


@cases(
    "preferred, clash choose, corrected",
    *(
        (f"50 labels of 300, 90%, judges right on 90, 50 and 20%, {draw}", draw)
        for draw in ("equal chances", "more where unsure", "half from unanimous items")
    ),
)
def preferred_with_labels(rng, draw):
    labels, votes = corrected.simulated(rng, 0.9, (0.9, 0.5, 0.2), 0.0, 0.0)
    panel, n = votes.mean(axis=1), len(labels)
    if draw == "half from unanimous items":
        stratum = (np.ptp(votes, axis=1) == 0).astype(int)
        order = rng.permutation(n)
        rows = np.concatenate([order[stratum[order] == s][:25] for s in (0, 1)])
        facts, design = np.full(n, np.nan), SampleDesign(strata=stratum)
        facts[rows] = labels[rows]
    else:
        is_equal = draw == "equal chances"
        drawn = corrected.reorder(corrected.draw(rng, panel, equal=is_equal), 50)
        facts, chances = corrected.labelled(labels, *drawn)
        design = SampleDesign(chances=None if is_equal else chances)
    share = corrected_share(facts, panel, design, votes=votes)
    weights = design.weights(~np.isnan(facts))
    sample = PairSample.of_labels((0, 1), np.arange(n), share, np.arange(n), weights)
    blank = np.full((n, 2), np.nan)
    draws = draw_candidates([sample], blank, blank, np.arange(n), rng, draws=1000)
    low, high = np.quantile(draws.shares[:, 0, 1], [(1 - NOMINAL) / 2, (1 + NOMINAL) / 2])
    return Trial(bool(low <= 0.9 <= high), float(high - low))


@cases(
    "preferred, clash choose",
    ("10 questions, 50%", 10, 0.5),
    ("10 questions, 80%", 10, 0.8),
    ("30 questions, 80%", 30, 0.8),
    ("100 questions, 95%", 100, 0.95),
    notes={"": "the prior of one question draws to 50%"},
)
def preferred(rng, n, p):
    """Shares of three judges by the Bayesian bootstrap; the truth is the mean of such shares."""
    ease = rng.beta(4 * p, 4 * (1 - p), n)
    outcomes = rng.binomial(3, ease) / 3
    blank = np.full((n, 2), np.nan)
    sample = [PairSample(0, 1, np.arange(n), outcomes)]
    draws = draw_candidates(sample, blank, blank, np.arange(n), rng, draws=1000).shares[:, 0, 1]
    low, high = np.quantile(draws, [(1 - NOMINAL) / 2, (1 + NOMINAL) / 2])
    return Trial(bool(low <= p <= high), float(high - low))


@cases(
    "mean over data sets, clash compare",
    *(
        (f"{k} data sets of {n} items, standard deviation {sd:g} in log-odds", k, n, sd)
        for k, n in ((3, 100), (5, 50), (10, 100))
        for sd in (0.0, 0.5)
    ),
    notes={"": "t with few degrees of freedom, never narrower than without heterogeneity"},
)
def random_effect(rng, k, n, sd):
    shares = expit(0.8 + sd * rng.normal(size=k))
    pooled_effect = random_effects(
        *share_effects([wilson(int(rng.binomial(n, p)), n) for p in shares])
    )
    return trial(pooled_effect.mean, 0.8)


@cases(
    "win rate over opponents",
    ("3 candidates, 30 items, one at .95", 30, 0.95),
    ("3 candidates, 100 items, one at .7", 100, 0.7),
)
def win_rate(rng, n, p):
    outcomes = [(rng.random(n) < share).astype(float) for share in (p, p, 0.5)]
    pairs = [
        PairOutcomes(first, second, np.arange(n), result)
        for (first, second), result in zip(((0, 1), (0, 2), (1, 2)), outcomes, strict=True)
    ]
    return trial(win_rates(pairs, np.arange(n), 3, same_items=True).rates[0], p)


def measure(subject: Case, runs: int, seed: int) -> tuple[float, float, int]:
    """Share of the runs that hold the truth, mean length, and runs that had an interval."""
    key = zlib.crc32(subject.name.encode())
    trials = [subject.run(np.random.default_rng([seed, key, i])) for i in range(runs)]
    lengths = np.array([t.length for t in trials])
    usable = np.isfinite(lengths)
    holds = np.array([t.holds for t in trials])[usable]
    if not usable.any():
        return float("nan"), float("nan"), 0
    return float(holds.mean()), float(lengths[usable].mean()), int(usable.sum())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", help="parts of names; all where none is given")
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print("| estimate | design | coverage | mean length | |\n| --- | --- | --- | --- | --- |")
    for subject in CASES:
        if options.cases and not any(part in subject.name for part in options.cases):
            continue
        share, length, n = measure(subject, options.runs, options.seed)
        note = subject.note if not 0.93 <= share <= 0.97 else ""
        if n < options.runs:
            note = "; ".join(filter(None, [f"no interval in {options.runs - n} runs", note]))
        print(
            f"| {subject.estimate} | {subject.design} | {share:.1%} | {length:.3f} | {note} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
