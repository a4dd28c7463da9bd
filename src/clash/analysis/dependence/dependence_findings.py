"""Results of a dependence analysis, with judges by name."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clash.stats.dependence.model_comparison import ModelScore
    from clash.stats.intervals import Interval
    from clash.stats.typing import Floats
    from clash.votes import LabelUse


@dataclass(frozen=True)
class PanelDependence:
    """The panel whose votes were read.

    Attributes:
        families: the family of each judge; a judge of unknown family is its own.
        rows: items, each presentation and repeat for itself.
        clusters: groups of rows that may depend on each other.
        missing: share of the votes that are missing.
        ties: share of the votes cast that are ties.
        labels: how many rows have a label, and whether the labels are used.
        notes: how scores were read.
    """

    source: str
    judges: tuple[str, ...]
    families: tuple[str, ...]
    rows: int
    clusters: int
    missing: float
    ties: float
    labels: LabelUse
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class TruthSource:
    """The source of the truth: labels, or a model's estimate.

    Attributes:
        method: ``labels``, or the model that estimated it.
        labelled: rows whose label was used.
        available: rows that have a label, used or not.
        reason: why this method.
        anchor_agreement: share of the rows on which it sides with majority; null with labels.
        warnings: of the model.
    """

    method: str
    labelled: int
    available: int
    reason: str
    anchor_agreement: float | None
    warnings: tuple[str, ...]

    @property
    def from_labels(self) -> bool:
        """Whether the truth is observed (labels) rather than estimated."""
        return self.method == "labels"


@dataclass(frozen=True)
class EffectiveNumber:
    """The effective number of independent judges, by three definitions; see docs/dependence.md.

    Attributes:
        judges: on the panel.
        by_mean: K / (1 + (K - 1) r).
        by_spectrum: K^2 / sum of the squared residual correlations.
        by_accuracy: size of the independent jury that is right as often; null where judges are
            no better than chance on average.
        mean_correlation: r.
        mean_accuracy: of a judge.
        majority_accuracy: of the panel.
    """

    judges: int
    by_mean: Interval | None
    by_spectrum: Interval | None
    by_accuracy: Interval | None
    mean_correlation: Interval | None
    mean_accuracy: float
    majority_accuracy: float


@dataclass(frozen=True)
class Alternative:
    """The effective number by another estimate of the truth."""

    method: str
    by_mean: float
    mean_correlation: float


@dataclass(frozen=True)
class PairFinding:
    """Two judges.

    Attributes:
        together: rows on which both voted.
        correlation: residual correlation; null where it is undefined.
        p: score test of independence given the truth; null where it cannot be tested.
        p_holm: corrected for all pairs.
        coupling: W, the log odds ratio given the truth and all other judges.
            ``coupling_error`` is by Wald (a sandwich where there is only a pseudo-likelihood),
            the interval by the bootstrap.
        p_wald: of W = 0; ``p_wald_holm`` corrected for all pairs.
        p_ratio: of W = 0, by likelihood ratio; null beyond 15 judges. ``p_ratio_holm``
            corrected for all pairs.
    """

    first: str
    second: str
    same_family: bool
    together: int
    correlation: Interval | None
    p: float | None
    p_holm: float | None
    coupling: Interval | None = None
    coupling_error: float | None = None
    p_wald: float | None = None
    p_wald_holm: float | None = None
    p_ratio: float | None = None
    p_ratio_holm: float | None = None


@dataclass(frozen=True)
class FamilyFinding:
    """Pairs within a family, or across families: a row of the paper's table 2."""

    name: str
    pairs: int
    correlation: Interval | None
    coupling: Interval | None


@dataclass(frozen=True)
class TestFinding:
    """A hypothesis of appendix B.

    Attributes:
        p: null where it was not tested; ``refusal`` then says why.
    """

    name: str
    says: str
    statistic: float | None
    df: int | None
    p: float | None
    refusal: str = ""


@dataclass(frozen=True)
class BlocFinding:
    """Judges that err with each other more than with the rest.

    Attributes:
        near_copies: they cannot be told from copies of one judge.
        worth: independent judges that they are worth together.
    """

    judges: tuple[str, ...]
    within: float
    outside: float
    worth: float
    near_copies: bool


@dataclass(frozen=True)
class JudgeFinding:
    """The information that one judge adds to the others.

    Attributes:
        accuracy: by the label or its estimate, a tie half right; null where it never voted.
        bits: what its vote tells of the truth beyond all others', by the model.
        flips: share of verdicts that are others without it.
        redundancy: share of its votes' uncertainty that the others' votes remove, held out.
        log_loss: rise of the held-out log-loss of stacking on labels without it; null without
            labels, as ``auc``, the fall of the area under the curve.
        adds: whether the data show that it adds anything.
    """

    judge: str
    family: str
    accuracy: float | None
    bits: Interval | None
    flips: float | None
    redundancy: float | None
    log_loss: Interval | None
    auc: float | None
    adds: bool

    @property
    def is_idle(self) -> bool:
        """Whether it was measured what it adds, and the data show nothing."""
        return not self.adds and (self.bits or self.log_loss) is not None


@dataclass(frozen=True)
class Dependence:
    """A diagnosis.

    Attributes:
        alternatives: the effective number by other estimates of the truth; none with labels.
        correlations: pooled residual correlations, shape (K, K), NaN where undefined.
        couplings: W, shape (K, K); null where ``no_couplings`` says why.
        coupling_method: ``likelihood``, or ``pseudo-likelihood`` beyond 15 judges.
        couplings_by_class: W0 and W1, shape (2, K, K).
        norm_ratio: Frobenius norm of W1 over that of W0.
        family_ratio: mean W within families over that across; null without both.
        conclusions: what follows, in sentences.
        caveats: what it does not say.
    """

    panel: PanelDependence
    truth: TruthSource
    effective: EffectiveNumber
    alternatives: tuple[Alternative, ...]
    correlations: Floats
    couplings: Floats | None
    couplings_by_class: Floats | None
    no_couplings: str
    coupling_method: str | None
    norm_ratio: float | None
    pairs: tuple[PairFinding, ...]
    families: tuple[FamilyFinding, ...]
    family_ratio: float | None
    tests: tuple[TestFinding, ...]
    blocs: tuple[BlocFinding, ...]
    judges: tuple[JudgeFinding, ...]
    models: tuple[ModelScore, ...]
    seed: int
    bootstrap: int
    conclusions: tuple[str, ...] = field(default=())
    caveats: tuple[str, ...] = field(default=())
