"""How many tokens a judge's answer takes: what to expect, and how much room to leave.

The answer is a ranking and a table of K responses by C criteria, so with many responses it outgrows
every fixed cap. A cell is ``"C1": {"score": 3, "reason": "…"}``, with a reason of at most 15
words for a score of 3 or less.
"""

from __future__ import annotations

REASONING_TOKENS = 400
"""Tokens that a judge is expected to think before it answers."""
REASONING_ROOM = 3000
"""Tokens that a cap leaves for thinking: some judges think much more than most."""
LEAST_CAP = 4000
"""The cap for few responses: generous, since an answer that is cut off is paid for and lost."""
MOST_CAP = 16_384
"""The most that current models allow; several refuse a request with a higher cap."""
_OBJECT = 20
_LABEL = 5
"""A label in the ranking, or at the head of a row of scores."""
_CELL = 14
_REASON = 20
"""The longest reason."""
_TYPICAL_REASON = 6
"""Half of the cells have a reason, of some nine words."""


def typical(responses: int, criteria: int) -> int:
    """Tokens of a typical answer, without the thinking before it."""
    return _tokens(responses, criteria, _TYPICAL_REASON)


def longest(responses: int, criteria: int) -> int:
    """Tokens of an answer with the longest reason in every cell."""
    return _tokens(responses, criteria, _REASON)


def cap(responses: int, criteria: int) -> int:
    """``max_tokens`` for a judge whose panel sets none."""
    tokens = longest(responses, criteria) + REASONING_ROOM
    return max(LEAST_CAP, min(tokens, MOST_CAP))


def _tokens(responses: int, criteria: int, reason: int) -> int:
    row = _LABEL + criteria * (_CELL + reason) if criteria else 0
    return _OBJECT + responses * (_LABEL + row)
