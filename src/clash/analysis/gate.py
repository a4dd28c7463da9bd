"""Whether a run is good enough: thresholds on its figures, or on how far they fell from another run.

A figure that the run does not have fails its rule: a gate never passes for want of evidence.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Literal

from clash.analysis.compare.pairs import clusters_of, same_items
from clash.analysis.figures import Figure
from clash.stats.hypothesis_tests import paired_difference
from clash.stats.intervals import Interval, difference

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from clash.analysis.rundata import RunData
    from clash.records import Verdict
    from clash.stats.typing import Index

Way = Literal["min", "max", "max-drop", "max-rise"]
On = Literal["bound", "point"]


@dataclass(frozen=True)
class ThresholdRule:
    """One threshold.

    Attributes:
        way: the figure is at least, or at most, ``limit``; or it fell, or rose, by no more than
            ``limit`` against the baseline run.
    """

    figure: str
    way: Way
    limit: float


@dataclass(frozen=True)
class GateCheck:
    """A rule and its outcome in a run.

    Attributes:
        value: the figure, or the change of it; null where the run does not have it.
        tested_value: what was held against the limit: the bound of the interval that is harder to
            pass, or the value itself where there is no interval or the point was asked for.
        how: what ``tested_value`` is.
        message: one line for people.
    """

    json_keys: ClassVar[Mapping[str, str]] = {"tested_value": "tested"}

    rule: ThresholdRule
    value: float | None
    low: float | None
    high: float | None
    tested_value: float | None
    how: str
    passed: bool
    message: str


def check(
    rules: Sequence[ThresholdRule], figures: Mapping[str, Figure], on: On = "bound"
) -> list[GateCheck]:
    """Hold rules against a run's figures, or their changes (:func:`figure_changes`)."""
    return [_check_rule(rule, figures.get(rule.figure), on, figures) for rule in rules]


def complete(status: str) -> GateCheck:
    """The rule that goes without saying: the run has ended well."""
    rule = ThresholdRule("complete", "min", 1.0)
    value = float(status == "complete")
    word = "the run is complete" if value else f"the run is {status}, not complete"
    return GateCheck(rule, value, None, None, value, "status", bool(value), word)


def figure_changes(
    run: RunData,
    baseline: RunData,
    now: Mapping[str, Figure],
    before: Mapping[str, Figure],
) -> dict[str, Figure]:
    """Figures of ``run`` less those of ``baseline``, with the interval of the difference.

    Concordance, unanimity and win rates are compared item by item where both runs hold the same
    items, and all of them; other estimates as independent ones (square-and-add), which is too
    wide for shared items and so errs towards failing.
    """
    changes = {name: _less(now[name], before[name]) for name in now if name in before}
    item_ids = same_items(run, baseline)
    if len(item_ids) == len(run.items) == len(baseline.items):
        changes |= _paired_changes(run, baseline, item_ids, changes)
    return changes


def _paired_changes(
    run: RunData, baseline: RunData, item_ids: Sequence[str], changes: Mapping[str, Figure]
) -> dict[str, Figure]:
    """Differences item by item, of the figures that are means over the items."""
    now, before = ({v.item_id: v for v in part.verdicts} for part in (run, baseline))
    groups = clusters_of(run, item_ids)
    scores: dict[str, Callable[[Verdict], float]] = {
        "unanimity": lambda verdict: float(verdict.unanimous),
        "coverage": lambda verdict: float(verdict.ranking is not None),
        "decided": lambda verdict: float(verdict.winner is not None),
    }
    for name in changes:
        kind, _, candidate = name.partition(".")
        if (
            kind == "win_rate"
            and _answers_all(run, candidate)
            and _answers_all(baseline, candidate)
        ):
            scores[name] = partial(_is_winner, candidate)
    truth = run.truth
    if truth == baseline.truth and truth.keys() == set(item_ids):
        scores["concordance"] = lambda verdict: float(verdict.outcome == truth[verdict.item_id])
    return {
        name: _difference(
            [score(now[item]) for item in item_ids],
            [score(before[item]) for item in item_ids],
            groups,
        )
        for name, score in scores.items()
        if name in changes
    }


def _difference(now: Sequence[float], before: Sequence[float], groups: Index) -> Figure:
    """The mean change on the same items.

    Exactly 0 where no item has changed: a run that was replayed has not dropped, on however few.
    """
    if now == before:
        return Figure(0.0, 0.0, 0.0)
    return Figure.of(paired_difference(now, before, groups).difference)


def _is_winner(candidate: str, verdict: Verdict) -> float:
    return float(verdict.winner == candidate)


def _answers_all(run: RunData, candidate: str) -> bool:
    return len(run.items_asked(candidate)) == len(run.items)


def _less(now: Figure, before: Figure) -> Figure:
    first, second = _interval(now), _interval(before)
    if first is None or second is None:
        return Figure(now.value - before.value)
    return Figure.of(difference(first, second))


def _interval(figure: Figure) -> Interval | None:
    if figure.low is None or figure.high is None:
        return None
    return Interval(figure.value, figure.low, figure.high, 0.95, 0, 0, "")


def _check_rule(
    rule: ThresholdRule, figure: Figure | None, on: On, figures: Mapping[str, Figure]
) -> GateCheck:
    if figure is None:
        reason = f"{rule.figure}: not a figure of this run{_near(rule.figure, figures)}"
        return GateCheck(rule, None, None, None, None, "missing", False, reason)
    least = rule.way in ("min", "max-drop")
    bound = figure.low if least else figure.high
    use_bound = on == "bound" and bound is not None and math.isfinite(bound)
    tested_value = bound if use_bound and bound is not None else figure.value
    if on == "bound" and bound is not None and not math.isfinite(bound):
        # An endless interval proves nothing, so it passes nothing.
        tested_value = bound
    method = (
        ("lower bound" if least else "upper bound")
        if tested_value == bound and on == "bound"
        else "point"
    )
    limit = -rule.limit if rule.way == "max-drop" else rule.limit
    is_met = tested_value >= limit - 1e-12 if least else tested_value <= limit + 1e-12
    return GateCheck(
        rule,
        figure.value,
        figure.low,
        figure.high,
        tested_value,
        method,
        is_met,
        _message(rule, figure, tested_value, method, is_met=is_met),
    )


def _message(
    rule: ThresholdRule, figure: Figure, tested_value: float, method: str, *, is_met: bool
) -> str:
    word = {
        "min": f"at least {rule.limit:g}",
        "max": f"at most {rule.limit:g}",
        "max-drop": f"a fall of at most {rule.limit:g}",
        "max-rise": f"a rise of at most {rule.limit:g}",
    }[rule.way]
    interval = "" if figure.low is None else f" [{figure.low:.4g}, {figure.high:.4g}]"
    verdict = "holds" if is_met else "fails"
    change = "change " if rule.way.startswith("max-") else ""
    return (
        f"{rule.figure}: {change}{figure.value:.4g}{interval}; {method} {tested_value:.4g}"
        f" against {word}: {verdict}"
    )


def _near(name: str, figures: Mapping[str, Figure]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, list(figures), n=3, cutoff=0.5)
    return f" (near: {', '.join(near)})" if near else ""
