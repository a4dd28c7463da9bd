from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clash.cli.common import (
    print_json,
    print_line,
    print_screen,
    print_tables,
    print_text,
    print_written,
    terminal_width,
)
from clash.cli.option_groups import grouped
from clash.cli.options import Out, Output, ReportFile, UseLabels
from clash.cli.sources import open_run
from clash.errors import ConfigError

if TYPE_CHECKING:
    from clash.analysis.compare import RunComparison
    from clash.votes.matrix import LabelUse


@grouped
def compare(
    *,
    runs: Annotated[
        list[str],
        typer.Argument(help="Two or more run folders, or run ids under --out.", metavar="RUN RUN…"),
    ],
    out: Out = Path("runs"),
    every_record: Annotated[
        bool,
        typer.Option(
            "--every-record",
            help="Count an item once for each run that has it, as some papers did.",
        ),
    ] = False,
    by_tag: Annotated[
        str | None,
        typer.Option(
            "--by-tag",
            metavar="GLOB,…",
            help="Take runs apart into data sets: items whose first matching tag is the same. One "
            "run suffices then.",
        ),
    ] = None,
    difficulty: Annotated[
        list[str] | None,
        typer.Option(
            "--difficulty",
            metavar="DATA-SET=NUMBER",
            help="How hard a data set is, for the gradient of agreement; default: the share of "
            "split verdicts. Repeat it.",
        ),
    ] = None,
    plots: Annotated[
        Path | None, typer.Option("--plots", help="Folder for the gradient (SVG, PNG).")
    ] = None,
    to: ReportFile = None,
    html: Annotated[
        Path | None, typer.Option("--html", help="Also write the comparison to this page.")
    ] = None,
    browse: Annotated[
        bool, typer.Option("--open", help="Open the comparison in the browser.")
    ] = False,
    use_labels: UseLabels = True,
    output: Output,
) -> None:
    """Compare runs with a significance test, paired where they share items.

    Several runs, or the tags of one, are data sets: what holds over all of them, and how far they
    differ. `clash compare latest --by-tag 'tier:*'`
    """
    from clash.analysis.compare import compare as compare_runs
    from clash.analysis.compare import run_names
    from clash.analysis.compare.data_sets import DataSetRule
    from clash.analysis.rundata import RunData
    from clash.analysis.serialize import to_dict
    from clash.cli.text_comparison import print_text_comparison
    from clash.pipeline.amounts import assignments
    from clash.report.compare import tables
    from clash.report.headline import comparison_headline
    from clash.report.report_file import write_report

    rule = DataSetRule(
        tuple(word for word in (by_tag or "").split(",") if word),
        assignments(difficulty or (), "--difficulty"),
    )
    if len(runs) < 2 and not rule.tags:
        hint = "name a second one, or take it apart: --by-tag '*'"
        raise ConfigError("a comparison needs two runs", field="RUN", hint=hint)
    folders = [open_run(run, out) for run in runs]
    paths, names = [str(folder.path) for folder in folders], run_names(folders)
    read = [RunData.load(folder).by_label_rule(use_labels=use_labels) for folder in folders]
    runs_data, label_uses = [run for run, _ in read], [labels for _, labels in read]
    if any(run.text_votes is not None for run in runs_data):
        _refuse_rankings_only(html, plots, browse=browse, tags=bool(rule.tags))
        print_text_comparison(list(zip(names, runs_data, strict=True)), paths, output, to)
        return
    findings = compare_runs(runs_data, names=names, every_record=every_record, rule=rule)
    record, files = to_dict(findings), [] if to is None else [to]
    if to is not None:
        write_report(to, "Comparison of runs", record, tables(findings), paths)
    if html is not None or browse:
        files.append(_write_page(findings, html, browse=browse))
    if plots is not None:
        files += _save_gradient(findings, plots)
    if output.as_json:
        record["labels"] = [to_dict(labels) for labels in label_uses]
        print_json({"folders": paths, **record, "written": [str(file) for file in files]})
    elif output.quiet:
        print_line(comparison_headline(findings).text)
    else:
        _print(findings, _label_line(names, label_uses, is_used=use_labels), files, output)


def _label_line(names: list[str], uses: list[LabelUse], *, is_used: bool) -> str:
    """How many rows of which run have labels, and what became of them; empty without labels."""
    counts = [
        f"{labels.labelled} of {labels.rows} in {name}"
        for name, labels in zip(names, uses, strict=True)
        if labels.labelled
    ]
    if not counts:
        return ""
    text = ", ".join(counts)
    if is_used:
        return f"labels used: {text} (--no-labels leaves them out)"
    return f"labels: {text}; --no-labels leaves the labels out"


def _print(findings: RunComparison, labels: str, files: list[Path], output: Output) -> None:
    from clash.report.compare import tables
    from clash.report.screens import comparison_screen

    print_screen(comparison_screen(findings, terminal_width()))
    if labels:
        print_text(labels)
    if output.verbose:
        print_tables(tables(findings))
    if files:
        print_line()
        print_written(files)


def _refuse_rankings_only(
    html: Path | None, plots: Path | None, *, browse: bool, tags: bool
) -> None:
    """Refuse what is drawn of rankings alone.

    Raises:
        ConfigError: one of these was asked for.
    """
    options = {"--html": html, "--plots": plots, "--open": browse, "--by-tag": tags}
    for name, value in options.items():
        if value:
            raise ConfigError(
                "is for runs that rank responses; one of these judges each text by itself",
                field=name,
                hint="--to FILE writes the comparison as Markdown or JSON",
            )


def _save_gradient(findings: RunComparison, folder: Path) -> list[Path]:
    """Draw agreement over difficulty.

    Raises:
        ConfigError: no two labelled data sets differ in difficulty.
    """
    from clash.report.compare import gradient_picture
    from clash.report.drawing import save

    across = findings.across
    if across is None or across.gradient is None:
        raise ConfigError(
            "nothing to draw: a gradient needs two labelled data sets of different difficulty",
            field="--plots",
            hint="label more items (clash review RUN), or state --difficulty DATA-SET=NUMBER",
        )
    return save([gradient_picture(across.gradient)], folder)


def _write_page(findings: RunComparison, path: Path | None, *, browse: bool) -> Path:
    """Write the page of a comparison, and open it; without a path in the temporary folder."""
    import tempfile
    import webbrowser

    from clash.report.report_file import write_text
    from clash.view.comparison import ComparisonView
    from clash.view.pages import comparison_page

    if path is None:
        path = Path(tempfile.mkdtemp(prefix="clash-")) / "comparison.html"
    write_text(path, comparison_page(ComparisonView.of(findings)).text)
    if browse:
        webbrowser.open(path.resolve().as_uri())
    return path
