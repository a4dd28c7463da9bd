"""A judge's reply becomes a ranking with scores, or a reason why it does not.

Pure; :func:`parse` never raises. Which object of the reply is the answer is decided in
:mod:`clash.collect.answers`; here the answer is read. What can be repaired without guessing is
``repaired``, the rest is ``failed``; nothing is invented: every label and every score stands in the
answer under the key that was asked for.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations
from typing import TYPE_CHECKING, Any

from clash.collect.answers import KEY, AnswerForm, find_answer
from clash.collect.jsontext import Unreadable, note
from clash.records import CONTRADICTION, MISSING_REASON

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from clash.records import Criterion, Groups, Parse

_ALIAS = re.compile(
    r"(?:(?:response|answer|candidate|option|label) ?)?[\[(<\"'*`]{0,3}a[ _-]?(0|[1-9][0-9]{0,3})"
    r"[\])>\"'*`]{0,3}",
    re.IGNORECASE,
)
_FRACTION = re.compile(r"([1-5])(?: ?(?:/|out of) ?5)?")
_LONGEST_LABEL = 40
_NAMING = frozenset({"label", "response", "answer", "candidate", "id", "name"})
"""Keys that name a response and say nothing of its place: ``{"worst": "A0"}`` does."""
REMARKS = frozenset({"reasoning", "analysis", "explanation", "rationale", "thinking", "thoughts"})
"""Keys under which judges think aloud, unasked."""


@dataclass(frozen=True, slots=True)
class ParsedAnswer:
    """What a judge's reply says.

    Attributes:
        ranking: groups of labels, best first; null where the reply holds no judgment.
        parse: ``clean``, ``repaired`` or ``failed``.
        scores: by label and criterion name, 1 to 5.
        reasons: by label and criterion name.
        repairs: what was repaired, in words.
        error: why there is no ranking.
        vote: the label or score, of an answer on a single text.
    """

    ranking: Groups | None
    parse: Parse
    scores: dict[str, dict[str, int]] = field(default_factory=dict)
    reasons: dict[str, dict[str, str]] = field(default_factory=dict)
    repairs: tuple[str, ...] = ()
    error: str | None = None
    vote: str | int | None = None

    @property
    def is_usable(self) -> bool:
        """Whether it says something: a ranking, a label or a score."""
        return self.ranking is not None or self.vote is not None


def parse(
    text: str,
    labels: Sequence[str],
    criteria: Sequence[str] = (),
    *,
    ties: bool = True,
    code: str | None = None,
    schema_enforced: bool = False,
) -> ParsedAnswer:
    """Read a judge's reply.

    Args:
        text: the reply, as it came.
        labels: the labels that were shown, ``A0`` …
        criteria: names of the criteria, in the order of their ids ``C1`` …
        ties: whether a group may hold more than one label.
        code: what the answer must carry; null for runs made before there were codes.
        schema_enforced: the provider was given the answer's schema to hold the judge to.
    """
    keys = ("scores", "ranking") if criteria else ("ranking",)
    repairs: list[str] = []
    try:
        answer = find_answer(text, AnswerForm(keys, code, schema_enforced=schema_enforced), repairs)
        _check_keys(answer, keys, repairs)
        ranking = _ranking(answer["ranking"], labels, repairs, ties=ties)
        # An enforced schema lets no model leave out the scores: this is a judge that gives none.
        gives_none = schema_enforced and answer.get("scores", {}) is None
        scores, reasons = _scores(answer, labels, () if gives_none else criteria, repairs)
    except Unreadable as reason:
        return ParsedAnswer(None, "failed", repairs=tuple(repairs), error=str(reason))
    status: Parse = "repaired" if repairs else "clean"
    return ParsedAnswer(ranking, status, scores, reasons, tuple(repairs))


def _check_keys(answer: Mapping[str, Any], keys: Sequence[str], repairs: list[str]) -> None:
    """Refuse keys that nobody asked for: one of them may contradict the ranking.

    A remark before the ranking is passed over; after the ranking it may retract it.
    """
    if answer.get("ranking") is None:
        raise Unreadable("the answer has no ranking")
    expected_keys = {KEY, *keys, "reasons"} if "scores" in keys else {KEY, *keys}
    order = list(answer)
    for key in answer.keys() - expected_keys:
        remark = key.strip().lower() in REMARKS and isinstance(answer[key], str)
        if not remark or order.index(key) > order.index("ranking"):
            raise Unreadable(f"the key {json.dumps(key)[:40]} was not asked for")
        note(repairs, f"{key!r} passed over")


# -- the ranking --------------------------------------------------------------------------------


def _ranking(
    value: Any,  # noqa: ANN401 - any JSON value
    labels: Sequence[str],
    repairs: list[str],
    *,
    ties: bool,
) -> Groups:
    if isinstance(value, str):
        value = _from_text(value)
        note(repairs, "the ranking is written as text")
    elif isinstance(value, dict):
        value = _from_ranks(value)
        note(repairs, "the ranking is written as ranks")
    if not isinstance(value, list) or not value:
        raise Unreadable("the ranking is not a list")
    groups = [group if isinstance(group, list) else [group] for group in value]
    ranking = [[_label(name, labels, repairs) for name in group] for group in groups if group]
    _check_complete(ranking, labels)
    if not ties and any(len(group) > 1 for group in ranking):
        raise Unreadable("the ranking has a tie, and ties are not allowed")
    return [sorted(group) for group in ranking]


def _check_complete(ranking: Groups, labels: Sequence[str]) -> None:
    names: set[str] = set()
    for name in (name for group in ranking for name in group):
        if name in names:
            raise Unreadable(f"the ranking names {name} twice")
        names.add(name)
    missing = [label for label in labels if label not in names]
    if missing:
        raise Unreadable(f"the ranking leaves out {', '.join(missing)}")


def _from_text(text: str) -> list[list[str]]:
    """``A0 > A1 = A2`` as groups; whether each is a label is checked where labels are read."""
    line = text.replace("≻", ">").replace("~", "=")
    return [group.split("=") for group in line.split("," if ">" not in line else ">")]


def _from_ranks(ranks: Mapping[str, Any]) -> list[list[str]]:
    """``{"A0": 2, "A1": 1}`` as groups: equal ranks are ties.

    Only the ranks 1, 2, … without a gap: any other numbers may be scores, where more is better.
    """
    values = list(ranks.values())
    if not all(isinstance(rank, int) and not isinstance(rank, bool) for rank in values):
        raise Unreadable("the ranking is an object whose values are not whole numbers")
    if set(values) != set(range(1, len(set(values)) + 1)):
        raise Unreadable("the ranking is an object whose values are not the ranks 1, 2, …")
    groups: list[list[str]] = [[] for _ in set(values)]
    for name, rank in ranks.items():
        groups[rank - 1].append(name)
    return groups


def _label(name: Any, labels: Sequence[str], repairs: list[str]) -> str:  # noqa: ANN401 - any JSON
    """The label that ``name`` spells; only spellings that cannot mean another."""
    if isinstance(name, str) and name in labels:
        return name
    if isinstance(name, dict) and len(name) == 1:
        ((key, inner),) = name.items()
        if key.strip().lower() in _NAMING and isinstance(inner, str) and inner in labels:
            note(repairs, "the ranking's entries are objects")
            return inner
    if isinstance(name, str) and len(name) <= _LONGEST_LABEL:
        match = _ALIAS.fullmatch(name.strip())
        if match and (label := f"A{match[1]}") in labels:
            note(repairs, f"{name.strip()!r} read as {label}")
            return label
    raise Unreadable(f"the ranking names {json.dumps(name)[:40]}, which was not shown")


# -- the scores ---------------------------------------------------------------------------------


def _scores(
    value: Mapping[str, Any], labels: Sequence[str], criteria: Sequence[str], repairs: list[str]
) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, str]]]:
    """Scores and reasons, by label and criterion.

    A missing score is noted: the ranking is the vote. A score that is no whole number from 1 to 5
    fails the judgment, as does nothing else here: it is never clamped, and a judge that uses
    another scale has not understood the task.
    """
    if not criteria:
        return {}, {}
    ids = _criterion_ids(tuple(criteria))
    scores: dict[str, dict[str, int]] = {}
    reasons: dict[str, dict[str, str]] = {}
    for label, criterion, cell in _cells(value, labels, ids, repairs):
        score, reason = _cell(cell)
        if score is None:
            wrong = json.dumps(cell)[:40]
            raise Unreadable(f"the score of {label} for {criterion} is {wrong}, expected 1 to 5")
        if isinstance(cell, str):
            note(repairs, "a score written as text")
        if criterion in scores.setdefault(label, {}):
            raise Unreadable(f"{label} is scored twice for {criterion}")
        scores[label][criterion] = score
        if reason:
            reasons.setdefault(label, {})[criterion] = shorten(reason, repairs)
    missing = len(labels) * len(criteria) - sum(len(by) for by in scores.values())
    if missing:
        note(repairs, f"{missing} scores missing")
    _separate_reasons(value, labels, ids, reasons, repairs)
    return scores, reasons


@lru_cache(maxsize=256)
def _criterion_ids(criteria: tuple[str, ...]) -> Mapping[str, str]:
    """Every spelling of a criterion to its name: ``c1``, its name, ``c1. name``."""
    pairs = list(enumerate(criteria, start=1))
    # The ids first, since they were asked for: a criterion may have the name "C2".
    ids = {f"c{number}": name for number, name in pairs}
    for number, name in pairs:
        ids.setdefault(name.lower(), name)
        ids.setdefault(f"c{number}. {name.lower()}", name)
    return ids


def _cells(
    value: Mapping[str, Any], labels: Sequence[str], ids: Mapping[str, str], repairs: list[str]
) -> Iterator[tuple[str, str, Any]]:
    for name, spelling, cell in _written_cells(value.get("scores"), repairs):
        try:
            label = _label(name, labels, repairs)
        except Unreadable:
            note(repairs, "scores of responses that were not shown left out")
            continue
        criterion = ids.get(str(spelling).strip().lower())
        if criterion is None:
            note(repairs, "scores for unknown criteria left out")
        else:
            yield label, criterion, cell


def _written_cells(table: Any, repairs: list[str]) -> Iterator[tuple[Any, Any, Any]]:  # noqa: ANN401
    """Label, criterion and cell as the judge spelled them, from a table or a list of rows."""
    if isinstance(table, list):
        note(repairs, "scores written as a list")
        for row in (row for row in table if isinstance(row, dict)):
            label = row.get("response", row.get("label"))
            yield label, row.get("criterion", row.get("criteria")), row
    elif isinstance(table, dict):
        for label, row in table.items():
            for criterion, cell in row.items() if isinstance(row, dict) else ():
                yield label, criterion, cell


def _cell(cell: Any) -> tuple[int | None, str]:  # noqa: ANN401 - any JSON value
    reason = ""
    if isinstance(cell, dict):
        reason = cell.get("reason") or cell.get("justification") or ""
        reason = reason if isinstance(reason, str) else ""
        cell = cell.get("score", cell.get("value"))
    if isinstance(cell, str):
        match = _FRACTION.fullmatch(cell.strip())
        cell = int(match[1]) if match else cell
    elif isinstance(cell, float) and cell.is_integer():
        cell = int(cell)
    if isinstance(cell, int) and not isinstance(cell, bool) and 1 <= cell <= 5:
        return cell, reason.strip()
    return None, ""


def _separate_reasons(
    value: Mapping[str, Any],
    labels: Sequence[str],
    ids: Mapping[str, str],
    reasons: dict[str, dict[str, str]],
    repairs: list[str],
) -> None:
    """Reasons that a judge put beside the scores instead of inside them."""
    table = value.get("reasons")
    for name, row in table.items() if isinstance(table, dict) else ():
        if name in labels and isinstance(row, dict):
            for spelling, reason in row.items():
                criterion = ids.get(str(spelling).strip().lower())
                if criterion and isinstance(reason, str) and reason.strip():
                    reasons.setdefault(name, {})[criterion] = shorten(reason, repairs)


def shorten(reason: str, repairs: list[str], words: int = 15) -> str:
    """A reason of at most so many words."""
    if len(reason.split()) <= words:
        return reason.strip()
    note(repairs, f"a reason of more than {words} words cut")
    return " ".join(reason.split()[:words]) + " …"


# -- whether a judgment agrees with itself ------------------------------------------------------

_NEEDS_REASON = 3
"""The highest score that needs a reason."""


def inconsistencies(answer: ParsedAnswer, criteria: Sequence[Criterion]) -> Iterator[str]:
    """Flags of a judgment that contradicts itself, or that does not say what is wrong.

    The ranking is the vote, whatever the scores say; such judgments are counted in the report.
    """
    if _is_contradicted(answer, criteria):
        yield CONTRADICTION
    if _lacks_reason(answer):
        yield MISSING_REASON


def _is_contradicted(answer: ParsedAnswer, criteria: Sequence[Criterion]) -> bool:
    """Whether every response that is ranked higher has the lower weighted score."""
    totals = {
        label: sum(criterion.weight * scores[criterion.name] for criterion in criteria)
        for label, scores in answer.scores.items()
        if all(criterion.name in scores for criterion in criteria)
    }
    pairs = [
        totals[better] < totals[worse]
        for higher, lower in combinations(answer.ranking or [], 2)
        for better in higher
        for worse in lower
        if better in totals and worse in totals
    ]
    return bool(pairs) and all(pairs)


def _lacks_reason(answer: ParsedAnswer) -> bool:
    return any(
        score <= _NEEDS_REASON and criterion not in answer.reasons.get(label, {})
        for label, scores in answer.scores.items()
        for criterion, score in scores.items()
    )
