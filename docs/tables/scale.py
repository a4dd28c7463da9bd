"""Prints the tables of docs/scale.md that are calculated: cost, time and size of 10^3 to 10^7 items.

    python docs/tables/scale.py [--input 2000] [--output 500] [--seconds 10]

Everything is per judge and item; a panel that is shown in both orders makes twice as many calls.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from importlib.metadata import version

from clash.config import Limits, ModelRef
from clash.providers import prices
from clash.providers.base import Reply
from clash.records import Tokens

ITEMS = tuple(10**power for power in range(3, 8))
PANELS = {
    "small models": (
        "openai/gpt-6-luna",
        "anthropic/claude-haiku-5-5",
        "google/gemini-3.5-flash-lite",
    ),
    "large models": ("openai/gpt-6-astra", "anthropic/claude-opus-5-5", "google/gemini-3.8-flash"),
}
GB_A_MILLION_JUDGMENTS = 10
"""Of models: twice the 4.9 kB that judgments of rules take (docs/scale.md)."""


@dataclass(frozen=True)
class Tier:
    """What an account may do in a minute, and how many tokens may wait in its batches.

    Attributes:
        both: ``tokens`` limits input and output together, else input alone.
    """

    name: str
    requests: float
    tokens: float
    both: bool
    output: float = float("inf")
    queue: float | None = None


TIERS = (
    Tier("OpenAI, tier 1", 500, 30_000, both=True, queue=90_000),
    Tier("OpenAI, tier 3", 5_000, 800_000, both=True, queue=50_000_000),
    Tier("OpenAI, tier 5", 10_000, 30_000_000, both=True, queue=5_000_000_000),
    Tier("Anthropic, Start", 1_000, 500_000, both=False, output=100_000),
    Tier("Anthropic, Scale", 4_000, 4_000_000, both=False, output=800_000),
)
"""A large model each: OpenAI's page of gpt-5.4-pro, Anthropic's table for Claude Fable 5.x."""


@dataclass(frozen=True)
class Hardware:
    """GPUs that run one engine. Rates are assumptions: measure yours."""

    name: str
    gpus: int
    input_rate: float
    output_rate: float
    dollars: float = 2.5


HARDWARE = (
    Hardware("8B on one H100", 1, 20_000, 3_000),
    Hardware("70B on four H100", 4, 8_000, 1_500),
)


@dataclass(frozen=True)
class Call:
    """A call of one judge: its tokens, and how long an answer takes."""

    tokens_in: int
    tokens_out: int
    seconds: float

    def cost(self, model: str, *, batch: bool) -> float:
        """Dollars by the price table that clash ships."""
        tokens = Tokens(input=self.tokens_in, output=self.tokens_out)
        reply = Reply(text="", outcome="ok", request={}, response={}, tokens=tokens)
        cost = prices.cost(ModelRef(model=model), reply, batch=batch)
        if cost is None:
            raise SystemExit(f"the price table has no {model}")
        return float(cost.usd)

    def a_minute(self, tier: Tier) -> float:
        """Calls a minute within every limit of an account."""
        tokens = self.tokens_in + self.tokens_out * tier.both
        return min(tier.requests, tier.tokens / tokens, tier.output / self.tokens_out)

    def in_flight(self, tier: Tier) -> float:
        """Calls in flight that this takes."""
        return self.a_minute(tier) * self.seconds / 60

    def gpu_hours(self, hardware: Hardware) -> float:
        """GPU-hours of a million calls."""
        seconds = self.tokens_in / hardware.input_rate + self.tokens_out / hardware.output_rate
        return seconds * 1e6 / 3600 * hardware.gpus


def table(head: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def dollars(amount: float) -> str:
    """Two digits that count."""
    return f"${amount:.2f}" if amount < 10 else f"${float(f'{amount:.2g}'):,.0f}"


def duration(minutes: float) -> str:
    """Minutes, hours or days."""
    for unit, size in (("min", 60), ("h", 24), ("days", float("inf"))):
        if minutes < 2 * size:
            return f"{float(f'{minutes:.2g}'):,g} {unit}"
        minutes /= size
    raise AssertionError


def cost_table(call: Call) -> str:
    """Dollars of each panel, live and in batches."""
    sums = [
        sum(call.cost(model, batch=batch) for model in models)
        for models in PANELS.values()
        for batch in (False, True)
    ]
    rows = [[f"{n:,}", *(dollars(n * usd) for usd in sums)] for n in ITEMS]
    heads = [f"{name}{kind}" for name in PANELS for kind in ("", ", batch")]
    return table(["items", *heads], rows)


def tier_table(call: Call) -> str:
    """What a tier allows, and how long a million calls take."""
    rows = [
        [
            tier.name,
            f"{call.a_minute(tier):,.0f}",
            f"{call.in_flight(tier):,.0f}",
            *(duration(n / call.a_minute(tier)) for n in ITEMS[::2]),
            "" if tier.queue is None else f"{tier.queue / call.tokens_in:,.0f}",
        ]
        for tier in TIERS
    ]
    head = ["account", "calls a minute", "in flight", *(f"{n:,} items" for n in ITEMS[::2])]
    return table([*head, "rows in batches"], rows)


def in_flight_table(call: Call) -> str:
    """How long calls take by those in flight alone, and what they leave on disk."""
    counts = (Limits().concurrency, 500)
    rows = [
        [
            f"{n:,}",
            *(duration(n * call.seconds / 60 / c) for c in counts),
            f"{3 * n / 1e6 * GB_A_MILLION_JUDGMENTS:g} GB",
        ]
        for n in ITEMS
    ]
    return table(["items", *(f"{c:,} in flight" for c in counts), "disk, 3 judges"], rows)


def gpu_table(call: Call) -> str:
    """GPU-hours and dollars of a million judgments."""
    rows = []
    for hardware in HARDWARE:
        hours = call.gpu_hours(hardware)
        rows.append(
            [hardware.name, f"{hours:,.0f}", dollars(hours * hardware.dollars)]
            + [duration(hours / hardware.gpus / n * 60) for n in (1, 8)]
        )
    head = ["model and GPUs of an engine", "GPU-hours", "dollars", "one engine", "eight engines"]
    return table(head, rows)


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--input", type=int, default=2000, help="tokens of a question")
    parser.add_argument("--output", type=int, default=500, help="tokens of an answer")
    parser.add_argument("--seconds", type=float, default=10, help="until an answer is there")
    arguments = parser.parse_args()
    call = Call(arguments.input, arguments.output, arguments.seconds)
    print(f"Prices: genai-prices {version('genai-prices')}.")
    for build_table in (cost_table, tier_table, in_flight_table, gpu_table):
        print(f"\n{build_table(call)}")


if __name__ == "__main__":
    main()
