"""Times and amounts as people write them in options."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from clash.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence


def seconds_of(text: str, option: str) -> float:
    """``800ms``, ``1.5s`` or ``800`` (milliseconds) in seconds.

    Raises:
        ConfigError: it is none of these.
    """
    number, unit = text.strip().lower(), 1e-3
    for suffix, scale in (("ms", 1e-3), ("s", 1.0)):
        if number.endswith(suffix):
            number, unit = number.removesuffix(suffix), scale
            break
    try:
        value = float(number) * unit
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= 0):
        raise ConfigError(f"{text!r} is no time", field=option, hint="write 800ms or 1.5s")
    return value


def assignments(words: Sequence[str], option: str) -> dict[str, float]:
    """``NAME=0.002`` or, for ``--latency``, ``NAME=800ms``, as numbers by name.

    Raises:
        ConfigError: a word has no ``=``, or no amount behind it.
    """
    amounts: dict[str, float] = {}
    for word in words:
        name, sign, amount = word.rpartition("=")
        if option == "--latency" and sign:
            amounts[name] = seconds_of(amount, option)
            continue
        try:
            amounts[name] = float(amount.strip().removeprefix("$"))
        except ValueError:
            sign = ""
        if not sign:
            example = "NAME=800ms" if option == "--latency" else "NAME=0.002"
            raise ConfigError(f"{word!r} gives no figure", field=option, hint=f"write {example}")
    return amounts
