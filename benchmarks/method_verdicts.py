"""How often a run's method finds a difference that is not there, one that is, and the better response.

Two candidates on simulated items: the first is better with a given chance, and five judges find the
better response with chances of their own, independently of each other. Beside each method of a run
stands a fit of the same model to sides called after the candidates, which a run does not do.

    PYTHONPATH=src python benchmarks/method_verdicts.py [--runs 200] [--items 100]
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, get_args

import numpy as np

from clash.analysis.aggregation.methods import attempt, method_runner
from clash.analysis.method_verdicts import WITHOUT_FIT, decide_by_method
from clash.analysis.pair_rows import PairRows
from clash.analysis.verdicts import VerdictRules, verdict
from clash.config import VerdictMethod
from clash.records import Item
from clash.stats.hypothesis_tests import sign_test
from clash.votes.ballots import ItemRankings
from clash.votes.from_run import Panelist

if TYPE_CHECKING:
    from clash.stats.typing import Floats

NO_MODELS = ("borda", "mean", "median")
"""Methods without a model: points of rankings, and the two of scores."""
METHODS = tuple(name for name in get_args(VerdictMethod) if name not in NO_MODELS)
PANELS = {"weak": (0.7, 0.65, 0.6, 0.6, 0.55), "mixed": (0.9, 0.75, 0.7, 0.65, 0.6)}
NAMES = ("ada", "bob")
ALPHA = 0.05


def rankings_of(item: int, votes: Floats, order: tuple[str, ...]) -> ItemRankings:
    """One item: each judge puts the first candidate (1) or the second (0) first."""
    ranks = {
        f"j{k}": np.array([[0.0, 1.0] if vote else [1.0, 0.0]]) for k, vote in enumerate(votes)
    }
    return ItemRankings(f"q{item}", NAMES, ranks, dict.fromkeys(ranks, 1.0), dict, order)


def simulate(accuracies: tuple[float, ...], better: float, n: int, rng: np.random.Generator):
    """Items and who is better on each, (N,)."""
    truth = rng.random(n) < better
    right = rng.random((n, len(accuracies))) < accuracies
    votes = np.where(right, truth[:, None], ~truth[:, None]).astype(float)
    orders = [NAMES if first else NAMES[::-1] for first in rng.random(n) < 0.5]
    return [rankings_of(i, votes[i], orders[i]) for i in range(n)], truth


def by_run(rankings: list[ItemRankings], rules: VerdictRules) -> Floats:
    """Outcomes of the first candidate by the verdicts of a run: 1, 0, or 0.5."""
    items = [Item(item_id=r.item_id, prompt="?") for r in rankings]
    by_borda = [verdict(r.item_id, r, rules) for r in rankings]
    verdicts, _ = decide_by_method(by_borda, items, {r.item_id: r for r in rankings}, rules)
    return np.array([0.5 if v.winner is None else float(v.winner == NAMES[0]) for v in verdicts])


def by_names(rankings: list[ItemRankings], rules: VerdictRules) -> Floats:
    """The same by a fit to sides called after the candidates."""
    if rules.method in WITHOUT_FIT:
        return by_run(rankings, rules)
    rows = PairRows.of(rankings, [r.item_id for r in rankings], rules)
    fit = attempt(
        rules.method, method_runner(rules.method, rows.table, rules.seed), rows.table.patterns()
    )
    return np.full(len(rankings), 0.5) if fit.p is None else (np.sign(fit.p - 0.5) + 1) / 2


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--items", type=int, default=100)
    parser.add_argument("--seed", type=int, default=42)
    options = parser.parse_args()
    print("| panel | method | false, by names | false | found | right, by names | right |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for panel, accuracies in PANELS.items():
        judges = tuple(Panelist(f"j{k}", "voting", 1.0, f"j{k}", "") for k in range(5))
        for method in METHODS:
            rng = np.random.default_rng(options.seed)
            rules = VerdictRules(judges, None, "none", method, seed=options.seed)
            false, detections, right = np.zeros(2), 0.0, np.zeros(2)
            for _ in range(options.runs):
                rankings, truth = simulate(accuracies, 0.5, options.items, rng)
                for at, decide in enumerate((by_names, by_run)):
                    outcomes = decide(rankings, rules)
                    false[at] += is_significant(outcomes)
                    right[at] += (1 - np.abs(outcomes - truth)).mean()
                rankings, _ = simulate(accuracies, 0.7, options.items, rng)
                detections += is_significant(by_run(rankings, rules))
            shares = [value / options.runs for value in (*false, detections, *right)]
            print(
                f"| {panel} | `{method}` | " + " | ".join(f"{s:.1%}" for s in shares) + " |",
                flush=True,
            )


def is_significant(outcomes: Floats) -> bool:
    """Whether the sign test of wins finds a difference."""
    return sign_test(int((outcomes == 1).sum()), int((outcomes == 0).sum())).p <= ALPHA


if __name__ == "__main__":
    main()
