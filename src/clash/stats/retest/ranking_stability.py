"""Cycles of fresh responses: how far their rankings agree, and where the variance of outcomes lies."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clash.errors import StatisticsError
from clash.stats.intervals import LEVEL, Interval, encode_clusters, mean_clustered
from clash.stats.resample import Bootstrap, cluster_bootstrap

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from clash.stats.typing import Codes, Floats


def kendall_tau(first: ArrayLike, second: ArrayLike) -> float:
    """Kendall's tau-b of two rankings or score vectors (K,), ties allowed on both sides.

    NaN where one of them ties everything, or K < 2.

    Raises:
        StatisticsError: shapes that differ or NaN.
    """
    x, y = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if x.shape != y.shape or np.isnan(x).any() or np.isnan(y).any():
        raise StatisticsError("two rankings of the same candidates, without NaN")
    a = np.sign(x[:, None] - x)
    b = np.sign(y[:, None] - y)
    scale = math.sqrt(float(np.sum(a * a)) * float(np.sum(b * b)))
    return float(np.sum(a * b)) / scale if scale else math.nan


@dataclass(frozen=True, slots=True)
class RankingStability:
    """Tau-b between every two of N rankings.

    Attributes:
        mean: mean over pairs; the interval is by the jackknife over rankings.
        tau: (N, N), NaN where a ranking ties everything.
        undefined: pairs left out for that reason.
        same_winner: share of pairs of rankings whose first place is the same set.
    """

    mean: Interval
    tau: Floats
    undefined: int
    same_winner: float


def ranking_stability(scores: ArrayLike) -> RankingStability:
    """Compare the rankings of N cycles.

    Args:
        scores: (N, K), larger is better (negate ranks).

    Raises:
        StatisticsError: fewer than two cycles, or NaN.
    """
    table = np.asarray(scores, dtype=float)
    if table.ndim != 2 or len(table) < 2:
        raise StatisticsError("expected cycles by candidates, with two cycles or more")
    n = len(table)
    tau = np.array([[kendall_tau(x, y) for y in table] for x in table])
    top = table == table.max(axis=1, keepdims=True)
    same_top = np.all(top[:, None, :] == top[None, :, :], axis=2)
    upper = np.triu_indices(n, 1)
    pairs = tau[upper]
    return RankingStability(
        _mean_of_pairs(tau), tau, int(np.isnan(pairs).sum()), float(same_top[upper].mean())
    )


def _mean_of_pairs(tau: Floats) -> Interval:
    n = len(tau)
    finite = ~np.isnan(tau) & ~np.eye(n, dtype=bool)
    value = np.where(finite, tau, 0.0)
    total, count = value.sum() / 2, finite.sum() / 2
    if count == 0:
        return Interval(math.nan, -1.0, 1.0, LEVEL, n, n, "undefined")
    mean = total / count
    pairs_without = count - finite.sum(axis=1)
    if n < 3 or np.any(pairs_without == 0):
        return Interval(mean, -1.0, 1.0, LEVEL, n, n, "no interval")
    means_without = (total - value.sum(axis=1)) / pairs_without
    # Pairs share rankings, so they are not independent; pseudo-values n T - (n - 1) T_(-i), one
    # for each ranking left out, nearly are (Tukey 1958).
    pseudo = mean_clustered(n * mean - (n - 1) * means_without)
    reach = pseudo.half_width
    return Interval(
        mean, max(-1.0, mean - reach), min(1.0, mean + reach), LEVEL, n, n, "jackknife over cycles"
    )


@dataclass(frozen=True, slots=True)
class Decomposition:
    """Where the variance of an outcome over repeated end-to-end runs comes from.

    Components are unbiased and may be a little negative where the truth is near 0.

    Attributes:
        judgment: variance between judgments of the same responses.
        generation: variance between fresh responses to one prompt, beyond that.
        prompt: variance between prompts, beyond both; NaN for a single prompt.
        same_responses: rate at which two judgments of the same responses agree.
        fresh_responses: rate at which two judgments of fresh responses agree.
        bootstrap: of (judgment, generation, generation / (judgment + generation)) over prompts.
    """

    judgment: float
    generation: float
    prompt: float
    same_responses: float
    fresh_responses: float
    bootstrap: Bootstrap

    @property
    def generation_share(self) -> Interval:
        """Share of the instability of one prompt's outcome that fresh responses cause."""
        return self.bootstrap.interval(2)


