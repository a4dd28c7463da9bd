"""The test-retest report as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clash.report.claims import claims_table
from clash.report.formats import DASH, bounds, estimate, money, number, p_value, percent, share
from clash.report.tables import CLUSTERED_LABEL, Table, cut_note, with_rows
from clash.wording import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.analysis.concordance.cases import CaseRate
    from clash.analysis.retest import Retest
    from clash.analysis.retest.targeted import TargetedRun

_MOST_ITEMS = 20


def title_of(runs: Sequence[str]) -> str:
    """The heading of a report over these runs."""
    return f"Test and retest: {runs[0]}"


def tables(retest: Retest) -> list[Table]:
    """The tables that have a row, the most important first."""
    return with_rows(
        [
            _runs(retest),
            _agreement(retest),
            _matches(retest),
            _stability(retest),
            *map(_targeted_run, retest.targeted_runs),
            _judges(retest),
            _flips(retest),
            _rankings(retest),
            _variance(retest),
            _missed_pairs(retest),
            _changed_items(retest),
            _least_confident(retest),
            claims_table(retest.published_claims),
        ]
    )


def _runs(retest: Retest) -> Table:
    rows = [
        [
            line.run,
            str(line.n),
            "fresh" if line.fresh_responses else "same",
            str(line.no_verdict),
            share(line.concordance),
            _clustered_percent(line.concordance),
            _wilson(line.concordance),
            _kappa(line.concordance),
            f"{line.unanimous}/{line.n}",
            money(line.cost_usd),
        ]
        for line in retest.runs
    ]
    for name, rate in (("all whole runs", retest.all_runs), ("majority of runs", retest.majority)):
        if rate is not None:
            plain = [str(rate.n), "", "", share(rate), _clustered_percent(rate), _wilson(rate)]
            rows.append([name, *plain, _kappa(rate), "", ""])
    notes = []
    if retest.all_runs is not None:
        notes.append(
            "all complete runs: verdicts of one item in several runs are one cluster; Wilson's "
            "interval assumes independence and is too narrow"
        )
        notes.append("kappa: over sides, shuffled, which is 2p - 1")
    if retest.majority_tied:
        notes.append(f"{plural(retest.majority_tied, 'item')} without a majority: the runs tie")
    return Table(
        f"Runs of the same {retest.n} items",
        [
            "run",
            "n",
            "responses",
            "no verdict",
            "right",
            CLUSTERED_LABEL,
            "Wilson",
            "kappa",
            "unanimous",
            "cost",
        ],
        rows,
        frozenset({1, 3, 4, 5, 6, 7, 8, 9}),
        notes,
        brief=True,
    )


def _clustered_percent(rate: CaseRate | None) -> str:
    return DASH if rate is None else percent(rate.interval, digits=1)


def _wilson(rate: CaseRate | None) -> str:
    return DASH if rate is None else bounds(rate.wilson)


def _kappa(rate: CaseRate | None) -> str:
    return DASH if rate is None else f"{2 * rate.estimate - 1:.3f}"


def _agreement(retest: Retest) -> Table:
    rows = [
        [
            f"{pair.first} : {pair.second}",
            "same" if pair.same_responses else "fresh",
            percent(pair.verdicts.agreement, digits=1),
            estimate(pair.verdicts.kappa.interval),
            DASH if pair.matches is None else estimate(pair.matches.kappa.interval),
        ]
        for pair in retest.pairs
    ]
    if len(retest.pairs) > 1:
        fresh = retest.fresh_pair_agreement
        kinds = ("", "") if fresh is None else ("same", "fresh")
        for kind, rate in zip(kinds, (retest.pair_agreement, fresh), strict=True):
            if rate is not None:
                rows.append(["mean of two runs", kind, percent(rate, digits=1), "", ""])
        rows.append(["all runs alike", "", percent(retest.all_same, digits=1), "", ""])
    return Table(
        "Agreement between runs",
        ["runs", "responses", "same verdict", "kappa over verdicts", "kappa over match and miss"],
        rows,
        frozenset({2, 3, 4}),
        [
            "kappa over verdicts: which side each run chose; over match and miss: whether each "
            "run agrees with people. They answer different questions"
        ],
        brief=True,
    )


def _matches(retest: Retest) -> Table:
    rows = [
        {
            "runs": f"{pair.first} : {pair.second}",
            "both right": t.both,
            "first only": t.first,
            "second only": t.second,
            "neither": t.neither,
            "McNemar p": p_value(t.change),
            "chi-square": f"{t.corrected.statistic:.2f}",
        }
        for pair in retest.pairs
        if (t := pair.matches) is not None
    ]
    return Table.of(
        "Right and wrong, run against run",
        rows,
        notes=["McNemar, exact: whether one run is better; chi-square with continuity correction"],
        brief=True,
    )


def _stability(retest: Retest) -> Table:
    rows = [
        [category.name, str(category.n), percent(category.share, digits=1)]
        for category in retest.categories
    ]
    if retest.systematic is not None:
        errors = retest.systematic
        wrong = round(errors.estimate * errors.n)
        rows.append(
            ["errors that are systematic", f"{wrong}/{errors.n:g}", percent(errors, digits=1)]
        )
        stochastic = f"{1 - errors.estimate:.1%} [{100 - 100 * errors.high:.1f},"
        stochastic += f" {100 - 100 * errors.low:.1f}]"
        rows.append(
            ["errors that are stochastic", f"{errors.n - wrong:g}/{errors.n:g}", stochastic]
        )
    notes = [
        "systematic: wrong in every run; stochastic: not the same in every run. With more runs,"
        " items move from stable to unstable, so report the number of runs with the share"
    ]
    if retest.fresh_pair_agreement is not None:
        notes.append(
            "some runs judged fresh responses: an item may change with its responses, not only with"
            " the judges"
        )
    return Table(
        "Stability of the items",
        ["", "items", CLUSTERED_LABEL],
        rows,
        frozenset({1, 2}),
        notes,
        brief=True,
    )


def _targeted_run(part: TargetedRun) -> Table:
    rows = [
        {
            "items that were": group.name,
            "n": group.n,
            "right now": f"{round(group.right.estimate * group.n)}/{group.n}",
            "95%, Wilson": percent(group.right, digits=1),
            "different verdict from run 1": group.n_changed,
        }
        for group in part.groups
    ]
    notes = []
    if part.confirmation is not None:
        again = part.confirmation
        by_chance = number(again.expected, ".0%")
        notes = [
            "consistently wrong items that are wrong again: "
            f"{round(again.rate.estimate * again.rate.n)} of"
            f" {again.rate.n:g}; if each verdict were a coin flip, p = {again.coin.p:.3e}"
            f" ({again.coin.method})",
            f"{part.caveat}: {by_chance} of them",
        ]
    return Table.of(f"Targeted run {part.run}", rows, notes=notes, brief=True)


def _judges(retest: Retest) -> Table:
    rows = [
        {
            "judge": line.judge,
            "role": line.role,
            "same first place": percent(line.consistency, digits=1),
            "items": line.items,
        }
        for line in retest.judges
    ]
    return Table.of(
        "Each judge against itself",
        rows,
        text=("role",),
        notes=["two runs at a time, on the same responses in another shuffle"],
    )


def _flips(retest: Retest) -> Table:
    rows = [
        {
            "judge": line.judge,
            "flips": percent(line.flips.rate, digits=1),
            "n": f"{line.flips.rate.n:g}",
            "to the first": line.flips.to_first,
            "to the second": line.flips.to_second,
            "to or from a tie": line.flips.softened,
            "p of a position preference": p_value(line.flips.lean),
        }
        for line in retest.flips
    ]
    return Table.of(
        "Both orders, over all runs",
        rows,
        notes=[
            "flips: another winner when the responses swap positions; p: whether the flips prefer "
            "one position"
        ],
    )


def _rankings(retest: Retest) -> Table:
    agreement = retest.rankings
    if agreement is None:
        return Table("Rankings", [], [])
    rows = [
        ["Kendall's tau-b, mean over pairs of runs", estimate(agreement.mean)],
        ["the same leader", f"{agreement.same_winner:.0%} of the pairs"],
    ]
    notes = [f"over {len(retest.candidates)} candidates in {len(agreement.tau)} runs of all items"]
    if agreement.mean.method.startswith("no"):
        notes.append("two rankings do not show their spread: an interval needs three runs")
    return Table("Rankings, cycle against cycle", ["", ""], rows, frozenset({1}), notes)


def _variance(retest: Retest) -> Table:
    split = retest.variance
    if split is None:
        notes = [retest.variance_why] if retest.variance_why else []
        fresh = any(line.fresh_responses for line in retest.runs)
        rows = [["all runs alike", percent(retest.all_same, digits=1)]] if fresh else []
        return Table("Generation and judgment", ["", ""], rows, frozenset({1}), notes)
    rows = [
        ["two judgments of the same responses agree", number(split.same_responses, ".0%")],
        ["two judgments of fresh responses agree", number(split.fresh_responses, ".0%")],
        ["variance by judgment", f"{split.judgment:.3f}"],
        ["variance by generation", f"{split.generation:.3f}"],
        ["variance by prompt", f"{split.prompt:.3f}"],
        ["share of the instability due to generation", percent(split.generation_share)],
    ]
    return Table(
        "Generation and judgment",
        ["", ""],
        rows,
        frozenset({1}),
        ["variance of a winner: half the rate at which two of them differ; unbiased, so it may be"
         " a little below 0"],
        brief=True,
    )  # fmt: skip


def _missed_pairs(retest: Retest) -> Table:
    rows = [
        {"pair": line.pair, "wrong in every run": line.missed_always, "items": line.items}
        for line in retest.missed_pairs[:_MOST_ITEMS]
    ]
    return Table.of(
        "Pairs that are wrong in every run",
        rows,
        notes=["the worst of many pairs, picked by looking: part of it is luck"],
    )


def _changed_items(retest: Retest) -> Table:
    return _items("Items whose verdict changes", retest, [line.item_id for line in retest.unstable])


def _least_confident(retest: Retest) -> Table:
    return _items(
        "Least confident items", retest, [line.item_id for line in retest.least_sure[:_MOST_ITEMS]]
    )


def _items(title: str, retest: Retest, ids: Sequence[str]) -> Table:
    lines = {line.item_id: line for line in (*retest.least_sure, *retest.unstable)}
    rows = [
        {
            "item": name,
            "confidence": number(lines[name].confidence, ".2f"),
            "": lines[name].category,
            "said, run by run": ", ".join(lines[name].verdicts),
        }
        for name in ids[:_MOST_ITEMS]
    ]
    return Table.of(
        title,
        rows,
        text=("", "said, run by run"),
        notes=cut_note(len(ids), _MOST_ITEMS, "retest.json"),
    )
