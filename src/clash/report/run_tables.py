"""The leaderboard, agreement and judges of a run, as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clash.report.formats import DASH, counts, number, p_cell, percent
from clash.report.tables import Table
from clash.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from clash.analysis.findings import Findings
    from clash.analysis.method_findings import MethodFindings


def leaderboard(findings: Findings) -> Table:
    """Win rates and wins of each candidate; the people's choice where labels allow it."""
    people = any(row.people_win_rate is not None for row in findings.leaderboard)
    first = any(row.corrected_rate is not None for row in findings.leaderboard)
    by_borda = findings.aggregation is None or findings.aggregation.fallback is not None
    share = "Borda share" if by_borda else "share beaten"
    rows = [
        {
            "candidate": row.candidate,
            "win rate": percent(row.win_rate_ties_half),
            **({"people's win rate": percent(row.people_win_rate)} if people else {}),
            **({"people put it first": percent(row.corrected_rate)} if first else {}),
            "first": row.wins,
            "tied": row.ties,
            "not first": row.losses,
            "judged": f"{row.n_judged}/{row.items}",
            "first alone": percent(row.win_rate) if row.n_judged else DASH,
            share: percent(row.points),
            "best": number(row.best, ".0%"),
        }
        for row in findings.leaderboard
    ]
    notes = [
        "win rate: the share of comparisons that it wins, ties counting half"
        + (", as the mean over its opponents" if len(rows) > 2 else "")
        + "; 95% intervals, clustered by prompt"
    ]
    if any(row.by_strengths for row in findings.leaderboard):
        notes.append(
            "the candidates answered different items, so win rates are those that Bradley-Terry"
            " strengths expect against all the others"
        )
    measure = "of the points that judges can give" if by_borda else "of the others, by the verdicts"
    notes.append(
        "first alone: of all items it was to answer, those without a verdict included;"
        f" {share}: {measure}; best: share of bootstrap replicates in which that is the highest"
    )
    notes += _correction_notes(findings)
    optional = ("best", share, "first alone", "tied", "not first")
    return Table.of("Leaderboard", rows, notes=notes, brief=True, optional=optional)


def _correction_notes(findings: Findings) -> list[str]:
    """How the labels correct the win rates, or why they do not."""
    people = findings.correction
    if people is None:
        return []
    if people.refusal is not None:
        labels = plural(people.n_labelled, "label")
        return [f"what people put first is not estimated from {labels}: {people.refusal}"]
    notes = [
        f"people's columns: {people.n_labelled} labelled of {people.items} items, and the verdicts"
        " on all of them where these narrow the interval (prediction-powered)"
    ]
    if people.decision is not None and people.decision.any_time:
        return [*notes, "a review drew the items: its intervals hold whenever it stops"]
    if people.n_labelled < people.items:
        notes.append(
            "valid where the labelled items are a random sample of those on which the panel was"
            " unanimous, and of the others"
        )
    return notes


_MOST_ITEMS = 20


def method(findings: Findings) -> Table:
    """The win rates by the method of the run, beside those by Borda count."""
    by = findings.aggregation
    if by is None or by.fallback is not None:
        return Table("", [], [])
    name = by.method if by.model is None else f"{by.method}: {by.model}"
    rows = [
        {
            "candidate": row.candidate,
            f"win rate by {name}": percent(row.win_rate_ties_half),
            "by Borda": percent(by.borda_rates.get(row.candidate)),
        }
        for row in findings.leaderboard
    ]
    return Table.of("Method beside Borda", rows, notes=list(_method_notes(by)))


def _method_notes(by: MethodFindings) -> Iterator[str]:
    if by.reason is not None:
        yield f"auto selected {by.model}: {by.reason}"
    if by.borda_decision is not None:
        yield f"by Borda: {by.borda_decision.sentence}"
    if by.agreement is not None:
        yield f"the same winner on {percent(by.agreement)} of {plural(by.items, 'item')}"
    yield "confidence is a share of the votes as the method weighs them; no label was used"


def method_disagreements(findings: Findings) -> Table:
    """The items that the method decides otherwise than the Borda count."""
    by = findings.aggregation
    items = [] if by is None else by.disagreements
    rows = [
        {
            "item": line.item,
            "winner": line.winner,
            "by Borda": line.borda,
            "confidence": number(line.confidence, ".2f"),
        }
        for line in items[:_MOST_ITEMS]
    ]
    more = len(items) - len(rows)
    notes = [f"and {more} more: `aggregation.disagreements` of report.json"] if more else []

    return Table.of("Where method and Borda differ", rows, text=("winner", "by Borda"), notes=notes)


