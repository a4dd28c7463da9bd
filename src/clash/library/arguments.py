"""Arguments of the library's functions: their types, and messages that use their names.

The pipeline speaks of the options of commands (``--max-cost``). A caller in Python reads of the
argument instead: ``max_cost``.
"""

from __future__ import annotations

import inspect
import re
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypedDict, TypeVar

from clash.errors import ClashError, ConfigError, InputError, one_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from pathlib import Path

    from clash.config import VerdictMethod
    from clash.library.results import Run

P = ParamSpec("P")
T = TypeVar("T")
ProgressCallback = Any
"""Called as ``progress(stage, done, total, cost_usd)``."""


class RunArguments(TypedDict, total=False):
    """Keyword arguments of :func:`evaluate`, which explains them, and of :func:`validate`."""

    max_cost: float | None
    seed: int | None
    out: str | Path | None
    run_id: str | None
    method: VerdictMethod | None
    min_confidence: float | None
    criteria: Literal["dynamic", "fixed", "none"] | None
    criteria_from: str | Path | None
    judging: Mapping[str, Any] | None
    both_orders: bool | None
    per_judge: bool | None
    observers: list[Any] | None
    exclude_self: bool | None
    repeat: int | None
    concurrency: int | None
    allow_unknown_price: bool | None
    calibrator: str | Path | None
    max_risk: float | None
    risk_confidence: float | None
    config: str | Path | None
    settings: Mapping[str, Any] | None
    env: Mapping[str, str] | None
    replay: str | Path | Run | None
    progress: ProgressCallback | None


class EvaluateArguments(RunArguments, total=False):
    """Keyword arguments of :func:`evaluate`."""

    limit: int | None
    shard: str | None
    until: str | None
    sequential: Literal["always-valid", "obrien-fleming", "pocock"]
    looks: int


class ValidateArguments(RunArguments, total=False):
    """Keyword arguments of :func:`validate`."""

    n: int | None
    sample_seed: int
    rules: Literal["paper", "clear", "all"] | None
    stratify: Literal["winner", "tier", "tag"] | None
    keep_repeats: bool
    cache: Path | None
    tiers: Path | None


class ResumeArguments(TypedDict, total=False):
    """Keyword arguments of :func:`resume`, and some of every function that repeats a run."""

    max_cost: float | None
    concurrency: int | None
    functions: Mapping[str, Callable[..., Any]] | None
    out: str | Path
    env: Mapping[str, str] | None
    progress: ProgressCallback | None


class RerunArguments(ResumeArguments, total=False):
    """Keyword arguments of :func:`rerun`."""

    regenerate: bool
    keep: Collection[str]
    only: Collection[str] | None
    panel: str | None


class VarianceArguments(ResumeArguments, total=False):
    """Keyword arguments of :func:`variance`."""

    rubrics: int | None
    authors: Collection[str]
    shuffles: int | None
    samples: int | None
    generations: int | None
    items: int | None
    allow_unknown_price: bool


class VoteFilters(TypedDict, total=False):
    """Filters of :func:`read_votes`."""

    judges: str | None
    subset: str | None
    presentation: str | None
    decisive: bool
    out: str | Path


class LabelledVoteFilters(VoteFilters, total=False):
    """The same, for functions that use labels where there are some unless told not to."""

    use_labels: bool


# -- messages -------------------------------------------------------------------------------------

_ARGUMENTS = {"for": "question", "models": "candidates", "targeted": "only"}
"""Arguments by the option that is called otherwise."""
_WORDS = re.compile(
    r"`clash [^`]*`|\bclash [a-z][^`,;()]*"  # a command line, which stays
    r"|(?P<flag>--(?P<option>[a-z][a-z-]*))(?P<value>[ =](?:\"[^\"]*\"|[\w.,+-]*\w))?"
)


def in_python(text: str, arguments: Collection[str], *, is_example: bool = False) -> str:
    """A message with ``max_cost`` in place of ``--max-cost``, where that is an argument.

    Args:
        text: the message; command lines in it stay as they are.
        arguments: of the function that was called.
        is_example: the text shows what to write, so that the word after an option is its value:
            ``--for paired`` becomes ``question="paired"``.
    """

    def replace(match: re.Match[str]) -> str:
        option, value = match["option"], match["value"] or ""
        name = _ARGUMENTS.get(option or "", option or "").replace("-", "_")
        name = f"{name}s" if name not in arguments else name
        if option is None or name not in arguments:
            return match[0]
        return f"{name}={_literal(value[1:])}" if is_example and value else name + value

    return _WORDS.sub(replace, text)


def _literal(value: str) -> str:
    is_written = value.startswith('"') or re.fullmatch(r"[\d.]+|[A-Z]+", value)
    return value if is_written else f'"{value}"'


@contextmanager
def python_messages(arguments: Collection[str]) -> Iterator[None]:
    """Within, errors name arguments of the function instead of options of the command."""
    try:
        yield
    except InputError as error:
        hint, field = error.hint or "", error.field or ""
        error.message = in_python(error.message, arguments)
        error.field = in_python(field, arguments) or None
        error.hint = in_python(hint, arguments, is_example=hint.startswith("--")) or None
        raise
    except ClashError as error:
        if error.args and isinstance(error.args[0], str):
            error.args = (in_python(error.args[0], arguments), *error.args[1:])
        raise


def refuse_unknown(names: Iterable[str], choices: Iterable[str]) -> None:
    """Refuse an unknown keyword argument: a misspelt one must not be ignored.

    Raises:
        ConfigError: a name is none of the choices.
    """
    for name in names:
        if name not in choices:
            raise ConfigError(f"no argument {name!r}", field=name, hint=one_of(name, choices))


def speaks_python(function: Callable[P, T]) -> Callable[P, T]:
    """Errors of the function name its arguments; its ``**filters`` are :class:`VoteFilters`."""
    parameters = inspect.signature(function).parameters
    names = {*parameters, *LabelledVoteFilters.__annotations__}

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        if "filters" in parameters:
            refuse_unknown(kwargs, sorted(names - {"filters"}))
        with python_messages(names):
            return function(*args, **kwargs)

    return call
