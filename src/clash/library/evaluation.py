"""Runs by function calls: evaluate, validate, rerun, variance, favouritism, resume, merge, load."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from clash.errors import ConfigError
from clash.library.arguments import (
    EvaluateArguments,
    ProgressCallback,
    RerunArguments,
    ResumeArguments,
    ValidateArguments,
    VarianceArguments,
    refuse_unknown,
)
from clash.library.background import LibraryObserver, LibraryWork
from clash.library.notebook_inputs import Callables, as_file, run_path
from clash.library.results import Result, Run
from clash.pipeline.options import RunOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable
    from contextlib import AbstractContextManager

    from clash.analysis.favouritism import Favouritism
    from clash.analysis.retest import Retest
    from clash.analysis.variance import VarianceStudy
    from clash.config import Config
    from clash.datasets.sampling import Stratum
    from clash.library.notebook_inputs import Candidates, PanelSpec, Prompts
    from clash.pipeline.finish import RunResult
    from clash.pipeline.validation import RuleSet
    from clash.store.folder import RunFolder

T = TypeVar("T")


def evaluate(
    prompts: Prompts = None,
    candidates: Candidates = None,
    panel: PanelSpec = None,
    **arguments: Unpack[EvaluateArguments],
) -> Run:
    """Judge candidates on your prompts: generate or inject responses, blind, judge, aggregate.

    Args:
        prompts: a path, a list of texts or dicts (the keys of a prompts file), or a data frame
            with these columns; a column ``response:NAME`` injects the responses of NAME. Null
            takes those of ``replay``, or of ``config``.
        candidates: the models under evaluation: a list of ``provider/model``, or a dict of name to
            ``provider/model``, dict or Python function (``f(prompt) -> str``, sync or async).
            Null where all responses are injected.
        panel: the judges: the name or path of a panel, a dict, or a list of judges; a judge may
            be a Python function (``j(prompt, responses) -> label``).
        **arguments: the arguments below, all by keyword.

    Keyword Arguments:
        max_cost: a hard cap in US dollars.
        seed: seed of every random choice; 42.
        out: the folder that runs land in; ``runs``.
        run_id: the name of the run folder; derived from time where null.
        limit: judge only the first items.
        shard: judge only a part, ``"2/4"`` for the second of four; :func:`merge` joins them.
        method: how judgments become verdicts: ``borda`` (the default), ``majority``, ``weighted``,
            ``dawid-skene``, ``ising-shared``, ``ising-class``, ``factor``, ``auto`` or
            ``bradley-terry``.
        min_confidence: a winner below this confidence, 0 to 1, is left for review: no verdict.
        criteria: ``dynamic``, ``fixed`` or ``none``.
        criteria_from: a run whose criteria are used again.
        judging: what the judges are asked, as in ``clash.yaml``: to rank, or of each text by itself a
            label (``{"mode": "label", "labels": […]}``) or a score (``{"mode": "score"}``).
        both_orders: each judge sees both orders of a pair.
        per_judge: a shuffle of its own for each judge.
        observers: judges that are recorded and never counted; [] for none.
        repeat: how often each item is generated and judged.
        concurrency: most calls in flight.
        allow_unknown_price: call models that have no price, which no cap can count.
        exclude_self: a voting judge that is a candidate does not judge its own responses.
        calibrator: a file of :func:`calibrate`; ``max_risk`` the share of wrong verdicts to allow,
            on average or with ``risk_confidence``.
        until: judge in batches until a rule such as ``"ci<0.1"`` holds.
        sequential: how looking several times is paid for: ``always-valid``, ``obrien-fleming`` or
            ``pocock``.
        looks: how often ``until`` looks; 5.
        config: a ``clash.yaml`` to start from; none is read by itself.
        settings: further settings by dotted name, as ``{"limits.timeout_s": 30}``.
        env: the environment that holds the keys, and all of it; where null, that of the process
            and the keys of ``.env`` in the working folder.
        replay: a run whose calls answer instead of the network.
        progress: called as ``progress(stage, done, total, cost_usd)``, from another thread; an
            exception of it ends the run, which can be resumed, and is raised.

    Returns:
        The run. Failed calls are records in it, and ``run.exit_code`` says what the command
        line would: 3 incomplete, 4 refused by a provider.

    Raises:
        ClashError: prompts, candidates or settings are wrong, or a key is missing; nothing has
            been spent then.
        KeyboardInterrupt: the caller was interrupted; the folder can be resumed.
    """
    return _evaluation(prompts, candidates, panel, **arguments).blocking()  # type: ignore[no-any-return]


async def evaluate_async(
    prompts: Prompts = None,
    candidates: Candidates = None,
    panel: PanelSpec = None,
    **arguments: Unpack[EvaluateArguments],
) -> Run:
    """As :func:`evaluate`, awaited. Async candidates and judges run in the caller's event loop."""
    import asyncio

    work = _evaluation(
        prompts, candidates, panel, home_loop=asyncio.get_running_loop(), **arguments
    )
    return await work.wait_async()  # type: ignore[no-any-return]


