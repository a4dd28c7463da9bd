"""Calibration pairs made from a run or a prompts file, and judged."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clash.collect.load import Prompts
    from clash.config import Config


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
    from clash.cli import beginning, estimate, pipeline
    from clash.cli.common import say
    from clash.collect.forecast import price
    from clash.collect.load import load
    from clash.errors import IncompleteRun

    file, config = _written(source, runs, wanted)
    say(f"pairs with known gaps: {file}")
    made = beginning.assemble(config, load(file), environ)
    forecast = price(made.plan)
    if wanted.dry_run:
        estimate.tell(forecast, made.plan, as_json=as_json)
        return None
    estimate.check(forecast, made.plan, yes=wanted.yes, quiet=wanted.quiet)
    with beginning.begin(made, kind="eval", out=runs) as writer:
        finished = pipeline.carry_on(writer, made.plan, environ, quiet=wanted.quiet)
    if finished.exit_code not in (0, 3):
        raise IncompleteRun(
            f"the judging of the pairs stopped; `clash resume {finished.folder.path}`, then"
            f" `clash diagnose {finished.folder.path}`"
        )
    return str(finished.folder.path)


def _written(source: str, runs: Path, wanted: Wanted) -> tuple[Path, Config]:
    """The prompts file of the pairs, and how to judge it."""
    from clash.datasets.calibration_pairs import calibration_pairs, to_jsonl

    path = Path(source)
    prompts, config = (
        _of_file(path, wanted)
        if path.is_file() and path.name != "manifest.json"
        else _of_run(path, runs, wanted)
    )
    texts: dict[str, dict[str, str]] = {}
    for response in prompts.responses:
        if response.text is not None:
            texts.setdefault(response.item_id, {})[response.candidate] = response.text
    pairs = calibration_pairs(prompts.items, texts, seed=wanted.seed, most=wanted.sources)
    runs.mkdir(parents=True, exist_ok=True)
    file = runs / f"known-gaps-{path.stem}-{wanted.seed}.jsonl"
    file.write_text(to_jsonl(pairs), encoding="utf-8", newline="\n")
    return file, config


def _of_file(path: Path, wanted: Wanted) -> tuple[Prompts, Config]:
    from clash.collect.load import load
    from clash.collect.resolve import read_config

    overrides: dict[str, Any] = {"panel": wanted.panel, "seed": wanted.seed}
    return load(path), _only_judging(read_config(None, overrides), wanted)


def _of_run(path: Path, runs: Path, wanted: Wanted) -> tuple[Prompts, Config]:
    from clash.collect.load import Prompts
    from clash.config import Config
    from clash.store.folder import RunFolder

    folder = RunFolder.open(path, out=runs)
    config = Config.model_validate(folder.manifest().config)
    if wanted.panel is not None:
        config = config.model_copy(update={"panel": wanted.panel})
    prompts = Prompts(folder.path, tuple(folder.items()), tuple(folder.responses()), "")
    return prompts, _only_judging(config, wanted)


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
