"""The answer of a run in one line, for every place that states it.

These are the terminal, the page, the card, the list of runs, the comment of a gate. Every figure comes from the analysis; this module only chooses which to state, and in which words.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from clash.analysis.decision import p_text
from clash.pages.names import short_names
from clash.report import single_text
from clash.report.formats import first_names, percent
from clash.wording import decimal, plural

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clash.analysis.compare import RunComparison
    from clash.analysis.compare.pairs import RunAgainstRun
    from clash.analysis.compare.win_rate_changes import WinRateChange
    from clash.analysis.concordance import Concordance
    from clash.analysis.concordance.method_table import Method
    from clash.analysis.corrected import PeopleDecision
    from clash.analysis.findings import Findings
    from clash.analysis.leaderboard import Duel
    from clash.analysis.retest import Retest
    from clash.analysis.single_text import TextFindings

    Shape = Literal[
        "winner", "open", "equal", "agreement", "stability", "change", "stopped", "nothing"
    ]

MOST_CHARACTERS = 90
_NAME_WIDTHS = (40, 28, 22, 18, 14, 10, 8)
_ALPHA = 0.05
_LONGEST = "longest"
_BASELINE_WORDS = {
    _LONGEST: "picking the longest answer",
    "dense": "picking the answer with the densest wording",
    "coverage": "picking the answer that repeats most words of the prompt",
    "structure": "picking the tidiest answer",
}
_NUMBERS = ("no", "one", "two", "three", "four", "five")


@dataclass(frozen=True)
class NextStep:
    """A command worth typing next, and what for."""

    command: str
    purpose: str


@dataclass(frozen=True)
class Headline:
    """What a run, a retest or a comparison says.

    Attributes:
        shape: what kind of answer it is, for its colour.
        text: one sentence of at most 90 characters; names in it may be shortened at the front.
        evidence: the figures behind it, in one line; may be empty.
        contradiction: what human labels, or a plain rule, say against it; null where nothing does.
        notes: what a reader must know beside it, such as candidates that were never judged.
        next_steps: the most useful first.
        by_people: it is what people would decide, by their labels; else what the panel decides.
    """

    shape: Shape
    text: str
    evidence: str = ""
    contradiction: str | None = None
    notes: tuple[str, ...] = ()
    next_steps: tuple[NextStep, ...] = ()
    by_people: bool = False

    def sentences(self) -> tuple[str, ...]:
        """The answer, what speaks against it, the evidence and the notes, as a screen has them."""
        texts = (self.text, self.contradiction, self.evidence, *self.notes)
        return tuple(text for text in texts if text)

    def as_json(self) -> dict[str, Any]:
        """For ``report.json``: what it says, without what to do next."""
        return {
            "shape": self.shape,
            "text": self.text,
            "evidence": self.evidence,
            "contradiction": self.contradiction,
            "notes": list(self.notes),
        }


# -- one run ---------------------------------------------------------------------------------------


def run_headline(findings: Findings, run: str | None = None) -> Headline:
    """The answer of a run, by its kind and by how it ended.

    Args:
        findings: of the run.
        run: how the commands of the next steps name it; by default by its id.
    """
    name = findings.run if run is None else run
    is_empty = findings.decision.status == "none" and findings.concordance is None
    if _is_stopped(findings):
        headline = _interruption(findings)
    elif is_empty:
        headline = _nothing(findings)
    elif findings.single_text is not None:
        headline = _on_texts(findings, findings.single_text)
    elif findings.kind == "redteam" and findings.redteam is not None:
        headline = _redteam(findings)
    elif findings.kind == "validate" and findings.concordance is not None:
        headline = _agreement(findings.concordance)
    else:
        headline = _decision(findings)
    return replace(
        headline,
        notes=(*headline.notes, *_notes(findings)),
        next_steps=tuple(_next_steps(findings, headline, name)),
    )


def _on_texts(findings: Findings, texts: TextFindings) -> Headline:
    """The answer of a run that judges each text by itself."""
    text_answer = single_text.answer(findings, texts)
    return Headline(
        text_answer.shape, text_answer.text, text_answer.evidence, text_answer.contradiction
    )


def _is_stopped(findings: Findings) -> bool:
    """The run ended, or stands, before all its judgments were asked for."""
    return findings.status in ("partial", "running", "failed") and findings.coverage.not_run > 0


def _nothing(findings: Findings) -> Headline:
    items = findings.coverage
    text = f"No decision: none of {plural(items.items, _unit(findings))} could be judged."
    return Headline("nothing", text, f"Why: {_causes(items.abstained)}." if items.abstained else "")


def _causes(n_items: Mapping[str, int]) -> str:
    """Why items have no verdict, and how many: ``every judge failed (30)``."""
    order = sorted(n_items, key=lambda cause: (-n_items[cause], cause))
    return ", ".join(f"{cause} ({n_items[cause]:,})" for cause in order)


def _interruption(findings: Findings) -> Headline:
    items = findings.coverage
    n_judged = items.n_decided + items.n_tied
    beside = findings.concordance
    if findings.kind == "validate" and findings.single_text is None:
        unit = "pair" if beside is not None and _is_pairs(beside) else "item"
        text = f"Incomplete: {n_judged:,} of {plural(items.items, unit)} judged."
        return Headline("stopped", text, "" if beside is None else _agreement_so_far(beside, unit))
    start = f"Stopped after {n_judged} of {plural(items.items, _unit(findings))}"
    if findings.single_text is not None:
        return Headline("stopped", f"{start}. No decision yet.")
    if findings.kind != "eval" or findings.decision.status == "none":
        return Headline("stopped", f"{start}. No decision yet.")
    names = [row.candidate for row in findings.leaderboard]
    decision = findings.decision
    if decision.status in ("decided", "leading") and decision.winner is not None:
        text = _fit(f"{start}. So far {{0}} is ahead; no decision yet.", decision.winner, names)
    else:
        text = f"{start}. So far nobody is ahead; no decision yet."
    return Headline("stopped", text, _evidence(findings))


def _redteam(findings: Findings) -> Headline:
    from clash.report.redteam import headline

    if findings.redteam is None:
        return _decision(findings)
    return Headline("agreement", headline(findings.redteam))


def _decision(findings: Findings) -> Headline:
    """What people would decide where labels suffice, with the panel's decision beside it."""
    panel = _panel_decision(findings)
    people = findings.correction.decision if findings.correction is not None else None
    if people is None:
        return panel
    names = [row.candidate for row in findings.leaderboard]
    shapes: dict[str, Shape] = {"decided": "winner", "equal": "equal", "leading": "open"}
    answer, is_based = _people_answer(people, names), people.status == "decided"
    basis = "" if is_based else f"From {_basis(people)}; "
    return Headline(
        shapes[people.status],
        answer,
        f"{basis}{'by' if basis else 'By'} the panel alone, {_panel_alone(findings, names)}.",
        _panel_against(findings, people, names),
        by_people=True,
    )


