"""What a command shows when it is done: the answer, a chart, the facts that matter, in 20 lines.

A screen is computed as lines of styled pieces and printed by :mod:`clash.report.terminal`. The sentence
report stands in tables (:mod:`clash.report.sections`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rich.cells import cell_len

from clash.analysis.decision import p_text
from clash.escape import for_terminal
from clash.pages.names import short_names
from clash.report import registration, single_text
from clash.report.formats import counts, money, percent, seconds, two_digits
from clash.report.headline import (
    comparison_headline,
    retest_headline,
    run_headline,
    telling_baseline,
)
from clash.report.table_layout import wrap
from clash.wording import NO_BREAK, decimal, plural, with_whole_figures

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from clash.analysis.compare import RunComparison
    from clash.analysis.compare.data_sets import AcrossDataSets
    from clash.analysis.compare.pairs import RunAgainstRun
    from clash.analysis.compare.win_rate_changes import WinRateChange
    from clash.analysis.concordance import Concordance
    from clash.analysis.concordance.label_noise import Ceiling
    from clash.analysis.findings import Findings
    from clash.analysis.retest import Retest
    from clash.analysis.single_text import TextFindings
    from clash.report.headline import Headline
    from clash.stats.intervals import Interval

    Piece = tuple[str, str]

WIDTH = 80
"""The width of a screen where the reader has none."""
_MOST_ROWS = 6
_NAME_WIDTH = 28
_LABEL_WIDTH = 19
_MOST_TRACK = 40
_LESSON_FACTS = frozenset({"Panel vs. people", "Cost"})
_LEAST_TRACK = 12
_SEPARATOR = " · "
_WHOLE_PART = 24
"""Characters up to which a part of a fact is not broken over two lines."""
_BY_STRENGTHS = "by Bradley-Terry strengths: candidates had different items"
_STYLES = {
    "winner": "bold green",
    "equal": "bold green",
    "open": "bold yellow",
    "agreement": "bold",
    "stability": "bold",
    "change": "bold",
    "stopped": "bold yellow",
    "nothing": "bold red",
}


@dataclass
class Screen:
    """Lines to print, each of pieces of text with their styles.

    Attributes:
        width: cells that lines may fill.
        wraps: long sentences are wrapped to the width; not where a file or pipe reads them.
    """

    width: int
    wraps: bool = True
    lines: list[list[Piece]] = field(default_factory=list)

    def add(self, *pieces: Piece) -> None:
        """A line of pieces, as they are."""
        self.lines.append([(for_terminal(text), style) for text, style in pieces])

    def sentence(self, text: str, style: str = "") -> None:
        """A sentence over as many lines as it needs."""
        sentence = for_terminal(text)
        for line in wrap(with_whole_figures(sentence), self.width) if self.wraps else [sentence]:
            self.lines.append([(line.replace(NO_BREAK, " "), style)])

    def paragraph(self, text: str, indent: str, style: str = "") -> None:
        """A sentence with every line indented."""
        words = for_terminal(text)
        for line in wrap(words, max(self.width - len(indent), 20)) if self.wraps else [words]:
            self.lines.append([(f"{indent}{line}", style)])

    def hanging(self, head: str, text: str, style: str = "") -> None:
        """A text beside a head, below which its further lines are indented."""
        words, indent = for_terminal(text), cell_len(head)
        parts = wrap(words, max(self.width - indent, 20)) if self.wraps else [words]
        for number, part in enumerate(parts):
            self.add((head if number == 0 else " " * indent, style), (part, ""))

    def fact(self, label: str, text: str) -> None:
        """A fact beside its label, indented."""
        room = self.width - 2 - _LABEL_WIDTH
        safe_text = for_terminal(text)
        parts = wrap(_with_whole_parts(safe_text), max(room, 20)) if self.wraps else [safe_text]
        parts = [part.replace(NO_BREAK, " ") for part in parts]
        for number, part in enumerate(parts):
            head = label if number == 0 else ""
            self.add((f"  {head:<{_LABEL_WIDTH}}", "dim"), (part, ""))

    def headline(self, headline: Headline) -> None:
        """The answer, what speaks against it, and the evidence."""
        self.sentence(headline.text, _STYLES[headline.shape])
        if headline.contradiction is not None:
            self.sentence(headline.contradiction, "bold yellow")
        if headline.evidence:
            self.sentence(headline.evidence, "dim")
        for note in headline.notes:
            self.sentence(note, "yellow")


@dataclass(frozen=True)
class IntervalRow:
    """One interval of a chart."""

    name: str
    rate: Interval
    note: str = ""


def _with_whole_parts(text: str) -> str:
    """The text with blanks inside its short parts at which no line is broken."""
    parts = text.split(_SEPARATOR)
    return f"{NO_BREAK}· ".join(
        part.replace(" ", NO_BREAK) if len(part) <= _WHOLE_PART else part for part in parts
    )


# -- screens ---------------------------------------------------------------------------------------


def run_screen(
    findings: Findings,
    width: int | None,
    run: str,
    wall_s: float | None = None,
    lesson: Sequence[str] = (),
) -> Screen:
    """What a run says.

    Args:
        findings: of the run.
        width: of the terminal; null where there is none.
        run: how the commands of the next steps name it.
        wall_s: seconds that the run took.
        lesson: sentences on what the run teaches; to make room for them only the facts on people
            and cost are shown.
    """
    screen = blank_screen(width)
    screen.headline(run_headline(findings, run))
    if findings.single_text is not None:
        _text_chart(screen, findings, findings.single_text)
    elif findings.kind == "validate" and findings.concordance is not None:
        rows = _agreement_rows(findings.concordance)
        caption = "agreement with people, 95% intervals"
        screen.lines += interval_chart(rows, screen.width, caption, reference=None)
    else:
        _win_rates(screen, findings)
    screen.add()
    for label, text in _facts(findings, run, wall_s):
        if not lesson or label in _LESSON_FACTS:
            screen.fact(label, text)
    for sentence in lesson:
        screen.sentence(sentence, "bold")
    return screen


def retest_screen(retest: Retest, width: int | None) -> Screen:
    """Whether a panel repeats itself."""
    screen = blank_screen(width)
    headline = retest_headline(retest)
    screen.headline(headline)
    screen.add()
    for label, text in _retest_facts(retest):
        screen.fact(label, text)
    return screen


def comparison_screen(comparison: RunComparison, width: int | None) -> Screen:
    """Whether one run is better than another."""
    screen = blank_screen(width)
    screen.headline(comparison_headline(comparison))
    pair = comparison.first_and_last
    if pair is not None and pair.changes:
        screen.add()
        screen.lines += _change_lines(pair.changes, screen.width)
    screen.add()
    for label, text in _comparison_facts(comparison):
        screen.fact(label, text)
    return screen


def blank_screen(width: int | None) -> Screen:
    """A screen of a width; without one, lines are as long as they are."""
    return Screen(WIDTH, wraps=False) if width is None else Screen(width)


# -- what a run is judged by -----------------------------------------------------------------------


def _text_chart(screen: Screen, findings: Findings, texts: TextFindings) -> None:
    """The chart of a run on single texts: shares of labels, or agreement with people."""
    caption, rows = single_text.chart_rows(findings, texts)
    intervals = [IntervalRow(name, rate, note) for name, rate, note in rows]
    if len(intervals) > 1 and texts.n_decided:
        screen.lines += interval_chart(intervals, screen.width, caption, reference=None)


def _win_rates(screen: Screen, findings: Findings) -> None:
    """The chart of win rates, and how to read it."""
    standings = [row for row in findings.leaderboard if row.win_rate_ties_half is not None]
    rows = [
        IntervalRow(row.candidate, row.win_rate_ties_half)
        for row in standings
        if row.win_rate_ties_half is not None
    ]
    if len(rows) < 2:
        return
    caption = "win rate, ties count half, 95% intervals"
    if findings.correction is not None and findings.correction.decision is not None:
        caption = "panel's win rate, ties half, 95% intervals"
    if standings[0].by_strengths:
        caption += f"\n{_BY_STRENGTHS}"
    screen.lines += interval_chart(rows, screen.width, caption, reference=0.5)


def _agreement_rows(concordance: Concordance) -> list[IntervalRow]:
    """Another person, the panel, its best judge and a plain rule, the best first."""
    rows = []
    people = concordance.people
    if people is not None:
        rows.append(IntervalRow("another person", people.agreement, plural(people.items, "item")))
    rate = concordance.headline.rate
    panel = next((line for line in concordance.methods if line.kind == "panel"), None)
    name = "the panel" if panel is None else panel.name.partition(" (")[0]
    rows.append(IntervalRow(name, rate.interval))
    judges = [line for line in concordance.methods if line.kind == "judge" and line.interval]
    best = max(judges, key=lambda line: line.estimate, default=None)
    if best is not None and best.interval is not None and len(judges) > 1:
        rows.append(IntervalRow("best judge", best.interval, best.name))
    rule = telling_baseline(concordance)
    if rule is not None and rule.interval is not None:
        plain = rule.name.removeprefix("baseline: ")
        rows.append(IntervalRow(f"{plain} answer" if plain == "longest" else plain, rule.interval))
    return rows


def _facts(findings: Findings, run: str, wall_s: float | None) -> Iterator[tuple[str, str]]:
    if findings.preregistration is not None:
        yield from registration.facts(findings.preregistration)
    concordance = findings.concordance
    if findings.single_text is not None:
        yield from single_text.facts(findings.single_text)
    elif findings.kind == "validate" and concordance is not None:
        if (split := _split(concordance)) is not None:
            yield "Judges", split
        if concordance.ceiling is not None:
            yield "Ceiling", _ceiling(concordance.ceiling)
    elif concordance is not None:
        yield "Panel vs. people", _panel_and_people(concordance)
    elif findings.decision.status != "none":
        yield "Panel vs. people", f"not measured: clash review {run}"
    if (people := _correction_line(findings)) is not None:
        yield "People would", people
    if _compares(findings) and (more := _more_prompts(findings)) is not None:
        yield "To detect 10 pts", more
    if (method := _method(findings)) is not None:
        yield "Method", method
    yield "Judgments", _judgments(findings)
    cost = ("at least " if findings.cost_is_lower_bound else "") + money(findings.cost_usd)
    forecast_usd = findings.spending.expected_usd
    if forecast_usd and findings.cost_usd:
        cost += f" (expected {money(forecast_usd)})"
    yield "Cost", cost if wall_s is None else f"{cost} · {seconds(wall_s)}"


def _compares(findings: Findings) -> bool:
    return findings.kind != "validate" and findings.single_text is None


def _ceiling(ceiling: Ceiling) -> str:
    """What a perfect judge would reach with these labels, and how much of it the panel does."""
    reach = f"a perfect judge would reach {percent(ceiling.ceiling)} with these labels"
    error = ceiling.split.judge_error
    if error.estimate != error.estimate:
        return f"{reach} · people may agree by chance"
    noise = ceiling.split.noise.estimate
    return (
        f"{reach} · with a person it differs by {noise:.0%}, the panel by {error.estimate:.0%} more"
    )


def _panel_and_people(concordance: Concordance) -> str:
    rate = concordance.headline.rate
    parts = [f"{percent(rate.interval).replace(' ', ' agree ', 1)}"]
    rule = telling_baseline(concordance)
    if rule is not None:
        name = rule.name.removeprefix("baseline: ")
        parts.append(f"{name} answer wins {rule.estimate:.0%}" if name == "longest" else
                     f"the baseline {name} {rule.estimate:.0%}")  # fmt: skip
    return " · ".join([*parts, plural(rate.n, "label")])


def _correction_line(findings: Findings) -> str | None:
    """What the labels and the panel say by themselves of the two that the headline is about."""
    people = findings.correction.decision if findings.correction is not None else None
    if people is None or people.duel.n_labelled == people.duel.n_verdicts:
        return None
    duel = people.duel
    short = short_names([row.candidate for row in findings.leaderboard], 16)
    parts = [f"prefer {short[duel.first]} to {short[duel.second]} on {percent(duel.rate)}"]
    parts.append(f"labels alone {percent(duel.labels_only)}")
    if duel.n_verdicts:
        parts.append(f"panel alone {duel.panel:.0%}")
    if people.any_time:
        parts.append("valid at every look")
    return " · ".join(parts)


def _split(concordance: Concordance) -> str | None:
    parts = [
        f"{name} {rate.estimate:.0%} ({decimal(rate.right)} of {rate.n})"
        for name, rate in (
            ("unanimous", concordance.split.unanimous),
            ("split", concordance.split.split),
        )
        if rate is not None
    ]
    return " · ".join(parts) or None


def _more_prompts(findings: Findings) -> str | None:
    more = findings.decision.items_for_10_points
    if findings.decision.status not in ("leading", "tied") or more is None:
        return None
    return (
        f"about {plural(two_digits(more), 'more prompt')}" if more else "there are prompts enough"
    )


def _method(findings: Findings) -> str | None:
    """What decided, and how often Borda says the same; null where Borda decides."""
    by = findings.aggregation
    if by is None or by.fallback is not None or by.agreement is None:
        return None
    name = by.method if by.model is None else f"{by.method}: {by.model}"
    n_equal = by.items - len(by.disagreements)
    parts = [name, f"same winner as Borda on {n_equal} of {by.items}"]
    if by.borda_decision is not None and by.borda_decision.winner != findings.decision.winner:
        parts.append(f"Borda puts {by.borda_decision.winner or 'nobody'} first")
    return " · ".join(parts)


def _judgments(findings: Findings) -> str:
    items = findings.coverage
    parts = [f"{items.n_clean + items.n_repaired:,} of {items.n_expected:,} usable"]
    if items.failures:
        parts.append(f"{sum(items.failures.values())} failed ({counts(items.failures)})")
    if items.not_run:
        parts.append(f"{items.not_run:,} not asked for")
    if items.responses_failed:
        parts.append(plural(sum(items.responses_failed.values()), "missing response"))
    return " · ".join(parts)


# -- runs beside each other ------------------------------------------------------------------------


def _retest_facts(retest: Retest) -> Iterator[tuple[str, str]]:
    first = retest.outcomes[0]
    leader = first.leaderboard[0].candidate
    rates = []
    for outcome in retest.outcomes:
        row = next((r for r in outcome.leaderboard if r.candidate == leader), None)
        if row is not None and row.win_rate_ties_half is not None:
            rates.append(f"{row.win_rate_ties_half.estimate:.0%}")
    name = short_names([row.candidate for row in first.leaderboard], _NAME_WIDTH)[leader]
    decisions = {
        outcome.decision.winner if outcome.decision.status == "decided" else None
        for outcome in retest.outcomes
    }
    if rates:
        stands = "; the decision stands" if len(decisions) == 1 and None not in decisions else ""
        yield "Win rate", f"{name} {', then '.join(rates)}{stands}"
    agreement = [line.concordance for line in retest.runs if line.concordance is not None]
    if len(agreement) == len(retest.runs):
        yield "Panel vs. people", f"{', then '.join(f'{r.estimate:.0%}' for r in agreement)} agree"
    if retest.n_unjudged:
        n_items = retest.n + retest.n_unjudged
        yield "Not judged yet", f"{retest.n_unjudged:,} of {plural(n_items, 'item')}, left out"
    costs = [line.cost_usd for line in retest.runs[1:] if line.cost_usd is not None]
    if costs:
        yield "Cost", money(sum(costs))


def _change_lines(rows: Sequence[WinRateChange], width: int) -> list[list[Piece]]:
    lines: list[list[Piece]] = []
    names = _terminal_names((row.candidate for row in rows), width)
    widest = max(map(cell_len, names.values()))
    for row in rows[:_MOST_ROWS]:
        gap = row.difference
        name = names[row.candidate]
        pad = " " * (widest - cell_len(name))
        lines.append(
            [
                (f"  {name}{pad}", ""),
                (f"  {row.first:4.0%} -> {row.second:4.0%}", ""),
                (f"  {_whole_points(gap.estimate):>4}", "bold" if row.p_holm <= 0.05 else ""),
                (f"  [{_whole_points(gap.low)}, {_whole_points(gap.high)}]", "dim"),
            ]
        )
    if len(rows) > _MOST_ROWS:
        lines.append([(f"  … and {len(rows) - _MOST_ROWS} more: -v shows them", "dim")])
    captions = ["change of the win rate in percentage points, 95% intervals"]
    if rows[0].by_strengths:
        captions.append(_BY_STRENGTHS)
    lines += [[(f"  {caption}", "dim")] for caption in captions]
    return lines


def _whole_points(share: float) -> str:
    """A difference of two shares in percentage points: ``+6``, ``-3``, ``0``."""
    n_points = round(100 * share)
    return f"{n_points:+d}" if n_points else "0"


def _comparison_facts(comparison: RunComparison) -> Iterator[tuple[str, str]]:
    runs = comparison.runs
    panels = list(dict.fromkeys(run.panel for run in runs))
    everywhere = {1: "the run", 2: "both runs"}.get(len(runs), "all runs")
    yield "Panel", f"{panels[0]} in {everywhere}" if len(panels) == 1 else ", then ".join(panels)
    names = short_names((run.run for run in runs), _NAME_WIDTH)
    if len(comparison.pairs) == 1:
        yield from _in_both(comparison, comparison.pairs[0], names)
    else:
        yield "Items", ", ".join(f"{run.items:,} in {names[run.run]}" for run in runs)
    if comparison.across is not None:
        yield from _over_data_sets(comparison.across)
    yield "Cost", ", then ".join(money(run.cost_usd) for run in runs)


def _over_data_sets(across: AcrossDataSets) -> Iterator[tuple[str, str]]:
    """Whom the data sets prefer together, and how far they differ."""
    sets = plural(len(across.sets), "set")
    if across.duels:
        duel = across.duels[0]
        names = short_names((duel.first, duel.second), _NAME_WIDTH)
        yield (
            f"Over {sets}",
            (
                f"{names[duel.first]} preferred to {names[duel.second]} on"
                f" {percent(duel.pooled.share)} in a typical one ({p_text(duel.p_holm)}, Holm)"
            ),
        )
        yield "They differ by", f"I² {percent(duel.pooled.i2)}"
    if across.concordance is not None:
        yield "Panel vs. people", f"{percent(across.concordance.share)} in a typical data set"
    if across.gradient is not None and across.gradient.curve:
        (_, first), (_, last) = across.gradient.curve[0], across.gradient.curve[-1]
        p = "" if across.gradient.test is None else f" ({p_text(across.gradient.test.p)})"
        yield "Gradient", f"{first:.0%} agreement at the easiest, {last:.0%} at the hardest{p}"


def _in_both(
    comparison: RunComparison, pair: RunAgainstRun, names: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Which candidates and items two runs have in common."""
    for label, n_common, ns in (
        ("Candidates", len(pair.changes), [run.candidates for run in comparison.runs]),
        ("Items", pair.n_common, [run.items for run in comparison.runs]),
    ):
        alone = [
            f"{n - n_common:,} only in {names[run.run]}"
            for n, run in zip(ns, comparison.runs, strict=True)
            if n > n_common
        ]
        yield label, ", ".join([f"{n_common:,} in both", *alone])
    missing_prompts = [
        f"{run.n_unjudged:,} in {names[run.run]}" for run in comparison.runs if run.n_unjudged
    ]
    if missing_prompts:
        yield "Not judged yet", f"{', '.join(missing_prompts)} (clash resume judges them)"
    common = pair.shared_items
    if common is not None:
        of = (
            f"the {common.n:,} that both judged"
            if common.n_unjudged
            else "items in both"
            if common.n == pair.n_common
            else f"the {common.n:,} with the same candidates"
        )
        yield "Same verdict", f"{percent(common.verdicts.agreement)} of {of}"


