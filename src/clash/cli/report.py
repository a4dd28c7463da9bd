from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clash.cli.option_groups import grouped
from clash.cli.options import Out, Output, RunsArgument, UseLabels

if TYPE_CHECKING:
    from clash.pages.tokens import Theme
    from clash.report.headline import NextStep
    from clash.store.folder import RunFolder
    from clash.store.manifest import Manifest


@grouped
def report(
    *,
    runs: RunsArgument,
    out: Out = Path("runs"),
    item: Annotated[
        str | None,
        typer.Option("--item", help="Show this item step by step, from prompt to verdict."),
    ] = None,
    write: Annotated[
        bool | None,
        typer.Option(
            "--write/--no-write",
            help="Rebuild report.json, report.md and report.html; default: unless the run is "
            "signed.",
            show_default=False,
        ),
    ] = None,
    drop_repeats: Annotated[
        bool,
        typer.Option(
            "--drop-repeats",
            help="Leave out items that repeat another one, prompt and responses alike; writes no"
            " report.",
        ),
    ] = False,
    plots: Annotated[
        Path | None,
        typer.Option("--plots", help="Write every chart as SVG and PNG to this folder."),
    ] = None,
    card: Annotated[
        list[Path] | None,
        typer.Option("--card", help="Write the verdict card, 1200 x 630: .svg or .png."),
    ] = None,
    dark: Annotated[bool, typer.Option("--dark", help="The card on a dark ground.")] = False,
    browse: Annotated[
        bool, typer.Option("--open", help="Open report.html in the browser.")
    ] = False,
    use_labels: UseLabels = True,
    output: Output,
) -> None:
    """Show the report of a run, recomputed from its records, or one item step by step.

    Several runs with the same settings, such as the shards of one, are reported as one; nothing is
    written then.
    """
    from clash.analysis.findings import compute_findings
    from clash.analysis.rundata import RunData
    from clash.analysis.serialize import to_dict
    from clash.analysis.walk import walk
    from clash.cli.common import print_json, stdout
    from clash.cli.observer import TerminalObserver
    from clash.cli.outcome import print_findings
    from clash.cli.sources import open_runs
    from clash.datasets.dataset import exact_repeats, texts_by_item
    from clash.errors import ConfigError
    from clash.extras import require
    from clash.pipeline.finish import rewrite_report
    from clash.report.card import check_card_path, verdict_card, write_card
    from clash.report.headline import run_headline
    from clash.report.item_walk import print_walk
    from clash.report.terminal import print_line
    from clash.wording import plural

    if plots is not None:
        require("matplotlib", field="--plots")
    for path in card or ():
        check_card_path(path)
    folder = open_runs(runs, out)
    if len(runs) > 1:
        _check_reading(write=write, browse=browse)
        write = False
    data, labels = RunData.load(folder).by_label_rule(use_labels=use_labels)
    if item is not None:
        steps = walk(data, item)
        if output.as_json:
            print_json({"run": str(folder.path), "item": to_dict(steps)})
        else:
            print_walk(stdout(), steps)
        return
    if not use_labels:
        if write or browse:
            raise ConfigError(
                "the written report has the labels that are there",
                field="--no-labels",
                hint="leave --write and --open out",
            )
        write = False
    if drop_repeats and (write or browse):
        raise ConfigError(
            "the written report is of all items, repeats included",
            field="--drop-repeats",
            hint="leave --write and --open out",
        )
    if drop_repeats:
        repeats = exact_repeats(data.items, texts_by_item(data.items, data.responses))
        data = data.only({i.item_id for i in data.items if i.item_id not in repeats})
        write = False
    findings = compute_findings(data)
    if _is_rewritten(folder, data.manifest, write):
        rewrite_report(folder, findings, data, TerminalObserver(quiet=False))
    paths = []
    if plots is not None:
        from clash.report import drawing
        from clash.report.html.report_page import pictures

        paths = drawing.save(pictures(findings, data, folder.path), plots)
    theme: Theme = "dark" if dark else "light"
    for path in card or ():
        write_card(verdict_card(findings, data.manifest.prompts), path, theme)
    page = _browse(folder) if browse else None
    if output.as_json:
        plot_paths = {} if plots is None else {"plots": [str(path) for path in paths]}
        if card:
            plot_paths["card"] = [str(path) for path in card]
        runs_read = {"runs": runs} if len(runs) > 1 else {}
        record = {**to_dict(findings), "headline": run_headline(findings).as_json()}
        record["labels"] = to_dict(labels)
        print_json({**record, "run": str(folder.path), **runs_read, **plot_paths})
        return
    if len(runs) > 1:
        first = open_runs(runs[:1], out)
        joining = _towards_one_run(folder, runs)
        print_findings(findings, first.path, None, output, steps=joining, has_page=False)
    else:
        wall_s = data.manifest.wall_s
        print_findings(findings, folder.path, wall_s, output)
    if labels.labelled and not use_labels and not output.quiet:
        print_line(stdout(), f"labels: {labels.sentence}")
    if paths:
        print_line(stdout(), f"wrote {plural(len(paths), 'picture')} to {plots}")
    for path in card or ():
        print_line(stdout(), f"wrote {path}")
    if page is not None:
        print_line(stdout(), f"opened {page}")


