from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clash.cli.common import print_json, print_line, print_tables, say
from clash.cli.observer import TerminalObserver
from clash.cli.options import AsJson, Out, Quiet, RunArgument, Seed
from clash.cli.sources import open_run
from clash.errors import ConfigError, InputError, RunFolderError

if TYPE_CHECKING:
    from clash.pipeline.review import Review
    from clash.review.review_server import ReviewServer
    from clash.review.session import Session
    from clash.review.tasks import Order, ReviewTask
    from clash.store.folder import RunFolder


def review(
    run: RunArgument,
    unsure: Annotated[
        bool,
        typer.Option("--unsure", help="Only items on which the panel was split, unsure or silent."),
    ] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Every item, starting with those that need a person most.")
    ] = False,
    sample: Annotated[
        int | None,
        typer.Option(
            "--sample", min=1, help="This many items, drawn with equal chances from all of them."
        ),
    ] = None,
    items: Annotated[
        Path | None,
        typer.Option(
            "--items",
            help="Only the items of this file, one id a line, as `clash aggregate --range` writes it.",
        ),
    ] = None,
    annotator: Annotated[
        str,
        typer.Option(
            "--annotator", help="Name to record decisions under; the page asks if not given."
        ),
    ] = "",
    reveal: Annotated[
        bool,
        typer.Option(
            "--reveal/--no-reveal",
            help="Show the authors and the panel's verdict after each decision.",
        ),
    ] = True,
    browse: Annotated[bool, typer.Option("--open/--no-open", help="Open the browser.")] = True,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Port to listen on; 0 picks a free one.")
    ] = 0,
    export: Annotated[
        Path | None,
        typer.Option(
            "--export-static", help="Write a page that works offline and saves decisions to a file."
        ),
    ] = None,
    back: Annotated[
        Path | None, typer.Option("--import", help="Import the file that such a page saved.")
    ] = None,
    out: Out = Path("runs"),
    seed: Seed = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Let people judge items side by side, blinded, until the decision stands.

    Items are drawn at random, likelier where the panel is unsure, and weighted by their chances
    afterwards. Decisions land in labels.jsonl at once; the report is rebuilt when the session ends.
    """
    from clash.analysis.rundata import RunData
    from clash.pipeline.review import (
        Review,
        import_decisions,
        read_item_list,
        why_decision_stands,
    )
    from clash.review.session import Session
    from clash.review.tasks import SEED, named_tasks, review_tasks

    if unsure + everything + (sample is not None) + (items is not None) > 1:
        raise ConfigError(
            "unsure items, all, a sample, or a list",
            field="--sample" if sample is not None else "--items",
            hint="give one of --unsure, --all, --sample and --items",
        )
    folder = open_run(run, out)
    data = RunData.load(folder)
    if data.manifest.seal is None:
        raise RunFolderError(
            f"{folder.path}: the run has not ended\n  fix: `clash resume {folder.path}`"
        )
    order: Order = "all" if everything else "unsure" if unsure else "drawn"
    tasks = review_tasks(data, order, seed=SEED if seed is None else seed, sample=sample)
    if items is not None:
        tasks = named_tasks(data, read_item_list(items))
    if export is not None:
        _export(folder, tasks, export, annotator, as_json=as_json)
        return
    effects = Review.of(folder, data)
    if back is not None:
        decisions = import_decisions(folder, data, back)
    else:
        is_endless = order == "drawn" and sample is None and items is None
        stop = partial(why_decision_stands, data, names=reveal) if is_endless else None
        with Session(folder, data, tasks, reveal=reveal, stop=stop) as session:
            if tasks:
                ending = ", drawn until the decision stands" if is_endless else " to decide"
                server = _server(session, effects, annotator, port)
                _serve(server, f"{len(tasks)} items{ending}", browse=browse, quiet=quiet)
            else:
                say(
                    "the panel was unanimous and confident on every item; without --unsure, items "
                    "are drawn from all"
                )
            decisions = session.n_written
    _conclude(effects, decisions, as_json=as_json)


def _export(
    folder: RunFolder, tasks: list[ReviewTask], to: Path, annotator: str, *, as_json: bool
) -> None:
    from clash.pipeline.review import page_secret
    from clash.review.page import static

    try:
        to.write_text(
            static(folder.path.name, tasks, page_secret(folder), annotator).text, encoding="utf-8"
        )
    except OSError as error:
        raise InputError(f"may not be written: {error.strerror}", path=to) from None
    if as_json:
        print_json({"run": str(folder.path), "written": str(to), "items": len(tasks)})
        return
    print_line(f"wrote {to} ({len(tasks)} items, no names in it)")
    print_line(f"then: clash review {folder.path} --import FILE")


def _server(session: Session, review: Review, annotator: str, port: int) -> ReviewServer:
    from clash.review.page import live
    from clash.review.review_server import ReviewServer

    summary = partial(_effect_tables, review, session)
    return ReviewServer(session, live(review.folder.path.name, annotator), port, summary)


def _serve(server: ReviewServer, start: str, *, browse: bool, quiet: bool) -> None:
    """Serve the page until someone finishes, on the page or in the terminal."""
    import webbrowser

    with server:
        say(f"{start}: {server.url}", style="bold")
        if not quiet:
            say("Finish on the page or Ctrl-C here ends it and rebuilds the report")
        if browse:
            webbrowser.open(server.url)
        try:
            server.finish_event.wait()
        except KeyboardInterrupt:
            say("ending")


def _effect_tables(review: Review, session: Session) -> list[dict[str, Any]]:
    """What the page shows at the end, as tables of words."""
    from clash.report.review_effect import tables

    change = review.effect(session.n_written).change
    return [
        {"title": t.title, "columns": t.columns, "rows": t.rows, "notes": t.notes}
        for t in tables(change, str(review.folder.path))
    ]


def _conclude(review: Review, decisions: int, *, as_json: bool) -> None:
    """Write the report on the new labels, and print what they changed."""
    from clash.analysis.serialize import to_dict
    from clash.pipeline.finish import rewrite_report
    from clash.report.review_effect import tables

    folder, effect = review.folder, review.effect(decisions)
    rewrite_report(folder, effect.findings, effect.run, TerminalObserver(quiet=False))
    if as_json:
        print_json({"run": str(folder.path), **to_dict(effect.change)})
        return
    print_tables(tables(effect.change, str(folder.path)))
    print_line(f"\nrun: {folder.path}", "bold")
