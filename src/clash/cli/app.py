"""The commands of ``clash``, and how an error leaves it."""

from __future__ import annotations

from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer.exceptions import TyperException

from clash.cli import (
    aggregate,
    audit,
    calibrate,
    choose,
    compare,
    datasets,
    demo,
    dependence,
    diagnose,
    doctor,
    evaluate,
    explain,
    export,
    favouritism,
    gate,
    init,
    mcp,
    merge,
    power,
    prereg,
    query,
    redteam,
    report,
    rerun,
    resume,
    review,
    runs,
    schema,
    seal,
    simulate,
    study,
    trust,
    validate,
    variance,
    verify,
    view,
)
from clash.cli.common import print_json, stderr
from clash.cli.plain_help import Command
from clash.cli.streams import guard_streams
from clash.errors import (
    CONTRADICTIONS,
    ClashError,
    ConfigError,
    InputError,
    RunFolderError,
    contradiction,
)
from clash.escape import for_terminal
from clash.files import run_files
from clash.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_FIX = "\n  fix: "
"""What stands between the problem and its fix in the text of an error."""

app = typer.Typer(
    name="clash",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Which model is better on my prompts, how confident can I be, and can I defend it? "
    "Blind judging by a panel of models, aggregation with intervals, and a folder that "
    "proves it.",
    epilog="Runs land in runs/. Nothing is sent anywhere but to the providers you name.",
)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"clash {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None: ...


_START, _RUNS, _STATISTICS = "Start", "Runs", "Statistics"
_command = partial(app.command, cls=Command)
_command("demo", rich_help_panel=_START)(demo.demo)
_command("init", rich_help_panel=_START)(init.init)
_command("doctor", rich_help_panel=_START)(doctor.doctor)
_command("schema", rich_help_panel=_START)(schema.schema)
_command("trust", rich_help_panel=_START)(trust.trust)
_command("eval", rich_help_panel=_RUNS)(evaluate.evaluate)
_command("validate", rich_help_panel=_RUNS)(validate.validate)
_command("rerun", rich_help_panel=_RUNS)(rerun.rerun)
_command("variance", rich_help_panel=_RUNS)(variance.variance)
_command("favouritism", rich_help_panel=_RUNS)(favouritism.favouritism)
_command("redteam", rich_help_panel=_RUNS)(redteam.redteam)
_command("resume", rich_help_panel=_RUNS)(resume.resume)
_command("merge", rich_help_panel=_RUNS)(merge.merge)
_command("report", rich_help_panel=_RUNS)(report.report)
_command("explain", rich_help_panel=_RUNS)(explain.explain)
_command("review", rich_help_panel=_RUNS)(review.review)
_command("compare", rich_help_panel=_RUNS)(compare.compare)
_command("choose", rich_help_panel=_RUNS)(choose.choose)
_command("gate", rich_help_panel=_RUNS)(gate.gate)
_command("runs", rich_help_panel=_RUNS)(runs.runs)
_command("view", rich_help_panel=_RUNS)(view.view)
_command("verify", rich_help_panel=_RUNS)(verify.verify)
_command("seal", rich_help_panel=_RUNS)(seal.seal)
_command("export", rich_help_panel=_RUNS)(export.export)
_command("query", rich_help_panel=_RUNS)(query.query)
_command("mcp", rich_help_panel=_RUNS)(mcp.mcp)
_command("aggregate", rich_help_panel=_STATISTICS)(aggregate.aggregate)
_command("dependence", rich_help_panel=_STATISTICS)(dependence.dependence)
_command("diagnose", rich_help_panel=_STATISTICS)(diagnose.diagnose)
_command("prereg", rich_help_panel=_STATISTICS)(prereg.prereg)
_command("power", rich_help_panel=_STATISTICS)(power.power)
_command("calibrate", rich_help_panel=_STATISTICS)(calibrate.calibrate)
_command("audit", rich_help_panel=_STATISTICS)(audit.audit)
_command("simulate", rich_help_panel=_STATISTICS)(simulate.simulate)
app.add_typer(study.app, rich_help_panel=_STATISTICS)
app.add_typer(datasets.app, rich_help_panel="Data")


