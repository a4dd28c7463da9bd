"""Choosing path, prefix and family on validation rows, and what the choice is worth on the test's.

Each rotation deals the training rows anew into selection, calibration and validation; over all
rotations every training row validates once, so that few labels choose as well as they can. The
chosen candidate is compared with uniform majority on the same rows, and deployed only where it
is better by more than the noise. It is then refitted to all training rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from clash.errors import StatisticsError
from clash.stats.selection.diagnostics import Pressure, pressure
from clash.stats.selection.families import ANCHOR, FAMILIES, fitted
from clash.stats.selection.metrics import Loss, Metrics, verdicts
from clash.stats.selection.paths import RULES, Path, build
from clash.stats.selection.scalar import mean_vote

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clash.stats.selection.blocks import Roles, Split
    from clash.stats.selection.panel import Evidence, Floats, Index, Panel, Sealed

FEW, FIRM, EASY = 200, 2.0, 1.0
"""A hundred rows that choose among hundreds of candidates flatter the winner."""
EVERYBODY = "all"
"""The path of the anchor: the whole panel, in no order."""


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
        guard: standard errors by which a candidate must beat majority on the same validation
            rows to be deployed in its place; by default ``FIRM`` below ``FEW`` labelled sources
            and ``EASY`` from there on. Minus infinity deploys the best whatever it is.
        refit: the chosen candidate is fitted anew to all training rows.
    """

    rules: tuple[str, ...] = RULES
    sizes: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 7)
    families: tuple[str, ...] = tuple(FAMILIES)
    loss: Loss = "mse"
    guard: float | None = None
    refit: bool = True

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


@dataclass(frozen=True)
class Choice:
    """What validation rows made of the menu.

    Attributes:
        candidates: the menu.
        losses: (M, n), loss of each candidate on each validation row; NaN where it was refused.
        rows: (n,), the rows.
        chosen: place of the one to deploy.
        best: place of the one with the least risk, whether or not the guard let it through.
        gain: how much less the best loses than majority does.
        gain_se: its standard error, clustered by source.
        n_validation: sources in one validation block, for theorem 1.
    """

    candidates: Sequence[Candidate]
    losses: Floats = field(repr=False)
    rows: Index = field(repr=False)
    chosen: int
    best: int
    gain: float
    gain_se: float
    n_validation: int

    @property
    def risks(self) -> Floats:
        """(M,), mean loss; NaN where refused."""
        return np.asarray(self.losses.mean(axis=1))

    @property
    def candidate(self) -> Candidate:
        """The one to deploy."""
        return self.candidates[self.chosen]

    @property
    def guarded(self) -> bool:
        """Whether the best was turned away for lack of evidence."""
        return self.chosen != self.best

    def best_of(self, places: Sequence[int]) -> int | None:
        """The one of these with the least risk; None where all were refused."""
        risks = self.risks[list(places)]
        return None if np.isnan(risks).all() else int(places[int(np.nanargmin(risks))])


class Fitter:
    """Fits of one panel and one set of votes, each made once."""

    def __init__(self, panel: Panel, settings: Settings) -> None:
        self.panel, self.settings = panel, settings
        self._scores: dict[tuple[int, ...], dict[str, Floats | StatisticsError]] = {}

    def paths(self, selection: Evidence, budget: int, rng: np.random.Generator) -> dict[str, Path]:
        """Every path of the menu, from selection evidence."""
        sizes = [k for k in self.settings.sizes if k <= self.panel.n_judges]
        made = {
            rule: build(rule, self.panel, selection, budget, sizes, rng)
            for rule in self.settings.rules
        }
        whole = tuple(range(self.panel.n_judges))
        return {**made, EVERYBODY: Path(EVERYBODY, {self.panel.n_judges: whole})}

    def all(
        self, candidates: Sequence[Candidate], paths: Mapping[str, Path], seen: Evidence
    ) -> list[Floats | None]:
        """Predictions of each candidate by pattern of the whole panel; None where refused."""
        kept: dict[tuple[str, tuple[int, ...]], Floats | None] = {}
        by_judges: dict[tuple[int, ...], Evidence] = {}
        found: list[Floats | None] = []
        for candidate in candidates:
            judges = paths[candidate.path].panels[candidate.k]
            family = FAMILIES[candidate.family]
            judges = judges if family.ordered else tuple(sorted(judges))
            key = (candidate.family, judges)
            if key not in kept:
                if judges not in by_judges:
                    by_judges[judges] = seen.on(self.panel.cells(judges))
                kept[key] = self._fit(candidate.family, judges, by_judges[judges])
            found.append(kept[key])
        return found

    def one(self, candidate: Candidate, paths: Mapping[str, Path], seen: Evidence) -> Floats | None:
        """Predictions of one candidate by pattern of the whole panel."""
        return self.all([candidate], paths, seen)[0]

    def _fit(self, name: str, judges: tuple[int, ...], seen: Evidence) -> Floats | None:
        cells = self.panel.cells(judges)
        scores = self._scores.setdefault(judges, {})
        try:
            p = fitted(FAMILIES[name], cells, seen, scores)
        except StatisticsError:
            return None
        return p[cells.of_pattern]


