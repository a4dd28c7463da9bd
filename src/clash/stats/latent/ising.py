"""Judges that pull each other: Ising laws given the truth, by exact enumeration.

In spins s = +-1 the law is ``log P(s | y) = sum_j (h_j + t a_j) s_j + sum_(j<k) (W_jk + t D_jk)
s_j s_k - log Z_y`` with t = +1 for y = 1 and -1 for y = 0. D = 0 is the class-independent model.

The paper's votes are x = (1 + s) / 2 in 0 and 1. With its H and W in equation (1),

    sum_j H_j x_j + sum_(j<k) W_jk x_j x_k
        = const + sum_j (H_j / 2 + sum_k W_jk / 4) s_j + sum_(j<k) (W_jk / 4) s_j s_k,

so that W = 4 w and H_j = 2 h_j - 2 sum_k w_jk for the fields h and couplings w in spins, and c_j of
equation (3) is 4 a_j. Spins are fitted because s_j and s_j s_k are uncorrelated for independent
judges that say 0 and 1 equally often, which x_j and x_j x_k never are: a ridge on w then leaves
vote rates alone, and the names of the classes can be swapped by changing signs.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from clash.errors import StatisticsError
from clash.stats.latent.identifiability import (
    group_codes,
    require_families,
    require_identified,
    require_votes,
)
from clash.stats.latent.ising_states import (
    BlockEnergies,
    VoteBlock,
    block_energies,
    log_normaliser,
    pairs,
    second_moments,
)
from clash.stats.latent.marginal_likelihood import GaussianPenalty, fit_from
from clash.stats.logistic import logit, sigmoid

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.stats.latent.fit import LatentFit
    from clash.stats.latent.patterns import Patterns
    from clash.stats.typing import Floats, Index, VoteCodes

MOST_JUDGES = 15
"""Judges in one block up to which all vote vectors are enumerated."""
CLASSES = (-1.0, 1.0)


@dataclass(frozen=True, slots=True)
class IsingPriors:
    """How firmly the prior holds, as a share of the items' weight.

    Shares of n, not constants, because what they guard against is a wrong model, which more
    items do not cure.

    Attributes:
        skill: pull of every judge's class effect a_j towards the judges' mean.
        chance: pull of the class effects towards ``typical``, the better-than-chance prior.
        coupling: ridge on the couplings W.
        contrast: ridge on the class difference D of the couplings.
        typical: class effect of a typical judge; 0.42 is 70% right: sigmoid(2 * 0.42) = 0.70.
    """

    skill: float = 0.05
    chance: float = 0.002
    coupling: float = 0.01
    contrast: float = 0.05
    typical: float = 0.42


def ridge_of(value: float) -> IsingPriors:
    """The usual prior with another ridge on the couplings."""
    return replace(IsingPriors(), coupling=value)


def whole_prior(value: float) -> IsingPriors:
    """The usual prior with every pull, on skills, couplings and contrasts, that many times as strong."""
    usual = IsingPriors()
    return replace(
        usual,
        skill=value * usual.skill,
        chance=value * usual.chance,
        coupling=value * usual.coupling,
        contrast=value * usual.contrast,
    )


@dataclass(frozen=True, slots=True)
class IsingLaw:
    """Fields and couplings of either class, in spins.

    Attributes:
        prior: P(truth = 1).
        fields: shape (2, n_judges), class 0 then class 1.
        couplings: shape (2, n_judges, n_judges), symmetric with zero diagonal.
        blocks: the judges that may be coupled, by column.
        n_params: free parameters.
    """

    prior: float
    fields: Floats
    couplings: Floats
    blocks: tuple[tuple[int, ...], ...]
    n_params: int

    @property
    def paper_couplings(self) -> Floats:
        """W of equation (1), where votes are 0 and 1; shape (2, n_judges, n_judges)."""
        return np.asarray(4 * self.couplings)

    def log_likelihoods(self, votes: VoteCodes) -> Floats:
        """Log P(votes | truth = 0 and 1), shape (n, 2); missing votes are summed out."""
        total = np.zeros((len(votes), 2))
        for judges in self.blocks:
            block = VoteBlock.of(votes[:, judges])
            grid = np.ix_(judges, judges)
            for y in (0, 1):
                field, coupling = self.fields[y, list(judges)], self.couplings[y][grid]
                total[:, y] += block_energies(block, field, coupling).energy - log_partition(
                    field, coupling
                )
        return total


def log_partition(field: Floats, coupling: Floats) -> float:
    """Log of the partition function of fields (m,) and couplings (m, m)."""
    m = len(field)
    return log_normaliser(np.concatenate([field, coupling[pairs(m)]]), m)[0]


def ising_shared(
    patterns: Patterns,
    *,
    priors: IsingPriors | None = None,
    tol: float = 1e-5,
    warm: LatentFit | None = None,
) -> LatentFit:
    """Class-independent Ising model: couplings W shared by the classes, a linear weighted vote.

    Model: equation (3). Near-copies are discounted because their agreement is explained by W.
    Assumes that judges depend on each other alike in both classes. Fails where couplings are
    large and free: another split of the items than the truth may then explain the votes as
    well; the prior holds the judges' class effects together against that.
    Source: ising-aggregation, section 2.2.

    Args:
        patterns: the votes, of up to 15 judges; see ``ising_pseudo`` and ``factor`` beyond.
        priors: the prior.
        tol: largest entry of the gradient per item at which the optimiser stops.
        warm: a fit to nearly the same votes to start from, for folds.

    Raises:
        NotIdentifiedError: fewer than four different judges that vote both ways.
        StatisticsError: more than 15 judges, no votes, or too many gaps to sum out.
    """
    require_identified(patterns, "ising-shared", at_least=4, n_params=4 * 2 + 6)
    return fit_ising(
        "ising-shared", patterns, [0] * patterns.n_judges, priors=priors, tol=tol, warm=warm
    )


def ising_class(
    patterns: Patterns,
    *,
    priors: IsingPriors | None = None,
    tol: float = 1e-5,
    warm: LatentFit | None = None,
) -> LatentFit:
    """Class-dependent Ising model: couplings of their own in each class, a quadratic vote.

    Model: equations (1) and (2), the class difference of the couplings shrunk to 0.
    Assumptions, arguments and failures as :func:`ising_shared`; with twice the couplings it
    needs several thousand items or labels to be worth it.
    Source: ising-aggregation, section 2.1.

    Raises:
        NotIdentifiedError: fewer than five different judges that vote both ways.
    """
    require_identified(patterns, "ising-class", at_least=5, n_params=5 * 2 + 2 * 10)
    return fit_ising(
        "ising-class",
        patterns,
        [0] * patterns.n_judges,
        class_dependent=True,
        priors=priors,
        tol=tol,
        warm=warm,
    )


def ising_family(
    patterns: Patterns,
    families: Sequence[object],
    *,
    priors: IsingPriors | None = None,
    tol: float = 1e-5,
    warm: LatentFit | None = None,
) -> LatentFit:
    """Ising model in which only judges of one family are coupled (and alike in both classes).

    Model: equation (3) with W block-diagonal; the law factorises over families, so that any
    number of judges is exact as long as no family has more than 15.
    Assumes families independent of each other given the truth. Fails where the dependence runs
    across families (shared prompts, shared length preference).
    Source: ising-aggregation, section 2.2 and appendix B.

    Args:
        patterns: the votes.
        families: the family of each judge, shape (n_judges,).
        priors: as in :func:`ising_shared`.
        tol: as in :func:`ising_shared`.
        warm: as in :func:`ising_shared`.

    Raises:
        NotIdentifiedError: fewer than three families, or no family with two judges.
    """
    groups = group_codes(families, patterns.n_judges)
    require_families(patterns, groups, "ising-family")
    return fit_ising("ising-family", patterns, groups, priors=priors, tol=tol, warm=warm)


def ising_alone(
    patterns: Patterns,
    *,
    priors: IsingPriors | None = None,
    tol: float = 1e-5,
    warm: LatentFit | None = None,
) -> LatentFit:
    """Ising model without any truth: every class effect pinned at 0.

    The rival that a class has to beat in :func:`ising_shared`: couplings alone can explain that
    judges agree. Its posterior is 1/2 everywhere.
    """
    require_votes(patterns)
    classless = replace(priors or IsingPriors(), chance=1e6, typical=0.0)
    fit = fit_ising(
        "ising-alone", patterns, [0] * patterns.n_judges, priors=classless, tol=tol, warm=warm
    )
    return replace(fit, n_params=fit.n_params - patterns.n_judges - 1, warnings=())


def fit_ising(
    name: str,
    patterns: Patterns,
    groups: Sequence[int],
    *,
    class_dependent: bool = False,
    priors: IsingPriors | None = None,
    tol: float = 1e-5,
    warm: LatentFit | None = None,
) -> LatentFit:
    """Fit couplings within groups of judges from an equal-skill majority start.

    One start: without couplings and with equal skills the posterior is a vote of equal weights, so that the climb
    begins in the basin in which the classes are the truth and its opposite.
    """
    model = IsingModel.of(patterns, groups, class_dependent, priors or IsingPriors())
    starts = {"equal skill": model.start(patterns)}
    return fit_from(name, model, patterns, starts, tol=tol, warm=warm)


@dataclass(frozen=True, slots=True)
class _CoupledGroup:
    """One block: its judges, its votes, and where its couplings stand in the vector."""

    judges: Index
    block: VoteBlock
    couplings: slice


@dataclass(frozen=True, slots=True)
class IsingModel:
    """The likelihood as a function of (log-odds of the prior, h, a, W, D)."""

    n_judges: int
    parts: tuple[_CoupledGroup, ...]
    n_couplings: int
    class_dependent: bool
    penalty: GaussianPenalty = field(repr=False)

    @classmethod
    def of(
        cls, patterns: Patterns, groups: Sequence[int], class_dependent: bool, priors: IsingPriors
    ) -> IsingModel:
        """The model of these votes; couplings only where two judges share a group."""
        parts, at = [], 0
        for group in sorted(set(groups)):
            judges = np.flatnonzero(np.asarray(groups) == group)
            if len(judges) > MOST_JUDGES:
                raise StatisticsError(
                    f"{len(judges)} coupled judges are too many to enumerate (at most "
                    f"{MOST_JUDGES}); use the pseudo-likelihood, family or factor model"
                )
            size = len(judges) * (len(judges) - 1) // 2
            parts.append(
                _CoupledGroup(judges, VoteBlock.of(patterns.votes[:, judges]), slice(at, at + size))
            )
            at += size
        penalty = ising_penalty(
            patterns.weight, patterns.n_judges, at, priors, class_dependent=class_dependent
        )
        return cls(patterns.n_judges, tuple(parts), at, class_dependent, penalty)

    def start(self, patterns: Patterns) -> Floats:
        """Every judge equally skilled, its lean taken from its vote rate, no couplings."""
        theta = self.penalty.centre.copy()
        # Without couplings P(s = 1) = e^h / (e^h + e^-h) = sigmoid(2 h).
        theta[1 : 1 + self.n_judges] = logit(patterns.vote_rates) / 2
        return theta

    def evaluate(
        self, theta: Floats
    ) -> tuple[Floats, list[tuple[list[BlockEnergies], list[Floats]]]]:
        """Log-likelihoods, and per block the sums and the expected moments of either class."""
        total, state = np.zeros((1, 2)), []
        for part in self.parts:
            sums, moments, columns = [], [], []
            for sign in CLASSES:
                natural = self._natural(theta, part, sign)
                m = len(part.judges)
                block_sums = block_energies(part.block, natural[:m], _matrix(natural[m:], m))
                log_z, mean = log_normaliser(natural, m)
                sums.append(block_sums)
                moments.append(mean)
                columns.append(block_sums.energy - log_z)
            total = total + np.column_stack(columns)
            state.append((sums, moments))
        return np.asarray(total), state

    def gradient(
        self, state: list[tuple[list[BlockEnergies], list[Floats]]], weights: Floats
    ) -> Floats:
        """Observed minus expected moments, weighted by class.

        The law is an exponential family in its fields and couplings, so that the gradient of
        log P(v | y) is E[statistics | v, y] - E[statistics | y]: the first are the votes
        themselves, with expectations in the gaps, the second the derivatives of log Z_y. A
        field acts as h + t a, a coupling as W + t D: the chain rule gives a and D the sign t.
        """
        k = self.n_judges
        out = np.zeros_like(self.penalty.centre)
        at = 1 + 2 * k
        totals = weights.sum(axis=0)
        for part, (sums, moments) in zip(self.parts, state, strict=True):
            m = len(part.judges)
            for y, sign in enumerate(CLASSES):
                first, second = second_moments(part.block, sums[y], weights[:, y])
                single = first - totals[y] * moments[y][:m]
                double = second[pairs(m)] - totals[y] * moments[y][m:]
                out[1 + part.judges] += single
                out[1 + k + part.judges] += sign * single
                spot = slice(at + part.couplings.start, at + part.couplings.stop)
                out[spot] += double
                if self.class_dependent:
                    shift = self.n_couplings
                    out[spot.start + shift : spot.stop + shift] += sign * double
        return out

    def law(self, theta: Floats) -> IsingLaw:
        """The vector as fields and couplings."""
        k = self.n_judges
        fields, couplings = np.zeros((2, k)), np.zeros((2, k, k))
        for part in self.parts:
            m = len(part.judges)
            for y, sign in enumerate(CLASSES):
                natural = self._natural(theta, part, sign)
                fields[y, part.judges] = natural[:m]
                couplings[y][np.ix_(part.judges, part.judges)] = _matrix(natural[m:], m)
        blocks = tuple(tuple(int(j) for j in part.judges) for part in self.parts)
        return IsingLaw(float(sigmoid(theta[0])), fields, couplings, blocks, len(theta))

    def swap_classes(self, theta: Floats) -> Floats:
        """The vector with the names of the two classes swapped."""
        out, k = theta.copy(), self.n_judges
        out[0] *= -1
        out[1 + k : 1 + 2 * k] *= -1
        out[1 + 2 * k + self.n_couplings :] *= -1
        return out

    def _natural(self, theta: Floats, part: _CoupledGroup, sign: float) -> Floats:
        """Fields and couplings of one block in one class."""
        k = self.n_judges
        field = theta[1 : 1 + k][part.judges] + sign * theta[1 + k : 1 + 2 * k][part.judges]
        couplings = theta[1 + 2 * k :]
        coupling = couplings[part.couplings]
        if self.class_dependent:
            coupling = coupling + sign * couplings[self.n_couplings :][part.couplings]
        return np.concatenate([field, coupling])


def ising_penalty(
    weight: float,
    n_judges: int,
    n_couplings: int,
    priors: IsingPriors,
    *,
    class_dependent: bool,
    n_before: int = 1,
    stiffness: float = 1.0,
) -> GaussianPenalty:
    """The prior on (log-odds of the prior, h, a, W, D).

    The constants beside the shares of n are worth a tenth of an item to two: they keep a parameter
    on which the votes say nothing finite.

    Args:
        weight: n, of the items.
        n_judges: of the fields h and class effects a.
        n_couplings: of W, and of D where there is one.
        priors: the shares of n.
        class_dependent: whether the vector has the class differences D.
        n_before: 1 where the vector begins with the log-odds of the prior, else 0.
        stiffness: factor on the precision of couplings.
    """
    skills = slice(n_before + n_judges, n_before + 2 * n_judges)
    precision = np.concatenate(
        [
            np.full(n_before, 2.0),
            np.full(n_judges, 0.001 * weight + 0.1),
            np.full(n_judges, priors.chance * weight + 0.5),
            np.full(n_couplings, priors.coupling * stiffness * weight + 0.5),
            np.full(
                n_couplings if class_dependent else 0, priors.contrast * stiffness * weight + 0.5
            ),
        ]
    )
    centre = np.zeros(len(precision))
    centre[skills] = priors.typical
    return GaussianPenalty(centre, precision, ((skills, priors.skill * weight),))


def _matrix(couplings: Floats, m: int) -> Floats:
    matrix = np.zeros((m, m))
    matrix[pairs(m)] = couplings
    return matrix + matrix.T
