"""What a judge call costs, all included: ``clash eval`` against a loopback server, beside clients.

``python benchmarks/orchestration.py`` prints one table of ratios, made in one run on one machine:
CPU per judge call (of the whole process, less that of a run of three calls; and of this the part
until the last answer, which leaves out the report), the time from the first request to the last
answer over the ideal (calls x latency / concurrency), the calls that were really in flight, and
peak memory; then what faults, a kill -9 and ``clash --help`` cost.
``--parts`` picks, ``--quick`` makes a third of the calls, ``--rounds`` repeats and keeps the best,
since other work on the machine only ever adds.

Every run is ``clash eval`` as a user would type it, in a process of its own, on a file of items
with two injected responses each; the raw clients send the very bodies that it sent.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hashlib
import itertools
import json
import os
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from harness import CLASH, ROOT, ResourceUse, run, server, start, terminal

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator


JUDGES = 3
PANELS = ("http", "sdk")
OPENAI = ("openai/gpt-6-astra", "openai/gpt-6-luna", "openai/gpt-6-sol")
"""Three models of one account, all through the OpenAI SDK."""
_WORDS = [
    "the",
    "a",
    "merge",
    "sorted",
    "lists",
    "of",
    "numbers",
    "which",
    "keeps",
    "order",
    "where",
    "both",
    "are",
    "empty",
    "or",
    "long",
]


@dataclass(frozen=True)
class Setting:
    """So many calls at once, of such a latency, on so many items."""

    concurrency: int
    latency_s: float
    items: int

    @property
    def calls(self) -> int:
        return self.items * JUDGES

    @property
    def ideal_s(self) -> float:
        return self.calls * self.latency_s / self.concurrency

    @property
    def name(self) -> str:
        return f"{self.concurrency} in flight, {self.latency_s * 1000:.0f} ms"


SETTINGS = (Setting(100, 0.1, 333), Setting(500, 0.5, 1000))


# -- what is judged ------------------------------------------------------------------------------


def write_inputs(folder: Path, items: int) -> None:
    """A prompts file, the two panels and a configuration; the same bytes at every call."""
    lines = (json.dumps(_item(number)) + "\n" for number in range(items))
    (folder / f"items-{items}.jsonl").write_text("".join(lines), encoding="utf-8")
    for name in (*PANELS, "openai"):
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(_panel(name)), encoding="utf-8")
    (folder / "clash.yaml").write_text("criteria: {mode: fixed}\n", encoding="utf-8")


def _item(number: int) -> dict[str, Any]:
    return {
        "id": f"q{number}",
        "prompt": f"Write a function that merges two sorted lists, in {number + 2} lines at most.",
        "responses": {name: _text(f"{name[-1]}{number}", 150) for name in ("model-a", "model-b")},
    }


def _text(seed: str, words: int) -> str:
    word_choice = (_WORDS[(number * number + len(seed)) % len(_WORDS)] for number in range(words))
    return f"Answer {seed}: {' '.join(word_choice)}."


def _panel(name: str) -> dict[str, Any]:
    """The shipped panels; through our own HTTP one judge sits at a server of its own."""
    if name == "openai":
        price = {"input": 1, "output": 1}
        judges = [{"id": model[7:], "model": model, "price": price} for model in OPENAI]
        return {"name": name, "judges": judges}
    file = {"http": "supreme-court", "sdk": "supreme-court-native"}[name]
    panel = yaml.safe_load((ROOT / "configs" / "panels" / f"{file}.yaml").read_text())
    if name == "http":
        panel["judges"][2] |= {"model": "compatible/local", "price": {"input": 0, "output": 0}}
    return panel


def eval_command(panel: str, setting: Setting, run_id: str) -> list[str]:
    """The command line of one run."""
    file, panel_file = f"items-{setting.items}.jsonl", f"{panel}.yaml"
    flight = ("--concurrency", str(setting.concurrency))
    return [*CLASH, "eval", file, "--panel", panel_file, "--run-id", run_id, *flight, "--yes"]


# -- one run -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Measurement:
    """One run, and what the server says of it.

    Attributes:
        folder: of the run; null for raw clients.
    """

    setting: Setting
    used: ResourceUse
    journal: dict[str, Any]
    folder: Path | None = None

    @property
    def ratio(self) -> float:
        """From the first request to the last answer, over the ideal."""
        return (self.journal["ended"] - self.journal["began"]) / self.setting.ideal_s

    @property
    def judging_cpu_s(self) -> float:
        """CPU seconds until the last answer, of the process of the run: reports come after it."""
        return self.used.own_cpu_until(self.journal["ended"])

    @property
    def judging_mb(self) -> float:
        """Peak memory until the last answer: reports come after it."""
        return self.used.peak_until(self.journal["ended"])


def evaluate(
    folder: Path,
    panel: str,
    setting: Setting,
    *options: str,
    stderr: int | None = None,
    flags: tuple[str, ...] = (),
) -> Measurement:
    """One ``clash eval``; ``options`` are those of the server, ``flags`` those of the command."""
    write_inputs(folder, setting.items)
    run_id = f"{panel}-{time.time_ns()}"
    with server(setting.latency_s, *options) as wire:
        command = [*eval_command(panel, setting, run_id), *flags]
        usage = run(command, folder, wire.environ, stderr=stderr)
        return Measurement(setting, usage, wire.journal(), folder / "runs" / run_id)


def records(folder: Path, name: str) -> Iterator[dict[str, Any]]:
    """The lines of a file of a run."""
    with (folder / name).open(encoding="utf-8") as file:
        yield from map(json.loads, file)


def best(rounds: int, once: Callable[[], Measurement]) -> Measurement:
    """The run of least CPU."""
    return min((once() for _ in range(rounds)), key=lambda timing: timing.used.cpu_s)


# -- raw clients, with the bodies of a run -------------------------------------------------------


@contextlib.asynccontextmanager
async def aiohttp_floor(url: str, key: str) -> AsyncIterator[Callable[[Any], Awaitable[str]]]:
    import aiohttp

    connector = aiohttp.TCPConnector(limit=0)
    headers = {"content-type": "application/json", "authorization": f"Bearer {key}"}
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:

        async def call(body: Any) -> str:
            data = json.dumps(body).encode()
            async with session.post(f"{url}/chat/completions", data=data) as answer:
                return json.loads(await answer.read())["choices"][0]["message"]["content"]

        yield call


@contextlib.asynccontextmanager
async def recorded_floor(url: str, key: str) -> AsyncIterator[Callable[[Any], Awaitable[str]]]:
    """As :func:`aiohttp_floor`, and each call is on record: its key, what was sent and the answer."""
    import aiohttp

    connector = aiohttp.TCPConnector(limit=0)
    headers = {"content-type": "application/json", "authorization": f"Bearer {key}"}
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
        with tempfile.TemporaryFile("w") as file:

            async def call(body: Any) -> str:
                data = json.dumps(body).encode()
                async with session.post(f"{url}/chat/completions", data=data) as answer:
                    response = json.loads(await answer.read())
                key = hashlib.sha256(data).hexdigest()
                file.write(json.dumps({"key": key, "request": body, "response": response}) + "\n")
                file.flush()
                return response["choices"][0]["message"]["content"]

            yield call


@contextlib.asynccontextmanager
async def openai_sdk(url: str, key: str) -> AsyncIterator[Callable[[Any], Awaitable[str]]]:
    import openai

    client = openai.AsyncOpenAI(api_key=key, base_url=url, max_retries=0, timeout=60)

    async def call(body: Any) -> str:
        answer = await client.chat.completions.create(**body)
        return answer.choices[0].message.content or ""

    yield call
    await client.close()


FLOOR = "floor (aiohttp, JSON, one record a call)"
"""The least that a tool can do which leaves a record: what its CPU is divided by."""
RAW = {
    FLOOR: ("http", "OPENROUTER", recorded_floor),
    "raw aiohttp": ("http", "OPENROUTER", aiohttp_floor),
    "raw openai SDK": ("sdk", "OPENAI", openai_sdk),
}


async def drive(client: str, url: str, key: str, concurrency: int, bodies: list[Any]) -> None:
    """Send each body, ``concurrency`` at a time, and parse the verdict in each answer."""
    left = iter(bodies)
    async with RAW[client][2](url, key) as call, asyncio.TaskGroup() as tasks:

        async def worker() -> None:
            for body in left:
                json.loads(await call(body))

        for _ in range(min(concurrency, len(bodies))):
            tasks.create_task(worker())


def raw(client: str, folder: Path, setting: Setting, bodies: Path) -> Measurement:
    """A raw client in a process of its own."""
    _, vendor, _ = RAW[client]
    with server(setting.latency_s) as wire:
        where = wire.environ[f"{vendor}_BASE_URL"], wire.environ[f"{vendor}_API_KEY"]
        numbers = str(setting.concurrency), str(setting.calls)
        me = [sys.executable, __file__, "--raw", client, *where, *numbers, str(bodies)]
        usage = run(me, folder, wire.environ)
        return Measurement(setting, usage, wire.journal())


def bodies_of(folder: Path, model: str, to: Path) -> Path:
    """What a run sent to one model, as a file of request bodies."""
    bodies = (call["request"]["body"] for call in records(folder, "calls.jsonl"))
    to.write_text("\n".join(json.dumps(body) for body in bodies if body.get("model") == model))
    return to


# -- the parts -----------------------------------------------------------------------------------

COLUMNS = (
    "what", "CPU ms/call", "x floor", "until the last answer", "x floor", "span/ideal", "in flight", "MB judging", "MB peak",
    "whole s", "server CPU ms/call",
)  # fmt: skip


def row(name: str, timing: Measurement, idle: Measurement, floor: float | None) -> list[str]:
    """One line of the table. ``floor`` is what a call of the floor takes, in CPU ms."""
    calls, journal = timing.setting.calls, timing.journal
    per_call = (timing.used.cpu_s - idle.used.cpu_s) / (calls - JUDGES) * 1000
    until = (timing.judging_cpu_s - idle.judging_cpu_s) / (calls - JUDGES) * 1000
    return [
        name,
        f"{per_call:.2f}",
        f"{per_call / floor:.1f}" if floor else "",
        f"{until:.2f}",
        f"{until / floor:.1f}" if floor else "",
        f"{timing.ratio:.2f}",
        f"{journal['peak']}",
        f"{timing.judging_mb:.0f}",
        f"{timing.used.peak_mb:.0f}",
        f"{timing.used.wall_s:.1f}",
        f"{journal['cpu_s'] / calls * 1000:.2f}",
    ]


def show(cells: Any) -> None:
    """A line of Markdown."""
    print(f"| {' | '.join(cells)} |", flush=True)


def heading(columns: Any) -> None:
    """The head of a Markdown table."""
    show(columns)
    show("---" for _ in columns)


def compare(folder: Path, settings: Any, rounds: int, panels: Any) -> None:
    """``clash eval`` beside raw clients, at every setting."""
    heading(COLUMNS)
    for setting in settings:
        tiny = replace(setting, items=1)
        floor = None
        for panel in panels:
            full_timing = best(rounds, lambda: evaluate(folder, panel, setting))  # noqa: B023 - called here
            idle = best(2, lambda: evaluate(folder, panel, tiny))  # noqa: B023 - called here
            for client, (panel_of_client, _, _) in RAW.items():
                if panel_of_client != panel:
                    continue
                model = _panel(panel)["judges"][0]["model"].partition("/")[2]
                bodies = bodies_of(full_timing.folder, model, folder / "bodies.jsonl")
                many = best(rounds, lambda: raw(client, folder, setting, bodies))  # noqa: B023
                few = best(2, lambda: raw(client, folder, tiny, bodies))  # noqa: B023
                cells = row(f"{client}, {setting.name}", many, few, floor)
                floor = floor or float(cells[1])
                show(cells)
            client_name = {"http": "clash, own HTTP", "sdk": "clash, SDKs"}[panel]
            show(row(f"{client_name}, {setting.name}", full_timing, idle, floor))


def on_a_terminal(folder: Path, setting: Setting, rounds: int) -> None:
    """Bars instead of plain lines."""
    heading(COLUMNS)
    with terminal() as screen:
        many = best(rounds, lambda: evaluate(folder, "http", setting, stderr=screen))
        few = best(2, lambda: evaluate(folder, "http", replace(setting, items=1), stderr=screen))
    show(row(f"clash, own HTTP, bars, {setting.name}", many, few, None))


def worker_processes(folder: Path, setting: Setting, rounds: int) -> None:
    """The OpenAI SDK in the process of the run, and in worker processes."""
    heading((*COLUMNS, "CPU ms/call of the process of the run"))
    for number in (0, 1, 2, 4):
        flags = ("--workers", str(number))
        many = best(rounds, lambda: evaluate(folder, "openai", setting, flags=flags))  # noqa: B023
        few = best(1, lambda: evaluate(folder, "openai", replace(setting, items=1), flags=flags))  # noqa: B023
        own_cpu_ms = (many.used.own_cpu_s - few.used.own_cpu_s) / (setting.calls - JUDGES) * 1000
        name = f"OpenAI SDK, {number} workers, {setting.name}"
        show([*row(name, many, few, None), f"{own_cpu_ms:.2f}"])


def memory(folder: Path, setting: Setting) -> None:
    """Peak memory against the number of items."""
    heading(("items", "calls", "MB judging", "MB peak"))
    for times in (1, 2, 4):
        larger = replace(setting, items=setting.items * times)
        result = evaluate(folder, "http", larger)
        show((f"{larger.items}", f"{larger.calls}", f"{result.judging_mb:.0f}",
              f"{result.used.peak_mb:.0f}"))  # fmt: skip


def verdicts(folder: Path) -> dict[str, Any]:
    """Winner by item."""
    return {line["item_id"]: line["winner"] for line in records(folder, "verdicts.jsonl")}


def faults(folder: Path, setting: Setting) -> None:
    """5% of answers are a 429 and 2% a 500: who is answered, and is a verdict false?"""
    heading(("panel", "judgments", "usable", "attempts", "false verdicts", "span/ideal"))
    for panel in PANELS:
        plain = evaluate(folder, panel, setting)
        result = evaluate(folder, panel, setting, "--rate-limit-every", "20", "--error-every", "50")
        judgments = list(records(result.folder, "judgments.jsonl"))
        usable = sum(line["ranking"] is not None for line in judgments)
        truth, actual_verdicts = verdicts(plain.folder), verdicts(result.folder)
        false = sum(actual_verdicts.get(item) != winner for item, winner in truth.items())
        attempts = sum(1 for _ in records(result.folder, "calls.jsonl"))
        show((panel, f"{len(judgments)}", f"{usable}", f"{attempts}", f"{false}",
              f"{result.ratio:.2f}"))  # fmt: skip


def resume(folder: Path, setting: Setting) -> None:
    """A run that is killed half-way, and resumed."""
    heading(
        ("calls", "recorded at kill -9", "in flight, lost", "asked again", "verdicts that differ")
    )
    result = evaluate(folder, "http", setting)
    run_id = f"killed-{time.time_ns()}"
    run_path = folder / "runs" / run_id
    with server(setting.latency_s) as wire:
        running = start(eval_command("http", setting, run_id), folder, wire.environ)
        deadline = time.monotonic() + 60
        while _recorded(run_path) < setting.calls // 2 and time.monotonic() < deadline:
            time.sleep(0.005)
        running.kill()
        running.wait()
        recorded_calls = _recorded(run_path)
        n_paid = wire.journal()["paid"]
        run([*CLASH, "resume", run_id], folder, wire.environ)
        after = wire.journal()["paid"]
    truth, actual_verdicts = verdicts(result.folder), verdicts(run_path)
    differ = sum(actual_verdicts.get(item) != winner for item, winner in truth.items())
    show(
        (
            f"{setting.calls}",
            f"{recorded_calls}",
            f"{n_paid - recorded_calls}",
            f"{after - n_paid}",
            f"{differ}",
        )
    )


def _recorded(folder: Path) -> int:
    """Whole lines of ``calls.jsonl``."""
    file = folder / "calls.jsonl"
    return file.read_bytes().count(b"\n") if file.exists() else 0


def start_up(folder: Path) -> None:
    """``clash --help``."""
    heading(("command", "CPU s, least of 5", "MB peak"))
    for words in (("--help",), ("--version",)):
        usage = [run([*CLASH, *words], folder, {}) for _ in range(5)]
        least = min(record.cpu_s for record in usage)
        show((f"clash {' '.join(words)}", f"{least:.2f}", f"{usage[0].peak_mb:.0f}"))


def capacity(folder: Path) -> None:
    """How many calls a second the server answers when it need not wait."""
    heading(("server alone", "calls/s", "server CPU ms/call"))
    setting = Setting(100, 0.0, 667)
    once = evaluate(folder, "http", Setting(100, 0.0, 34))
    bodies = bodies_of(once.folder, "openai/gpt-6-astra", folder / "bodies.jsonl")
    raw_timing = raw("raw aiohttp", folder, setting, bodies)
    seconds = raw_timing.journal["ended"] - raw_timing.journal["began"]
    show(("raw aiohttp, 100 in flight, 0 ms", f"{setting.calls / seconds:.0f}",
          f"{raw_timing.journal['cpu_s'] / setting.calls * 1000:.2f}"))  # fmt: skip


PARTS = ("compare", "terminal", "workers", "memory", "faults", "resume", "help", "server")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", default=",".join(PARTS), help=f"of {', '.join(PARTS)}")
    parser.add_argument("--panels", default=",".join(PANELS), help="of http, sdk")
    parser.add_argument("--settings", default="100,500", help="calls in flight: 100, 500 or both")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="a third of the calls, one round")
    parser.add_argument("--raw", nargs=6, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.raw:
        client, url, key, concurrency, calls, bodies = options.raw
        with Path(bodies).open(encoding="utf-8") as file:
            lines = [json.loads(line) for line in itertools.islice(file, 50)]
        some = list(itertools.islice(itertools.cycle(lines), int(calls)))
        asyncio.run(drive(client, url, key, int(concurrency), some))
        return
    rounds = 1 if options.quick else options.rounds
    share = 3 if options.quick else 1
    settings = [replace(s, items=s.items // share) for s in SETTINGS]
    settings_chosen = [s for s in settings if str(s.concurrency) in options.settings.split(",")]
    small, large = settings
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for part in options.parts.split(","):
            print(f"\n{part}, load {os.getloadavg()[0]:.1f}\n", flush=True)
            match part:
                case "compare":
                    compare(folder, settings_chosen, rounds, options.panels.split(","))
                case "terminal":
                    on_a_terminal(folder, small, rounds)
                case "workers":
                    worker_processes(folder, replace(large, latency_s=2.0), rounds)
                case "memory":
                    memory(folder, replace(large, latency_s=0.1))
                case "faults":
                    faults(folder, replace(small, items=200))
                case "resume":
                    resume(folder, small)
                case "help":
                    start_up(folder)
                case "server":
                    capacity(folder)
                case other:
                    parser.error(f"{other!r} is none of {', '.join(PARTS)}")


if __name__ == "__main__":
    main()
