"""Diagnose the judges of a run or of a votes file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from clash.analysis.diagnosis import Diagnosis
    from clash.pipeline.sources import VoteSelection


@dataclass(frozen=True)
class DiagnoseOptions:
    """How judges are diagnosed.

    Attributes:
        candidates: K of the thresholds; null is that of the run, or 2.
        pairs: the responses behind a votes file; a run has its own.
        similarity: the encoder that compares responses; null is the default.
        replications: simulated studies for each judge that is removed; 0 simulates none.
    """

    candidates: int | None = None
    pairs: Path | None = None
    similarity: str | None = None
    replications: int = 0
    seed: int = 42


def diagnose_votes(selection: VoteSelection, options: DiagnoseOptions) -> Diagnosis:
    """Whether each judge is worth keeping.

    A run of calibration pairs is also compared with their known gaps.

    Raises:
        ConfigError: there is no such encoder.
        InputError: the votes or the pairs cannot be read.
        RunFolderError: the source is neither a file nor a run.
    """
    from clash.analysis.diagnosis import diagnose
    from clash.analysis.diagnosis.known_gaps import calibration_curves, is_calibration
    from clash.analysis.diagnosis.run_judges import run_facts
    from clash.analysis.rundata import RunData
    from clash.analysis.semantic import encoder_of
    from clash.analysis.texts import read_pairs, run_texts

    run = None if selection.folder is None else RunData.load(selection.folder)
    facts = None if run is None else run_facts(run)
    texts = None if run is None else run_texts(run)
    if options.pairs is not None:
        texts = read_pairs(options.pairs)
    encoder = encoder_of(options.similarity) if texts else None
    if encoder is not None:
        selection.observer.note(
            f"comparing responses by {encoder.name}; --similarity tfidf is quicker", "progress"
        )
    has_gaps = run is not None and is_calibration(run)
    return diagnose(
        selection.votes(),
        candidates=options.candidates or (2 if facts is None else facts.candidates),
        simulate=options.replications > 0,
        replications=options.replications or 1,
        seed=options.seed,
        run=facts,
        texts=texts,
        encoder=encoder,
        calibration=calibration_curves(run, options.seed) if run is not None and has_gaps else (),
    )
