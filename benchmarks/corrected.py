"""What labels and verdicts together say of two candidates: coverage, width, stopping, labels saved.

    python benchmarks/corrected.py                       # simulations with known truth
    python benchmarks/corrected.py --panels ../shared/data/votes   # votes files with human labels

The first prints coverage and width by number of labels over 18 designs, and how often a review that
stops when it likes names a winner of two equals. The second takes real panels: sides are turned so
that people prefer the first on 65% of the items, whatever their judges get wrong; printed is after how
many labels the decision stands, with the panel and by labels alone.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections import defaultdict
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from clash.stats.label_noise import label_noise
from clash.stats.selection.corrected_share import PLANNED_LABELS, corrected_share
from clash.stats.selection.sample_design import SampleDesign

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.stats.selection.corrected_share import CorrectedShare
    from clash.stats.typing import Floats, Index

LABELS = (10, 20, 50, 100)
ITEMS = 300
# share that people give to the first, skill of the judges, their lean to the first, shared errors.
JUDGES = (
    ((0.65,) * 3, 0.0, 0.0),
    ((0.8,) * 3, 0.2, 0.0),
    ((0.9,) * 3, 0.0, 0.1),
    ((0.97,) * 3, 0.0, 0.0),
    ((0.9, 0.5, 0.2), 0.0, 0.0),
    ((0.85, *(0.55,) * 7), 0.0, 0.0),
)
DESIGNS = [(share, *panel) for share in (0.5, 0.65, 0.8) for panel in JUDGES]
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
    rng: np.random.Generator, share: float, skill: Sequence[float], lean: float, shared_noise: float
) -> tuple[Floats, Floats]:
    """Labels of all items, and each judge's vote for the first, (N, J)."""
    truth = (rng.random(ITEMS) < share).astype(float)
    p = np.where(rng.random(ITEMS)[:, None] < shared_noise, 0.25, np.array(skill))
    is_right = rng.random(p.shape) < p
    votes = np.where(is_right, truth[:, None], 1 - truth[:, None])
    return truth, np.where(rng.random(p.shape) < lean, 1.0, votes)


def estimate(labels: Floats, votes: Floats, chances: Floats | None = None) -> CorrectedShare:
    """The estimate from labels, NaN where there is none, and each judge's vote, NaN likewise."""
    panel = np.nanmean(votes, axis=1)
    return corrected_share(labels, panel, SampleDesign(chances=chances), votes=votes)


def draw(rng: np.random.Generator, panel: Floats, *, equal: bool) -> tuple[Index, Floats, Floats]:
    """The order of a review, the rates and the keys."""
    rates = np.ones(len(panel)) if equal else 2 - np.abs(2 * panel - 1)
    keys = rng.random(len(panel)) / rates
    return np.argsort(keys), rates, keys


def labelled(
    labels: Floats, order: Index, n: int, rates: Floats, keys: Floats
) -> tuple[Floats, Floats]:
    """The first ``n`` labels of a draw, and the chances of all items."""
    known_labels = np.full(len(labels), np.nan)
    known_labels[order[:n]] = labels[order[:n]]
    threshold = keys[order[n]] if n < len(order) else np.inf
    return known_labels, np.minimum(1.0, rates * threshold)


def coverage(runs: int, seed: int) -> None:
    """Print how often intervals hold the truth, and how wide they are beside labels alone."""
    print("| labels | draw | coverage % | lowest, highest design | width | widest |")
    print("| ---: | --- | ---: | ---: | ---: | ---: |")
    for n in LABELS:
        for equal in (True, False):
            rng = np.random.default_rng([seed, n])
            by_design, widths = [], []
            for design in DESIGNS:
                hits = 0
                for _ in range(runs):
                    labels, votes = simulated(rng, *design)
                    draws = draw(rng, votes.mean(axis=1), equal=equal)
                    known_labels, chances = labelled(labels, *reorder(draws, n))
                    corrected_fit = estimate(known_labels, votes, None if equal else chances)
                    hits += corrected_fit.interval.low <= design[0] <= corrected_fit.interval.high
                    widths.append(
                        corrected_fit.interval.half_width / corrected_fit.labels_only.half_width
                    )
                by_design.append(100 * hits / runs)
            word = "equal chances" if equal else "more where unsure"
            span = f"{min(by_design):.1f}, {max(by_design):.1f}"
            print(
                f"| {n} | {word} | {np.mean(by_design):.1f} | {span} | {np.mean(widths):.2f}"
                f" | {max(widths):.2f} |"
            )


