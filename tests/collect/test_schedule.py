"""Some workers, one iterator: none too many at once, none lost, none begun after a stop."""

from __future__ import annotations

import anyio
import pytest

from clash.collect.budget import BudgetSpent
from clash.collect.schedule import Interrupted, Pool, Stop, announce_start, drain


def test_each_piece_is_done_once_by_at_most_so_many_workers():
    finished_ids, at_once = [], []

    async def work(piece):
        at_once.append(piece)
        assert len(at_once) <= 3
        await anyio.lowlevel.checkpoint()
        at_once.remove(piece)
        finished_ids.append(piece)

    anyio.run(drain, [Pool(range(20), work, 3)], Stop())
    assert sorted(finished_ids) == list(range(20))


def test_a_slow_model_holds_up_no_other():
    warnings_told = []

    async def main():
        event = anyio.Event()

        async def slow(_):
            await event.wait()
            warnings_told.append("slow")

        async def quick(piece):
            warnings_told.append(piece)
            if piece == 4:
                event.set()

        await drain([Pool([0], slow, 1), Pool(range(5), quick, 1)], Stop())

    anyio.run(main)
    assert warnings_told == [0, 1, 2, 3, 4, "slow"]


def test_pieces_are_pulled_when_there_is_a_worker_for_them_and_not_before():
    pulls = []

    def pieces():
        for piece in range(1000):
            pulls.append(piece)
            yield piece

    async def main():
        stop = Stop()

        async def work(piece):
            await anyio.lowlevel.checkpoint()
            if piece == 5:
                stop.now("enough")

        await drain([Pool(pieces(), work, 2)], stop)

    anyio.run(main)
    assert len(pulls) <= 8


@pytest.mark.parametrize("end", ["now", "budget", "interrupted"])
def test_after_a_stop_what_was_begun_is_finished_and_nothing_begins(end):
    starts, ends = [], []
    stop = Stop()

    async def work(piece):
        starts.append(piece)
        await anyio.lowlevel.checkpoint()
        if piece == 3:
            if end == "now":
                stop.now("a person")
            elif end == "budget":
                raise BudgetSpent("no money")
            else:
                stop.now("a person")
                raise Interrupted("a person")
        await anyio.lowlevel.checkpoint()
        ends.append(piece)

    anyio.run(drain, [Pool(range(10), work, 2)], stop)
    assert stop.reason == ("no money" if end == "budget" else "a person")
    assert len(starts) < 10
    assert set(starts) - set(ends) == (set() if end == "now" else {3})


def test_the_first_reason_stands():
    stop = Stop()
    assert not stop
    stop.now("one")
    stop.now("two")
    assert stop
    assert stop.reason == "one"


def test_a_stop_wakes_those_who_only_wait():
    async def main():
        stop, wakeups = Stop(), []

        async def wait():
            with stop.wakes():
                await anyio.sleep_forever()
            wakeups.append(bool(stop))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            stop.now("enough")
        with stop.wakes():
            await anyio.sleep_forever()  # and those who come later need not wait at all
        return wakeups

    assert anyio.run(main) == [True]


def test_a_bug_ends_the_run_and_is_not_hidden():
    async def work(piece):
        raise ZeroDivisionError

    with pytest.raises(ExceptionGroup) as error:
        anyio.run(drain, [Pool([1, 2], work, 1)], Stop())
    assert error.group_contains(ZeroDivisionError)


@pytest.mark.parametrize("room", [1, 4, 50])
def test_where_work_queues_one_piece_waits_and_as_many_run_as_there_is_room_for(room):
    pulls, running, peaks, ends = [], [], [], []

    def pieces():
        for piece in range(100):
            pulls.append(piece)
            yield piece

    async def main():
        tokens = anyio.CapacityLimiter(room)

        async def work(piece):
            async with tokens:
                announce_start()
                running.append(piece)
                for _ in range(20):
                    await anyio.lowlevel.checkpoint()
                    peaks.append((len(running), len(pulls) - len(ends)))
                running.remove(piece)
                ends.append(piece)

        await drain([Pool(pieces(), work, 30, queues=True)], Stop())

    anyio.run(main)
    assert sorted(ends) == list(range(100))
    assert max(at_once for at_once, _ in peaks) == min(room, 30)
    assert max(held for _, held in peaks) <= min(room + 1, 30)


def test_work_that_queues_but_never_says_so_is_done_all_the_same():
    ends = []

    async def work(piece):
        ends.append(piece)

    anyio.run(drain, [Pool(range(20), work, 3, queues=True)], Stop())
    assert sorted(ends) == list(range(20))


def test_who_waits_for_an_answer_that_is_under_way_is_woken_only_where_it_is_left():
    """The budget's end does not leave a batch; a person who goes does."""
    stop, wakeups = Stop(), []

    async def patient():
        with stop.wakes(patient=True):
            await anyio.sleep_forever()
        wakeups.append("patient")

    async def main():
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(patient)
            await anyio.lowlevel.checkpoint()
            stop.now("the budget is spent")
            await anyio.sleep(0.01)
            assert wakeups == []
            tasks.start_soon(patient)
            await anyio.sleep(0.01)
            assert wakeups == []
            stop.now("interrupted", leaves=True)
        await patient()

    anyio.run(main)
    assert wakeups == ["patient"] * 3
    assert stop.reason == "the budget is spent"
