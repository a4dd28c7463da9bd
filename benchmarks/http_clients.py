"""CPU per call and wall over ideal of HTTP clients, against the loopback server of the tests.

``python benchmarks/http_clients.py`` runs every client in a process of its own, at 100 in flight
and 100 ms, and at 500 in flight and 500 ms, and prints a table. One call is: build a judge's body
of about 2 kB, POST it, read the answer, parse it. ``--clients a,b`` picks; ``--rounds`` repeats and
keeps the best, since other work on the machine only ever adds.

CPU per call is the figure to compare; wall wanders with whatever else the machine does.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

TESTS = Path(__file__).parents[1] / "tests"
SETTINGS = ((100, 0.1, 2000), (500, 0.5, 3000))
PAGE = "Which of these answers is better? " * 50

Call = "Callable[[], Awaitable[str]]"


def body() -> dict[str, Any]:
    """What a judge is sent."""
    turns = [{"role": "system", "content": "You are a judge."}, {"role": "user", "content": PAGE}]
    return {"model": "m", "messages": turns, "max_tokens": 500}


def text(answer: Any) -> str:
    """What a judge said."""
    return answer["choices"][0]["message"]["content"]


# -- the clients: each yields a function that makes one call -----------------------------------


@contextlib.asynccontextmanager
async def aiohttp_plain(base: str) -> AsyncIterator[Call]:
    import aiohttp

    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def call() -> str:
            data = json.dumps(body()).encode()
            headers = {"content-type": "application/json"}
            async with session.post(f"{base}/chat/completions", data=data, headers=headers) as r:
                return text(json.loads(await r.read()))

        yield call


@contextlib.asynccontextmanager
async def aiohttp_trust_env(base: str) -> AsyncIterator[Call]:
    import aiohttp

    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, trust_env=True) as session:

        async def call() -> str:
            data = json.dumps(body()).encode()
            headers = {"content-type": "application/json"}
            async with session.post(f"{base}/chat/completions", data=data, headers=headers) as r:
                return text(json.loads(await r.read()))

        yield call


@contextlib.asynccontextmanager
async def httpx2_one(base: str) -> AsyncIterator[Call]:
    import httpx2

    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=None)
    async with httpx2.AsyncClient(limits=limits, timeout=60) as client:

        async def call() -> str:
            answer = await client.post(f"{base}/chat/completions", json=body())
            return text(answer.json())

        yield call


@contextlib.asynccontextmanager
async def httpx2_sharded(base: str) -> AsyncIterator[Call]:
    import httpx2

    verify = httpx2.create_ssl_context()
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=None)
    async with contextlib.AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(
                httpx2.AsyncClient(limits=limits, timeout=60, verify=verify)
            )
            for _ in range(16)
        ]
        turn = 0

        async def call() -> str:
            nonlocal turn
            turn += 1
            answer = await clients[turn % 16].post(f"{base}/chat/completions", json=body())
            return text(answer.json())

        yield call


@contextlib.asynccontextmanager
async def httpx2_over_aiohttp(base: str) -> AsyncIterator[Call]:
    import httpx2

    from clash.providers.payload import MAX_BYTES
    from clash.providers.transport import AiohttpTransport

    async with httpx2.AsyncClient(
        transport=AiohttpTransport(base, MAX_BYTES), timeout=60
    ) as client:

        async def call() -> str:
            answer = await client.post(f"{base}/chat/completions", json=body())
            return text(answer.json())

        yield call


@contextlib.asynccontextmanager
async def httpcore2_sharded(base: str) -> AsyncIterator[Call]:
    import httpcore2

    async with contextlib.AsyncExitStack() as stack:
        pools = [
            await stack.enter_async_context(
                httpcore2.AsyncConnectionPool(max_connections=None, max_keepalive_connections=None)
            )
            for _ in range(16)
        ]
        turn = 0
        url = f"{base}/chat/completions"

        async def call() -> str:
            nonlocal turn
            turn += 1
            data = json.dumps(body()).encode()
            headers = {"content-type": "application/json", "content-length": str(len(data))}
            answer = await pools[turn % 16].request("POST", url, headers=headers, content=data)
            return text(json.loads(answer.content))

        yield call


@contextlib.asynccontextmanager
async def openai_default(base: str) -> AsyncIterator[Call]:
    import openai

    client = openai.AsyncOpenAI(
        api_key=os.environ["WIRE_KEY"], base_url=base, max_retries=0, timeout=60
    )

    async def call() -> str:
        answer = await client.chat.completions.create(**body())
        return answer.choices[0].message.content or ""

    yield call
    await client.close()


@contextlib.asynccontextmanager
async def provider(base: str, model: str) -> AsyncIterator[Call]:
    from clash.config import Limits, ModelRef
    from clash.providers import open_provider
    from clash.providers.base import Request
    from clash.records import Turn

    key = {"COMPATIBLE_API_KEY": "", "OPENAI_API_KEY": os.environ["WIRE_KEY"]}
    key |= {"ANTHROPIC_API_KEY": os.environ["WIRE_ANTHROPIC"]}
    key |= {"GEMINI_API_KEY": os.environ["WIRE_GOOGLE"]}
    ref = ModelRef(model=model, base_url=base).chosen_by("owner")
    opened = open_provider(ref, environ=key, limits=Limits())
    turns = (Turn(role="user", content=PAGE),)
    request = Request(turns=turns, max_tokens=500, system="You are a judge.")

    async def call() -> str:
        return (await opened.complete(request)).text

    yield call
    await opened.aclose()


CLIENTS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "aiohttp": ("compatible", aiohttp_plain),
    "aiohttp, trust_env": ("compatible", aiohttp_trust_env),
    "httpx2, one client": ("compatible", httpx2_one),
    "httpx2, 16 clients": ("compatible", httpx2_sharded),
    "httpx2 over aiohttp": ("compatible", httpx2_over_aiohttp),
    "httpcore2, 16 pools": ("compatible", httpcore2_sharded),
    "openai SDK": ("openai", openai_default),
    "clash compatible": ("compatible", lambda base: provider(base, "compatible/m")),
    "clash openai": ("openai", lambda base: provider(base, "openai/m")),
    "clash anthropic": ("anthropic", lambda base: provider(base, "anthropic/m")),
    "clash google": ("google", lambda base: provider(base, "google/m")),
}


# -- one measurement, in a process of its own --------------------------------------------------


async def drive(call: Call, concurrency: int, calls: int) -> float:
    """Seconds for ``calls`` calls with ``concurrency`` of them in flight."""
    left = iter(range(calls))

    async def worker() -> None:
        for _ in left:
            if not await call():
                raise RuntimeError("no text")

    start_s = time.perf_counter()
    async with asyncio.TaskGroup() as tasks:
        for _ in range(concurrency):
            tasks.create_task(worker())
    return time.perf_counter() - start_s


def cpu() -> float:
    """CPU seconds of this process so far."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