def _people_answer(people: PeopleDecision, names: Sequence[str]) -> str:
    """Such as: people would prefer A to B: 58% [51, 65], from 50 labels and 400 verdicts."""
    duel = people.duel
    figure = percent(duel.rate)
    if people.status == "decided":
        text = f"People would prefer {{0}} to {{1}}: {figure}, from {_basis(people)}."
    elif people.status == "equal":
        text = f"As good as equal to people: {{0}} and {{1}} ({figure})."
    elif people.winner is None:
        text = f"No clear winner: to people {{0}} and {{1}} are level ({figure})."
    else:
        text = f"No clear winner: people would prefer {{0}} to {{1}} on {figure}."
    return _fit(text, duel.first, duel.second, names)


def _basis(people: PeopleDecision) -> str:
    duel = people.duel
    labels = plural(duel.n_labelled, "label")
    if duel.n_labelled >= duel.n_verdicts:
        return labels
    return f"{labels} and {plural(duel.n_verdicts, 'verdict')}"


def _panel_alone(findings: Findings, names: Sequence[str]) -> str:
    """What the panel's verdicts say without labels, for the end of a sentence."""
    decision, duel = findings.decision, closest_duel(findings)
    if decision.status == "decided" and decision.winner and duel is not None:
        text = f"{{0}} wins: {percent(duel.share)} against {{1}} ({p_text(decision.p or 0.0)})"
        return _fit(text, duel.first, duel.second, names)
    return "no clear winner" if decision.p is None else f"no clear winner ({p_text(decision.p)})"


