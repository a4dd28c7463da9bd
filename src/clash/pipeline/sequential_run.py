"""Judge prompts in batches, look after each, and stop when the interval is narrow enough.

The looks are accounted for: intervals are always valid, or alpha is spent over planned looks. The
state of the loop is in the run folder (the rule and its looks in the manifest, all prompts in
``pool.jsonl``), so that an interrupted run continues there.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from clash.errors import ConfigError
from clash.pipeline import stopping
from clash.pipeline.execute import carry_on, start
from clash.pipeline.prepare import RunSetup, assemble, create_folder, replan
from clash.pipeline.stopping import Look, StoppingRule

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clash.analysis.rundata import RunData
    from clash.collect.run import New
    from clash.pipeline.finish import RunResult
    from clash.pipeline.options import Observer, RunOptions
    from clash.records import PoolItem
    from clash.store.folder import RunFolder, RunWriter
    from clash.store.manifest import Manifest


def execute_until(setup: RunSetup, rule: StoppingRule, options: RunOptions) -> RunResult:
    """Judge prompts in a random order, in batches, until the rule is met or the prompts end.

    The price is that of all prompts, and ``--max-cost`` holds for the whole.

    Raises:
        ConfigError: the run is a shard.
    """
    if setup.plan.shard is not None:
        raise ConfigError(
            "a stopping rule looks at the whole run, which no shard has",
            field="--until",
            hint="leave out --until or --shard",
        )
    forecast = start(setup, options)
    pool, first = _pool(setup), _first_batch(setup, rule.looks, options)
    origin = replace(options.origin, stopping=stopping.as_json(rule, []), pool=pool)
    with create_folder(first, replace(options, origin=origin), forecast) as writer:
        return _judge_batches(writer, rule, [], options.environ, options.observer, {})


def resume_run(
    folder: RunFolder,
    environ: Mapping[str, str],
    observer: Observer,
    limits: Mapping[str, Any],
    *,
    cancel_batches: bool = False,
) -> RunResult:
    """Finish a run: make the calls that were never answered and apply its stopping rule.

    Args:
        folder: the run.
        environ: where keys are.
        observer: watches.
        limits: replace those of the run that are not null.
        cancel_batches: cancel the batches that a provider works at, and ask nothing more.

    Raises:
        RunFolderError: the folder lost records that cannot be made again.
    """
    with folder.write() as writer:
        if not cancel_batches and has_stopping_rule(writer.manifest()):
            return resume_until(writer, environ, observer, limits)
        plan = replan(writer, environ, observer, limits)
        new: New | None = "none" if cancel_batches else None
        return carry_on(writer, plan, environ, observer, new=new)


def has_stopping_rule(manifest: Manifest) -> bool:
    """Whether a run judges in batches until a rule is met."""
    return manifest.stopping is not None and bool(manifest.counts.get("pool"))


def resume_until(
    writer: RunWriter, environ: Mapping[str, str], observer: Observer, limits: Mapping[str, Any]
) -> RunResult:
    """Go on where the run was interrupted: same rule, same order, same primary candidate.

    A run whose last look was taken takes it again, at what is there now: answers that had failed
    may arrive this time.

    Raises:
        RunFolderError: the run was killed before all of its items were written.
    """
    record = writer.manifest().stopping or {}
    rule = stopping.parse_rule(record["rule"], record["sequential"], record["looks_planned"])
    looks = [Look.read(look) for look in record["looks"]]
    return _judge_batches(writer, rule, looks, environ, observer, limits)


def _judge_batches(
    writer: RunWriter,
    rule: StoppingRule,
    looks: list[Look],
    environ: Mapping[str, str],
    observer: Observer,
    limits: Mapping[str, Any],
) -> RunResult:
    pool = writer.pool()
    sizes = stopping.sizes_of(len({part.item.cluster for part in pool}), rule.looks)
    before, looks = looks, looks[:-1] if stopping.is_over(rule, looks, sizes) else looks
    stop_reasons: Mapping[str, str] = {}
    while True:
        _top_up(writer, pool, sizes[len(looks)])
        plan = replan(writer, environ, observer, limits)
        result = carry_on(writer, plan, environ, observer, stop_reasons=stop_reasons)
        stop_reasons = result.manifest.stopped
        if result.exit_code in (130, 4) or result.interrupted is not None:
            return _conclude(writer, result, rule, max(before, looks, key=len), sizes)
        looks = [*looks, _look(result, rule, looks, sizes)]
        observer.note(stopping.describe(looks[-1], rule), "progress")
        if stopping.is_over(rule, looks, sizes):
            return _conclude(writer, result, rule, looks, sizes)
        # Between two batches nothing is sealed: more is to come.
        open_run: dict[str, Any] = {"status": "running", "files": {}, "seal": None}
        writer.save(_with_rule(result.manifest, rule, looks, **open_run))


def _order(setup: RunSetup) -> dict[str, int]:
    """Clusters in random order, whole ones together: a part of them is then a fair sample."""
    clusters = list(dict.fromkeys(item.cluster for item in setup.prompts.items))
    rng = np.random.default_rng(setup.plan.config.seed)
    return {clusters[old]: new for new, old in enumerate(rng.permutation(len(clusters)))}


def _pool(setup: RunSetup) -> tuple[PoolItem, ...]:
    """All items that may be judged, in the order in which they are judged."""
    from clash.records import PoolItem, Response

    order = _order(setup)
    responses: dict[str, list[Response]] = {}
    for response in setup.plan.responses:
        responses.setdefault(response.item_id, []).append(response)
    return tuple(
        PoolItem(item=item, responses=responses.get(item.item_id, []))
        for item in sorted(setup.plan.items, key=lambda item: order[item.cluster])
    )


def _first_batch(setup: RunSetup, looks: int, options: RunOptions) -> RunSetup:
    """A run of only the first clusters."""
    order = _order(setup)
    size = stopping.sizes_of(len(order), looks)[0]
    items = sorted(setup.prompts.items, key=lambda item: order[item.cluster])
    prompts = replace(setup.prompts, items=tuple(items))
    count = sum(order[item.cluster] < size for item in items)
    first = prompts.first(count)
    return assemble(setup.plan.config, first, options.environ, options.observer)


def _top_up(writer: RunWriter, pool: Sequence[PoolItem], clusters: int) -> None:
    """Write the items of the first clusters that the folder does not hold yet.

    Nothing is written where the pool is not whole: :func:`~clash.pipeline.prepare.replan` says so.
    """
    manifest = writer.manifest()
    if len(pool) != manifest.counts["pool"]:
        return
    batch = set(list(dict.fromkeys(part.item.cluster for part in pool))[:clusters])
    items = {item.item_id for item in writer.items()}
    injections = {(r.item_id, r.candidate) for r in writer.responses() if r.source == "injected"}
    for part in pool:
        if part.item.cluster not in batch:
            continue
        if part.item.item_id not in items:
            items.add(part.item.item_id)
            writer.append(part.item)
        for response in part.responses:
            if (response.item_id, response.candidate) not in injections:
                injections.add((response.item_id, response.candidate))
                writer.append(response)
    counts = {**manifest.counts, "items": len(items), "injected": len(injections)}
    if counts != manifest.counts:
        writer.save(manifest.model_copy(update={"counts": counts, "files": {}, "seal": None}))


def _look(
    result: RunResult, rule: StoppingRule, looks: Sequence[Look], sizes: Sequence[int]
) -> Look:
    """The interval of the primary candidate's share of points, after the batches so far."""
    from clash.analysis.leaderboard import points_table
    from clash.analysis.rundata import RunData
    from clash.stats.intervals import mean_clustered
    from clash.stats.sequential import always_valid, group_sequential

    run, number = RunData.load(result.folder), len(looks)
    candidate = _primary(run, looks)
    points = points_table(run)[:, run.candidates.index(candidate)]
    is_judged = ~np.isnan(points)
    points = points[is_judged]
    clusters = np.array([run.clusters[item.item_id] for item in run.items])[is_judged]
    if rule.sequential == "always-valid":
        # The sequence is tightest at half of the prompts: fixed before the data.
        planned_size = max(1, sizes[-1] // 2)
        interval = always_valid(points, clusters, n_planned=planned_size, share=True)
    else:
        shares = [size / sizes[-1] for size in sizes]
        interval = group_sequential(
            points, clusters, number, shares, spending=rule.sequential, share=True
        )
    once = mean_clustered(points, clusters)
    width = min(1.0, once.high) - max(0.0, once.low)
    return Look(sizes[number], candidate, interval.estimate, interval.low, interval.high, width)


def _primary(run: RunData, looks: Sequence[Look]) -> str:
    """The candidate of the looks before, else the registered one, else the first by name."""
    plan = (run.manifest.registration or {}).get("plan", {})
    names = [look.candidate for look in looks[:1]] + [plan.get("primary")]
    return next((name for name in names if name in run.candidates), run.candidates[0])


def _with_rule(
    manifest: Manifest,
    rule: StoppingRule,
    looks: Sequence[Look],
    **more: Any,  # noqa: ANN401 - any field
) -> Manifest:
    return manifest.model_copy(update={"stopping": stopping.as_json(rule, looks), **more})


def _conclude(
    writer: RunWriter,
    result: RunResult,
    rule: StoppingRule,
    looks: Sequence[Look],
    sizes: Sequence[int],
) -> RunResult:
    """Write the report again, now that the last look is in the manifest, and seal both."""
    from clash.analysis.findings import compute_findings
    from clash.analysis.rundata import RunData
    from clash.pipeline.finish import write_report

    notes = [note for note in result.manifest.notes if not note.startswith(stopping.NOTE)]
    if looks:
        notes.append(stopping.outcome(rule, looks, sizes))
    manifest = _with_rule(result.manifest, rule, looks, notes=notes)
    run: RunData = replace(RunData.load(writer), manifest=manifest)
    findings = compute_findings(run)
    write_report(writer, findings, run)
    return replace(result, manifest=writer.seal(manifest), findings=findings)
