"""Candidates and judges that are Python functions, behind the protocol of all providers.

``python/NAME`` is a function that the library registered under ``NAME`` for the length of a run. A
run folder holds its qualified name and a hash of its source, never the function itself, so a run
goes on only where the same function is passed again.

A candidate is ``f(prompt)``, or ``f(messages)`` where that is the name of its first parameter, and
returns the text of its response, or a dict with ``text`` and optionally ``tokens`` and
``cost_usd``. A judge is ``j(prompt, responses)`` or ``j(prompt, responses, criteria)`` and returns
whom it prefers; see :func:`read_ranking`. What a function spends is its owner's business: a
reported cost is on record in the raw response, and no budget counts it.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import inspect
import json
import math
import time
import traceback
from collections.abc import Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from numbers import Real
from types import CodeType, MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn

import anyio
import anyio.to_thread

from clash.config import Candidate, Judge
from clash.errors import ConfigError, ProviderError
from clash.providers import failures
from clash.providers.base import Reply
from clash.records import Tokens, Turn
from clash.secrets.redaction import Redactor

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from clash.config import Limits, ModelRef
    from clash.errors import Action, ErrorClass
    from clash.providers.base import JudgeTask, Request
    from clash.records import Groups

    Function = Callable[..., Any]

RANKING_FORMS = (
    "a label, a list of labels or of groups of labels with the best first, a dict of label to"
    " score, or None for a tie of all"
)
_RESPONSE_FORMS = "a text, or a dict with text and optionally tokens and cost_usd"
_RESPONSE_KEYS = frozenset({"text", "tokens", "cost_usd"})
_MESSAGES = "messages"
_CRITERIA = "criteria"


# -- the functions of a run -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RegisteredFunction:
    """A function that models of one name are answered by.

    Attributes:
        home_loop: the event loop that an async function runs in; null is that of the run.
    """

    function: Function
    home_loop: asyncio.AbstractEventLoop | None = None


# A context variable, so that several runs at once in threads do not see each other's functions: an
# event loop, its tasks and its worker threads start with a copy of the context they are made in.
_FUNCTIONS: ContextVar[Mapping[str, RegisteredFunction]] = ContextVar(
    "clash_functions", default=MappingProxyType({})
)


@contextmanager
def registration(
    functions: Mapping[str, Function], home_loop: asyncio.AbstractEventLoop | None = None
) -> Iterator[None]:
    """Make functions known as ``python/NAME`` to runs within the context.

    Args:
        functions: by name.
        home_loop: the event loop that async functions run in; it must run for as long as the run
            does, so no thread may block it. Null runs them in the event loop of the run.

    Raises:
        ConfigError: a name is empty, or what it names cannot be called.
    """
    for name, function in functions.items():
        if not name or not callable(function):
            raise ConfigError(
                f"{name!r} is not a function with a name", hint="functions={'mine': FUNCTION}"
            )
    registrations = {name: RegisteredFunction(f, home_loop) for name, f in functions.items()}
    token = _FUNCTIONS.set({**_FUNCTIONS.get(), **registrations})
    try:
        yield
    finally:
        _FUNCTIONS.reset(token)


def describe(name: str, function: Function) -> dict[str, Any]:
    """The model reference of a function, as ``clash.yaml`` would write it.

    The manifest records it: ``options.extra`` has the qualified name of the function and the
    SHA-256 of its source, which is left out for a function without one (of a C extension).
    """
    source = source_sha256(function)
    extra = {"callable": qualified_name(function)}
    if source is not None:
        extra["source_sha256"] = source
    return {"model": f"python/{name}", "options": {"extra": extra}}


def qualified_name(function: Function) -> str:
    """``module.name`` of a function, of the class where it is an object that can be called."""
    bare = _innermost(function)
    if not hasattr(bare, "__qualname__"):
        bare = type(bare)
    return f"{getattr(bare, '__module__', None) or 'builtins'}.{bare.__qualname__}"


def source_sha256(function: Function) -> str | None:
    """SHA-256 of the source of a function, else of its compiled code; null where it has neither.

    The arguments of a ``partial`` count. Values that a function takes from elsewhere (closures,
    attributes of an object) are no part of its source.
    """
    text = _source(_innermost(function))
    if text is None:
        return None
    if isinstance(function, functools.partial):
        text += f"\n{_describe_partial(function)}"
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _source(bare: Any) -> str | None:  # noqa: ANN401 - a function, method, class or object
    definition = bare if hasattr(bare, "__qualname__") else type(bare)
    try:
        return inspect.getsource(definition)
    except (OSError, TypeError):
        method = getattr(bare, "__func__", bare)
        code = getattr(method, "__code__", None)
        code = code or getattr(type(bare).__call__, "__code__", None)
        return repr(_code_parts(code)) if isinstance(code, CodeType) else None


def _innermost(function: Function) -> Any:  # noqa: ANN401 - a function, method, class or object
    while isinstance(function, functools.partial):
        function = function.func
    return inspect.unwrap(function)


def _describe_partial(function: functools.partial[Any]) -> str:
    """The arguments that a partial gives; functools joins those of a partial of a partial."""
    keywords = {name: _describe_value(value) for name, value in sorted(function.keywords.items())}
    return f"{[_describe_value(value) for value in function.args]} {keywords}"


def _describe_value(value: object) -> str:
    """A value in words that are the same in every process; its type alone where it has none."""
    if isinstance(value, Mapping):
        pairs = [(_describe_value(key), _describe_value(part)) for key, part in value.items()]
        return f"{type(value).__qualname__}{sorted(pairs)}"
    if isinstance(value, list | tuple):
        return f"{type(value).__qualname__}{[_describe_value(part) for part in value]}"
    if isinstance(value, set | frozenset):
        return f"{type(value).__qualname__}{sorted(map(_describe_value, value))}"
    if callable(value):
        return f"{qualified_name(value)} {source_sha256(value)}"
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - a class of somebody else
        text = ""
    # The default words of an object are its address, which is another one in every process.
    return f"{type(value).__module__}.{type(value).__qualname__} {'' if ' at 0x' in text else text}"


def _code_parts(code: CodeType) -> tuple[object, ...]:
    """What a code object does, without where it stands: equal in every process."""
    constants = [_code_parts(c) if isinstance(c, CodeType) else _plain(c) for c in code.co_consts]
    return code.co_code, code.co_names, code.co_varnames, constants


def _plain(constant: object) -> str:
    # The order of a set differs from process to process.
    return repr(sorted(map(repr, constant)) if isinstance(constant, frozenset) else constant)


def find(ref: ModelRef) -> RegisteredFunction:
    """The function that ``ref`` names.

    Raises:
        ConfigError: none of this name is registered, it is not the one that the run was made
            with, or it does not take the arguments of its role.
    """
    registration = _FUNCTIONS.get().get(ref.name)
    name = ref.options.extra.get("callable")
    if registration is None:
        former_name = f" (it was {name})" if name else ""
        raise ConfigError(
            f"{ref.model} is a Python function, and none is registered as "
            f"{ref.name!r}{former_name}",
            field="model",
            hint=f"from Python: clash.resume(RUN, functions={{{ref.name!r}: FUNCTION}}), rerun"
            " likewise; a new run takes functions as candidates and judges of clash.evaluate",
        )
    _check_source(ref, registration.function)
    _check_signature(ref, registration.function)
    return registration


def _check_source(ref: ModelRef, function: Function) -> None:
    recorded_hash = ref.options.extra.get("source_sha256")
    if recorded_hash is not None and recorded_hash != source_sha256(function):
        raise ConfigError(
            f"{ref.model} was {ref.options.extra.get('callable')} with another source:"
            f" {qualified_name(function)} has changed or is another function",
            field="model",
            hint="pass the function as it was, or start a new run",
        )


def _check_signature(ref: ModelRef, function: Function) -> None:
    parameters = _parameters(function)
    if parameters is None or not isinstance(ref, Judge | Candidate):
        return
    judges = isinstance(ref, Judge)
    keywords: dict[str, Any] = {_CRITERIA: []} if judges and _CRITERIA in parameters else {}
    try:
        inspect.signature(function).bind(*("prompt", "responses")[: 1 + judges], **keywords)
    except TypeError as error:
        role = "judge" if judges else "candidate"
        form = "(prompt, responses) and optionally criteria" if judges else "(prompt)"
        raise ConfigError(
            f"{ref.model}: {qualified_name(function)} cannot be called as a {role}: {error}",
            field="model",
            hint=f"a {role} takes {form}; a first parameter called {_MESSAGES} gets the turns",
        ) from None


def _parameters(function: Function) -> list[str] | None:
    """The names of the parameters; null where Python does not know them."""
    try:
        return list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return None


# -- one call -------------------------------------------------------------------------------------


class PythonFunction:
    """``python/NAME``: a function of the caller's process.

    A function that is not async runs in a worker thread. Where it takes longer than
    ``limits.timeout_s`` the call has failed, but nothing can end the thread: it goes on, and the
    process waits for it at its end.

    Raises:
        ConfigError: see :func:`find`.
    """

    offline = True

    def __init__(self, ref: ModelRef, limits: Limits, environ: Mapping[str, str]) -> None:
        registration = find(ref)
        self.account = ref.model
        self._model = ref.model
        self._function = registration.function
        self._home_loop = registration.home_loop
        self._parameters = _parameters(registration.function) or []
        self._is_async = _is_async(registration.function)
        self._timeout_s = limits.timeout_s
        # Of its own: functions that block must not take the threads that clash itself works in.
        self._threads = anyio.CapacityLimiter(limits.concurrency)
        self._redactor = Redactor.of_environ(environ)
        self._origin = {
            "callable": qualified_name(registration.function),
            "source_sha256": source_sha256(registration.function),
        }

    async def complete(self, request: Request) -> Reply:
        """Call the function once.

        Raises:
            ProviderError: it raised, took too long, or returned something else than was expected.
        """
        arguments, keywords = self._arguments(request)
        record = {**self._origin, "arguments": arguments, **keywords}
        arguments, keywords = self._arguments(request)  # the function may change its own
        start = time.perf_counter()
        try:
            value = await self._call(*arguments, **keywords)
            reply = _judgment(value, request.task) if request.task else _response(value)
        except ProviderError as error:
            error.message = self._redactor.message(error.message)
            error.args = (error.message,)
            error.request = record
            error.latency_s = round(time.perf_counter() - start, 6)
            raise
        return Reply(
            text=reply.text,
            outcome="ok" if reply.text.strip() else "empty",
            request=record,
            response=reply.raw,
            status=None,
            finish_reason="stop",
            tokens=reply.tokens,
            cost_usd=0.0,
            served_model=self._model,
            structured="schema" if request.task else None,
            latency_s=time.perf_counter() - start,
        )

    async def aclose(self) -> None:
        """Nothing was opened."""

    def _arguments(self, request: Request) -> tuple[list[Any], dict[str, Any]]:
        """What the function is called with, in new lists and dicts."""
        task = request.task
        turns = task.turns if task else _with_system(request)
        takes_messages = self._parameters[:1] == [_MESSAGES]
        question = [turn.model_dump() for turn in turns] if takes_messages else prompt_text(turns)
        if task is None:
            return [question], {}
        keywords: dict[str, Any] = {}
        if _CRITERIA in self._parameters:
            keywords[_CRITERIA] = [criterion.model_dump() for criterion in task.criteria]
        return [question, dict(task.responses)], keywords

    async def _call(self, *arguments: Any, **keywords: Any) -> Any:  # noqa: ANN401 - any value
        work = functools.partial(self._function, *arguments, **keywords)
        with anyio.move_on_after(self._timeout_s) as scope:
            try:
                if self._is_async:
                    return await self._at_home(work())
                value = await anyio.to_thread.run_sync(
                    work, abandon_on_cancel=True, limiter=self._threads
                )
                return await self._at_home(value) if inspect.isawaitable(value) else value
            except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a function raises
                self._fail(error)
            except asyncio.CancelledError as error:
                task = asyncio.current_task()
                if scope.cancel_called or task is None or task.cancelling():
                    raise
                self._fail(error)  # the function's own, which is no reason to end this task
        raise ProviderError(
            f"{self._origin['callable']} did not return within {self._timeout_s:g} s",
            error_class="timeout",
            action="retry",
        )

    async def _at_home(self, awaitable: Awaitable[Any]) -> Any:  # noqa: ANN401 - any value
        """Await in the event loop that the function belongs to."""
        home = self._home_loop
        if home is None or home is asyncio.get_running_loop():
            return await awaitable
        if not home.is_running():
            if inspect.iscoroutine(awaitable):
                awaitable.close()
            raise RuntimeError("the event loop that the function belongs to does not run any more")
        return await asyncio.wrap_future(
            asyncio.run_coroutine_threadsafe(_coroutine(awaitable), home)
        )

    def _fail(self, error: BaseException) -> NoReturn:
        """Raise the failed call that an exception of the function becomes.

        Raises:
            ProviderError: always; ``retry`` for what passes by itself, else ``fail``.
        """
        text = "".join(traceback.format_exception_only(error)).strip()
        error_class, action, retry_after = _classify(error)
        raise ProviderError(
            text[: failures.MESSAGE_SIZE],
            error_class=error_class,
            action=action,
            retry_after=retry_after,
        ) from error


def _is_async(function: Function) -> bool:
    bare = _innermost(function)
    return any(map(inspect.iscoroutinefunction, (function, bare, type(bare).__call__)))


async def _coroutine(awaitable: Awaitable[Any]) -> Any:  # noqa: ANN401 - any value
    return await awaitable


def _classify(error: BaseException) -> tuple[ErrorClass, Action, float | None]:
    """What an exception means: a function that calls a server fails in the ways of servers."""
    response = getattr(error, "response", None)
    status = getattr(error, "status_code", None) or getattr(response, "status_code", None)
    if isinstance(status, int) and 400 <= status < 600:
        failure = failures.from_answer(status, {}, str(error))
        if failure.action == "retry":
            return failure.error_class, "retry", failure.retry_after
    if isinstance(error, TimeoutError):
        return "timeout", "retry", None
    if isinstance(error, ConnectionError):
        return "connection", "retry", None
    return "callable", "fail", None


# -- what a function is given ---------------------------------------------------------------------


def prompt_text(turns: Sequence[Turn]) -> str:
    """A conversation as one text: a single question as it is, else each turn under its role."""
    if len(turns) == 1:
        return turns[0].content
    return "\n\n".join(f"[{turn.role}]\n{turn.content}" for turn in turns)


def _with_system(request: Request) -> list[Turn]:
    system = [Turn(role="system", content=request.system)] if request.system else []
    return [*system, *request.turns]


# -- what a function returned ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _ReturnedValue:
    """A returned value as text; ``raw`` is for the record."""

    text: str
    raw: Any
    tokens: Tokens


def _response(value: object) -> _ReturnedValue:
    """The response of a candidate."""
    if isinstance(value, str):
        return _ReturnedValue(str(value), None, Tokens())
    if not isinstance(value, dict) or not isinstance(value.get("text"), str):
        raise _wrong_value(value, _RESPONSE_FORMS)
    if unknown := sorted(map(str, value.keys() - _RESPONSE_KEYS)):
        raise _wrong_value(value, f"no key {unknown[0]!r} but {_RESPONSE_FORMS}")
    raw = {}
    if (cost := value.get("cost_usd")) is not None:
        if not _is_number(cost) or cost < 0:
            raise _wrong_value(cost, "a cost_usd of 0 or more, or none")
        raw["cost_usd"] = float(cost)
    return _ReturnedValue(str(value["text"]), raw or None, _tokens(value.get("tokens")))


def _tokens(value: object) -> Tokens:
    """A number is of the response alone; a dict has ``input``, ``output``, …."""
    counts = value if isinstance(value, dict) else {"output": value}
    for name, count in counts.items():
        is_count = isinstance(count, int) and not isinstance(count, bool) and count >= 0
        if name not in Tokens.model_fields or not (count is None or is_count):
            raise _wrong_value(value, f"tokens as a count or by {', '.join(Tokens.model_fields)}")
    return Tokens(**counts)


def _judgment(value: object, task: JudgeTask) -> _ReturnedValue:
    """The answer of a judge in the form that ``prompts/answer.*.md`` asks for."""
    groups = read_ranking(value, list(task.responses))
    if not task.ties and any(len(group) > 1 for group in groups):
        raise _wrong_value(value, "no tie, which this panel does not allow")
    answer: dict[str, Any] = {
        "ranking": groups if task.ties else [label for group in groups for label in group]
    }
    if task.criteria:
        # A function says who is better, not why. It gives no scores, and none is made up.
        answer = {"scores": None, **answer}
    return _ReturnedValue(
        json.dumps(answer, ensure_ascii=False), {"answer": answer}, Tokens(input=0, output=0)
    )


def read_ranking(value: object, labels: Sequence[str]) -> Groups:
    """The ranking that a judge returned, as groups of labels with the best first.

    Args:
        value: a label (the best; the others are tied behind it), a list of labels or of groups of
            labels with the best first, a dict of label to score (more is better, equal is a tie),
            or null for a tie of all. Lists and dicts name every label once.
        labels: those that were shown.

    Raises:
        ProviderError: it is not one of these.
    """
    if value is None:
        return [sorted(labels)]
    if isinstance(value, str):
        groups = [[value], [label for label in labels if label != value]]
    elif isinstance(value, dict):
        groups = _by_score(value)
    elif isinstance(value, list | tuple):
        groups = [list(g) if isinstance(g, list | tuple | set | frozenset) else [g] for g in value]
    else:
        raise _wrong_ranking(value, labels)
    names = [label for group in groups for label in group]
    if len(names) != len(labels) or any(label not in names for label in labels):
        raise _wrong_ranking(value, labels)
    return [sorted(map(str, group)) for group in groups if group]


def _by_score(scores: dict[object, object]) -> list[list[Any]]:
    numbers = {
        label: float(score)  # type: ignore[arg-type] # it is a number
        for label, score in scores.items()
        if _is_number(score)
    }
    if len(numbers) < len(scores):
        return []
    return [
        [label for label, score in numbers.items() if score == best]
        for best in sorted(set(numbers.values()), reverse=True)
    ]


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and math.isfinite(value)


def _wrong_ranking(value: object, labels: Sequence[str]) -> ProviderError:
    return _wrong_value(value, f"{RANKING_FORMS}; each of {', '.join(labels)} once")


def _wrong_value(value: object, form: str) -> ProviderError:
    """The failed call of a function that returned something else than ``form``."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - a class of somebody else
        text = "…"
    return ProviderError(
        f"returned {type(value).__name__} {text[:100]}, expected {form}",
        error_class="bad_payload",
        action="fail",
    )