def _panel_against(findings: Findings, people: PeopleDecision, names: Sequence[str]) -> str | None:
    """What the panel decides, or whom it puts first, that people do not; null where they agree."""
    decision = findings.decision
    if decision.status != "decided" or decision.winner is None:
        return _contradiction(findings, names, is_beside_people=True)
    if people.status != "decided":
        return _fit(
            "The labels do not confirm the panel, which prefers {0}.", decision.winner, names
        )
    if people.winner != decision.winner:
        return _fit("The panel disagrees: it prefers {0}.", decision.winner, names)
    return None


def _panel_decision(findings: Findings) -> Headline:
    decision = findings.decision
    duel = closest_duel(findings)
    names = [row.candidate for row in findings.leaderboard]
    if decision.status == "decided" and decision.winner and duel is not None:
        headline = Headline("winner", _winner(findings, duel, names))
    elif decision.equal and duel is not None:
        head = f"As good as equal: {{0}} and {{1}} ({percent(duel.share)} win rate)."
        headline = Headline("equal", _fit(head, duel.first, duel.second, names))
    else:
        headline = Headline("open", _no_winner(findings, duel, names))
    evidence, contradiction = _evidence(findings, headline.text), _contradiction(findings, names)
    return replace(headline, evidence=evidence, contradiction=contradiction)


def closest_duel(findings: Findings) -> Duel | None:
    """The pair that the decision is about, seen from its leader; null where they never met."""
    decision = findings.decision
    pair = {decision.winner or findings.leaderboard[0].candidate, decision.runner_up}
    if decision.status == "tied":
        level = [row.candidate for row in findings.leaderboard if row.candidate in pair]
        pair = {*level, decision.runner_up}
    for duel in findings.duels:
        if {duel.first, duel.second} == pair:
            leader = duel.first if duel.second == decision.runner_up else duel.second
            return duel.seen_from(leader)
    return None


def _winner(findings: Findings, duel: Duel, names: Sequence[str]) -> str:
    p = p_text(findings.decision.p or 0.0)
    n_others = sum(row.win_rate_ties_half is not None for row in findings.leaderboard) - 1
    if n_others == 1:
        rate = percent(duel.share)
        return _fit(f"{{0}} wins: {rate} against {{1}} ({p}).", duel.first, duel.second, names)
    count = _NUMBERS[n_others] if n_others < len(_NUMBERS) else str(n_others)
    template = f"{{0}} wins: it beats each of the other {count} ({p} against {{1}})."
    return _fit(template, duel.first, duel.second, names)


def _no_winner(findings: Findings, duel: Duel | None, names: Sequence[str]) -> str:
    decision = findings.decision
    p = p_text(1.0 if decision.p is None else decision.p)
    if decision.status == "tied" and duel is None:
        return "No clear winner: the best candidates are level."
    if duel is None:
        leader = decision.winner or findings.leaderboard[0].candidate
        return _fit("No clear winner: {0} is ahead, but never met all others.", leader, names)
    if duel.wins == duel.losses:
        ties = f", {plural(duel.ties, 'tie')}" if duel.ties else ""
        wins = plural(duel.wins, "win")
        record = f"({wins} each{ties}; {p})"
        head = f"No clear winner: {{0}} and {{1}} are level {record}."
        if decision.status == "leading":
            head = f"No clear winner: {{0}} leads, but is level with {{1}} {record}."
    elif duel.share.estimate > 0.5:
        head = f"No clear winner: {{0}} leads {{1}}, but not significantly ({p})."
    else:
        head = "No clear winner: {0} has the highest win rate, but not against {1}."
    return _fit(head, duel.first, duel.second, names)


