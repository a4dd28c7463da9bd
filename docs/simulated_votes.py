"""Writes ``datasets/simulated-votes.jsonl``: six judges, three of which err together.

python docs/simulated_votes.py            # writes it
python docs/simulated_votes.py --check    # exits with 1 where it differs

Each of 300 items has a right side, A or B, and labels from people for 200 of them. The judges
``copy-1`` to ``copy-3`` share what they go by: with probability 0.55 what all three see is right,
and each follows it in nine of ten votes. ``careful``, ``steady`` and ``quick`` err by themselves,
right in 85, 78 and 70 of 100 votes. One vote in fifty is missing.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

TARGET = Path(__file__).parents[1] / "datasets" / "simulated-votes.jsonl"
ITEMS, LABELLED = 300, 200
SHARED, FOLLOWS, MISSING = 0.55, 0.9, 0.02
ALONE = {"careful": 0.85, "steady": 0.78, "quick": 0.70}
COPIES = ("copy-1", "copy-2", "copy-3")


def simulated_votes() -> str:
    """The votes as JSON lines."""
    rng = random.Random(2026)
    lines = []
    for number in range(ITEMS):
        right = rng.random() < 0.5
        cue = right if rng.random() < SHARED else not right
        votes = {name: right if rng.random() < p else not right for name, p in ALONE.items()}
        votes |= {name: cue if rng.random() < FOLLOWS else not cue for name in COPIES}
        for judge, vote in votes.items():
            line = {"item": f"item-{number:03}", "judge": judge}
            line["vote"] = None if rng.random() < MISSING else "AB"[vote]
            if number < LABELLED:
                line["label"] = "AB"[right]
            lines.append(json.dumps(line) + "\n")
    return "".join(lines)


def main() -> int:
    """Write, or check."""
    text = simulated_votes()
    if "--check" in sys.argv:
        return 0 if TARGET.read_text() == text else 1
    TARGET.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
