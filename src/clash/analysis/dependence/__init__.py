"""Dependence between judges: correlated errors, and the effective number of judges."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from clash.analysis.dependence import measure
from clash.analysis.dependence.conclusions import caveats, conclusions
from clash.analysis.dependence.dependence_findings import (
    Dependence,
    JudgeFinding,
    PanelDependence,
    TestFinding,
)
from clash.analysis.dependence.truth import TruthEstimate, estimate, untied_posteriors
from clash.errors import StatisticsError
from clash.stats.dependence.contribution import (
    Contribution,
    InformationGain,
    contributions,
    information_added,
    redundancy,
)
from clash.stats.dependence.couplings import Couplings, couplings, pseudo_couplings
from clash.stats.dependence.hypotheses import (
    CouplingHypothesis,
    classes_alike,
    exchangeable,
    families_independent,
    score_test,
)
from clash.stats.dependence.independence import (
    MOST_JOINTLY,
    PairwiseIndependence,
    independence_tests,
    without_ties,
)
from clash.stats.dependence.model_comparison import cluster_folds, compare_models
from clash.stats.dependence.pseudolikelihood import pseudo_score_test
from clash.stats.dependence.residual_correlation import accuracies
from clash.stats.latent.patterns import MISSING, TIE
from clash.votes.binary import MethodTable
from clash.wording import plural

if TYPE_CHECKING:
    from collections.abc import Callable

    from clash.stats.latent.patterns import Patterns
    from clash.stats.typing import Floats, Index
    from clash.votes import Votes

FOLDS = 5
MOST_COUPLED = 15
NEGLIGIBLE_BITS = 0.01


@dataclass(frozen=True)
class DependenceOptions:
    """How to diagnose.

    Attributes:
        method: what estimates the truth; see ``truth.METHODS``.
        bootstrap: replicates, at least 2.
        seed: of folds, bootstrap and simulated information.
        threshold: numeric votes from this value on are side 1.
    """

    method: str = "auto"
    bootstrap: int = 500
    seed: int = 0
    threshold: float | None = None


def diagnose(votes: Votes, options: DependenceOptions | None = None) -> Dependence:
    """Measure how the judges of these votes err together; labels are the truth where there are any.

    Raises:
        ConfigError: an unknown method.
        NotIdentifiedError: fewer than three different judges and no labels.
        StatisticsError: fewer than two judges, or a method that was refused.
    """
    settings = options or DependenceOptions()
    table = MethodTable.of(votes, threshold=settings.threshold, use_labels=True)
    estimate_of_truth = estimate(table, settings.method)
    work = _Work.of(votes, estimate_of_truth, settings)
    dependence = work.diagnosis()
    return replace(dependence, conclusions=conclusions(dependence), caveats=caveats(dependence))


@dataclass(frozen=True)
class _Work:
    """The inputs that all parts of the analysis share.

    Attributes:
        clusters: the group of each row; null where each row is its own.
        untied_patterns: the votes, ties read as none, labels in them where known.
        p: P(truth = 1) of the untied patterns.
        fold: the fold of each row.
    """

    panel: PanelDependence
    options: DependenceOptions
    estimate: TruthEstimate
    clusters: Index | None
    untied_patterns: Patterns
    p: Floats
    fold: Index

    @classmethod
    def of(cls, votes: Votes, estimate: TruthEstimate, options: DependenceOptions) -> _Work:
        panel = _panel(votes, estimate)
        groups = estimate.rows.groups
        patterns = without_ties(estimate.patterns)
        return cls(
            panel,
            options,
            estimate,
            groups if panel.clusters < panel.rows else None,
            patterns,
            untied_posteriors(estimate, patterns),
            cluster_folds(groups, FOLDS, np.random.default_rng(options.seed)),
        )

    @property
    def rng(self) -> np.random.Generator:
        """A generator of its own for each part, so that parts do not disturb each other."""
        return np.random.default_rng(self.options.seed)

    @property
    def panel_is_large(self) -> bool:
        """Too many judges to enumerate their votes: couplings are by pseudo-likelihood."""
        return self.untied_patterns.n_judges > MOST_COUPLED

    @property
    def has_few_rows(self) -> bool:
        """Too few groups of rows to say anything of two judges."""
        return self.panel.clusters < measure.TOGETHER

    @property
    def few_rows(self) -> str:
        """Why nothing is said of two judges."""
        return f"{plural(self.panel.clusters, 'group')} of rows, and {measure.TOGETHER} are needed"

    def diagnosis(self) -> Dependence:
        """All parts together."""
        judges, families = self.panel.judges, self.panel.families
        correlations = measure.measure(self.estimate, self.options.bootstrap, self.rng)
        tests, refusal = self._independence()
        coupling_fit, no_couplings = self._couplings()
        table = measure.family_table(correlations, coupling_fit, families)
        return Dependence(
            panel=self.panel,
            truth=self.estimate.source,
            effective=measure.effective(self.estimate, correlations),
            alternatives=measure.alternatives(self.estimate),
            correlations=correlations.correlations.within_classes,
            couplings=None if coupling_fit is None else coupling_fit.matrix,
            couplings_by_class=None if coupling_fit is None else coupling_fit.by_class,
            no_couplings=no_couplings,
            coupling_method=None if coupling_fit is None else coupling_fit.method,
            norm_ratio=None if coupling_fit is None else _norm_ratio(coupling_fit),
            pairs=measure.pairs(correlations, tests, coupling_fit, judges, families),
            families=table,
            family_ratio=measure.family_ratio(table),
            tests=(_joint(tests, refusal), *self._hypotheses()),
            blocs=measure.blocs(self.estimate, correlations, judges),
            judges=self._judges(),
            models=()
            if self.has_few_rows
            else compare_models(
                self.untied_patterns,
                self.fold,
                families=self.estimate.rows.families,
                clusters=self.clusters,
            ),
            seed=self.options.seed,
            bootstrap=self.options.bootstrap,
        )

    def _independence(self) -> tuple[PairwiseIndependence | None, str]:
        if self.has_few_rows:
            return None, self.few_rows
        try:
            return independence_tests(self.untied_patterns, self.rng, clusters=self.clusters), ""
        except StatisticsError as refusal:
            return None, str(refusal)

    def _couplings(self) -> tuple[Couplings | None, str]:
        if self.has_few_rows:
            return None, self.few_rows
        fit = pseudo_couplings if self.panel_is_large else couplings
        try:
            coupling_fit = fit(
                self.untied_patterns,
                self.p,
                self.rng,
                clusters=self.clusters,
                replicates=self.options.bootstrap,
            )
        except StatisticsError as refusal:
            return None, str(refusal)
        return coupling_fit, ""

    def _hypotheses(self) -> list[TestFinding]:
        codes = np.unique(self.panel.families, return_inverse=True)[1].astype(np.intp)
        return [
            self._test(*NAMES[0], lambda: families_independent(codes)),
            self._test(*NAMES[1], lambda: exchangeable(codes)),
            self._test(*NAMES[2], lambda: classes_alike(len(codes))),
        ]

    def _test(
        self, name: str, statement: str, make: Callable[[], CouplingHypothesis]
    ) -> TestFinding:
        if self.has_few_rows:
            return TestFinding(name, statement, None, None, None, self.few_rows)
        try:
            if self.panel_is_large:
                test = pseudo_score_test(
                    make(), self.untied_patterns, self.p, clusters=self.clusters
                )
            else:
                test = score_test(
                    make(), self.untied_patterns, self.p, self.rng, clusters=self.clusters
                )
        except StatisticsError as refusal:
            return TestFinding(name, statement, None, None, None, str(refusal))
        return TestFinding(name, statement, test.statistic, test.df, test.p)

    def _judges(self) -> tuple[JudgeFinding, ...]:
        law, has_labels = self.estimate.fit.parameters, self.estimate.source.from_labels
        patterns = self.estimate.patterns
        right = accuracies(patterns, self.estimate.p).judges
        information = None
        if law is not None and not self.has_few_rows:
            information = information_added(law, patterns, self.clusters)
        redundancies = redundancy(patterns, self.fold)
        contributions_of = (
            contributions(patterns, self.fold, self.clusters)[1]
            if has_labels and not self.has_few_rows
            else None
        )
        return tuple(
            _judge(
                name,
                self.panel.families[index],
                float(right[index]),
                information[index] if information else None,
                float(redundancies[index]),
                contributions_of[index] if contributions_of else None,
            )
            for index, name in enumerate(self.panel.judges)
        )


NAMES = (
    ("family independence", "judges of different families are not coupled"),
    ("exchangeability within family", "all pairs within a family have the same coupling"),
    ("class-independent couplings", "judges have the same couplings in both classes (W0 = W1)"),
)


def _panel(votes: Votes, estimate: TruthEstimate) -> PanelDependence:
    rows = estimate.rows
    is_vote = rows.codes != MISSING
    judges = [votes.judges[k] for k in rows.judges]
    silent = [judge for judge in votes.judges if judge not in set(judges)]
    notes = [note for note in rows.notes if "ties" not in note]
    if silent:
        notes.append(f"left out because they never voted: {', '.join(silent)}")
    return PanelDependence(
        votes.source,
        tuple(judges),
        tuple(votes.families[k] or votes.judges[k] for k in rows.judges),
        len(rows.codes),
        int(rows.groups.max()) + 1,
        float(1 - is_vote.mean()),
        float((rows.codes == TIE).sum() / max(1, is_vote.sum())),
        votes.label_use,
        tuple(notes),
    )


def _joint(tests: PairwiseIndependence | None, refusal: str) -> TestFinding:
    name, statement = "independence", "no two judges err together"
    if tests is None:
        return TestFinding(name, statement, None, None, None, refusal)
    if tests.joint is None:
        many = len(tests.pairs) > MOST_JOINTLY
        reason = (
            f"{len(tests.pairs)} pairs are too many for a joint test; see the tests of single pairs"
            if many
            else "the votes alone cannot test it; labels could"
        )
        return TestFinding(name, statement, None, None, None, reason)
    return TestFinding(name, statement, tests.joint.statistic, tests.joint.df, tests.joint.p)


def _judge(
    name: str,
    family: str,
    accuracy: float,
    information: InformationGain | None,
    redundancy_of: float,
    contribution: Contribution | None,
) -> JudgeFinding:
    if contribution is not None:
        adds = contribution.log_loss.low > 0
    else:
        adds = information is not None and information.bits.high > NEGLIGIBLE_BITS
    return JudgeFinding(
        name,
        family,
        measure.number_or_none(accuracy),
        information.bits if information else None,
        information.flips if information else None,
        measure.number_or_none(redundancy_of),
        contribution.log_loss if contribution and contribution.log_loss.half_width else None,
        measure.number_or_none(contribution.auc) if contribution else None,
        adds,
    )


def _norm_ratio(coupling_fit: Couplings) -> float | None:
    norm_zero, norm_one = (float(np.linalg.norm(matrix)) for matrix in coupling_fit.by_class)
    return norm_one / norm_zero if norm_zero > 0 else None
