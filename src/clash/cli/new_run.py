"""The options of commands that make a new run, and what these commands do alike."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clash.cli.option_groups import OptionGroup
from clash.cli.options import (
    Batch,
    Compress,
    DryRun,
    MaxCost,
    Method,
    MinConfidence,
    PanelName,
    Prereg,
    Ray,
    RaySendKeys,
    RunId,
    UnknownPrice,
    Workers,
    Yes,
    ray_cluster,
)
from clash.errors import ConfigError

if TYPE_CHECKING:
    from clash.cli.options import Output
    from clash.cli.watch import RunObserver
    from clash.config import RayCluster
    from clash.pipeline.options import RunOptions
    from clash.pipeline.prepare import RunSetup
    from clash.pipeline.stopping import StoppingRule
    from clash.store.folder import RunFolder


@dataclass(frozen=True)
class NewRun(OptionGroup):
    """Who decides a new run, and where it lands."""

    panel: PanelName = None
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", envvar="CLASH_OUT", help="Folder for run folders."),
    ] = None
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
    concurrency: Annotated[
        int | None,
        typer.Option(
            "--concurrency",
            "-j",
            envvar="CLASH_CONCURRENCY",
            min=1,
            help="Maximum number of concurrent calls.",
        ),
    ] = None
    workers: Workers = None
    ray: Ray = None
    ray_send_keys: RaySendKeys = False
    compress: Compress = False
    batch: Batch = None
    criteria: Annotated[str | None, typer.Option("--criteria", help="dynamic, fixed or none.")] = (
        None
    )
    criteria_from: Annotated[
        str | None, typer.Option("--criteria-from", help="Reuse the criteria of this run.")
    ] = None
    text_labels: Annotated[
        str | None,
        typer.Option(
            "--labels",
            metavar="A,B,…",
            help="Judge each text by itself: which of these labels fits?",
        ),
    ] = None
    scale: Annotated[
        str | None,
        typer.Option(
            "--scale", metavar="LOW-HIGH", help="Judge each text by itself: a score, such as 1-5."
        ),
    ] = None
    question: Annotated[
        str | None, typer.Option("--question", help="What is asked of each text.")
    ] = None
    both_orders: Annotated[
        bool | None, typer.Option("--both-orders", help="Each judge sees both orders.")
    ] = None
    per_judge: Annotated[
        bool | None,
        typer.Option("--per-judge", help="Shuffle the responses separately for each judge."),
    ] = None

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
class Execution(OptionGroup):
    """Who is left out, which part of a run is made and under which plan, or whether it is only shown."""

    exclude_self: Annotated[
        bool | None,
        typer.Option(
            "--exclude-self/--include-self",
            help="A voting judge that is also a candidate does not judge its own responses.",
        ),
    ] = None
    shard: Annotated[
        str | None,
        typer.Option(
            "--shard",
            metavar="I/N",
            help="Only every N-th item, from item I on: 2/4 is the second of four shards. Run each "
            "in a process of its own, then `clash merge` joins them. --max-cost is that of the "
            "whole run; a shard spends its share.",
        ),
    ] = None
    dry_run: DryRun = False
    yes: Yes = False
    prereg: Prereg = None

    def carry_out(
        self,
        setup: RunSetup,
        options: RunOptions,
        observer: RunObserver,
        output: Output,
        *,
        cluster: RayCluster | None,
        rule: StoppingRule | None = None,
    ) -> int:
        """Show the plan of a run, or make the run and print what it says; the exit code."""
        from clash.cli.dry_run import print_dry_run
        from clash.cli.outcome import print_result
        from clash.pipeline.execute import execute
        from clash.pipeline.sequential_run import execute_until
        from clash.pipeline.stopping import check_controls
        from clash.providers.ray_cluster import cluster_connection

        if self.shard is not None:
            setup = setup.cut(self.shard)
        if rule is not None:
            check_controls(setup.plan.config)
        if self.dry_run:
            print_dry_run(setup.plan, options.environ, output, setup.notes)
            return 0
        with observer, cluster_connection(cluster):
            result = execute_until(setup, rule, options) if rule else execute(setup, options)
        print_result(result, output)
        return result.exit_code
