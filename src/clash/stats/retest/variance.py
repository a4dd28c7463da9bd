"""Variance of an outcome between judgments and between fresh responses."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clash.errors import StatisticsError
from clash.stats.intervals import Interval, encode_clusters
from clash.stats.resample import Bootstrap, cluster_bootstrap

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from clash.stats.typing import Codes, Floats


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
            "judgment and generation cannot be told apart: judge some responses twice, and"
            " generate two prompts or more twice"
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
