from __future__ import annotations

import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clash.cli.common import print_json, print_line, print_tables
from clash.cli.options import AsJson, Out, Quiet, RunArgument, UseLabels
from clash.cli.sources import open_run
from clash.pipeline.options import DEFAULT_DROP
from clash.version import __version__

if TYPE_CHECKING:
    from clash.pipeline.gate import GateChecks


class OnWhat(StrEnum):
    """The part of an estimate that is compared with a threshold."""

    bound = "bound"
    point = "point"


def gate(
    run: RunArgument,
    least: Annotated[
        list[str] | None,
        typer.Option("--min", help="FIGURE=VALUE: the figure must be at least this."),
    ] = None,
    most: Annotated[
        list[str] | None,
        typer.Option("--max", help="FIGURE=VALUE: the figure must be at most this."),
    ] = None,
    baseline: Annotated[str | None, typer.Option("--baseline", help="Run to compare with.")] = None,
    max_drop: Annotated[
        list[str] | None,
        typer.Option(
            "--max-drop",
            help="FIGURE=VALUE: the figure may fall by at most this from --baseline; default:"
            f" concordance, or unanimity without labels, by {DEFAULT_DROP:g}.",
        ),
    ] = None,
    max_rise: Annotated[
        list[str] | None,
        typer.Option(
            "--max-rise", help="FIGURE=VALUE: the figure may rise by at most this from --baseline."
        ),
    ] = None,
    on: Annotated[
        OnWhat,
        typer.Option("--on", help="Compare the bound of the 95% interval, or the estimate."),
    ] = OnWhat.bound,
    allow_partial: Annotated[
        bool, typer.Option("--allow-partial", help="Let a run that did not complete pass.")
    ] = False,
    junit: Annotated[
        Path | None, typer.Option("--junit", help="Write JUnit XML to this file.")
    ] = None,
    comment: Annotated[
        Path | None,
        typer.Option("--comment", help="Write a comment for the pull request here, as Markdown."),
    ] = None,
    github: Annotated[
        bool | None,
        typer.Option(
            "--github/--no-github",
            help="Write annotations, and a table to $GITHUB_STEP_SUMMARY; default: on in GitHub "
            "Actions.",
        ),
    ] = None,
    show_list: Annotated[
        bool, typer.Option("--list", help="List the figures of this run and exit.")
    ] = False,
    out: Out = Path("runs"),
    use_labels: UseLabels = True,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Check a run against thresholds: exit code 0 if all hold, 1 if one fails.

    `clash gate latest --min concordance=0.80 --max cost=2 --junit gate.xml`
    """
    from clash.analysis.findings import compute_findings, figures
    from clash.analysis.rundata import RunData
    from clash.analysis.serialize import to_dict
    from clash.pipeline.gate import check_run, parse_rules
    from clash.report import gate as report

    folder = open_run(run, out)
    if show_list:
        data, _ = RunData.load(folder).by_label_rule(use_labels=use_labels)
        values = figures(compute_findings(data))
        if as_json:
            listing = {name: to_dict(figure) for name, figure in values.items()}
            print_json({"run": str(folder.path), "figures": listing})
        else:
            print_tables([report.listing(values)])
        return
    result = check_run(
        folder,
        [*parse_rules(least or (), "min"), *parse_rules(most or (), "max")],
        [*parse_rules(max_drop or (), "max-drop"), *parse_rules(max_rise or (), "max-rise")],
        baseline=None if baseline is None else open_run(baseline, out),
        on=on.value,
        allow_partial=allow_partial,
        use_labels=use_labels,
    )
    if junit is not None:
        _write_junit(junit, result, baseline)
    if comment is not None:
        _write_comment(comment, result)
    if github if github is not None else os.environ.get("GITHUB_ACTIONS") == "true":
        _annotate(result, to_stderr=as_json)
    if as_json:
        print_json(result.as_json())
    elif quiet:
        print_line(report.headline(result.run.manifest.run, result.checks))
    else:
        print_tables([report.table(result.run.manifest.run, result.checks, result.labels)])
    raise typer.Exit(0 if result.passed else 1)


def _write_junit(path: Path, result: GateChecks, baseline: str | None) -> None:
    from clash.report import gate as report
    from clash.report.report_file import write_text

    manifest = result.run.manifest
    properties = {
        "clash": __version__,
        "kind": manifest.kind,
        "panel": str(manifest.panel["name"]),
        "seal": manifest.seal or "",
        **({"baseline": baseline} if baseline else {}),
    }
    time = manifest.ended or manifest.started
    write_text(path, report.junit(manifest.run, result.checks, time=time, properties=properties))


def _write_comment(path: Path, result: GateChecks) -> None:
    from clash.analysis.explanation.disagreements import telling_disagreements
    from clash.analysis.findings import compute_findings
    from clash.report.comment import MOST_DISAGREEMENTS, GateComment, actions_link, render_comment
    from clash.report.report_file import write_text

    comment = GateComment(
        result.run.manifest.run,
        compute_findings(result.run),
        result.checks,
        telling_disagreements(result.run, MOST_DISAGREEMENTS),
        actions_link(os.environ),
    )
    write_text(path, render_comment(comment))


def _annotate(result: GateChecks, *, to_stderr: bool) -> None:
    from clash.report import gate as report

    run = result.run.manifest.run
    for line in report.github_annotations(run, result.checks):
        typer.echo(line, file=sys.stderr if to_stderr else sys.stdout)
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if summary:
        with Path(summary).open("a", encoding="utf-8") as file:
            file.write(report.github_summary(run, result.checks) + "\n")
