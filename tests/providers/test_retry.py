"""The one retry policy: pure decisions, and the loop around them, without sleeping."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clash.config import Limits
from clash.errors import ProviderError
from clash.providers import open_provider
from clash.providers.failures import hint
from clash.providers.retry import MAX_HINT_S, Backoff, attempts, decide
from wire import faults
from wire.asking import PROVIDERS

PATIENT = settings(deadline=None, max_examples=60)  # a busy machine is no failure
TOP = lambda low, high: high  # noqa: E731 - the largest jitter


def error(kind="server", action="retry", retry_after=None):
    return ProviderError("it failed", error_class=kind, action=action, retry_after=retry_after)


def failed(**counts):
    return Counter(counts)


@pytest.mark.parametrize("action", ["fail", "stop"])
def test_what_is_final_is_final(action):
    decision = decide(error("auth", action), failed(auth=1), Backoff(), TOP)
    assert (decision.then, decision.wait_s) == (action, 0)


def test_waits_double_and_are_bounded():
    waits = [
        decide(error("rate_limit"), failed(rate_limit=n), Backoff(20, 1, 10), TOP).wait_s
        for n in range(1, 7)
    ]
    assert waits == [1, 2, 4, 8, 10, 10]


def test_an_overloaded_server_is_given_longer():
    plain = decide(error("server"), failed(server=1), Backoff(), TOP).wait_s
    assert decide(error("overloaded"), failed(overloaded=1), Backoff(), TOP).wait_s > plain


def test_jitter_is_full():
    """Calls that failed together come back spread over the whole wait."""
    low = decide(error(), failed(server=3), Backoff(), lambda low, high: low).wait_s
    high = decide(error(), failed(server=3), Backoff(), TOP).wait_s
    assert low == 0
    assert high == 2.0


@PATIENT
@given(st.floats(0, MAX_HINT_S), st.integers(1, 4), st.floats(0, 1))
def test_a_hint_is_waited_for_and_little_more(seconds, tries, share):
    jitter = lambda low, high: low + share * (high - low)  # noqa: E731
    decision = decide(
        error("rate_limit", "retry", seconds), failed(rate_limit=tries), Backoff(), jitter
    )
    assert decision.then == "again"
    assert seconds <= decision.wait_s <= seconds + 1


def test_a_hint_beyond_the_bound_stops():
    assert decide(
        error("rate_limit", "retry", 121.0), failed(rate_limit=1), Backoff(), TOP
    ).then == ("stop")


@pytest.mark.parametrize(
    ("kind", "most", "then"),
    [
        ("rate_limit", 8, "fail"),
        ("overloaded", 8, "fail"),
        ("server", 5, "fail"),
        ("timeout", 3, "fail"),
        ("bad_payload", 3, "fail"),
        ("unfinished", 2, "fail"),
        ("proxy", 2, "stop"),
    ],
)
def test_patience_depends_on_the_failure(kind, most, then):
    for n in range(1, most):
        assert decide(error(kind), failed(**{kind: n}), Backoff(), TOP).then == "again"
    assert decide(error(kind), failed(**{kind: most}), Backoff(), TOP).then == then


def test_attempts_are_counted_over_all_classes():
    mixed_errors = failed(server=2, timeout=1, connection=2)
    assert decide(error("connection"), mixed_errors, Backoff(attempts=5), TOP).then == "fail"


def test_leaving_something_out_costs_no_attempt_and_no_wait():
    many = failed(unsupported=4, server=1)
    decision = decide(error("unsupported", "degrade"), many, Backoff(attempts=2), TOP)
    assert (decision.then, decision.wait_s) == ("again", 0)
    assert decide(error("server"), many, Backoff(attempts=3), TOP).then == "again"


def test_leaving_things_out_ends_some_time():
    endless = failed(unsupported=100)
    assert decide(error("unsupported", "degrade"), endless, Backoff(), TOP).then == "fail"


# -- the loop -------------------------------------------------------------------------------------


class Script:
    """A call that fails as told, and then answers."""

    def __init__(self, *errors):
        self.errors = list(errors)
        self.waits = []
        self.journal = []

    async def sleep(self, seconds):
        self.waits.append(seconds)

    async def run(self, **policy):
        async for attempt in attempts(sleep=self.sleep, uniform=TOP, **policy):
            with attempt:
                number = len(self.journal) + 1
                if self.errors:
                    self.journal.append((number, self.errors[0].error_class))
                    raise self.errors.pop(0)
                self.journal.append((number, "ok"))
                return number
        return None


def test_every_attempt_passes_through_the_callers_hands():
    script = Script(error("server"), error("unsupported", "degrade"), error("timeout"))
    assert asyncio.run(script.run()) == 4
    kinds = ["server", "unsupported", "timeout", "ok"]
    assert script.journal == list(enumerate(kinds, start=1))
    assert script.waits == [0.5, 0, 1.0]


def test_what_leaves_the_loop_is_the_last_error_with_its_final_action():
    script = Script(*[error("proxy") for _ in range(5)])
    with pytest.raises(ProviderError) as raised_error:
        asyncio.run(script.run())
    assert raised_error.value.action == "stop"
    assert len(script.journal) == 2


def test_giving_up_is_a_failed_call():
    script = Script(*[error("server") for _ in range(9)])
    with pytest.raises(ProviderError) as raised_error:
        asyncio.run(script.run(most=3))
    assert raised_error.value.action == "fail"
    assert len(script.journal) == 3


def test_a_bug_is_no_failed_call():
    async def main():
        async for attempt in attempts(sleep=Script().sleep):
            with attempt:
                raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        asyncio.run(main())


def test_cancelling_is_no_failed_call():
    async def main():
        async for attempt in attempts():
            with attempt:
                raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(main())


# -- counted at the server ----------------------------------------------------------------------


async def ask_patiently(model, most=5, **changes):
    async def no_sleep(_):
        return None

    provider = open_provider(
        model.ref(), environ=model.server.environ(), limits=Limits(timeout_s=5)
    )
    try:
        async for attempt in attempts(most, sleep=no_sleep):
            with attempt:
                return await provider.complete(model.request(**changes))
    finally:
        await provider.aclose()


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_server_sees_as_many_requests_as_the_policy_makes(asker, provider):
    model = asker(provider)
    model.misbehave(faults.rate_limit("0"))
    model.misbehave(faults.reset_mid_body())
    model.misbehave(faults.overloaded())
    assert asyncio.run(ask_patiently(model)).outcome == "ok"
    assert len(model.seen) == 4
    assert model.server.count(model=model.model, is_paid=True) == 2  # the lost one was made, too


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    ("fault", "requests"),
    [(faults.quota(), 1), (faults.unauthorized(), 1), (faults.server_error(), 3)],
    ids=lambda v: getattr(v, "name", str(v)),
)
def test_final_failures_cost_one_request(asker, provider, fault, requests):
    model = asker(provider)
    model.misbehave(fault, times=99)
    with pytest.raises(ProviderError):
        asyncio.run(ask_patiently(model, most=3))
    assert len(model.seen) == requests


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_ladder_is_gone_down_within_one_call(asker, provider):
    model = asker(provider)
    model.server.conduct(model.model, refuses=("temperature", "top_p", "topP"))
    options = {"temperature": 0.5, "top_p": 0.5}
    assert asyncio.run(ask_patiently(model, most=1, options=options)).outcome == "ok"


# -- Retry-After, as it has been seen in the wild -------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "5"}, 5),
        ({"retry-after": "0.25"}, 0.25),
        ({"retry-after": " 7 "}, 7),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after-ms": "1500"}, 1.5),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after-ms": "junk", "retry-after": "9"}, 9),
        ({"retry-after": "Fri, 20 Nov 2026 12:00:30 GMT"}, 30),
        ({"retry-after": "Fri, 20 Nov 2026 11:00:00 GMT"}, 0),
        ({"retry-after": "Fri, 20 Nov 2026 13:00:30 +0100"}, 30),
        ({"retry-after": "Fri, 20 Nov 2026 13:00:30 +99999999999999999999"}, None),
    ],
)
def test_every_form_of_a_hint_is_read(headers, seconds):
    from datetime import UTC, datetime

    now = datetime(2026, 11, 20, 12, 0, 0, tzinfo=UTC)
    assert hint(headers, now=lambda: now) == seconds


@PATIENT
@given(st.text(max_size=40))
def test_no_hint_is_an_accident(text):
    wait_s = hint({"retry-after": text})
    assert wait_s is None or wait_s >= 0