def _evidence(findings: Findings, answer: str = "") -> str:
    """The record of the closest pair, and its win rate where the answer does not state it."""
    duel = closest_duel(findings)
    if duel is None or duel.wins == duel.losses:
        return ""
    short = short_names([row.candidate for row in findings.leaderboard], 18)
    ties = f", {plural(duel.ties, 'tie')}" if duel.ties else ""
    record = f"{plural(duel.wins, 'win')}, {plural(duel.losses, 'loss', 'losses')}{ties}"
    rate = percent(duel.share)
    if rate in answer:
        return f"{record[0].upper()}{record[1:]}."
    return f"{short[duel.first]} against {short[duel.second]}: {record}; {rate} win rate."


def _contradiction(
    findings: Findings, names: Sequence[str], *, is_beside_people: bool = False
) -> str | None:
    """What labels say against the panel's first place; beside people's headline, of the panel."""
    against = None if findings.preference is None else findings.preference.contradiction
    if against is None:
        return None
    if against.people_last == against.panel_first and len(names) > 2:
        of_panel = "The panel puts {1} first, people put it last."
        of_labels = "Human labels disagree: they put {0} first and {1} last."
    else:
        score = f"({against.wins} to {against.losses}; {p_text(against.p)})"
        of_panel = f"The panel puts {{1}} first; labels prefer {{0}} to it {score}."
        of_labels = f"Human labels disagree: they prefer {{0}} to {{1}} {score}."
    head = of_panel if is_beside_people else of_labels
    return _fit(head, against.people_first, against.panel_first, names)


def _notes(findings: Findings) -> list[str]:
    absentees = [row.candidate for row in findings.leaderboard if not row.n_judged]
    notes = []
    if findings.aggregation is not None and findings.aggregation.fallback is not None:
        notes.append(f"Decided by Borda, not {findings.aggregation.fallback}.")
    texts = findings.single_text
    if texts is not None and texts.method is not None and texts.method.fallback is not None:
        notes.append(f"Decided by {texts.method.method}, not {texts.method.fallback}.")
    if absentees and len(absentees) < len(findings.leaderboard):
        names = ", ".join(short_names(absentees, 28).values())
        notes.append(f"Never judged: {names}.")
    missing = sum(findings.coverage.abstained.values())
    if missing and findings.decision.status != "none" and not _is_stopped(findings):
        items = plural(findings.coverage.items, _unit(findings))
        notes.append(f"No verdict on {missing} of {items}: {_causes(findings.coverage.abstained)}.")
    beside = findings.concordance
    if beside is not None and beside.unique is not None:
        total = plural(beside.headline.rate.n, "pair" if _is_pairs(beside) else "item")
        notes.append(
            f"{len(beside.repeats)} of {total} repeat another, responses and all:"
            f" {decimal(beside.unique.right)} of {beside.unique.n} ({beside.unique.estimate:.1%})"
            " without them."
        )
    return notes


def _unit(findings: Findings) -> str:
    return "item" if findings.single_text is None else "text"