def reorder(draws: tuple[Index, Floats, Floats], n: int) -> tuple[Index, int, Floats, Floats]:
    """A draw with a number of labels, as :func:`labelled` takes them."""
    order, rates, keys = draws
    return order, n, rates, keys


def stopping(runs: int, seed: int) -> None:
    """Print how often a review of two equals ends with a winner, looking after each label."""
    print("| panel (skill, lean, shared errors) | equal chances | more where unsure |")
    print("| --- | ---: | ---: |")
    for panel_design in JUDGES:
        cells = []
        for equal in (True, False):
            rng, errors = np.random.default_rng([seed, 7]), 0
            for _ in range(runs):
                labels, votes = simulated(rng, 0.5, *panel_design)
                errors += stop(rng, labels, votes, equal=equal, step=4) is not None
            cells.append(f"{100 * errors / runs:.1f}%")
        skill, lean, shared_noise = panel_design
        name = f"{', '.join(map(str, skill))}; {lean}; {shared_noise}"
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def stop(
    rng: np.random.Generator, labels: Floats, votes: Floats, *, equal: bool, step: int = 1
) -> int | None:
    """After how many labels the decision stands; null where it never does."""
    draws = draw(rng, np.nanmean(votes, axis=1), equal=equal)
    for n in range(10, len(labels) - 1, step):
        known_labels, chances = labelled(labels, *reorder(draws, n))
        corrected_fit = estimate(known_labels, votes, None if equal else chances)
        if corrected_fit.always_valid.excludes(0.5):
            return n
    return None


def noise(runs: int) -> None:
    """Print how often the parts of label noise are covered."""
    print("| items | a person is right | panel is right | person | panel | judge error |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: |")
    for n in (30, 100, 400):
        for person, right in ((0.85, 0.75), (0.7, 0.9), (0.95, 0.6)):
            rng, hits = np.random.default_rng(n), np.zeros(3)
            expected_shares = person, right, person - right * person - (1 - right) * (1 - person)
            for _ in range(runs):
                people = rng.random((n, 3)) < person
                is_right = rng.random(n) < right
                k = people.sum(axis=1)
                pairs = (k * (k - 1) + (3 - k) * (2 - k)) / 6
                agrees = (people == is_right[:, None]).mean(axis=1)
                actual_noise = label_noise(pairs, agrees, np.ones(n), 2, np.arange(n))
                intervals = actual_noise.person, actual_noise.panel, actual_noise.judge_error
                hits += [
                    i.low <= x <= i.high for i, x in zip(intervals, expected_shares, strict=True)
                ]
            cells = " | ".join(f"{100 * share:.1f}" for share in hits / runs)
            print(f"| {n} | {person} | {right} | {cells} |")


def read_panel(
    path: Path, judges: str = "*", presentation: str | None = None
) -> tuple[Floats, Floats]:
    """Labels (N,) and the judges' mean votes (N, J) of the items that people do not call a tie.

    A judge without a vote has NaN.
    """
    values = {"A": 1.0, "B": 0.0, "tie": 0.5}
    votes: dict[tuple[str, str], list[float]] = defaultdict(list)
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
                votes[row["item"], row["judge"]].append(values[row["vote"]])
    names = {judge: at for at, judge in enumerate(sorted({judge for _, judge in votes}))}
    row_of = {item: at for at, item in enumerate(labels)}
    table = np.full((len(labels), len(names)), np.nan)
    for (item, judge), vote in votes.items():
        table[row_of[item], names[judge]] = np.mean(vote)
    return np.array(list(labels.values())), table


def turn(rng: np.random.Generator, label: Floats, votes: Floats) -> tuple[Floats, Floats]:
    """Labels and votes in random order, with sides turned so that people prefer the first on 65%."""
    rows_kept = rng.permutation(len(label))
    is_turned = (rng.random(len(rows_kept)) < PREFERENCE) != (label[rows_kept] == 1)
    return (
        np.where(is_turned, 1 - label[rows_kept], label[rows_kept]),
        np.where(is_turned[:, None], 1 - votes[rows_kept], votes[rows_kept]),
    )


