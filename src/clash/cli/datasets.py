"""``clash datasets``: people's judgments to validate a panel on, and runs that others made."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clash.cli.common import (
    print_json,
    print_line,
    print_tables,
    print_text,
    print_written,
    stderr,
)
from clash.cli.options import AsJson, Quiet, Seed
from clash.cli.plain_help import Command
from clash.errors import ConfigError, one_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rich.progress import TaskID

    from clash.datasets.calibration_pairs import CalibrationPair
    from clash.datasets.pull import DownloadProgress, PulledDataset
    from clash.datasets.sampling import DatasetSample, SamplingRules

app = typer.Typer(
    name="datasets",
    no_args_is_help=True,
    help="Public data sets of human preferences: list, pull, sample; convert other tools' runs.",
)

_SEED = 42
Cache = Annotated[
    Path | None,
    typer.Option("--cache", help="Folder of downloaded data; default: your user cache."),
]


class RuleSet(StrEnum):
    """Which labelled items may be drawn."""

    paper = "paper"
    clear = "clear"
    all = "all"


class Stratify(StrEnum):
    """What a stratified draw keeps in proportion."""

    winner = "winner"
    tier = "tier"
    tag = "tag"


@app.command("list", cls=Command)
def list_(cache: Cache = None, as_json: AsJson = False) -> None:
    """List the data sets that clash loads by name, and the votes that ship with it."""
    from clash.datasets import catalogue, pull
    from clash.datasets.votes_files import votes_files
    from clash.report.tables import Table

    folder = cache or pull.cache_folder()
    datasets = [
        {
            "name": dataset.name,
            "what": dataset.what,
            "licence": dataset.licence,
            "source": dataset.source,
            "citation": dataset.citation,
            "here": pull.find_pulled(dataset, folder) is not None,
        }
        for dataset in catalogue.datasets()
    ]
    votes = votes_files()
    if as_json:
        files = [{"name": name, **votes_file.model_dump()} for name, votes_file in votes.items()]
        print_json({"datasets": datasets, "cache": str(folder), "votes": files})
        return
    rows = [
        [str(d["name"]), "yes" if d["here"] else "no", str(d["what"]), str(d["licence"])]
        for d in datasets
    ]
    print_tables([Table("data sets", ["name", "here", "what", "licence"], rows)])
    print_text(f"kept in {folder}; `clash datasets pull NAME` fetches one")
    rows = [
        [name, votes_file.what, votes_file.licence, votes_file.command]
        for name, votes_file in votes.items()
    ]
    columns = ["name", "what", "licence", "try"]
    note = "votes and labels without texts; datasets/README.md has sources and citations"
    print_tables([Table("votes of real judges, here already", columns, rows, notes=[note])])


@app.command("pull", cls=Command)
def pull_(
    name: Annotated[str, typer.Argument(help="A name from `clash datasets list`.")],
    cache: Cache = None,
    base_url: Annotated[
        str | None,
        typer.Option(
            "--base-url", envvar="HF_ENDPOINT", help="Address of another hub with the same layout."
        ),
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Download again even if present.")] = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Download a data set into the cache; checked, resumable."""
    from clash.datasets import catalogue, pull

    source_dataset = catalogue.find(name)
    with _progress(quiet=quiet or as_json) as progress:
        dataset = pull.pull(
            source_dataset,
            cache or pull.cache_folder(),
            base_url=None if source_dataset.web else base_url,
            progress=progress,
            again=again,
        )
    _print_pull(dataset, source_dataset.citation, as_json=as_json)


