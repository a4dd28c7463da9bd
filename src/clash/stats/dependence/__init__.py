"""Whether judges err together, how much, and what that leaves of the panel.

Everything here is given the truth or an estimate of it. Without labels, what all judges get wrong
together is indistinguishable from the truth: residual correlations come out too small, and
effective numbers too large. Only labels show the rest.
"""

from clash.stats.dependence.blocs import Bloc, class_rates, find_blocs
from clash.stats.dependence.contribution import (
    Contribution,
    Information,
    Stacked,
    contributions,
    information_added,
    redundancy,
)
from clash.stats.dependence.couplings import Couplings, couplings, pseudo_couplings
from clash.stats.dependence.effective import (
    Accuracies,
    Effective,
    accuracies,
    effective_number,
    jury_accuracy,
    jury_size,
)
from clash.stats.dependence.hypotheses import (
    Hypothesis,
    check,
    classes_alike,
    exchangeable,
    families_independent,
)
from clash.stats.dependence.independence import (
    MOST_JOINTLY,
    PairwiseIndependence,
    independence_tests,
    without_ties,
)
from clash.stats.dependence.model_comparison import ModelScore, cluster_folds, compare_models
from clash.stats.dependence.pseudolikelihood import check_pseudo
from clash.stats.dependence.residual_correlation import (
    ResidualCorrelations,
    off_diagonal,
    pooled_replicates,
    resampled_counts,
    residual_correlations,
)
from clash.stats.dependence.score_tests import ScoreTest

__all__ = [
    "MOST_JOINTLY",
    "Accuracies",
    "Bloc",
    "Contribution",
    "Couplings",
    "Effective",
    "Hypothesis",
    "Information",
    "ModelScore",
    "PairwiseIndependence",
    "ResidualCorrelations",
    "ScoreTest",
    "Stacked",
    "accuracies",
    "check",
    "check_pseudo",
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
    "redundancy",
    "resampled_counts",
    "residual_correlations",
    "without_ties",
]
