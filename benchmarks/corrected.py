"""What labels and verdicts together say of two candidates: coverage, width, stopping, labels saved.

    python benchmarks/corrected.py                       # simulations with known truth
    python benchmarks/corrected.py --panels ../shared/data/votes   # votes files with human labels

The first prints coverage and width by number of labels over 12 designs, and how often a review that
stops when it likes names a winner of two equals. The second takes real panels: sides are turned so
that people prefer the first on 65% of the items, whatever their judges get wrong; printed is after how
many labels the decision stands, with the panel and by labels alone.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections import defaultdict
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from clash.stats.label_noise import label_noise
from clash.stats.selection.corrected_share import PLANNED, corrected_share

if TYPE_CHECKING:
    from clash.stats.typing import Floats, Index

LABELS = (10, 20, 50, 100)
ITEMS = 300
# share that people give to the first, skill of three judges, their lean to the first, shared errors.
DESIGNS = [
    (share, *panel)
    for share in (0.5, 0.65, 0.8)
    for panel in ((0.65, 0.0, 0.0), (0.8, 0.2, 0.0), (0.9, 0.0, 0.1), (0.97, 0.0, 0.0))
]
PANELS = {
    "agentclash-mtbench100": {},
    "agentclash-arena100": {},
    "amel-llmbar": {},
    "arena-claude4": {},
    "llmbar-processed": {"presentation": "orig"},
    "llmbar-casestudy": {"judges": "*/Vanilla", "presentation": "orig"},
    "mtbench-panel": {},
    "pandalm": {"judges": "gpt-*,PandaLM*,heuristic*"},
    "rb2-replicates": {"judges": "*#s0"},
    "llmfao": {"judges": "gpt-*,heuristic*"},
}
PREFERENCE = 0.65


def simulated(
    rng: np.random.Generator, share: float, skill: float, lean: float, shared: float
) -> tuple[Floats, Floats]:
    """Labels of all items and the share of three judges for the first."""
    truth = (rng.random(ITEMS) < share).astype(float)
    p = np.where(rng.random(ITEMS) < shared, 0.25, skill)[:, None]
    is_right = rng.random((ITEMS, 3)) < p
    votes = np.where(is_right, truth[:, None], 1 - truth[:, None])
    votes = np.where(rng.random((ITEMS, 3)) < lean, 1.0, votes)
    return truth, votes.mean(axis=1)


def draw(rng: np.random.Generator, panel: Floats, *, equal: bool) -> tuple[Index, Floats, Floats]:
    """The order of a review, the rates and the keys."""
    rates = np.ones(len(panel)) if equal else 2 - np.abs(2 * panel - 1)
    keys = rng.random(len(panel)) / rates
    return np.argsort(keys), rates, keys


def labelled(
    labels: Floats, order: Index, n: int, rates: Floats, keys: Floats
) -> tuple[Floats, Floats]:
    """The first ``n`` labels of a draw, and the chances of all items."""
    known = np.full(len(labels), np.nan)
    known[order[:n]] = labels[order[:n]]
    threshold = keys[order[n]] if n < len(order) else np.inf
    return known, np.minimum(1.0, rates * threshold)


def coverage(runs: int) -> None:
    """Print how often intervals hold the truth, and how wide they are beside labels alone."""
    print("| labels | draw | coverage % | lowest, highest design | width | widest |")
    print("| ---: | --- | ---: | ---: | ---: | ---: |")
    for n in LABELS:
        for equal in (True, False):
            rng = np.random.default_rng(n)
            by_design, widths = [], []
            for design in DESIGNS:
                hits = 0
                for _ in range(runs):
                    labels, panel = simulated(rng, *design)
                    known, chances = labelled(labels, *reorder(draw(rng, panel, equal=equal), n))
                    found = corrected_share(known, panel, chances=None if equal else chances)
                    hits += found.interval.low <= design[0] <= found.interval.high
                    widths.append(found.interval.half_width / found.labels_only.half_width)
                by_design.append(100 * hits / runs)
            word = "equal chances" if equal else "more where unsure"
            span = f"{min(by_design):.1f}, {max(by_design):.1f}"
            print(
                f"| {n} | {word} | {np.mean(by_design):.1f} | {span} | {np.mean(widths):.2f}"
                f" | {max(widths):.2f} |"
            )


def reorder(drawn: tuple[Index, Floats, Floats], n: int) -> tuple[Index, int, Floats, Floats]:
    """A draw with a number of labels, as :func:`labelled` takes them."""
    order, rates, keys = drawn
    return order, n, rates, keys


def stopping(runs: int) -> None:
    """Print how often a review of two equals ends with a winner, looking after each label."""
    print("| panel (skill, lean, shared errors) | equal chances | more where unsure |")
    print("| --- | ---: | ---: |")
    for _, *panel_design in DESIGNS[:4]:
        cells = []
        for equal in (True, False):
            rng, errors = np.random.default_rng(7), 0
            for _ in range(runs):
                labels, panel = simulated(rng, 0.5, *panel_design)
                errors += stop(rng, labels, panel, equal=equal, step=4) is not None
            cells.append(f"{100 * errors / runs:.1f}%")
        print(f"| {', '.join(map(str, panel_design))} | {' | '.join(cells)} |")


def stop(
    rng: np.random.Generator, labels: Floats, panel: Floats, *, equal: bool, step: int = 1
) -> int | None:
    """After how many labels the decision stands; null where it never does."""
    drawn = draw(rng, panel, equal=equal)
    for n in range(10, len(labels) - 1, step):
        known, chances = labelled(labels, *reorder(drawn, n))
        found = corrected_share(known, panel, chances=None if equal else chances)
        if found.always_valid.excludes(0.5):
            return n
    return None


def noise(runs: int) -> None:
    """Print how often the parts of label noise are covered."""
    print("| items | a person is right | panel is right | person | panel | judge error |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: |")
    for n in (30, 100, 400):
        for person, right in ((0.85, 0.75), (0.7, 0.9), (0.95, 0.6)):
            rng, hits = np.random.default_rng(n), np.zeros(3)
            expected = person, right, person - right * person - (1 - right) * (1 - person)
            for _ in range(runs):
                people = rng.random((n, 3)) < person
                is_right = rng.random(n) < right
                k = people.sum(axis=1)
                pairs = (k * (k - 1) + (3 - k) * (2 - k)) / 6
                agrees = (people == is_right[:, None]).mean(axis=1)
                found = label_noise(pairs, agrees, np.ones(n), 2, np.arange(n))
                intervals = found.person, found.panel, found.judge_error
                hits += [i.low <= x <= i.high for i, x in zip(intervals, expected, strict=True)]
            cells = " | ".join(f"{100 * share:.1f}" for share in hits / runs)
            print(f"| {n} | {person} | {right} | {cells} |")


def read_panel(
    path: Path, judges: str = "*", presentation: str | None = None
) -> tuple[Floats, Floats]:
    """Labels and the judges' mean of the items of a votes file that people do not call a tie."""
    values = {"A": 1.0, "B": 0.0, "tie": 0.5}
    votes: dict[str, list[float]] = defaultdict(list)
    labels: dict[str, float] = {}
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            if row.get("label") not in ("A", "B") or row.get("vote") not in values:
                continue
            if presentation is not None and row.get("presentation") != presentation:
                continue
            if any(fnmatch(row["judge"], pattern) for pattern in judges.split(",")):
                labels[row["item"]] = values[row["label"]]
                votes[row["item"]].append(values[row["vote"]])
    return np.array(list(labels.values())), np.array([np.mean(votes[item]) for item in labels])


