"""Conditionally independent judges: Dawid-Skene, one-coin and with position bias."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from clash.errors import StatisticsError
from clash.stats.latent.fit import FitStart, LatentFit, assemble, observe, vote_share
from clash.stats.latent.identifiability import has_labels, informative_judges, require_identified
from clash.stats.latent.patterns import MISSING, Patterns, collapse
from clash.stats.logistic import sigmoid

if TYPE_CHECKING:
    from clash.stats.typing import Bools, Floats, VoteCodes

Tying = Literal["none", "coin", "equal", "position"]
TOLERANCE, MAX_ITER = 1e-6, 2000
"""EM stops where no rate changes by more, or after so many iterations, unconverged."""
FLOOR = 1e-12
"""Rates are kept this far from 0 and 1, so that a log-likelihood stays finite."""


@dataclass(frozen=True, slots=True)
class BetaPriors:
    """Pseudo-counts added in the M-step; a Beta(right + 1, wrong + 1) prior, MAP.

    The mode of that density, and not its mean, is (hits + right) / (n + right + wrong): with 0
    and 0 it is uniform and the fit is maximum likelihood.

    Attributes:
        right: votes with the truth that each judge is given beforehand, per class.
        wrong: votes against it.
        truth: items given beforehand to each class.
    """

    right: float = 0.0
    wrong: float = 0.0
    truth: float = 0.0


FLAT = BetaPriors()
WEAK = BetaPriors(right=1.4, wrong=0.6, truth=1.0)
"""Two votes' worth of belief that a judge is right 70% of the time."""


@dataclass(frozen=True, slots=True)
class DawidSkene:
    """Sensitivities, specificities and the prior of equation (12).

    Attributes:
        sensitivity: P(vote 1 | truth 1), shape (n_judges,).
        specificity: P(vote 0 | truth 0), shape (n_judges,).
        prior: P(truth = 1).
        n_params: free parameters, fewer where rates are tied.
    """

    sensitivity: Floats
    specificity: Floats
    prior: float
    n_params: int

    @property
    def weights(self) -> Floats:
        """w_j of equation (12): what a vote of judge j adds to the log-odds; shape (n_judges,).

        Positive exactly where the judge is better than chance.
        """
        a, b = self.sensitivity, self.specificity
        return np.asarray(np.log(a) + np.log(b) - np.log1p(-a) - np.log1p(-b))

    @property
    def intercept(self) -> float:
        """Log-odds of class 1 when every judge votes 0: b of equation (12)."""
        miss = np.log1p(-self.sensitivity) - np.log(self.specificity)
        return float(np.log(self.prior) - np.log1p(-self.prior) + miss.sum())

    def log_likelihoods(self, votes: VoteCodes) -> Floats:
        """Log P(votes | truth = 0 and 1), shape (n, 2); a missing vote has no factor."""
        votes_one = np.where(votes == 2, 0.5, votes == 1)
        votes_zero = np.where(votes == 2, 0.5, votes == 0)
        given_one = votes_one @ np.log(self.sensitivity) + votes_zero @ np.log1p(-self.sensitivity)
        given_zero = votes_one @ np.log1p(-self.specificity) + votes_zero @ np.log(self.specificity)
        return np.column_stack([given_zero, given_one])


def no_agreement(patterns: Patterns) -> LatentFit:
    """Judges that vote at their own rates whatever the item: the rival without any agreement.

    Its posterior is 1/2 everywhere; nothing needs identifying.
    """
    rate = patterns.vote_rates
    law = DawidSkene(rate, 1 - rate, 0.5, patterns.n_judges)
    return replace(assemble("no-agreement", law, patterns), warnings=())


@dataclass(frozen=True, slots=True)
class DawidSkeneReplicates:
    """Many Dawid-Skene fits of the same patterns under other counts (a bootstrap).

    Attributes:
        posterior: P(truth = 1 | votes) of shape (n_replicates, n_patterns).
        sensitivity: shape (n_replicates, n_judges).
        specificity: shape (n_replicates, n_judges).
        prior: shape (n_replicates,).
        converged: bool of shape (n_replicates,).
    """

    posterior: Floats
    sensitivity: Floats
    specificity: Floats
    prior: Floats
    converged: Bools


