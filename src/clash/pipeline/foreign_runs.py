"""Write the results of another tool as run folders and prompts files."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from clash.analysis.run_verdicts import verdicts
from clash.config import Config
from clash.datasets import catalogue, published_models
from clash.datasets.dataset import to_prompts
from clash.datasets.pull import sha256
from clash.datasets.sampling import to_exclusions
from clash.errors import RunFolderError
from clash.files import run_files
from clash.store import layout
from clash.store.folder import RunWriter
from clash.store.manifest import Manifest, now, versions

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from clash.datasets.convert import Conversion
    from clash.datasets.foreign_run import ForeignRun
    from clash.datasets.paper_sets import PreparedSet

_RESULT_FILES = (".json", ".jsonl", ".gz", ".csv", ".parquet")


def write_run(run: ForeignRun, source: Path, out: Path) -> Path:
    """Make the run folder, with verdicts by the rules of clash beside the published ones.

    Raises:
        RunFolderError: a run of that name is there already.
    """
    if (out / run.name).exists():
        raise RunFolderError(
            f"{out / run.name}: is there already\n  fix: name another folder with --out"
        )
    with RunWriter.create(out, run.name, _manifest(run, source)) as writer:
        for record in run.records():
            writer.append(record)
        own_verdicts = verdicts(writer)
        writer.replace(layout.VERDICTS, own_verdicts)
        published_lines = "".join(f"{p.model_dump_json()}\n" for p in run.verdicts)
        writer.replace_text(layout.PUBLISHED_VERDICTS, published_lines)
        counts = {**run.counts(), "verdicts": sum(v.abstained is None for v in own_verdicts)}
        writer.seal(writer.manifest(), status="complete", counts=counts)
    return out / run.name


def write_conversion(conversion: Conversion, source: Path, out: Path) -> Iterator[dict[str, str]]:
    """Write the runs and the labelled pairs of another tool's results.

    Yields:
        For each run folder and prompts file its ``path``, the ``run``, and what it is ``about``.

    Raises:
        RunFolderError: a run of that name is there already.
    """
    for run in conversion.runs:
        folder = write_run(run, source, out)
        counts = run.counts()
        summary = f"{counts['items']} items, {counts['judgments']} judgments"
        yield {"path": str(folder), "run": run.name, "about": summary}
    if conversion.dataset is not None:
        out.mkdir(parents=True, exist_ok=True)
        path = out / f"{conversion.dataset.name}.jsonl"
        # This name is ours and not the user's, so a link that bears it is not followed.
        text = "".join(f"{line}\n" for line in to_prompts(conversion.dataset))
        run_files.replace(path, text.encode("utf-8"))
        summary = f"{len(conversion.dataset.items)} labelled items"
        yield {"path": str(path), "run": "", "about": summary}


def write_paper_set(prompts: PreparedSet, out: Path) -> Iterator[dict[str, str]]:
    """Write the items of a paper's data set, the configuration that asks its question, and the account.

    Yields:
        Of each file its ``path``, and what it is ``about``.
    """
    out.mkdir(parents=True, exist_ok=True)
    dataset = prompts.dataset
    files = {
        f"{prompts.name}.jsonl": (to_prompts(dataset), f"{len(dataset.items)} labelled items"),
        f"{prompts.name}.yaml": ([prompts.config.rstrip()], "what the judges are asked, for -c"),
        f"{prompts.name}.excluded.jsonl": (
            to_exclusions(dataset.exclusions),
            f"{len(dataset.exclusions)} items left out, each with its reason",
        ),
        f"{prompts.name}.sample.json": ([prompts.account], "rules, seed and counts"),
    }
    for name, (lines, description) in files.items():
        run_files.replace(out / name, "".join(f"{line}\n" for line in lines).encode("utf-8"))
        yield {"path": str(out / name), "run": "", "about": description}


def _manifest(run: ForeignRun, source: Path) -> Manifest:
    times = run.times or [now()]
    panel = _panel(run)
    return Manifest(
        run=run.name,
        kind=run.kind,
        parent=run.parent,
        prompts=run.source,
        config=_config(run),
        panel=panel,
        dataset=_dataset(run),
        hashes={f"source {name}": digest for name, digest in _hashes(source).items()},
        versions=versions(),
        cost_usd=run.cost_usd,
        cost_is_lower_bound=any(p.cost_usd is None for p in run.verdicts),
        started=times[0],
        ended=times[-1],
        wall_s=round(run.wall_s, 3),
        notes=[f"converted from {run.source}; licence: {run.licence}", *run.notes],
    )


def _dataset(run: ForeignRun) -> dict[str, Any]:
    known_dataset = catalogue.find_in_text(run.name)
    return {
        "name": run.name,
        "source": run.source,
        "licence": run.licence,
        "published": [ref.model_dump() for ref in known_dataset.published] if known_dataset else [],
        "figures": [dict(claim) for claim in run.claims],
    }


def _panel(run: ForeignRun) -> dict[str, Any]:
    judges = [{**asdict(seat), "model": seat.id} for seat in run.panel]
    return {"name": run.name, "quorum": None, "ties": True, "judges": judges}


def _config(run: ForeignRun) -> dict[str, Any]:
    """What clash would call the way the run was made, as far as that is known."""
    presentations = {blinding.presentation for blinding in run.blinding}
    config = Config.model_validate(
        {"criteria": {"mode": "none"}, "blinding": {"both_orders": len(presentations) > 1}}
    ).model_dump(mode="json")
    return {**config, "candidates": [published_models.describe(name) for name in run.candidates]}


def _hashes(source: Path) -> dict[str, str]:
    if source.is_file():
        return {source.name: sha256(source)}
    files = sorted(path for path in source.rglob("*") if path.suffix in _RESULT_FILES)
    return {path.relative_to(source).as_posix(): sha256(path) for path in files}