@app.command("sample", cls=Command)
def sample_(
    data: Annotated[
        str,
        typer.Argument(
            help="A name from `clash datasets list`, a file, or calibration-pairs.",
            metavar="NAME|FILE",
        ),
    ],
    n: Annotated[
        int | None,
        typer.Option("--n", "-n", min=1, help="Number of items; default: all that qualify."),
    ] = None,
    seed: Seed = None,
    rules: Annotated[
        RuleSet | None,
        typer.Option(
            "--rules",
            help="paper (the default): the published experiments' inclusion rules; clear: clear"
            " winners; all.",
        ),
    ] = None,
    stratify: Annotated[
        Stratify | None,
        typer.Option("--stratify", help="Keep the proportions of this field in the sample."),
    ] = None,
    min_chars: Annotated[
        int | None,
        typer.Option("--min-chars", min=0, help="Minimum length of a response, in characters."),
    ] = None,
    language: Annotated[
        str | None,
        typer.Option("--language", help="Language, as the source names it; default: any."),
    ] = None,
    to: Annotated[
        Path | None, typer.Option("--out", "-o", help="Prompts file to write (.jsonl).")
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(
            "--from", help="With calibration-pairs: the run or prompts file with your responses."
        ),
    ] = None,
    runs: Annotated[
        Path,
        typer.Option(
            "--runs", envvar="CLASH_OUT", help="With --from: folder that run ids are looked up in."
        ),
    ] = Path("runs"),
    cache: Cache = None,
    as_json: AsJson = False,
) -> None:
    """Sample labelled items into a prompts file, and report what was left out and why.

    `clash datasets sample calibration-pairs --from RUN` makes pairs with known gaps from your own
    responses, offline and seeded, to measure which differences a judge misses.
    """
    import numpy as np

    from clash.pipeline.pair_judging import NAME

    if data == NAME or source is not None:
        options = {"--rules": rules, "--stratify": stratify, "--min-chars": min_chars}
        own_source = _own_responses(
            data, source, {**options, "--language": language, "--cache": cache}
        )
        number = _SEED if seed is None else seed
        _sample_pairs(own_source, runs, to, sources=n, seed=number, as_json=as_json)
        return
    from clash.datasets import loaders
    from clash.datasets.sampling import sample
    from clash.pipeline.validation import write_sample

    dataset = loaders.load(data, cache=cache)
    sampling = _rules(
        dataset.name,
        rules or RuleSet.paper,
        n=n,
        seed=seed,
        stratify=stratify,
        min_chars=min_chars,
        language=language,
    )
    draw = sample(dataset, sampling, np.random.default_rng(sampling.seed))
    files = write_sample(draw, to)
    if as_json:
        print_json({"dataset": dataset.name, "counts": dict(draw.counts), "written": files})
    else:
        _print_sample(draw, files)


def _sample_pairs(
    source: str, runs: Path, to: Path | None, *, sources: int | None, seed: int, as_json: bool
) -> None:
    """Write calibration pairs made from the responses of ``source``, and print their gaps."""
    from clash.pipeline.pair_judging import NAME, sample_pairs
    from clash.report.tables import Table

    pairs, path = sample_pairs(source, runs, to, sources, seed)
    counts = Counter(pair.kind for pair in pairs)
    n_sources = len({pair.source for pair in pairs})
    if as_json:
        record = {"dataset": NAME, "from": source, "seed": seed, "sources": n_sources}
        print_json({**record, "counts": dict(counts), "written": {"prompts": str(path)}})
        return
    rows = [
        {"altered": kind, "pairs": count, "gaps": _gaps(pairs, kind)}
        for kind, count in counts.items()
    ]
    title = f"{len(pairs)} pairs with known gaps, from {n_sources} responses (seed {seed})"
    note = "gap: share of a response's sentences that were altered; 0 is a control, where a tie is right"
    print_tables([Table.of(title, rows, text=("gaps",), notes=[note])])
    print_written([path])
    next_step = f"clash eval {path} --panel …, then clash diagnose on the run"
    print_line(f"judge them: {next_step}")


def _gaps(pairs: Sequence[CalibrationPair], kind: str) -> str:
    gaps = [pair.gap for pair in pairs if pair.kind == kind]
    low, high = f"{min(gaps):.2f}", f"{max(gaps):.2f}"
    return low if low == high else f"{low} to {high}"


def _own_responses(data: str, source: str | None, of_labels: dict[str, object]) -> str:
    """Where calibration pairs are made from; what is said of labelled items has no place there."""
    from clash.pipeline.pair_judging import NAME

    if data != NAME or source is None:
        raise ConfigError(
            f"{NAME} are made from your own responses",
            field="--from",
            hint=f"clash datasets sample {NAME} --from RUN, or a prompts file with responses",
        )
    wrong = [name for name, value in of_labels.items() if value is not None]
    if wrong:
        raise ConfigError(
            f"does not apply to {NAME}: its items have no human labels",
            field=wrong[0],
            hint="--n, --seed, --out and --runs do",
        )
    return source


