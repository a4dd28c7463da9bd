from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clash.cli.common import print_json, print_line, say
from clash.cli.observer import TerminalObserver
from clash.cli.option_groups import grouped
from clash.cli.options import Out, Output, RunsArgument, UseLabels
from clash.cli.sources import open_runs
from clash.errors import ConfigError, RunFolderError
from clash.extras import require
from clash.files import run_files
from clash.wording import plural

if TYPE_CHECKING:
    from clash.analysis.findings import Findings
    from clash.analysis.rundata import RunData
    from clash.report.headline import NextStep
    from clash.store.folder import RunFolder
    from clash.store.manifest import Manifest
    from clash.votes.matrix import LabelUse


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
            "signed, or its folder cannot be written to.",
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
    from clash.analysis.walk import walk
    from clash.cli.outcome import print_findings, print_item
    from clash.pipeline.finish import rewrite_report
    from clash.report.card import check_card_path, verdict_card, write_card

    if plots is not None:
        require("matplotlib", field="--plots")
    for path in card or ():
        check_card_path(path)
    if write or browse:
        _check_whole(runs, "--write" if write else "--open", use_labels, drop_repeats)
    is_whole = len(runs) == 1 and use_labels and not drop_repeats
    folder = open_runs(runs, out)
    data, labels = RunData.load(folder).by_label_rule(use_labels=use_labels)
    if item is not None:
        print_item(folder.path, walk(data, item), output)
        return
    data = _without_repeats(data) if drop_repeats else data
    findings = compute_findings(data)
    if _is_rewritten(folder, data.manifest, write if is_whole else False):
        rewrite_report(folder, findings, data, TerminalObserver(quiet=False))
    paths = [] if plots is None else _save_pictures(findings, data, folder, plots)
    for path in card or ():
        write_card(verdict_card(findings, data.manifest.prompts), path, "dark" if dark else "light")
    page = _browse(folder) if browse else None
    if output.as_json:
        record = _record(findings, labels, folder, runs)
        record |= {} if plots is None else {"plots": [str(path) for path in paths]}
        record |= {"card": [str(path) for path in card]} if card else {}
        print_json(record)
        return
    if len(runs) > 1:
        first, steps = open_runs(runs[:1], out), _towards_one_run(folder, runs)
        print_findings(findings, first.path, None, output, steps=steps, has_page=False)
    else:
        print_findings(findings, folder.path, data.manifest.wall_s, output)
    is_worth_a_line = labels.n_unknown_items or (labels.labelled and not use_labels)
    if is_worth_a_line and not output.quiet:
        print_line(f"labels: {labels.sentence}")
    if paths:
        print_line(f"wrote {plural(len(paths), 'picture')} to {plots}")
    for path in card or ():
        print_line(f"wrote {path}")
    if page is not None:
        print_line(f"opened {page}")


def _record(
    findings: Findings, labels: LabelUse, folder: RunFolder, runs: list[str]
) -> dict[str, Any]:
    """What ``--json`` prints of the report itself."""
    from clash.analysis.serialize import to_dict
    from clash.report.headline import run_headline

    record = {**to_dict(findings), "headline": run_headline(findings).as_json()}
    record |= {"labels": to_dict(labels), "run": str(folder.path)}
    return {**record, "runs": runs} if len(runs) > 1 else record


def _check_whole(runs: list[str], field: str, use_labels: bool, drop_repeats: bool) -> None:
    """Refuse to write or open a report that is not of one whole run as it is.

    Raises:
        ConfigError: it is of several runs, or leaves out labels or items.
    """
    hint = "leave --write and --open out"
    if len(runs) > 1:
        merge = "`clash merge` joins the shards of a run into one folder"
        raise ConfigError("several runs have no report of their own", field=field, hint=merge)
    if not use_labels:
        text = "the written report has the labels that are there"
        raise ConfigError(text, field="--no-labels", hint=hint)
    if drop_repeats:
        text = "the written report is of all items, repeats included"
        raise ConfigError(text, field="--drop-repeats", hint=hint)


def _without_repeats(data: RunData) -> RunData:
    """The run without the items that repeat another one."""
    from clash.datasets.dataset import exact_repeats, texts_by_item

    repeats = exact_repeats(data.items, texts_by_item(data.items, data.responses))
    return data.only({i.item_id for i in data.items if i.item_id not in repeats})


def _save_pictures(findings: Findings, data: RunData, folder: RunFolder, to: Path) -> list[Path]:
    from clash.report.drawing import save
    from clash.report.html.report_page import pictures

    return save(pictures(findings, data, folder.path), to)


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
    longer those that were sealed: a new seal would hide it. A folder that cannot be written to can
    be read all the same.
    """
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
    if not os.access(folder.path, os.W_OK):
        say("the folder cannot be written to, so its report files are left as they are")
        return False
    return True