async def measure(client: str, base: str, concurrency: int, calls: int) -> dict[str, float]:
    async with CLIENTS[client][1](base) as call:
        await call()
        before = cpu()
        wall = await drive(call, concurrency, calls)
        cpu_s = cpu() - before
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"cpu_ms": cpu_s / calls * 1000, "wall_s": wall, "rss_mb": peak}


# -- all of them -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    client: str
    concurrency: int
    cpu_ms: float
    ratio: float
    rss_mb: float


@contextlib.contextmanager
def server(latency: float) -> Iterator[dict[str, str]]:
    environ = os.environ | {"PYTHONPATH": str(TESTS)}
    command = [sys.executable, "-m", "wire", "--latency", str(latency)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environ, text=True)
    try:
        yield json.loads(process.stdout.readline())["environ"]
    finally:
        process.terminate()
        process.wait()


def run(client: str, concurrency: int, latency: float, calls: int, rounds: int) -> Row:
    with server(latency) as where:
        vendor = CLIENTS[client][0]
        base = where[
            "GOOGLE_GEMINI_BASE_URL" if vendor == "google" else f"{vendor.upper()}_BASE_URL"
        ]
        keys = {
            "WIRE_KEY": where["OPENAI_API_KEY"],
            "WIRE_ANTHROPIC": where["ANTHROPIC_API_KEY"],
            "WIRE_GOOGLE": where["GEMINI_API_KEY"],
        }
        command = [sys.executable, __file__, "--one", client, base, str(concurrency), str(calls)]
        outputs = []
        for _ in range(rounds):
            result = subprocess.run(command, env=os.environ | keys, capture_output=True, text=True)
            if result.returncode:
                raise SystemExit(result.stderr)
            outputs.append(json.loads(result.stdout))
    ideal = calls * latency / concurrency
    return Row(
        client,
        concurrency,
        min(f["cpu_ms"] for f in outputs),
        min(f["wall_s"] for f in outputs) / ideal,
        max(f["rss_mb"] for f in outputs),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", help="separated by semicolons; all by default")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        client, base, concurrency, calls = options.one
        result = asyncio.run(measure(client, base, int(concurrency), int(calls)))
        print(json.dumps(result))
        return
    client_names = options.clients.split(";") if options.clients else list(CLIENTS)
    print("| client | in flight | CPU ms/call | wall/ideal | peak MB |")
    print("| --- | --- | --- | --- | --- |")
    for client in client_names:
        for concurrency, latency, calls in SETTINGS:
            row = run(client, concurrency, latency, calls, options.rounds)
            print(
                f"| {row.client} | {row.concurrency} | {row.cpu_ms:.2f} | {row.ratio:.2f}"
                f" | {row.rss_mb:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
