"""Worker actors on a Ray cluster that make the calls of one run, and the broker's side of them.

The broker is the process of the run, as with worker processes: it alone counts calls and money by
account, writes the run folder, and reads the answers. An actor is handed one attempt at a time for
each request. Ray repeats nothing by itself: an actor that is lost loses the attempts that it was
making; they count as possibly billed and are made again by another actor. Actors end with the
process of the run, however it ends.
"""

from __future__ import annotations

import copy
import hashlib
import hmac
import itertools
import os
import secrets as random_secrets
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import anyio

from clash.errors import ConfigError, ProviderError
from clash.providers.accounts import STEERING, key_variable, secrets
from clash.providers.ray_cluster import LOCAL
from clash.providers.worker_process import Attempt, AttemptMaker, Settings, pack, unpack
from clash.providers.workers import RemoteProvider, WorkerError, account_name, reply_of
from clash.secrets.destinations import Environ
from clash.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from anyio.abc import TaskGroup

    from clash.config import Limits, ModelRef
    from clash.providers.base import Provider, Reply, Request

_VAIN_STARTS = 3
"""Actors in a row that cannot be started: after them no further one is."""
_START_S = 120.0
"""Seconds in which the first actor must have started; further ones may wait for a free CPU."""
_GRACE_S = 60.0
"""Seconds beyond an attempt's own limits after which its actor counts as lost."""
_MOST_AT_ONCE = 10_000
"""Attempts of one actor at once. What is in flight is the broker's decision, not Ray's."""
_PLAIN = frozenset(name for name in STEERING if name.endswith("_BASE_URL")) | {
    "OPENAI_ORG_ID",
    "OPENAI_PROJECT_ID",
}
"""Variables that say where and for whom a call is made; no secrets."""


@dataclass(frozen=True, slots=True)
class ActorSettings:
    """What an actor needs to open the models of a run.

    Attributes:
        environ: the plain variables, and the keys where they are sent.
        digests: of the value of each key that the node has itself, by its variable.
        salt: of the digests.
    """

    environ: Mapping[str, str]
    limits: Limits
    digests: Mapping[str, bytes]
    salt: bytes


class ClashWorker:
    """The actor, on a node of the cluster: makes the attempts that it is handed."""

    def __init__(self) -> None:
        self._maker: AttemptMaker | None = None

    async def version(self) -> str:
        """Of clash, on this node."""
        return __version__

    async def prepare(self, message: bytes) -> list[str]:
        """Take the settings: the variables of keys that this node lacks, or has another value of."""
        settings: ActorSettings = unpack(message)
        environ = settings.environ
        wrong = []
        for name, digest in settings.digests.items():
            value = os.environ.get(name, "").strip()
            if not hmac.compare_digest(_digest(value, settings.salt), digest):
                wrong.append(name)
            environ = _with_variables(environ, {name: value})
        self._maker = AttemptMaker(Settings(environ, settings.limits))
        return wrong

    async def attempt(self, message: bytes) -> bytes:
        """Make an attempt: how it ended."""
        if self._maker is None:
            raise AssertionError("an attempt came before the settings")
        return await self._maker.answer(unpack(message))


@dataclass(eq=False)
class _ActorHandle:
    """An actor, as the broker sees it.

    Attributes:
        n_pending: attempts that it is making.
        models: the models that it surely knows: it has answered for them.
        is_gone: it is lost: it gets no further attempt.
    """

    actor: Any
    n_pending: int = 0
    models: set[int] = field(default_factory=set)
    is_gone: bool = False


