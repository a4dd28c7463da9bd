"""Whether a run is good enough: thresholds on its figures, or on how far they fell from another run.

A figure that the run does not have fails its rule: a gate never passes for want of evidence.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from clash.analysis.compare.pairs import against
from clash.analysis.figures import Figure
from clash.stats.intervals import Interval, difference

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np

    from clash.analysis.rundata import RunData

Way = Literal["min", "max", "max-drop", "max-rise"]
On = Literal["bound", "point"]


@dataclass(frozen=True)
class Rule:
    """One threshold.

    Attributes:
        way: the figure is at least, or at most, ``limit``; or it fell, or rose, by no more than
            ``limit`` against the baseline run.
    """

    figure: str
    way: Way
    limit: float


@dataclass(frozen=True)
class Checked:
    """What became of a rule.

    Attributes:
        value: the figure, or the change of it; null where the run does not have it.
        tested: what was held against the limit: the bound of the interval that is harder to
            pass, or the value itself where there is no interval or the point was asked for.
        how: what ``tested`` is.
        message: one line for people.
    """

    rule: Rule
    value: float | None
    low: float | None
    high: float | None
    tested: float | None
    how: str
    passed: bool
    message: str


def check(rules: Sequence[Rule], found: Mapping[str, Figure], on: On = "bound") -> list[Checked]:
    """Hold ``min`` and ``max`` rules against a run's figures."""
    return [_checked(rule, found.get(rule.figure), on, found) for rule in rules]


def check_changes(
    rules: Sequence[Rule], changes: Mapping[str, Figure], on: On = "bound"
) -> list[Checked]:
    """Hold ``max-drop`` and ``max-rise`` rules against :func:`changed`."""
    return [_checked(rule, changes.get(rule.figure), on, changes) for rule in rules]


def complete(status: str) -> Checked:
    """The rule that goes without saying: the run has ended well."""
    rule = Rule("complete", "min", 1.0)
    done = float(status == "complete")
    word = "the run is complete" if done else f"the run is {status}, not complete"
    return Checked(rule, done, None, None, done, "status", bool(done), word)


def changed(
    run: RunData,
    baseline: RunData,
    now: Mapping[str, Figure],
    before: Mapping[str, Figure],
    rng: np.random.Generator,
) -> dict[str, Figure]:
    """Figures of ``run`` less those of ``baseline``, with the interval of the difference.

    Concordance is compared item by item where both runs hold the same labelled items; other
    estimates as independent ones (square-and-add), which is too wide for shared items and so
    errs towards failing.
    """
    found = {name: _less(now[name], before[name]) for name in now if name in before}
    shared = against(run, baseline, rng).shared
    if shared is not None and shared.paired is not None and "concordance" in found:
        found["concordance"] = Figure.of(shared.paired.difference)
    return found


def _less(now: Figure, before: Figure) -> Figure:
    first, second = _interval(now), _interval(before)
    if first is None or second is None:
        return Figure(now.value - before.value)
    return Figure.of(difference(first, second))


def _interval(figure: Figure) -> Interval | None:
    if figure.low is None or figure.high is None:
        return None
    return Interval(figure.value, figure.low, figure.high, 0.95, 0, 0, "")


def _checked(rule: Rule, figure: Figure | None, on: On, found: Mapping[str, Figure]) -> Checked:
    if figure is None:
        why = f"{rule.figure}: not a figure of this run{_near(rule.figure, found)}"
        return Checked(rule, None, None, None, None, "missing", False, why)
    least = rule.way in ("min", "max-drop")
    bound = figure.low if least else figure.high
    use_bound = on == "bound" and bound is not None and math.isfinite(bound)
    tested = bound if use_bound and bound is not None else figure.value
    if on == "bound" and bound is not None and not math.isfinite(bound):
        # An endless interval proves nothing, so it passes nothing.
        tested = bound
    how = (
        ("lower bound" if least else "upper bound")
        if tested == bound and on == "bound"
        else "point"
    )
    limit = -rule.limit if rule.way == "max-drop" else rule.limit
    passed = tested >= limit - 1e-12 if least else tested <= limit + 1e-12
    return Checked(
        rule,
        figure.value,
        figure.low,
        figure.high,
        tested,
        how,
        passed,
        _message(rule, figure, tested, how, passed=passed),
    )


def _message(rule: Rule, figure: Figure, tested: float, how: str, *, passed: bool) -> str:
    word = {
        "min": f"at least {rule.limit:g}",
        "max": f"at most {rule.limit:g}",
        "max-drop": f"a fall of at most {rule.limit:g}",
        "max-rise": f"a rise of at most {rule.limit:g}",
    }[rule.way]
    interval = "" if figure.low is None else f" [{figure.low:.4g}, {figure.high:.4g}]"
    verdict = "holds" if passed else "fails"
    change = "change " if rule.way.startswith("max-") else ""
    return (
        f"{rule.figure}: {change}{figure.value:.4g}{interval}; {how} {tested:.4g}"
        f" against {word}: {verdict}"
    )


def _near(name: str, found: Mapping[str, Figure]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, list(found), n=3, cutoff=0.5)
    return f" (near: {', '.join(near)})" if near else ""