@cache
def _commands() -> Callable[..., object]:
    """The tree of commands, made once: it takes longer than many a command."""
    return typer.main.get_command(app)


def run(arguments: Sequence[str]) -> int:
    """Run a command line; errors of ours become a message and an exit code, not a traceback.

    Returns:
        0 done, 1 a gate failed, 2 usage or input, 3 incomplete, 4 refused by a provider,
        5 an audit failed, 130 interrupted.
    """
    with guard_streams():
        return _run(arguments)


def _run(arguments: Sequence[str]) -> int:
    try:
        # Not standalone: that mode drops the exit code that a command returns.
        code = _commands()(list(arguments), prog_name="clash", standalone_mode=False)
    except ClashError as error:
        _print_error(str(error), error.exit_code, as_json="--json" in arguments)
        return error.exit_code
    except TyperException as error:
        return _usage_error(error, arguments)
    except OSError as error:
        _print_error(_file_error(error), ConfigError.exit_code, as_json="--json" in arguments)
        return ConfigError.exit_code
    except (typer.Abort, KeyboardInterrupt):
        return 130
    except (RecursionError, MemoryError, UnicodeError) as error:
        _print_error(_input_error(error), InputError.exit_code, as_json="--json" in arguments)
        return InputError.exit_code
    except CONTRADICTIONS as error:
        folder_error = _folder_error(error, arguments)
        if folder_error is None:
            raise
        _print_error(str(folder_error), folder_error.exit_code, as_json="--json" in arguments)
        return folder_error.exit_code
    return code if isinstance(code, int) else 0


def _folder_error(error: Exception, arguments: Sequence[str]) -> RunFolderError | None:
    """The error of the run folder that a command line names; null where it names none.

    Without such a folder the error is a bug of ours, and its traceback is wanted.
    """
    # What follows --run-id is a run that the command itself has made, by now.
    words = [word for before, word in pairwise(["", *arguments]) if before != "--run-id"]
    run = next((word for word in words if _is_run(word, arguments)), None)
    return None if run is None else contradiction([run], error)


def _is_run(word: str, arguments: Sequence[str]) -> bool:
    """Whether a word is a run folder, or the name of one under ``--out``."""
    from clash.store import layout

    try:
        return word == "latest" or any(
            (Path(out) / word / layout.MANIFEST).is_file() for out in (".", "runs", *arguments)
        )
    except (OSError, ValueError):  # a text that can be no path
        return False


def _input_error(error: Exception) -> str:
    """Words for what only input can cause, where no reader of it has said so before."""
    if isinstance(error, MemoryError):
        return "the input does not fit in memory\n  fix: split it, or give the process more memory"
    if isinstance(error, RecursionError):
        return "the input is nested too deeply\n  fix: flatten it"
    return f"the input holds text that is not Unicode: {error}\n  fix: save it as UTF-8"


def _file_error(error: OSError) -> str:
    """What to say where a disk is full, a folder read-only, or a file of the wrong kind."""
    names = " -> ".join(str(name) for name in (error.filename, error.filename2) if name is not None)
    message = f"{names or 'a file'}: cannot be read or written ({error.strerror or error})"
    return run_files.with_hint(message, error)


def _usage_error(error: TyperException, arguments: Sequence[str]) -> int:
    """A command line that Typer cannot read; a command without its own is a request for help."""
    if not error.format_message():
        return 0  # the help has been printed
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "clash"
    message = f"{error.format_message()}\n  fix: see `{command} --help`"
    _print_error(message, ConfigError.exit_code, as_json="--json" in arguments)
    return ConfigError.exit_code


def _print_error(message: str, code: int, *, as_json: bool) -> None:
    if as_json:
        print_json({"error": {"message": message, "exit_code": code}})
    from rich.text import Text

    problem, fix, hint = message.partition(_FIX)
    lines = Text.assemble(("error: ", "bold red"), for_terminal(problem))
    if fix:
        lines.append_text(Text.assemble(("\nfix: ", "bold"), for_terminal(hint)))
    stderr().print(lines, soft_wrap=True)