def dawid_skene(
    patterns: Patterns,
    *,
    priors: BetaPriors = WEAK,
    tol: float = TOLERANCE,
    max_iter: int = MAX_ITER,
) -> LatentFit:
    """Dawid-Skene with a sensitivity and a specificity per judge, by MAP-EM from majority.

    Model: votes are independent given the truth (appendix D.1); missing votes are summed out,
    a tie enters as the mean of its resolutions.
    Assumes independence of errors. Fails, worse than majority and with near-certain posteriors,
    where judges err together: it takes a bloc's agreement for skill.
    Source: Dawid and Skene 1979; ising-aggregation, equations (11), (12) and appendix E.

    Args:
        patterns: the votes; labels, where given, enter as observed.
        priors: pseudo-counts; ``FLAT`` is maximum likelihood.
        tol: largest change of a rate at which EM stops.
        max_iter: iterations after which it gives up (``converged`` is then False).

    Raises:
        NotIdentifiedError: fewer than three different judges that vote both ways.
        StatisticsError: nobody voted.
    """
    require_identified(patterns, "dawid-skene", at_least=3, n_params=2 * 3 + 1)
    return _fit("dawid-skene", patterns, "none", priors, tol, max_iter)


def one_coin(patterns: Patterns, *, priors: BetaPriors = WEAK) -> LatentFit:
    """Dawid-Skene with one accuracy per judge, the same for both classes.

    Assumptions, arguments and failures as :func:`dawid_skene`, with half its parameters; a
    judge that leans to one class is mistaken for a worse one.
    Source: ising-aggregation, appendix D.1 (symmetric special case).
    """
    require_identified(patterns, "one-coin", at_least=3, n_params=3 + 1)
    return _fit("one-coin", patterns, "coin", priors)


def equal_skill(patterns: Patterns, *, priors: BetaPriors = WEAK) -> LatentFit:
    """Dawid-Skene with one accuracy for all judges and both classes: the law behind majority.

    Its verdicts are those of uniform majority but for items at 1/2, where the prior decides; it
    is what a weighting of the judges has to beat on held-out votes.
    Assumptions, arguments and failures as :func:`dawid_skene`, with two parameters.
    Source: ising-aggregation, section 4 (CI-UMV), as a likelihood.
    """
    require_identified(patterns, "equal-skill", at_least=3, n_params=2)
    return _fit("equal-skill", patterns, "equal", priors)


def position_bias(
    votes: npt.ArrayLike,
    order_swapped: npt.ArrayLike,
    *,
    priors: BetaPriors = WEAK,
) -> LatentFit:
    """Judges that favour a slot: one accuracy when the better response is shown first, one when second.

    Model: given the truth, judge j votes for it with probability f_j if it was shown first and
    l_j if second. Where the order was randomised this has the parameters of Dawid-Skene but
    none of its confusion between a judge's bias and the prevalence of the classes.
    Assumes randomised order and independent errors. Fails as Dawid-Skene does under dependence.
    Source: ising-aggregation, appendix D.1, tied across presentations.

    Args:
        votes: shape (n_items, n_judges), codes of :func:`~clash.stats.latent.patterns.collapse`
            in the frame of the original order.
        order_swapped: bool of shape (n_items, n_judges) or (n_items,): the judge saw the order swapped.
        priors: as in :func:`dawid_skene`.

    Returns:
        A fit whose patterns have 2 n_judges columns: the judges as they saw the original order,
        then as they saw the swapped one. ``sensitivity`` of the first half is f, of the second l.
    """
    matrix = np.asarray(votes, np.int8)
    order = np.asarray(order_swapped, bool)
    order = order[:, None] if order.ndim == 1 else order
    if order.shape not in {matrix.shape, (len(matrix), 1)}:
        raise StatisticsError(f"order_swapped must be of shape {matrix.shape} or ({len(matrix)},)")
    missing = np.int8(MISSING)
    by_order = np.column_stack([np.where(order, missing, matrix), np.where(order, matrix, missing)])
    patterns = collapse(by_order)
    all_orders = collapse(matrix)
    require_identified(all_orders, "position-bias", at_least=3, n_params=2 * 3 + 1)
    return _fit("position-bias", patterns, "position", priors)


def refits(
    patterns: Patterns,
    counts: npt.ArrayLike,
    *,
    coin: bool = False,
    priors: BetaPriors = WEAK,
    tol: float = TOLERANCE,
    max_iter: int = 500,
) -> DawidSkeneReplicates:
    """Dawid-Skene of many count vectors at once, each from its vote shares.

    Args:
        patterns: the votes.
        counts: shape (n_replicates, n_patterns), as ``Patterns.resample`` draws them.
        coin: one accuracy per judge.
        priors: as in :func:`dawid_skene`.
        tol: as in :func:`dawid_skene`.
        max_iter: as in :func:`dawid_skene`.
    """
    weights = np.atleast_2d(np.asarray(counts, np.float64))
    start = np.tile(_share(patterns), (len(weights), 1))
    tying: Tying = "coin" if coin else "none"
    state = _run(_Votes.of(patterns), weights, start, tying, priors, tol, max_iter)
    return DawidSkeneReplicates(
        state.posterior, state.right_one, state.right_zero, state.prior, state.converged
    )