def _next_steps(findings: Findings, headline: Headline, run: str) -> list[NextStep]:
    if headline.shape == "stopped" or findings.status in ("partial", "failed"):
        finish = NextStep(f"clash resume {run}", "finish it; nothing is paid twice")
        if not findings.stops:
            return [finish]
        # To ask a model again that refused for good changes nothing until its cause is mended.
        names = first_names(list(findings.stops), 2)
        check = NextStep("clash doctor --ping", f"find out why {names} refused, and fix that first")
        return [check, replace(finish, purpose="then finish it; nothing is paid twice")]
    if findings.kind == "validate":
        return [NextStep(f"clash calibrate {run}", "correct the panel with these labels")]
    if headline.contradiction is not None or findings.single_text is not None:
        return [NextStep(f"clash report {run} --open", "see where people and panel disagree")]
    if findings.preference is None:
        return [NextStep(f"clash review {run}", "check the panel against your own judgment")]
    return [NextStep(f"clash rerun {run}", "see whether the panel repeats itself")]


# -- a panel beside people -------------------------------------------------------------------------


def _agreement(concordance: Concordance) -> Headline:
    rate = concordance.headline.rate
    unit = "pair" if _is_pairs(concordance) else "item"
    bounds = f"[{100 * rate.interval.low:.0f}, {100 * rate.interval.high:.0f}]"
    text = (
        f"The panel agrees with people on {decimal(rate.right)} of {plural(rate.n, unit)}"
        f" ({rate.estimate:.1%} {bounds})."
    )
    baseline = telling_baseline(concordance)
    if baseline is None or baseline.test is None or baseline.against is None:
        return Headline("agreement", text)
    line = _beside_baseline(baseline)
    if _is_beaten(baseline):
        return Headline("agreement", text, line)
    return Headline("agreement", text, contradiction=line)


def _agreement_so_far(concordance: Concordance, unit: str) -> str:
    rate = concordance.headline.rate
    return (
        f"Of the {plural(rate.n, unit)} asked so far, the panel agrees with people on"
        f" {decimal(rate.right)}: {percent(rate.interval, digits=1)}."
    )


def _is_pairs(concordance: Concordance) -> bool:
    return any(kappa.key == "kappa.sides" for kappa in concordance.kappas)


def telling_baseline(concordance: Concordance) -> Method | None:
    """The plain rule to hold a panel against; null where none was computed.

    It is the longest answer, which everybody understands; where the panel beats that one, it is
    the best rule that it does not beat.
    """
    baselines = [line for line in concordance.methods if line.kind == "baseline"]
    baselines.sort(key=lambda line: (not line.name.endswith(_LONGEST), -line.estimate))
    unbeaten = (line for line in baselines if not _is_beaten(line))
    return next(unbeaten, baselines[0] if baselines else None)


def _is_beaten(baseline: Method) -> bool:
    test, lead = baseline.test, baseline.against
    return test is not None and lead is not None and test.p <= _ALPHA and lead.estimate > 0


def baseline_words(name: str) -> str:
    """What a baseline does, for the middle of a sentence: ``picking the longest answer``."""
    plain = name.removeprefix("baseline: ")
    return _BASELINE_WORDS.get(plain, f"the baseline {plain}")


def _beside_baseline(baseline: Method) -> str:
    """How the panel compares with the best plain rule."""
    if baseline.test is None or baseline.against is None:
        return ""
    is_significant = baseline.test.p <= _ALPHA
    gap = baseline.against.estimate
    if is_significant:
        start = "Better than" if gap > 0 else "Worse than"
    else:
        start = "No better than" if gap < _ALPHA else "Not significantly better than"
    words = baseline_words(baseline.name)
    return f"{start} {words} ({baseline.estimate:.1%}, paired {p_text(baseline.test.p)})."


# -- a panel beside itself -------------------------------------------------------------------------


