"""Fit and predict of clash's models of an unknown truth beside crowd-kit, and of Bradley-Terry
beside evalica and choix, in one run.

    python benchmarks/aggregation.py                       # n to 10^5, some minutes
    python benchmarks/aggregation.py --quick               # n to 10^4, under a minute
    python benchmarks/aggregation.py --largest 1000000     # what the targets speak of
    python benchmarks/aggregation.py --votes FILE          # a real panel as well
    python benchmarks/aggregation.py --targets             # what was promised, and nothing else

CPU seconds (user and system, least of several runs) from a vote matrix (crowd-kit: from its data
frame, whose making is not counted) to a posterior for every item. The run ends with one table of ratios. ``x`` is a peer's time over that
of the method of clash it is beside: the same model where there is one, else Dawid-Skene. A peer
that would take longer than --limit, by its time on a tenth of the items, is not run. ``agree`` is
the share of items on which it decides as that method does. Run with OMP_NUM_THREADS=1.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from clash.errors import StatisticsError
from clash.stats.latent.dawid_skene import dawid_skene, one_coin, refits
from clash.stats.latent.factor import factor
from clash.stats.latent.ising import ising_class, ising_shared
from clash.stats.latent.patterns import MISSING, TIE, collapse
from clash.stats.latent.vote_counting import majority
from clash.stats.simulate.panels import IndependentPanel

OURS = {
    "majority": majority,
    "one-coin": one_coin,
    "dawid-skene": dawid_skene,
    "factor": factor,
    "ising-shared": ising_shared,
    "ising-class": ising_class,
}
PEERS = {
    "crowd-kit MajorityVote": "majority",
    "crowd-kit OneCoinDawidSkene": "one-coin",
    "crowd-kit DawidSkene": "dawid-skene",
    "crowd-kit GLAD": "dawid-skene",
    "crowd-kit MACE": "dawid-skene",
}
SMALL = 1000
"""Items up to which a peer's time is mostly overhead, and grows more slowly than they do."""
MOST_BY_CLASS = 10
"""Judges up to which couplings by class are timed; 15 take minutes."""


@dataclass
class Line:
    """One timing.

    Attributes:
        seconds: CPU; null where it was not run.
        ratio: of a peer's time to that of the method it is beside.
    """

    data: str
    n: int
    judges: int
    method: str
    seconds: float | None
    beside: str = ""
    ratio: float | None = None
    agree: float | None = None
    accuracy: float | None = None
    note: str = ""


def synthetic(n, k, rng):
    """Independent judges of different skill, and the truth."""
    rates = np.linspace(0.6, 0.9, k)
    sample = IndependentPanel.of(rates, rates[::-1], 0.5).sample(n, rng)
    return sample.votes, sample.labels


def real(path, judges):
    """Votes of a file as codes, ties kept, and labels where they are a side."""
    from clash.votes import read_votes

    votes = read_votes(path, judges=judges)
    matrix = np.nan_to_num(votes.matrix, nan=-1.0)
    codes = np.where(matrix == 0.5, TIE, matrix).astype(np.int8)
    labels = np.where(np.isin(votes.labels, (0.0, 1.0)), votes.labels, -1)
    return codes, np.nan_to_num(labels, nan=-1).astype(np.int8)


def timed(run, runs):
    """Least CPU seconds of several runs, and the result; one run where the first takes long."""
    least, result = np.inf, None
    for _ in range(runs):
        start = time.process_time()
        result = run()
        least = min(least, time.process_time() - start)
        if least > 1:
            break
    return least, result


def ours(votes):
    """Every method of clash: seconds from the matrix to item posteriors, and the decisions."""
    outcomes = {}
    for name, fit in OURS.items():
        if name == "ising-class" and votes.shape[1] > MOST_BY_CLASS:
            continue
        try:
            seconds, p = timed(lambda fit=fit: fit(collapse(votes)).item_posterior, 3)
        except StatisticsError as refusal:
            outcomes[name] = (None, None, f"refused: {str(refusal)[:60]}")
            continue
        outcomes[name] = (seconds, p >= 0.5, "")
    return outcomes


def frame(votes):
    """The votes as crowd-kit wants them; ties and gaps are left out."""
    import pandas as pd

    item, judge = np.nonzero((votes != MISSING) & (votes != TIE))
    return pd.DataFrame({"task": item, "worker": judge, "label": votes[item, judge].astype(int)})


