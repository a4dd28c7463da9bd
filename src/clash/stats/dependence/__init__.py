"""Whether judges err together, how much, and what that leaves of the panel.

Everything here is given the truth or an estimate of it. Without labels, what all judges get wrong
together is indistinguishable from the truth: residual correlations come out too small, and
effective numbers too large. Only labels show the rest.
"""

from clash.stats.dependence.blocs import Bloc, class_rates, find_blocs
from clash.stats.dependence.contribution import (
    Contribution,
    InformationGain,
    StackedRegression,
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
from clash.stats.dependence.model_comparison import ModelScore, cluster_folds, compare_models
from clash.stats.dependence.pseudolikelihood import pseudo_score_test
from clash.stats.dependence.residual_correlation import (
    EffectiveNumbers,
    PanelAccuracies,
    ResidualCorrelations,
    accuracies,
    effective_number,
    jury_accuracy,
    jury_size,
    off_diagonal,
    pooled_replicates,
    resampled_counts,
    residual_correlations,
)
from clash.stats.dependence.score_tests import ScoreTest

__all__ = [
    "MOST_JOINTLY",
    "Bloc",
    "Contribution",
    "CouplingHypothesis",
    "Couplings",
    "EffectiveNumbers",
    "InformationGain",
    "ModelScore",
    "PairwiseIndependence",
    "PanelAccuracies",
    "ResidualCorrelations",
    "ScoreTest",
    "StackedRegression",
    "accuracies",
    "class_rates",
    "classes_alike",
    "cluster_folds",
    "compare_models",
    "contributions",
    "couplings",
    "effective_number",
    "exchangeable",
    "families_independent",
    "find_blocs",
    "independence_tests",
    "information_added",
    "jury_accuracy",
    "jury_size",
    "off_diagonal",
    "pooled_replicates",
    "pseudo_couplings",
    "pseudo_score_test",
    "redundancy",
    "resampled_counts",
    "residual_correlations",
    "score_test",
    "without_ties",
]
