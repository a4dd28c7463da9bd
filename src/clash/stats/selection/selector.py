"""Choosing path, prefix and family on validation rows, and what the choice is worth on the test's.

Each rotation deals the training rows anew into selection, calibration and validation; over all
rotations every training row validates once, so that few labels choose as well as they can. What
is chosen, an average of candidates or one of them, is then refitted to all training rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from clash.errors import StatisticsError
from clash.stats.selection.candidate_methods import (
    CandidateMethod,
    MethodFitter,
    SelectionSettings,
    judges_of,
)
from clash.stats.selection.joint_table import CellPressure, cell_pressure
from clash.stats.selection.metrics import Metrics, verdicts
from clash.stats.selection.model_choice import ModelChoice, choose
from clash.stats.selection.scalar import vote_shares

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clash.stats.selection.blocks import RowRoles, RowSplit
    from clash.stats.selection.panel import Evidence, PanelVotes, SealedRows
    from clash.stats.selection.paths import JudgePath
    from clash.stats.typing import Floats, Index


@dataclass(frozen=True)
class DeployedMember:
    """A fitted candidate, or several that come to the same, and its weight among those deployed."""

    family: str
    judges: tuple[int, ...]
    weight: float


@dataclass(frozen=True)
class DeployedModel:
    """What was chosen, fitted to all training rows.

    Attributes:
        candidate: the heaviest.
        judges: those it asks, in order.
        members: all of them, the heaviest first; weights add up to one.
        p: (P, C), their mean prediction by pattern of the whole panel.
    """

    candidate: CandidateMethod
    judges: tuple[int, ...]
    members: tuple[DeployedMember, ...]
    p: Floats = field(repr=False)

    @property
    def all_judges(self) -> tuple[int, ...]:
        """Every judge that a member asks, those of the heaviest first."""
        return tuple(dict.fromkeys([*self.judges, *(j for m in self.members for j in m.judges)]))


@dataclass(frozen=True)
class SplitOutcome:
    """One split: what was chosen, and how it fares on rows that nothing was fitted to.

    Attributes:
        choice: on validation rows.
        deployed: what was chosen, fitted.
        test: of it.
        majority: of uniform majority with its plain vote shares.
        by_family: of the candidate of each family with the least validation risk.
        risks: (M,), test squared error of every candidate, fitted likewise: for the oracle
            envelope and the plots, never for a choice.
        pressure: of the chosen prefix's joint table.
        test_rows: (n,), rows of the test block.
        sealed: the block, still sealed.
        gains: (n,), credit of the verdict minus that of majority.
    """

    choice: ModelChoice
    model: DeployedModel
    test: Metrics
    majority: Metrics
    by_family: Mapping[str, tuple[CandidateMethod, Metrics]]
    risks: Floats = field(repr=False)
    pressure: CellPressure
    pressures: Mapping[tuple[str, int], CellPressure]
    n_train: int
    test_rows: Index = field(repr=False)
    test_block: SealedRows = field(repr=False)
    gains: Floats = field(repr=False)


@dataclass(frozen=True)
class FittedChoice:
    """A choice and its fits to all training rows.

    Attributes:
        found: predictions of each candidate of the menu by pattern; None where refused or not
            wanted.
        seen: evidence they were fitted to.
    """

    choice: ModelChoice
    model: DeployedModel
    paths: Mapping[str, JudgePath]
    evidence: Evidence
    predictions: Sequence[Floats | None] = field(repr=False)


def learn(
    panel: PanelVotes,
    train: Index,
    roles: Sequence[RowRoles],
    votes: Floats,
    settings: SelectionSettings,
    rng: np.random.Generator,
    *,
    whole_menu: bool = False,
) -> FittedChoice:
    """Choose on some labelled rows, and fit what is chosen to them.

    Args:
        panel: the panel.
        train: the rows; no label of any other is looked at.
        roles: their rotations.
        votes: (P,), votes that may be looked at, labelled or not.
        settings: the menu.
        rng: of random paths and of the bootstrap behind the weights.
        whole_menu: fit the candidates that are not deployed, too.

    Raises:
        StatisticsError: nothing of the menu can be fitted.
    """
    fitter = MethodFitter(panel, settings)
    choice = choose(panel, roles, votes, settings, rng, fitter)
    paths, evidence = final_evidence(panel, train, roles, votes, fitter, rng)
    to_fit = [
        c for c, w in zip(choice.candidates, choice.weights, strict=True) if whole_menu or w > 0
    ]
    fits = dict(zip(to_fit, fitter.predictions(to_fit, paths, evidence), strict=True))
    predictions = [fits.get(candidate) for candidate in choice.candidates]
    return FittedChoice(choice, deploy(choice, paths, predictions), paths, evidence, predictions)


def evaluate(
    panel: PanelVotes, split: RowSplit, settings: SelectionSettings, rng: np.random.Generator
) -> SplitOutcome:
    """Choose and fit on the training rows of a split; measure on its sealed test block."""
    fit = learn(panel, split.train, split.roles, split.votes, settings, rng, whole_menu=True)
    choice, model, predictions = fit.choice, fit.model, fit.predictions
    test_block = panel.seal(split.test)
    by_family = {}
    for family in settings.families:
        members = [
            i
            for i, c in enumerate(choice.candidates)
            if c.family == family and predictions[i] is not None
        ]
        first = choice.best_of(members) if members else None
        if first is not None and (p := predictions[first]) is not None:
            by_family[family] = (choice.candidates[first], test_block.measure(p))
    risks = np.array([np.nan if p is None else test_block.mse(p) for p in predictions])
    plain = plain_majority(panel)
    return SplitOutcome(
        choice=choice,
        model=model,
        test=test_block.measure(model.p),
        majority=test_block.measure(plain, verdicts(plain)),
        by_family=by_family,
        risks=risks,
        pressure=cell_pressure(panel, model.judges, fit.evidence, test_block.patterns),
        pressures={
            (path.name, k): cell_pressure(panel, judges, fit.evidence, test_block.patterns)
            for path in fit.paths.values()
            for k, judges in path.panels.items()
        },
        n_train=len(split.train),
        test_rows=split.test,
        test_block=test_block,
        gains=test_block.gains(model.p, plain),
    )


def final_evidence(
    panel: PanelVotes,
    train: Index,
    roles: Sequence[RowRoles],
    votes: Floats,
    fitter: MethodFitter,
    rng: np.random.Generator,
) -> tuple[dict[str, JudgePath], Evidence]:
    """Paths and evidence of the deployed fit.

    With refitting the choice is fixed by now, so all training rows build paths and fit maps;
    without, the blocks of the one rotation keep their roles.
    """
    if fitter.settings.refit:
        evidence = panel.rows(train).evidence(panel.n_patterns, votes)
        return fitter.paths(evidence, len(train), rng), evidence
    role = roles[0]
    selection = panel.rows(role.selection).evidence(panel.n_patterns)
    evidence = panel.rows(role.calibration).evidence(panel.n_patterns, votes)
    return fitter.paths(selection, len(role.calibration), rng), evidence


def deploy(
    choice: ModelChoice, paths: Mapping[str, JudgePath], predictions: Sequence[Floats | None]
) -> DeployedModel:
    """The chosen candidates as one map.

    Args:
        choice: on validation rows.
        paths: of all training rows.
        predictions: predictions of each candidate of the menu, fitted to these; those of weight 0 are
            not looked at.

    Raises:
        StatisticsError: none of the chosen can be fitted to all training rows.
    """
    weights: dict[tuple[str, tuple[int, ...]], float] = {}
    total, mean = 0.0, None
    for i in np.argsort(-choice.weights, kind="stable").tolist():
        weight, p = float(choice.weights[i]), predictions[i]
        if weight == 0 or p is None:
            continue
        candidate = choice.candidates[i]
        key = (candidate.family, judges_of(candidate, paths))
        weights[key] = weights.get(key, 0.0) + weight
        mean = weight * p if mean is None else mean + weight * p
        total += weight
    if mean is None:
        raise StatisticsError(f"{choice.candidate.family} cannot be fitted to all training rows")
    members = [DeployedMember(family, judges, w / total) for (family, judges), w in weights.items()]
    heaviest = choice.candidate
    return DeployedModel(
        heaviest,
        paths[heaviest.path].panels[heaviest.k],
        tuple(sorted(members, key=lambda m: -m.weight)),
        np.asarray(mean / total),
    )


def plain_majority(panel: PanelVotes) -> Floats:
    """(P, C), :func:`~clash.stats.selection.scalar.vote_shares` by pattern of the whole panel."""
    cells = panel.cells(tuple(range(panel.n_judges)))
    return np.asarray(vote_shares(cells)[cells.of_pattern])
