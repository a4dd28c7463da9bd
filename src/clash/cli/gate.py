from __future__ import annotations

import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clash.cli.options import AsJson, Out, RunArgument

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clash.analysis.figures import Figure
    from clash.analysis.gate import GateCheck, ThresholdRule, Way
    from clash.analysis.rundata import RunData


class OnWhat(StrEnum):
    """What of an estimate is held against a threshold."""

    bound = "bound"
    point = "point"


_DEFAULT_DROP = 0.05


def gate(
    run: RunArgument,
    least: Annotated[
        list[str] | None, typer.Option("--min", help="FIGURE=VALUE: at least that.")
    ] = None,
    most: Annotated[
        list[str] | None, typer.Option("--max", help="FIGURE=VALUE: at most that.")
    ] = None,
    baseline: Annotated[
        str | None, typer.Option("--baseline", help="A run that this one must not fall behind.")
    ] = None,
    max_drop: Annotated[
        list[str] | None,
        typer.Option(
            "--max-drop",
            help="FIGURE=VALUE: falls by no more than that against --baseline; default:"
            f" concordance (unanimity without labels) by {_DEFAULT_DROP:g}.",
        ),
    ] = None,
    max_rise: Annotated[
        list[str] | None,
        typer.Option("--max-rise", help="FIGURE=VALUE: rises by no more than that."),
    ] = None,
    on: Annotated[
        OnWhat,
        typer.Option("--on", help="Hold the bound of the 95% interval to it, or the estimate."),
    ] = OnWhat.bound,
    allow_partial: Annotated[
        bool, typer.Option("--allow-partial", help="A run that did not complete may pass too.")
    ] = False,
    junit: Annotated[Path | None, typer.Option("--junit", help="Write JUnit XML here.")] = None,
    github: Annotated[
        bool | None,
        typer.Option(
            "--github/--no-github",
            help="Annotations, and a table in $GITHUB_STEP_SUMMARY; default: in GitHub Actions.",
        ),
    ] = None,
    show_list: Annotated[
        bool, typer.Option("--list", help="List the figures of this run and stop.")
    ] = False,
    out: Out = Path("runs"),
    as_json: AsJson = False,
) -> None:
    """Hold a run to thresholds: exit code 0 where all hold, 1 where one fails.

    `clash gate latest --min concordance=0.80 --max cost=2 --junit gate.xml`
    """
    from clash.analysis import gate as gates
    from clash.analysis.figures import figures
    from clash.analysis.findings import compute_findings
    from clash.analysis.rundata import RunData
    from clash.analysis.serialize import to_dict
    from clash.cli.common import open_run, print_json, stdout
    from clash.report import gate as report
    from clash.report.terminal import print_table

    folder = open_run(run, out)
    data = RunData.load(folder)
    now = figures(compute_findings(data))
    if show_list:
        if as_json:
            listed = {name: to_dict(figure) for name, figure in now.items()}
            print_json({"run": str(folder.path), "figures": listed})
        else:
            print_table(stdout(), report.listing(now))
        return
    rules = [*_rules(least, "min"), *_rules(most, "max")]
    changes = [*_rules(max_drop, "max-drop"), *_rules(max_rise, "max-rise")]
    _usable(rules, changes, baseline)
    checked = [] if allow_partial else [gates.complete(data.manifest.status)]
    checked += gates.check(rules, now, on.value)
    if baseline is not None:
        checked += _against(data, RunData.load(open_run(baseline, out)), now, changes, on)
    passed = all(line.passed for line in checked)
    name = data.manifest.run
    if junit is not None:
        _write_junit(junit, data, checked, baseline)
    if github if github is not None else os.environ.get("GITHUB_ACTIONS") == "true":
        _annotate(name, checked, to_stderr=as_json)
    if as_json:
        lines = [to_dict(line) for line in checked]
        print_json({"run": str(folder.path), "passed": passed, "on": on.value, "rules": lines})
    else:
        print_table(stdout(), report.table(name, checked))
    raise typer.Exit(0 if passed else 1)


def _rules(given: Sequence[str] | None, way: Way) -> list[ThresholdRule]:
    from clash.analysis.gate import ThresholdRule
    from clash.errors import ConfigError

    made = []
    for text in given or ():
        name, equals, value = text.rpartition("=")
        try:
            limit = float(value)
        except ValueError:
            limit = float("nan")
        if not equals or not name or limit != limit:
            raise ConfigError(
                f"cannot be read: {text!r}", field=f"--{way}", hint="FIGURE=VALUE, concordance=0.8"
            )
        made.append(ThresholdRule(name.strip(), way, limit))
    return made


def _usable(
    rules: Sequence[ThresholdRule], changes: Sequence[ThresholdRule], baseline: str | None
) -> None:
    from clash.errors import ConfigError

    if not rules and baseline is None:
        raise ConfigError(
            "no rule was given, so nothing could fail",
            field="--min",
            hint="--min concordance=0.8, --max cost=2, or --baseline RUN; --list names the figures",
        )
    if changes and baseline is None:
        raise ConfigError("against which run?", field="--max-drop", hint="--baseline RUN")


def _against(
    run: RunData,
    baseline: RunData,
    now: Mapping[str, Figure],
    changes: Sequence[ThresholdRule],
    on: OnWhat,
) -> list[GateCheck]:
    from clash.analysis import gate as gates
    from clash.analysis.figures import figures
    from clash.analysis.findings import compute_findings

    before = figures(compute_findings(baseline))
    found = gates.figure_changes(run, baseline, now, before)
    name = "concordance" if "concordance" in found else "unanimity"
    rules = changes or [gates.ThresholdRule(name, "max-drop", _DEFAULT_DROP)]
    return gates.check_changes(rules, found, on.value)


def _write_junit(
    path: Path, run: RunData, checked: Sequence[GateCheck], baseline: str | None
) -> None:
    from clash.report import gate as report
    from clash.version import __version__

    manifest = run.manifest
    about = {
        "clash": __version__,
        "kind": manifest.kind,
        "panel": str(manifest.panel["name"]),
        "seal": manifest.seal or "",
        **({"baseline": baseline} if baseline else {}),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    ended = manifest.ended or manifest.started
    text = report.junit(manifest.run, checked, time=ended, properties=about)
    path.write_text(text, encoding="utf-8", newline="\n")


def _annotate(run: str, checked: Sequence[GateCheck], *, to_stderr: bool) -> None:
    from clash.report import gate as report

    for line in report.github_annotations(run, checked):
        typer.echo(line, file=sys.stderr if to_stderr else sys.stdout)
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if summary:
        with Path(summary).open("a", encoding="utf-8") as file:
            file.write(report.github_summary(run, checked) + "\n")
