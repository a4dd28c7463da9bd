"""Calibration pairs made from a run or a prompts file, and judged."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clash.collect.load import Prompts
    from clash.config import Config
    from clash.datasets.calibration_pairs import CalibrationPair

NAME = "calibration-pairs"
SOURCES = 30
"""Responses that pairs are made from, where nobody says how many."""


@dataclass(frozen=True)
class Wanted:
    """How calibration pairs are to be made and judged."""

    panel: str | None
    sources: int
    max_cost: float | None
    seed: int
    dry_run: bool
    yes: bool
    quiet: bool


def judge_known_gaps(
    source: str, runs: Path, wanted: Wanted, environ: Mapping[str, str], *, as_json: bool
) -> str | None:
    """Make pairs from the responses of ``source``, judge them, and give the run's folder.

    Nothing is judged on a dry run, and the result is null.

    Raises:
        InputError: there are no responses long enough.
        IncompleteRun: the run was interrupted or lost too many judgments.
    """
    from clash.cli.common import say
    from clash.collect.forecast import price
    from clash.collect.load import load
    from clash.errors import IncompleteRun
    from clash.pipeline import execute as pipeline
    from clash.pipeline import keys
    from clash.pipeline import prepare as beginning
    from clash.pipeline import price as estimate

    file, config = _written(source, runs, wanted, environ)
    say(f"pairs with known gaps: {file}")
    made = beginning.assemble(config, load(file), environ)
    forecast = price(made.plan)
    if wanted.dry_run:
        estimate.tell(forecast, made.plan, environ, as_json=as_json)
        return None
    keys.check(made.plan.refs(), environ, quiet=wanted.quiet)
    estimate.check(forecast, made.plan, yes=wanted.yes, quiet=wanted.quiet)
    with beginning.begin(made, environ, kind="eval", out=runs, forecast=forecast) as writer:
        finished = pipeline.carry_on(writer, made.plan, environ, quiet=wanted.quiet)
    if finished.exit_code not in (0, 3):
        raise IncompleteRun(
            f"the judging of the pairs stopped; `clash resume {finished.folder.path}`, then"
            f" `clash diagnose {finished.folder.path}`"
        )
    return str(finished.folder.path)


def sample_known_gaps(
    source: str, runs: Path, out: Path | None, *, sources: int | None, seed: int, as_json: bool
) -> None:
    """Write the pairs made from the responses of ``source`` to a prompts file, and tell.

    Raises:
        InputError: there are no responses long enough.
    """
    from clash.cli.common import print_json, stdout
    from clash.report.tables import Table
    from clash.report.terminal import print_table

    pairs = _pairs(_prompts(source, runs), sources or SOURCES, seed)
    place = out or Path(f"calibration-pairs-{Path(source).stem}-seed{seed}.jsonl")
    _write(pairs, place)
    counts = Counter(pair.kind for pair in pairs)
    used = len({pair.source for pair in pairs})
    if as_json:
        about = {"dataset": NAME, "from": source, "seed": seed, "sources": used}
        print_json({**about, "counts": dict(counts), "written": {"prompts": str(place)}})
        return
    rows = [[kind, str(count), _gaps(pairs, kind)] for kind, count in counts.items()]
    title = f"{len(pairs)} pairs with known gaps, from {used} responses (seed {seed})"
    note = "gap: share of a response's sentences that were altered; 0 is a control, where a tie is right"
    print_table(stdout(), Table(title, ["altered", "pairs", "gaps"], rows, frozenset({1}), [note]))
    stdout().print(f"wrote {place}", soft_wrap=True, markup=False)
    judged = f"clash eval {place} --panel …, then clash diagnose on the run"
    stdout().print(f"judge them: {judged}", soft_wrap=True, markup=False)


def _gaps(pairs: Sequence[CalibrationPair], kind: str) -> str:
    gaps = [pair.gap for pair in pairs if pair.kind == kind]
    low, high = f"{min(gaps):.2f}", f"{max(gaps):.2f}"
    return low if low == high else f"{low} to {high}"


def _written(
    source: str, runs: Path, wanted: Wanted, environ: Mapping[str, str]
) -> tuple[Path, Config]:
    """The prompts file of the pairs, and how to judge it."""
    pairs = _pairs(_prompts(source, runs), wanted.sources, wanted.seed)
    file = runs / f"known-gaps-{Path(source).stem}-{wanted.seed}.jsonl"
    _write(pairs, file)
    return file, _only_judging(_config(source, runs, wanted, environ), wanted)


def _pairs(prompts: Prompts, sources: int, seed: int) -> list[CalibrationPair]:
    from clash.datasets.calibration_pairs import calibration_pairs

    texts: dict[str, dict[str, str]] = {}
    for response in prompts.responses:
        if response.text is not None:
            texts.setdefault(response.item_id, {})[response.candidate] = response.text
    return calibration_pairs(prompts.items, texts, seed=seed, most=sources)


def _write(pairs: Sequence[CalibrationPair], file: Path) -> None:
    from clash.datasets.calibration_pairs import to_jsonl
    from clash.files import run_files

    file.parent.mkdir(parents=True, exist_ok=True)
    run_files.replace(file, to_jsonl(pairs).encode("utf-8"))


def _prompts(source: str, runs: Path) -> Prompts:
    """The responses of a prompts file, or of a run."""
    from clash.cli.voting import run_of
    from clash.collect.load import Prompts, load

    folder = run_of(source, runs)
    if folder is None:
        return load(Path(source))
    return Prompts(folder.path, tuple(folder.items()), tuple(folder.responses()), "")


def _config(source: str, runs: Path, wanted: Wanted, environ: Mapping[str, str]) -> Config:
    """Of the run, else of clash.yaml."""
    from clash.cli.voting import run_of
    from clash.collect.resolve import read_config, read_panel
    from clash.config import Config
    from clash.pipeline import keys

    folder = run_of(source, runs)
    if folder is None:
        return read_config(None, {"panel": wanted.panel, "seed": wanted.seed})
    manifest = folder.manifest()
    keys.recall(manifest, environ)
    config = Config.model_validate(manifest.config)
    if wanted.panel is None:
        return config
    return config.model_copy(update={"panel": read_panel(wanted.panel, "file")})


def _only_judging(config: Config, wanted: Wanted) -> Config:
    """No one generates, no one observes, and the panel may tie."""
    from clash.config import Observers

    limits = config.limits.model_copy(update={"max_cost": wanted.max_cost})
    changed: dict[str, Any] = {
        "candidates": [],
        "prompts": None,
        "repeat": 1,
        "observers": Observers(judges=[]),
        "seed": wanted.seed,
        "limits": limits if wanted.max_cost is not None else config.limits,
        "criteria": config.criteria.model_copy(update={"reuse": None}),
    }
    return config.model_copy(update=changed)
