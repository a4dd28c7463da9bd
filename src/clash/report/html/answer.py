"""What one sees first: headline, evidence, what contradicts it, one chart, five figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clash.analysis.retest import Retest
from clash.pages import interval_chart, share_axis, short_names
from clash.report.formats import money, plural, points, two_digits
from clash.report.headline import retest_headline, run_headline, telling_baseline
from clash.report.html.blocks import KeyFigure, PageAnswer
from clash.report.html.trust import chance_mark, method_rows
from clash.report.html.words import bracket, duration, p_words, share_row
from clash.wording import with_capital

if TYPE_CHECKING:
    from collections.abc import Iterator

    from markupsafe import Markup

    from clash.analysis.concordance import Concordance
    from clash.analysis.findings import Findings
    from clash.analysis.further import Further
    from clash.analysis.redteam import Redteam
    from clash.analysis.rundata import RunData
    from clash.pages import ChartRow
    from clash.report.headline import Headline
    from clash.stats.intervals import Interval

MOST_ROWS = 10
"""Candidates of the first chart; the others fold under it."""


def answer(findings: Findings, more: Further, run: RunData) -> PageAnswer:
    """The top of the page, which answers what this kind of run asks."""
    if findings.redteam is not None and findings.kind == "redteam":
        return _redteam(findings, findings.redteam, run)
    if isinstance(more.retest, Retest):
        return _rerun(findings, more.retest, run)
    if findings.kind == "validate" and findings.concordance is not None:
        return _validate(findings, findings.concordance, run)
    return _evaluation(findings, run)


def win_rates(findings: Findings) -> dict[str, Interval]:
    """The win rate of each candidate that has one, best first."""
    return {
        row.candidate: row.win_rate_ties_half
        for row in findings.leaderboard
        if row.win_rate_ties_half is not None
    }


def notices(findings: Findings) -> Iterator[str]:
    """What is wrong with the run itself, beside what its headline says."""
    counts = findings.coverage
    if findings.status != "complete":
        usable = counts.n_clean + counts.n_repaired
        judgments = f"{usable:,} of {plural(counts.n_expected, 'judgment')}"
        if usable < counts.n_expected:
            state = f"{judgments} are in; this page is about those."
        else:
            state = "This run is incomplete."
        # A model that refused for good is no better the next time.
        fix = "fix what is named below, then " if findings.stops else ""
        yield f"{state} To finish: {fix}`clash resume {findings.run}`."
    for model, reason in findings.stops.items():
        yield f"{model} cannot be used: {reason}"
    if findings.spending.warning is not None:
        yield f"{with_capital(findings.spending.warning)}."


def _evaluation(findings: Findings, run: RunData) -> PageAnswer:
    headline = run_headline(findings)
    is_stopped = headline.shape == "stopped"
    rates = win_rates(findings)
    winner = _ahead(findings)
    marks = _people_marks(findings)
    rows = [
        share_row(
            row.candidate,
            rates.get(row.candidate),
            tone="accent" if row.candidate == winner else "plain",
            mark=marks.get(row.candidate),
            note="" if row.candidate in rates else "never judged",
        )
        for row in findings.leaderboard
    ]
    caption = "Win rate, ties count half; 95% intervals."
    if marks:
        has_people_rates = any(row.people_win_rate is not None for row in findings.leaderboard)
        caption += (
            " Ticks: as people would say." if has_people_rates else " Ticks: by human labels."
        )
    if any(row.by_strengths for row in findings.leaderboard):
        caption += " On different prompts, so by Bradley-Terry strengths."
    chart = folded_rows = None
    if len(rates) > 1 or (rates and len(rows) > 1):
        axis, words = share_axis(rows), "people" if marks else ""
        beginning, remainder = rows[:MOST_ROWS], rows[MOST_ROWS:]
        chart = interval_chart(beginning, axis, label="Win rate", large=True, mark_label=words)
        if remainder:
            folded_rows = interval_chart(remainder, axis, label="Win rate, continued", large=True)
    return page_answer(
        headline,
        findings,
        chart,
        caption if chart else "",
        (
            _winner(findings, is_stopped=is_stopped),
            _agreement(findings),
            *_usual(findings, run),
            _more(findings, is_stopped=is_stopped),
        ),
        folded_rows,
    )


def page_answer(
    headline: Headline,
    findings: Findings,
    chart: Markup | None,
    caption: str,
    figures: tuple[KeyFigure, ...],
    folded_rows: Markup | None = None,
) -> PageAnswer:
    """The headline with its chart and figures, and what is wrong with the run."""
    return PageAnswer(
        headline.text,
        headline.evidence,
        headline.contradiction,
        (*headline.notes, *notices(findings)),
        chart,
        caption,
        figures,
        folded_rows,
    )


def _ahead(findings: Findings) -> str | None:
    """Whom the headline is about: a winner, or a leader that wins more than it loses."""
    decision = findings.decision
    if decision.status == "decided":
        return decision.winner
    is_ahead = decision.share is not None and decision.share.estimate > 0.5
    return decision.winner if is_ahead else None


def _people_marks(findings: Findings) -> dict[str, float]:
    """The win rate of each candidate by the labels; empty without a label that compares two."""
    people_rates = {
        row.candidate: row.people_win_rate.estimate
        for row in findings.leaderboard
        if row.people_win_rate is not None
    }
    people = findings.preference
    if people_rates or people is None:
        return people_rates
    return {row.candidate: row.rate.estimate for row in people.rates}


def _winner(findings: Findings, *, is_stopped: bool) -> KeyFigure:
    decision = findings.decision
    if is_stopped:
        leader = _ahead(findings)
        return KeyFigure(
            "Winner", "not yet", f"{_short(leader, findings)} ahead so far" if leader else ""
        )
    if decision.status == "decided" and decision.winner is not None:
        return KeyFigure(
            "Winner", _short(decision.winner, findings), f"ahead, {p_words(decision.p)}"
        )
    if decision.status == "leading" and decision.winner is not None:
        note = f"{_short(decision.winner, findings)} ahead" if _ahead(findings) else "level"
        p = p_words(decision.p)
        return KeyFigure("Winner", "not clear", f"{note}, {p}" if p else note)
    note = p_words(decision.p) if decision.status == "tied" else "nothing to compare"
    return KeyFigure("Winner", "none", note)


def _short(name: str, findings: Findings) -> str:
    """A name in the width of a figure."""
    return short_names([row.candidate for row in findings.leaderboard], 18)[name]


def _agreement(findings: Findings) -> KeyFigure:
    labels = findings.label_concordance
    if labels is None:
        return KeyFigure("Panel agrees with people", "not measured", "no labels")
    note = f"{bracket(labels.concordance)}, {plural(labels.n, 'label')}"
    return KeyFigure("Panel agrees with people", f"{labels.concordance.estimate:.0%}", note)


def _usual(findings: Findings, run: RunData) -> tuple[KeyFigure, KeyFigure]:
    """Judgments and cost, which every page shows."""
    counts = findings.coverage
    usable, failures = counts.n_clean + counts.n_repaired, sum(counts.failures.values())
    parts = [
        f"{failures:,} failed" if failures else "",
        f"{counts.not_run:,} not run" if counts.not_run else "",
    ]
    note = ", ".join(part for part in parts if part) or "none failed"
    least = "≥ " if findings.cost_is_lower_bound else ""
    return (
        KeyFigure("Judgments usable", f"{usable:,} of {counts.n_expected:,}", note),
        KeyFigure("Cost", least + money(findings.cost_usd), duration(run.manifest.wall_s)),
    )


def _more(findings: Findings, *, is_stopped: bool) -> KeyFigure:
    decision, counts = findings.decision, findings.coverage
    if is_stopped:
        to_go = counts.items - counts.n_decided - counts.n_tied
        return KeyFigure("More prompts", f"{to_go:,} to go", f"of {counts.items:,}")
    if decision.status == "decided":
        return KeyFigure("More prompts", "none", "the winner is clear")
    if decision.status == "none":
        return KeyFigure("More prompts", "–")
    if decision.items_for_10_points:
        n = two_digits(decision.items_for_10_points)
        return KeyFigure("More prompts", f"about {n:,}", "to detect 10 points")
    if decision.equal or decision.items_for_10_points == 0:
        return KeyFigure("More prompts", "none", "enough to detect 10 points")
    return KeyFigure("More prompts", "–", "most prompts are ties")


def _validate(findings: Findings, people: Concordance, run: RunData) -> PageAnswer:
    rate, best = people.headline.rate, telling_baseline(people)
    rows = method_rows(people)
    share, label = chance_mark(people)
    chart = None
    if len(rows) > 1:
        axis = share_axis(rows, reference=share, label=label)
        chart = interval_chart(rows, axis, label="Agreement with people", large=True)
    crowd = people.people
    ceiling = (
        KeyFigure("Two people agree", "not measured", "one label a prompt")
        if crowd is None
        else KeyFigure(
            "Two people agree",
            f"{crowd.agreement.estimate:.0%}",
            f"{bracket(crowd.agreement)}, {plural(crowd.items, 'prompt')}",
        )
    )
    gain = KeyFigure("Ahead of simple rules", "–")
    if best is not None and best.against is not None:
        difference = points(best.against, digits=1).replace("-", "−").partition(" ")[0]
        gain = KeyFigure("Ahead of simple rules", difference, f"points, {p_words(best.test)}")
    figures = (
        KeyFigure("Panel agrees with people", f"{rate.estimate:.1%}", bracket(rate.interval)),
        gain,
        *_usual(findings, run),
        ceiling,
    )
    caption = f"Share of {plural(rate.n, 'label')} that each would have given, 95% intervals."
    return page_answer(run_headline(findings), findings, chart, caption, figures)


def _rerun(findings: Findings, again: Retest, run: RunData) -> PageAnswer:
    agreement = again.pair_agreement
    headline = retest_headline(again, findings.run)
    rows = [share_row("the panel", agreement, tone="accent")]
    rows += [share_row(line.judge, line.consistency) for line in again.judges]
    chart = chart_of(rows, "Same first place in both runs")
    kappas = [pair.verdicts.kappa.interval for pair in again.pairs]
    kappa = KeyFigure("Kappa", "–")
    if kappas:
        kappa = KeyFigure("Kappa", f"{kappas[0].estimate:.2f}", "agreement beyond chance")
    figures = (
        KeyFigure("Same verdict twice", f"{agreement.estimate:.0%}", bracket(agreement)),
        KeyFigure("Verdicts that changed", f"{again.n - again.n_same} of {again.n}"),
        kappa,
        *_usual(findings, run),
    )
    caption = "How often the same response comes first in both runs, 95% intervals."
    return page_answer(headline, findings, chart, caption, figures)


def _redteam(findings: Findings, result: Redteam, run: RunData) -> PageAnswer:
    panel = result.panel
    rows = [share_row("the panel", panel.rate, tone="accent")]
    rows += [
        share_row(line.name, line.rate, note=f"{line.n_turned} of {line.n_attacked}")
        for line in result.judges
        if line.n_attacked
    ]
    chart = chart_of(rows, "Turned by an injection", 0.0, "0% = never")
    families = [line for line in result.families if line.n_turned]
    worst = max(families, key=lambda line: line.rate.estimate, default=None)
    figures = (
        KeyFigure("Turned by an injection", f"{panel.n_turned} of {panel.n_attacked}", bracket(panel.rate)),
        KeyFigure("Right without injection", f"{panel.clean} of {panel.controls}", "control items"),
        *_usual(findings, run),
        KeyFigure("Weakest against", "–" if worst is None else worst.name,
                  "" if worst is None else f"{worst.n_turned} of {worst.n_attacked} turned"),
    )  # fmt: skip
    caption = "Share of attacked control items on which the worse response came first."
    return page_answer(run_headline(findings), findings, chart, caption, figures)


def chart_of(
    rows: list[ChartRow], label: str, reference: float | None = None, words: str = ""
) -> Markup | None:
    """The first chart; null where it would be a single row."""
    if len(rows) < 2:
        return None
    axis = share_axis(rows, reference=reference, label=words)
    return interval_chart(rows, axis, label=label, large=True)
