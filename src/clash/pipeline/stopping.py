"""Stopping rules, the interval at each look, and both in words."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from clash.analysis.serialize import to_plain
from clash.errors import ConfigError, one_of
from clash.wording import plural

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clash.config import Config

Sequential = Literal["always-valid", "obrien-fleming", "pocock"]
SEQUENTIAL: tuple[Sequential, ...] = ("always-valid", "obrien-fleming", "pocock")
LOOKS = 5
_RULE = re.compile(r"\A\s*ci\s*<\s*(0?\.\d+)\s*$")
NOTE = "--until "


@dataclass(frozen=True)
class StoppingRule:
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
    """The interval at one look.

    Attributes:
        candidate: whose share of points is looked at: the registered one, else the first by
            name, so that the data do not choose it.
        estimate: NaN where nothing was judged yet.
        low: end of the interval that accounts for the looks; ``high`` the other.
        once: width of the interval of a single look at the same data.
    """

    json_keys: ClassVar[Mapping[str, str]] = {"once": "width_looked_at_once"}
    json_properties: ClassVar[tuple[str, ...]] = ("width",)

    prompts: int
    candidate: str
    estimate: float
    low: float
    high: float
    once: float

    @property
    def width(self) -> float:
        """The width of the interval."""
        return self.high - self.low

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> Look:
        """Read a look from its entry in the manifest."""
        return cls(
            prompts=record["prompts"],
            candidate=record["candidate"],
            estimate=math.nan if record["estimate"] is None else record["estimate"],
            low=record["low"],
            high=record["high"],
            once=record["width_looked_at_once"],
        )


def parse_rule(text: str, sequential: str, looks: int = LOOKS) -> StoppingRule:
    """A stopping rule, as ``ci<0.1``.

    Raises:
        ConfigError: it is none.
    """
    match = _RULE.match(text)
    if match is None:
        raise ConfigError(f"no stopping rule {text!r}", field="--until", hint='--until "ci<0.1"')
    if sequential not in SEQUENTIAL:
        raise ConfigError(
            f"unknown correction for repeated looks {sequential!r}",
            field="--sequential",
            hint=one_of(sequential, SEQUENTIAL),
        )
    return StoppingRule(text.strip(), float(match.group(1)), sequential, looks)


def check_controls(config: Config) -> None:
    """Refuse control items and single texts in a run that stops early.

    Raises:
        ConfigError: the configuration asks for them.
    """
    if config.judging.is_single:
        raise ConfigError(
            "--until watches win rates, and this run judges each text by itself",
            field="judging",
            hint="leave --until out; a first run with --limit 100 shows how wide the intervals are",
        )
    if config.blinding.controls:
        raise ConfigError(
            "control items cannot be added to a run that stops by --until",
            field="blinding.controls",
            hint="leave one of the two out; `clash redteam PANEL` tests the judges by itself",
        )


def sizes_of(clusters: int, looks: int) -> list[int]:
    """Clusters at each look, rising to all."""
    return sorted({max(1, round(clusters * (at + 1) / looks)) for at in range(looks)})


def is_over(rule: StoppingRule, looks: Sequence[Look], sizes: Sequence[int]) -> bool:
    """Whether every cluster has been judged."""
    return bool(looks) and (is_met(rule, looks) or len(looks) == len(sizes))


def is_met(rule: StoppingRule, looks: Sequence[Look]) -> bool:
    """Whether the last interval is narrow enough."""
    return bool(looks) and looks[-1].width < rule.width


def describe(look: Look, rule: StoppingRule) -> str:
    """A look in one line."""
    estimate = "nothing" if math.isnan(look.estimate) else f"{look.estimate:.1%}"
    return (
        f"look at {look.prompts} prompts: {look.candidate} {estimate} of the points"
        f" [{100 * look.low:.1f}, {100 * look.high:.1f}] {rule.sequential}, width {look.width:.3f}"
        f" against {rule.width:g} (looked at once: {look.once:.3f})"
    )


def as_json(rule: StoppingRule, looks: Sequence[Look]) -> dict[str, Any]:
    """The rule and every look, for the manifest."""
    return {
        "rule": rule.text,
        "sequential": rule.sequential,
        "looks_planned": rule.looks,
        "met": is_met(rule, looks),
        "looks": to_plain(looks),
    }


def outcome(rule: StoppingRule, looks: Sequence[Look], sizes: Sequence[int]) -> str:
    """The outcome of the rule, for the notes of a report."""
    reason = (
        "met"
        if is_met(rule, looks)
        else "not met: the prompts ended"
        if is_over(rule, looks, sizes)
        else "not met yet: the run was interrupted"
    )
    count = plural(len(looks), "look")
    return f"{NOTE}{rule.text} ({rule.sequential}, {count}), {reason}: {describe(looks[-1], rule)}"
