"""What there is to choose from: paths, prefixes and families, and how a choice is made of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from clash.stats.selection.families import ANCHOR, FAMILIES, MENU
from clash.stats.selection.paths import RULES

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import numpy.typing as npt

    from clash.stats.selection.metrics import Loss

EVERYBODY = "all"
"""The path of the anchor: the whole panel, in no order."""
Combine = Literal["average", "one"]


@dataclass(frozen=True, slots=True, order=True)
class Candidate:
    """A path, a prefix of it and a family."""

    path: str
    k: int
    family: str


@dataclass(frozen=True)
class Settings:
    """The menu and how to choose from it.

    Attributes:
        rules: paths.
        sizes: prefix sizes.
        families: names of families.
        loss: what validation compares.
        combine: ``average`` deploys the candidates together, each weighed by how it predicted
            validation rows; ``one`` deploys the best of them.
        guard: for ``one``: standard errors by which it must beat majority on the same validation
            rows to be deployed in its place; by default ``FIRM`` below ``FEW`` labelled sources
            and ``EASY`` from there on. Minus infinity deploys the best whatever it is.
        refit: what is chosen is fitted anew to all training rows.
        prior: families and their weights by earlier panels or the kind of task; they stand in for
            the average of families among what is trusted before any label, and for ``one`` the
            heaviest stands in for majority as what a candidate must beat, by the paper's guard
            unless ``guard`` is set.
    """

    rules: tuple[str, ...] = RULES
    sizes: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 7)
    families: tuple[str, ...] = MENU
    loss: Loss = "mse"
    combine: Combine = "average"
    guard: float | None = None
    refit: bool = True
    prior: tuple[tuple[str, float], ...] | None = None

    def candidates(self, n_judges: int) -> list[Candidate]:
        """Everything to choose from; the anchor first."""
        sizes = [k for k in self.sizes if k <= n_judges]
        menu = [
            Candidate(rule, k, family)
            for rule in self.rules
            for k in sizes
            for family in self.families
            if k <= (FAMILIES[family].most or n_judges)
        ]
        return [anchor(n_judges), *menu]


def anchor(n_judges: int) -> Candidate:
    """Uniform majority of the whole panel."""
    return Candidate(EVERYBODY, n_judges, ANCHOR)


def on_most_judges(
    candidates: Sequence[Candidate], usable: npt.NDArray[np.bool_], family: str
) -> int | None:
    """Place of a family's usable candidate with the most judges; None without any."""
    own = [i for i, c in enumerate(candidates) if c.family == family and usable[i]]
    return max(own, key=lambda i: candidates[i].k) if own else None