# -- charts ----------------------------------------------------------------------------------------


def interval_chart(
    rows: Sequence[IntervalRow], width: int, caption: str, *, reference: float | None
) -> list[list[Piece]]:
    """Names, intervals on a common scale, and their figures; a blank line before.

    Args:
        rows: in the order to show; those beyond six are only counted.
        width: of the screen.
        caption: below it.
        reference: a value that is marked and put in the middle of the scale, as 0.5.
    """
    first_rows = rows[:_MOST_ROWS]
    names = _terminal_names((row.name for row in rows), width)
    widest = max(cell_len(names[row.name]) for row in first_rows)
    notes = max(cell_len(row.note) for row in first_rows)
    room = width - 2 - widest - 2 - len("  100%  [100, 100]") - (2 + notes if notes else 0)
    track = max(_LEAST_TRACK, min(_MOST_TRACK, room))
    low, high = _scale([row.rate for row in first_rows], reference)
    lines: list[list[Piece]] = [[]]
    for number, row in enumerate(first_rows):
        name = names[row.name]
        line = [(f"  {name}{' ' * (widest - cell_len(name))}  ", "")]
        line += _track(row.rate, low, high, track, reference)
        bounds = f"[{100 * row.rate.low:.0f}, {100 * row.rate.high:.0f}]"
        line += [
            (f"  {row.rate.estimate:4.0%}", "bold" if number == 0 else ""),
            (f"  {bounds}", "dim"),
        ]
        if row.note:
            line.append((f"{' ' * (12 - len(bounds))}{for_terminal(row.note)}", "dim"))
        lines.append(line)
    if len(rows) > len(first_rows):
        lines.append([(f"  … and {len(rows) - len(first_rows)} more: -v shows them", "dim")])
    mark = f"{_MARK} 50% = level; " if reference == 0.5 else ""
    pad = " " * (2 + widest + 2)
    captions = f"{mark}{caption}".split("\n")
    if len(pad) + max(map(cell_len, captions)) > width:
        pad = "  "
    lines += [[(f"{pad}{text}", "dim")] for text in captions]
    return lines


