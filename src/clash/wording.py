"""Counts and their nouns, the same in every message and report."""

from __future__ import annotations

import math
import re

NO_BREAK = "\u00a0"
"""A blank at which no line is broken."""
_FIGURE = re.compile(r"\bp [=<] [\d.]+|\d%? \[[^\[\]]*\]")


def plural(n: float, noun: str, nouns: str = "") -> str:
    """A count and its noun: ``1 run``, ``2 runs``; ``nouns`` where the plural is irregular."""
    count = f"{n:,}" if isinstance(n, int) else decimal(n)
    return f"{count} {noun if n == 1 else nouns or noun + 's'}"


def part(n: int, total: int, noun: str, verbs: tuple[str, str] = ("has", "have")) -> str:
    """Some of many, and a verb: ``1 of 4 items has``, ``2 of 4 items have``."""
    return f"{n:,} of {plural(total, noun)} {verbs[0] if n == 1 else verbs[1]}"


def with_whole_figures(text: str) -> str:
    """The text with figures such as ``p = 0.02`` and ``61% [52, 69]`` that no line break divides."""
    return _FIGURE.sub(lambda match: match[0].replace(" ", NO_BREAK), text)


def with_capital(text: str) -> str:
    """The text with its first letter in upper case, the other letters as they are."""
    return text[:1].upper() + text[1:]


def decimal(value: float) -> str:
    """A count that may be fractional, with one decimal where it is: ``12`` or ``12.8``."""
    return f"{value:.1f}".removesuffix(".0")


def two_digits(n: int) -> int:
    """Two digits of a number that is an estimate: 682 becomes 680."""
    step = 10 ** max(0, math.floor(math.log10(n)) - 1) if n else 1
    return round(n / step) * step
