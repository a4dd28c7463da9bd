"""The page of a run that judges each text by itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from clash.analysis.single_text.people import FEWEST_LABELS
from clash.config import PROMPT
from clash.escape import clip
from clash.report import single_text
from clash.report.formats import estimate, money, percent, plural
from clash.report.headline import run_headline
from clash.report.html.answer import chart_of, page_answer
from clash.report.html.blocks import KeyFigure
from clash.report.html.words import share_row
from clash.votes.text_labels import text_names
from clash.wording import with_capital

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from clash.analysis.findings import Findings
    from clash.analysis.rundata import RunData
    from clash.analysis.single_text import TextFindings
    from clash.records import Judgment, Verdict
    from clash.report.html.blocks import PageAnswer

_MOST_TEXTS = 300
_MOST_CHARACTERS = 6000


@dataclass(frozen=True)
class ShownText:
    """One text with its verdict and votes; ``votes`` has a row for each judgment."""

    name: str
    outcome: str
    summary: str
    prompt: str
    body: str
    votes: tuple[tuple[str, str, str], ...]


def text_answer(findings: Findings, texts: TextFindings) -> PageAnswer:
    """What one sees first: the sentence, one chart, the figures."""
    headline = run_headline(findings)
    caption, rows = single_text.chart_rows(findings, texts)
    chart_rows = [share_row(name, rate, note=note) for name, rate, note in rows]
    chart = chart_of(chart_rows, caption)
    sentence = f"{with_capital(caption)}." if chart else ""
    return page_answer(headline, findings, chart, sentence, tuple(_figures(findings, texts)))


def _figures(findings: Findings, texts: TextFindings) -> Iterator[KeyFigure]:
    everything = texts.groups[0]
    if everything.pass_rate is not None:
        yield KeyFigure(
            "Pass", f"{everything.pass_rate.estimate:.0%}", f"of {plural(everything.n, 'text')}"
        )
    elif everything.score is not None:
        low, high = texts.scale
        yield KeyFigure("Mean score", f"{everything.score.estimate:.2f}", f"from {low} to {high}")
    people = texts.people
    if people is None:
        yield KeyFigure("Panel vs. people", "–", f"no label; {FEWEST_LABELS} would help")
    else:
        note = f"on {plural(people.n, 'label')}, kappa {estimate(people.kappa, 2)}"
        yield KeyFigure("Panel vs. people", f"{people.rate.estimate:.0%}", note)
    counts = findings.coverage
    usable = counts.n_clean + counts.n_repaired
    yield KeyFigure("Judgments", f"{usable:,}", f"of {counts.n_expected:,} usable")
    yield KeyFigure("Unanimous", percent(findings.unanimity.rate).partition(" ")[0], "of all texts")
    cost = "at least " if findings.cost_is_lower_bound else ""
    yield KeyFigure("Cost", f"{cost}{money(findings.cost_usd)}")


def shown_texts(run: RunData) -> list[ShownText]:
    """The texts worth reading first: against people, without a verdict, then the least confident."""
    names = text_names((v.item_id, v.candidate or "") for v in run.verdicts)
    judgments: dict[tuple[str, str], list[Judgment]] = {}
    for judgment in run.judgments:
        for candidate in run.blinds.labels(judgment).values():
            judgments.setdefault((judgment.item_id, candidate), []).append(judgment)
    verdicts = sorted(run.verdicts, key=lambda verdict: _interest(run, verdict))
    lines = []
    for verdict in verdicts[:_MOST_TEXTS]:
        key = verdict.item_id, verdict.candidate or ""
        lines.append(_show(run, verdict, names[key], judgments.get(key, ())))
    return lines


def order_words(run: RunData) -> str:
    """What the list of texts holds, and in which order."""
    n = len(run.verdicts)
    more = f" The first {_MOST_TEXTS} of {n:,}; verdicts.jsonl has all." if n > _MOST_TEXTS else ""
    return (
        "Those against people's label first, then those without a verdict, then the least"
        f" confident.{more}"
    )


def _interest(run: RunData, verdict: Verdict) -> tuple[int, float]:
    people, outcome = _people(run, verdict), _outcome(verdict)
    is_against = people is not None and outcome is not None and people != outcome
    if isinstance(people, float) and isinstance(outcome, float):
        is_against = abs(people - outcome) >= 1
    order = 0 if is_against else 1 if not verdict.is_decided else 2
    return order, verdict.confidence or 0.0


def _outcome(verdict: Verdict) -> str | float | None:
    return verdict.label if verdict.score is None else verdict.score


def _people(run: RunData, verdict: Verdict) -> str | float | None:
    return run.text_label(verdict.item_id, verdict.candidate)


def _words(value: str | float | None) -> str:
    return f"{value:.2f}" if isinstance(value, float) else str(value or "–")


def _show(run: RunData, verdict: Verdict, name: str, judgments: Sequence[Judgment]) -> ShownText:
    people = _people(run, verdict)
    parts = [f"no verdict: {verdict.abstained}"] if verdict.abstained else []
    if verdict.confidence is not None:
        parts.append(f"confidence {verdict.confidence:.2f}")
    parts += [f"people: {_words(people)}"] if people is not None else []
    candidate = verdict.candidate or ""
    turns = run.item(verdict.item_id).turns
    prompt = "" if candidate == PROMPT else "\n\n".join(turn.content for turn in turns)
    votes = tuple(
        (
            judgment.judge,
            str(judgment.vote if judgment.vote is not None else f"failed: {judgment.error}"),
            "; ".join(text for by in judgment.reasons.values() for text in by.values()),
        )
        for judgment in judgments
    )
    body = run.texts[verdict.item_id].get(candidate, "(no response)")
    return ShownText(
        name,
        _words(_outcome(verdict)),
        " · ".join(parts),
        clip(prompt, _MOST_CHARACTERS),
        clip(body, _MOST_CHARACTERS),
        votes,
    )