def decompose(
    values: ArrayLike,
    prompts: ArrayLike,
    generations: ArrayLike,
    rng: np.random.Generator,
    *,
    categorical: bool = True,
    n_bootstrap: int = 2000,
) -> Decomposition:
    """Split the variance of an outcome into judgment, generation and prompt.

    Half the mean squared difference of two outcomes that share responses is the variance of
    judgment; of two that share only the prompt, that plus generation; of two that share
    nothing, all three. For categories the squared difference is 1 where they differ. Each
    prompt counts once in the first two.

    Args:
        values: (n,), outcome codes or numbers.
        prompts: (n,), codes.
        generations: (n,), codes of the response set; different prompts may share a code.
        rng: for the bootstrap over prompts.
        categorical: values are codes, not numbers.
        n_bootstrap: resamples.

    Raises:
        StatisticsError: fewer than two prompts with two generations each, or no response set
            that was judged twice: judgment and generation cannot then be told apart.
    """
    x, prompt, n_prompts = encode_clusters(values, prompts)
    _, generation, _ = encode_clusters(x, _joint(prompt, np.asarray(generations)))
    same_responses, fresh_responses = _half_differences(
        x, prompt, generation, n_prompts, categorical=categorical
    )
    if np.isnan(same_responses).all() or np.sum(~np.isnan(fresh_responses)) < 2:
        raise StatisticsError(
            "judgment and generation cannot be separated: judge some responses twice, and "
            "generate two prompts or more twice"
        )
    bootstrap = cluster_bootstrap(
        lambda w: _components(w, same_responses, fresh_responses),
        np.arange(n_prompts),
        rng,
        n_bootstrap,
    )
    judgment, generation_variance, _ = bootstrap.estimate.tolist()
    total = _between(x, prompt, categorical=categorical) - judgment - generation_variance
    scale = 2.0 if categorical else math.nan
    return Decomposition(
        judgment,
        generation_variance,
        total,
        1 - scale * judgment,
        1 - scale * (judgment + generation_variance),
        bootstrap,
    )


def _joint(prompt: Codes, generations: NDArray[np.generic]) -> Codes:
    codes = np.unique(generations, return_inverse=True)[1]
    joint: Codes = prompt * (int(codes.max(initial=0)) + 1) + codes
    return joint


def _difference(x: Floats, *, categorical: bool) -> Floats:
    gap: Floats = x[:, None] - x[None, :]
    return (gap != 0).astype(float) if categorical else gap**2


def _half_differences(
    x: Floats, prompt: Codes, generation: Codes, n_prompts: int, *, categorical: bool
) -> tuple[Floats, Floats]:
    """For each prompt, half the mean difference within and across its response sets."""
    same_responses, fresh_responses = np.full(n_prompts, np.nan), np.full(n_prompts, np.nan)
    for p in range(n_prompts):
        rows = prompt == p
        gap = _difference(x[rows], categorical=categorical) / 2
        same_set = generation[rows][:, None] == generation[rows][None, :]
        pairs = same_set & ~np.eye(len(gap), dtype=bool)
        if pairs.any():
            same_responses[p] = gap[pairs].mean()
        if (~same_set).any():
            fresh_responses[p] = gap[~same_set].mean()
    return same_responses, fresh_responses


def _components(weights: Floats, same_responses: Floats, fresh_responses: Floats) -> Floats:
    judgment, instability = (
        _weighted_mean(weights, same_responses),
        _weighted_mean(weights, fresh_responses),
    )
    share = np.divide(
        instability - judgment,
        instability,
        out=np.full(len(instability), np.nan),
        where=instability > 0,
    )
    # Nothing ever changed: no instability, so none by generation.
    share[instability == 0] = 0.0
    return np.stack([judgment, instability - judgment, np.clip(share, 0, 1)], axis=1)


def _weighted_mean(weights: Floats, values: Floats) -> Floats:
    finite = ~np.isnan(values)
    total = weights[:, finite].sum(axis=1)
    out = np.full(len(weights), np.nan)
    mean: Floats = np.divide(weights[:, finite] @ values[finite], total, out=out, where=total > 0)
    return mean


def _between(x: Floats, prompt: Codes, *, categorical: bool) -> float:
    """Half the mean difference of two outcomes of different prompts; NaN for one prompt."""
    sizes = np.bincount(prompt)
    pairs = len(x) ** 2 - int(np.sum(sizes**2))
    if pairs == 0:
        return math.nan
    within = sum(_spread(x[prompt == p], categorical=categorical) for p in range(len(sizes)))
    return (_spread(x, categorical=categorical) - within) / pairs


def _spread(x: Floats, *, categorical: bool) -> float:
    """Half the summed difference over ordered pairs, from sums over values."""
    if categorical:
        counts = np.unique(x, return_counts=True)[1]
        return float(len(x) ** 2 - np.sum(counts**2)) / 2
    offsets = x - x.mean()
    return float(len(x) * np.sum(offsets**2))