@app.command("convert", cls=Command)
def convert_(
    path: Annotated[
        Path,
        typer.Argument(
            help="A result file or folder of another tool; or wikiqa, jigsaw,"
            " phoenix-summarization, rewardbench, llmbar, summeval or arena-100k, as pulled.",
            metavar="PATH|NAME",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to write to.")] = Path("runs"),
    form: Annotated[
        str | None,
        typer.Option(
            "--from",
            help="agent-clash, alpaca-eval, arena-hard, fastchat, promptfoo or pairs, recognised; or"
            " the paper's data set that the file is.",
        ),
    ] = None,
    seed: Seed = None,
    cache: Cache = None,
    as_json: AsJson = False,
) -> None:
    """Convert other tools' runs into run folders, or labelled pairs into a prompts file.

    The data sets of the Ising and the finite-calibration paper become prompts files with the papers'
    preparation, each with a configuration that asks the paper's question: `clash datasets convert
    wikiqa --out relevance`, then `clash validate relevance/wikiqa.jsonl -c relevance/wikiqa.yaml`.
    """
    from clash.datasets.paper_sets import PAPER_SETS, prepare_set
    from clash.pipeline.foreign_runs import write_conversion, write_paper_set
    from clash.reproduction.conversion import FORMATS, convert

    paper_set = form if form in PAPER_SETS else str(path) if form is None else None
    if paper_set in PAPER_SETS and (form is not None or not path.exists()):
        file = path if form is not None else None
        number = _SEED if seed is None else seed
        prompts = prepare_set(str(paper_set), file, number, cache)
        _print_written(prompts.name, list(write_paper_set(prompts, out)), as_json=as_json)
        return
    format_ = next((name for name in FORMATS if name == form), None)
    if form is not None and format_ is None:
        forms = [*FORMATS, *PAPER_SETS]
        raise ConfigError(f"no form {form!r}", field="--from", hint=one_of(str(form), forms))
    conversion = convert(path, format_)
    lines = list(write_conversion(conversion, path, out))
    _print_written(conversion.format, lines, as_json=as_json)


def _print_written(form: str, lines: Sequence[dict[str, str]], *, as_json: bool) -> None:

    if as_json:
        print_json({"from": form, "written": list(lines)})
        return
    for line in lines:
        print_line(f"wrote {line['path']} ({line['about']})")


def _rules(
    name: str,
    rule_set: RuleSet,
    *,
    n: int | None,
    seed: int | None,
    stratify: Stratify | None,
    min_chars: int | None,
    language: str | None,
) -> SamplingRules:
    from dataclasses import replace

    from clash.pipeline.validation import sampling_rules

    options: dict[str, Any] = {
        "n": n,
        "seed": seed,
        "stratify": stratify and stratify.value,
        "min_chars": min_chars,
        "language": language,
    }
    changes = {option: value for option, value in options.items() if value is not None}
    if language == "any":
        changes["language"] = None
    return replace(sampling_rules(name, rule_set.value), **changes)


def _print_sample(sample: DatasetSample, files: dict[str, str]) -> None:
    from clash.report.tables import Table

    rows = [{"items": name, "count": f"{count:,}"} for name, count in sample.counts.items()]
    print_tables([Table.of(sample.dataset.name, rows)])
    if sample.open_rules:
        open_rules = ", ".join(sample.open_rules)
        print_text(f"the source does not say, so not applied: {open_rules}")
    print_text(f"licence: {sample.dataset.licence}")
    for name, path in files.items():
        print_line(f"wrote {name} to {path}")


def _print_pull(dataset: PulledDataset, citation: str, *, as_json: bool) -> None:
    from dataclasses import asdict

    if as_json:
        files = [
            {**asdict(file), "path": str(dataset.folder / file.path)} for file in dataset.files
        ]
        record = {"name": dataset.name, "commit": dataset.commit, "licence": dataset.licence}
        print_json({**record, "folder": str(dataset.folder), "files": files})
        return
    for file in dataset.files:
        path = dataset.folder / file.path
        line = f"{path}  {file.size:,} bytes  sha256 {file.sha256}  checked: {file.verified}"
        print_line(line)
    print_text(f"licence: {dataset.licence}; cite: {citation}")


@contextmanager
def _progress(*, quiet: bool) -> Iterator[Callable[[DownloadProgress], None] | None]:
    """A bar for each file, on a terminal."""
    import sys

    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TransferSpeedColumn
    from rich.progress import Progress as Bars

    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn()
    with Bars(*columns, console=stderr(), transient=True) as bars:
        tasks: dict[str, TaskID] = {}

        def show(progress: DownloadProgress) -> None:
            if progress.path not in tasks:
                tasks[progress.path] = bars.add_task(progress.path, total=progress.total)
            bars.update(tasks[progress.path], completed=progress.n_bytes)

        yield show
