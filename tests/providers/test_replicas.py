"""A model behind several addresses: who is asked, who rests, and what a run records of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel
import pytest

from clash.config import Limits, ModelRef
from clash.errors import ConfigError, ProviderError
from clash.providers import open_provider
from clash.providers.base import Reply, Request
from clash.providers.prices import worst_case
from clash.providers.replicas import FIRST_REST_S, Replicas
from clash.records import Turn
from clash.secrets.destinations import Environ

if TYPE_CHECKING:
    from collections.abc import Callable


class Machine:
    """A provider that answers, or fails as told."""

    offline = False

    def __init__(self, address: str) -> None:
        self.account = f"compatible at {address} with no key"
        self.error: Callable[[], ProviderError] | None = None
        self.asked = 0

    async def complete(self, _: object) -> Reply:
        self.asked += 1
        await anyio.lowlevel.checkpoint()
        if self.error is not None:
            raise self.error()
        return Reply(text="x", outcome="ok", request={}, response={})

    async def aclose(self) -> None:
        pass


@pytest.fixture
def pool():
    machines = [Machine(f"gpu{i}:8000") for i in range(3)]
    servers = [(f"http://gpu{i}:8000/v1", machine) for i, machine in enumerate(machines)]
    time = [0.0]
    replicas = Replicas(servers, clock=lambda: time[0])
    replicas.machines, replicas.time = machines, time
    return replicas


def ask(pool, n=1):
    """The replies, or errors, of ``n`` calls at once."""
    results = []

    async def one():
        try:
            results.append(await pool.complete(None))
        except ProviderError as error:
            results.append(error)

    async def all_at_once():
        async with anyio.create_task_group() as tasks:
            for _ in range(n):
                tasks.start_soon(one)

    anyio.run(all_at_once)
    return results


def failure(error_class="connection", action="stop", **fields):
    return ProviderError("no", error_class=error_class, action=action, **fields)


def test_calls_are_shared_evenly_and_name_their_server(pool):
    replies = ask(pool, 30)
    assert [machine.asked for machine in pool.machines] == [10, 10, 10]
    assert {reply.address for reply in replies} == {"gpu0:8000", "gpu1:8000", "gpu2:8000"}
    assert pool.account == "compatible at gpu0:8000, gpu1:8000, gpu2:8000 with no key"


@pytest.mark.parametrize(
    ("error_class", "action"),
    [
        ("connection", "stop"),
        ("server", "retry"),
        ("auth", "stop"),
        ("rate_limit", "retry"),
        ("bad_payload", "retry"),
    ],
)
def test_a_server_that_fails_ends_no_call_while_others_answer(pool, error_class, action):
    pool.machines[0].error = lambda: failure(error_class, action)
    results = ask(pool, 30)
    errors = [result for result in results if isinstance(result, ProviderError)]
    assert errors
    assert {(e.action, e.retry_after, e.address) for e in errors} == {("retry", 0.0, "gpu0:8000")}
    requests = pool.machines[0].asked
    ask(pool, 30)
    assert pool.machines[0].asked == requests  # it rests


def test_a_server_is_tried_with_one_call_and_rests_longer_each_time(pool):
    machine = pool.machines[0]
    machine.error = failure
    wait_s = FIRST_REST_S
    ask(pool, 9)
    for _ in range(3):
        requests = machine.asked
        pool.time[0] += wait_s * 0.9
        ask(pool, 9)
        assert machine.asked == requests
        pool.time[0] += wait_s * 0.2
        ask(pool, 9)
        assert machine.asked == requests + 1
        wait_s *= 2
    machine.error = None
    pool.time[0] += wait_s
    ask(pool, 9)
    requests = machine.asked
    ask(pool, 9)
    assert machine.asked == requests + 3


def test_where_no_server_is_left_the_error_says_what_it_says(pool):
    for machine in pool.machines:
        machine.error = failure
    ask(pool, 3)
    (error,) = ask(pool, 1)
    assert error.action == "stop"


def test_a_server_that_refuses_ends_no_model_while_another_only_rests(pool):
    """A wrong key at one address, while the other addresses are told to wait."""
    wrong, *others = pool.machines
    wrong.error = lambda: failure("auth", "stop")
    for machine, seconds in zip(others, (40.0, 70.0), strict=True):
        machine.error = lambda seconds=seconds: failure("rate_limit", "retry", retry_after=seconds)
    ask(pool, 9)
    pool.time[0] += 2.0
    (error,) = ask(pool, 1)
    assert (error.error_class, error.action, error.retry_after) == ("auth", "retry", 38.0)
    pool.time[0] += 39.0
    errors = [error for error in ask(pool, 9) if error.error_class == "rate_limit"]
    assert errors
    # Nobody waits for the slower of two servers.
    assert max(error.retry_after for error in errors) <= 40.0


def test_a_failure_of_the_question_rests_nobody(pool):
    for machine in pool.machines:
        machine.error = lambda: failure("bad_request", "fail")
    errors = ask(pool, 6)
    assert {error.action for error in errors} == {"fail"}
    assert [machine.asked for machine in pool.machines] == [2, 2, 2]


def test_servers_of_different_sellers_have_no_price_of_the_table():
    groq, other_url = "https://api.groq.com/openai/v1", "https://api.fireworks.ai/inference/v1"
    request = Request((Turn(role="user", content="x"),), max_tokens=100)
    model = {"model": "compatible/llama-3.3-70b-versatile"}
    alone = ModelRef.model_validate({**model, "base_url": groq})
    assert worst_case(alone, request) is not None
    twice = ModelRef.model_validate({**model, "base_urls": [groq, groq + "/"]})
    assert worst_case(twice, request) == worst_case(alone, request)
    mixed_ref = ModelRef.model_validate({**model, "base_urls": [groq, other_url]})
    assert worst_case(mixed_ref, request) is None


@pytest.mark.parametrize(
    "fields",
    [
        {"model": "openai/x", "base_urls": ["http://a/v1", "http://b/v1"]},
        {"model": "compatible/x", "base_urls": ["http://a/v1", "http://a/v1"]},
        {"model": "compatible/x", "base_url": "http://c/v1", "base_urls": ["http://a/v1"]},
    ],
)
def test_addresses_that_contradict_each_other_are_refused(fields):
    with pytest.raises(ValueError, match=r"base_urls?"):
        ModelRef.model_validate(fields)


def test_a_key_goes_to_no_address_that_its_owner_has_not_confirmed():
    ref = ModelRef.model_validate(
        {
            "model": "compatible/x",
            "base_urls": ["http://127.0.0.1:1/v1", "https://evil.example/v1"],
            "api_key_env": "COMPATIBLE_API_KEY",
        }
    )
    variables = {"COMPATIBLE_API_KEY": "k3y0123456789abcdef"}
    environ = Environ(variables, hosts=["http://127.0.0.1:1"])
    with pytest.raises(ConfigError, match=r"evil\.example"):
        open_provider(ref, environ=environ, limits=Limits())
