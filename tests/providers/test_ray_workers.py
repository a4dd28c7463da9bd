"""The broker's side of worker actors, with actors of this process; tests/e2e/test_ray.py has real ones."""

from __future__ import annotations

from types import SimpleNamespace

import anyio
import pytest

from clash.config import Limits, ModelRef, RayCluster
from clash.errors import ConfigError, ProviderError
from clash.integrations.ray_tasks import _ray_map
from clash.providers.base import Reply, Request
from clash.providers.ray_cluster import _refusal
from clash.providers.ray_workers import ClashWorker, RayPool, _digest
from clash.providers.worker_process import AttemptOutcome, pack, unpack
from clash.providers.workers import WorkerError
from clash.records import Turn

exceptions = pytest.importorskip("ray.exceptions", reason="the extra ray is not installed")

KEY = "COMPATIBLE_API_KEY"
REF = ModelRef(model="compatible/m")
REQUEST = Request((Turn(role="user", content="?"),), max_tokens=8)
ENVIRON = {KEY: "key-0123456789", "COMPATIBLE_BASE_URL": "http://127.0.0.1:9/v1"}


class Actor:
    """Answers in the other order than it was asked."""

    def __init__(self) -> None:
        self.attempts: list = []
        self.attempt = SimpleNamespace(remote=self._answer)
        self.both = anyio.Event()

    async def _answer(self, message: bytes) -> bytes:
        self.attempts.append(unpack(message))
        if len(self.attempts) == 2:
            self.both.set()
        await self.both.wait()
        reply = Reply(text="x", outcome="ok", request={}, response={})
        return pack(AttemptOutcome(0, reply))


@pytest.fixture
def pool(monkeypatch) -> RayPool:
    monkeypatch.setattr("clash.providers.ray_workers._nodes", lambda: 1)
    monkeypatch.setattr("clash.providers.ray_workers._end", lambda _: None)
    limits = Limits().with_changes({"ray": RayCluster("host:6379"), "workers": 1})
    return RayPool(ENVIRON, limits, lambda _: pytest.fail("nothing is opened here"))


def outcomes_of(pool: RayPool, ready, n: int = 2) -> list:
    """What ``n`` questions at once come to, with the actors of ``ready``."""
    outcomes: list = []

    async def ask() -> None:
        try:
            outcomes.append(await provider.complete(REQUEST))
        except (ProviderError, WorkerError) as error:
            outcomes.append(error)

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            pool.start(tasks)
            for _ in range(n):
                tasks.start_soon(ask)

    pool._ready_actor = ready
    provider = pool.open(REF)
    anyio.run(main)
    return outcomes


def test_a_model_is_named_until_an_answer_shows_that_the_actor_knows_it(pool):
    actor = Actor()

    async def ready():
        return actor

    assert [reply.text for reply in outcomes_of(pool, ready)] == ["x", "x"]
    assert [attempt.ref for attempt in actor.attempts] == [REF, REF]
    assert [reply.text for reply in outcomes_of(pool, ready, 1)] == ["x"]


def test_a_lost_actor_may_have_been_billed_for_and_another_takes_its_place(pool):
    async def lose(_):
        raise exceptions.ActorDiedError

    actors = [SimpleNamespace(attempt=SimpleNamespace(remote=lose)), Actor()]

    async def ready():
        return actors.pop(0)

    (error,) = outcomes_of(pool, ready, 1)
    assert (error.error_class, error.action, error.maybe_billed) == ("connection", "retry", True)
    assert [reply.text for reply in outcomes_of(pool, ready)] == ["x", "x"]


def test_actors_that_cannot_be_started_end_the_run_with_a_fix(pool):
    async def ready():
        raise exceptions.RaySystemError("ModuleNotFoundError: No module named 'clash'")

    (error,) = outcomes_of(pool, ready, 1)
    assert "3 workers on the cluster could not be started: " in str(error)
    assert "No module named 'clash'" in str(error)
    assert "fix: install clash" in str(error)


def test_an_actor_gets_no_key_and_says_which_its_node_lacks(pool, monkeypatch):
    pool.open(REF)
    settings = pool._settings()
    assert "key-0123456789" not in str(settings)
    assert settings.digests[KEY] == _digest("key-0123456789", settings.salt)
    monkeypatch.delenv(KEY, raising=False)
    assert anyio.run(ClashWorker().prepare, pack(settings)) == [KEY]
    monkeypatch.setenv(KEY, "key-0123456789")
    assert anyio.run(ClashWorker().prepare, pack(settings)) == []


def test_an_entry_with_a_secret_of_its_own_is_not_sent(pool):
    ref = ModelRef(
        model="compatible/m",
        options={"headers": {"Authorization": "Basic aGVsbG86d29ybGQ="}},
    )
    with pytest.raises(ConfigError, match="holds a secret, which would be sent to the cluster"):
        pool.open(ref)


def test_another_version_of_python_is_named():
    from ray._private.utils import check_version_info

    versions = {"ray_version": "2.52.0", "python_version": "3.9.1"}
    with pytest.raises(RuntimeError) as error:
        check_version_info(versions, "local")
    message = str(_refusal("host:6379", str(error.value)))
    assert "the cluster at host:6379 runs Ray: 2.52.0, Python: 3.9.1, and this is Ray: " in message
    assert "fix: install the same versions of Ray and Python everywhere" in message


@pytest.mark.parametrize(
    ("cause", "error"),
    [
        (exceptions.RaySystemError("No module named 'clash'"), ConfigError),
        (RuntimeError("The remote function failed to import on the worker."), ConfigError),
        (ZeroDivisionError("a bug"), ZeroDivisionError),
    ],
)
def test_a_node_without_our_clash_is_no_bug_of_a_task(monkeypatch, cause, error):
    def get(_):
        raise exceptions.RayTaskError("task", "", cause).as_instanceof_cause()

    remote = SimpleNamespace(remote=lambda *_: None, options=lambda **_: remote)
    monkeypatch.setattr("ray.remote", lambda _: remote)
    monkeypatch.setattr("ray.put", lambda _: None)
    monkeypatch.setattr("ray.get", get)
    with pytest.raises(error) as raised_error:
        list(_ray_map(len, None, [1]))
    assert type(raised_error.value) is error
