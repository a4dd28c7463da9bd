"""The commands of ``clash``, and how an error leaves it."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

import clash
from clash.cli import (
    aggregate,
    datasets,
    demo,
    doctor,
    evaluate,
    export,
    init,
    report,
    resume,
    runs,
    simulate,
    verify,
)
from clash.errors import ClashError

if TYPE_CHECKING:
    from collections.abc import Sequence

app = typer.Typer(
    name="clash",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Which model is better on my prompts, how sure may I be, and can I defend it?"
    " Blind judging by a panel of models, aggregation with intervals, and a folder that proves it.",
    epilog="Runs land in runs/. Nothing is sent anywhere but to the providers you name.",
)


def _version(shown: bool) -> None:
    if shown:
        typer.echo(f"clash {clash.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None: ...


_START, _RUNS, _STATISTICS = "Start", "Runs", "Statistics"
app.command("demo", rich_help_panel=_START)(demo.demo)
app.command("init", rich_help_panel=_START)(init.init)
app.command("doctor", rich_help_panel=_START)(doctor.doctor)
app.command("eval", rich_help_panel=_RUNS)(evaluate.evaluate)
app.command("resume", rich_help_panel=_RUNS)(resume.resume)
app.command("report", rich_help_panel=_RUNS)(report.report)
app.command("runs", rich_help_panel=_RUNS)(runs.runs)
app.command("verify", rich_help_panel=_RUNS)(verify.verify)
app.command("export", rich_help_panel=_RUNS)(export.export)
app.command("aggregate", rich_help_panel=_STATISTICS)(aggregate.aggregate)
app.command("simulate", rich_help_panel=_STATISTICS)(simulate.simulate)
app.add_typer(datasets.app, rich_help_panel="Data")


def run(arguments: Sequence[str]) -> int:
    """Run a command line; errors of ours become a message and an exit code, not a traceback.

    Returns:
        0 done, 1 a gate failed, 2 usage or input, 3 incomplete, 4 refused by a provider,
        5 an audit failed, 130 interrupted.
    """
    try:
        app(list(arguments))
    except SystemExit as end:  # Typer ends this way, well or not
        return end.code if isinstance(end.code, int) else 0
    except ClashError as error:
        _complain(str(error), error.exit_code, as_json="--json" in arguments)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader left (`clash runs | head`): not our error, and there is nothing to add.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _complain(message: str, code: int, *, as_json: bool) -> None:
    if as_json:
        error = {"message": message, "exit_code": code}
        typer.echo(json.dumps({"clash": clash.__version__, "error": error}, ensure_ascii=False))
    typer.secho("error: ", fg="red", bold=True, err=True, nl=False)
    typer.echo(message, err=True)