def choose(
    panel: Panel,
    roles: Sequence[Roles],
    votes: Floats,
    settings: Settings,
    rng: np.random.Generator,
    fitter: Fitter | None = None,
) -> Choice:
    """Choose from the menu on the validation rows of all rotations.

    Args:
        panel: the panel.
        roles: rotations.
        votes: (P,), votes that may be looked at, for models of votes alone.
        settings: the menu.
        rng: of random paths.
        fitter: kept fits of the same votes.

    Raises:
        StatisticsError: not even majority can be fitted.
    """
    fitter = fitter or Fitter(panel, settings)
    candidates = settings.candidates(panel.n_judges)
    parts = [_rotation(panel, role, votes, fitter, candidates, rng) for role in roles]
    losses = np.concatenate([part[0] for part in parts], axis=1)
    earned = np.concatenate([part[1] for part in parts], axis=1)
    rows = np.concatenate([role.validation for role in roles])
    risks = losses.mean(axis=1)
    if np.isnan(risks).all():
        raise StatisticsError("no candidate of the menu can be fitted to these votes")
    best = int(np.nanargmin(risks))
    groups = panel.group[rows]
    guard = settings.guard
    if guard is None:
        guard = FIRM if len(np.unique(groups)) < FEW else EASY
    chosen = best if guard == -np.inf else _guarded(losses, earned, groups, guard)
    gain, error = paired_gain(losses[0] - losses[best], panel.group[rows])
    sizes = [len(np.unique(panel.group[role.validation])) for role in roles]
    return Choice(candidates, losses, rows, chosen, best, gain, error, min(sizes))


def _guarded(losses: Floats, earned: Floats, groups: Index, errors: float) -> int:
    """The least risk, if its gain over majority is no noise; else majority.

    An easy guard looks among those that are right as often as majority. A firm one tests the
    winner alone, for its verdicts too, by one standard error: of hundreds of candidates some
    are right more often by luck, and a better probability is no reason to overturn verdicts.
    """
    firm = errors > EASY
    usable = ~np.isnan(losses).any(axis=1)
    if not firm:
        usable &= earned.mean(axis=1) >= earned[0].mean() - 1e-12
    first = int(np.argmin(np.where(usable, losses.mean(axis=1), np.inf)))
    gain, error = paired_gain(losses[0] - losses[first], groups)
    more, noise = paired_gain(earned[first] - earned[0], groups)
    trusted = gain > errors * error and (not firm or more >= noise)
    return first if trusted else 0


def _rotation(
    panel: Panel,
    role: Roles,
    votes: Floats,
    fitter: Fitter,
    candidates: Sequence[Candidate],
    rng: np.random.Generator,
) -> Floats:
    """Losses and credits (2, M, n) of one rotation; each block enters only where its role allows."""
    selection = panel.rows(role.selection).evidence(panel.n_patterns)
    paths = fitter.paths(selection, len(role.calibration), rng)
    seen = panel.rows(role.calibration).evidence(panel.n_patterns, votes)
    judged = panel.rows(role.validation)
    found = fitter.all(candidates, paths, seen)
    nothing = np.full(len(judged.pattern), np.nan)
    loss = fitter.settings.loss
    return np.stack(
        [
            [nothing if p is None else judged.losses(p, loss) for p in found],
            [nothing if p is None else judged.credits(p) for p in found],
        ]
    )


def paired_gain(gains: Floats, groups: Index) -> tuple[float, float]:
    """Mean of the gains of rows, and its standard error clustered by source."""
    mean = float(gains.mean())
    code = np.unique(groups, return_inverse=True)[1]
    totals = np.bincount(code, gains - mean)
    if len(totals) < 2:
        return mean, float("inf")
    scale = len(totals) / (len(totals) - 1)
    return mean, float(np.sqrt(scale * (totals**2).sum()) / len(gains))


