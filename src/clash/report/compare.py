"""The comparison of runs as tables."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from clash.report.claims import claims_table
from clash.report.concordance.agreement_tables import contrast_row
from clash.report.concordance.bias_tables import selves
from clash.report.formats import (
    DASH,
    bounds,
    estimate,
    money,
    p_value,
    percent,
    points,
    seconds,
    share,
)
from clash.report.tables import Table, with_rows

if TYPE_CHECKING:
    from clash.analysis.compare import RunComparison
    from clash.analysis.compare.pairs import RunAgainstRun
    from clash.analysis.compare.pooled import JudgeAblation, PooledRuns
    from clash.analysis.concordance import CaseRate


def tables(comparison: RunComparison) -> list[Table]:
    """The tables that have a row, the most important first."""
    tables = [
        _runs(comparison),
        _experiments(comparison),
        _shared_items(comparison),
        _candidates(comparison),
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
        [
            line.run,
            line.kind,
            f"{line.panel} ({line.judges})",
            f"{line.items} on {line.questions}",
            str(line.candidates),
            str(line.n_decided),
            share(line.concordance),
            DASH if line.concordance is None else percent(line.concordance.interval, digits=1),
            DASH if line.kappa is None else estimate(line.kappa.interval),
            percent(line.unanimity),
            money(line.cost_usd),
            DASH if line.cost_usd is None or not line.items else money(line.cost_usd / line.items),
            seconds(line.seconds / line.items) if line.items and line.seconds else DASH,
        ]
        for line in comparison.runs
    ]
    return Table(
        "Runs",
        [
            "run",
            "kind",
            "panel (judges)",
            "items, questions",
            "candidates",
            "decided",
            "right",
            "concordance",
            "kappa, sides shuffled",
            "unanimous",
            "cost",
            "an item",
            "time",
        ],
        rows,
        frozenset(range(3, 13)),
        ["intervals at 95%, clustered by question"],
        brief=True,
    )


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
            ]
        )
    notes = ["taken as independent experiments: the pooled two-proportion z test"]
    if any(
        pair.shared_items is not None and pair.shared_items.n_labelled for pair in comparison.pairs
    ):
        notes.append("runs that share items are not independent: use the paired test below")
    return Table(
        "Concordance, experiment against experiment",
        ["runs", "right", "difference, clustered", "Newcombe", "z", "p"],
        rows,
        frozenset({1, 2, 3, 4, 5}),
        notes,
        brief=True,
    )


def _shared_items(comparison: RunComparison) -> Table:
    rows = [_shared_row(pair) for pair in comparison.pairs if pair.shared_items is not None]
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
        ],
        rows,
        frozenset(range(1, 10)),
        [
            "McNemar's exact test assumes independent items; the differences (a t test and a "
            "bootstrap over questions) do not"
        ],
        brief=True,
    )


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
    if len(comparison.runs) != 2 or not comparison.pairs[0].candidates:
        taus = [
            [f"{pair.first} : {pair.second}", str(len(pair.candidates)), f"{pair.tau:.2f}"]
            for pair in comparison.pairs
            if pair.tau is not None and not math.isnan(pair.tau)
        ]
        return Table(
            "Leaderboards",
            ["runs", "candidates of both", "Kendall's tau-b"],
            taus,
            frozenset({1, 2}),
        )
    pair = comparison.pairs[0]
    rows = [
        [line.candidate, f"{line.first:.0%}", f"{line.second:.0%}",
         f"{100 * (line.second - line.first):+.1f}"]
        for line in sorted(pair.candidates, key=lambda line: -line.first)
    ]  # fmt: skip
    tau = [] if pair.tau is None or math.isnan(pair.tau) else [f"Kendall's tau-b: {pair.tau:.2f}"]
    return Table(
        "Leaderboards",
        ["candidate", pair.first, pair.second, "change, points"],
        rows,
        frozenset({1, 2, 3}),
        ["share of the Borda points", *tau],
    )


def _ablation(comparison: RunComparison, pooled_runs: PooledRuns) -> Table:
    names = [line.run for line in comparison.runs]
    rows = [_ablation_row(line) for line in (*pooled_runs.judges, pooled_runs.panel)]
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
    return Table(
        "Judges and panel, pooled",
        ["judge", *names, "pooled", "95%, clustered", "panel ahead by", "p"],
        rows,
        frozenset(range(1, len(names) + 5)),
        notes,
        brief=True,
    )


def _ablation_row(line: JudgeAblation) -> list[str]:
    return [
        line.name,
        *map(_of_judged, line.runs),
        _of_judged(line.overall),
        bounds(line.overall.interval),
        points(line.ahead),
        p_value(line.test),
    ]


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
        cells = contrast_row(split.contrast)
        notes.append(f"difference {cells[3]} points; chi-square {cells[4]}; Fisher p {cells[6]}")
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
