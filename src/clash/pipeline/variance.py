"""Plan, price and run a crossed study of what moves a result: arms that are runs of their own."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field

from clash.analysis.rundata import RunData
from clash.analysis.serialize import to_dict
from clash.analysis.variance import StudyArm, variance_study
from clash.collect.blind import rng
from clash.collect.forecast import Forecast, price
from clash.documents import Document, validate
from clash.errors import ConfigError, IncompleteRun, InputError, RunFolderError
from clash.files import run_files
from clash.pipeline.execute import execute
from clash.pipeline.price import approve
from clash.pipeline.rerun import FUTILE, RerunOptions, plan_rerun
from clash.pipeline.sequential_run import resume_run
from clash.records import Response
from clash.store import layout
from clash.store.folder import RunFolder, check_run_id
from clash.votes.from_run import require_rankings
from clash.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from clash.analysis.variance import VarianceStudy
    from clash.pipeline.finish import RunResult
    from clash.pipeline.options import RunOptions
    from clash.pipeline.prepare import RunSetup

SUFFIX = "-variance"
"""What the name of a study's folder adds to that of its run."""
MOST_ARMS = 256


class VarianceDesign(BaseModel):
    """How often each factor is drawn; the arms are all combinations.

    Attributes:
        rubrics: rubrics by the run's own author, the one that it used among them.
        authors: other models, each of which writes one rubric for each item.
        shuffles: orders of the responses, that of the run among them.
        samples: judgments of one and the same page.
        generations: sets of responses, those of the run among them.
        items: how many items are drawn from the run; null is all.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    rubrics: int = Field(default=2, ge=1)
    authors: tuple[str, ...] = ()
    shuffles: int = Field(default=2, ge=1)
    samples: int = Field(default=2, ge=1)
    generations: int = Field(default=1, ge=1)
    items: int | None = Field(default=None, ge=1)

    def arms(self) -> list[Arm]:
        """All combinations; an arm comes after those whose parts it reuses."""
        rubrics = [(0, draw) for draw in range(self.rubrics)]
        rubrics += [(number, 0) for number, _ in enumerate(self.authors, start=1)]
        return [
            Arm(generation, author, draw, shuffle, sample)
            for generation, (author, draw), shuffle, sample in product(
                range(self.generations), rubrics, range(self.shuffles), range(self.samples)
            )
        ]


class _StudyRecord(BaseModel):
    """``variance.json``: which run is studied, and by which design."""

    model_config = ConfigDict(extra="ignore")

    v: int = 1
    run: str
    design: VarianceDesign


@dataclass(frozen=True)
class Arm:
    """A combination of levels, counted from 0, which are those of the run itself."""

    generation: int
    author: int
    rubric: int
    shuffle: int
    sample: int

    @property
    def name(self) -> str:
        """The name of its folder: ``g1-r2-s1-k2``; ``a1`` in place of ``r2`` for another author."""
        rubric = f"a{self.author}" if self.author else f"r{self.rubric + 1}"
        return f"g{self.generation + 1}-{rubric}-s{self.shuffle + 1}-k{self.sample + 1}"

    @property
    def levels(self) -> tuple[int, int, int, int]:
        """By factor, in the order of :data:`clash.analysis.variance.FACTORS`."""
        rubric = self.rubric if not self.author else -self.author
        return self.generation, self.author, rubric, self.shuffle

    @property
    def is_run(self) -> bool:
        """Whether this arm is the studied run itself."""
        return self == Arm(0, 0, 0, 0, 0)

    @property
    def rubric_source(self) -> Arm:
        """The arm whose rubric this one has."""
        return Arm(0, self.author, self.rubric, 0, 0)

    @property
    def response_source(self) -> Arm:
        """The arm whose responses this one has."""
        return Arm(self.generation, 0, 0, 0, 0)

    @property
    def seeds(self) -> dict[str, int]:
        """The seeds of its manifest."""
        return {
            "generation": self.generation,
            "author": self.author,
            "rubric": self.rubric,
            "shuffle": self.shuffle,
            "sample": self.sample,
        }


@dataclass(frozen=True)
class ArmPrice:
    """The price of an arm; null where it has been run."""

    arm: Arm
    forecast: Forecast | None


@dataclass(frozen=True)
class Study:
    """A study: its run, its folder and its design."""

    parent: RunFolder
    path: Path
    design: VarianceDesign

    def folder(self, arm: Arm) -> RunFolder:
        """The run folder of an arm, which need not exist yet."""
        return self.parent if arm.is_run else RunFolder(self.path / arm.name)

    def exists(self, arm: Arm) -> bool:
        """Whether an arm has begun."""
        return run_files.is_file(self.folder(arm).path / layout.MANIFEST)

    def is_complete(self, arm: Arm) -> bool:
        """Whether an arm has ended, with nothing missing."""
        return arm.is_run or (self.exists(arm) and self.folder(arm).manifest().status == "complete")

    @property
    def items(self) -> frozenset[str] | None:
        """The items that are judged; null is all. The same ones each time, drawn by cluster."""
        if self.design.items is None:
            return None
        clusters: dict[str, list[str]] = {}
        for item in self.parent.items():
            if not item.control:
                clusters.setdefault(item.cluster, []).append(item.item_id)
        order = sorted(clusters)
        rng(self.parent.manifest().seeds.get("seed", 0), "variance").shuffle(order)
        ids = [name for cluster in order for name in clusters[cluster]]
        return frozenset(ids[: self.design.items])


@dataclass(frozen=True)
class StudyResult:
    """The result of a study.

    Attributes:
        findings: null where fewer than two arms have verdicts.
        missing: arms that are not complete.
        cost_usd: what the arms have cost at most, the run itself not counted.
    """

    study: Study
    findings: VarianceStudy | None
    missing: tuple[str, ...]
    exit_code: int
    interrupted: str | None
    cost_usd: float

    def as_json(self) -> dict[str, Any]:
        """What ``clash variance --json`` prints."""
        return {
            "run": str(self.study.parent.path),
            "study": str(self.study.path),
            "design": self.study.design.model_dump(mode="json"),
            "missing": list(self.missing),
            "exit_code": self.exit_code,
            "cost_usd": self.cost_usd,
            **({} if self.findings is None else to_dict(self.findings)),
        }

    @property
    def shortfall(self) -> str | None:
        """How many arms are missing, and why; null where none is."""
        if not self.missing:
            return None
        reason = f" ({self.interrupted})" if self.interrupted else ""
        return f"{plural(len(self.missing), 'arm')} missing{reason}"


# -- a study and its folder -----------------------------------------------------------------------


def open_study(source: str, out: Path, changes: Mapping[str, Any], options: RunOptions) -> Study:
    """The study of a run, or the one in a folder; ``changes`` of its design that are not null.

    A study that is there is extended, never cut: an arm that has been paid for stays in it.

    Raises:
        ConfigError: a design that cannot be, or that takes away what is there.
        RunFolderError: there is no such run.
    """
    from clash.pipeline.sources import open_run

    path = next((p for p in (out / source, out.__class__(source)) if _file(p).is_file()), None)
    record = None if path is None else _read(path)
    if path is not None and record is not None:
        parent = RunFolder.open(check_run_id(record.run, f"{_file(path)}: run"), out=path.parent)
    else:
        parent = open_run(source, out, options.observer)
        path = parent.path.parent / f"{parent.path.name}{SUFFIX}"
        record = _read(path) if _file(path).is_file() else None
    require_rankings(parent.manifest(), "clash variance")
    settings = {name: value for name, value in changes.items() if value is not None}
    if record is not None:
        design = record.design.model_copy(update=settings)
        _check_extends(design, record.design)
    else:
        design = VarianceDesign(**settings)
        if "rubrics" not in settings and not _derives_criteria(parent, options):
            options.observer.note(
                "rubric: not varied, since no model writes the criteria of this run"
            )
            design = design.model_copy(update={"rubrics": 1})
    if not 2 <= len(design.arms()) <= MOST_ARMS:
        raise ConfigError(
            f"the design has {len(design.arms())} arms; 2 to {MOST_ARMS} can be run",
            field="--rubrics, --shuffles, --samples",
            hint="2 levels of each factor that matters to you",
        )
    study = Study(parent, path, design)
    _check_items(study)
    return study


def _check_items(study: Study) -> None:
    """Refuse a study in which no candidate is compared on two prompts, before it is paid for."""
    ids = study.items
    clusters = {
        item.item_id: item.cluster
        for item in study.parent.items()
        if not item.control and (ids is None or item.item_id in ids)
    }
    candidates: dict[str, set[str]] = defaultdict(set)
    for response in study.parent.records(Response):
        if response.item_id in clusters and response.text is not None:
            candidates[response.item_id].add(response.candidate)
    prompt_sets: dict[str, set[str]] = defaultdict(set)
    for item_id, names in candidates.items():
        for name in names if len(names) > 1 else ():  # one response alone is not judged
            prompt_sets[name].add(clusters[item_id])
    if max(map(len, prompt_sets.values()), default=0) < 2:
        raise ConfigError(
            "what differs between prompts takes a candidate whose responses to two of them are compared",
            field="RUN" if ids is None else "--items",
            hint="name a run of more prompts" if ids is None else "a larger number, or all",
        )


def _file(path: Path) -> Path:
    return path / "variance.json"


def _read(path: Path) -> _StudyRecord:
    file = _file(path)
    try:
        value = json.loads(run_files.read(file))
    except ValueError as error:
        raise InputError(f"is not JSON ({error})", path=file) from None
    return validate(_StudyRecord, Document(file, value), error=InputError)


def _check_extends(design: VarianceDesign, before: VarianceDesign) -> None:
    for name in ("rubrics", "shuffles", "samples", "generations"):
        if getattr(design, name) < getattr(before, name):
            raise ConfigError(
                f"the study has {getattr(before, name)} already, and arms stay in it",
                field=f"--{name}",
                hint=f"--{name} {getattr(before, name)} or more",
            )
    if design.authors[: len(before.authors)] != before.authors:
        raise ConfigError(
            f"the study has {', '.join(before.authors)} already",
            field="--author",
            hint="name these first, then the new ones",
        )
    if design.items != before.items:
        raise ConfigError(
            f"the arms of the study have {before.items or 'all'} items",
            field="--items",
            hint="leave it out, or move the study's folder away",
        )


def _derives_criteria(parent: RunFolder, options: RunOptions) -> bool:
    """Whether a model writes the criteria of a run, and can do so again."""
    is_derived = any(record.source == "dynamic" for record in parent.criteria())
    if not is_derived:
        return False
    plan = plan_rerun(parent, 0, RerunOptions(derive=True), options).setup.plan
    return plan.criteria_ref is not None


# -- the plan and its price -----------------------------------------------------------------------


def price_study(study: Study, limits: Mapping[str, Any], options: RunOptions) -> list[ArmPrice]:
    """What each arm that is not complete will cost, before any of them begins.

    Raises:
        ConfigError: an author that cannot write criteria; no candidate that could respond again.
    """
    forecasts: dict[tuple[Any, ...], Forecast] = {}
    prices = []
    for arm in study.design.arms():
        if study.is_complete(arm):
            prices.append(ArmPrice(arm, None))
            continue
        setup, kind = _draft(study, arm, limits, options)
        if kind not in forecasts:
            forecasts[kind] = price(setup().plan)
        prices.append(ArmPrice(arm, forecasts[kind]))
    return prices


def _draft(
    study: Study, arm: Arm, limits: Mapping[str, Any], options: RunOptions
) -> tuple[Any, tuple[Any, ...]]:
    """A plan like that of the arm, and what makes its price differ from that of others.

    What an earlier arm would write is not there yet, so the run's own stands in for it.
    """
    writes_rubric = arm == arm.rubric_source and not arm.is_run
    responds = arm == arm.response_source and arm.generation > 0
    kind = (writes_rubric, arm.author if writes_rubric else 0, responds)

    def plan() -> RunSetup:
        rerun = replace(
            _rerun_of(study, arm, limits),
            criteria=None if writes_rubric else study.parent,
            responses=None,
        )
        setup = plan_rerun(study.parent, 0, rerun, options).setup
        _check_author(study, arm, setup)
        return setup

    return plan, kind


def _rerun_of(study: Study, arm: Arm, limits: Mapping[str, Any]) -> RerunOptions:
    """How an arm differs from the run: what it draws again, and what it reuses from which arm."""
    writes_rubric = arm == arm.rubric_source and not arm.is_run
    responds = arm == arm.response_source and arm.generation > 0
    author = study.design.authors[arm.author - 1] if arm.author and writes_rubric else None
    return RerunOptions(
        regenerate=responds,
        shuffle=arm.shuffle,
        criteria=None if writes_rubric else study.folder(arm.rubric_source),
        derive=writes_rubric,
        author=author,
        responses=None if responds else study.folder(arm.response_source),
        seeds=arm.seeds,
        only=study.items,
        limits=limits,
        notes=(f"arm {arm.name} of the study {study.path.name}",),
    )


def _check_author(study: Study, arm: Arm, setup: RunSetup) -> None:
    if arm.author and arm == arm.rubric_source and setup.plan.criteria_ref is None:
        raise ConfigError(
            f"{study.design.authors[arm.author - 1]} cannot write criteria:"
            f" {setup.plan.criteria_why or 'no model is configured'}",
            field="--author",
            hint="set its key, or name another model",
        )


# -- running --------------------------------------------------------------------------------------


def run_study(
    study: Study, max_cost: float | None, limits: Mapping[str, Any], options: RunOptions
) -> StudyResult:
    """Run every arm that is not complete, one after the other, and split the variance.

    Args:
        study: the study.
        max_cost: US dollars for all arms together, those of earlier calls among them; null is the
            cap of the run, if it has one.
        limits: other limits of each arm, that are not null.
        options: where keys are, who is told; ``yes`` agrees to the price.

    Raises:
        ConfigError: a cap that cannot hold, or the price was not agreed to; nothing was spent.
    """
    if max_cost is None:
        max_cost = study.parent.manifest().config.get("limits", {}).get("max_cost")
    prices = price_study(study, {**limits, "max_cost": max_cost}, options)
    _agree(study, prices, {**limits, "max_cost": max_cost}, options)
    study.path.mkdir(parents=True, exist_ok=True)
    record = _StudyRecord(run=study.parent.manifest().run, design=study.design)
    run_files.replace(_file(study.path), (record.model_dump_json(indent=1) + "\n").encode())
    code, reason = 0, None
    for number, price_of_arm in enumerate(prices, start=1):
        if price_of_arm.forecast is None:
            continue
        left = None if max_cost is None else max_cost - _spending(study)
        if left is not None and left <= 0:
            code, reason = IncompleteRun.exit_code, "the budget of the study is spent"
            break
        result = _run_arm(study, price_of_arm.arm, left, limits, options)
        options.observer.note(
            f"arm {number} of {len(prices)}: {result.folder.path} ({result.manifest.status})",
            "progress",
        )
        code = max(code, result.exit_code)
        if result.exit_code in FUTILE or result.interrupted is not None:
            reason = result.interrupted
            break
    return replace(report_study(study), exit_code=code, interrupted=reason)


def _agree(
    study: Study, prices: list[ArmPrice], limits: Mapping[str, Any], options: RunOptions
) -> None:
    """Get one approval for the price of the whole design."""
    open_arms = [arm_price for arm_price in prices if arm_price.forecast is not None]
    if not open_arms:
        return
    setup, _ = _draft(study, open_arms[0].arm, limits, options)
    approve(total_forecast(prices), setup().plan, options.observer, yes=options.yes)


def total_forecast(prices: list[ArmPrice]) -> Forecast:
    """The arms together."""
    forecasts = (arm_price.forecast for arm_price in prices if arm_price.forecast is not None)
    return Forecast(tuple(line for forecast in forecasts for line in forecast.lines))


def _run_arm(
    study: Study,
    arm: Arm,
    left: float | None,
    limits: Mapping[str, Any],
    options: RunOptions,
) -> RunResult:
    """Run an arm, or continue one that was interrupted."""
    if study.exists(arm):
        folder = study.folder(arm)
        cap = None if left is None else left + RunData.load(folder).tally.bound_usd
        return resume_run(folder, options.environ, options.observer, {**limits, "max_cost": cap})
    plan = plan_rerun(study.parent, 0, _rerun_of(study, arm, {**limits, "max_cost": left}), options)
    arm_options = replace(
        options, kind="rerun", out=study.path, run_id=arm.name, origin=plan.origin, yes=True
    )
    return execute(plan.setup, arm_options)


def _spending(study: Study) -> float:
    """Dollars that the arms may have cost at most."""
    return sum(
        RunData.load(study.folder(arm)).tally.bound_usd
        for arm in study.design.arms()
        if not arm.is_run and study.exists(arm)
    )


def report_study(study: Study) -> StudyResult:
    """Split the variance over the existing arms; no call is made."""
    arms = [arm for arm in study.design.arms() if study.exists(arm)]
    missing = tuple(arm.name for arm in study.design.arms() if not study.is_complete(arm))
    study_arms = list(_study_arms(study, arms))
    cost = sum(arm.run.tally.bound_usd for arm in study_arms[1:])
    with_verdicts = [arm for arm in study_arms if any(v.ranking for v in arm.run.verdicts)]
    findings = None
    if len(with_verdicts) > 1 and with_verdicts[0] is study_arms[0]:
        findings = variance_study(with_verdicts, [author_of(study), *study.design.authors])
    return StudyResult(study, findings, missing, 3 if missing else 0, None, cost)


def _study_arms(study: Study, arms: list[Arm]) -> Iterator[StudyArm]:
    for arm in arms:
        run = RunData.load(study.folder(arm))
        ids = study.items
        yield StudyArm(arm.name, arm.levels, run if ids is None else run.only(ids))


def author_of(study: Study) -> str:
    """The model that wrote the criteria of the run, as far as its calls say."""
    for call in study.parent.call_summaries():
        if call.purpose == "criteria":
            return call.model
    return "the run's own"


def require_findings(result: StudyResult) -> VarianceStudy:
    """The findings.

    Raises:
        RunFolderError: fewer than two arms have verdicts.
    """
    if result.findings is None:
        raise RunFolderError(
            f"{result.study.path}: fewer than two arms have verdicts"
            f"\n  fix: `clash variance {result.study.path}` runs the missing ones"
        )
    return result.findings
