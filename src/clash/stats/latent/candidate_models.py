"""The models that may overrule majority, and what else could explain that judges agree."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from clash.stats.latent.dawid_skene import dawid_skene, equal_skill, no_agreement, one_coin
from clash.stats.latent.factor import (
    FactorPriors,
    factor,
    factor_blocs,
    factor_class,
    factor_family,
    fit_exchanged,
    trait,
)
from clash.stats.latent.ising import ising_alone, ising_class, ising_shared, whole_prior
from clash.stats.latent.vote_correlations import correlated_blocs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from clash.stats.latent.fit import LatentFit
    from clash.stats.latent.patterns import Patterns

    ModelFitter = Callable[..., LatentFit]
    Rereading = Callable[[Patterns, LatentFit], LatentFit]

EQUAL = "equal-skill"
"""The candidate whose verdicts are those of majority: what a weighting of judges has to beat."""
CHANCE = "no agreement"
"""The rival in which judges agree no more than by chance."""
EVEN = FactorPriors(skill=0.3)
"""A prior that judges are about equally good, to look for another reading of the votes."""
BLOCS, TRAIT_AND_BLOCS = "factor-blocs", "trait and blocs"
"""Judges in blocs that the votes show, and what explains the votes by the same blocs without a class."""
FEWEST_BLOCS = 4
"""Blocs, judges of their own among them, below which a class cannot be told from a bloc's verdict."""
MOST_COUPLED = 10
"""Judges up to which the exact Ising model is among the candidates."""
MOST_COUPLED_BY_CLASS = 8
"""Judges up to which the Ising model with couplings by class is: twice the couplings to learn."""
WEAKER = whole_prior(0.1)
"""Its prior there: the usual one holds the classes together, whatever the votes say."""
MOST_FACTORED = 64
"""Judges up to which factor models are: beyond, a crowd, where few judges share an item."""


@dataclass(frozen=True, slots=True)
class CandidateModel:
    """A model, its rivals without classes, and what it assumes.

    Attributes:
        fit: fits the model.
        rivals: names of the class-free models it has to beat.
        independent: it takes the judges for independent given the truth.
        rival_is_nested: the rival is the model itself without its classes, so that any use of a second
            class, not only the truth's, beats it.
        readings: other readings of the votes by the same model, each from its fit: with judges held
            equally good at first, and with class and factor exchanged.
    """

    fit: ModelFitter
    rivals: tuple[str, ...]
    independent: bool = False
    rival_is_nested: bool = False
    readings: tuple[Rereading, ...] = ()


def candidate_models(
    patterns: Patterns, families: Sequence[object] | None
) -> dict[str, CandidateModel]:
    """The models that ``select`` compares, simplest first.

    ``ising-family`` is not among them: it has no rival of its own structure without classes, so
    that what its couplings explain would be credited to its classes.
    """
    crowd = patterns.n_judges > MOST_FACTORED
    continua = ("trait", "two traits", TRAIT_AND_BLOCS)
    traits = continua if patterns.n_judges > 3 and not crowd else ("trait",)
    alone = (*traits, CHANCE)
    models = {
        EQUAL: CandidateModel(equal_skill, alone, independent=True),
        "one-coin": CandidateModel(one_coin, alone, independent=True),
        "dawid-skene": CandidateModel(dawid_skene, alone, independent=True),
    }
    if families is not None and not crowd:
        fit = partial(factor_family, families=families)
        besides = (*traits, "trait and families")
        models["factor-family"] = CandidateModel(fit, besides, readings=(partial(_from_even, fit),))
    if not crowd:
        models["factor"] = CandidateModel(
            factor, traits, readings=(partial(_from_even, factor), fit_exchanged)
        )
        blocs = correlated_blocs(patterns)
        if FEWEST_BLOCS <= len(set(blocs)) < patterns.n_judges:
            fit = partial(factor_blocs, blocs=blocs)
            models[BLOCS] = CandidateModel(fit, (TRAIT_AND_BLOCS,))
    if patterns.n_judges <= MOST_COUPLED:
        models["ising-shared"] = CandidateModel(
            ising_shared, (*traits, "ising-alone"), rival_is_nested=True
        )
    return models


def class_dependent_models(patterns: Patterns) -> dict[str, ModelFitter]:
    """Models in which judges depend on each other otherwise in one class than in the other."""
    models: dict[str, ModelFitter] = {}
    if patterns.n_judges <= MOST_FACTORED:
        models["factor-class"] = factor_class
    if patterns.n_judges <= MOST_COUPLED_BY_CLASS:
        models["ising-class"] = partial(ising_class, priors=WEAKER)
    return models


def rivals(patterns: Patterns, families: Sequence[object] | None) -> dict[str, ModelFitter]:
    """The class-free models, by name; blocs are those that the correlations show."""
    models: dict[str, ModelFitter] = {
        "trait": trait,
        "two traits": partial(trait, rank=2),
        CHANCE: no_agreement,
    }
    if families is not None:
        models["trait and families"] = partial(trait, families=families)
    blocs = correlated_blocs(patterns)
    if len(set(blocs)) < patterns.n_judges:
        models[TRAIT_AND_BLOCS] = partial(trait, families=blocs)
    return models | {"ising-alone": ising_alone}


def _from_even(model: ModelFitter, patterns: Patterns, fit: LatentFit) -> LatentFit:  # noqa: ARG001 - a reading may start from the fit
    return model(patterns, warm=model(patterns, priors=EVEN))
