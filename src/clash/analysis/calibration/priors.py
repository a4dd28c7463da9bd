"""Priors from earlier calibrators for a panel with few labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from clash.errors import InputError, StatisticsError
from clash.stats.selection.panel import PanelVotes
from clash.stats.selection.prior import Prior, experience, pool_experience, prior_of_task

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clash.analysis.calibration.calibrator import Calibrator, TrainingPattern
    from clash.stats.selection.panel import Target
    from clash.stats.typing import Floats


def prior_for(
    target: Target,
    labels: int,
    families: Sequence[str],
    earlier: Mapping[str, Calibrator],
    seed: int,
) -> Prior:
    """The prior of a new panel.

    Args:
        target: what its labels are.
        labels: labelled sources that there are to learn from.
        families: of the menu.
        earlier: calibrators of other panels, by file; none for the kind of target alone.
        seed: of the draws of their rows.

    Raises:
        InputError: a calibrator of another kind of target, or of too few rows.
    """
    if not earlier:
        return prior_of_task(target)
    experiences = []
    for index, (path, calibrator) in enumerate(earlier.items()):
        if calibrator.target != target:
            raise InputError(
                f"was fitted to a {calibrator.target} target, and these labels are {target}",
                path=path,
                field="target",
                hint="leave it out of --prior",
            )
        rng = np.random.default_rng([seed, 5, index])
        try:
            experiences.append(experience(panel_of(calibrator), labels, rng, families=families))
        except StatisticsError as error:
            raise InputError(str(error), path=path, hint="leave it out of --prior") from None
    return pool_experience(experiences, np.random.default_rng([seed, 5]))


def panel_of(calibrator: Calibrator) -> PanelVotes:
    """The training rows of a calibrator as a panel of the judges it asks.

    The file has counts of patterns: which rows were copies of one source is not in it, so each is
    taken for its own, and scores of one pattern all carry their mean.
    """
    votes, labels = [], []
    for pattern in calibrator.patterns:
        targets = _targets(pattern, calibrator.target)
        n_unlabelled = max(round(pattern.n_rows - pattern.n), 0)
        row = [np.nan if vote is None else vote for vote in pattern.votes]
        votes += [row] * (len(targets) + n_unlabelled)
        labels += [*targets, *[np.nan] * n_unlabelled]
    table: Floats = np.array(votes, dtype=float)
    return PanelVotes.of(table, labels, np.arange(len(labels)), calibrator.target)


def _targets(pattern: TrainingPattern, target: Target) -> list[float]:
    """One target for each labelled row of a pattern."""
    n = round(pattern.n)
    if target == "scalar":
        return [pattern.s[0] / pattern.n] * n if n else []
    if target == "binary":
        n_ones = round(pattern.s[0])
        return [1.0] * n_ones + [0.0] * (n - n_ones)
    sides = zip((0.0, 0.5, 1.0), pattern.s, strict=True)
    return [side for side, count in sides for _ in range(round(count))]
