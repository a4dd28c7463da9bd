"""How often the intervals of accuracies without labels hold: ``python benchmarks/judge_edges.py``.

Judges of known accuracy vote on items of known truth; the agreement triangle sees the votes alone.
Printed: how often the interval of a judge's accuracy holds the truth, averaged over judges and for
the worst of them; its mean length in points; how often it is shorter than 50 points, so that
``clash diagnose`` shows it; the same for the accuracy of the majority; and how often independence
is rejected at 5%. ``--replications`` sets the panels of each design, ``--seed`` the first seed.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np

from clash.stats.triangle import agreement_triangle, majority_accuracy


@dataclass(frozen=True)
class Design:
    """Judges, items and what departs from the simplest case."""

    name: str
    right: tuple[float, ...]
    n: int
    share: float = 0.5
    ties: float = 0.0
    lean: tuple[float, ...] = ()
    copies: int = 1


DESIGNS = (
    Design("three of 70%", (0.7,) * 3, 400),
    Design("three of 70%, few items", (0.7,) * 3, 100),
    Design("three of 90%", (0.9,) * 3, 150),
    Design("80%, 75% and a coin", (0.8, 0.75, 0.5), 300),
    Design("five, one coin, one inverted", (0.85, 0.82, 0.8, 0.5, 0.12), 400),
    Design("four of 75%, 75% of items one side, 10% ties", (0.75,) * 4, 400, 0.75, 0.1),
    Design("four of 75% that lean to either side", (0.75,) * 4, 400, lean=(0.1, -0.1, 0.1, -0.1)),
    Design("four of 75%, items in three copies", (0.75,) * 4, 200, copies=3),
    Design("ten of 70%", (0.7,) * 10, 300),
)


def simulate(design: Design, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Decisions, shape (N, J), and clusters, shape (N,)."""
    right = np.array(design.right)
    lean = np.array(design.lean or (0.0,) * len(right))
    truth = np.where(rng.random(design.n) < design.share, 1, -1)
    rate = right + lean * truth[:, None]
    votes = np.where(rng.random(rate.shape) < rate, truth[:, None], -truth[:, None])
    votes = np.where(rng.random(rate.shape) < design.ties, 0, votes)
    return np.repeat(votes, design.copies, axis=0), np.repeat(np.arange(design.n), design.copies)


def measure(design: Design, replications: int, seed: int) -> str:
    """A row of the table."""
    edges = 2 * np.array(design.right) - 1
    panel = majority_accuracy(edges)
    is_held, length, identifications = [], [], []
    panel_held, panel_length, rejections = [], [], []
    for at in range(replications):
        rng = np.random.default_rng((seed, at))
        spins, clusters = simulate(design, rng)
        triangle = agreement_triangle(spins, clusters=clusters, rng=rng)
        is_held.append((triangle.low <= edges) & (edges <= triangle.high))
        length.append((triangle.high - triangle.low) / 2)
        identifications.append(triangle.is_identified)
        rejections.append(triangle.p_independent < 0.05)
        if triangle.accuracy is not None:
            panel_held.append(triangle.accuracy.low <= panel <= triangle.accuracy.high)
            panel_length.append(triangle.accuracy.high - triangle.accuracy.low)
    by_judge = np.mean(is_held, axis=0)
    test = "–" if len(design.right) < 4 else f"{np.mean(rejections):.0%}"
    return (
        f"| {design.name} | {design.n} | {by_judge.mean():.1%} | {by_judge.min():.0%} | "
        f"{100 * np.mean(length):.0f} | {np.mean(identifications):.0%} | {np.mean(panel_held):.0%} | "
        f"{100 * np.mean(panel_length):.0f} | {test} |"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("designs", nargs="*", help="parts of names; all where none is given")
    parser.add_argument("--replications", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    print(
        "| judges | items | interval holds | worst judge | length, points | shown | "
        "panel's holds | length, points | independence rejected at 5% |"
    )
    print("| --- |" + " ---: |" * 8)
    for design in DESIGNS:
        if arguments.designs and not any(part in design.name for part in arguments.designs):
            continue
        print(measure(design, arguments.replications, arguments.seed), flush=True)


if __name__ == "__main__":
    main()