def explained(y: Floats, x: Floats) -> float:
    """The share of the variance of labels that least squares on columns x (N, q) explain."""
    columns = np.column_stack([np.ones(len(y)), x])
    gaps = y - columns @ np.linalg.lstsq(columns, y, rcond=None)[0]
    return 1 - float(gaps.var() / y.var())


def least_variance(y: Floats, share: float, n: int) -> float:
    """The least that n labels and a panel leave of the variance of n labels alone.

    (1 - r²) / n + r² / N over 1 / n, r² being the share that the panel explains: what the labels
    tell of the panel's error, and the panel of all N items, which are a sample too.
    """
    return 1 - share + share * n / len(y)


@dataclass(frozen=True)
class Reading:
    """One order of the labels of a panel: labels until a decision, and variance left at n labels.

    Attributes:
        stops: by each judge's votes, and by labels alone.
        left: by each judge's votes, and by their mean, over labels alone.
        least: by a regression on all labels, and by the mean alone.
    """

    stops: tuple[int, int]
    left: tuple[float, float]
    least: tuple[float, float]


def read_order(rng: np.random.Generator, label: Floats, votes: Floats) -> Reading:
    """Turn the sides of a panel, draw its labels in random order, and see what they tell."""
    y, x = turn(rng, label, votes)
    mean = np.nanmean(x, axis=1)
    blank, seed = np.full((len(y), 1), 0.5), int(rng.integers(2**31))
    by_votes, alone = (
        stop(np.random.default_rng(seed), y, table, equal=True, step=2) or len(y)
        for table in (x, blank)
    )
    n = min(PLANNED_LABELS, len(y) // 2)
    known_labels = np.where(np.arange(len(y)) < n, y, np.nan)
    widths = [
        estimate(known_labels, table).interval.half_width for table in (x, mean[:, None], blank)
    ]
    full_table = np.where(np.isnan(x), mean[:, None], x)
    return Reading(
        (by_votes, alone),
        ((widths[0] / widths[2]) ** 2, (widths[1] / widths[2]) ** 2),
        tuple(least_variance(y, explained(y, z), n) for z in (full_table, mean[:, None])),
    )


def panels(folder: Path, runs: int, seed: int) -> None:
    """Print after how many labels the decision stands on real panels, and what is left to gain."""
    columns = (
        "panel", "items", "judges", "with the panel", "labels alone", "ratio", "ratio, bound",
        "variance left at 50 labels, by the mean", "by each judge", "bound, by the mean", "by each judge",
    )  # fmt: skip
    print(f"| {' | '.join(columns)} |\n| --- |{' ---: |' * (len(columns) - 1)}")
    summaries = []
    for name, options in PANELS.items():
        label, votes = read_panel(folder / f"{name}.votes.jsonl.gz", **options)
        rng = np.random.default_rng(seed)
        lines = [read_order(rng, label, votes) for _ in range(runs)]
        first, alone = np.median([line.stops for line in lines], axis=0)
        ratio = float(np.median([line.stops[0] / line.stops[1] for line in lines]))
        by_votes, by_mean = np.median([line.left for line in lines], axis=0)
        least, least_mean = np.median([line.least for line in lines], axis=0)
        share = (1 - least) / (1 - min(PLANNED_LABELS, len(label) // 2) / len(label))
        bound = (1 - share) / (1 - share * alone / len(label))
        summaries.append((ratio, first / alone, bound))
        print(
            f"| {name} | {len(label)} | {votes.shape[1]} | {first:.0f} | {alone:.0f} | {ratio:.2f}"
            f" | {bound:.2f} | {by_mean:.2f} | {by_votes:.2f} | {least_mean:.2f} | {least:.2f} |",
            flush=True,
        )
    ratio, of_medians, bound = np.median(summaries, axis=0)
    print(
        f"\nMedians over panels: ratio {ratio:.2f}, labels with the panel over labels alone "
        f"{of_medians:.2f}, bound {bound:.2f}"
    )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=500, help="by design")
    parser.add_argument("--panels", type=Path, help="a folder of votes files")
    parser.add_argument(
        "--seed", type=int, default=1, help="of the simulations, and of the orders of labels"
    )
    options = parser.parse_args()
    if options.panels is not None:
        panels(options.panels, max(options.runs // 10, 10), options.seed)
        return
    coverage(options.runs, options.seed)
    print()
    stopping(max(options.runs // 4, 1), options.seed)
    print()
    noise(options.runs)


if __name__ == "__main__":
    main()
