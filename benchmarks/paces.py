"""How an account's pace comes back after an outage, and how often it asks too much: a simulation.

``python benchmarks/paces.py`` has a client make calls at the pace that clash keeps, with up to 500 in
flight and answers after half a second, against an account that allows so many calls a second (a bucket
of one second) and refuses everything for a minute.
"""

from __future__ import annotations

import heapq
import itertools
import math
import random

from clash.providers.limits import _Pace
from orchestration import heading, show

OUTAGE = 100, 160
ENDS = 360
MOST = 500
FASTEST = 2000
"""Calls a second before there is a pace."""


def simulate(limit: float, seed: int = 0) -> list[tuple[float, bool]]:
    """When each call was made, and whether it was answered."""
    rng, pace = random.Random(seed), _Pace()
    now = last = free_at = 0.0
    level = limit
    in_flight: list[tuple[float, bool]] = []
    calls: list[tuple[float, bool]] = []
    while now < ENDS:
        start = math.inf
        if len(in_flight) < MOST:
            start = now + pace.wait_s(now)
            if pace.per_second is None:
                start = max(now, free_at)
                free_at = start + 1 / FASTEST
        while in_flight and in_flight[0][0] <= start:
            now, is_answered = heapq.heappop(in_flight)
            if is_answered:
                pace.on_success(now)
            else:
                pace.on_rate_limit(now, cut=True)
            if start is math.inf:
                break
        if start is math.inf:
            continue
        now = start
        rate = 0.0 if OUTAGE[0] <= now < OUTAGE[1] else limit
        level, last = min(rate, level + (now - last) * rate), now
        is_answered = level >= 1
        level -= is_answered
        seconds = 0.5 * rng.uniform(0.7, 1.3) if is_answered else 0.03
        heapq.heappush(in_flight, (now + seconds, is_answered))
        calls.append((now, is_answered))
    return calls


def main() -> None:
    heading(("calls a second allowed", "s after the outage until 90%", "answered 429 after it"))
    for per_second in (5, 40, 150):
        after = [(at - OUTAGE[1], ok) for at, ok in simulate(per_second) if at >= OUTAGE[1]]
        successes = [at for at, ok in after if ok]
        back = next(
            second
            for second in itertools.count()
            if sum(second <= at < second + 5 for at in successes) >= 0.9 * 5 * per_second
            or second > ENDS
        )
        refusal_ratio = (len(after) - len(successes)) / len(successes)
        show((f"{per_second}", f"{back}", f"{refusal_ratio:.2%}"))


if __name__ == "__main__":
    main()
