"""A call: its money reserved first, every attempt written down, nothing answered asked again."""

from __future__ import annotations

import anyio
import pytest

from clash.collect.budget import Budget, BudgetSpent
from clash.collect.calling import Caller, ModelStopError, PendingCall, call_id
from clash.collect.schedule import Interrupted, Stop
from clash.config import Limits, ModelRef
from clash.errors import ProviderError
from clash.providers.base import Reply, Request
from clash.providers.workers import WorkerError
from clash.records import Call, Reservation, Tokens, Turn

MODEL = ModelRef(model="compatible/m", price={"input": 1, "output": 1})
REQUEST = Request(turns=(Turn(role="user", content="?"),), max_tokens=100)


class Silent:
    """A listener that only counts."""

    def __init__(self):
        self.events = []

    def attempt_began(self, pending):
        self.events.append("sent")

    def attempt_ended(self, pending, call):
        self.events.append(call.outcome)


class Script:
    """A provider that does what it is told, in order."""

    offline = False
    account = "somewhere"

    def __init__(self, *acts):
        self.acts = list(acts)
        self.asked = 0
        self.at_once = self.peak = 0

    async def complete(self, request):
        self.asked += 1
        self.at_once += 1
        self.peak = max(self.peak, self.at_once)
        await anyio.lowlevel.checkpoint()
        self.at_once -= 1
        act = self.acts.pop(0) if self.acts else "yes"
        if isinstance(act, ProviderError):
            raise act
        if callable(act):
            act()
            act = "yes"
        return Reply(
            text=act,
            outcome="ok",
            request={"body": "b"},
            response={},
            tokens=Tokens(input=10, output=20),
        )

    async def aclose(self): ...


def error(kind="server", action="retry", **more):
    return ProviderError("no", error_class=kind, action=action, **more)


def ask(name="c", ref=MODEL, **more):
    return PendingCall(call_id=name, purpose="judge", item_id="q", ref=ref, request=REQUEST, **more)


class Past:
    """The calls of an earlier process."""

    def __init__(self, calls, numbers):
        self.answers = {call.call_id: call for call in calls if call.outcome != "error"}
        self.numbers = numbers

    def answer(self, call_id):
        return self.answers.get(call_id)

    def number(self, call_id):
        return self.numbers.get(call_id, 0)


class Desk:
    """A caller, what it wrote, and the provider behind it."""

    def __init__(
        self, *acts, budget=None, stop=None, n_done=(), attempts_made=None, concurrency=64
    ):
        self.written, self.listener = [], Silent()
        self.provider, self.budget = Script(*acts), budget or Budget()
        self.stop = Stop() if stop is None else stop  # one that has not stopped is false
        self.caller = Caller(
            self.written.append,
            self.budget,
            Limits(max_attempts=3, concurrency=concurrency),
            {},
            self.listener,
            self.stop,
            past=Past(n_done, attempts_made or {}),
        )
        self.caller._open = lambda ref: self.provider

    def run(self, *asks):
        """Ask them all at once; what each came to, in order."""
        results = {}

        async def one(position, goal):
            try:
                results[position] = await self.caller.ask(goal)
            except (ModelStopError, Interrupted, BudgetSpent) as end:
                results[position] = end

        async def main():
            async with anyio.create_task_group() as tasks:
                for position, request in enumerate(asks):
                    tasks.start_soon(one, position, request)
            await self.caller.aclose()

        anyio.run(main)
        return [results[position] for position in range(len(asks))]

    @property
    def calls(self):
        return [record for record in self.written if isinstance(record, Call)]


@pytest.fixture(autouse=True)
def _no_waits(monkeypatch):
    """Backoff is tested where it is decided; here nobody waits for it."""

    async def at_once(self, seconds):
        await anyio.lowlevel.checkpoint()

    monkeypatch.setattr(Caller, "_sleep", at_once)


def test_the_reservation_is_written_before_the_call_goes_out():
    calls_in_order = []
    desk = Desk(lambda: calls_in_order.extend(desk.written))
    desk.run(ask())
    (held_call,) = calls_in_order
    assert isinstance(held_call, Reservation)
    assert (held_call.call_id, held_call.attempt) == ("c", 1)
    (call,) = desk.calls
    assert call.cost_usd == pytest.approx(30e-6)
    assert held_call.usd >= call.cost_usd
    assert (desk.budget.reserved_usd, float(desk.budget.spent_usd)) == (0, pytest.approx(30e-6))
    assert desk.listener.events == ["sent", "ok"]


def test_every_attempt_is_written_down_and_a_failed_call_is_a_row():
    desk = Desk(error(status=500), error(status=502), error(status=503))
    (last,) = desk.run(ask())
    assert [(c.attempt, c.status, c.outcome, c.error_class) for c in desk.calls] == [
        (1, 500, "error", "server"),
        (2, 502, "error", "server"),
        (3, 503, "error", "server"),
    ]
    assert (last.outcome, last.error) == ("error", "no")
    assert desk.budget.spent_usd == 0


def test_a_lost_answer_costs_its_worst_case_and_a_refused_request_nothing():
    desk = Desk(error("connection", maybe_billed=True), error("rate_limit"))
    desk.run(ask())
    lost_call, refused_call, answered_call = desk.calls
    worst = desk.written[0].usd
    assert (lost_call.cost_usd, lost_call.cost_bound_usd) == (None, worst)
    assert (refused_call.cost_usd, refused_call.cost_bound_usd) == (0, None)
    assert float(desk.budget.spent_usd) == pytest.approx(worst + answered_call.cost_usd)
    assert not desk.budget.exact