def _terminal_names(names: Iterable[str], width: int) -> dict[str, str]:
    """Names as a terminal shows them, shortened after control characters are written out."""
    texts = {name: for_terminal(name) for name in names}
    short = short_names(texts.values(), min(_NAME_WIDTH, width // 3))
    return {name: short[text] for name, text in texts.items()}


_MARK, _DOT, _BAR = "┊", "●", "─"


def _scale(rates: Sequence[Interval], reference: float | None) -> tuple[float, float]:
    """The ends of the scale, in whole tens of percent, around the reference where there is one."""
    low, high = min(rate.low for rate in rates), max(rate.high for rate in rates)
    if reference is None:
        return math.floor(low * 10) / 10, math.ceil(high * 10) / 10
    half = math.ceil(max(reference - low, high - reference, 0.1) * 10) / 10
    return reference - half, reference + half


def _track(
    rate: Interval, low: float, high: float, width: int, reference: float | None
) -> list[Piece]:
    """The interval as a bar, its estimate as a dot."""

    def cell(value: float) -> int:
        share = (value - low) / (high - low) if high > low else 0.5
        return min(width - 1, max(0, round(share * (width - 1))))

    cells = [" "] * width
    if reference is not None:
        cells[cell(reference)] = _MARK
    for index in range(cell(rate.low), cell(rate.high) + 1):
        cells[index] = _BAR
    cells[cell(rate.estimate)] = _DOT
    text = "".join(cells)
    dot = text.index(_DOT)
    return [(text[:dot], "dim"), (_DOT, "bold"), (text[dot + 1 :], "dim")]
