"""Choose path, prefix and family on validation rows, fit the choice, and measure it on test rows.

This is the protocol of section 3.5, with rotations added: each deals the training rows anew into
selection, calibration and validation, and over all of them every training row validates once. The
choice, an average of candidates or one of them, is then refitted to all training rows.
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
    """A fitted family on some judges, and its weight; candidates with the same fit are one member."""

    family: str
    judges: tuple[int, ...]
    weight: float


@dataclass(frozen=True)
class DeployedModel:
    """The chosen candidates, fitted to all training rows.

    Attributes:
        candidate: the one with the most weight.
        judges: the judges of that one, in the order of its path.
        members: all of them, the heaviest first; weights add up to one.
        p: (P, C), their mean prediction by pattern of the whole panel.
    """

    candidate: CandidateMethod
    judges: tuple[int, ...]
    members: tuple[DeployedMember, ...]
    p: Floats = field(repr=False)

    @property
    def all_judges(self) -> tuple[int, ...]:
        """The judges of all members, those of the heaviest first."""
        return tuple(dict.fromkeys([*self.judges, *(j for m in self.members for j in m.judges)]))


@dataclass(frozen=True)
class SplitOutcome:
    """One split: the choice, and its metrics on rows that nothing was fitted to.

    Attributes:
        choice: made on validation rows.
        model: the choice, fitted.
        test: metrics of the model on the test block.
        majority: metrics of uniform majority with its plain vote shares there.
        by_family: of the candidate of each family with the least validation risk.
        risks: (M,), test squared error of every candidate, fitted likewise: for the oracle
            envelope and the plots, never for a choice.
        pressure: of the chosen prefix's joint table.
        test_rows: (n,), rows of the test block.
        test_block: the block, still sealed.
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
        evidence: labelled rows that the candidates were fitted to.
        predictions: of each candidate of the menu, by pattern; None where it was refused or not
            fitted.
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
    """Choose on some labelled rows, and fit the choice to them.

    Args:
        panel: the panel.
        train: the rows; labels of other rows are not used.
        roles: their rotations.
        votes: (P,), rows of each pattern whose votes may be used, labelled or not.
        settings: the menu.
        rng: of random paths and of the bootstrap behind the weights.
        whole_menu: also fit the candidates that are not deployed.

    Raises:
        StatisticsError: no candidate of the menu can be fitted.
    """
    fitter = MethodFitter(panel, settings)
    choice = choose(panel, roles, votes, settings, rng, fitter)
    paths, evidence = _final_evidence(panel, train, roles, votes, fitter, rng)
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


def _final_evidence(
    panel: PanelVotes,
    train: Index,
    roles: Sequence[RowRoles],
    votes: Floats,
    fitter: MethodFitter,
    rng: np.random.Generator,
) -> tuple[dict[str, JudgePath], Evidence]:
    """Paths and evidence for the deployed fit.

    With ``refit`` all training rows build paths and fit maps, since the choice is made by now;
    without it the blocks of the first rotation keep their roles.
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
    """The chosen candidates as one map, the weighted mean of their predictions.

    Args:
        choice: made on validation rows.
        paths: from all training rows.
        predictions: of each candidate of the menu, fitted to these rows; those of weight 0 are not
            used.

    Raises:
        StatisticsError: none of the chosen candidates can be fitted to all training rows.
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