def retest_headline(retest: Retest, run: str | None = None) -> Headline:
    """Whether a panel repeats itself.

    Args:
        retest: of a run and its reruns.
        run: how the commands of the next steps name the first run; by default by its id.
    """
    rate = percent(retest.pair_agreement)
    share, _, bounds = rate.partition(" ")
    kappas = [pair.verdicts.kappa.interval.estimate for pair in retest.pairs]
    kappa = f" (kappa {kappas[0]:.2f})" if len(kappas) == 1 and kappas[0] == kappas[0] else ""
    is_fresh = not any(pair.same_responses for pair in retest.pairs)
    start = (
        "With fresh responses the winner is the same" if is_fresh else "The panel repeats itself"
    )
    text = f"{start} on {share} of items {bounds}{kappa}."
    if retest.fresh_pair_agreement is not None:
        fresh = retest.fresh_pair_agreement.estimate
        text = f"{text.removesuffix('.')}, and on {fresh:.0%} where responses are fresh."
    n_changed = retest.n - retest.n_same
    times = "twice" if len(retest.outcomes) == 2 else f"{len(retest.outcomes)} times"
    parts = [f"Same verdict {times} {retest.n_same}"]
    if n_changed:
        split = retest.n_changed_split
        were = "was a split decision" if split == 1 else "were split decisions"
        parts.append(f"changed {n_changed}" + (f", of them {split} {were}" if split else ""))
    else:
        parts.append("changed 0")
    name = retest.runs[0].run if run is None else run
    return Headline(
        "stability",
        text,
        " · ".join(parts),
        _changed_decision(retest),
        next_steps=(retest_step(retest, name),),
    )


def retest_step(retest: Retest, run: str) -> NextStep:
    """What to do after a rerun, which is named as the commands name it."""
    is_changed = retest.n_same < retest.n
    purpose = "see the items that changed" if is_changed else "see how each judge repeats itself"
    return NextStep(f"clash report {run} --open", purpose)


def _changed_decision(retest: Retest) -> str | None:
    """The decision that a rerun did not repeat; null where all decided alike."""
    decisions = [outcome.decision for outcome in retest.outcomes]
    winners = [d.winner if d.status == "decided" else None for d in decisions]
    if len(set(winners)) < 2:
        return None
    names = [row.candidate for row in retest.outcomes[0].leaderboard]
    short = short_names(names, 16)
    outcomes = ["no clear winner" if w is None else f"{short[w]} wins" for w in winners]
    return f"The decision changes: {', then '.join(outcomes)}."


# -- runs beside each other ------------------------------------------------------------------------


def comparison_headline(comparison: RunComparison) -> Headline:
    """Whether one run is better than another; of several, the first against the last.

    Of one run that is taken apart, whom its data sets prefer together.
    """
    if not comparison.pairs:
        return _across_headline(comparison)
    pair = next(
        p
        for p in comparison.pairs
        if (p.first, p.second) == (comparison.runs[0].run, comparison.runs[-1].run)
    )
    if all(line.kind == "validate" for line in comparison.runs) and pair.experiments is not None:
        return _agreement_change(pair)
    if not pair.changes:
        return Headline("nothing", "The runs have no candidate in common.")
    return _win_rate_change(pair)


def _across_headline(comparison: RunComparison) -> Headline:
    across = comparison.across
    if across is None or not (across.duels or across.concordance):
        return Headline("nothing", "No two candidates met in two data sets.")
    sets = plural(len(across.sets), "data set")
    agreement = across.concordance
    evidence = "" if agreement is None else (
        f"The panel agrees with people on {percent(agreement.share)} in a typical data set."
    )  # fmt: skip
    if not across.duels:
        return Headline("agreement", evidence)
    duel = across.duels[0]
    shares = f"{percent(duel.pooled.share)} in a typical one of {sets} ({p_text(duel.p_holm)})."
    names = [duel.first, duel.second]
    if duel.p_holm <= _ALPHA:
        text = _fit("{0} is preferred to {1}: " + shares, *names, names)
        return Headline("winner", text, evidence)
    text = _fit("No clear winner over the data sets: {0} to {1} " + shares, *names, names)
    return Headline("open", text, evidence)