@dataclass(frozen=True)
class Deployed:
    """A candidate fitted to all training rows.

    Attributes:
        judges: those it asks, in order.
        p: (P, C), its predictions by pattern of the whole panel.
    """

    candidate: Candidate
    judges: tuple[int, ...]
    p: Floats = field(repr=False)


@dataclass(frozen=True)
class Outcome:
    """One split: what was chosen, and how it fares on rows that nothing was fitted to.

    Attributes:
        choice: on validation rows.
        deployed: the chosen candidate, fitted.
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

    choice: Choice
    deployed: Deployed
    test: Metrics
    majority: Metrics
    by_family: Mapping[str, tuple[Candidate, Metrics]]
    risks: Floats = field(repr=False)
    pressure: Pressure
    pressures: Mapping[tuple[str, int], Pressure]
    n_train: int
    test_rows: Index = field(repr=False)
    sealed: Sealed = field(repr=False)
    gains: Floats = field(repr=False)


def evaluate(panel: Panel, split: Split, settings: Settings, rng: np.random.Generator) -> Outcome:
    """Choose and fit on the training rows of a split; measure on its sealed test block."""
    fitter = Fitter(panel, settings)
    choice = choose(panel, split.roles, split.seen, settings, rng, fitter)
    paths, seen = final_evidence(panel, split.train, split.roles, split.seen, fitter, rng)
    found = fitter.all(choice.candidates, paths, seen)
    sealed = panel.seal(split.test)
    place = choice.chosen
    deployed = _deployed(choice.candidates[place], paths, found[place])
    by_family = {}
    for family in settings.families:
        own = [
            i
            for i, c in enumerate(choice.candidates)
            if c.family == family and found[i] is not None
        ]
        first = choice.best_of(own) if own else None
        if first is not None and (p := found[first]) is not None:
            by_family[family] = (choice.candidates[first], sealed.measure(p))
    risks = np.array([np.nan if p is None else sealed.mse(p) for p in found])
    plain = plain_majority(panel)
    return Outcome(
        choice=choice,
        deployed=deployed,
        test=sealed.measure(deployed.p),
        majority=sealed.measure(plain, verdicts(plain)),
        by_family=by_family,
        risks=risks,
        pressure=pressure(panel, deployed.judges, seen, sealed.patterns),
        pressures={
            (path.name, k): pressure(panel, judges, seen, sealed.patterns)
            for path in paths.values()
            for k, judges in path.panels.items()
        },
        n_train=len(split.train),
        test_rows=split.test,
        sealed=sealed,
        gains=sealed.gains(deployed.p, plain),
    )


def final_evidence(
    panel: Panel,
    train: Index,
    roles: Sequence[Roles],
    votes: Floats,
    fitter: Fitter,
    rng: np.random.Generator,
) -> tuple[dict[str, Path], Evidence]:
    """Paths and evidence of the deployed fit.

    With refitting the choice is fixed by now, so all training rows build paths and fit maps;
    without, the blocks of the one rotation keep their roles.
    """
    if fitter.settings.refit:
        seen = panel.rows(train).evidence(panel.n_patterns, votes)
        return fitter.paths(seen, len(train), rng), seen
    role = roles[0]
    selection = panel.rows(role.selection).evidence(panel.n_patterns)
    seen = panel.rows(role.calibration).evidence(panel.n_patterns, votes)
    return fitter.paths(selection, len(role.calibration), rng), seen


def _deployed(candidate: Candidate, paths: Mapping[str, Path], p: Floats | None) -> Deployed:
    if p is None:
        raise StatisticsError(f"{candidate.family} cannot be fitted to all training rows")
    return Deployed(candidate, paths[candidate.path].panels[candidate.k], p)


def plain_majority(panel: Panel) -> Floats:
    """(P, C), vote shares after one vote for each side: what majority says without a label."""
    cells = panel.cells(tuple(range(panel.n_judges)))
    share, count = mean_vote(cells), (~np.isnan(cells.values)).sum(axis=1)[:, None]
    if panel.target == "scalar":
        return np.asarray(share[cells.of_pattern])
    prior = 1.0 if share.shape[1] == 1 else 2 / 3
    middle = 0.5 if share.shape[1] == 1 else 1 / 3
    pseudo = prior / middle
    return np.asarray(((share * count + prior) / (count + pseudo))[cells.of_pattern])
