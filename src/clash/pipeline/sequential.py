"""Judge prompts in batches, look after each, and stop when the interval is narrow enough.

Every look is paid for: intervals are always valid, or alpha is spent over planned looks. What the
loop knows is in the run folder (the rule and its looks in the manifest, all prompts in
``pool.jsonl``), so that a run that broke off goes on from there.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from clash.pipeline.stopping import (
    NOTE,
    Look,
    Rule,
    ended,
    outcome,
    rule_of,
    sizes_of,
    stopping,
    told,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from clash.analysis.rundata import RunData
    from clash.pipeline.finish import Finished
    from clash.pipeline.prepare import Origin, Prepared
    from clash.records import Kind, Pooled
    from clash.store.folder import RunWriter
    from clash.store.manifest import Manifest


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
    from clash.cli.common import say
    from clash.collect.forecast import price
    from clash.pipeline import finish as ending
    from clash.pipeline import keys
    from clash.pipeline import prepare as beginning
    from clash.pipeline import price as estimate

    keys.check(made.plan.refs(), environ, quiet=quiet or as_json)
    for note in (*made.resolved.notes, *made.prompts.warnings):
        say(note, style="yellow")
    forecast = price(made.plan)
    estimate.check(forecast, made.plan, yes=yes, quiet=quiet or as_json)
    pool, first = _pool(made), _first(made, rule.looks, environ)
    about = replace(origin, stopping=stopping(rule, []), pool=pool)
    with beginning.begin(
        first, environ, kind=kind, out=out, run_id=run_id, origin=about, forecast=forecast
    ) as writer:
        finished = _go_on(writer, rule, [], environ, {}, quiet=quiet or as_json)
    ending.tell(finished, as_json=as_json, whole=whole, quiet=quiet)
    return finished.exit_code


def goes_on(manifest: Manifest) -> bool:
    """Whether a run is one that judges until a rule holds."""
    return manifest.stopping is not None and bool(manifest.counts.get("pool"))


def resume_until(
    writer: RunWriter, environ: Mapping[str, str], limits: Mapping[str, Any], *, quiet: bool
) -> Finished:
    """Go on with the loop where it broke off: same rule, same order, same primary candidate.

    A run whose loop had ended takes its last look again, at what is there then: answers that had
    failed may be had now.

    Raises:
        RunFolderError: the run was killed before all of its items were written.
    """
    plan = writer.manifest().stopping or {}
    rule = rule_of(plan["rule"], plan["sequential"], plan["looks_planned"])
    looks = [Look.read(look) for look in plan["looks"]]
    return _go_on(writer, rule, looks, environ, limits, quiet=quiet, shows_keys=not quiet)


def _go_on(
    writer: RunWriter,
    rule: Rule,
    looks: list[Look],
    environ: Mapping[str, str],
    limits: Mapping[str, Any],
    *,
    quiet: bool,
    shows_keys: bool = False,
) -> Finished:
    from clash.cli.common import say
    from clash.pipeline import execute as pipeline
    from clash.pipeline import prepare as beginning

    pool = writer.pool()
    sizes = sizes_of(len({part.item.cluster for part in pool}), rule.looks)
    before, looks = looks, looks[:-1] if ended(rule, looks, sizes) else looks
    while True:
        size = sizes[len(looks)]
        _top_up(writer, pool, size)
        plan = beginning.replan(writer, environ, limits, quiet=not shows_keys)
        shows_keys = False
        finished = pipeline.carry_on(writer, plan, environ, quiet=quiet)
        if finished.exit_code in (130, 4) or finished.interrupted is not None:
            return _concluded(writer, finished, rule, max(before, looks, key=len), sizes)
        looks = [*looks, _look(finished, rule, looks, sizes)]
        say(told(looks[-1], rule))
        if ended(rule, looks, sizes):
            return _concluded(writer, finished, rule, looks, sizes)
        # Between two batches nothing is sealed: more is to come.
        unsealed: dict[str, Any] = {"status": "running", "files": {}, "seal": None}
        writer.save(_with_rule(finished.manifest, rule, looks, **unsealed))


def _order(made: Prepared) -> dict[str, int]:
    """Clusters in random order, whole ones together: a part of them is then a fair sample."""
    clusters = list(dict.fromkeys(item.cluster for item in made.prompts.items))
    rng = np.random.default_rng(made.plan.config.seed)
    return {clusters[old]: new for new, old in enumerate(rng.permutation(len(clusters)))}


def _pool(made: Prepared) -> tuple[Pooled, ...]:
    """Everything that may be judged, in the order that it is."""
    from clash.records import Pooled, Response

    place = _order(made)
    given: dict[str, list[Response]] = {}
    for response in made.plan.responses:
        given.setdefault(response.item_id, []).append(response)
    return tuple(
        Pooled(item=item, responses=given.get(item.item_id, []))
        for item in sorted(made.plan.items, key=lambda item: place[item.cluster])
    )


def _first(made: Prepared, looks: int, environ: Mapping[str, str]) -> Prepared:
    """A run of the first clusters only."""
    from clash.pipeline import prepare as beginning

    place = _order(made)
    size = sizes_of(len(place), looks)[0]
    items = sorted(made.prompts.items, key=lambda item: place[item.cluster])
    prompts = replace(made.prompts, items=tuple(items))
    count = sum(place[item.cluster] < size for item in items)
    return beginning.assemble(made.plan.config, prompts.first(count), environ)


def _top_up(writer: RunWriter, pool: Sequence[Pooled], clusters: int) -> None:
    """What the folder does not hold yet of the first clusters, and how much it holds then.

    Nothing is written where the pool is not whole: :func:`~clash.pipeline.prepare.replan` says so.
    """
    manifest = writer.manifest()
    if len(pool) != manifest.counts["pool"]:
        return
    wanted = set(list(dict.fromkeys(part.item.cluster for part in pool))[:clusters])
    items = {item.item_id for item in writer.items()}
    given = {(r.item_id, r.candidate) for r in writer.responses() if r.source == "injected"}
    for part in pool:
        if part.item.cluster not in wanted:
            continue
        if part.item.item_id not in items:
            items.add(part.item.item_id)
            writer.append(part.item)
        for response in part.responses:
            if (response.item_id, response.candidate) not in given:
                given.add((response.item_id, response.candidate))
                writer.append(response)
    counts = {**manifest.counts, "items": len(items), "injected": len(given)}
    if counts != manifest.counts:
        writer.save(manifest.model_copy(update={"counts": counts, "files": {}, "seal": None}))


def _look(finished: Finished, rule: Rule, before: Sequence[Look], sizes: Sequence[int]) -> Look:
    from clash.analysis.leaderboard import points_table
    from clash.analysis.rundata import RunData
    from clash.stats.intervals import mean_clustered
    from clash.stats.sequential import always_valid, group_sequential

    data, at = RunData.load(finished.folder), len(before)
    candidate = _primary(data, before)
    values = points_table(data)[:, data.candidates.index(candidate)]
    known = ~np.isnan(values)
    clusters = np.array([data.clusters[item.item_id] for item in data.items])[known]
    if rule.sequential == "always-valid":
        # Planned for half of the prompts: fixed before the data, and between the looks.
        planned = max(1, sizes[-1] // 2)
        found = always_valid(values[known], clusters, planned=planned, share=True)
    else:
        shares = [size / sizes[-1] for size in sizes]
        found = group_sequential(
            values[known], clusters, at, shares, spending=rule.sequential, share=True
        )
    once = mean_clustered(values[known], clusters)
    width = min(1.0, once.high) - max(0.0, once.low)
    return Look(sizes[at], candidate, found.estimate, found.low, found.high, width)


def _primary(data: RunData, before: Sequence[Look]) -> str:
    """The candidate looked at before, else the registered one, else the first by name."""
    plan = (data.manifest.registration or {}).get("plan", {})
    named = [look.candidate for look in before[:1]] + [plan.get("primary")]
    return next((name for name in named if name in data.candidates), data.candidates[0])


def _with_rule(manifest: Manifest, rule: Rule, looks: Sequence[Look], **more: Any) -> Manifest:  # noqa: ANN401 - any field
    return manifest.model_copy(update={"stopping": stopping(rule, looks), **more})


def _concluded(
    writer: RunWriter,
    finished: Finished,
    rule: Rule,
    looks: Sequence[Look],
    sizes: Sequence[int],
) -> Finished:
    """The report anew, now that the last look is in the manifest, and the seal on both."""
    from clash.analysis.findings import findings_of
    from clash.analysis.rundata import RunData
    from clash.pipeline.finish import write_report

    notes = [note for note in finished.manifest.notes if not note.startswith(NOTE)]
    if looks:
        notes.append(outcome(rule, looks, sizes))
    manifest = _with_rule(finished.manifest, rule, looks, notes=notes)
    data: RunData = replace(RunData.load(writer), manifest=manifest)
    found = findings_of(data)
    write_report(writer, found, data)
    return replace(finished, manifest=writer.seal(manifest), findings=found)