def _evaluation(
    prompts: Prompts,
    candidates: Candidates,
    panel: PanelSpec = None,
    *,
    limit: int | None = None,
    shard: str | None = None,
    replay: str | Path | Run | None = None,
    until: str | None = None,
    sequential: str = "always-valid",
    looks: int = 5,
    env: Mapping[str, str] | None = None,
    progress: ProgressCallback | None = None,
    home_loop: Any = None,  # noqa: ANN401 - an event loop
    run_id: str | None = None,
    **arguments: Any,  # noqa: ANN401 - settings
) -> LibraryWork:
    refuse_unknown(arguments, EvaluateArguments.__annotations__)
    observer = LibraryObserver(progress)

    def work() -> Run:
        from clash.pipeline.execute import execute
        from clash.pipeline.options import Origin
        from clash.pipeline.prepare import prepare
        from clash.pipeline.sequential_run import execute_until
        from clash.pipeline.sources import open_run
        from clash.pipeline.stopping import check_controls, parse_rule

        _check_count("limit", limit)
        _check_count("looks", looks)
        models = Callables()
        config = _config(models, candidates, panel, **arguments)
        options = RunOptions(_environ(env), observer, run_id=run_id, yes=True)
        with ExitStack() as stack:
            stack.enter_context(_register(models, home_loop))
            path = None
            if prompts is not None:
                path = stack.enter_context(as_file(prompts, "prompts.jsonl"))
            earlier = None
            if replay is not None:
                earlier = open_run(run_path(replay), Path(config.out), observer)
            run_plan = prepare(
                config, options.environ, observer, prompts=path, limit=limit, replay=earlier
            )
            run_plan = run_plan if shard is None else run_plan.cut(shard)
            # A replay of a run's own prompts is held against the same people as the run.
            labels = tuple(earlier.labels()) if earlier is not None and prompts is None else ()
            options = replace(options, origin=Origin(labels=labels))
            if until is None:
                return _run(execute(run_plan, options), observer)
            check_controls(run_plan.plan.config)
            rule = parse_rule(until, sequential, looks)
            return _run(execute_until(run_plan, rule, options), observer)

    return LibraryWork(work, observer)


def validate(
    dataset: str | Path, panel: PanelSpec = None, **arguments: Unpack[ValidateArguments]
) -> Run:
    """Hold a panel against people: judge labelled pairs blind.

    Args:
        dataset: ``mt-bench``, ``arena`` or another name of ``clash datasets list``, or a file.
        panel: as for :func:`evaluate`.
        **arguments: the arguments below and those of :func:`evaluate`, all by keyword.

    Keyword Arguments:
        n: how many items to draw; all where null.
        sample_seed: seed of the draw.
        rules: ``paper``, ``clear`` or ``all``: which items may be drawn.
        stratify: draw in proportion to ``winner``, ``tier`` or ``tag``.
        keep_repeats: judge pairs again that repeat another one, prompt and responses alike.
        cache: the folder of downloaded data sets.
        tiers: a YAML file of tier, rating and family by candidate.

    Returns:
        The run; ``run.concordance`` is the agreement with people.

    Raises:
        ClashError: the data set holds no label, or a setting is wrong.
    """
    return _validation(dataset, panel, **arguments).blocking()  # type: ignore[no-any-return]


