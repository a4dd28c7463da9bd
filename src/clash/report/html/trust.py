"""Can I trust the panel? People, simple rules, agreement, biases, dependence, a second run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clash.analysis.retest import Retest
from clash.analysis.shared_errors import SharedErrors
from clash.pages import interval_chart, share_axis
from clash.report.formats import money, percent, plural, points
from clash.report.headline import baseline_words, telling_baseline
from clash.report.html.blocks import Check, PageFigure, Question
from clash.report.html.words import number, p_words, right_of, share_row
from clash.wording import with_capital

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clash.analysis.concordance import Concordance
    from clash.analysis.concordance.method_table import Kind, Method
    from clash.analysis.findings import Findings
    from clash.analysis.further import Further
    from clash.analysis.redteam import Redteam
    from clash.pages import ChartRow
    from clash.pages.charts import Tone

FEWEST = 20
"""Labels below which nothing is said about trust."""
_ALPHA = 0.05
_RARELY = 0.05
_MOST_KINDS = 8
_TITLE = "Can I trust the panel?"
_MOST_JUDGES = 6


def trust(findings: Findings, more: Further) -> Question:
    """The section."""
    if findings.kind == "redteam" and findings.redteam is not None:
        return _against_injections(findings, findings.redteam)
    people = findings.concordance
    answer, aside = _trust_without_labels(findings) if people is None else _trust_by_labels(people)
    return Question(
        anchor="trust",
        title=_TITLE,
        nav="Trust",
        answer=answer,
        aside=aside,
        figure=_agreement(findings) if people is None else _picture(findings, people, more),
        checks=tuple(_checks(findings, more)),
    )


def _against_injections(findings: Findings, result: Redteam) -> Question:
    """What a run of control items says: which injections change a verdict."""
    panel = result.panel
    changes = f"changed {panel.n_turned} of {plural(panel.n_attacked, 'verdict')}"
    if not panel.n_attacked:
        answer = "Not measured: the panel was wrong on every control item without an injection."
    elif not panel.n_turned:
        answer = f"Against these injections, yes. None of {panel.n_attacked} changed a verdict."
    elif panel.rate.estimate <= _RARELY:
        answer = f"Against most injections. They {changes} ({percent(panel.rate)})."
    else:
        answer = f"Not with responses that may hold instructions. Injections {changes}"
        answer += f" ({percent(panel.rate)})."
    families = [line for line in result.families if line.n_attacked]
    rows = [
        share_row(line.name, line.rate, note=f"{line.n_turned} of {line.n_attacked}")
        for line in sorted(families, key=lambda line: -line.rate.estimate)[:_MOST_KINDS]
    ]
    figure = None
    if len(rows) > 1:
        axis = share_axis(rows, reference=0.0, label="0% = never")
        chart = interval_chart(rows, axis, label="Verdicts changed, by kind of injection")
        figure = PageFigure("Verdicts changed, by kind of injection", chart)
    checks = (*_position(findings), *_noise(result))
    return Question("trust", _TITLE, "Trust", answer, "", figure, checks)


def _noise(result: Redteam) -> Iterator[Check]:
    noise = result.panel.noise
    if noise is not None:
        sentence = (
            f"Without an injection the same control item changes in {percent(noise)} of repeats."
        )
        yield Check("Without an injection", sentence, f"{noise.estimate:.0%}")


def _trust_without_labels(findings: Findings) -> tuple[str, str]:
    return (
        "Not measured: no prompt has a human label, so nothing says whether people would agree.",
        f"To find out, label prompts that are drawn at random: `clash review {findings.run}`.",
    )


def _trust_by_labels(people: Concordance) -> tuple[str, str]:
    panel = method(people, "panel")
    if panel is None or panel.rate is None:
        return "Not measured: no labelled prompt was judged.", ""
    words = f"{percent(panel.interval)} of {plural(panel.rate.n, 'labelled prompt')}"
    agrees = f"It picks what people picked on {words}"
    best = telling_baseline(people)
    if panel.rate.n < FEWEST:
        aside = f"With {FEWEST} labels or more this page compares the panel with simple rules."
        return f"Too early to say. {agrees}.", aside
    if best is None or best.against is None or best.test is None:
        return f"{agrees}.", ""
    name, beside = baseline_words(best.name), f"{best.estimate:.0%}, {p_words(best.test)}"
    if best.test.p > _ALPHA:
        start = f"Not yet. {agrees}, which is not significantly better than {name} ({beside})."
    elif best.against.estimate > 0:
        start = f"Yes, more than a simple rule. {agrees}; {name} reaches {beside}."
    else:
        start = f"No. {agrees}; {name} does better ({beside})."
    return start, ""


def method(people: Concordance, kind: Kind) -> Method | None:
    """The first of its kind: the panel, people, chance."""
    return next((line for line in people.methods if line.kind == kind), None)


def method_rows(people: Concordance) -> list[ChartRow]:
    """People, the panel, its judges and the best rule, in the order of their agreement."""
    judges = sorted(
        (line for line in people.methods if line.kind == "judge"), key=lambda line: -line.estimate
    )[:_MOST_JUDGES]
    names = {line.name for line in judges}
    best = telling_baseline(people)
    lines = [method(people, "people"), method(people, "panel"), *judges]
    if best is not None and best.name.removeprefix("baseline: ") not in names:
        lines.append(best)
    rows = [_method_row(line, len(judges)) for line in lines if line is not None]
    return sorted(rows, key=lambda row: -(row.estimate or 0.0))


def _method_row(line: Method, n_judges: int) -> ChartRow:
    name = {
        "people": "another person",
        "panel": f"the panel of {n_judges}" if n_judges > 1 else "the panel",
        "baseline": baseline_words(line.name).removeprefix("picking "),
    }.get(line.kind, line.name)
    note = "" if line.rate is None else right_of(line.rate)
    tone: Tone = "accent" if line.kind == "panel" else "plain"
    return share_row(name, line.interval, note=note, tone=tone)


def chance_mark(people: Concordance) -> tuple[float, str]:
    """What a blind guess reaches, and its label."""
    chance = method(people, "chance")
    share = 0.5 if chance is None else chance.estimate
    return share, f"{share:.0%} = chance"


def _picture(findings: Findings, people: Concordance, more: Further) -> PageFigure | None:
    if findings.kind == "validate":
        return _by_preference(people, more)
    rows = method_rows(people)
    if len(rows) < 2:
        return None
    share, label = chance_mark(people)
    chart = interval_chart(
        rows, share_axis(rows, reference=share, label=label), label="Agreement with people"
    )
    return PageFigure("Picks the response that people picked", chart)


def _by_preference(people: Concordance, more: Further) -> PageFigure | None:
    """Agreement by what people preferred, and by how the judges split."""
    apart = more.differences
    parts = [
        ("longer answer preferred", apart.longest),
        ("shorter answer preferred", apart.shorter),
        ("judges unanimous", people.split.unanimous),
        ("judges split", people.split.split),
    ]
    rows = [
        share_row(name, rate.interval, note=right_of(rate))
        for name, rate in parts
        if rate is not None
    ]
    if len(rows) < 2:
        return None
    share, label = chance_mark(people)
    axis = share_axis(rows, reference=share, label=label)
    chart = interval_chart(rows, axis, label="Agreement with people, by kind of item")
    return PageFigure("How often the panel agrees with people, where", chart)


def _agreement(findings: Findings) -> PageFigure | None:
    """Without labels: how often each judge picks what the panel picks."""
    rows = [
        share_row(judge.judge, judge.agreement)
        for judge in findings.judges
        if judge.role == "voting" and judge.agreement is not None
    ][:_MOST_JUDGES]
    if len(rows) < 2:
        return None
    chart = interval_chart(rows, share_axis(rows, reference=None), label="Agreement with the panel")
    note = "A judge has a part in what the panel picks, so this is agreement, not accuracy."
    return PageFigure("Picks the response that the panel picked", chart, note)


def _checks(findings: Findings, more: Further) -> Iterator[Check]:
    people = findings.concordance
    if people is None:
        yield from _rules_without_labels(findings)
    else:
        yield from _against_methods(people)
    yield from _unanimity(findings)
    yield from _independence(more)
    yield from _length(more)
    yield from _position(findings)
    yield _again(findings, more)
    if findings.coverage.n_flagged:
        texts = plural(findings.coverage.n_flagged, "response")
        sentence = f"{texts} address the judge. Judges saw them as quoted text."
        yield Check("Prompt injection", sentence, f"{findings.coverage.n_flagged:,}")


def _against_methods(people: Concordance) -> Iterator[Check]:
    best = telling_baseline(people)
    if best is not None and best.against is not None:
        sentence = _compare(baseline_words(best.name), best)
        yield Check("Better than simple rules", sentence, *_gain(best))
    judges = [line for line in people.methods if line.kind == "judge"]
    if len(judges) > 1:
        top = max(judges, key=lambda line: line.estimate)
        yield Check("Better than its best judge", _compare(f"judge {top.name}", top), *_gain(top))
    if people.people is not None:
        crowd = people.people
        sentence = f"Two people agree with each other on {percent(crowd.agreement)} of"
        sentence += f" {plural(crowd.items, 'prompt')}; the panel agrees with one person on"
        sentence += f" {percent(crowd.panel_with_person)}."
        yield Check(
            "Close to another person", sentence, f"{crowd.agreement.estimate:.0%}", "human ceiling"
        )


def _compare(name: str, line: Method) -> str:
    p = p_words(line.test)
    if line.against is None or line.test is None:
        return f"{name} agrees with people on {line.estimate:.0%}."
    beside = f"({line.estimate:.0%}, paired test, {p})"
    if line.test.p > _ALPHA:
        return (
            f"Not significantly. {with_capital(name)} agrees with people about as often {beside}."
        )
    if line.against.estimate > 0:
        return f"Yes. Ahead of {name} on the same prompts {beside}."
    return f"No. {with_capital(name)} agrees with people more often {beside}."


def _gain(line: Method) -> tuple[str, str]:
    gain, _, bounds = points(line.against, digits=0).replace("-", "−").partition(" ")
    return gain, f"points {bounds}".strip()


def _rules_without_labels(findings: Findings) -> Iterator[Check]:
    lines = [line for line in findings.baselines if line.agreement is not None]
    if not lines:
        return
    top = max(lines, key=lambda line: line.agreement.estimate if line.agreement else 0.0)
    sentence = f"{with_capital(baseline_words(top.baseline))} gives the same winner that often."
    share, _, bounds = percent(top.agreement).partition(" ")
    yield Check("Same as a simple rule", sentence, share, bounds)


def _unanimity(findings: Findings) -> Iterator[Check]:
    labels, agreement = findings.label_concordance, findings.unanimity
    name = "When the judges agree"
    if labels is not None and labels.unanimous is not None and labels.split is not None:
        sentence = (
            f"Unanimous verdicts match people on {percent(labels.unanimous)} of"
            f" {labels.unanimous.n:.0f} prompts, split ones on {percent(labels.split)} of"
            f" {labels.split.n:.0f}."
        )
        value = f"{labels.unanimous.estimate:.0%}"
        yield Check(name, sentence, value, f"against {labels.split.estimate:.0%}")
    elif len([judge for judge in findings.judges if judge.role == "voting"]) > 1:
        sentence = (
            f"All judges put the same response first on {plural(agreement.unanimous, 'prompt')}."
        )
        if not agreement.unanimous:
            sentence = "The judges are never unanimous."
        share, _, bounds = percent(agreement.rate).partition(" ")
        yield Check(name, sentence, share, bounds)


def _independence(more: Further) -> Iterator[Check]:
    errors = more.error_overlap
    if not isinstance(errors, SharedErrors) or errors.effective.by_mean is None:
        return
    worth, judges = errors.effective.by_mean, errors.effective.judges
    if judges < 2:
        return
    sentence = f"{with_capital(number(judges))} judges carry as much information as"
    sentence += f" {min(worth.estimate, judges):.1f} independent judges."
    if worth.estimate >= judges:
        sentence = (
            "No sign that the judges make the same errors more often than chance would have it."
        )
    if not errors.truth.from_labels:
        sentence += " Errors that all of them share do not show without labels."
    yield Check(
        "Independent judges", sentence, f"{min(worth.estimate, judges):.1f}", f"of {judges}"
    )


def _length(more: Further) -> Iterator[Check]:
    lines = {line.rater: line.rate for line in more.lengths}
    panel, people = lines.get("the panel"), lines.get("people")
    if panel is None:
        return
    beside = f"; people prefer it in {percent(people.interval)}" if people is not None else ""
    sentence = f"The longer response wins {percent(panel.interval)} of pairs{beside}."
    yield Check("Length preference", sentence, f"{panel.interval.estimate:.0%}", "of pairs")


def _position(findings: Findings) -> Iterator[Check]:
    first_rate, even = findings.position.first_shown, findings.position.expected_rate
    if first_rate is None or even is None:
        return
    verdict = "no sign of bias" if first_rate.low <= even <= first_rate.high else "a bias"
    sentence = f"The response shown first is put first in {percent(first_rate)} of judgments;"
    sentence += f" {even:.0%} would be even: {verdict}."
    yield Check("Position bias", sentence, f"{first_rate.estimate:.0%}", f"against {even:.0%}")


def _again(findings: Findings, more: Further) -> Check:
    name = "Same verdict twice"
    if isinstance(more.retest, Retest):
        agreement = more.retest.pair_agreement
        sentence = (
            f"Two runs give the same verdict on {percent(agreement)} of {more.retest.n} prompts."
        )
        return Check(name, sentence, f"{agreement.estimate:.0%}")
    cost = sum(line.cost_usd or 0.0 for line in findings.economies if line.purpose == "judge")
    price = f"about {money(cost)}" if cost else "free"
    return Check(name, f"Not measured. Run `clash rerun {findings.run}`: {price}.")
