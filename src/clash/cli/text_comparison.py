from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from clash.cli.common import print_json, print_line, print_tables, print_text, print_written

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from clash.analysis.rundata import RunData
    from clash.cli.options import Output


def print_text_comparison(
    runs: Sequence[tuple[str, RunData]],
    paths: Sequence[str],
    output: Output,
    to: Path | None,
) -> None:
    """Print how far runs agree of which at least one judges each text by itself, every two of them.

    Args:
        runs: by name, in their order.
        paths: of their folders.
        output: one JSON object, the headline alone, or the tables too.
        to: a file for the comparison; null for none.
    """
    from clash.analysis.serialize import to_plain
    from clash.analysis.single_text.comparison import compare_texts
    from clash.report.report_file import write_report
    from clash.report.text_comparison import evidence, headline, tables

    comparisons = [compare_texts(first, second) for first, second in combinations(runs, 2)]
    report, record = tables(comparisons), {"comparisons": to_plain(comparisons)}
    if to is not None:
        write_report(to, "Comparison of runs", record, report, [name for name, _ in runs])
    if output.as_json:
        files = [] if to is None else [str(to)]
        print_json({"run": paths[0], "folders": list(paths), **record, "written": files})
        return
    for comparison in comparisons:
        print_text(headline(comparison), style="bold")
        for sentence in () if output.quiet else evidence(comparison):
            print_text(sentence, style="dim")
    if not output.quiet:
        print_tables(report if output.verbose or len(comparisons) == 1 else [])
    if to is not None:
        print_line()
        print_written([to])