async def validate_async(
    dataset: str | Path, panel: PanelSpec = None, **arguments: Unpack[ValidateArguments]
) -> Run:
    """As :func:`validate`, awaited."""
    return await _validation(dataset, panel, **arguments).wait_async()  # type: ignore[no-any-return]


def _validation(
    dataset: str | Path,
    panel: PanelSpec = None,
    *,
    n: int | None = None,
    sample_seed: int = 42,
    rules: RuleSet | None = None,
    stratify: Stratum | None = None,
    keep_repeats: bool = False,
    cache: Path | None = None,
    tiers: Path | None = None,
    env: Mapping[str, str] | None = None,
    progress: ProgressCallback | None = None,
    run_id: str | None = None,
    replay: str | Path | Run | None = None,
    **arguments: Any,  # noqa: ANN401 - settings
) -> LibraryWork:
    refuse_unknown(arguments, ValidateArguments.__annotations__)
    observer = LibraryObserver(progress)

    def work() -> Run:
        from clash.pipeline.execute import execute
        from clash.pipeline.prepare import assemble, injected_only
        from clash.pipeline.sources import open_run
        from clash.pipeline.validation import Draw, draw_labelled, sample_origin, sample_prompts

        _check_count("n", n)
        models = Callables()
        config = injected_only(_config(models, None, panel, **arguments))
        draw = Draw(
            n,
            sample_seed,
            rules,
            stratify,
            cache,
            keep_repeats,
            single=config.judging.is_single,
        )
        dataset_sample = draw_labelled(str(dataset), draw)
        earlier = None
        if replay is not None:
            earlier = open_run(run_path(replay), Path(config.out), observer)
        options = RunOptions(
            _environ(env),
            observer,
            kind="validate",
            run_id=run_id,
            origin=sample_origin(dataset_sample, tiers),
            yes=True,
        )
        with _register(models, None):
            run_plan = assemble(
                config, sample_prompts(dataset_sample), options.environ, observer, replay=earlier
            )
            return _run(execute(run_plan, options), observer)

    return LibraryWork(work, observer)


def rerun(
    run: str | Path | Run, times: int = 1, **arguments: Unpack[RerunArguments]
) -> Result[Retest]:
    """Judge the items of a run again with fresh seeds: how far does the panel repeat itself?

    Args:
        run: the run.
        times: how many reruns.
        **arguments: the arguments below, all by keyword.

    Keyword Arguments:
        regenerate: ask the candidates for fresh responses too.
        keep: what stays as it is: ``criteria``, ``shuffle``; the rest is drawn anew.
        only: judge these items alone, by id.
        panel: the panel that judges, for runs of other tools.
        max_cost: a hard cap in US dollars for each rerun.
        concurrency: most calls in flight.
        functions: Python functions of the run by name, where it has some.
        out: the folder that run ids are looked up in.
        env: the environment that holds the keys.
        progress: as for :func:`evaluate`.

    Returns:
        The test-retest findings over the run and all of its reruns.

    Raises:
        ClashError: there is nothing to judge again.
    """
    return _rerunning(run, times, **arguments).blocking()  # type: ignore[no-any-return]


async def rerun_async(
    run: str | Path | Run, times: int = 1, **arguments: Unpack[RerunArguments]
) -> Result[Retest]:
    """As :func:`rerun`, awaited."""
    return await _rerunning(run, times, **arguments).wait_async()  # type: ignore[no-any-return]


def _rerunning(
    run: str | Path | Run,
    times: int,
    *,
    regenerate: bool = False,
    keep: Collection[str] = (),
    only: Collection[str] | None = None,
    panel: str | None = None,
    **arguments: Unpack[ResumeArguments],
) -> LibraryWork:
    refuse_unknown(arguments, RerunArguments.__annotations__)

    def judge_again(parent: OpenRun) -> Result[Retest]:
        from clash.library.statistics import retest_result
        from clash.pipeline.rerun import RerunOptions, execute_reruns, keeping, reruns

        _check_count("times", times)
        changes = RerunOptions(
            regenerate=regenerate,
            only=None if only is None else set(only),
            panel=panel,
            limits=parent.limits,
        )
        changes = keeping(parent.folder, keep, changes)
        execute_reruns(parent.folder, times, changes, parent.options)
        runs = [parent.folder, *reruns(parent.folder)]
        return retest_result(runs, tuple(parent.observer.notes))

    return _work_on_run(run, judge_again, **arguments)


