"""A stopping rule, what each look saw, and how both are told."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from clash.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Sequential = Literal["always-valid", "obrien-fleming", "pocock"]
SEQUENTIAL: tuple[Sequential, ...] = ("always-valid", "obrien-fleming", "pocock")
LOOKS = 5
_RULE = re.compile(r"\A\s*ci\s*<\s*(0?\.\d+)\s*$")
NOTE = "--until "


@dataclass(frozen=True)
class Rule:
    """When to stop.

    Attributes:
        width: of the interval of the primary candidate's share of points (high - low).
        looks: how many there are at most, evenly spaced over the prompts.
    """

    text: str
    width: float
    sequential: Sequential
    looks: int = LOOKS


@dataclass(frozen=True)
class Look:
    """What one look saw.

    Attributes:
        candidate: whose share of points is looked at: the registered one, else the first by
            name, so that the data do not choose it.
        estimate: NaN where nothing was judged yet.
        low: end of the interval that peeking is paid for in; ``high`` the other.
        once: width of the interval of a single look at the same data.
    """

    prompts: int
    candidate: str
    estimate: float
    low: float
    high: float
    once: float

    @property
    def width(self) -> float:
        """Of the interval."""
        return self.high - self.low

    def as_json(self) -> dict[str, Any]:
        """For the manifest."""
        return {
            "prompts": self.prompts,
            "candidate": self.candidate,
            "estimate": self.estimate if math.isfinite(self.estimate) else None,
            "low": self.low,
            "high": self.high,
            "width": self.width,
            "width_looked_at_once": self.once,
        }

    @classmethod
    def read(cls, found: Mapping[str, Any]) -> Look:
        """From the manifest."""
        estimate = math.nan if found["estimate"] is None else found["estimate"]
        once = found["width_looked_at_once"]
        return cls(
            found["prompts"], found["candidate"], estimate, found["low"], found["high"], once
        )


def rule_of(text: str, sequential: str, looks: int = LOOKS) -> Rule:
    """A stopping rule, as ``ci<0.1``.

    Raises:
        ConfigError: it is none.
    """
    found = _RULE.match(text)
    if found is None:
        raise ConfigError(f"no stopping rule {text!r}", field="--until", hint='--until "ci<0.1"')
    if sequential not in SEQUENTIAL:
        raise ConfigError(
            f"no way {sequential!r} to pay for looks",
            field="--sequential",
            hint=f"one of {', '.join(SEQUENTIAL)}",
        )
    return Rule(text.strip(), float(found.group(1)), sequential, looks)


def sizes_of(clusters: int, looks: int) -> list[int]:
    """Clusters at each look, rising to all."""
    return sorted({max(1, round(clusters * (at + 1) / looks)) for at in range(looks)})


def ended(rule: Rule, looks: Sequence[Look], sizes: Sequence[int]) -> bool:
    """Whether there is nothing more to judge."""
    return bool(looks) and (met(rule, looks) or len(looks) == len(sizes))


def met(rule: Rule, looks: Sequence[Look]) -> bool:
    """Whether the last interval is narrow enough."""
    return bool(looks) and looks[-1].width < rule.width


def told(look: Look, rule: Rule) -> str:
    """A look as a line for people."""
    estimate = "nothing" if math.isnan(look.estimate) else f"{look.estimate:.1%}"
    return (
        f"look at {look.prompts} prompts: {look.candidate} {estimate} of the points"
        f" [{100 * look.low:.1f}, {100 * look.high:.1f}] {rule.sequential}, width {look.width:.3f}"
        f" against {rule.width:g} (looked at once: {look.once:.3f})"
    )


def stopping(rule: Rule, looks: Sequence[Look]) -> dict[str, Any]:
    """The rule, and what every look saw."""
    return {
        "rule": rule.text,
        "sequential": rule.sequential,
        "looks_planned": rule.looks,
        "met": met(rule, looks),
        "looks": [look.as_json() for look in looks],
    }


def outcome(rule: Rule, looks: Sequence[Look], sizes: Sequence[int]) -> str:
    """How it ended, for the notes of a report."""
    why = (
        "met"
        if met(rule, looks)
        else "not met: the prompts ended"
        if ended(rule, looks, sizes)
        else "not met yet: the run broke off"
    )
    count = f"{len(looks)} look{'s' if len(looks) > 1 else ''}"
    return f"{NOTE}{rule.text} ({rule.sequential}, {count}), {why}: {told(looks[-1], rule)}"
