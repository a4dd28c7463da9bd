"""The whole diagnosis, from votes to sentences."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from clash.analysis.dependence import measure
from clash.analysis.dependence.conclusions import caveats, conclusions
from clash.analysis.dependence.results import Dependence, JudgeFinding, Panel, TestFinding
from clash.analysis.dependence.truth import Estimated, Rows, estimate, matched
from clash.errors import StatisticsError
from clash.stats.dependence import (
    MOST_JOINTLY,
    Contribution,
    CouplingHypothesis,
    Couplings,
    InformationGain,
    PairwiseIndependence,
    accuracies,
    classes_alike,
    cluster_folds,
    compare_models,
    contributions,
    couplings,
    exchangeable,
    families_independent,
    independence_tests,
    information_added,
    pseudo_couplings,
    pseudo_score_test,
    redundancy,
    score_test,
    without_ties,
)
from clash.stats.latent.patterns import MISSING, TIE
from clash.votes.binary import Table

if TYPE_CHECKING:
    from collections.abc import Callable

    from clash.stats.latent.patterns import Patterns
    from clash.stats.typing import Floats, Index
    from clash.votes import Votes

FOLDS = 5
MOST_COUPLED = 15
NEGLIGIBLE_BITS = 0.01


@dataclass(frozen=True)
class Options:
    """How to diagnose.

    Attributes:
        method: what estimates the truth; see ``truth.METHODS``.
        use_labels: labels are the truth where there are any.
        bootstrap: replicates, at least 2.
        seed: of folds, bootstrap and simulated information.
        threshold: numeric votes from this value on are side 1.
    """

    method: str = "auto"
    use_labels: bool = False
    bootstrap: int = 500
    seed: int = 0
    threshold: float | None = None


def diagnose(votes: Votes, options: Options | None = None) -> Dependence:
    """Measure how the judges of these votes err together.

    Raises:
        ConfigError: an unknown method.
        NotIdentifiedError: fewer than three different judges and no labels.
        StatisticsError: fewer than two judges, or a method that was refused.
    """
    chosen = options or Options()
    table = Table.of(votes, threshold=chosen.threshold, use_labels=chosen.use_labels)
    estimated = estimate(Rows.of(table), chosen.method)
    work = _Work.of(votes, estimated, chosen)
    found = work.diagnosis()
    return replace(found, conclusions=conclusions(found), caveats=caveats(found))


@dataclass(frozen=True)
class _Work:
    """What the parts of a diagnosis share.

    Attributes:
        clusters: the group of each row; null where each row is its own.
        untied: the votes, ties read as none, labels in them where known.
        p: P(truth = 1) of the untied patterns.
        fold: the fold of each row.
    """

    panel: Panel
    options: Options
    estimated: Estimated
    clusters: Index | None
    untied: Patterns
    p: Floats
    fold: Index

    @classmethod
    def of(cls, votes: Votes, estimated: Estimated, options: Options) -> _Work:
        panel = _panel(votes, estimated)
        groups = estimated.rows.groups
        untied = without_ties(estimated.patterns)
        return cls(
            panel,
            options,
            estimated,
            groups if panel.clusters < panel.rows else None,
            untied,
            matched(estimated, untied),
            cluster_folds(groups, FOLDS, np.random.default_rng(options.seed)),
        )

    @property
    def rng(self) -> np.random.Generator:
        """A generator of its own for each part, so that parts do not disturb each other."""
        return np.random.default_rng(self.options.seed)

    @property
    def panel_is_large(self) -> bool:
        """Too many judges to enumerate their votes: couplings are by pseudo-likelihood."""
        return self.untied.n_judges > MOST_COUPLED

    def diagnosis(self) -> Dependence:
        """All parts together."""
        judges, families = self.panel.judges, self.panel.families
        measured = measure.measure(self.estimated, self.options.bootstrap, self.rng)
        tests, untested = self._independence()
        fitted, no_couplings = self._couplings()
        table = measure.family_table(measured, fitted, families)
        return Dependence(
            panel=self.panel,
            truth=self.estimated.about,
            effective=measure.effective(self.estimated, measured),
            alternatives=measure.alternatives(self.estimated),
            correlations=measured.correlations.pooled,
            couplings=None if fitted is None else fitted.matrix,
            couplings_by_class=None if fitted is None else fitted.by_class,
            no_couplings=no_couplings,
            coupling_method=None if fitted is None else fitted.method,
            norm_ratio=None if fitted is None else _norm_ratio(fitted),
            pairs=measure.pairs(measured, tests, fitted, judges, families),
            families=table,
            family_ratio=measure.family_ratio(table),
            tests=(_joint(tests, untested), *self._hypotheses()),
            blocs=measure.blocs(self.estimated, measured, judges),
            judges=self._judges(),
            models=compare_models(
                self.untied,
                self.fold,
                families=self.estimated.rows.families,
                clusters=self.clusters,
            ),
            seed=self.options.seed,
            bootstrap=self.options.bootstrap,
        )

    def _independence(self) -> tuple[PairwiseIndependence | None, str]:
        try:
            return independence_tests(self.untied, self.rng, clusters=self.clusters), ""
        except StatisticsError as refusal:
            return None, str(refusal)

    def _couplings(self) -> tuple[Couplings | None, str]:
        fit = pseudo_couplings if self.panel_is_large else couplings
        try:
            fitted = fit(
                self.untied,
                self.p,
                self.rng,
                clusters=self.clusters,
                replicates=self.options.bootstrap,
            )
        except StatisticsError as refusal:
            return None, str(refusal)
        return fitted, ""

    def _hypotheses(self) -> list[TestFinding]:
        codes = np.unique(self.panel.families, return_inverse=True)[1].astype(np.intp)
        return [
            self._tested(*NAMES[0], lambda: families_independent(codes)),
            self._tested(*NAMES[1], lambda: exchangeable(codes)),
            self._tested(*NAMES[2], lambda: classes_alike(len(codes))),
        ]

    def _tested(self, name: str, says: str, make: Callable[[], CouplingHypothesis]) -> TestFinding:
        try:
            if self.panel_is_large:
                found = pseudo_score_test(make(), self.untied, self.p, clusters=self.clusters)
            else:
                found = score_test(make(), self.untied, self.p, self.rng, clusters=self.clusters)
        except StatisticsError as refusal:
            return TestFinding(name, says, None, None, None, str(refusal))
        return TestFinding(name, says, found.statistic, found.df, found.p)

    def _judges(self) -> tuple[JudgeFinding, ...]:
        law, known = self.estimated.fit.parameters, self.estimated.about.known
        patterns = self.estimated.patterns
        right = accuracies(patterns, self.estimated.p).judges
        told = information_added(law, patterns, self.clusters) if law is not None else None
        foreseen = redundancy(patterns, self.fold)
        added = contributions(patterns, self.fold, self.clusters)[1] if known else None
        return tuple(
            _judge(
                name,
                self.panel.families[index],
                float(right[index]),
                told[index] if told else None,
                float(foreseen[index]),
                added[index] if added else None,
            )
            for index, name in enumerate(self.panel.judges)
        )


NAMES = (
    ("family independence", "judges of different families are not coupled"),
    ("exchangeability within family", "within a family every pair is coupled alike"),
    ("class-independent couplings", "judges are coupled alike in both classes (W0 = W1)"),
)


def _panel(votes: Votes, estimated: Estimated) -> Panel:
    rows = estimated.rows
    cast = rows.codes != MISSING
    heard = [votes.judges[k] for k in rows.judges]
    silent = [judge for judge in votes.judges if judge not in set(heard)]
    notes = [note for note in rows.notes if "ties" not in note]
    if silent:
        notes.append(f"left out, for they never voted: {', '.join(silent)}")
    return Panel(
        votes.source,
        tuple(heard),
        tuple(votes.families[k] or votes.judges[k] for k in rows.judges),
        len(rows.codes),
        int(rows.groups.max()) + 1,
        float(1 - cast.mean()),
        float((rows.codes == TIE).sum() / max(1, cast.sum())),
        tuple(notes),
    )


def _joint(tests: PairwiseIndependence | None, untested: str) -> TestFinding:
    name, says = "independence", "no two judges err together"
    if tests is None:
        return TestFinding(name, says, None, None, None, untested)
    if tests.joint is None:
        many = len(tests.pairs) > MOST_JOINTLY
        why = (
            f"{len(tests.pairs)} pairs are too many to test at once; see them one by one"
            if many
            else "the votes leave nothing to test it with; labels would"
        )
        return TestFinding(name, says, None, None, None, why)
    return TestFinding(name, says, tests.joint.statistic, tests.joint.df, tests.joint.p)


def _judge(
    name: str,
    family: str,
    accuracy: float,
    told: InformationGain | None,
    foreseen: float,
    added: Contribution | None,
) -> JudgeFinding:
    if added is not None:
        adds = added.log_loss.low > 0
    else:
        adds = told is not None and told.bits.high > NEGLIGIBLE_BITS
    return JudgeFinding(
        name,
        family,
        _number(accuracy),
        told.bits if told else None,
        told.flips if told else None,
        _number(foreseen),
        added.log_loss if added else None,
        _number(added.auc) if added else None,
        adds,
    )


def _norm_ratio(fitted: Couplings) -> float | None:
    zero, one = (float(np.linalg.norm(matrix)) for matrix in fitted.by_class)
    return one / zero if zero > 0 else None


def _number(value: float) -> float | None:
    return None if np.isnan(value) else value
