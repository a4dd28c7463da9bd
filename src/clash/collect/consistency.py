"""Whether a judgment agrees with itself. Pure.

The ranking is the vote, whatever the scores say; a judgment that contradicts itself, or that does
not say what is wrong, is flagged and counted in the report.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from clash.records import CONTRADICTED, UNREASONED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from clash.collect.parsing import Parsed
    from clash.records import Criterion

_NEEDS_REASON = 3
"""The highest score that needs a reason."""


def inconsistencies(parsed: Parsed, criteria: Sequence[Criterion]) -> Iterator[str]:
    """Flags of a judgment that was read."""
    if _is_contradicted(parsed, criteria):
        yield CONTRADICTED
    if _lacks_reason(parsed):
        yield UNREASONED


def _is_contradicted(parsed: Parsed, criteria: Sequence[Criterion]) -> bool:
    """Whether every response that is ranked higher has the lower weighted score."""
    totals = {
        label: sum(criterion.weight * scores[criterion.name] for criterion in criteria)
        for label, scores in parsed.scores.items()
        if all(criterion.name in scores for criterion in criteria)
    }
    pairs = [
        totals[better] < totals[worse]
        for higher, lower in combinations(parsed.ranking or [], 2)
        for better in higher
        for worse in lower
        if better in totals and worse in totals
    ]
    return bool(pairs) and all(pairs)


def _lacks_reason(parsed: Parsed) -> bool:
    return any(
        score <= _NEEDS_REASON and criterion not in parsed.reasons.get(label, {})
        for label, scores in parsed.scores.items()
        for criterion, score in scores.items()
    )