def variance(
    run: str | Path | Run, **arguments: Unpack[VarianceArguments]
) -> Result[VarianceStudy]:
    """What moves the result of a run: prompts, criteria, shuffle, responses, the judges' own noise.

    Judges the items again in every combination. The study stands beside the run; the same call goes
    on with it, and nothing is paid twice.

    Args:
        run: the run.
        **arguments: the arguments below, all by keyword.

    Keyword Arguments:
        rubrics: rubrics by the run's own author, the first its own; 2.
        authors: other models that write criteria, ``provider/model``.
        shuffles: orders of the responses; 2.
        samples: judgments of one and the same page; 2.
        generations: sets of responses, the first the run's; 1.
        items: only so many of the items, drawn.
        max_cost: US dollars for all arms together; by default the cap of the run.
        allow_unknown_price: call models whose price is unknown.
        concurrency: most calls in flight.
        functions: Python functions of the run by name, where it has some.
        out: the folder that run ids are looked up in.
        env: the environment that holds the keys.
        progress: as for :func:`evaluate`.

    Returns:
        The split of the variance; ``warnings`` says which arms are missing, and why.

    Raises:
        ClashError: the design does not fit the run, or fewer than two arms have verdicts.
    """
    return _studying(run, **arguments).blocking()  # type: ignore[no-any-return]


def _studying(
    run: str | Path | Run,
    *,
    rubrics: int | None = None,
    authors: Collection[str] = (),
    shuffles: int | None = None,
    samples: int | None = None,
    generations: int | None = None,
    items: int | None = None,
    allow_unknown_price: bool = False,
    **arguments: Unpack[ResumeArguments],
) -> LibraryWork:
    refuse_unknown(arguments, VarianceArguments.__annotations__)
    design = {
        "rubrics": rubrics,
        "authors": tuple(authors) or None,
        "shuffles": shuffles,
        "samples": samples,
        "generations": generations,
        "items": items,
    }

    def study_run(parent: OpenRun) -> Result[VarianceStudy]:
        from clash.pipeline.variance import open_study, require_findings, run_study
        from clash.report import variance as report

        path, limits = parent.folder.path, parent.limits
        study = open_study(str(path), path.parent, design, parent.options)
        prices = {"allow_unknown_price": allow_unknown_price or None}
        result = run_study(study, limits["max_cost"], {**limits, **prices}, parent.options)
        findings = require_findings(result)
        headlines = (report.headline(findings), *report.evidence(findings))
        warnings = (*parent.observer.notes, *([result.shortfall] if result.shortfall else []))
        tables = tuple(report.tables(findings))
        return Result(findings, tables, headlines, warnings, result.as_json())

    return _work_on_run(run, study_run, **arguments)


def favouritism(run: str | Path | Run, **arguments: Unpack[ResumeArguments]) -> Result[Favouritism]:
    """Whether judges favour their own family when they are told who wrote what.

    Judges the pages of a blind run once more with the names on them, and compares the two. The same
    call goes on with a second run that stopped.

    Args:
        run: the blind run.
        **arguments: the arguments below, all by keyword.

    Keyword Arguments:
        max_cost: a hard cap in US dollars.
        concurrency: most calls in flight.
        functions: Python functions of the run by name, where it has some.
        out: the folder that run ids are looked up in.
        env: the environment that holds the keys.
        progress: as for :func:`evaluate`.

    Returns:
        How judges treat their own in both; ``warnings`` says where the second run is not complete.

    Raises:
        ClashError: no judge has its own among the candidates, or the run is not blind.
    """
    refuse_unknown(arguments, ResumeArguments.__annotations__)

    def tell_names(parent: OpenRun) -> Result[Favouritism]:
        from clash.pipeline.favouritism import compare_arms, run_unblinded
        from clash.report import favouritism as report

        unblinded_run = run_unblinded(parent.folder, parent.limits, parent.options)
        arms = compare_arms(parent.folder, unblinded_run)
        findings = arms.findings
        headlines = (report.headline(findings), *report.evidence(findings))
        incomplete = ["the unblinded arm is not complete"] if arms.exit_code else []
        warnings = (*parent.observer.notes, *incomplete)
        return Result(findings, tuple(report.tables(findings)), headlines, warnings, arms.as_json())

    return _work_on_run(run, tell_names, **arguments).blocking()  # type: ignore[no-any-return]


