from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from clash.cli.completion import complete_datasets
from clash.cli.datasets import Cache, RuleSet, Stratify
from clash.cli.new_run import Execution, NewJudgments, NewRun
from clash.cli.option_groups import grouped
from clash.cli.options import Access, ConfigFile, Monitoring, Output, Seed
from clash.pipeline.options import RunOptions

_SAMPLE_SEED = 42


@grouped
def validate(
    *,
    dataset: Annotated[
        str,
        typer.Argument(
            help="A name from `clash datasets list`, or a file of labelled pairs or prompts.",
            metavar="DATASET",
            autocompletion=complete_datasets,
        ),
    ],
    n: Annotated[
        int | None,
        typer.Option("--n", "-n", min=1, help="Number of items to sample; default: all."),
    ] = None,
    sample_seed: Annotated[
        int, typer.Option("--sample-seed", min=0, help="Seed of the sample.")
    ] = _SAMPLE_SEED,
    rules: Annotated[
        RuleSet | None,
        typer.Option(
            "--rules",
            help="paper: the published inclusion rules (default by name); clear: clear winners;"
            " all: whatever has a label (default for a file).",
        ),
    ] = None,
    stratify: Annotated[
        Stratify | None,
        typer.Option("--stratify", help="Keep the proportions of this field in the sample."),
    ] = None,
    keep_repeats: Annotated[
        bool,
        typer.Option(
            "--keep-repeats",
            help="Judge pairs again that repeat another one, prompt and responses alike.",
        ),
    ] = False,
    tiers: Annotated[
        Path | None,
        typer.Option("--tiers", help="YAML: tier (or tier, elo, family) by candidate."),
    ] = None,
    new: NewRun,
    judging: NewJudgments,
    replay: Annotated[
        str | None,
        typer.Option(
            "--replay", help="Answer from the recorded calls of this run: no network, no cost."
        ),
    ] = None,
    execution: Execution,
    cache: Cache = None,
    config: ConfigFile = None,
    access: Access,
    seed: Seed = None,
    monitoring: Monitoring,
    output: Output,
) -> None:
    """Check a panel against people: judge labelled pairs blind and report the agreement.

    `clash validate mt-bench --n 100 --panel supreme-court`
    """
    from clash.collect.resolve import read_config
    from clash.pipeline.prepare import assemble, injected_only
    from clash.pipeline.prereg import read_plan
    from clash.pipeline.validation import Draw, draw_labelled, sample_origin, sample_prompts

    settings = {
        **new.settings(),
        **judging.settings(),
        "exclude_self": execution.exclude_self,
        "seed": seed,
    }
    environ = access.environ()
    observer = monitoring.observer(output)
    own_config = injected_only(read_config(config, settings))
    draw = Draw(
        n,
        sample_seed,
        None if rules is None else rules.value,
        None if stratify is None else stratify.value,
        cache,
        keep_repeats,
        single=own_config.judging.is_single,
    )
    sample = draw_labelled(dataset, draw)
    earlier = new.open_replay(replay, observer)
    setup = assemble(own_config, sample_prompts(sample), environ, observer, replay=earlier)
    registration = read_plan(execution.prereg)
    origin = replace(sample_origin(sample, tiers), registration=registration)
    options = RunOptions(
        environ, observer, kind="validate", run_id=new.run_id, origin=origin, yes=execution.yes
    )
    code = execution.carry_out(setup, options, observer, output, cluster=judging.cluster())
    raise typer.Exit(code)
