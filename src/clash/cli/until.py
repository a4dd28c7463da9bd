"""Judge prompts in batches, look after each, and stop when the interval is narrow enough.

Every look is paid for: intervals are always valid, or alpha is spent over planned looks.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from clash.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from clash.analysis.rundata import RunData
    from clash.cli.beginning import Origin, Prepared
    from clash.cli.ending import Finished
    from clash.records import Kind
    from clash.stats.intervals import Interval

Sequential = Literal["always-valid", "obrien-fleming", "pocock"]
SEQUENTIAL: tuple[Sequential, ...] = ("always-valid", "obrien-fleming", "pocock")
LOOKS = 5
_RULE = re.compile(r"\s*ci\s*<\s*(0?\.\d+)\s*$")


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
        candidate: whose share of points is looked at: the first by name unless one is named, so
            that the data do not choose it.
        once: width of the interval of a single look at the same data.
    """

    prompts: int
    candidate: str
    interval: Interval
    once: float

    @property
    def width(self) -> float:
        """Of the interval that peeking is paid for in."""
        return self.interval.high - self.interval.low


def rule_of(text: str, sequential: str, looks: int = LOOKS) -> Rule:
    """A stopping rule, as ``ci<0.1``.

    Raises:
        ConfigError: it is none.
    """
    found = _RULE.match(text)
    if found is None:
        raise ConfigError(f"no stopping rule {text!r}", field="--until", mend='--until "ci<0.1"')
    if sequential not in SEQUENTIAL:
        raise ConfigError(
            f"no way {sequential!r} to pay for looks",
            field="--sequential",
            mend=f"one of {', '.join(SEQUENTIAL)}",
        )
    return Rule(text.strip(), float(found.group(1)), sequential, looks)


def judge_until(
    made: Prepared,
    rule: Rule,
    environ: Mapping[str, str],
    *,
    kind: Kind,
    out: Path,
    run_id: str | None,
    origin: Origin,
    yes: bool,
    as_json: bool,
    quiet: bool,
    whole: bool,
) -> int:
    """Judge prompts in an order of the seed's, in batches, until the rule is met or they end.

    What it may cost is what all prompts may cost, and ``--max-cost`` holds for the whole.
    """
    from clash.cli import beginning, ending, estimate, pipeline
    from clash.cli.common import say
    from clash.collect.forecast import price

    plan = origin.registration.plan if origin.registration else None
    primary = plan.primary if plan else None
    shuffled = _shuffled(made)
    sizes = _sizes(len({item.cluster for item in shuffled.prompts.items}), rule.looks)
    estimate.check(price(made.plan), made.plan, yes=yes, quiet=quiet or as_json)
    first = _first(shuffled, sizes[0], environ)
    looks: list[Look] = []
    with beginning.begin(first, kind=kind, out=out, run_id=run_id, origin=origin) as writer:
        writer.save(_with_rule(writer.manifest(), rule, looks))
        finished = pipeline.carry_on(writer, first.plan, environ, quiet=quiet or as_json)
        for at, size in enumerate(sizes):
            if finished.exit_code in (130, 4) or finished.interrupted is not None:
                break
            looks.append(_look(finished, rule, at, sizes, primary))
            say(_told(looks[-1], rule))
            writer.save(_with_rule(writer.manifest(), rule, looks))
            if looks[-1].width < rule.width or size == sizes[-1]:
                break
            more = _first(shuffled, sizes[at + 1], environ)
            _append(writer, more)
            finished = pipeline.carry_on(writer, more.plan, environ, quiet=quiet or as_json)
        finished = _concluded(writer, finished, rule, looks)
    ending.tell(finished, as_json=as_json, whole=whole, quiet=quiet)
    return finished.exit_code


def _shuffled(made: Prepared) -> Prepared:
    """Prompts in random order, whole clusters together: a part of them is then a fair sample."""
    items = made.prompts.items
    clusters = list(dict.fromkeys(item.cluster for item in items))
    rng = np.random.default_rng(made.plan.config.seed)
    place = {clusters[old]: new for new, old in enumerate(rng.permutation(len(clusters)))}
    ordered = tuple(sorted(items, key=lambda item: place[item.cluster]))
    return replace(made, prompts=replace(made.prompts, items=ordered))