def duels(findings: Findings) -> Table:
    """Each pair of candidates, with a test."""
    rows = [
        {
            "pair": f"{duel.first} : {duel.second}",
            "won": duel.wins,
            "tied": duel.ties,
            "lost": duel.losses,
            "win rate": percent(duel.share),
            "p": p_cell(duel.p),
            "p (Holm)": p_cell(duel.p_holm),
        }
        for duel in findings.duels
    ]
    kinds = " or ".join(sorted({duel.test for duel in findings.duels}))
    return Table.of(
        "Pair by pair",
        rows,
        notes=[f"p: {kinds}; Holm's correction over all pairs"] if kinds else [],
        optional=("p",),
    )


def coverage(findings: Findings) -> Table:
    """What became of the items and judgments, and how far the judges agree."""
    items, unanimity = findings.coverage, findings.unanimity
    rows = [
        ["items", str(items.items)],
        ["decided, tied", f"{items.n_decided}, {items.n_tied}"],
        ["no verdict", counts(items.abstained) or "0"],
        ["unanimous", f"{unanimity.unanimous}/{items.items}: {percent(unanimity.rate)}"],
        [
            "splits",
            ", ".join(
                f"{n} x {split}"
                for split, n in sorted(unanimity.splits.items(), key=lambda p: -p[1])
            ),
        ],
        [
            "voting judgments",
            f"{items.n_expected} expected: {items.n_clean} clean,"
            f" {items.n_repaired} repaired, {sum(items.failures.values())} failed,"
            f" {items.not_run} not run",
        ],
    ]
    optional = [
        ("failed judgments", counts(items.failures)),
        ("missing responses", counts(items.responses_failed)),
        (
            "not asked: own response",
            f"{items.n_excluded} voting judgments" if items.n_excluded else "",
        ),
        ("criteria", _criteria(items.criteria)),
        ("statements of authorship masked", str(items.n_scrubbed) if items.n_scrubbed else ""),
        ("possible prompt injections", str(items.n_flagged) if items.n_flagged else ""),
        ("scores that contradict the ranking", _judgments(items.n_contradicted)),
        ("low scores without a reason", _judgments(items.n_unreasoned)),
        (
            "confidence, mean",
            "" if unanimity.mean_confidence is None else f"{unanimity.mean_confidence:.2f}",
        ),
    ]
    rows += [[name, value] for name, value in optional if value]
    if findings.label_concordance is not None:
        rows += list(_label_rows(findings))
    return Table("Coverage and agreement", ["", ""], rows, brief=True)


_CRITERIA = {
    "dynamic": "written from the prompt",
    "fallback": "general ones",
    "fixed": "as configured",
    "none": "without",
}


def _criteria(sources: Mapping[str, int]) -> str:
    """How many items were judged by which kind of criteria."""
    return ", ".join(f"{n} {_CRITERIA.get(source, source)}" for source, n in sources.items())


def _judgments(n: int) -> str:
    return plural(n, "judgment") if n else ""


def _label_rows(findings: Findings) -> Iterator[list[str]]:
    labels = findings.label_concordance
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


def baselines(findings: Findings) -> Table:
    """How far non-LLM baselines agree with the verdicts and the labels."""
    rows = [
        {
            "baseline": line.baseline,
            "agrees with the verdict": percent(line.agreement),
            "with the labels": percent(line.concordance),
        }
        for line in findings.baselines
    ]
    return Table.of(
        "Control group: non-LLM baselines",
        rows,
        notes=[f"{line.baseline}: {line.statement}" for line in findings.baselines],
        brief=True,
    )


def judges(findings: Findings) -> Table:
    """Failures, ties, agreement and order effects of each judge."""
    has_flips = any(judge.flips is not None for judge in findings.judges)
    rows = [
        {
            "judge": judge.judge,
            "role": judge.role if judge.weight in (0, 1) else f"{judge.role} x{judge.weight:g}",
            "judged": judge.n_judged,
            "failed": counts(judge.failures) or "0",
            "ties": percent(judge.ties),
            "agrees with the verdict": percent(judge.agreement),
            "first shown wins": percent(judge.first_shown)
            + ("" if judge.first_expected is None else f" (even: {judge.first_expected:.0%})"),
            **({"flips": percent(judge.flips)} if has_flips else {}),
        }
        for judge in findings.judges
    ]
    notes = ["a judge is part of the verdict, so agreement with it is not accuracy"]
    return Table.of("Judges", rows, text=("role",), notes=notes, optional=("role", "ties"))


def judge_pairs(findings: Findings) -> Table:
    """How often two judges put the same response first."""
    rows = [
        {"pair": f"{pair.first} : {pair.second}", "same first place": percent(pair.agreement)}
        for pair in findings.pairs
    ]
    return Table.of("Judges among themselves", rows)


def self_evaluation(findings: Findings) -> Table:
    """How often a candidate puts its own response first, and the panel does."""
    rows = [
        {
            "candidate": line.candidate,
            "puts itself first": percent(line.own_first),
            "the panel puts it first": percent(line.panel_first),
        }
        for line in findings.self_evaluation
    ]
    return Table.of(
        "Self-evaluation, blind",
        rows,
        notes=["shown, not counted, unless observers vote by configuration"],
    )
