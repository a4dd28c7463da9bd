"""Bradley-Terry on n comparisons of M models: clash beside choix, evalica and scikit-learn.

    python benchmarks/bradley_terry.py [--largest 1000000] [--peers]

Prints CPU seconds (least of three runs, user and system) from arrays to strengths, and the
largest |observed - expected| wins at the strengths returned, per game: a fit that stopped early
is fast (the default prior of clash is such a difference, so it is timed without one too). Peers that are not installed are left out; choix is timed to 10^5 comparisons only. Run
with OMP_NUM_THREADS=1 for figures that can be compared.
"""

from __future__ import annotations

import argparse
import importlib.util
import time

import numpy as np

from clash.stats.voting.bradley_terry import bradley_terry, count_comparisons


def comparisons(n, m, rng):
    """Winners and losers of n comparisons among m models of normal strengths."""
    strength = rng.normal(size=m)
    first = rng.integers(0, m, n)
    second = (first + rng.integers(1, m, n)) % m
    is_win = rng.random(n) < 1 / (1 + np.exp(strength[second] - strength[first]))
    return np.where(is_win, first, second), np.where(is_win, second, first)


def residual(winner, loser, theta):
    """Largest difference of observed and expected wins, over the games of a model."""
    m = len(theta)
    wins = np.bincount(winner * m + loser, minlength=m * m).reshape(m, m)
    games = wins + wins.T
    expected_wins = games / (1 + np.exp(theta[None, :] - theta[:, None]))
    gap = np.abs(wins.sum(axis=1) - expected_wins.sum(axis=1))
    return float(np.max(gap / games.sum(axis=1)))


def ours(winner, loser, m, prior=0.5):
    counts = count_comparisons(winner, loser, np.ones(len(winner)), m)
    return bradley_terry(counts, prior=prior).theta


def ours_without_prior(winner, loser, m):
    return ours(winner, loser, m, prior=0.0)


def by_evalica(winner, loser, m):
    import evalica

    names = np.array([f"m{i:03d}" for i in range(m)])
    result = evalica.bradley_terry(
        names[winner].tolist(), names[loser].tolist(), [evalica.Winner.X] * len(winner)
    )
    with np.errstate(divide="ignore"):
        return np.log(result.scores.reindex(names, fill_value=np.nan).to_numpy())


def by_choix(winner, loser, m):
    import choix

    return choix.ilsr_pairwise(m, list(zip(winner.tolist(), loser.tolist(), strict=True)))


def by_sklearn(winner, loser, m):
    from scipy.sparse import csr_matrix
    from sklearn.linear_model import LogisticRegression

    n = len(winner)
    rows, sign = np.repeat(np.arange(n), 2), np.tile([1.0, -1.0], n)
    # Half the comparisons turned round, since a regression needs both outcomes.
    is_turned = np.arange(n) % 2 == 1
    sign *= np.repeat(np.where(is_turned, -1.0, 1.0), 2)
    design = csr_matrix((sign, (rows, np.stack([winner, loser], axis=1).ravel())), shape=(n, m))
    fit = LogisticRegression(C=1e6, fit_intercept=False, tol=1e-8, max_iter=500)
    return fit.fit(design, ~is_turned).coef_[0]


PEERS = {
    "evalica": (by_evalica, 10**6, "evalica"),
    "scikit-learn": (by_sklearn, 10**6, "sklearn"),
    "choix ilsr": (by_choix, 10**5, "choix"),
}


def timed(fit, winner, loser, m, runs=3):
    """CPU seconds and the strengths, or why there are none."""
    seconds, theta = [], None
    for _ in range(runs):
        start = time.process_time()
        try:
            theta = fit(winner, loser, m)
        except (RuntimeError, ValueError) as error:
            return None, f"{type(error).__name__}: {error}"
        seconds.append(time.process_time() - start)
    return min(seconds), theta


def line(name, n, m, fit, winner, loser):
    seconds, theta = timed(fit, winner, loser, m)
    if seconds is None:
        return f"{name:14} {n:>9} {m:>4}  {theta}"
    gradient = residual(winner, loser, np.asarray(theta, dtype=float))
    return f"{name:14} {n:>9} {m:>4} {seconds:>9.4f} {gradient:>11.1e}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--largest", type=int, default=10**6)
    parser.add_argument("--peers", action="store_true", help="time installed peers too")
    options = parser.parse_args()
    fits = {"clash": (ours, 10**9), "clash, prior 0": (ours_without_prior, 10**9)}
    if options.peers:
        fits |= {
            name: (fit, most)
            for name, (fit, most, module) in PEERS.items()
            if importlib.util.find_spec(module)
        }
    print(f"{'':14} {'n':>9} {'M':>4} {'CPU s':>9} {'residual':>11}")
    rng = np.random.default_rng(0)
    for n in (10**4, 10**5, 10**6):
        for m in (10, 50, 200):
            if n > options.largest:
                continue
            winner, loser = comparisons(n, m, rng)
            for name, (fit, most) in fits.items():
                if n <= most:
                    print(line(name, n, m, fit, winner, loser), flush=True)


if __name__ == "__main__":
    main()
