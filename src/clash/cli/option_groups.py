"""Options that belong together: one parameter of a command stands for several options.

`grouped` makes a command of a function such as ``def demo(*, run_id: RunId = None, output: Output)``:
the fields of ``Output`` become ``--json``, ``--quiet`` and ``--verbose``, where ``output`` stands.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

from clash.cli.options import (
    AsJson,
    Batch,
    BothOrders,
    Compress,
    Concurrency,
    CriteriaFrom,
    CriteriaMode,
    EnvFile,
    Judges,
    Labels,
    MaxCost,
    Method,
    Metrics,
    MinConfidence,
    Otel,
    OutOrConfig,
    PanelName,
    PerJudge,
    Presentation,
    QuestionOption,
    Quiet,
    Ray,
    RaySendKeys,
    RunConcurrency,
    RunId,
    Scale,
    Subset,
    TrustHost,
    UnknownPrice,
    Verbose,
    Watch,
    Workers,
    ray_cluster,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from clash.cli.watch import RunObserver
    from clash.config import RayCluster
    from clash.pipeline.sources import VoteSelection
    from clash.secrets.destinations import Environ
    from clash.store.folder import RunFolder


class OptionGroup:
    """Options that a command takes as one parameter; a subclass is a dataclass of them."""


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """The command as Typer reads it: each group of options replaced by its options, in place."""
    hints = get_type_hints(command, include_extras=True)
    groups = {
        name: hint
        for name, hint in hints.items()
        if isinstance(hint, type) and issubclass(hint, OptionGroup)
    }

    @wraps(command)
    def expanded(**values: Any) -> None:  # noqa: ANN401 - whatever the options hold
        for name, group in groups.items():
            names = (parameter.name for parameter in _options(group))
            values[name] = group(**{option: values.pop(option) for option in names})
        command(**values)

    parameters = [
        option
        for name, parameter in signature(command).parameters.items()
        for option in (
            _options(groups[name])
            if name in groups
            else [parameter.replace(annotation=hints[name], kind=Parameter.KEYWORD_ONLY)]
        )
    ]
    expanded.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    expanded.__annotations__ = {option.name: option.annotation for option in parameters}
    return expanded


def _options(group: type) -> Iterator[Parameter]:
    hints = get_type_hints(group, include_extras=True)
    for option in fields(group):
        yield Parameter(
            option.name,
            Parameter.KEYWORD_ONLY,
            default=option.default,
            annotation=hints[option.name],
        )


@dataclass(frozen=True)
class Output(OptionGroup):
    """How much is printed, and in which form."""

    as_json: AsJson = False
    quiet: Quiet = False
    verbose: Verbose = False

    @property
    def is_silent(self) -> bool:
        """Whether progress and details are left out."""
        return self.quiet or self.as_json


@dataclass(frozen=True)
class Access(OptionGroup):
    """Which keys there are, and which servers they may be sent to."""

    env_file: EnvFile = None
    trust_host: TrustHost = None

    def environ(self) -> Environ:
        """The process's environment with the keys of ``.env``, and where keys may go."""
        from clash.cli.common import environment

        return environment(self.env_file, self.trust_host)


@dataclass(frozen=True)
class Monitoring(OptionGroup):
    """Who else hears of a run while it goes on."""

    watch: Watch = False
    otel: Otel = False
    metrics: Metrics = None

    def observer(self, output: Output) -> RunObserver:
        """The terminal as observer, and whoever else was asked for."""
        from clash.cli.watch import RunObserver

        return RunObserver(
            quiet=output.is_silent, watch=self.watch, otel=self.otel, metrics=self.metrics
        )


@dataclass(frozen=True)
class RepeatCalls(OptionGroup):
    """How the calls of a command that repeats or resumes a run are made."""

    concurrency: RunConcurrency = None
    workers: Workers = None
    ray: Ray = None
    ray_send_keys: RaySendKeys = False
    batch: Batch = None

    def cluster(self) -> RayCluster | None:
        """The Ray cluster that makes them; null for this machine."""
        return ray_cluster(self.ray, send_keys=self.ray_send_keys)

    def limits(self) -> dict[str, Any]:
        """What changes of the run's ``limits``; null keeps the run's own."""
        return {
            "concurrency": self.concurrency,
            "workers": self.workers,
            "ray": self.cluster(),
            "batch": self.batch,
        }