class RayPool:
    """The worker actors of a run, on the cluster that this process is connected to.

    Args:
        environ: where keys are.
        limits: timeouts, how many workers, and whether keys are sent.
        open_here: opens a model in this process.
    """

    def __init__(
        self,
        environ: Mapping[str, str],
        limits: Limits,
        open_here: Callable[[ModelRef], Provider],
    ) -> None:
        if limits.ray is None:
            raise AssertionError("a cluster was expected")
        self._environ, self._limits, self._open_here = environ, limits, open_here
        self._sends_keys = limits.ray.send_keys or limits.ray.address == LOCAL
        self._n_actors = limits.workers or _nodes()
        self._key_variables = {
            name for name in STEERING if name.endswith("_CUSTOM_HEADERS") and name in environ
        }
        self._models, self._numbers = itertools.count(), itertools.count()
        self._actors: list[_ActorHandle] = []
        self._n_starting = self._n_vain_starts = 0
        self._error: WorkerError | None = None
        self._change = anyio.Event()
        self._tasks: TaskGroup | None = None

    def open(self, ref: ModelRef) -> Provider:
        """A model whose calls the actors make.

        Raises:
            ConfigError: its key or its address is missing or wrong, or its entry holds a secret.
        """
        name = account_name(ref, self._environ, self._open_here)
        for server in ref.servers:
            variable = key_variable(server, self._environ)
            values = secrets(server, self._environ)
            own_secrets = [source for source in values.values() if source != variable]
            if own_secrets and not self._sends_keys:
                raise ConfigError(
                    f"the entry of {ref.model} holds a secret, which would be sent to the cluster",
                    field=own_secrets[0],
                    hint="put it into the variable that api_key_env names, or --ray-send-keys",
                )
            if variable is not None:
                self._key_variables.add(variable)
        return RemoteProvider(self, next(self._models), ref, name)

    def start(self, tasks: TaskGroup) -> None:
        """Start actors within ``tasks``, when they are first needed."""
        self._tasks = tasks

    async def worker(self) -> _ActorHandle:
        """The actor with the fewest attempts; the missing ones are started meanwhile.

        Raises:
            WorkerError: none can be started.
        """
        if self._tasks is None:
            raise AssertionError("the pool was not started")
        while True:
            self._actors = [actor for actor in self._actors if not actor.is_gone]
            if self._error is None:
                for _ in range(self._n_actors - len(self._actors) - self._n_starting):
                    self._n_starting += 1
                    self._tasks.start_soon(self._start_actor)
            if self._actors:
                return min(self._actors, key=lambda actor: actor.n_pending)
            if self._error is not None:
                raise self._error
            change = self._change
            with anyio.move_on_after(_START_S) as scope:
                await change.wait()
            if scope.cancelled_caught:
                self._error = WorkerError(
                    f"no worker could be started on the cluster within {_START_S:.0f} s"
                    "\n  fix: see `ray status`: each worker takes one free CPU"
                )

    async def attempt(
        self, worker: _ActorHandle, model: int, ref: ModelRef, request: Request
    ) -> Reply:
        """Have an attempt made.

        Raises:
            ProviderError: it failed, or its actor was lost before it ended.
        """
        from ray.exceptions import RayError

        # Ray may start attempts in another order than they were handed over.
        known_ref = None if model in worker.models else ref
        # The task behind a prompt is for judges that read no prompt; no worker has one.
        message = pack(Attempt(next(self._numbers), model, known_ref, replace(request, task=None)))
        worker.n_pending += 1
        try:
            with anyio.fail_after(self._longest(ref)):
                answer = await worker.actor.attempt.remote(message)
        except (RayError, TimeoutError) as error:
            self._bury(worker)
            raise ProviderError(
                f"the worker that made the call was lost ({type(error).__name__})",
                error_class="connection",
                action="retry",
                maybe_billed=True,
            ) from None
        finally:
            worker.n_pending -= 1
        worker.models.add(model)
        return reply_of(unpack(answer))

    async def aclose(self) -> None:
        """End every actor."""
        for worker in self._actors:
            _end(worker.actor)
        self._actors.clear()

    def _longest(self, ref: ModelRef) -> float:
        """Seconds after which an attempt has ended, unless its actor hangs."""
        attempt_s = self._limits.timeout_s + self._limits.connect_timeout_s
        return len(ref.servers) * attempt_s + _GRACE_S

    async def _start_actor(self) -> None:
        from ray.exceptions import RayError

        try:
            worker = _ActorHandle(await self._ready_actor())
            self._actors.append(worker)
            self._n_vain_starts = 0
        except WorkerError as error:
            self._error = error
        except RayError as error:
            self._n_vain_starts += 1
            if self._n_vain_starts >= _VAIN_STARTS:
                self._error = _cannot_start(str(error))
        finally:
            self._n_starting -= 1
            self._tell()

    async def _ready_actor(self) -> Any:  # noqa: ANN401 - a handle of Ray
        """Start an actor and hand it the settings.

        Raises:
            WorkerError: its node has another version of clash, or lacks a key.
        """
        import ray

        options = {"num_cpus": 1, "max_restarts": 0, "max_task_retries": 0}
        remote = ray.remote(ClashWorker).options(
            **options, max_concurrency=_MOST_AT_ONCE, scheduling_strategy="SPREAD"
        )
        actor = remote.remote()
        version = await actor.version.remote()
        if version != __version__:
            raise WorkerError(
                f"a node of the cluster has clash {version}, and this is {__version__}"
                "\n  fix: install the same version everywhere"
            )
        wrong = await actor.prepare.remote(pack(self._settings()))
        if wrong:
            raise WorkerError(
                f"a node of the cluster lacks {', '.join(wrong)}, or has another value of it"
                "\n  fix: set it in the environment of `ray start`, or --ray-send-keys"
            )
        return actor

    def _settings(self) -> ActorSettings:
        names = _PLAIN | (self._key_variables if self._sends_keys else frozenset())
        environ = _with_variables(
            self._environ, {n: self._environ[n] for n in names if n in self._environ}, only=True
        )
        salt = random_secrets.token_bytes(16)
        variables = set() if self._sends_keys else self._key_variables
        digests = {name: _digest(self._environ.get(name, "").strip(), salt) for name in variables}
        return ActorSettings(environ, self._limits, digests, salt)

    def _bury(self, worker: _ActorHandle) -> None:
        if not worker.is_gone:
            worker.is_gone = True
            _end(worker.actor)

    def _tell(self) -> None:
        """Wake those who wait for an actor."""
        change, self._change = self._change, anyio.Event()
        change.set()


def _cannot_start(reason: str) -> WorkerError:
    lines = [line.strip() for line in reason.splitlines() if line.strip()]
    last_line = f": {lines[-1][:200]}" if lines else ""
    return WorkerError(
        f"{_VAIN_STARTS} workers on the cluster could not be started{last_line}"
        f"\n  fix: install clash {__version__} with the extra ray on every node"
    )


def _with_variables(
    environ: Mapping[str, str], variables: Mapping[str, str], *, only: bool = False
) -> Mapping[str, str]:
    """A copy with these variables; what its owner has confirmed stays confirmed."""
    result = copy.copy(environ) if isinstance(environ, Environ) else dict(environ)
    if only:
        result.clear()
    result.update(variables)
    return result


def _digest(value: str, salt: bytes) -> bytes:
    return hashlib.scrypt(value.encode(), salt=salt, n=2**12, r=8, p=1)


def _nodes() -> int:
    """One worker for each node, and two at least."""
    import ray

    return max(2, sum(bool(node["Alive"]) for node in ray.nodes()))


def _end(actor: Any) -> None:  # noqa: ANN401 - a handle of Ray
    import ray

    ray.kill(actor)
