from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clash.cli.common import AsJson, Batch, EnvFile, Out, Prereg, Quiet, TrustHost, Verbose

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clash.analysis.retest import Retest
    from clash.collect.forecast import Forecast
    from clash.pipeline.finish import Finished
    from clash.pipeline.rerun import Again
    from clash.report.tables import Table
    from clash.store.folder import RunFolder

_STABLE = 31
_STOPS = (130, 4)
"""Exit codes after which a further rerun makes no sense: interrupted, refused."""


def rerun(
    runs: Annotated[
        list[str],
        typer.Argument(
            help="A run folder, a run id under --out, or `latest`; several with --compare.",
            metavar="RUN…",
        ),
    ],
    times: Annotated[int, typer.Option("--times", min=1, help="How many reruns.")] = 1,
    targeted: Annotated[
        bool,
        typer.Option(
            "--targeted",
            help="Only items that were wrong in every run, unstable, or stable but unsure.",
        ),
    ] = False,
    stable: Annotated[
        int,
        typer.Option("--stable", min=0, help="How many of the least confident stable items."),
    ] = _STABLE,
    regenerate: Annotated[
        bool, typer.Option("--regenerate", help="Fresh responses too: end-to-end stability.")
    ] = False,
    compare: Annotated[
        bool, typer.Option("--compare", help="Report on these runs; call nothing.")
    ] = False,
    panel: Annotated[
        str | None,
        typer.Option("--panel", "-p", help="A panel, for a run of another tool."),
    ] = None,
    out: Out = Path("runs"),
    max_cost: Annotated[
        float | None, typer.Option("--max-cost", min=0, help="US dollars, for each rerun.")
    ] = None,
    concurrency: Annotated[
        int | None, typer.Option("--concurrency", "-j", min=1, help="Most calls in flight.")
    ] = None,
    batch: Batch = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Plan and price one rerun; make no call.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before spending.")] = False,
    to: Annotated[
        Path | None, typer.Option("--to", help="Write the report here: .md or .json.")
    ] = None,
    prereg: Prereg = None,
    env_file: EnvFile = None,
    trust_host: TrustHost = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Judge the same items again with fresh seeds, and report how far a panel repeats itself.

    `clash rerun RUN --times 2` · `clash rerun RUN --targeted` · `clash rerun --compare A B C`
    """
    from clash.cli.common import open_run
    from clash.cli.prereg import registered
    from clash.collect.resolve import load_environ
    from clash.errors import ConfigError
    from clash.pipeline.rerun import reruns

    folders = [open_run(run, out) for run in runs]
    if compare:
        if len(folders) == 1:
            folders += reruns(folders[0])
        _tell(folders, as_json=as_json, whole=True, to=to)
        return
    if len(folders) > 1:
        raise ConfigError("one run at a time", field="RUN", hint="--compare takes several")
    environ = load_environ(os.environ, env_file, trust_host or ())
    given = {"max_cost": max_cost, "concurrency": concurrency, "batch": batch}
    about: dict[str, Any] = {
        "regenerate": regenerate,
        "panel": panel,
        "registration": registered(prereg),
        "limits": {name: value for name, value in given.items() if value is not None},
    }
    if targeted:
        about |= _targets(folders[0], stable)
    if dry_run:
        _price(folders[0], environ, about, as_json=as_json)
        return
    done = _repeat(folders[0], environ, times, about, yes=yes, quiet=quiet or as_json)
    if len(done) == 0:
        return
    last = done[-1]
    if last.findings.coverage.decided + last.findings.coverage.tied:
        every = [folders[0], *reruns(folders[0])]
        _tell(every, as_json=as_json, whole=verbose, to=to, done=done)
    raise typer.Exit(max(finished.exit_code for finished in done))


def _targets(parent: RunFolder, stable: int) -> dict[str, Any]:
    """The items worth judging again, and a note of which they are."""
    from clash.analysis.retest import align, targets
    from clash.analysis.rundata import RunData
    from clash.errors import InputError
    from clash.pipeline.rerun import reruns

    found = align([RunData.load(run) for run in _two(parent, reruns(parent))])
    if len(found.whole) < 2:
        raise InputError(
            "was judged once only: which items are unstable takes two runs",
            path=parent.path,
            field="--targeted",
            hint=f"clash rerun {parent.path} first",
        )
    chosen = targets(found, stable)
    parts = {
        "stably incorrect": chosen.stably_incorrect,
        "unstable": chosen.unstable,
        "least confident stable": chosen.low_confidence,
    }
    told = ", ".join(f"{len(rows)} {name}" for name, rows in parts.items())
    names = ", ".join(found.names[run] for run in found.whole)
    if not len(chosen.indices):
        raise InputError("no item is worth judging again", path=parent.path, field="--targeted")
    return {
        "only": {found.items[row] for row in chosen.indices},
        "notes": (f"targeted: {told}, by the runs {names}",),
    }


def _two(parent: RunFolder, beside: Sequence[RunFolder]) -> list[RunFolder]:
    from clash.errors import InputError

    if not beside:
        raise InputError(
            "was judged once only: which items are unstable takes two runs",
            path=parent.path,
            field="--targeted",
            hint=f"clash rerun {parent.path} first",
        )
    return [parent, *beside]


def _price(
    parent: RunFolder, environ: Mapping[str, str], about: Mapping[str, Any], *, as_json: bool
) -> None:
    from clash.collect.forecast import price
    from clash.pipeline import price as estimate
    from clash.pipeline.rerun import again, next_number

    made = again(parent, environ, next_number(parent), **about)
    estimate.tell(price(made.prepared.plan), made.prepared.plan, environ, as_json=as_json)


def _repeat(
    parent: RunFolder,
    environ: Mapping[str, str],
    times: int,
    about: Mapping[str, Any],
    *,
    yes: bool,
    quiet: bool,
) -> list[Finished]:
    """``times`` reruns, one after the other; an interruption or a refusal ends them."""
    from clash.cli.common import say
    from clash.collect.forecast import price
    from clash.pipeline import keys
    from clash.pipeline import price as estimate
    from clash.pipeline.rerun import again, next_number

    done: list[Finished] = []
    for count in range(times):
        made = again(parent, environ, next_number(parent), **about)
        if count == 0:
            for note in (*made.prepared.resolved.notes, *made.origin.notes):
                say(note, style="yellow")
        keys.check(made.prepared.plan.refs(), environ, quiet=quiet or count > 0)
        forecast = price(made.prepared.plan)
        estimate.check(forecast, made.prepared.plan, yes=yes, quiet=quiet)
        finished = _run(made, forecast, parent.path.parent, environ, quiet=quiet)
        done.append(finished)
        say(f"run: {finished.folder.path} ({finished.manifest.status})")
        if finished.exit_code in _STOPS:
            break
    return done


def _run(
    made: Again, forecast: Forecast, out: Path, environ: Mapping[str, str], *, quiet: bool
) -> Finished:
    from clash.pipeline import execute as pipeline
    from clash.pipeline import prepare as beginning

    with beginning.begin(
        made.prepared,
        environ,
        kind="rerun",
        out=out,
        run_id=made.name,
        origin=made.origin,
        forecast=forecast,
    ) as writer:
        return pipeline.carry_on(writer, made.prepared.plan, environ, quiet=quiet)


def _tell(
    folders: Sequence[RunFolder],
    *,
    as_json: bool,
    whole: bool,
    to: Path | None,
    done: Sequence[Finished] = (),
) -> None:
    from clash.analysis.retest import retest
    from clash.analysis.rundata import RunData
    from clash.cli.common import print_json, stdout
    from clash.report.retest import tables
    from clash.report.terminal import print_table

    found = retest([RunData.load(folder) for folder in folders])
    paths = [str(folder.path) for folder in folders]
    written = _written(found, tables(found), paths, done, to)
    if as_json:
        spent = [finished.manifest.cost_usd or 0.0 for finished in done]
        record = {"run": paths[0], "folders": paths, **found.as_json(), "written": written}
        print_json({**record, "cost_usd": sum(spent)} if done else record)
        return
    for table in tables(found):
        if whole or table.brief:
            print_table(stdout(), table)
    for path in written:
        stdout().print(f"wrote {path}", soft_wrap=True, markup=False)


def _written(
    found: Retest,
    tables: Sequence[Table],
    runs: Sequence[str],
    done: Sequence[Finished],
    to: Path | None,
) -> list[str]:
    """The report beside the newest rerun, and wherever it was asked for."""
    from clash.cli.documents import render_report, write_report
    from clash.files import run_files
    from clash.report.retest import title_of
    from clash.store import layout

    # Names, not paths: a folder is read elsewhere too.
    names = [Path(run).name for run in runs]
    title = title_of(names)
    written = []
    if to is not None:
        written.append(write_report(to, title, found.as_json(), tables, names))
    for name in (layout.RETEST_JSON, layout.RETEST_MD) if done else ():
        path = done[-1].folder.path / name
        text = render_report(path.suffix, title, found.as_json(), tables, names)
        run_files.replace(path, text.encode())
        written.append(str(path))
    return written