@dataclass(frozen=True)
class NewRun(OptionGroup):
    """Who decides a new run, and where it lands."""

    panel: PanelName = None
    out: OutOrConfig = None
    run_id: RunId = None
    method: Method = None
    min_confidence: MinConfidence = None

    def settings(self) -> dict[str, object]:
        """By dotted name, as a configuration has them; null where the configuration decides."""
        return {
            "panel": self.panel,
            "out": None if self.out is None else str(self.out),
            "aggregate.method": self.method,
            "aggregate.min_confidence": self.min_confidence,
        }

    def open_replay(self, replay: str | None, observer: RunObserver) -> RunFolder | None:
        """The run whose recorded calls answer; null where none is named."""
        from clash.pipeline.sources import open_run

        return open_run(replay, self.out or Path("runs"), observer) if replay else None


@dataclass(frozen=True)
class NewJudgments(OptionGroup):
    """What a new run may spend, how it calls models, and what it asks the judges."""

    max_cost: MaxCost = None
    allow_unknown_price: UnknownPrice = False
    concurrency: Concurrency = None
    workers: Workers = None
    ray: Ray = None
    ray_send_keys: RaySendKeys = False
    compress: Compress = False
    batch: Batch = None
    criteria: CriteriaMode = None
    criteria_from: CriteriaFrom = None
    text_labels: Labels = None
    scale: Scale = None
    question: QuestionOption = None
    both_orders: BothOrders = None
    per_judge: PerJudge = None

    def cluster(self) -> RayCluster | None:
        """The Ray cluster that makes the calls; null for this machine."""
        return ray_cluster(self.ray, send_keys=self.ray_send_keys)

    def settings(self) -> dict[str, object]:
        """By dotted name, as a configuration has them; null where the configuration decides."""
        return {
            "limits.max_cost": self.max_cost,
            "limits.allow_unknown_price": self.allow_unknown_price or None,
            "limits.concurrency": self.concurrency,
            "limits.workers": self.workers,
            "limits.ray": self.cluster(),
            "compress": "zstd" if self.compress else None,
            "limits.batch": self.batch,
            "criteria.mode": self.criteria,
            "criteria.reuse": self.criteria_from,
            **self._question(),
            "blinding.both_orders": self.both_orders,
            "blinding.per_judge": self.per_judge,
        }

    def _question(self) -> dict[str, object]:
        """What the judges are asked.

        Raises:
            ConfigError: labels and a scale.
        """
        if self.text_labels is not None and self.scale is not None:
            from clash.errors import ConfigError

            raise ConfigError(
                "a text gets a label or a score", field="--scale", hint="leave one out"
            )
        labels, scale = self.text_labels, self.scale
        mode = "label" if labels is not None else "score" if scale is not None else None
        return {
            "judging.mode": mode,
            "judging.labels": None if labels is None else [n.strip() for n in labels.split(",")],
            "judging.scale": scale,
            "judging.question": self.question,
        }


@dataclass(frozen=True)
class VoteFilter(OptionGroup):
    """Which votes of a file or run are read."""

    judges: Judges = None
    subset: Subset = None
    presentation: Presentation = None

    def select(
        self,
        source: str,
        runs: Path,
        *more: str,
        decisive: bool = False,
        use_labels: bool = True,
    ) -> VoteSelection:
        """These votes of a source; of ``more`` runs too, which are read with the first as one."""
        from clash.cli.observer import TerminalObserver
        from clash.pipeline.sources import VoteSelection

        return VoteSelection(
            source,
            runs,
            self.judges,
            self.subset,
            self.presentation,
            decisive,
            use_labels,
            TerminalObserver(quiet=False),
            more,
        )
