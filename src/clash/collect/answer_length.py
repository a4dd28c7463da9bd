"""How many tokens a judge's answer takes: to be expected, and to be left room for.

The answer is a table of K responses by C criteria and a ranking, so that with many responses it
outgrows every fixed cap. A cell is ``"C1": {"score": 3, "reason": "…"}``, with a reason of at most 15
words for a score of 3 or less.
"""

from __future__ import annotations

REASONING_TOKENS = 400
"""What a judge is expected to think before it answers."""
REASONING_ROOM = 3000
"""What a cap leaves for thinking: some judges think much more than most."""
LEAST_CAP = 4000
"""The cap for few responses: generous, since an answer that is cut off is paid for and lost."""
MOST_CAP = 16_384
"""What current models allow; several refuse a request with a higher cap."""
_OBJECT = 20
_LABEL = 5
"""A label in the ranking, or at the head of a row of scores."""
_CELL = 14
_REASON = 20
"""The longest reason."""
_TYPICAL_REASON = 6
"""Half of the cells have a reason, of some nine words."""


def expected(responses: int, criteria: int) -> int:
    """Tokens of a typical answer, without what is thought before it."""
    return _tokens(responses, criteria, _TYPICAL_REASON)


def longest(responses: int, criteria: int) -> int:
    """Tokens of an answer with the longest reason in every cell."""
    return _tokens(responses, criteria, _REASON)


def cap(responses: int, criteria: int) -> int:
    """``max_tokens`` for a judge whose panel sets none."""
    wanted = longest(responses, criteria) + REASONING_ROOM
    return max(LEAST_CAP, min(wanted, MOST_CAP))


def _tokens(responses: int, criteria: int, reason: int) -> int:
    row = _LABEL + criteria * (_CELL + reason) if criteria else 0
    return _OBJECT + responses * (_LABEL + row)
