"""How good verdicts and confidence are with few labels, on public panels; and the priors behind them.

    python benchmarks/few_labels.py [DATA] [--labels 50] [--draws 12] [--with-fits] [--seed 11]
    python benchmarks/few_labels.py [DATA] --priors

DATA is a folder of votes files (by default ../shared/data/votes, where it is there); the votes that
come with clash are added. The table: labels drawn at random, figures on all other labelled rows,
means over the draws. Priors of a panel are learned on the panels of the other sources and random parts
of them, so that no row was used for what it measures. ``--with-fits`` adds auto fitted to the same
labels, the other way to use them, which takes seconds a draw, and by how much the pool is behind the
better of auto with and without labels, with twice the standard error over the draws. ``--priors``
prints the numbers of ``clash.stats.selection.expert_pool``.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from clash.stats import scoring
from clash.stats.latent.model_selection import select
from clash.stats.logistic import sigmoid
from clash.stats.logistic_regression import LogisticLoss
from clash.stats.optimise import minimise
from clash.stats.selection import expert_pool
from clash.stats.selection.expert_pool import (
    ANCHOR,
    PRIORS,
    PoolLabels,
    PoolPriors,
    Readings,
    ScalePrior,
)
from clash.votes import read_votes
from clash.votes.binary import MethodTable

PANELS = (
    ("llmbar-casestudy", "*/Vanilla", "orig"),
    ("llmbar-casestudy", None, "orig"),
    ("llmbar-processed", None, "orig"),
    ("rb2-replicates", "*#s0", None),
    ("rb2-replicates", "gpt-5.4-nano#*,*#s0", None),
    ("ta-feedback.part1", None, None),
    ("llmfao", "gpt-*,heuristic*", None),
    ("mtbench-panel", None, None),
    ("pandalm", "gpt-*,PandaLM*,heuristic*", None),
    ("amel-llmbar", None, None),
    ("arena-claude4", None, None),
    ("agentclash-arena100", None, None),
    ("agentclash-mtbench100", None, None),
)
SHIPPED = ("near-copies", "wrong-majority")
SIZES = (3, 5, 7)
"""Judges of the random parts of larger panels."""
CLIP = 1e-3
EM_STEPS = 10
FITTED, POOL = "auto fitted to labels", "expert pool"
LEARNED_AT = 50
"""Labels at which the weights of the experts are learned."""
LEAST_SPREAD = 0.2
WIDEST_SPREAD = 1.0
"""Where scales differ by more, a model says nothing on some panels: it stays among the others."""


@dataclass(frozen=True)
class Panel:
    """A panel, its readings without labels, and its labels; ``is_part`` where judges were left out."""

    source: str
    name: str
    table: MethodTable
    readings: Readings
    is_part: bool = False

    @property
    def labelled(self) -> PoolLabels:
        """All rows whose label is a side."""
        return self.part(np.flatnonzero(self.table.decisive))

    def part(self, rows):
        """Some of them."""
        return PoolLabels(rows, self.table.truth[rows], self.table.groups[rows])

    def draw(self, n, rng):
        """Rows of n random groups, and all other labelled rows; none where too few are left."""
        rows = self.labelled.rows
        groups = rng.permutation(np.unique(self.table.groups[rows]))
        inside = np.isin(self.table.groups[rows], groups[:n])
        return self.part(rows[inside]), rows[~inside]


def read(path, source, name, judges, presentation):
    """A panel of a file."""
    votes = read_votes(path, judges=judges, presentation=presentation)
    return of_table(source, name, MethodTable.of(votes))


def of_table(source, name, table):
    readings = expert_pool.read_without_labels(
        table.codes,
        np.random.default_rng(0),
        families=table.families,
        ties=table.ties,
        groups=table.groups,
    )
    return Panel(source, name, table, readings)


def panels(folder):
    """Every panel that is there, and random parts of those with more judges."""
    rng = np.random.default_rng(1)
    files = [(n, j, p, folder / f"{n}.votes.jsonl.gz") for n, j, p in PANELS if folder]
    votes_folder = Path(__file__).parents[1] / "datasets" / "votes"
    files += [(n, None, None, votes_folder / f"{n}.jsonl.gz") for n in SHIPPED]
    for source, judges, presentation, path in files:
        if not path.exists():
            continue
        name = source if judges is None else f"{source} {judges}"
        panel = read(path, source, name, judges, presentation)
        yield panel
        for size in SIZES:
            if panel.table.codes.shape[1] > size:
                yield part_of(panel, size, rng)


def part_of(panel, size, rng):
    """Some judges of a panel, and the rows on which two of them voted."""
    table = panel.table
    columns = np.sort(rng.permutation(table.codes.shape[1])[:size])
    codes = table.codes[:, columns]
    families = None if table.families is None else tuple(table.families[c] for c in columns)
    part = replace(table, codes=codes, judges=columns, families=families, presentation_rows=None)
    return replace(of_table(panel.source, f"{panel.name}, {size} judges", part), is_part=True)


# The priors.


def optimum(columns, pool_labels, sd):
    """A logistic regression on all labels, all but free."""
    x = np.ascontiguousarray(columns[:, pool_labels.rows])
    q = len(columns)
    loss = LogisticLoss(
        x, np.ones(len(pool_labels)), pool_labels.y, np.full(q, sd**-2), np.zeros(q)
    )
    return minimise(loss, np.zeros(q), decrement_tol=1e-10).x


def learn(panel_list):
    """Priors from panels: moments of scales fitted to all labels, then weights by EM."""
    scales = {}
    for panel in panel_list:
        odds = np.clip(panel.readings.odds, -expert_pool.CAP, expert_pool.CAP).T
        for name, column in zip(panel.readings.names, odds, strict=True):
            scale = optimum(column[None], panel.labelled, 3.0)[0]
            scales.setdefault(name, []).append(scale)
    priors = replace(
        PRIORS,
        scales={
            name: ScalePrior(*moments(values), 1.0)
            for name, values in scales.items()
            if len(values) >= len(panel_list) / 2 and moments(values)[1] <= WIDEST_SPREAD
        },
    )
    return weigh(panel_list, priors)


def moments(values):
    """Median, and the spread of a normal with the same quartiles: a few scales have no optimum."""
    low, middle, high = np.quantile(values, (0.25, 0.5, 0.75))
    return round(float(middle), 2), round(max(LEAST_SPREAD, float(high - low) / 1.349), 2)


def weigh(panel_list, priors):
    """Prior weights that the pools of panels with few labels come to: EM over their mean."""
    rows = []
    for i, panel in enumerate(panel_list):
        for draw in range(3):
            rng = np.random.default_rng([7, i, draw])
            inside, outside = panel.draw(LEARNED_AT, rng)
            if len(outside) < LEARNED_AT:
                continue
            rows.append(expert_pool.evidence(panel.readings, inside, priors))
    names = sorted({name for row in rows for name in row})
    weight = dict.fromkeys(names, 1.0)
    for _ in range(EM_STEPS):
        total = dict.fromkeys(names, 0.0)
        for row in rows:
            best = max(row.values())
            raw = {n: weight[n] * np.exp(x - best) for n, x in row.items()}
            for name, value in raw.items():
                total[name] += value / sum(raw.values())
        weight = {n: total[n] / sum(n in row for row in rows) for n in names}
    # One more source on which all are equal: a few sources do not rule an expert out.
    sources = len({panel.source for panel in panel_list})
    even = 1 / len(names)
    weight = {n: (sources * w + even) / (sources + 1) for n, w in weight.items()}
    # The draws of a source are much alike, so that EM is too sure: square roots, in proportion.
    total = sum(w**0.5 for w in weight.values())
    weight = {n: round(w**0.5 / total, 3) for n, w in weight.items()}
    scales = {n: replace(p, weight=weight.get(n, 0.01)) for n, p in priors.scales.items()}
    widths = {w: float(weight[f"logistic {w:g}"]) for w in priors.logistics}
    remaining_weights = [p.weight for p in scales.values() if p.weight]
    prior_weight = weight[f"{ANCHOR}, unchanged"]
    return replace(
        priors,
        scales=scales,
        logistics=widths,
        anchor_weight=prior_weight,
        default_scale=replace(
            priors.default_scale, weight=round(float(np.median(remaining_weights)), 3)
        ),
    )


# The table.


def figures(p, y):
    """Accuracy, log-loss and ECE."""
    return np.array([((p > 0.5) == y).mean(), scoring.log_loss(p, y, clip=CLIP), scoring.ece(p, y)])


def measure(panel, priors, n, draws, seed, *, with_fits):
    """Figures of each way on the rows without a label, (draws, 3) each."""
    ways = {}
    for draw in range(draws):
        rng = np.random.default_rng([seed, draw])
        inside, outside = panel.draw(n, rng)
        if len(outside) < LEARNED_AT or len(np.unique(panel.table.truth[outside])) < 2:
            continue
        y = panel.table.truth[outside]
        p_of = {"no labels": sigmoid(panel.readings.odds[:, 0])}
        if with_fits:
            p_of[FITTED] = fitted(panel.table, inside)
        p_of["one scale"] = expert_pool.pool(panel.readings, inside, rng, only_scale(priors)).p
        p_of[POOL] = expert_pool.pool(panel.readings, inside, rng, priors).p
        for name, p in p_of.items():
            ways.setdefault(name, []).append(figures(p[outside], y))
    return {name: np.array(values) for name, values in ways.items()}


def behind(ways, figure):
    """By how much the pool is behind the better way of today, and twice its standard error."""
    other_losses = [ways[name][:, figure] for name in ("no labels", FITTED)]
    gap = ways[POOL][:, figure] - min(other_losses, key=np.mean)
    return gap.mean(), 2 * gap.std(ddof=1) / len(gap) ** 0.5


def only_scale(priors):
    """The anchor alone."""
    scale = replace(priors.scale(ANCHOR), weight=1.0)
    nothing = replace(priors.default_scale, weight=1e-30)
    return PoolPriors({ANCHOR: scale}, nothing, {}, 1e-30, 1.0)


def fitted(table, inside):
    labels = np.full(len(table.codes), -1)
    labels[inside.rows] = inside.y
    return select(
        table.codes,
        rng=np.random.default_rng(0),
        families=table.families,
        labels=labels,
        ties=table.ties,
        groups=table.groups,
    ).item_posterior


def table(panel_list, n, draws, seed, *, with_fits):
    """A line for each panel, and the mean."""
    rows = []
    for panel in panel_list:
        if panel.is_part:
            continue
        priors = learn(
            [alternative for alternative in panel_list if alternative.source != panel.source]
        )
        ways = measure(panel, priors, n, draws, seed, with_fits=with_fits)
        if not ways:
            continue
        rows.append({way: values.mean(axis=0) for way, values in ways.items()})
        gaps = [behind(ways, figure) for figure in (1, 2)] if with_fits and draws > 1 else []
        print_row(panel.name, rows[-1], gaps)
    print_row("mean", {way: np.mean([row[way] for row in rows], axis=0) for way in rows[0]}, [])


def print_row(name, ways, gaps):
    """Accuracy in %, log-loss and ECE of each way, and how far the pool is behind."""
    cells = [f"{100 * a:.1f} / {loss:.3f} / {error:.3f}" for a, loss, error in ways.values()]
    cells += [f"{gap:+.3f} ± {error:.3f}" for gap, error in gaps]
    print("| " + " | ".join([name, *cells]) + " |", flush=True)


def report(priors):
    """Priors as they stand in the code."""
    for name, prior in priors.scales.items():
        print(f"{name}: mean {prior.mean}, sd {prior.sd}, weight {prior.weight}")
    print(f"default: {priors.default_scale}")
    print("logistics:", priors.logistics, "unchanged:", priors.anchor_weight)


def main():
    """Measure or learn, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    beside = Path(__file__).parents[1] / ".." / "shared" / "data" / "votes"
    parser.add_argument("data", nargs="?", type=Path, default=beside)
    parser.add_argument("--labels", type=int, default=50)
    parser.add_argument("--draws", type=int, default=12)
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--with-fits", action="store_true")
    parser.add_argument("--priors", action="store_true")
    options = parser.parse_args()
    folder = options.data if options.data.is_dir() else None
    panel_list = list(panels(folder))
    if options.priors:
        report(learn(panel_list))
        return
    ways = ["no labels", *([FITTED] * options.with_fits), "one scale", POOL]
    ways += ["log-loss behind", "ECE behind"] if options.with_fits and options.draws > 1 else []
    print("| " + " | ".join([f"panel, {options.labels} labels", *ways]) + " |")
    print("| --- " * (len(ways) + 1) + "|", flush=True)
    table(panel_list, options.labels, options.draws, options.seed, with_fits=options.with_fits)


if __name__ == "__main__":
    main()