def peer(name, data, n):
    """A peer's seconds and decisions (NaN where it has none)."""
    from crowdkit.aggregation import GLAD, MACE, DawidSkene, MajorityVote, OneCoinDawidSkene

    make = {
        "crowd-kit MajorityVote": MajorityVote,
        "crowd-kit OneCoinDawidSkene": lambda: OneCoinDawidSkene(n_iter=100),
        "crowd-kit DawidSkene": lambda: DawidSkene(n_iter=100),
        "crowd-kit GLAD": lambda: GLAD(n_iter=100, silent=True),
        "crowd-kit MACE": lambda: MACE(n_restarts=1, n_iter=50, random_state=0),
    }[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seconds, labels = timed(lambda: make().fit_predict(data), 2)
    return seconds, labels.reindex(range(n)).to_numpy(dtype=float)


def warmed_up():
    """Load the peers, so that the first timing is not that of an import."""
    few = np.random.default_rng(0).integers(0, 2, (20, 3)).astype(np.int8)
    for name in PEERS:
        peer(name, frame(few), len(few))


def aggregation(data, votes, labels, seconds_before, limit, *, peers):
    """All methods on one vote matrix; yields lines."""
    n, k = votes.shape
    our_results = ours(votes)
    for name, (seconds, verdicts, note) in our_results.items():
        right = None if verdicts is None else accuracy(verdicts, labels)
        yield Line(data, n, k, name, seconds, accuracy=right, note=note)
    if not peers:
        return
    votes_frame = frame(votes)
    for name, beside in PEERS.items():
        base, verdicts, _ = our_results[beside]
        size, before = seconds_before.get((name, k), (n, 0.0))
        expected_s = before * (n / size if size > SMALL else (n / size) ** 0.5)
        if expected_s > limit:
            note = f"about {expected_s:.0f} s by its time at n = {size}"
            yield Line(data, n, k, name, None, beside, note=note)
            continue
        seconds, peer_verdicts = peer(name, votes_frame, n)
        seconds_before[name, k] = (n, seconds)
        has_verdict = ~np.isnan(peer_verdicts)
        agree = float((peer_verdicts[has_verdict] == verdicts[has_verdict]).mean())
        right = accuracy(peer_verdicts == 1, np.where(has_verdict, labels, -1))
        yield Line(data, n, k, name, seconds, beside, seconds / base, agree, right)


def accuracy(verdicts, labels):
    """Share of labelled items decided right; null without labels."""
    has_label = labels >= 0
    return float((verdicts[has_label] == labels[has_label]).mean()) if has_label.any() else None


def ranking(n, models, limit):
    """Bradley-Terry on n comparisons; yields lines."""
    import bradley_terry as bt

    winner, loser = bt.comparisons(n, models, np.random.default_rng(0))
    base, theta = timed(lambda: bt.ours_without_prior(winner, loser, models), 3)
    yield Line("comparisons", n, models, "bradley-terry", base)
    for name, fit in (("evalica", bt.by_evalica), ("choix ilsr", bt.by_choix)):
        if name == "choix ilsr" and n > 10**5 and limit < 60:
            yield Line("comparisons", n, models, name, None, "bradley-terry", note="minutes")
            continue
        seconds, peer_theta = timed(lambda fit=fit: np.asarray(fit(winner, loser, models)), 2)
        correlation = float(np.corrcoef(theta, peer_theta)[0, 1])
        yield Line(
            "comparisons",
            n,
            models,
            name,
            seconds,
            "bradley-terry",
            seconds / base,
            correlation,
            note="agree: correlation of strengths",
        )


TARGETS = (
    ("Dawid-Skene, 10^6 items x 10 judges, fit and predict", 0.06, "s"),
    ("exact Ising, shared couplings, 10^5 items x 10 judges, one start", 0.1, "s"),
    ("exact Ising, shared couplings, 10^5 items x 15 judges, one start", 2.0, "s"),
    ("1000 bootstrap refits of Dawid-Skene, 10 judges", 0.5, "s"),
    ("Bradley-Terry, 10^6 comparisons of 200 models", 0.05, "s"),
    ("read 10^6 judgments from JSONL", 4.0, "s"),
    ("  and its peak memory, the interpreter's included", 200.0, "MB"),
)


def targets():
    """What was promised, measured: a line each with the figure, the target and whether it is met."""
    import bradley_terry as bt

    rng = np.random.default_rng(0)
    million, _ = synthetic(10**6, 10, rng)
    timings = [timed(lambda: dawid_skene(collapse(million)).item_posterior, 5)[0]]
    patterns = collapse(million)
    counts = patterns.resample(1000, rng)
    for k in (10, 15):
        votes, _ = synthetic(10**5, k, rng)
        timings.append(
            timed(lambda votes=votes: ising_shared(collapse(votes)).item_posterior, 3)[0]
        )
    timings.append(timed(lambda: refits(patterns, counts), 3)[0])
    winner, loser = bt.comparisons(10**6, 200, rng)
    timings.append(timed(lambda: bt.ours(winner, loser, 200), 3)[0])
    timings += reading(10**6)
    print(f"{'':66} {'measured':>9} {'target':>9}")
    for (problem, target, unit), value in zip(TARGETS, timings, strict=True):
        state = "met" if value <= target else "MISSED"
        print(f"{problem:66} {value:>6.3g} {unit:2} {target:>6.3g} {unit:2} {state}", flush=True)


READER = """
import sys, time
from pathlib import Path
from clash.votes import read_votes
start = time.process_time()
votes = read_votes(sys.argv[1])
assert votes.matrix.size >= int(sys.argv[2])
spent = time.process_time() - start
status = Path("/proc/self/status").read_text()
print(spent, int(status.partition("VmHWM:")[2].split()[0]) / 1024)
"""
# Not ru_maxrss: a child begins with that of the process that it was forked from.


def reading(n):
    """CPU seconds and peak megabytes of a process that reads a votes file of n judgments."""
    rng = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "votes.jsonl"
        with path.open("w") as file:
            for item in range(n // 10):
                label = int(rng.random() < 0.5)
                file.writelines(
                    f'{{"item":"q{item}","judge":"judge-{j}","vote":{vote},"label":{label}}}\n'
                    for j, vote in enumerate(rng.integers(0, 2, 10).tolist())
                )
        command = [sys.executable, "-c", READER, str(path), str(n)]
        result = subprocess.run(command, capture_output=True, text=True, check=True)
    return [float(word) for word in result.stdout.split()]


def ratios(lines):
    """One table: a peer's CPU time over ours, by judges and items; its seconds where ours are 0."""
    sizes = sorted({line.n for line in lines if line.beside})
    print(f"\n{'times the CPU of clash':30} {'beside':14} {'K':>4}", end="")
    print("".join(f" {f'n = 10^{round(np.log10(n))}':>10}" for n in sizes))
    rows = {}
    for line in lines:
        if line.beside and line.data in {"independent", "comparisons"}:
            cell = "-" if line.ratio is None else f"{line.ratio:.0f}x"
            rows.setdefault((line.method, line.beside, line.judges), {})[line.n] = cell
    for (method, beside, judges), cells in sorted(rows.items()):
        print(f"{method:30} {beside:14} {judges:>4}", end="")
        print("".join(f" {cells.get(n, ''):>10}" for n in sizes))


def show(line):
    seconds = "-" if line.seconds is None else f"{line.seconds:.4f}"
    ratio = "" if line.ratio is None else f"{line.ratio:.0f}x {line.beside}"
    agree = "" if line.agree is None else f"{line.agree:.3f}"
    right = "" if line.accuracy is None else f"{line.accuracy:.3f}"
    head = f"{line.data:12.12} {line.n:>8} {line.judges:>4}  {line.method:27}"
    print(f"{head} {seconds:>9} {ratio:>18} {agree:>6} {right:>6}  {line.note}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="n to 10^4, K = 3 and 6")
    parser.add_argument("--largest", type=int, default=10**5, help="items, a power of ten")
    parser.add_argument("--judges", default="3,6,10,15", help="panel sizes")
    parser.add_argument("--limit", type=float, default=20.0, help="seconds a peer may take")
    parser.add_argument("--no-peers", action="store_true", help="clash alone")
    parser.add_argument("--votes", type=Path, help="a votes file to time as well")
    parser.add_argument("--select", help="judges of --votes, with wildcards")
    parser.add_argument("--json", type=Path, help="write every line there")
    parser.add_argument("--targets", action="store_true", help="what was promised, alone")
    options = parser.parse_args()
    if options.targets:
        targets()
        return
    largest = 10**4 if options.quick else options.largest
    panels = [3, 6] if options.quick else [int(k) for k in options.judges.split(",")]
    limit = 5.0 if options.quick else options.limit
    lines, before = [], {}
    if not options.no_peers:
        warmed_up()

    def record(findings):
        for line in findings:
            show(line)
            lines.append(line)

    print(
        f"{'data':12} {'n':>8} {'K':>4}  {'method':27} {'CPU s':>9} {'x':>18} {'agree':>6} {'right':>6}"
    )
    sizes = [10**e for e in range(3, 7) if 10**e <= largest]
    for n in sizes:
        for k in panels:
            votes, labels = synthetic(n, k, np.random.default_rng(k))
            peers = not options.no_peers
            record(aggregation("independent", votes, labels, before, limit, peers=peers))
    if options.votes:
        votes, labels = real(options.votes, options.select)
        record(
            aggregation(options.votes.name, votes, labels, {}, limit, peers=not options.no_peers)
        )
    if not options.no_peers:
        for n in sizes[1:]:
            record(ranking(n, 50, limit))
    if not options.no_peers:
        ratios(lines)
    if options.json:
        options.json.write_text(json.dumps([asdict(line) for line in lines], indent=1) + "\n")
        print(f"wrote {options.json}")


if __name__ == "__main__":
    main()