def _check_reading(*, write: bool | None, browse: bool) -> None:
    """Refuse to write or open the page of several runs: they have none.

    Raises:
        ConfigError: that was asked for.
    """
    from clash.errors import ConfigError

    if write or browse:
        raise ConfigError(
            "several runs have no report of their own",
            field="--write" if write else "--open",
            hint="`clash merge` joins the shards of a run into one folder",
        )


def _towards_one_run(group: RunFolder, runs: list[str]) -> list[NextStep]:
    """How shards become one run; nothing where these are whole runs, which are not merged."""
    from clash.report.headline import NextStep
    from clash.store.group import RunGroup
    from clash.store.manifest import missing_shards, name_shards

    folders = group.folders if isinstance(group, RunGroup) else ()
    shards = [shard for folder in folders if (shard := folder.manifest().shard) is not None]
    if not shards or len(shards) < len(folders):
        return []
    missing, of = missing_shards(shards), shards[0].of
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        purpose = f"{name_shards(missing, of)} {verb} missing"
        kind = folders[0].manifest().kind
        return [NextStep(f"clash {kind} … --shard {missing[0]}/{of}", purpose)]
    return [NextStep(f"clash merge {shlex.join(runs)}", "join shards into one run")]


def _browse(folder: RunFolder) -> Path:
    """Open the page; where there is no browser its address, which is printed, is enough.

    Raises:
        RunFolderError: the run has no page, for it has not ended.
    """
    import webbrowser

    from clash.errors import RunFolderError
    from clash.files import run_files
    from clash.store import layout

    path = folder.path.resolve() / layout.REPORT_HTML
    if not run_files.is_file(path):
        raise RunFolderError(
            f"{path}: is not there\n  fix: `clash resume {folder.path}`, or drop --no-write"
        )
    webbrowser.open(path.as_uri())
    return path


def _is_rewritten(folder: RunFolder, manifest: Manifest, write: bool | None) -> bool:
    """Whether the files of the report are written.

    Unless told to, not where a signature holds for what is there, nor where the records are no
    longer those that were sealed: a new seal would hide it.
    """
    from clash.cli.common import say
    from clash.files import run_files
    from clash.store import layout
    from clash.store.audit import changes_since_seal
    from clash.store.group import RunGroup

    if isinstance(folder, RunGroup):
        return False
    if write is True or manifest.seal is None:
        return manifest.seal is not None
    changes = changes_since_seal(folder)
    records = [change for name, change in changes.items() if name not in layout.DERIVED_FILES]
    for change in changes.values() if write is False else records:
        say(f"warning: {change}", "yellow")
    if write is False:
        return False
    if records:
        say(
            "the report is of the files as they are, and none is written: --write does;"
            f" `clash verify {folder.path}` makes every check"
        )
        return False
    if run_files.is_file(folder.path / layout.SIGNATURE):
        say("the run is signed, so its report files are left as they are: --write replaces them")
        return False
    return True