def _sizes(clusters: int, looks: int) -> list[int]:
    """Clusters at each look, rising to all."""
    return sorted({max(1, round(clusters * (at + 1) / looks)) for at in range(looks)})


def _first(made: Prepared, clusters: int, environ: Mapping[str, str]) -> Prepared:
    """A run of the first clusters only."""
    from clash.cli import beginning

    names = list(dict.fromkeys(item.cluster for item in made.prompts.items))[:clusters]
    count = sum(item.cluster in names for item in made.prompts.items)
    return beginning.assemble(made.plan.config, made.prompts.first(count), environ)


def _append(writer: Any, more: Prepared) -> None:  # noqa: ANN401 - a RunWriter
    """Items and injected responses that the folder does not hold yet."""
    there = {item.item_id for item in writer.items()}
    for item in more.plan.items:
        if item.item_id not in there:
            writer.append(item)
    for response in more.plan.responses:
        if response.item_id not in there:
            writer.append(response)


def _look(finished: Finished, rule: Rule, at: int, sizes: list[int], primary: str | None) -> Look:
    from clash.analysis.leaderboard import points_table
    from clash.analysis.rundata import RunData
    from clash.stats.intervals import mean_clustered
    from clash.stats.sequential import always_valid, group_sequential

    data = RunData.load(finished.folder)
    candidate = primary or data.candidates[0]
    values = points_table(data)[:, data.candidates.index(candidate)]
    known = ~np.isnan(values)
    clusters = np.array([data.clusters[item.item_id] for item in data.items])[known]
    once = mean_clustered(values[known], clusters)
    if rule.sequential == "always-valid":
        # Planned for half of the prompts: fixed before the data, and between the looks.
        planned = max(1, sizes[-1] // 2)
        found = always_valid(values[known], clusters, planned=planned)
    else:
        shares = [size / sizes[-1] for size in sizes]
        found = group_sequential(values[known], clusters, at, shares, spending=rule.sequential)
    return Look(sizes[at], candidate, _within(found), once.high - once.low)


def _within(found: Interval) -> Interval:
    """A share lies in [0, 1], however little is known of it."""
    return replace(found, low=max(0.0, found.low), high=min(1.0, found.high))


def _told(look: Look, rule: Rule) -> str:
    found = look.interval
    return (
        f"look at {look.prompts} prompts: {look.candidate} {found.estimate:.1%} of the points"
        f" [{100 * found.low:.1f}, {100 * found.high:.1f}] {found.method}, width {look.width:.3f}"
        f" against {rule.width:g} (looked at once: {look.once:.3f})"
    )


def _with_rule(manifest: Any, rule: Rule, looks: list[Look]) -> Any:  # noqa: ANN401 - a Manifest
    """The manifest with the rule, and what every look saw."""
    last = looks[-1] if looks else None
    about = {
        "rule": rule.text,
        "sequential": rule.sequential,
        "looks_planned": rule.looks,
        "met": last is not None and last.width < rule.width,
        "looks": [
            {
                "prompts": look.prompts,
                "candidate": look.candidate,
                "estimate": look.interval.estimate,
                "low": look.interval.low,
                "high": look.interval.high,
                "width": look.width,
                "width_looked_at_once": look.once,
            }
            for look in looks
        ],
    }
    return manifest.model_copy(update={"stopping": about})


def _concluded(writer: Any, finished: Finished, rule: Rule, looks: list[Look]) -> Finished:  # noqa: ANN401 - a RunWriter
    """The report anew, now that the last look is in the manifest, and the seal on both."""
    from clash.analysis.findings import findings_of
    from clash.analysis.rundata import RunData
    from clash.cli.ending import write_report

    manifest = _with_rule(writer.manifest(), rule, looks)
    if looks:
        manifest = manifest.model_copy(update={"notes": [*manifest.notes, _ended(rule, looks)]})
    data: RunData = replace(RunData.load(writer), manifest=manifest)
    found = findings_of(data)
    write_report(writer, found, data)
    return replace(finished, manifest=writer.seal(manifest), findings=found)


def _ended(rule: Rule, looks: list[Look]) -> str:
    last = looks[-1]
    why = "met" if last.width < rule.width else "not met: the prompts ended"
    return (
        f"--until {rule.text} ({rule.sequential}, {len(looks)} looks), {why}: {_told(last, rule)}"
    )
