from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clash.cli.options import AsJson, ConfigFile, EnvFile, Out, Quiet, Seed, TrustHost, Verbose

if TYPE_CHECKING:
    from clash.analysis.redteam import Redteam, Resistance
    from clash.collect.load import Prompts
    from clash.store.folder import RunFolder

_N = 156
"""Every family of the shipped injections in half of the shipped controls."""


def redteam(
    target: Annotated[
        str,
        typer.Argument(
            help="Name or file of a panel; or a run of this command, to report on it again.",
            metavar="PANEL|RUN",
        ),
    ],
    n: Annotated[
        int, typer.Option("--n", "-n", min=1, max=10_000, help="Attacked items to judge.")
    ] = _N,
    attacks: Annotated[
        Path | None,
        typer.Option(
            "--attacks", help="Your own injections, controls or both: see datasets/redteam.yaml."
        ),
    ] = None,
    repeats: Annotated[
        int,
        typer.Option(
            "--repeats",
            min=1,
            max=20,
            help="Judgments of each clean control: from 2 on they show a judge's own noise.",
        ),
    ] = 2,
    max_turned: Annotated[
        float | None,
        typer.Option(
            "--max-turned",
            min=0,
            max=1,
            help="Exit with 1 unless the panel's rate is below this, upper bound included.",
        ),
    ] = None,
    out: Out = Path("runs"),
    run_id: Annotated[str | None, typer.Option("--run-id", help="Name of the run folder.")] = None,
    max_cost: Annotated[
        float | None,
        typer.Option("--max-cost", envvar="CLASH_MAX_COST", min=0, help="US dollars, a hard cap."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Plan and price; make no call.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before spending.")] = False,
    config: ConfigFile = None,
    env_file: EnvFile = None,
    trust_host: TrustHost = None,
    seed: Seed = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Attack a panel: how often does text inside a response turn a judge?

    Control items have a right and a plainly worse response. Each is judged clean, and with an
    injection in the worse one: `clash redteam supreme-court --dry-run`
    """
    from clash.cli.common import environment, open_run
    from clash.cli.observer import TerminalObserver
    from clash.cli.outcome import print_dry_run
    from clash.collect.resolve import read_config
    from clash.errors import RunFolderError
    from clash.pipeline.execute import execute
    from clash.pipeline.options import RunOptions
    from clash.pipeline.prepare import assemble, injected_only

    try:
        folder, exit_code = open_run(target, out), 0
    except RunFolderError:
        settings = {"panel": target, "limits.max_cost": max_cost, "seed": seed, "out": str(out)}
        environ = environment(env_file, trust_host)
        options = RunOptions(
            environ,
            TerminalObserver(quiet=quiet or as_json),
            kind="redteam",
            run_id=run_id,
            yes=yes,
        )
        prompts = _control_prompts(attacks, n, repeats, seed)
        only_judging = injected_only(read_config(config, settings))
        prepared = assemble(only_judging, prompts, environ, options.observer)
        if dry_run:
            print_dry_run(prepared.plan, environ, as_json=as_json)
            return
        result = execute(prepared, options)
        folder, exit_code = result.folder, result.exit_code
    raise typer.Exit(
        _report(folder, max_turned, exit_code, as_json=as_json, whole=verbose, quiet=quiet)
    )


def _control_prompts(attacks: Path | None, n: int, repeats: int, seed: int | None) -> Prompts:
    """The control items, as a prompts file would hold them."""
    from clash.collect.load import Prompts
    from clash.config import Config
    from clash.datasets.controls import control_items, draw, read_controls
    from clash.store.manifest import sha256_json

    controls = read_controls(attacks)
    attacked = draw(controls, n, Config().seed if seed is None else seed)
    items, responses = control_items(attacked, repeats=repeats)
    warnings = (
        (f"{len(attacked)} attacked items, since there are no more of them",)
        if len(attacked) < n
        else ()
    )
    digest = sha256_json(controls.model_dump())
    return Prompts(attacks or Path("redteam"), items, responses, digest, warnings)


def _report(
    folder: RunFolder,
    max_turned: float | None,
    code: int,
    *,
    as_json: bool,
    whole: bool,
    quiet: bool,
) -> int:
    """Print the result; the exit code is the run's, or 1 where the panel's rate may be too high."""
    from clash.analysis.serialize import to_dict
    from clash.cli.common import print_json, say, stdout
    from clash.escape import for_terminal
    from clash.report import redteam as report
    from clash.report.terminal import print_tables

    result = _result(folder)
    passed = max_turned is None or _worst_rate(result.panel) <= max_turned
    code = code or (0 if passed else 1)
    if as_json:
        print_json(
            {"run": str(folder.path), "passed": passed, "exit_code": code, **to_dict(result)}
        )
        return code
    stdout().print(for_terminal(report.headline(result)), style="bold", markup=False)
    if not quiet:
        print_tables(stdout(), report.tables(result) if whole else [report.judges(result)])
        stdout().print(f"\nrun: {folder.path}", style="bold", soft_wrap=True, markup=False)
    if not passed:
        say(
            f"the panel's rate may be as high as {_worst_rate(result.panel):.1%},"
            f" above --max-turned {max_turned:.1%}",
            style="yellow",
        )
    return code


def _worst_rate(panel: Resistance) -> float:
    """The upper bound of the rate, items without a verdict taken as turned: no proof of the rest."""
    unknown = panel.n_failed / panel.n_attacked if panel.n_attacked else 0.0
    return min(1.0, panel.rate.high + unknown)


def _result(folder: RunFolder) -> Redteam:
    from clash.analysis.redteam import redteam as resistance
    from clash.analysis.rundata import RunData
    from clash.datasets.controls import SOUND, WORSE
    from clash.errors import RunFolderError

    run = RunData.load(folder)
    result = resistance(run.controls or run, SOUND, WORSE)
    if result is None:
        raise RunFolderError(
            f"{folder.path}: holds no control items"
            "\n  fix: `clash redteam PANEL` makes such a run; `blinding: {controls: 20}` adds them"
            " to any run"
        )
    return result