@dataclass(frozen=True)
class OpenRun:
    """A run that exists, and what a call brings to go on with it.

    Attributes:
        options: the keys, who hears of the run, and that its price is agreed to.
        observer: the observer of the options.
        limits: new limits by name; null keeps that of the run.
    """

    folder: RunFolder
    options: RunOptions
    observer: LibraryObserver
    limits: Mapping[str, Any]


def _work_on_run(
    run: str | Path | Run,
    action: Callable[[OpenRun], Any],
    *,
    max_cost: float | None = None,
    concurrency: int | None = None,
    functions: Mapping[str, Callable[..., Any]] | None = None,
    out: str | Path = "runs",
    env: Mapping[str, str] | None = None,
    progress: ProgressCallback | None = None,
) -> LibraryWork:
    """What is done with a run that exists."""
    observer = LibraryObserver(progress)

    def work() -> object:
        from clash.pipeline.sources import open_run

        folder = open_run(run_path(run), Path(out), observer)
        limits = {"max_cost": max_cost, "concurrency": concurrency}
        with _register(Callables(dict(functions or {})), None):
            options = RunOptions(_environ(env), observer, yes=True)
            return action(OpenRun(folder, options, observer, limits))

    return LibraryWork(work, observer)


def resume(run: str | Path | Run, **arguments: Unpack[ResumeArguments]) -> Run:
    """Finish an interrupted run; nothing that was answered is asked or paid for again.

    Args:
        run: the run.
        **arguments: the arguments below, all by keyword.

    Keyword Arguments:
        max_cost: a new cap in US dollars, on the whole run.
        concurrency: most calls in flight.
        functions: Python functions of the run by name, where it has some.
        out: the folder that run ids are looked up in.
        env: the environment that holds the keys.
        progress: as for :func:`evaluate`.

    Raises:
        RunFolderError: there is no such run, or it lost records that cannot be made again.
    """
    return _resumption(run, **arguments).blocking()  # type: ignore[no-any-return]


async def resume_async(run: str | Path | Run, **arguments: Unpack[ResumeArguments]) -> Run:
    """As :func:`resume`, awaited."""
    return await _resumption(run, **arguments).wait_async()  # type: ignore[no-any-return]


def _resumption(run: str | Path | Run, **arguments: Unpack[ResumeArguments]) -> LibraryWork:
    refuse_unknown(arguments, ResumeArguments.__annotations__)

    def finish(run: OpenRun) -> Run:
        from clash.pipeline.sequential_run import resume_run

        observer = run.observer
        return _run(resume_run(run.folder, run.options.environ, observer, run.limits), observer)

    return _work_on_run(run, finish, **arguments)


def merge(
    shards: Iterable[str | Path | Run],
    *,
    out: str | Path = "runs",
    run_id: str | None = None,
    env: Mapping[str, str] | None = None,
) -> Run:
    """Join the shards of a run (``clash eval --shard 1/4``) into the folder of the whole run.

    Args:
        shards: every shard, as a path, an id, or a run.
        out: the folder of the runs.
        run_id: name of the new run folder; null derives one from prompts and time.
        env: the environment whose secrets are searched for in what is written.

    Raises:
        RunFolderError: a shard is missing, given twice, of another run, or not finished.
        AuditFailed: a shard was changed after it was sealed.
    """
    from clash.pipeline import merge as shard_merge
    from clash.pipeline.sources import open_run

    observer = LibraryObserver()
    folders = [open_run(run_path(shard), Path(out), observer) for shard in shards]
    result = shard_merge.merge(folders, _environ(env), observer, out=Path(out), run_id=run_id)
    return _run(result, observer)