def test_an_answered_call_is_not_made_again_and_a_failed_one_goes_on_counting():
    first = Desk("yes", error(action="fail"))
    first.run(ask("a"))
    first.run(ask("b"))
    again = Desk(n_done=first.calls, attempts_made={"a": 1, "b": 4})
    a, b = again.run(ask("a"), ask("b"))
    assert a == first.calls[0]
    assert [(c.call_id, c.attempt) for c in again.calls] == [("b", 5)]
    assert b.outcome == "ok"


def test_a_model_that_refused_for_good_is_asked_nothing_more():
    ref = MODEL.model_copy(update={"concurrency": 1})
    desk = Desk(error("auth", "stop"))
    results = desk.run(*(ask(str(n), ref) for n in range(5)))
    assert all(isinstance(result, ModelStopError) for result in results)
    assert {str(result) for result in results} == {"auth: no"}
    assert desk.provider.asked == len(desk.calls) == 1
    assert desk.caller.stop_reasons == {"compatible/m": "auth: no"}


@pytest.mark.parametrize("most", [1, 2, 5])
def test_a_model_is_held_to_its_own_concurrency_whoever_asks_it(most):
    """Two judges of one model at one account share its room."""
    refs = [
        MODEL.model_copy(update={"concurrency": most, "api_key_env": name}) for name in ("A", "B")
    ]
    desk = Desk()
    desk.run(*(ask(str(n), refs[n % 2]) for n in range(12)))
    assert desk.provider.peak == most
    assert desk.provider.asked == 12


def test_concurrency_of_one_model_does_not_bind_another_at_the_same_account():
    desk = Desk()
    narrow = MODEL.model_copy(update={"concurrency": 1})
    wide = ModelRef(model="compatible/n", price=MODEL.price)
    desk.run(ask("first", narrow), *(ask(str(n), wide) for n in range(10)))
    assert desk.provider.peak > 2


def test_the_cap_over_all_holds():
    desk = Desk(concurrency=3)
    desk.run(*(ask(str(n)) for n in range(12)))
    assert desk.provider.peak == 3


def test_after_a_stop_no_attempt_begins_and_nothing_is_written_for_it():
    stop = Stop()
    desk = Desk(lambda: stop.now("a person"), stop=stop, concurrency=1)
    results = desk.run(*(ask(str(n)) for n in range(4)))
    assert results[0].outcome == "ok"
    assert all(isinstance(result, Interrupted) for result in results[1:])
    assert desk.provider.asked == len(desk.calls) == 1
    assert desk.budget.reserved_usd == 0


def test_after_a_stop_what_waited_for_money_is_not_sent():
    from decimal import Decimal

    stop = Stop()
    plain = Desk()
    plain.run(ask())
    worst = Decimal(repr(plain.written[0].usd))
    desk = Desk(lambda: stop.now("a person"), stop=stop, budget=Budget(worst * Decimal("1.5")))
    first, second = desk.run(ask("a"), ask("b"))
    assert first.outcome == "ok"
    assert isinstance(second, Interrupted)
    assert desk.provider.asked == 1
    assert [r.call_id for r in desk.written if isinstance(r, Reservation)] == ["a"]
    assert desk.budget.reserved_usd == 0


def test_a_stop_ends_the_retries_of_a_call():
    stop = Stop()

    def fail():
        stop.now("a person")
        raise error("overloaded")

    desk = Desk(fail, stop=stop)
    (result,) = desk.run(ask())
    assert isinstance(result, Interrupted)
    assert [call.error_class for call in desk.calls] == ["overloaded"]


def test_without_the_money_for_an_attempt_nothing_is_sent():
    from decimal import Decimal

    desk = Desk(budget=Budget(Decimal("0.000001")))
    (result,) = desk.run(ask())
    assert isinstance(result, BudgetSpent)
    assert desk.provider.asked == 0
    assert desk.written == []


def test_a_refused_part_is_left_out_at_once_and_is_no_failed_attempt_of_the_three():
    refused_failure = error("unsupported", "degrade", status=400)
    desk = Desk(refused_failure, refused_failure, error(), error(), "yes")
    (call,) = desk.run(ask())
    assert call.outcome == "ok"
    assert [c.error_class for c in desk.calls] == [*["unsupported"] * 2, *["server"] * 2, None]


def test_a_call_has_the_same_id_whenever_it_is_planned_and_another_for_anything_else():
    assert call_id("judge", "q", 0, "a") == call_id("judge", "q", 0, "a")
    other_fields = {
        call_id("judge", "q", 0, "b"),
        call_id("judge", "q", 1, "a"),
        call_id("judge", "q0", "", "a"),
        call_id("generate", "q", 0, "a"),
        call_id("judge", "q", "0\x1e", "a"),
    }
    assert len(other_fields) == 5
    assert call_id("judge", "q", 0, "a") not in other_fields
    assert call_id("judge", "\ud800", 0, "a").startswith("judge-")


def test_where_no_actor_starts_no_money_is_reserved():
    class Nobody:
        def open(self, ref):
            return Script()

        async def worker(self):
            raise WorkerError("none")

    desk = Desk()
    desk.caller._pool, desk.caller._has_cluster = Nobody(), True
    with pytest.raises(WorkerError):
        anyio.run(desk.caller.ask, ask())
    assert (desk.written, desk.budget.reserved_usd) == ([], 0)