def _win_rate_change(pair: RunAgainstRun) -> Headline:
    change = leading_change(pair)
    runs = [pair.first, pair.second]
    if is_the_same(pair):
        n = 0 if pair.shared_items is None else pair.shared_items.n
        items = "the one item" if n == 1 else f"each of the {n:,} items"
        text = f"{{0}} and {{1}} agree on {items} that both have."
        return Headline("equal", _fit(text, pair.first, pair.second, runs))
    basis = f"paired, {plural(change.n_items, 'item')}" if change.is_paired else "unpaired"
    if change.p_holm > _ALPHA:
        text = f"No candidate's win rate changes significantly from {{0}} to {{1}} ({p_text(change.p_holm)})."
        return Headline("open", _fit(text, pair.first, pair.second, runs), _change_line(change))
    points = abs(100 * change.difference.estimate)
    verb = "gains" if change.difference.estimate > 0 else "loses"
    low, high = sorted(abs(100 * b) for b in (change.difference.low, change.difference.high))
    size = f"{verb} {plural(round(points, 1) if points < 1 else round(points), 'point')}"
    text = f"{{0}} {size} from {{1}} to {{2}} [{low:.0f}, {high:.0f}] ({p_text(change.p_holm)})."
    evidence = f"{_change_line(change)} ({basis})"
    return Headline(
        "change",
        _fit(text, change.candidate, pair.first, pair.second, [*runs, change.candidate]),
        evidence,
    )


def is_the_same(pair: RunAgainstRun) -> bool:
    """Two runs give the same verdict, and the same win rates, on all items that both have."""
    common = pair.shared_items
    return (
        common is not None
        and common.verdicts.agreement.estimate == 1
        and all(change.is_paired and not change.difference.estimate for change in pair.changes)
    )


def leading_change(pair: RunAgainstRun) -> WinRateChange:
    """The change that the headline is about: the most certain one, a gain where both are."""
    best = pair.changes[0]
    gains = [c for c in pair.changes if c.p_holm == best.p_holm and c.difference.estimate > 0]
    return gains[0] if gains else best


def _change_line(change: WinRateChange) -> str:
    return f"Win rate of {change.candidate}: {change.first:.0%}, then {change.second:.0%}"


def _agreement_change(pair: RunAgainstRun) -> Headline:
    line = pair.experiments
    if line is None:
        return Headline("nothing", "The runs have no labelled items to compare.")
    runs = [pair.first, pair.second]
    rates = [right / n for right, n in zip(line.right, line.n, strict=True)]
    common = pair.shared_items
    paired_test = None if common is None else common.paired_test
    gap = line.clustered_difference if paired_test is None else paired_test.difference
    test = line.test if paired_test is None else paired_test.test
    basis = "unpaired" if common is None else f"paired, {plural(common.n_labelled, 'item')}"
    evidence = f"Agreement with people: {rates[0]:.1%}, then {rates[1]:.1%} ({basis})"
    if test.p > _ALPHA:
        text = f"Agreement with people does not change significantly from {{0}} to {{1}} ({p_text(test.p)})."
        return Headline("open", _fit(text, *runs, runs), evidence)
    better, worse = (runs[0], runs[1]) if gap.estimate > 0 else (runs[1], runs[0])
    points = plural(round(abs(100 * gap.estimate)), "point")
    text = f"{{0}} agrees with people on {points} more than {{1}} ({p_text(test.p)})."
    return Headline("change", _fit(text, better, worse, runs), evidence)


# -- words -----------------------------------------------------------------------------------------


def _fit(template: str, *parts: str | Sequence[str]) -> str:
    """The template with names shortened, all alike, until it fits.

    Args:
        template: with ``{0}``, ``{1}``, … for names.
        parts: these names, and last all names among which they must stay apart.
    """
    names, among = [str(part) for part in parts[:-1]], list(parts[-1])
    text = template.format(*names)
    for width in _NAME_WIDTHS:
        if len(text) <= MOST_CHARACTERS:
            return text
        short = short_names([*among, *names], width)
        text = template.format(*(short[name] for name in names))
    return text
