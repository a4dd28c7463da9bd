"""Calibration pairs made from a run or a prompts file, and judged."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clash.collect.load import Prompts, load
from clash.collect.resolve import read_config, read_panel
from clash.config import Config, Observers
from clash.datasets.calibration_pairs import calibration_pairs, to_jsonl
from clash.errors import IncompleteRun
from clash.files import run_files
from clash.pipeline import keys
from clash.pipeline.execute import execute
from clash.pipeline.options import Observer
from clash.pipeline.prepare import RunSetup, assemble
from clash.pipeline.sources import find_run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.datasets.calibration_pairs import CalibrationPair
    from clash.pipeline.finish import RunResult
    from clash.pipeline.options import RunOptions

NAME = "calibration-pairs"
SOURCES = 30
"""Responses that pairs are made from, where nobody says how many."""


@dataclass(frozen=True)
class PairsOptions:
    """How calibration pairs are made and judged.

    Attributes:
        panel: who judges them; null is the panel of the run, or of ``clash.yaml``.
        sources: responses that pairs are made from.
    """

    panel: str | None
    sources: int
    max_cost: float | None
    seed: int


def prepare_pairs(
    source: str | Path, runs: Path, pairs: PairsOptions, options: RunOptions
) -> RunSetup:
    """Make pairs from the responses of a run or a prompts file, and plan to judge them.

    Raises:
        InputError: no response is long enough.
    """
    prompts = _prompts(source, runs, options.observer)
    calibration = make_pairs(prompts, pairs.sources, pairs.seed)
    path = runs / f"known-gaps-{Path(source).stem}-{pairs.seed}.jsonl"
    write_pairs(calibration, path)
    config = _only_judging(_config(source, runs, pairs, options), pairs)
    options.observer.note(f"pairs with known gaps: {path}", "progress")
    return assemble(config, load(path), options.environ, options.observer)


def judge_pairs(setup: RunSetup, runs: Path, options: RunOptions) -> RunResult:
    """Judge calibration pairs.

    Raises:
        IncompleteRun: the run was interrupted, or a provider refused for good.
    """
    result = execute(setup, replace(options, kind="eval", out=runs))
    if result.exit_code not in (0, 3):
        raise IncompleteRun(
            f"judging the pairs was interrupted; `clash resume {result.folder.path}`, then"
            f" `clash diagnose {result.folder.path}`"
        )
    return result


def sample_pairs(
    source: str | Path, runs: Path, path: Path | None, sources: int | None, seed: int
) -> tuple[list[CalibrationPair], Path]:
    """Write the pairs made from the responses of ``source`` to a prompts file.

    Raises:
        InputError: no response is long enough.
    """
    pairs = make_pairs(_prompts(source, runs, Observer()), sources or SOURCES, seed)
    path = path or Path(f"calibration-pairs-{Path(source).stem}-seed{seed}.jsonl")
    write_pairs(pairs, path)
    return pairs, path


def make_pairs(prompts: Prompts, sources: int, seed: int) -> list[CalibrationPair]:
    """Calibration pairs from the responses of ``prompts``."""
    texts: dict[str, dict[str, str]] = {}
    for response in prompts.responses:
        if response.text is not None:
            texts.setdefault(response.item_id, {})[response.candidate] = response.text
    return calibration_pairs(prompts.items, texts, seed=seed, most=sources)


def write_pairs(pairs: Sequence[CalibrationPair], path: Path) -> None:
    """Write calibration pairs as a prompts file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    run_files.replace(path, to_jsonl(pairs).encode("utf-8"))


def _prompts(source: str | Path, runs: Path, observer: Observer) -> Prompts:
    """The responses of a prompts file, or of a run."""
    folder = find_run(source, runs, observer)
    if folder is None:
        return load(Path(source))
    return Prompts(folder.path, tuple(folder.items()), tuple(folder.responses()), "")


def _config(source: str | Path, runs: Path, pairs: PairsOptions, options: RunOptions) -> Config:
    """The configuration of the run, else ``clash.yaml``."""
    folder = find_run(source, runs, options.observer)
    if folder is None:
        return read_config(None, {"panel": pairs.panel, "seed": pairs.seed})
    manifest = folder.manifest()
    keys.recall(manifest, options.environ)
    config = Config.model_validate(manifest.config)
    if pairs.panel is None:
        return config
    return config.model_copy(update={"panel": read_panel(pairs.panel, "file")})


def _only_judging(config: Config, pairs: PairsOptions) -> Config:
    """The configuration without generation, observers and prompts of its own."""
    changes: dict[str, Any] = {
        "candidates": [],
        "prompts": None,
        "repeat": 1,
        "observers": Observers(judges=[]),
        "seed": pairs.seed,
        "limits": config.limits.with_changes({"max_cost": pairs.max_cost}),
        "criteria": config.criteria.model_copy(update={"reuse": None}),
    }
    return config.model_copy(update=changes)
