"""Findings as tables of words: the one description that every format renders."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from clash.analysis.findings import Findings
    from clash.stats.intervals import Interval

NONE = "–"


@dataclass(frozen=True)
class Table:
    """A table of text.

    Attributes:
        numeric: columns that are aligned to the right.
        notes: what a reader must know to read it right.
        brief: it belongs on the first screen.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    numeric: frozenset[int] = frozenset()
    notes: Sequence[str] = field(default_factory=tuple)
    brief: bool = False


def tables(found: Findings) -> list[Table]:
    """Everything worth a table, in the order of interest; empty ones are left out."""
    # Their tables are made of these.
    from clash.report import concordance, preregistration, published, redteam, spending

    with_people = concordance.tables(found.concordance)
    first = found.kind == "validate"
    attacks = [] if found.redteam is None else redteam.tables(found.redteam)
    made = [
        *(attacks if found.kind == "redteam" else []),
        *(with_people if first else []),
        preregistration.table(found.preregistration),
        _leaderboard(found),
        _duels(found),
        _coverage(found),
        _control(found),
        _judges(found),
        _pairs(found),
        _self(found),
        _pareto(found),
        _costs(found),
        spending.table(found),
        *([] if first else with_people),
        *(attacks if found.kind != "redteam" else []),
        published.claims_table(found.published),
    ]
    return [table for table in made if table is not None and table.rows]


def percent(interval: Interval | None, *, digits: int = 0) -> str:
    """A proportion and its interval, as ``71% [60, 80]``."""
    if interval is None or math.isnan(interval.estimate):
        return NONE
    low, high = 100 * interval.low, 100 * interval.high
    return f"{interval.estimate:.{digits}%} [{low:.{digits}f}, {high:.{digits}f}]"


def money(usd: float | None) -> str:
    """Dollars, with as many digits as matter."""
    if usd is None:
        return "unknown"
    return f"${usd:.2f}" if usd >= 1 or usd == 0 else f"${usd:.4f}"


def seconds(value: float | None) -> str:
    """A duration."""
    if value is None:
        return NONE
    return f"{value:.1f} s" if value >= 1 else f"{value * 1000:.0f} ms"


def counts(causes: Mapping[str, int]) -> str:
    """``3 timeout, 1 refusal``."""
    ordered = sorted(causes.items(), key=lambda pair: (-pair[1], pair[0]))
    return ", ".join(f"{n} {cause}" for cause, n in ordered)


def _leaderboard(found: Findings) -> Table:
    people = any(row.corrected is not None for row in found.leaderboard)
    rows = [
        [
            str(place),
            row.candidate,
            percent(row.points),
            str(row.wins),
            str(row.ties),
            str(row.losses),
            f"{row.judged}/{row.items}",
            percent(row.win_rate),
            *([percent(row.corrected)] if people else []),
            NONE if row.best is None else f"{row.best:.0%}",
        ]
        for place, row in enumerate(found.leaderboard, start=1)
    ]
    notes = [
        "points: mean share of the Borda points that a response can get; 95% intervals by a"
        " bootstrap over prompts",
        "win rate: out of all items it was to answer, those without a verdict included; best:"
        " share of bootstrap replicates that it leads",
    ]
    if len({row.items for row in found.leaderboard}) > 1:
        notes.append("the candidates answered different items: compare them pair by pair")
    notes += _corrected(found)
    extra = ["people's win rate"] if people else []
    return Table(
        "Leaderboard",
        ["", "candidate", "points", "won", "tied", "lost", "judged", "win rate", *extra, "best"],
        rows,
        frozenset({0, *range(2, 9 + len(extra))}),
        notes,
        brief=True,
    )


def _corrected(found: Findings) -> list[str]:
    """What the labels make of the win rates, or why they do not suffice."""
    people = found.correction
    if people is None:
        return []
    if people.refused is not None:
        return [f"win rates are not corrected by the {people.labelled} labels: {people.refused}"]
    return [
        f"people's win rate: {people.labelled} labelled of {people.items} items and the verdicts"
        " on the rest (PPI++), valid where those labelled are a random sample of the items on"
        " which the panel was unanimous, and of the others"
    ]


def _duels(found: Findings) -> Table:
    rows = [
        [
            f"{duel.first} : {duel.second}",
            str(duel.wins),
            str(duel.ties),
            str(duel.losses),
            percent(duel.share),
            f"{duel.p:.3f}",
            f"{duel.p_holm:.3f}",
        ]
        for duel in found.duels
    ]
    kinds = " or ".join(sorted({duel.test for duel in found.duels}))
    return Table(
        "Pair by pair",
        ["pair", "won", "tied", "lost", "share (tie = half)", "p", "p (Holm)"],
        rows,
        frozenset({1, 2, 3, 4, 5, 6}),
        [f"p: {kinds}; Holm's correction over all pairs"] if kinds else [],
    )