def turn(rng: np.random.Generator, label: Floats, vote: Floats) -> tuple[Floats, Floats]:
    """Labels and votes in random order, with sides turned so that people prefer the first on 65%."""
    keep = rng.permutation(len(label))
    turned = (rng.random(len(keep)) < PREFERENCE) != (label[keep] == 1)
    return tuple(np.where(turned, 1 - x[keep], x[keep]) for x in (label, vote))


def least_variance(y: Floats, f: Floats, n: int) -> float:
    """The least that n labels and a linear use of f leave of the variance of n labels alone.

    (1 - r²) / n + r² / N over 1 / n: what the labels tell of the panel's error, and the panel of
    all N items, which are a sample too.
    """
    share = float(np.corrcoef(y, f)[0, 1]) ** 2
    return 1 - share + share * n / len(y)


def panels(folder: Path, runs: int) -> None:
    """Print after how many labels the decision stands on real panels, and what is left to gain."""
    columns = (
        "panel", "items", "correlation", "with the panel", "labels alone", "ratio", "ratio, bound",
        "variance left at 50 labels", "variance, bound",
    )  # fmt: skip
    print(f"| {' | '.join(columns)} |\n| --- |{' ---: |' * (len(columns) - 1)}")
    ratios = []
    for name, options in PANELS.items():
        label, vote = read_panel(folder / f"{name}.votes.jsonl.gz", **options)
        rng = np.random.default_rng(1)
        n = min(PLANNED, len(label) // 2)
        lines = []
        for _ in range(runs):
            y, f = turn(rng, label, vote)
            blank, seed = np.full(len(y), 0.5), int(rng.integers(2**31))
            stops = [
                stop(np.random.default_rng(seed), y, x, equal=True, step=2) or len(y)
                for x in (f, blank)
            ]
            known = np.where(np.arange(len(y)) < n, y, np.nan)
            widths = [corrected_share(known, x).interval.half_width for x in (f, blank)]
            left = (widths[0] / widths[1]) ** 2
            lines.append((*stops, stops[0] / stops[1], left, least_variance(y, f, n)))
        first, second, ratio, left, least = np.median(np.array(lines), axis=0)
        ratios.append(ratio)
        share = float(np.corrcoef(label, vote)[0, 1]) ** 2
        print(
            f"| {name} | {len(label)} | {share**0.5:.2f} | {first:.0f} | {second:.0f} | {ratio:.2f}"
            f" | {(1 - share) / (1 - share * second / len(label)):.2f} | {left:.2f} | {least:.2f} |",
            flush=True,
        )
    print(f"\nMedian ratio over panels: {np.median(ratios):.2f}")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=500, help="by design")
    parser.add_argument("--panels", type=Path, help="a folder of votes files")
    options = parser.parse_args()
    if options.panels is not None:
        panels(options.panels, max(options.runs // 10, 10))
        return
    coverage(options.runs)
    print()
    stopping(options.runs)
    print()
    noise(options.runs)


if __name__ == "__main__":
    main()