def load(run: str | Path | Run, *, out: str | Path = "runs") -> Run:
    """Open a run; nothing is called or written.

    Args:
        run: the path of its folder, its id, ``"latest"``, or a run, to read its folder again.
        out: the folder that ids are looked up in.

    Raises:
        RunFolderError: there is no such run.
    """
    from clash.pipeline.sources import open_run

    observer = LibraryObserver()
    folder = open_run(run_path(run), Path(out), observer)
    return Run(folder, warnings=observer.notes)


def _run(result: RunResult, observer: LibraryObserver) -> Run:
    from clash.pipeline.finish import summary

    run = Run(
        result.folder,
        exit_code=result.exit_code,
        summary=summary(result),
        warnings=(*observer.notes, *result.swaps),
    )
    run.__dict__["findings"] = result.findings
    return run


def _environ(env: Mapping[str, str] | None) -> Mapping[str, str]:
    from clash.collect.resolve import load_environ
    from clash.secrets.destinations import Environ, read_confirmed, trusted_hosts

    if env is None:
        return load_environ(os.environ, None)
    return Environ(env, destinations=read_confirmed(), hosts=trusted_hosts(env))


def _register(models: Callables, home_loop: Any) -> AbstractContextManager[Any]:  # noqa: ANN401
    if not models.functions:
        return nullcontext()
    from clash.providers import python_callable

    return python_callable.registration(models.functions, home_loop=home_loop)


_SETTINGS = {
    "method": "aggregate.method",
    "min_confidence": "aggregate.min_confidence",
    "calibrator": "aggregate.calibrator",
    "max_risk": "aggregate.max_risk",
    "risk_confidence": "aggregate.risk_confidence",
    "max_cost": "limits.max_cost",
    "concurrency": "limits.concurrency",
    "allow_unknown_price": "limits.allow_unknown_price",
    "criteria": "criteria.mode",
    "criteria_from": "criteria.reuse",
    "judging": "judging",
    "both_orders": "blinding.both_orders",
    "per_judge": "blinding.per_judge",
    "observers": "observers",
    "exclude_self": "exclude_self",
    "repeat": "repeat",
    "seed": "seed",
    "out": "out",
}
"""Arguments of :func:`evaluate` by the settings of ``clash.yaml`` that they are."""


def _config(
    models: Callables,
    candidates: Candidates,
    panel: PanelSpec,
    *,
    config: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
    **arguments: Any,  # noqa: ANN401 - settings
) -> Config:
    """The configuration that the arguments of a call stand for.

    Raises:
        ConfigError: a setting is wrong.
    """
    from clash.collect.resolve import read_config

    paths = ("out", "calibrator", "criteria_from")
    values = {
        _SETTINGS[name]: str(value) if name in paths and value is not None else value
        for name, value in arguments.items()
    }
    values |= {"candidates": models.candidates(candidates), "panel": models.panel(panel)}
    if isinstance(observers := values.get("observers"), list | tuple):
        values["observers"] = models.candidates(observers)
    if _are_functions(panel) and values.get("criteria.mode") is None:
        values["criteria.mode"] = "none"  # a function ranks, and scores no criteria
    if not isinstance(settings, Mapping | None):
        raise ConfigError(
            f"is not a dict: {settings!r:.60}",
            field="settings",
            hint='settings by dotted name, as {"limits.timeout_s": 30}',
        )
    values |= settings or {}
    return read_config(None if config is None else Path(config), values, ignore_file=config is None)


def _check_count(name: str, count: int | None) -> None:
    if count is not None and count < 1:
        raise ConfigError(f"is not a number of at least 1: {count!r}", field=name)


def _are_functions(panel: PanelSpec) -> bool:
    """Whether all judges are Python functions."""
    return callable(panel) or (
        isinstance(panel, list | tuple) and bool(panel) and all(map(callable, panel))
    )


__all__ = [
    "evaluate", "evaluate_async", "load", "rerun", "rerun_async", "resume", "resume_async",
    "validate", "validate_async",
]  # fmt: skip
