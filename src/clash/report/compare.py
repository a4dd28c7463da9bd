"""The comparison of runs as tables."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

from clash.analysis.compare.data_sets import FEWEST
from clash.escape import clip
from clash.report.claims import claims_table
from clash.report.concordance.agreement_tables import chi_square
from clash.report.concordance.bias_tables import selves
from clash.report.drawing import Dot, Picture, StraightLine, Word
from clash.report.formats import (
    DASH,
    bounds,
    estimate,
    money,
    number,
    p_cell,
    p_value,
    percent,
    plural,
    points,
    seconds,
    share,
)
from clash.report.tables import CLUSTERED_LABEL, Table, with_rows

if TYPE_CHECKING:
    from clash.analysis.compare import RunComparison
    from clash.analysis.compare.data_sets import AcrossDataSets, Gradient, PooledShare
    from clash.analysis.compare.pairs import RunAgainstRun
    from clash.analysis.compare.pooled import PooledRuns
    from clash.analysis.concordance.cases import CaseRate
    from clash.report.drawing import Shape

_WIDTH = 640.0
_NAME_HEIGHT = 13.0


def tables(comparison: RunComparison) -> list[Table]:
    """The tables that have a row, the most important first."""
    tables = [
        _runs(comparison),
        _experiments(comparison),
        _shared_items(comparison),
        _candidates(comparison),
        *_across(comparison.across),
    ]
    if comparison.pool is not None:
        tables += [
            _ablation(comparison, comparison.pool),
            _unanimity(comparison.pool),
            selves(comparison.pool.self_rates, "Self-evaluation, blind, pooled"),
        ]
    tables.append(claims_table(comparison.published_claims))
    return with_rows(tables)


def _runs(comparison: RunComparison) -> Table:
    rows = [
        {
            "run": line.run,
            "kind": line.kind,
            "panel (judges)": f"{line.panel} ({line.judges})",
            "items, questions": f"{line.items} on {line.questions}",
            "candidates": line.candidates,
            "decided": line.n_decided,
            "right": share(line.concordance),
            "concordance": DASH
            if line.concordance is None
            else percent(line.concordance.interval, digits=1),
            "kappa, sides shuffled": DASH if line.kappa is None else estimate(line.kappa.interval),
            "unanimous": percent(line.unanimity),
            "cost": money(line.cost_usd),
            "an item": DASH
            if line.cost_usd is None or not line.items
            else money(line.cost_usd / line.items),
            "time": seconds(line.seconds / line.items) if line.items and line.seconds else DASH,
        }
        for line in comparison.runs
    ]
    return Table.of(
        "Runs",
        rows,
        text=("kind", "panel (judges)"),
        notes=["intervals at 95%, clustered by question", *unjudged_notes(comparison)],
        brief=True,
    )


def unjudged_notes(comparison: RunComparison) -> list[str]:
    """What interrupted runs have not judged, and how to go on with each."""
    return [
        f"{line.run} has not judged {line.n_unjudged:,} of its {line.items:,} items, and no figure"
        f" counts them: `clash resume {line.run}`"
        for line in comparison.runs
        if line.n_unjudged
    ]


def _experiments(comparison: RunComparison) -> Table:
    rows = []
    for pair in comparison.pairs:
        line = pair.experiments
        if line is None:
            continue
        rows.append(
            [
                f"{pair.first} : {pair.second}",
                f"{line.right[0]:g}/{line.n[0]} : {line.right[1]:g}/{line.n[1]}",
                points(line.clustered_difference),
                points(line.newcombe),
                f"{line.test.statistic:.2f}",
                p_value(line.test),
                *_holm_cell(comparison, pair, of_shared_items=False),
            ]
        )
    notes = ["taken as independent experiments: the pooled two-proportion z test"]
    if any(
        pair.shared_items is not None and pair.shared_items.n_labelled for pair in comparison.pairs
    ):
        notes.append("runs that share items are not independent: use the paired test below")
    return Table(
        "Concordance, experiment against experiment",
        ["runs", "right", "difference, clustered", "Newcombe", "z", "p", *_holm_title(comparison)],
        rows,
        frozenset({1, 2, 3, 4, 5, 6}),
        notes,
        brief=True,
    )


def _shared_items(comparison: RunComparison) -> Table:
    rows = [
        [*_shared_row(pair), *_holm_cell(comparison, pair, of_shared_items=True)]
        for pair in comparison.pairs
        if pair.shared_items is not None
    ]
    notes = []
    if comparison.all_alike is not None:
        test = comparison.all_alike
        notes.append(
            f"that all runs agree with people equally often on the items of all: {test.method}"
            f" {test.statistic:.2f}, p {p_value(test)}"
        )
    return Table(
        "On the items that both have",
        [
            "runs",
            "items",
            "same verdict",
            "kappa over verdicts",
            "only first right",
            "only second",
            "McNemar p",
            "difference, clustered",
            "p",
            "bootstrap",
            *_holm_title(comparison),
        ],
        rows,
        frozenset(range(1, 11)),
        [
            "McNemar's exact test assumes independent items; the differences (a t test and a "
            "bootstrap over questions) do not",
            *notes,
        ],
        brief=True,
    )


def _holm_title(comparison: RunComparison) -> list[str]:
    return ["p, Holm"] if len(comparison.pairs) > 1 else []


def _holm_cell(
    comparison: RunComparison, pair: RunAgainstRun, *, of_shared_items: bool
) -> list[str]:
    """The corrected p of a pair of runs, in the table whose test it is of."""
    if len(comparison.pairs) < 2:
        return []
    overlap = pair.shared_items
    is_paired = overlap is not None and overlap.paired_test is not None
    return [p_cell(pair.p_holm) if of_shared_items == is_paired else DASH]


def _shared_row(pair: RunAgainstRun) -> list[str]:
    line = pair.shared_items
    if line is None:
        return []
    paired_test = line.paired_test
    return [
        f"{pair.first} : {pair.second}",
        str(line.n),
        percent(line.verdicts.agreement, digits=1),
        estimate(line.verdicts.kappa.interval),
        str(line.only_first) if line.n_labelled else DASH,
        str(line.only_second) if line.n_labelled else DASH,
        p_value(line.mcnemar),
        DASH if paired_test is None else points(paired_test.difference),
        DASH if paired_test is None else p_value(paired_test.test),
        DASH if line.bootstrap is None else points(line.bootstrap.difference),
    ]


def _candidates(comparison: RunComparison) -> Table:
    if len(comparison.pairs) != 1 or not comparison.pairs[0].candidates:
        taus = [
            {
                "runs": f"{pair.first} : {pair.second}",
                "candidates of both": len(pair.candidates),
                "Kendall's tau-b": f"{pair.tau:.2f}",
            }
            for pair in comparison.pairs
            if pair.tau is not None and not math.isnan(pair.tau)
        ]
        return Table.of("Leaderboards", taus)
    pair = comparison.pairs[0]
    rows = [
        [
            line.candidate,
            f"{line.first:.0%}",
            f"{line.second:.0%}",
            f"{100 * (line.second - line.first):+.1f}",
        ]
        for line in sorted(pair.candidates, key=lambda line: -line.first)
    ]
    tau = [] if pair.tau is None or math.isnan(pair.tau) else [f"Kendall's tau-b: {pair.tau:.2f}"]
    columns = ["candidate", pair.first, pair.second, "change, points"]
    notes = ["share of the Borda points", *tau]
    return Table("Leaderboards", columns, rows, frozenset({1, 2, 3}), notes)


def _across(across: AcrossDataSets | None) -> list[Table]:
    """The data sets, and every two candidates over them."""
    if across is None:
        return []
    rows = [
        {
            "data set": line.name,
            "items, questions": f"{line.n_items} on {line.questions}",
            "split verdicts": percent(line.split),
            "agreement with people": DASH
            if line.concordance is None
            else percent(line.concordance.interval),
        }
        for line in across.sets
    ]
    agreement = across.concordance
    notes = [f"a typical data set: {pooled_text(agreement)}"] if agreement is not None else []
    if across.gradient is not None and across.gradient.test is not None:
        notes.append(gradient_text(across.gradient))
    if across.n_repeated:
        notes.append(
            f"{plural(across.n_repeated, 'record')} of items that an earlier data set has count"
            " there alone"
        )
    if across.n_untagged:
        notes.append(f"{plural(across.n_untagged, 'item')} without such a tag left out")
    sets = Table.of("Data sets", rows, notes=notes)
    return [sets, _pooled_duels(across)] if across.duels else [sets]


def _pooled_duels(across: AcrossDataSets) -> Table:
    rows = [
        {
            "preferred : to": f"{duel.first} : {duel.second}",
            "sets": duel.pooled.k,
            "typical set": percent(duel.pooled.share),
            "another set": DASH
            if duel.pooled.prediction is None
            else percent(duel.pooled.prediction),
            "tau²": number(duel.pooled.tau2.estimate, ".2f"),
            "I²": percent(duel.pooled.i2),
            "Q": f"{duel.pooled.heterogeneity.statistic:.1f}",
            "p of Q": p_value(duel.pooled.heterogeneity),
            "p": p_cell(duel.pooled.test.p),
            "p, Holm": p_cell(duel.p_holm),
        }
        for duel in across.duels
    ]
    return Table.of(
        "Candidates over the data sets",
        rows,
        notes=[
            f"data sets in which two met on fewer than {FEWEST} items are left out for them",
            "random effects on log-odds: REML, intervals by Hartung and Knapp, tau² and I² by the Q"
            " profile; another set: where the share of a further data set lies",
            "p: that neither is preferred; Holm corrects for all pairs of candidates",
        ],
        optional=("tau²", "Q", "another set"),
    )


def pooled_text(summary: PooledShare) -> str:
    """``82% [70, 90] · I² 40% [0, 81] · Q 5.2 (p 0.16)``."""
    q = summary.heterogeneity
    test = f"Q {q.statistic:.1f} (p {p_value(q)})"
    text = f"{percent(summary.share)} · I² {percent(summary.i2)} · {test}"
    return text if summary.converged else f"{text} · not converged"


def gradient_text(gradient: Gradient) -> str:
    """How agreement changes from the easiest data set to the hardest, and the test of it."""
    (_, first), (_, last) = gradient.curve[0], gradient.curve[-1]
    return (
        f"gradient: {first:.0%} at the easiest to {last:.0%} at the hardest by {gradient.measure}"
        f" (p {p_value(gradient.test)})"
    )


def gradient_picture(gradient: Gradient) -> Picture:
    """Agreement with people over difficulty: a dot and its interval for each data set."""
    left, right, top, bottom = 56.0, _WIDTH - 150.0, 14.0, 250.0
    xs = [x for _, x, _ in gradient.points]
    least, most = min(xs), max(xs)
    lowest = min(0.5, *(rate.low for _, _, rate in gradient.points))
    lowest = math.floor(10 * lowest) / 10

    def at(x: float, share: float) -> tuple[float, float]:
        return (
            left + 24 + (right - left - 48) * (x - least) / (most - least),
            bottom - (bottom - top) * (share - lowest) / (1 - lowest),
        )

    shapes: list[Shape] = []
    for step in range(5):
        share = lowest + (1 - lowest) * step / 4
        _, y = at(least, share)
        shapes += [
            StraightLine(left, y, right, y),
            Word(left - 8, y + 4, f"{share:.0%}", "end", "ink-2", 11),
        ]
    is_share = gradient.measure.startswith("share")
    for x in dict.fromkeys((least, most)):
        label = f"{x:.0%}" if is_share else f"{x:g}"
        shapes.append(Word(at(x, lowest)[0], bottom + 18, label, "middle", "ink-2", 11))
    shapes.append(Word((left + right) / 2, bottom + 36, gradient.measure, "middle", "ink-2", 11.5))
    for before, after in pairwise(gradient.curve):
        shapes.append(StraightLine(*at(*before), *at(*after), "accent", 2))
    for _, x, rate in gradient.points:
        shapes.append(StraightLine(*at(x, rate.low), *at(x, rate.high), "ink-2", 1.5))
    baseline = -math.inf
    # Names from the top down, each below the one before it, so that none covers another.
    for name, x, rate in sorted(gradient.points, key=lambda point: -point[2].estimate):
        px, y = at(x, rate.estimate)
        baseline = max(y + 4, baseline + _NAME_HEIGHT)
        shapes += [Dot(px, y, 5), Word(px + 10, baseline, clip(name, 20))]
    words = "; ".join(f"{name}: {percent(rate)}" for name, _, rate in gradient.points)
    title = "Agreement with people over difficulty"
    return Picture("gradient", title, words, _WIDTH, bottom + 48, tuple(shapes))


def _ablation(comparison: RunComparison, pooled_runs: PooledRuns) -> Table:
    names = [line.run for line in comparison.runs]
    rows = [
        [
            line.name,
            *map(_of_judged, line.runs),
            _of_judged(line.overall),
            bounds(line.overall.interval),
            points(line.ahead),
            p_value(line.test),
        ]
        for line in (*pooled_runs.judges, pooled_runs.panel)
    ]
    notes = ["of items judged; panel ahead by: on all pooled items, paired and clustered"]
    if pooled_runs.over_mean is not None and pooled_runs.over_worst is not None:
        notes.append(
            f"the panel is {100 * pooled_runs.over_mean:+.1f} points over the mean of its judges,"
            f" {100 * pooled_runs.over_worst:+.1f} over the worst"
        )
    if pooled_runs.n_repeated:
        counting = "counted again" if pooled_runs.every_record else "counted once, in the first run"
        notes.append(
            f"{pooled_runs.n_repeated} records are of items that another run has: {counting}"
        )
    columns = ["judge", *names, "pooled", CLUSTERED_LABEL, "panel ahead by", "p"]
    numbers = frozenset(range(1, len(columns)))
    return Table("Judges and panel, pooled", columns, rows, numbers, notes, brief=True)


def _of_judged(rate: CaseRate) -> str:
    return DASH if not rate.n_judged else f"{rate.of_judged.estimate:.1%} of {rate.n_judged}"


def _unanimity(pooled_runs: PooledRuns) -> Table:
    split = pooled_runs.split
    total = sum(rate.n for rate in (split.unanimous, split.split) if rate is not None)
    rows = [
        [name, str(rate.n), f"{rate.n / total:.0%}", percent(rate.interval, digits=1)]
        for name, rate in (("unanimous", split.unanimous), ("split", split.split))
        if rate is not None
    ]
    rows += [
        [f"  {judge}, where split", str(rate.n), "", percent(rate.interval, digits=1)]
        for judge, rate in split.judges_on_split.items()
    ]
    notes = []
    if split.contrast is not None:
        line = split.contrast
        notes.append(
            f"difference {points(line.difference)} points; chi-square {chi_square(line.chi_square)};"
            f" Fisher p {p_value(line.fisher)}"
        )
    if split.incomplete:
        notes.append(f"{split.incomplete} verdicts of an incomplete panel count as neither")
    return Table(
        f"Unanimous and split, pooled (N = {total})",
        ["", "n", "", "concordance"],
        rows,
        frozenset({1, 2, 3}),
        notes,
        brief=True,
    )