@dataclass(frozen=True, slots=True)
class _Votes:
    """Votes for one and for zero side by side: everything EM needs of the patterns."""

    indicators: Floats
    labels: VoteCodes

    @classmethod
    def of(cls, patterns: Patterns) -> _Votes:
        return cls(np.hstack([patterns.for_one, patterns.for_zero]), patterns.labels)

    @property
    def n_judges(self) -> int:
        return int(self.indicators.shape[1]) // 2


@dataclass(frozen=True, slots=True)
class _State:
    right_one: Floats
    right_zero: Floats
    prior: Floats
    posterior: Floats
    converged: Bools
    n_iter: int = 0
    step: float = np.inf


def _fit(
    name: str,
    patterns: Patterns,
    tying: Tying,
    priors: BetaPriors,
    tol: float = TOLERANCE,
    max_iter: int = MAX_ITER,
) -> LatentFit:
    votes = _Votes.of(patterns)
    ends = {
        start: _run(votes, patterns.counts[None], p[None], tying, priors, tol, max_iter)
        for start, p in _starts(patterns, votes, tying).items()
    }
    fits = [_fit_of(name, patterns, start, state, tying, priors) for start, state in ends.items()]
    best = max(fits, key=lambda fit: fit.starts[0].objective)
    best = replace(best, starts=tuple(fit.starts[0] for fit in fits))
    return best.with_warnings(*_warnings(best, patterns))


def _starts(patterns: Patterns, votes: _Votes, tying: Tying) -> dict[str, Floats]:
    """Posteriors to start from: vote shares, and what the labelled items alone would teach."""
    starts = {"majority": _share(patterns)}
    if has_labels(patterns):
        labelled_counts = patterns.counts * (patterns.labels != MISSING)
        label_posterior = observe(np.zeros(len(labelled_counts)), patterns.labels)
        state = _maximise(votes, labelled_counts[None], label_posterior[None], tying, WEAK)
        starts["labels"] = _expect(votes, state)[0]
    return starts


def _share(patterns: Patterns) -> Floats:
    """Vote shares; smoothed by next to nothing where some item has no vote at all."""
    silent = not patterns.present.any(axis=1).all()
    return observe(vote_share(patterns, 1e-3 if silent else 0.0), patterns.labels)


def _fit_of(
    name: str, patterns: Patterns, start: str, state: _State, tying: Tying, priors: BetaPriors
) -> LatentFit:
    free = _free_rates(state, tying)
    law = DawidSkene(state.right_one[0], state.right_zero[0], float(state.prior[0]), len(free) + 1)
    fit = assemble(name, law, patterns)
    converged = bool(state.converged[0])
    objective = float(fit.log_likelihood or 0.0) + _log_prior(free, law.prior, priors)
    end = FitStart(start, objective, fit.anchor_agreement, converged)
    return replace(
        fit,
        converged=converged,
        n_iter=state.n_iter,
        residual=state.step,
        start=start,
        starts=(end,),
    )


def _free_rates(state: _State, tying: Tying) -> Floats:
    """The rates that the M-step sets, each once; one that others are tied to stands for them.

    One coin has its rates in ``right_one``, and so have judges with position bias: there
    ``right_zero`` is the same 2 n_judges rates with its halves exchanged.
    """
    rates: Floats = state.right_one[0]
    if tying == "equal":
        return rates[:1]
    return np.concatenate([rates, state.right_zero[0]]) if tying == "none" else rates


def _log_prior(rates: Floats, prior: float, priors: BetaPriors) -> float:
    """Log density of the Beta priors, up to a constant: what MAP-EM adds to the likelihood.

    EM climbs log P(votes | rates) + sum of right log(rate) + wrong log(1 - rate) over the free
    rates, + truth (log(prior) + log(1 - prior)): setting the derivative of its lower bound to 0
    gives the pseudo-counts of the M-step (Dempster, Laird and Rubin 1977, section 3). Ends of EM
    are compared by this sum; by the likelihood alone, an end that the priors hold to be unlikely
    could win.
    """
    belief = priors.right * np.log(rates) + priors.wrong * np.log1p(-rates)
    return float(belief.sum() + priors.truth * (np.log(prior) + np.log1p(-prior)))