def _coverage(found: Findings) -> Table:
    covered, agreed = found.coverage, found.unanimity
    rows = [
        ["items", str(covered.items)],
        ["decided, tied", f"{covered.decided}, {covered.tied}"],
        ["no verdict", counts(covered.abstained) or "0"],
        ["unanimous", f"{agreed.unanimous}/{covered.items}: {percent(agreed.rate)}"],
        [
            "splits",
            ", ".join(
                f"{n} x {split}" for split, n in sorted(agreed.splits.items(), key=lambda p: -p[1])
            ),
        ],
        [
            "voting judgments",
            f"{covered.expected} expected: {covered.clean} clean,"
            f" {covered.repaired} repaired, {sum(covered.failed.values())} failed,"
            f" {covered.not_run} not run",
        ],
    ]
    optional = [
        ("failed judgments", counts(covered.failed)),
        ("responses not had", counts(covered.responses_failed)),
        (
            "not asked: own response",
            f"{covered.excluded} voting judgments" if covered.excluded else "",
        ),
        ("criteria", counts(covered.criteria)),
        ("self-identification masked", str(covered.scrubbed) if covered.scrubbed else ""),
        ("texts that speak to the judge", str(covered.flagged) if covered.flagged else ""),
        ("scores against the ranking", _judgments(covered.contradicted)),
        ("low scores without a reason", _judgments(covered.unreasoned)),
        (
            "confidence, mean",
            "" if agreed.mean_confidence is None else f"{agreed.mean_confidence:.2f}",
        ),
    ]
    rows += [[name, value] for name, value in optional if value]
    if found.labelled is not None:
        rows += list(_labels(found))
    return Table("Coverage and agreement", ["", ""], rows, brief=True)


def _judgments(n: int) -> str:
    return f"{n} judgment{'s' if n != 1 else ''}" if n else ""


def _labels(found: Findings) -> Iterator[list[str]]:
    labels = found.labelled
    if labels is None:
        return
    missing = (
        f", {labels.no_verdict} without a verdict count as misses" if labels.no_verdict else ""
    )
    yield ["concordance with labels", f"{percent(labels.concordance)} of {labels.n}{missing}"]
    if labels.unanimous is not None:
        yield ["  where unanimous", f"{percent(labels.unanimous)} of {labels.unanimous.n:g}"]
    if labels.split is not None:
        yield ["  where split", f"{percent(labels.split)} of {labels.split.n:g}"]


def _control(found: Findings) -> Table:
    rows = [
        [line.baseline, percent(line.agreement), percent(line.concordance)]
        for line in found.baselines
    ]
    return Table(
        "Control group: judges that are no language model",
        ["baseline", "agrees with the verdict", "with the labels"],
        rows,
        frozenset({1, 2}),
        [f"{line.baseline}: {line.statement}" for line in found.baselines],
        brief=True,
    )


def _judges(found: Findings) -> Table:
    rows = []
    for judge in found.judges:
        expected = "" if judge.first_expected is None else f" (even: {judge.first_expected:.0%})"
        rows.append(
            [
                judge.judge,
                judge.role if judge.weight in (0, 1) else f"{judge.role} x{judge.weight:g}",
                str(judge.judged),
                counts(judge.failed) or "0",
                percent(judge.ties),
                percent(judge.agreement),
                percent(judge.first_shown) + expected,
                *([percent(judge.flips)] if _flips(found) else []),
            ]
        )
    last = ["flips"] if _flips(found) else []
    return Table(
        "Judges",
        [
            "judge",
            "role",
            "judged",
            "failed",
            "ties",
            "agrees with the verdict",
            "first shown wins",
            *last,
        ],
        rows,
        frozenset({2, 3, 4, 5, 6, 7}),
        ["agreement with a verdict that a judge had a part in is no accuracy"],
    )


def _flips(found: Findings) -> bool:
    return any(judge.flips is not None for judge in found.judges)


def _pairs(found: Findings) -> Table:
    rows = [[f"{pair.first} : {pair.second}", percent(pair.agreement)] for pair in found.pairs]
    return Table("Judges among themselves", ["pair", "same first place"], rows, frozenset({1}))


def _self(found: Findings) -> Table:
    rows = [
        [line.candidate, percent(line.own_first), percent(line.panel_first)]
        for line in found.self_evaluation
    ]
    return Table(
        "Self-evaluation, blind",
        ["candidate", "puts itself first", "the panel puts it first"],
        rows,
        frozenset({1, 2}),
        ["shown, not counted, unless observers vote by configuration"],
    )


def _pareto(found: Findings) -> Table | None:
    if all(trade.cost_usd is None and trade.latency_s is None for trade in found.trades):
        return None
    rows = [
        [
            trade.candidate,
            NONE if trade.quality is None else f"{trade.quality:.0%}",
            money(trade.cost_usd),
            seconds(trade.latency_s),
            seconds(trade.ttft_s),
            ", ".join(trade.dominated_by) or "nobody: on the front",
        ]
        for trade in found.trades
    ]
    return Table(
        "Quality, cost and speed",
        ["candidate", "points", "cost a response", "median time", "first token", "dominated by"],
        rows,
        frozenset({1, 2, 3, 4}),
    )


def _costs(found: Findings) -> Table:
    rows = [
        [
            line.purpose,
            line.who,
            str(line.calls),
            str(line.attempts),
            ("" if line.exact else "≥ ") + money(line.cost_usd),
            f"{line.tokens_in:,}",
            f"{line.tokens_out:,}",
            seconds(line.latency_median_s),
            seconds(line.latency_p90_s),
            counts(line.errors),
        ]
        for line in found.economies
    ]
    bound = " at least: some prices or counts are unknown" if found.cost_is_lower_bound else ""
    return Table(
        f"Calls ({money(found.cost_usd)}{bound})",
        [
            "purpose",
            "who",
            "answered",
            "attempts",
            "cost",
            "tokens in",
            "out",
            "median",
            "p90",
            "errors",
        ],
        rows,
        frozenset({2, 3, 4, 5, 6, 7, 8}),
    )
