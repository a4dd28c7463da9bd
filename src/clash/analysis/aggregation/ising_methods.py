"""The Ising models by name: exact or by pseudo-likelihood, their ridge given or chosen."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np

from clash.stats.latent.ising import (
    MOST_JUDGES,
    IsingPriors,
    ising_class,
    ising_family,
    ising_shared,
    ridge_of,
    whole_prior,
)
from clash.stats.latent.ising_pseudo import (
    STRENGTHS,
    choose_strength,
    ising_pseudo,
)
from clash.stats.latent.temperature_scaling import temper, temperature

if TYPE_CHECKING:
    from collections.abc import Callable

    from clash.stats.latent.fit import LatentFit
    from clash.stats.latent.patterns import Patterns
    from clash.votes.binary import MethodTable

RidgeChoice = float | Literal["held-out"] | None
"""The L2 on couplings as a share of the items, or that it is chosen by held-out likelihood.

None: the usual one, and for couplings by class the strength of the whole prior by held-out
likelihood. What the usual prior holds together there, the difference between the classes, is what
the model is for, and a pull that grows with the items never lets go of it.
"""
USUAL_RIDGE = IsingPriors().coupling
FORMS = {
    "ising-shared": "the same couplings in both classes: a linear vote (equation 3)",
    "ising-class": "couplings by class: a quadratic vote (equation 2)",
    "ising-family": "couplings within families, the same in both classes",
}


def fit_ising(
    name: str, patterns: Patterns, table: MethodTable, ridge: RidgeChoice, seed: int
) -> tuple[LatentFit, tuple[str, ...]]:
    """A tempered Ising fit, and a note on its likelihood and ridge.

    Args:
        name: one of :data:`FORMS`.
        patterns: the votes.
        table: whose families and groups they have.
        ridge: see :data:`RidgeChoice`.
        seed: of the folds, and of the chains of the pseudo-likelihood.

    Raises:
        StatisticsError: not identified, or too many gaps.
    """
    if name != "ising-family" and patterns.n_judges > MOST_JUDGES:
        fit, choice = _fit_pseudo(name, patterns, ridge, seed)
    else:
        fit, choice = _fit_exact(name, patterns, table, ridge, seed)
    return fit, (f"{FORMS[name]}; {choice}",)


def _fit_exact(
    name: str, patterns: Patterns, table: MethodTable, ridge: RidgeChoice, seed: int
) -> tuple[LatentFit, str]:
    models: dict[str, Callable[..., LatentFit]] = {
        "ising-shared": ising_shared,
        "ising-class": ising_class,
        "ising-family": partial(ising_family, families=table.families or ()),
    }
    model = models[name]
    by_class = name == "ising-class"
    if ridge is None and not by_class:
        ridge = USUAL_RIDGE
    if isinstance(ridge, float):
        fit = model(patterns, priors=ridge_of(ridge))
        return temper(fit), f"exact likelihood, L2 of {ridge:g} of the items (--ridge)"
    rng = np.random.default_rng(seed)
    choice = (
        choose_strength(
            model, patterns, rng=rng, prior_of=whole_prior, grid=STRENGTHS, groups=table.groups
        )
        if by_class
        else choose_strength(model, patterns, rng=rng, groups=table.groups)
    )
    scores = ", ".join(
        f"{value:g}: {score:.4f}" for value, score in zip(choice.grid, choice.held_out, strict=True)
    )
    strength = (
        f"a prior {choice.strength:g} times as strong as the usual one"
        if by_class
        else f"L2 of {choice.strength:g} of the items"
    )
    ridge_choice = (
        f"exact likelihood, {strength}, the hardest within one standard error of the best "
        f"held-out likelihood ({scores} nats an item)"
    )
    return temper(choice.fit), ridge_choice


def _fit_pseudo(
    name: str, patterns: Patterns, ridge: RidgeChoice, seed: int
) -> tuple[LatentFit, str]:
    share = ridge if isinstance(ridge, float) else USUAL_RIDGE
    fit = ising_pseudo(
        patterns,
        rng=np.random.default_rng(seed),
        class_dependent=name == "ising-class",
        priors=replace(IsingPriors(), coupling=share),
    )
    if fit.parameters is not None:
        fit = replace(fit, temperature=temperature(fit.parameters, patterns))
    reason = " (there is no likelihood to choose it with)" if ridge == "held-out" else ""
    choice = (
        f"pseudo-likelihood, {patterns.n_judges} judges are too many to enumerate (at most "
        f"{MOST_JUDGES}), L2 of {share:g} of the items and more the more judges there are{reason}"
    )
    return replace(fit, name=name), choice
