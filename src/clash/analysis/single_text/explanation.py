"""Why a run on single texts says what it says: its judges one by one, and the texts they differ on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clash.analysis.explanation.without import without_judge
from clash.analysis.single_text import text_findings, verdict_value
from clash.analysis.single_text.decision import decision_on_texts
from clash.analysis.single_text.people import to_whole
from clash.errors import StatisticsError
from clash.stats.intervals import wilson_clustered

if TYPE_CHECKING:
    from clash.analysis.decision import Decision
    from clash.analysis.rundata import RunData
    from clash.config import JudgingConfig
    from clash.stats.intervals import Interval
    from clash.stats.typing import Floats

ORDER = (
    "people against the panel first, the most confident verdict first; then texts without a verdict; "
    "then those on which the judges differ, the least confident verdict first"
)
"""The rule by which texts are ordered; equal ones stay in the run's order."""


@dataclass(frozen=True)
class TextOmission:
    """The run without one voting judge.

    Attributes:
        n_changed: texts whose verdict is then another, or none.
        sentence: what the run would say.
        agreement: agreement with human labels, as a share of the labelled texts; null without labels.
    """

    judge: str
    n_changed: int
    sentence: str
    agreement: Interval | None


@dataclass(frozen=True)
class TextOpinion:
    """What one voting judge says of a text on its first page; null where the judgment failed."""

    judge: str
    vote: str | int | None
    reason: str | None


@dataclass(frozen=True)
class TellingText:
    """A text on which people and the panel, or the judges among themselves, differ.

    Attributes:
        verdict: a label or a score; null where there is none.
        people: what people say; null without a label.
        decisive: each of these judges alone, left out, changes the verdict.
    """

    item_id: str
    candidate: str
    verdict: str | float | None
    people: str | float | None
    confidence: float | None
    opinions: list[TextOpinion]
    decisive: tuple[str, ...]


@dataclass(frozen=True)
class TextExplanation:
    """Why a run on single texts says what it says.

    Attributes:
        n_decided: texts that have a verdict, of ``n_texts``.
        agreement: the share of labelled texts whose verdict is the label; null without labels.
        judges: the run without each voting judge; empty with a single one.
        texts: those on which somebody differs, in the order of ``order``.
    """

    run: str
    kind: str
    decision: Decision
    n_texts: int
    n_decided: int
    n_labelled: int
    agreement: Interval | None
    judges: list[TextOmission]
    texts: list[TellingText]
    order: str = ORDER


def explain_texts(run: RunData) -> TextExplanation:
    """Explain what a run on single texts says.

    Raises:
        StatisticsError: the run ranks responses.
    """
    findings, judging, votes = text_findings(run), run.rules.judging, run.text_votes
    if findings is None or judging is None or votes is None:
        raise StatisticsError("this run ranks responses: it has no verdicts on single texts")
    values, people = _values(run, judging), run.people_values(votes)
    judges: list[TextOmission] = []
    changes: dict[str, Floats] = {}
    seats = [seat.id for seat in run.rules.seats]
    for seat in seats if len(seats) > 1 else []:
        remainder = without_judge(run, seat)
        rest_findings = text_findings(remainder)
        changes[seat] = _differ(values, _values(remainder, judging), judging)
        judges.append(
            TextOmission(
                judge=seat,
                n_changed=int(changes[seat].sum()),
                sentence="" if rest_findings is None else decision_on_texts(rest_findings).sentence,
                agreement=_agreement(remainder, people, judging),
            )
        )
    return TextExplanation(
        run=run.manifest.run,
        kind=run.manifest.kind,
        decision=decision_on_texts(findings),
        n_texts=findings.n_texts,
        n_decided=findings.n_decided,
        n_labelled=int((~np.isnan(people)).sum()),
        agreement=_agreement(run, people, judging),
        judges=judges,
        texts=_telling_texts(run, judging, values, people, changes),
    )


def _values(run: RunData, judging: JudgingConfig) -> Floats:
    return np.array([verdict_value(v, judging) for v in run.verdicts], dtype=float)


def _differ(first: Floats, second: Floats, judging: JudgingConfig) -> Floats:
    """(N,), 1 where two verdicts differ, a missing one from every other; scores as whole numbers."""
    if judging.mode == "score":
        first, second = to_whole(first), to_whole(second)
    is_same = (first == second) | (np.isnan(first) & np.isnan(second))
    return np.asarray(~is_same, dtype=float)


def _agreement(run: RunData, people: Floats, judging: JudgingConfig) -> Interval | None:
    """The share of labelled texts with the verdict that people give; one without is a miss."""
    has_label = ~np.isnan(people)
    if run.text_votes is None or not has_label.any():
        return None
    is_right = 1 - _differ(_values(run, judging)[has_label], people[has_label], judging)
    return wilson_clustered(is_right, run.text_votes.clusters[has_label])


def _telling_texts(
    run: RunData,
    judging: JudgingConfig,
    values: Floats,
    people: Floats,
    changes: dict[str, Floats],
) -> list[TellingText]:
    if run.text_votes is None:
        return []
    against = _differ(values, people, judging) * ~np.isnan(people)
    opinions = _opinions(run)
    keyed_texts: list[tuple[tuple[int, float, int], TellingText]] = []
    for row, (verdict, key) in enumerate(zip(run.verdicts, run.text_votes.texts, strict=True)):
        confidence = verdict.confidence or 0.0
        texts_opinions = opinions.get(key, [])
        votes = {opinion.vote for opinion in texts_opinions if opinion.vote is not None}
        if against[row]:
            order_key = (0, -confidence, row)
        elif np.isnan(values[row]):
            order_key = (1, 0.0, row)
        elif len(votes) > 1:
            order_key = (2, confidence, row)
        else:
            continue
        telling = TellingText(
            item_id=key[0],
            candidate=key[1],
            verdict=_word(values[row], judging),
            people=_word(people[row], judging),
            confidence=verdict.confidence,
            opinions=texts_opinions,
            decisive=tuple(seat for seat, flags in changes.items() if flags[row]),
        )
        keyed_texts.append((order_key, telling))
    return [text for _, text in sorted(keyed_texts, key=lambda pair: pair[0])]


def _word(value: float, judging: JudgingConfig) -> str | float | None:
    if np.isnan(value):
        return None
    return float(value) if judging.mode == "score" else list(judging.labels)[int(value)]


def _opinions(run: RunData) -> dict[tuple[str, str], list[TextOpinion]]:
    """What each voting judge says of each text, in the order of the panel."""
    seats = {seat.id: row for row, seat in enumerate(run.rules.seats)}
    by_text: dict[tuple[str, str], dict[str, TextOpinion]] = {}
    for judgment in run.judgments:
        if judgment.seat not in seats:
            continue
        (candidate,) = run.blinds.labels(judgment).values()
        of_text = by_text.setdefault((judgment.item_id, candidate), {})
        reason = next((t for row in judgment.reasons.values() for t in row.values() if t), None)
        of_text.setdefault(judgment.seat, TextOpinion(judgment.judge, judgment.vote, reason))
    return {
        key: [of_text[seat] for seat in sorted(of_text, key=seats.__getitem__)]
        for key, of_text in by_text.items()
    }
