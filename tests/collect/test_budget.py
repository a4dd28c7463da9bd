"""Money is reserved before it is spent, so that no order of events can pass the limit."""

from __future__ import annotations

from decimal import Decimal
from types import SimpleNamespace

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clash.collect.budget import Budget, BudgetSpent
from clash.collect.history import read_history
from clash.config import Config
from clash.errors import RunFolderError
from clash.records import Batch, BatchRow, Reservation
from clash.store.folder import RunWriter
from clash.store.manifest import Manifest
from store.calls import call

CENTS = st.integers(0, 100).map(lambda cents: Decimal(cents) / 100)


def test_without_a_limit_everything_fits_and_is_counted():
    async def spend():
        budget = Budget()
        reservation = await budget.reserve(Decimal("1e6"))
        budget.settle(reservation, Decimal(3))
        return budget

    budget = anyio.run(spend)
    assert (budget.spent_usd, budget.reserved_usd, budget.exact) == (3, 0, True)


@given(CENTS, st.lists(st.tuples(CENTS, CENTS, st.booleans()), max_size=12), st.integers(1, 5))
def test_no_order_of_calls_passes_the_limit(limit, calls, workers):
    """Each call costs at most what was reserved for it; some never tell what they cost."""

    async def spend():
        budget, pending, highest = Budget(limit), iter(calls), Decimal(0)

        async def worker():
            nonlocal highest
            for worst, share, message in pending:
                try:
                    reservation = await budget.reserve(worst)
                except BudgetSpent:
                    return
                highest = max(highest, budget.spent_usd + budget.reserved_usd)
                await anyio.lowlevel.checkpoint()
                budget.settle(reservation, worst * share if message else None)

        async with anyio.create_task_group() as tasks:
            for _ in range(workers):
                tasks.start_soon(worker)
        return budget, highest

    budget, highest = anyio.run(spend)
    assert budget.spent_usd <= highest <= limit
    assert budget.reserved_usd == 0


def test_a_call_waits_for_those_in_flight_where_they_may_leave_enough():
    async def spend():
        budget, told = Budget(Decimal("1.00")), []

        async def second():
            await budget.reserve(Decimal("0.60"))
            told.append("second")

        reservation = await budget.reserve(Decimal("0.80"))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(second)
            await anyio.wait_all_tasks_blocked()
            assert told == []
            budget.settle(reservation, Decimal("0.10"))
        return told

    assert anyio.run(spend) == ["second"]


def test_a_call_that_could_never_fit_is_refused_at_once():
    async def spend():
        budget = Budget(Decimal("1.00"))
        budget.book(Decimal("0.70"), exact=True)
        await budget.reserve(Decimal("0.20"))  # in flight: whatever it leaves, 0.40 cannot fit
        with pytest.raises(BudgetSpent, match=r"budget of \$1.00 .* the next may cost \$0.4000"):
            await budget.reserve(Decimal("0.40"))

    anyio.run(spend)


def test_what_nobody_told_is_booked_as_reserved_and_makes_the_sum_inexact():
    async def spend():
        budget = Budget(Decimal(1))
        budget.settle(await budget.reserve(Decimal("0.25")), None)
        return budget

    budget = anyio.run(spend)
    assert budget.spent_usd == Decimal("0.25")
    assert not budget.exact
    earlier = Budget()
    earlier.book(Decimal("0.5"), exact=False)
    assert (earlier.spent_usd, earlier.exact) == (Decimal("0.5"), False)


def test_every_attempt_that_a_kill_cut_short_counts_as_spent_and_keeps_its_number(tmp_path):
    """Two lost attempts of one call, then an answered third: all three may have been billed."""
    with RunWriter.create(tmp_path, "run", Manifest(run="run", kind="eval")) as writer:
        for attempt in (1, 2, 3):
            writer.append(Reservation(call_id="c", attempt=attempt, usd=0.25))
        writer.append(call(attempt=3, cost_usd=0.125))
        writer.append(Reservation(call_id="d", attempt=1, usd=0.5))
        config = Config.model_validate({"limits": {"max_cost": 2}})
        plan = SimpleNamespace(config=config, max_cost=Decimal(2))
        past = read_history(plan, writer)
    assert past.budget.limit == 2
    assert past.budget.spent_usd == Decimal("0.25") * 2 + Decimal("0.125") + Decimal("0.5")
    assert not past.budget.exact
    assert {name: past.calls.number(name) for name in "cd"} == {"c": 3, "d": 1}
    assert list(past.calls) == ["c"]


@pytest.mark.parametrize(
    ("record", "field"),
    [
        (call(cost_usd=1.0), "cost_usd"),
        (call(cost_bound_usd=1.0), "cost_bound_usd"),
        (Reservation(call_id="c", attempt=1, usd=1.0), "usd"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_negative_cost_on_record_adds_nothing_to_a_budget(tmp_path, record, field):
    """Whoever passes on a run to be resumed could have written it."""
    forged_config_copy = record.model_copy(update={field: -1e6})
    with RunWriter.create(tmp_path, "run", Manifest(run="run", kind="eval")) as writer:
        writer.append(forged_config_copy)
        plan = SimpleNamespace(config=Config(), max_cost=Decimal(2))
        with pytest.raises(RunFolderError, match=f"{field}: .* greater than or equal to 0"):
            read_history(plan, writer)


def test_what_is_in_a_batch_that_goes_on_is_set_aside_and_not_lost(tmp_path):
    """Two rows are with the provider, a third has its call, and one batch is only not closed."""

    def row(name):
        return BatchRow(call_id=name, attempt=1, custom_id=f"{name}-b", request_hash="h")

    began = "2026-11-21T00:00:00.000Z"
    with RunWriter.create(tmp_path, "run", Manifest(run="run", kind="eval")) as writer:
        for name, calls in (("b", "cde"), ("over", "f")):
            rows = [row(name) for name in calls]
            for state in ("submitting", "submitted"):
                writer.append(
                    Batch(
                        batch=name,
                        model="m",
                        state=state,
                        rows=rows if state == "submitting" else [],
                        provider_id=None if state == "submitting" else f"id-{name}",
                        time=began,
                    )
                )
        for call_id in "cdefx":
            writer.append(Reservation(call_id=call_id, attempt=1, usd=0.5))
        for call_id in "cf":
            writer.append(call(call_id, cost_usd=0.125))
        config = Config.model_validate({"limits": {"max_cost": 2}})
        plan = SimpleNamespace(config=config, max_cost=Decimal(2))
        past = read_history(plan, writer)
        states = {batch.batch: batch.state for batch in writer.batches()}
    assert past.budget.reserved_usd == Decimal("0.5") * 2
    assert past.budget.spent_usd == Decimal("0.125") * 2 + Decimal("0.5")  # x is lost
    (batch,) = past.batches
    assert (batch.provider_id, batch.n_open, batch.n_answered) == ("id-b", 2, 1)
    assert [question.call_id for question in batch.questions.values()] == ["d", "e"]
    assert states == {"b": "submitted", "over": "ended"}
