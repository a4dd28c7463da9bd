from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clash.cli.common import print_json, print_line, print_tables, print_text, say
from clash.cli.observer import TerminalObserver
from clash.cli.option_groups import grouped
from clash.cli.options import Access, ConfigFile, DryRun, MaxCost, Out, Output, RunId, Seed, Yes
from clash.cli.sources import open_run
from clash.errors import RunFolderError
from clash.pipeline.options import RunOptions

if TYPE_CHECKING:
    from clash.store.folder import RunFolder

_N = 156
"""Every family of the shipped injections in half of the shipped controls."""


@grouped
def redteam(
    *,
    target: Annotated[
        str,
        typer.Argument(
            help="Name or file of a panel, or an earlier run of this command to report on.",
            metavar="PANEL|RUN",
        ),
    ],
    n: Annotated[
        int, typer.Option("--n", "-n", min=1, max=10_000, help="Number of attacked items to judge.")
    ] = _N,
    attacks: Annotated[
        Path | None,
        typer.Option(
            "--attacks",
            help="File with your own injections, controls or both; see datasets/redteam.yaml.",
        ),
    ] = None,
    repeats: Annotated[
        int,
        typer.Option(
            "--repeats",
            min=1,
            max=20,
            help="Judgments of each clean control; 2 or more measure a judge's own noise.",
        ),
    ] = 2,
    max_turned: Annotated[
        float | None,
        typer.Option(
            "--max-turned",
            min=0,
            max=1,
            help="Exit with code 1 unless the upper bound of the panel's rate is below this.",
        ),
    ] = None,
    out: Out = Path("runs"),
    run_id: RunId = None,
    max_cost: MaxCost = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    config: ConfigFile = None,
    access: Access,
    seed: Seed = None,
    output: Output,
) -> None:
    """Attack a panel: how often does text inside a response change a judge's verdict?

    Each control item has a correct and a clearly worse response. It is judged as it is, and with an
    injection in the worse one: `clash redteam supreme-court --dry-run`
    """
    from clash.cli.dry_run import print_dry_run
    from clash.collect.resolve import read_config
    from clash.pipeline.execute import execute
    from clash.pipeline.prepare import assemble, injected_only
    from clash.pipeline.redteam import control_prompts

    try:
        folder, exit_code = open_run(target, out), 0
    except RunFolderError:
        settings = {"panel": target, "limits.max_cost": max_cost, "seed": seed, "out": str(out)}
        environ = access.environ()
        options = RunOptions(
            environ,
            TerminalObserver(quiet=output.is_silent),
            kind="redteam",
            run_id=run_id,
            yes=yes,
        )
        prompts = control_prompts(attacks, n, repeats, seed)
        only_judging = injected_only(read_config(config, settings))
        run = assemble(only_judging, prompts, environ, options.observer)
        if dry_run:
            print_dry_run(run.plan, environ, output)
            return
        result = execute(run, options)
        folder, exit_code = result.folder, result.exit_code
    raise typer.Exit(_report(folder, max_turned, exit_code, output))


def _report(
    folder: RunFolder,
    max_turned: float | None,
    code: int,
    output: Output,
) -> int:
    """Print the result; the exit code is the run's, or 1 where the panel's rate may be too high."""
    from clash.analysis.serialize import to_dict
    from clash.pipeline.redteam import resistance_of, worst_rate
    from clash.report import redteam as report

    result = resistance_of(folder)
    is_passed = max_turned is None or worst_rate(result.panel) <= max_turned
    code = code or (0 if is_passed else 1)
    if output.as_json:
        print_json(
            {"run": str(folder.path), "passed": is_passed, "exit_code": code, **to_dict(result)}
        )
        return code
    print_text(report.headline(result), style="bold")
    if not output.quiet:
        print_tables(report.tables(result) if output.verbose else [report.judges(result)])
        print_line()
        print_line(f"run: {folder.path}", "bold")
    if not is_passed:
        say(
            f"the panel's rate may be as high as {worst_rate(result.panel):.1%},"
            f" above --max-turned {max_turned:.1%}",
            style="yellow",
        )
    return code
