from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clash.cli.common import AsJson, Seed
from clash.cli.voting import Judges, Presentation, Subset, VotesArgument

if TYPE_CHECKING:
    from clash.analysis.rundata import RunData


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
    simulate: Annotated[
        bool, typer.Option("--simulate", help="Simulate what removing each judge does to power.")
    ] = False,
    replications: Annotated[
        int, typer.Option("--replications", min=20, help="Simulated studies for each judge.")
    ] = 400,
    runs: Annotated[
        Path, typer.Option("--runs", help="Folder that run ids are looked up in.")
    ] = Path("runs"),
    seed: Seed = None,
    as_json: AsJson = False,
) -> None:
    """Is each judge worth its ballots: ties, agreement, biases; keep, down-weight or replace."""
    from clash.analysis.diagnosis import diagnose as run
    from clash.analysis.diagnosis.run import run_facts
    from clash.analysis.diversity import read_pairs, run_texts
    from clash.cli.common import print_json, stdout
    from clash.cli.voting import read
    from clash.report import diagnosis as report
    from clash.report.terminal import show_table

    data = _run(source, runs)
    facts = None if data is None else run_facts(data)
    found = run(
        read(source, runs, judges, subset, presentation),
        candidates=candidates or (2 if facts is None else facts.candidates),
        simulate=simulate,
        replications=replications,
        seed=42 if seed is None else seed,
        run=facts,
        texts=read_pairs(pairs) if pairs else None if data is None else run_texts(data),
    )
    if as_json:
        print_json({**report.as_json(found), "source": source})
        return
    for table in report.tables(found):
        show_table(stdout(), table)


def _run(source: str, runs: Path) -> RunData | None:
    """The run; null for a votes file."""
    from clash.analysis.rundata import RunData
    from clash.store.folder import RunFolder

    path = Path(source)
    if path.is_file() and path.name != "manifest.json":
        return None
    return RunData.load(RunFolder.open(path, out=runs))
