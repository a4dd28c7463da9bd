from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clash.cli.options import AsJson, Out, Quiet, RunArgument, Seed

if TYPE_CHECKING:
    from collections.abc import Callable

    from clash.analysis.findings import Findings
    from clash.analysis.label_change import LabelChange
    from clash.analysis.rundata import RunData
    from clash.review.page import Page
    from clash.review.server import ReviewServer
    from clash.review.session import Session
    from clash.review.tasks import ReviewTask
    from clash.store.folder import RunFolder
    from clash.votes import Votes

_SEED = 42


def review(
    run: RunArgument,
    everything: Annotated[
        bool, typer.Option("--all", help="Every item, those that need a person first.")
    ] = False,
    sample: Annotated[
        int | None,
        typer.Option("--sample", min=1, help="So many items drawn from all, sure ones too."),
    ] = None,
    annotator: Annotated[
        str, typer.Option("--annotator", help="Name to write decisions under; the page asks.")
    ] = "",
    reveal: Annotated[
        bool,
        typer.Option(
            "--reveal/--no-reveal",
            help="Tell authors and the panel's verdict after each decision, or never.",
        ),
    ] = True,
    browse: Annotated[bool, typer.Option("--open/--no-open", help="Open the browser.")] = True,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0: any free one.")] = 0,
    export: Annotated[
        Path | None,
        typer.Option(
            "--export-static", help="Write a page that works from disk and hands back a file."
        ),
    ] = None,
    back: Annotated[
        Path | None, typer.Option("--import", help="Take in the file that such a page gave back.")
    ] = None,
    out: Out = Path("runs"),
    seed: Seed = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Let people decide, blinded and side by side, what the panel was split on or unsure of.

    Decisions land in labels.jsonl at once; the report is rebuilt when the session ends.
    """
    import numpy as np

    from clash.analysis.rundata import RunData
    from clash.cli.common import open_run, say
    from clash.errors import ConfigError, RunFolderError
    from clash.review.page import live
    from clash.review.session import Session
    from clash.review.tasks import review_tasks

    if everything and sample is not None:
        raise ConfigError("all, or a sample", field="--sample", hint="drop --all or --sample")
    folder = open_run(run, out)
    data = RunData.load(folder)
    if data.manifest.seal is None:
        raise RunFolderError(
            f"{folder.path}: the run has not ended\n  fix: `clash resume {folder.path}`"
        )
    rng = np.random.default_rng(_SEED if seed is None else seed)
    tasks = review_tasks(data, everything=everything, sample=sample, rng=rng)
    if export is not None:
        _export(folder, tasks, export, annotator, as_json=as_json)
        return
    outcome = _Outcome.of(folder, data)
    if back is not None:
        written = _take_in(folder, data, back)
    else:
        page = live(folder.path.name, annotator)
        with Session(folder, data, tasks, reveal=reveal) as session:
            if tasks:
                told = partial(_told, outcome, session)
                _hold(_server(session, page, port, told), browse=browse, quiet=quiet)
            else:
                say("the panel was unanimous and sure everywhere: --all or --sample N review that")
            written = session.n_written
    _conclude(outcome, written, as_json=as_json)


def _export(
    folder: RunFolder, tasks: list[ReviewTask], to: Path, annotator: str, *, as_json: bool
) -> None:
    from clash.cli.common import print_json, stdout
    from clash.errors import InputError
    from clash.review.page import static

    try:
        to.write_text(
            static(folder.path.name, tasks, _secret(folder), annotator).text, encoding="utf-8"
        )
    except OSError as error:
        raise InputError(f"may not be written: {error.strerror}", path=to) from None
    if as_json:
        print_json({"run": str(folder.path), "written": str(to), "items": len(tasks)})
        return
    stdout().print(f"wrote {to} ({len(tasks)} items, no names in it)", soft_wrap=True)
    stdout().print(f"then: clash review {folder.path} --import FILE", soft_wrap=True)


def _secret(folder: RunFolder) -> str:
    """What only the run knows and no review changes: the hash of who was shown where to judges."""
    from clash.store import layout
    from clash.store.manifest import seal_file

    return seal_file(folder.path / layout.BLINDING).sha256


def _take_in(folder: RunFolder, run: RunData, back: Path) -> int:
    """Write the decisions of a page from disk.

    Raises:
        InputError: the file is none of ours, or of another run.
    """
    from clash.documents import read_json
    from clash.errors import InputError
    from clash.review.page import order, parse_returned_file
    from clash.review.session import label, name_of
    from clash.review.tasks import review_tasks
    from clash.store import layout
    from clash.store.journal import Journal, repair_tail

    found = parse_returned_file(read_json(back).value)
    if found is None or found.get("run") != folder.path.name:
        raise InputError(
            f"is no file of a review of {folder.path.name}", path=back, hint="see --export-static"
        )
    tasks = {task.item.item_id: task for task in review_tasks(run, everything=True)}
    who = name_of(found.get("annotator"))
    key = order(found["key"], _secret(folder))
    records = []
    for said in found["decisions"]:
        name = said.get("item") if isinstance(said, dict) else None
        if not isinstance(name, str) or name not in tasks:
            raise InputError(f"decides on {name!r}, which is no item of the run", path=back)
        records.append(label(tasks[name], key, who, said))
    repair_tail(folder.path / layout.LABELS)
    with Journal(folder.path / layout.LABELS) as journal:
        for record in records:
            journal.append(record)
    return len(records)


def _server(
    session: Session, page: Page, port: int, summary: Callable[[], list[dict[str, Any]]]
) -> ReviewServer:
    """A server that has its port.

    Raises:
        InputError: the port is taken, or not ours to take.
    """
    from clash.errors import InputError
    from clash.review.server import ReviewServer

    try:
        return ReviewServer(session, page, port, summary)
    except OSError as error:
        raise InputError(f"cannot be listened on: {error.strerror}", field="--port") from None


def _hold(server: ReviewServer, *, browse: bool, quiet: bool) -> None:
    """Serve the page until someone finishes, here or there."""
    import webbrowser

    from clash.cli.common import say

    with server:
        say(f"{len(server.session.tasks)} items to decide: {server.url}", style="bold")
        if not quiet:
            say("Finish on the page or Ctrl-C here ends it and rebuilds the report")
        if browse:
            webbrowser.open(server.url)
        try:
            server.finish_event.wait()
        except KeyboardInterrupt:
            say("ending")


@dataclass
class _Outcome:
    """What a session changes: everything before it, and what it came to when last asked.

    Attributes:
        votes: of the run, with the labels there were; null where it has none.
    """

    folder: RunFolder
    data: RunData
    before: Findings
    votes: Votes | None
    _last: _Change | None = None

    @classmethod
    def of(cls, folder: RunFolder, run: RunData) -> _Outcome:
        from clash.analysis.findings import compute_findings

        return cls(folder, run, compute_findings(run), _votes(folder))

    def after(self, written: int) -> _Change:
        """With the labels there are by now, computed once for each number of decisions."""
        if self._last is None or self._last.changed.written != written:
            self._last = self._computed(written)
        return self._last

    def _computed(self, written: int) -> _Change:
        from clash.analysis.calibration_change import compare_calibrations
        from clash.analysis.findings import compute_findings
        from clash.analysis.label_change import label_change

        run = self.data.with_labels(self.folder.labels())
        found = compute_findings(run)
        now = _votes(self.folder)
        calibrated = None
        if self.votes is not None and now is not None:
            leader = found.leaderboard[0].candidate
            calibrated = compare_calibrations(run, self.votes, now, leader)
        return _Change(label_change(self.before, found, written, calibrated), run, found)


@dataclass(frozen=True)
class _Change:
    changed: LabelChange
    data: RunData
    findings: Findings


def _votes(folder: RunFolder) -> Votes | None:
    from clash.errors import InputError
    from clash.votes import run_votes

    try:
        return run_votes(folder)
    except InputError:
        return None  # nobody judged anything


def _told(outcome: _Outcome, session: Session) -> list[dict[str, Any]]:
    """What the page tells at the end, as tables of words."""
    from clash.report.review_effect import tables

    change = outcome.after(session.n_written).changed
    return [
        {"title": t.title, "columns": t.columns, "rows": t.rows, "notes": t.notes}
        for t in tables(change, str(outcome.folder.path))
    ]


def _conclude(outcome: _Outcome, written: int, *, as_json: bool) -> None:
    """Rebuild the report on the new labels, and tell what they changed."""
    from clash.analysis.serialize import to_dict
    from clash.cli.common import print_json, stdout
    from clash.cli.report import rewrite
    from clash.report.review_effect import tables
    from clash.report.terminal import print_tables

    folder, change = outcome.folder, outcome.after(written)
    rewrite(folder, change.data, change.findings)
    if as_json:
        print_json({"run": str(folder.path), **to_dict(change.changed)})
        return
    print_tables(stdout(), tables(change.changed, str(folder.path)))
    stdout().print(f"\nrun: {folder.path}", style="bold", soft_wrap=True)
