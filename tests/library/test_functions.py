"""Python functions as candidates and judges, through the library."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from typing import TYPE_CHECKING

import pytest

import clash

if TYPE_CHECKING:
    from pathlib import Path

PROMPTS = [f"Say {i} things." for i in range(10)]


def terse(prompt: str) -> str:
    return prompt[:3]


async def verbose(prompt: str) -> str:
    await asyncio.sleep(0)
    return prompt * 3


def longest(prompt: str, responses: dict[str, str]) -> str:
    return max(responses, key=lambda label: len(responses[label]))


def test_two_functions_before_a_function(tmp_path: Path) -> None:
    run = clash.evaluate(PROMPTS, {"terse": terse, "verbose": verbose}, [longest], out=tmp_path)
    assert run.winner == "verbose"
    assert run.coverage.n_clean == 10
    extras = {c["id"]: c["options"]["extra"] for c in run.manifest.candidates}
    assert extras["terse"]["callable"].endswith("terse")
    assert len(extras["verbose"]["source_sha256"]) == 64


def test_async_functions_run_in_the_loop_of_the_caller(tmp_path: Path) -> None:
    loops = set()

    async def mine(prompt: str) -> str:
        loops.add(asyncio.get_running_loop())
        return prompt

    async def main() -> asyncio.AbstractEventLoop:
        await clash.evaluate_async(PROMPTS, {"terse": terse, "mine": mine}, [longest], out=tmp_path)
        return asyncio.get_running_loop()

    assert loops == {asyncio.run(main())}


def test_a_function_that_fails_is_a_failed_response_and_no_vote(tmp_path: Path) -> None:
    def broken(prompt: str) -> str:
        raise ValueError(prompt)

    run = clash.evaluate(PROMPTS, {"terse": terse, "broken": broken}, [longest], out=tmp_path)
    assert run.exit_code == 3
    assert run.coverage.responses_failed == {"broken": 10}
    assert run.winner is None


def test_an_interrupted_run_is_sealed_and_can_be_resumed(tmp_path: Path) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    calls: list[str] = []

    def slow(prompt: str) -> str:
        calls.append(prompt)
        if len(calls) == 3:
            os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.2)
        return prompt

    functions = {"slow": slow, "terse": terse, "longest": longest}
    with pytest.raises(KeyboardInterrupt):
        clash.evaluate(
            PROMPTS,
            {"slow": slow, "terse": terse},
            [longest],
            out=tmp_path,
            run_id="stopped",
            concurrency=1,
        )
    stopped_run_data = clash.load("stopped", out=tmp_path)
    assert stopped_run_data.status == "partial"
    with pytest.raises(clash.ClashError, match="Python function"):
        clash.resume(stopped_run_data)
    assert clash.resume(stopped_run_data, functions=functions, concurrency=8).status == "complete"


def test_a_second_interrupt_gives_up_the_calls_in_flight(tmp_path: Path) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    free = threading.Event()

    def hang(prompt: str) -> str:
        if not timers[0].is_alive():
            for timer in timers:
                timer.start()
        free.wait(60)
        return prompt

    timers = [
        threading.Timer(after_s, os.kill, (os.getpid(), signal.SIGINT)) for after_s in (0.1, 1)
    ]
    try:
        with pytest.raises(KeyboardInterrupt):
            clash.evaluate(
                PROMPTS, [hang, terse], longest, out=tmp_path, run_id="hung", concurrency=1
            )
    finally:
        free.set()
    assert clash.load("hung", out=tmp_path).status == "partial"  # the folder is sealed by then


def test_a_second_cancellation_gives_up_the_calls_in_flight(tmp_path: Path) -> None:
    async def main() -> None:
        event = asyncio.Event()

        async def hang(prompt: str) -> str:
            event.set()
            await asyncio.sleep(60)
            return prompt

        work = asyncio.create_task(
            clash.evaluate_async(PROMPTS, [hang, terse], longest, out=tmp_path, run_id="hung")
        )
        await event.wait()
        work.cancel()
        await asyncio.sleep(0.3)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work

    asyncio.run(main())
    assert clash.load("hung", out=tmp_path).status == "partial"


def test_judges_and_observers_are_functions_by_name_too(tmp_path: Path) -> None:
    def shortest(prompt: str, responses: dict[str, str]) -> str:
        return min(responses, key=lambda label: len(responses[label]))

    panel = {"long": longest, "long again": lambda prompt, responses: longest(prompt, responses)}
    run = clash.evaluate(PROMPTS, [terse, verbose], panel, observers=[shortest], out=tmp_path)
    assert {judgment.judge for judgment in run.judgments} == {"long", "long again", "shortest"}
    assert run.winner == "verbose"


def test_a_run_goes_on_only_with_the_same_function(tmp_path: Path) -> None:
    run = clash.evaluate(PROMPTS, {"terse": terse, "verbose": verbose}, [longest], out=tmp_path)
    functions = {"terse": verbose, "verbose": verbose, "longest": longest}
    with pytest.raises(clash.ClashError, match="another source"):
        clash.rerun(run, functions=functions, regenerate=True)
    functions["terse"] = terse
    assert clash.rerun(run, functions=functions, regenerate=True).findings is not None
