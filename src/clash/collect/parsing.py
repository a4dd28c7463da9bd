"""What a judge wrote becomes a ranking, or a reason why it does not.

Pure, and never raises. Two rules: what can be mended without guessing is ``repaired``, the rest
is ``failed``; and nothing is invented: every label and score was written by the judge.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from clash.collect.jsontext import Unreadable, note, objects

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from clash.records import Groups, Parse

_ALIAS = re.compile(
    r"^(?:response|answer|candidate|option|label)?\s*[\[(<\"'*`]*a\s*[-_]?\s*(\d+)[\])>\"'*`]*$",
    re.IGNORECASE,
)
_FRACTION = re.compile(r"^\s*([1-5])\s*(?:(?:/|out of)\s*5)?\s*$")
_WORD = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class Parsed:
    """A judge's answer, read.

    Attributes:
        ranking: groups of labels, best first; null where the answer is no judgment.
        scores: by label and criterion name, 1 to 5.
        reasons: by label and criterion name.
        repairs: what was mended, in words.
        error: why there is no ranking.
    """

    ranking: Groups | None
    parse: Parse
    scores: dict[str, dict[str, int]] = field(default_factory=dict)
    reasons: dict[str, dict[str, str]] = field(default_factory=dict)
    repairs: tuple[str, ...] = ()
    error: str | None = None


def parse(
    text: str, labels: Sequence[str], criteria: Sequence[str] = (), *, ties: bool = True
) -> Parsed:
    """Read a judge's answer.

    Args:
        text: the answer, as it came.
        labels: the labels that were shown, ``A0`` …
        criteria: names of the criteria, in the order of their ids ``C1`` …
        ties: whether a group may hold more than one label.
    """
    repairs: list[str] = []
    try:
        value = _only(_answers(text, repairs))
        ranking = _ranking(value, labels, repairs, ties=ties)
        scores, reasons = _scores(value, labels, criteria, repairs)
    except Unreadable as reason:
        return Parsed(None, "failed", repairs=tuple(repairs), error=str(reason))
    status: Parse = "repaired" if repairs else "clean"
    return Parsed(ranking, status, scores, reasons, tuple(repairs))


def _answers(text: str, repairs: list[str]) -> list[dict[str, Any]]:
    try:
        found = objects(text, repairs)
    except Unreadable:
        arrow = _arrow(text) if ">" in text and "{" not in text else None
        if arrow is None:
            raise
        note(repairs, "a line of text instead of JSON")
        return [{"ranking": arrow}]
    if len(found) == 1 and not isinstance(found[0], dict):
        note(repairs, "the answer is not an object")
        return [{"ranking": found[0]}]
    return [value for value in found if isinstance(value, dict)]


def _only(objects: list[dict[str, Any]]) -> dict[str, Any]:
    """The one answer; several that say the same are one."""
    with_ranking = [obj for obj in objects if _find_ranking(obj) is not None]
    if not with_ranking:
        raise Unreadable("the answer has no ranking")
    first = with_ranking[0]
    if any(_find_ranking(other) != _find_ranking(first) for other in with_ranking[1:]):
        raise Unreadable("the answer holds several rankings that differ")
    return first


# -- the ranking --------------------------------------------------------------------------------


def _find_ranking(value: Mapping[str, Any]) -> Any:  # noqa: ANN401 - any JSON value
    folded = {key.strip().lower(): part for key, part in value.items()}
    for key in ("ranking", "rankings", "rank", "final_ranking", "order"):
        if key in folded:
            return folded[key]
    return None


def _ranking(
    value: Mapping[str, Any], labels: Sequence[str], repairs: list[str], *, ties: bool
) -> Groups:
    found = _find_ranking(value)
    if isinstance(found, str):
        found = _arrow(found)
        repairs.append("the ranking is written as text")
    elif isinstance(found, dict):
        found = _from_ranks(found)
        repairs.append("the ranking is written as ranks")
    if not isinstance(found, list) or not found:
        raise Unreadable("the ranking is not a list")
    groups = [group if isinstance(group, list) else [group] for group in found]
    named = [[_label(name, labels, repairs) for name in group] for group in groups if group]
    flat = [name for group in named for name in group]
    for name in flat:
        if flat.count(name) > 1:
            raise Unreadable(f"the ranking names {name} twice")
    missing = [label for label in labels if label not in flat]
    if missing:
        raise Unreadable(f"the ranking leaves out {', '.join(missing)}")
    if not ties and any(len(group) > 1 for group in named):
        raise Unreadable("the ranking has a tie, and ties are not allowed")
    return [sorted(group) for group in named]


def _arrow(text: str) -> list[list[str]] | None:
    """``A0 > A1 = A2`` as groups; null where the text is no such line."""
    for line in reversed(text.strip().splitlines()):
        body = re.sub(
            r"^\W*(?:final\s+)?(?:ranking|order|verdict)\W*", "", line.strip(), flags=re.IGNORECASE
        )
        body = body.strip().strip("\"'`*.")
        if re.fullmatch(r"\W*a\d+\W*(?:\s*(?:>|=|,|≻|~)\s*\W*a\d+\W*)+", body, re.IGNORECASE):
            groups = re.split(r"[>,≻]", body)
            return [
                [part.strip().strip("\"'`*[]()") for part in re.split(r"[=~]", g)] for g in groups
            ]
    return None


def _from_ranks(ranks: Mapping[str, Any]) -> list[list[str]]:
    """``{"A0": 2, "A1": 1}`` as groups: equal ranks are ties."""
    if not all(isinstance(rank, int) and not isinstance(rank, bool) for rank in ranks.values()):
        raise Unreadable("the ranking is an object whose values are not whole numbers")
    order = sorted(set(ranks.values()))
    return [[name for name, rank in ranks.items() if rank == place] for place in order]


def _label(name: Any, labels: Sequence[str], repairs: list[str]) -> str:  # noqa: ANN401 - any JSON
    """The label that ``name`` spells; only spellings that cannot mean another."""
    if name in labels:
        return str(name)
    if isinstance(name, dict) and len(name) <= 3:
        inner = [part for part in name.values() if isinstance(part, str) and part in labels]
        if len(inner) == 1:
            note(repairs, "the ranking's entries are objects")
            return inner[0]
    if isinstance(name, str) and (match := _ALIAS.match(name.strip())):
        label = f"A{int(match[1])}"
        if label in labels:
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
            note(repairs, f"score written as {cell!r}")
        scores.setdefault(label, {})[criterion] = score
        if reason:
            reasons.setdefault(label, {})[criterion] = _shortened(reason, repairs)
    missing = len(labels) * len(criteria) - sum(len(by) for by in scores.values())
    if missing:
        note(repairs, f"{missing} scores missing")
    _separate_reasons(value, labels, ids, reasons, repairs)
    return scores, reasons


@lru_cache(maxsize=256)
def _criterion_ids(criteria: tuple[str, ...]) -> Mapping[str, str]:
    """Every spelling of a criterion to its name: ``c1``, its name, ``c1. name``."""
    ids: dict[str, str] = {}
    for number, name in enumerate(criteria, start=1):
        for spelling in (f"c{number}", name.lower(), f"c{number}. {name.lower()}"):
            ids.setdefault(spelling, name)
    return ids


def _cells(
    value: Mapping[str, Any], labels: Sequence[str], ids: Mapping[str, str], repairs: list[str]
) -> Iterator[tuple[str, str, Any]]:
    folded = {key.strip().lower(): part for key, part in value.items()}
    table = folded.get("scores", folded.get("ratings"))
    if isinstance(table, list):
        table = _as_table(table)
        note(repairs, "scores written as a list")
    if not isinstance(table, dict):
        return
    for name, row in table.items():
        try:
            label = _label(name, labels, repairs)
        except Unreadable:
            note(repairs, f"scores of {json.dumps(name)[:40]}, which was not shown, left out")
            continue
        for spelled, cell in row.items() if isinstance(row, dict) else ():
            criterion = ids.get(str(spelled).strip().lower())
            if criterion is None:
                note(repairs, f"scores for {json.dumps(spelled)[:40]}, no criterion, left out")
            else:
                yield label, criterion, cell


def _as_table(rows: list[Any]) -> dict[str, dict[str, Any]]:
    table: dict[str, dict[str, Any]] = {}
    for row in rows:
        if not isinstance(row, dict):
            continue
        label = row.get("response", row.get("label"))
        criterion = row.get("criterion", row.get("criteria"))
        if isinstance(label, str) and isinstance(criterion, str):
            table.setdefault(label, {})[criterion] = row
    return table


def _cell(cell: Any) -> tuple[int | None, str]:  # noqa: ANN401 - any JSON value
    reason = ""
    if isinstance(cell, dict):
        reason = cell.get("reason") or cell.get("justification") or ""
        reason = reason if isinstance(reason, str) else ""
        cell = cell.get("score", cell.get("value"))
    if isinstance(cell, str):
        match = _FRACTION.match(cell)
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
            for spelled, reason in row.items():
                criterion = ids.get(str(spelled).strip().lower())
                if criterion and isinstance(reason, str) and reason.strip():
                    reasons.setdefault(name, {})[criterion] = _shortened(reason, repairs)


def _shortened(reason: str, repairs: list[str], words: int = 15) -> str:
    if len(reason.split()) <= words:
        return reason.strip()
    found = [match.end() for match in _WORD.finditer(reason)]
    note(repairs, f"a reason of more than {words} words cut")
    return reason[: found[words - 1]].strip() + " …"
