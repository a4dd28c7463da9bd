"""The report of a run that judges each text by itself: headline, chart rows, facts, tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from clash.analysis.decision import p_text
from clash.analysis.single_text.decision import passing_words
from clash.report.formats import DASH, counts, estimate, p_cell, percent, points
from clash.report.tables import Table, with_rows
from clash.wording import decimal, plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from clash.analysis.findings import Findings
    from clash.analysis.single_text import TextContrast, TextFindings, TextGroup
    from clash.analysis.single_text.people import TextPeople, TextRater
    from clash.records import Verdict
    from clash.stats.intervals import Interval

    Shape = Literal["winner", "open", "agreement", "nothing"]

_ALPHA = 0.05
_RATER_ORDER = ("people", "panel", "judge", "observer", "constant", "baseline")


@dataclass(frozen=True)
class TextAnswer:
    """The answer of such a run, as :class:`clash.report.headline.Headline` states it."""

    shape: Shape
    text: str
    evidence: str = ""
    contradiction: str | None = None


def answer(findings: Findings, texts: TextFindings) -> TextAnswer:
    """What the run says: agreement with people where that was asked, else shares, score or winner."""
    if findings.kind == "validate" and texts.people is not None:
        return _agreement(texts.people)
    decision = findings.decision
    shape: Shape = "winner" if decision.status == "decided" else "open"
    if decision.status == "none":
        shape = "nothing"
    contradiction = None if texts.people is None else _against_constant(texts.people)
    return TextAnswer(shape, decision.sentence, _evidence(texts), contradiction)


def _agreement(people: TextPeople) -> TextAnswer:
    rate = people.rate
    bounds = f"[{100 * rate.interval.low:.0f}, {100 * rate.interval.high:.0f}]"
    text = (
        f"The panel agrees with people on {decimal(rate.right)} of {plural(rate.n, 'text')}"
        f" ({rate.estimate:.1%} {bounds})."
    )
    constant = _constant(people)
    if constant is None or constant.p is None:
        return TextAnswer("agreement", text)
    line = f"{_saying(constant)} ({constant.rate.estimate:.1%}, paired {p_text(constant.p)})."
    if _is_beaten(constant):
        return TextAnswer("agreement", text, f"Better than {line}")
    is_worse = constant.against is not None and constant.against.estimate < 0
    start = "Worse than" if is_worse and constant.p <= _ALPHA else "No better than"
    return TextAnswer("agreement", text, contradiction=f"{start} {line}")


def _constant(people: TextPeople) -> TextRater | None:
    return next((rater for rater in people.raters if rater.kind == "constant"), None)


def _is_beaten(rater: TextRater) -> bool:
    is_ahead = rater.against is not None and rater.against.estimate > 0
    return is_ahead and rater.p is not None and rater.p <= _ALPHA


def _saying(constant: TextRater) -> str:
    return constant.name.replace("always", "always saying")


def _against_constant(people: TextPeople) -> str | None:
    """What the labels say against the panel: it does no better than one answer for every text."""
    constant = _constant(people)
    if constant is None or _is_beaten(constant):
        return None
    return (
        f"Human labels: the panel is right on {people.rate.estimate:.0%}, no better than"
        f" {_saying(constant)} ({constant.rate.estimate:.0%})."
    )


def _evidence(texts: TextFindings) -> str:
    """What people would say of all texts; of several candidates, the value of each."""
    everything = texts.groups[0]
    if texts.contrasts:
        parts = [f"{group.candidate} {_value(group, texts)}" for group in texts.candidates[:4]]
        return "; ".join(parts) + "."
    by_people = everything.people_pass_rate or everything.people_score
    if by_people is None and everything.people_shares:
        by_people = everything.people_shares[texts.labels[0]]
    if by_people is None:
        return ""
    words = estimate(by_people, 2) if by_people is everything.people_score else percent(by_people)
    return f"By labels and verdicts together, as people would say: {words}."


def _value(group: TextGroup, texts: TextFindings) -> str:
    if group.pass_rate is not None:
        return f"passes {percent(group.pass_rate)}"
    if group.score is not None:
        return estimate(group.score, 2)
    return percent(group.shares.get(texts.labels[0])) if texts.labels else DASH


# -- screen ----------------------------------------------------------------------------------------


def chart_rows(
    findings: Findings, texts: TextFindings
) -> tuple[str, list[tuple[str, Interval, str]]]:
    """The caption of the first chart, and its rows: name, share and note. Empty for scores."""
    if findings.kind == "validate" and texts.people is not None:
        return "agreement with people, 95% intervals", list(_rater_rows(texts.people))
    groups = texts.candidates or texts.groups
    if texts.passing is not None:
        rows = [
            (group.candidate, group.pass_rate, "")
            for group in groups
            if group.pass_rate is not None
        ]
        return f"share that passes ({passing_words(texts)}), 95% intervals", rows
    if texts.candidates and len(texts.labels) == 2:
        first = texts.labels[0]
        rows = [(group.candidate, group.shares[first], "") for group in groups]
        return f'share of "{first}", 95% intervals', rows
    rows = [(label, share, "") for label, share in texts.groups[0].shares.items()]
    return "share of all texts, 95% intervals", rows


def _rater_rows(people: TextPeople) -> Iterator[tuple[str, Interval, str]]:
    rows = [rater for rater in people.raters if rater.kind in ("people", "panel", "constant")]
    judges = [rater for rater in people.raters if rater.kind == "judge"]
    best = max(judges, key=lambda rater: rater.rate.estimate, default=None)
    for rater in rows:
        if rater.kind == "constant" and best is not None and len(judges) > 1:
            yield "best judge", best.rate, best.name
        yield rater.name, rater.rate, ""


def facts(texts: TextFindings) -> Iterator[tuple[str, str]]:
    """The facts of the screen that are of such runs alone."""
    people = texts.people
    if people is not None:
        parts = [percent(people.rate.interval), f"kappa {estimate(people.kappa, 2)}"]
        if people.error is not None:
            parts = [f"same score {parts[0]}", f"off by {estimate(people.error, 2)} on average"]
        yield "Panel vs. people", " · ".join([*parts, plural(people.n, "label")])
    if texts.method is not None and texts.method.fallback is None:
        by = texts.method
        yield "Method", by.method if by.model is None else f"{by.method}: {by.model}"
    if texts.alpha.estimate == texts.alpha.estimate and len(texts.judges) > 1:
        yield "Among judges", f"Krippendorff's alpha {estimate(texts.alpha, 2)}"


# -- tables ----------------------------------------------------------------------------------------


def tables(findings: Findings, texts: TextFindings) -> list[Table]:
    """The tables that are of such runs alone, those with rows."""
    run_tables = [_outcomes(texts), _contrasts(texts), _judges(texts), _judge_pairs(texts)]
    people = [] if texts.people is None else _people(texts, texts.people)
    return with_rows(
        [*people, *run_tables] if findings.kind == "validate" else [*run_tables, *people]
    )


def _outcomes(texts: TextFindings) -> Table:
    has_people = any(g.people_shares or g.people_score or g.people_pass_rate for g in texts.groups)
    columns = ["texts", "n", "no verdict", *texts.labels]
    columns += ["mean score"] if texts.mode == "score" else []
    columns += ["passes"] if texts.passing is not None else []
    columns += ["as people would say"] if has_people else []
    rows = []
    for group in texts.groups:
        row = [group.candidate, str(group.n), str(group.n - group.n_decided)]
        row += [percent(share) for share in group.shares.values()]
        row += [estimate(group.score, 2)] if texts.mode == "score" else []
        row += [percent(group.pass_rate)] if texts.passing is not None else []
        row += [_by_people(group)] if has_people else []
        rows.append(row)
    notes = ["shares are of all texts, those without a verdict included; 95% intervals, by prompt"]
    if texts.mode == "score":
        notes = ["the mean is over texts with a verdict; 95% intervals, clustered by prompt"]
    if has_people:
        notes.append(
            "as people would say: from labels and verdicts together (prediction-powered); valid"
            " where the labelled texts are a random sample"
        )
    n = len(columns)
    title = "Labels" if texts.mode == "label" else "Scores"
    return Table(title, columns, rows, frozenset(range(1, n)), notes, brief=True)


def _by_people(group: TextGroup) -> str:
    if group.people_pass_rate is not None:
        return f"passes {percent(group.people_pass_rate)}"
    if group.people_score is not None:
        return estimate(group.people_score, 2)
    if not group.people_shares:
        return DASH
    return ", ".join(f"{name} {percent(share)}" for name, share in group.people_shares.items())


def _contrasts(texts: TextFindings) -> Table:
    names = {"passes": "share that passes", "score": "mean score"}
    measure = texts.contrasts[0].measure if texts.contrasts else "label"
    measure_words = names.get(measure, f'share of "{texts.labels[0]}"' if texts.labels else "")
    rows = [
        {
            "pair": f"{c.first} : {c.second}",
            "items": c.n,
            f"difference in {measure_words}": _gap(c),
            "p": p_cell(c.p),
            "p (Holm)": p_cell(c.p_holm),
        }
        for c in texts.contrasts
    ]
    return Table.of(
        "Pair by pair",
        rows,
        notes=["paired by item, clustered by prompt; Holm's correction over all pairs"],
    )


def _gap(contrast: TextContrast) -> str:
    if contrast.measure == "score":
        return estimate(contrast.difference, 2, sign="+")
    return points(contrast.difference)


def _judges(texts: TextFindings) -> Table:
    has_flips = any(judge.flips is not None for judge in texts.judges)
    is_label = texts.mode == "label"
    columns = ["judge", "role", "judged", *texts.labels]
    columns += ["first listed"] if is_label else ["mean score"]
    columns += ["agrees with the verdict", *(["flips"] if has_flips else [])]
    rows = []
    for judge in texts.judges:
        row = [judge.judge, judge.role, str(judge.n_judged)]
        row += [percent(judge.shares.get(label)) for label in texts.labels]
        row += [percent(judge.first_listed) if is_label else estimate(judge.score, 2)]
        row += [percent(judge.agreement), *([percent(judge.flips)] if has_flips else [])]
        rows.append(row)
    notes = ["a judge is part of the verdict, so agreement with it is not accuracy"]
    if is_label:
        even = f"{1 / len(texts.labels):.0%}"
        notes.append(f"first listed: its label is the one its page lists first; even is {even}")
    if has_flips:
        notes.append("flips: the other order of the choices changes what it says")
    n = len(columns)
    return Table(
        "Judges of texts", columns, rows, frozenset(range(2, n)), notes, optional=(1, n - 1)
    )


def _judge_pairs(texts: TextFindings) -> Table:
    heading = "same label" if texts.mode == "label" else "same score"
    rows = [
        {
            "pair": f"{p.first} : {p.second}",
            "texts": p.n,
            heading: percent(p.agreement),
            "kappa": estimate(p.kappa, 2),
        }
        for p in texts.pairs
    ]
    notes = [f"Krippendorff's alpha of the voting judges: {estimate(texts.alpha, 2)}"]
    if texts.mode == "score":
        notes.append("kappa with quadratic weights, over scores as whole numbers")
    return Table.of("Judges among themselves", rows, notes=notes)


def _people(texts: TextFindings, people: TextPeople) -> list[Table]:
    raters = sorted(people.raters, key=lambda rater: _RATER_ORDER.index(rater.kind))
    rows = [
        {
            "rater": r.name,
            "agrees with people": percent(r.rate),
            "panel less this": points(r.against),
            "p": p_cell(r.p),
        }
        for r in raters
    ]
    notes = [
        f"over {plural(people.n, 'labelled text')}; a missing vote or verdict is a miss",
        "always: the commonest label, chosen with these labels in view",
        f"kappa of panel and people: {estimate(people.kappa, 2)}",
    ]
    if people.error is not None and people.bias is not None:
        notes.append(
            f"within one point {percent(people.within_one)}; mean distance"
            f" {estimate(people.error, 2)}; panel less people {estimate(people.bias, 2, sign='+')}"
        )
    agreement = Table.of("Who says what people say", rows, notes=notes, brief=True)
    return [agreement, _confusion(texts, people)]


def _confusion(texts: TextFindings, people: TextPeople) -> Table:
    columns = ["people say", *(f"panel: {name}" for name in texts.labels), "no verdict"]
    rows = [
        [name, *map(str, row)] for name, row in zip(texts.labels, people.confusion, strict=False)
    ]
    return Table("Labels of people and panel", columns, rows, frozenset(range(1, len(columns))))


def verdict_table(verdicts: Sequence[Verdict]) -> Table:
    """The verdict on every text."""
    has_score = any(verdict.score is not None for verdict in verdicts)
    has_pass = any(verdict.passed is not None for verdict in verdicts)
    columns = ["item", "text", "score" if has_score else "label", "confidence"]
    columns += ["passes"] if has_pass else []
    columns += [] if has_score else ["split"]
    rows = [_verdict_row(v, has_pass=has_pass, has_score=has_score) for v in verdicts]
    return Table("Verdicts", columns, rows, frozenset({3}))


def _verdict_row(verdict: Verdict, *, has_pass: bool, has_score: bool) -> list[str]:
    outcome = verdict.label if verdict.score is None else f"{verdict.score:.2f}"
    row = [verdict.item_id, verdict.candidate or "", outcome or f"none: {verdict.abstained}"]
    row += ["" if verdict.confidence is None else f"{verdict.confidence:.2f}"]
    row += [{True: "yes", False: "no", None: ""}[verdict.passed]] if has_pass else []
    words = f"{verdict.split or ''}{' unanimous' if verdict.unanimous else ''}"
    return row if has_score else [*row, words.strip()]


def coverage(findings: Findings) -> Table:
    """What became of the texts and judgments."""
    items, unanimity = findings.coverage, findings.unanimity
    rows = [
        ["texts", str(items.items)],
        ["with a verdict", str(items.n_decided)],
        ["no verdict", counts(items.abstained) or "0"],
        ["unanimous", f"{unanimity.unanimous}/{items.items}: {percent(unanimity.rate)}"],
        [
            "voting judgments",
            f"{items.n_expected} expected: {items.n_clean} clean, {items.n_repaired} repaired,"
            f" {sum(items.failures.values())} failed, {items.not_run} not run",
        ],
    ]
    optional = [
        ("failed judgments", counts(items.failures)),
        ("missing responses", counts(items.responses_failed)),
        ("statements of authorship masked", str(items.n_scrubbed) if items.n_scrubbed else ""),
        ("possible prompt injections", str(items.n_flagged) if items.n_flagged else ""),
    ]
    rows += [[name, value] for name, value in optional if value]
    return Table("Coverage and agreement", ["", ""], rows, brief=True)