def _warnings(fit: LatentFit, patterns: Patterns) -> list[str]:
    messages = []
    if not fit.converged:
        messages.append(f"EM stopped after {fit.n_iter} iterations without converging")
    dull = patterns.n_judges - len(informative_judges(patterns))
    if dull:
        judges = "1 judge never varies or copies another judge, so it does"
        if dull > 1:
            judges = f"{dull} judges never vary or copy another judge, so they do"
        messages.append(f"{judges} not help to identify the model")
    return messages


def _run(
    votes: _Votes,
    counts: Floats,
    start: Floats,
    tying: Tying,
    priors: BetaPriors,
    tol: float,
    max_iter: int,
) -> _State:
    """EM on all replicates until the slowest has settled."""
    state = _maximise(votes, counts, start, tying, priors)
    for iteration in range(1, max_iter + 1):
        p = _expect(votes, state)
        new = _maximise(votes, counts, p, tying, priors)
        change = np.maximum(
            np.abs(new.right_one - state.right_one).max(axis=1),
            np.abs(new.right_zero - state.right_zero).max(axis=1),
        )
        state = replace(new, converged=change < tol, n_iter=iteration, step=float(change.max()))
        if state.converged.all():
            break
    return replace(state, posterior=_expect(votes, state))


def _expect(votes: _Votes, state: _State) -> Floats:
    """E-step: posteriors by equation (11), shape (n_replicates, n_patterns).

    Log-odds are added up rather than rates multiplied: a product over hundreds of judges would
    underflow, and one matrix product serves all patterns and replicates.
    """
    right_one, right_zero = state.right_one, state.right_zero
    for_one = np.log(right_one) - np.log1p(-right_zero)
    for_zero = np.log1p(-right_one) - np.log(right_zero)
    odds = np.hstack([for_one, for_zero]) @ votes.indicators.T
    odds += (np.log(state.prior) - np.log1p(-state.prior))[:, None]
    return observe(sigmoid(odds), votes.labels)


def _maximise(votes: _Votes, counts: Floats, p: Floats, tying: Tying, priors: BetaPriors) -> _State:
    """M-step: rates from expected counts, shape (n_replicates, n_judges).

    The objective (26) falls apart into one binomial per judge and class, whose maximum is the share
    of right votes, each item counted by its posterior; the Beta prior adds its pseudo-counts.
    """
    k = votes.n_judges
    weight = counts * p
    given_one = weight @ votes.indicators
    given_zero = (counts - weight) @ votes.indicators
    right_one, wrong_one = given_one[:, :k], given_one[:, k:]
    right_zero, wrong_zero = given_zero[:, k:], given_zero[:, :k]
    if tying in ("coin", "equal"):
        right_one = right_zero = right_one + right_zero
        wrong_one = wrong_zero = wrong_one + wrong_zero
    if tying == "equal":
        right_one = right_zero = _sum_over_judges(right_one)
        wrong_one = wrong_zero = _sum_over_judges(wrong_one)
    elif tying == "position":
        right_one, right_zero = _sum_by_slot(right_one, right_zero)
        wrong_one, wrong_zero = _sum_by_slot(wrong_one, wrong_zero)
    total = weight.sum(axis=1) + priors.truth
    prior = _clip(total / (counts.sum(axis=1) + 2 * priors.truth))
    return _State(
        _rate(right_one, wrong_one, priors),
        _rate(right_zero, wrong_zero, priors),
        prior,
        p,
        np.zeros(len(p), bool),
    )


def _sum_over_judges(counts: Floats) -> Floats:
    """Every judge's counts as the sum over all of them."""
    return np.broadcast_to(counts.sum(axis=1, keepdims=True), counts.shape)


def _sum_by_slot(counts_one: Floats, counts_zero: Floats) -> tuple[Floats, Floats]:
    """Counts pooled by the slot of the better response.

    In the first half of the columns class 1 is shown first, in the second half class 0 is.
    """
    half = counts_one.shape[1] // 2
    first = counts_one[:, :half] + counts_zero[:, half:]
    second = counts_zero[:, :half] + counts_one[:, half:]
    return np.hstack([first, second]), np.hstack([second, first])


def _rate(right: Floats, wrong: Floats, priors: BetaPriors) -> Floats:
    """Share of right votes, pseudo-counts included; 1/2 where there is nothing to go by."""
    hits, total = right + priors.right, right + wrong + priors.right + priors.wrong
    empty = total <= 0
    return _clip(np.where(empty, 0.5, hits / np.where(empty, 1.0, total)))


def _clip(rate: Floats) -> Floats:
    return np.clip(rate, FLOOR, 1 - FLOOR)
