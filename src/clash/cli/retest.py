"""Print how far the runs of a panel agree, after a rerun, its resumption or a comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clash.cli.common import (
    print_json,
    print_line,
    print_screen,
    print_tables,
    print_written,
    terminal_width,
)
from clash.cli.outcome import print_next, print_result, print_warnings, reference, resume_steps

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from clash.cli.options import Output
    from clash.pipeline.finish import RunResult
    from clash.store.folder import RunFolder


def print_reruns(
    parent: RunFolder, results: Sequence[RunResult], output: Output, to: Path | None = None
) -> None:
    """Print how far reruns agree with their run and with those before; the last is the newest.

    A rerun without one verdict agrees with nothing: how it ended is printed instead.
    """
    from clash.pipeline.rerun import reruns

    coverage = results[-1].findings.coverage
    if coverage.n_decided + coverage.n_tied:
        print_retest([parent, *reruns(parent)], output, to, results)
        print_warnings(results[-1], output)
    else:
        print_result(results[-1], output)


def print_retest(
    folders: Sequence[RunFolder],
    output: Output,
    to: Path | None,
    results: Sequence[RunResult] = (),
) -> None:
    """Print how far runs agree, and write it to ``to`` and beside the newest of ``results``."""
    from clash.analysis.retest import retest
    from clash.analysis.rundata import RunData
    from clash.analysis.serialize import to_dict
    from clash.cli.text_comparison import print_text_comparison
    from clash.pipeline.rerun import write_retest
    from clash.report.headline import retest_headline, retest_step
    from clash.report.report_file import write_report
    from clash.report.retest import tables, title_of
    from clash.report.screens import retest_screen

    runs = [RunData.load(folder) for folder in folders]
    # Names, not paths: a folder is read elsewhere too.
    names = [folder.path.name for folder in folders]
    paths = [str(folder.path) for folder in folders]
    if any(run.text_votes is not None for run in runs):
        print_text_comparison(list(zip(names, runs, strict=True)), paths, output, to)
        return
    findings = retest(runs)
    files = []
    if to is not None:
        write_report(to, title_of(names), to_dict(findings), tables(findings), names)
        files.append(str(to))
    if results:
        files += map(str, write_retest(results[-1].folder, folders, findings))
    if output.as_json:
        record = {"run": paths[0], "folders": paths, **to_dict(findings), "written": files}
        cost = sum(result.manifest.cost_usd or 0.0 for result in results)
        print_json({**record, "cost_usd": cost} if results else record)
        return
    if output.quiet:
        print_line(retest_headline(findings).text)
        return
    print_screen(retest_screen(findings, terminal_width()))
    if output.verbose:
        print_tables(tables(findings))
    print_line()
    print_written(files)
    steps = [retest_step(findings, reference(folders[-1].path))]
    print_next([*resume_steps(results[-1]), *steps] if results else steps)
