"""Simulated panels follow the laws they claim, and the exact risks are those of the laws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from clash.errors import StatisticsError
from clash.stats.simulate.panels import (
    CountLaw,
    IndependentPanel,
    LatentFactor,
    all_votes,
    pairwise_interactions,
)
from clash.stats.simulate.spins import CurieWeiss, IsingPanel

FIGURE_4 = [CurieWeiss((0.5, 2.0), -0.5, 1.5, 0.7), CurieWeiss((0.5, 5.0), -0.5, 1.0, 0.7)]


def ising_of(panel: CurieWeiss, n_judges: int) -> IsingPanel:
    """The same law in votes of 0 and 1: the recoding that theorem 1 states, with a field."""
    k = n_judges
    coupling = np.array(panel.beta)[:, None, None] * 4 / k * (1 - np.eye(k))
    spin_field = np.array([panel.field, panel.c / k])
    field = 2 * spin_field - 2 * np.array(panel.beta) * (1 - 1 / k)
    return IsingPanel(np.tile(field[:, None], (1, k)), coupling, panel.prevalence)


@pytest.mark.parametrize("panel", FIGURE_4)
def test_curie_weiss_is_an_ising_panel(panel: CurieWeiss) -> None:
    """Both ways of writing the law give the same vote counts."""
    ising = ising_of(panel, 6)
    counts = ising.states.sum(axis=1)
    for actual, alternative in zip(panel.counts(6).pmf, ising.pmf(), strict=True):
        np.testing.assert_allclose(actual, np.bincount(counts, alternative), atol=1e-12)


@pytest.mark.parametrize("panel", FIGURE_4)
def test_mean_field_roots_solve_their_equations(panel: CurieWeiss) -> None:
    hot, cold = panel.beta
    assert panel.hot_mean == pytest.approx(np.tanh(hot * panel.hot_mean + panel.field), abs=1e-12)
    assert panel.cold_mean == pytest.approx(np.tanh(cold * panel.cold_mean), abs=1e-12)
    assert -1 < panel.hot_mean < 0 < panel.cold_mean < 1
    # Condition 8 of theorem 2: the wrong phase looks more like class 0 than class 0 does.
    assert panel.cold_mean > -panel.hot_mean


@pytest.mark.parametrize("panel", FIGURE_4)
def test_theorem_2(panel: CurieWeiss) -> None:
    """Independence keeps pi (1 - p), Bayes and the threshold go to zero, marginals to q."""
    law = panel.counts(4001)
    assert law.risk(law.if_independent()) == pytest.approx(panel.independent_limit, abs=1e-5)
    assert law.risk(law.bayes()) < 1e-12
    assert law.risk(panel.threshold_rule(4001)) < 1e-12
    q0, q1 = law.marginals()
    p = panel.right_phase
    assert q0 == pytest.approx((1 + panel.hot_mean) / 2, abs=1e-3)
    assert q1 == pytest.approx((1 + (2 * p - 1) * panel.cold_mean) / 2, abs=1e-3)
    assert q0 < 0.5 < q1


def test_theorem_1_needs_a_zero_field_and_ends_at_the_prior() -> None:
    """Without any field single votes say nothing, and their counts everything."""
    panel = CurieWeiss((0.5, 2.0), 0.0, 0.0, 0.3)
    law = panel.counts(801)
    np.testing.assert_allclose(law.marginals(), 0.5, atol=1e-12)
    assert law.risk(law.bayes()) < 1e-6


def test_glauber_keeps_the_phase_it_starts_in() -> None:
    """The sampler that the paper suggests puts far too many items into the wrong phase."""
    panel = FIGURE_4[1]
    sample = panel.glauber(51, 1500, 20, np.random.default_rng(1))
    right = (sample.votes[sample.labels == 1].mean(axis=1) > 0.5).mean()
    assert panel.right_phase > 0.85
    assert right < 0.6


def test_curie_weiss_refuses_other_temperatures() -> None:
    with pytest.raises(StatisticsError, match="beta_0 < 1 < beta_1"):
        CurieWeiss((1.5, 2.0), -0.5, 1.0, 0.5)


@pytest.mark.parametrize(("loading", "variance"), [(0.1, 1.0), (0.15, 1.5), (1.0, 1.0), (2.0, 4.0)])
def test_factor_law_equals_quadrature(loading: float, variance: float) -> None:
    """Count probabilities and marginals agree with scipy's adaptive quadrature."""
    from scipy.stats import binom, norm

    panel = LatentFactor(0.5, 1.0, loading, variance, 0.7)
    sd = variance**0.5

    def rate(z: float, sign: int) -> float:
        return float(1 / (1 + np.exp(-(panel.b + sign * (panel.a + loading * z)))))

    pmf = panel.counts(9).pmf
    for y, sign in enumerate((-1, 1)):
        for s in (0, 4, 9):
            exact = quad(
                lambda z, s=s, g=sign: binom.pmf(s, 9, rate(z, g)) * norm.pdf(z, scale=sd),
                -12 * sd,
                12 * sd,
                epsabs=1e-12,
                limit=200,
            )[0]
            assert pmf[y, s] == pytest.approx(exact, abs=1e-9)
    np.testing.assert_allclose(panel.marginals(), panel.counts(9).marginals(), atol=1e-9)


def test_theorem_3_excess_risk_identity() -> None:
    """E|2 eta - 1| over the disagreement equals the difference of the two limiting risks."""
    from scipy.stats import norm

    panel = LatentFactor(0.5, 1.0, 1.0, 1.0, 0.7)
    low, high = sorted((panel.bayes_threshold, panel.independent_threshold))

    def integrand(theta: float) -> float:
        density_of_one = 0.7 * norm.pdf(theta, panel.b + panel.a, panel.spread)
        zero = 0.3 * norm.pdf(theta, panel.b - panel.a, panel.spread)
        return float(abs(density_of_one - zero))

    excess = quad(integrand, np.log(low / (1 - low)), np.log(high / (1 - high)))[0]
    risks = [panel.limiting_risk(t) for t in (panel.independent_threshold, panel.bayes_threshold)]
    assert excess == pytest.approx(risks[0] - risks[1], abs=1e-9)
    law = panel.counts(4001)
    finite = law.risk(law.if_independent()) - law.risk(law.bayes())
    assert finite == pytest.approx(excess, abs=5e-4)


def test_proposition_1_weak_factor_has_couplings_of_rank_one() -> None:
    """The error of lambda_j lambda_k is of order four: a sixteenth for half the loadings."""
    direction = np.array([1.0, 0.5, -0.8, 0.7])

    def error(strength: float) -> float:
        lam = strength * direction
        predicted_covariance = np.outer(lam, lam) * (1 - np.eye(4))
        return float(
            np.abs(pairwise_interactions([0.3, -0.5, 1.0, 0.2], lam) - predicted_covariance).max()
        )

    assert error(0.1) < 1e-4
    assert 14 < error(0.1) / error(0.05) < 18


def test_ising_marginals_match_enumeration_by_hand() -> None:
    """Two judges, one coupling: four states, arithmetic on paper."""
    panel = IsingPanel.of([[0.0, 0.0], [1.0, 0.0]], [[0.0, np.log(2)], [np.log(2), 0.0]])
    e = np.e
    np.testing.assert_allclose(panel.pmf()[0], np.array([1, 1, 1, 2]) / 5)
    np.testing.assert_allclose(panel.pmf()[1], np.array([1, 1, e, 2 * e]) / (2 + 3 * e))


def test_uncoupled_ising_panel_is_independent() -> None:
    """Without couplings Bayes' rule and the independence rule are one."""
    panel = IsingPanel.of([[-1.0, 0.3, 0.0], [1.0, 0.8, -0.2]], np.zeros((3, 3)), 0.4)
    np.testing.assert_allclose(panel.posterior(), panel.posterior_if_independent(), atol=1e-12)


@given(st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_bayes_is_never_beaten(n_judges: int, seed: int) -> None:
    """On random Ising panels no rule has less risk than Bayes', independence included."""
    rng = np.random.default_rng(seed)
    couplings = rng.normal(0, 1, (2, n_judges, n_judges))
    couplings = np.triu(couplings, 1)
    couplings += np.swapaxes(couplings, 1, 2)
    panel = IsingPanel(rng.normal(0, 1, (2, n_judges)), couplings, float(rng.uniform(0.1, 0.9)))
    best = panel.risk(panel.posterior() >= 0.5)
    assert best <= panel.risk(panel.posterior_if_independent() >= 0.5) + 1e-12
    assert best <= panel.risk(rng.random(2**n_judges) < 0.5) + 1e-12


@pytest.mark.parametrize(
    "panel",
    [
        IsingPanel.of(
            [[-1.0, 0.2, 0.0], [0.5, 0.8, -0.2]], [[0, 1, 0], [1, 0, -1], [0, -1, 0]], 0.4
        ),
        IndependentPanel.of([0.9, 0.6, 0.7], [0.8, 0.7, 0.3], 0.4),
    ],
)
def test_samples_follow_their_law(panel: IsingPanel | IndependentPanel) -> None:
    """Chi-squared of 20000 items against the exact frequencies of label and votes."""
    from scipy.stats import chisquare

    sample = panel.sample(20_000, np.random.default_rng(7))
    states = sample.votes @ np.array([4, 2, 1])
    observed_counts = np.bincount(sample.labels * 8 + states, minlength=16)
    expected_counts = np.concatenate([0.6 * panel.pmf()[0], 0.4 * panel.pmf()[1]]) * 20_000
    assert chisquare(observed_counts, expected_counts).pvalue > 1e-3


def test_exchangeable_samples_follow_their_law() -> None:
    """The counts do, and every judge is as likely as any to be among those who vote 1."""
    from scipy.stats import chisquare

    law = CountLaw(np.array([[0.5, 0.1, 0.1, 0.3], [0.1, 0.2, 0.3, 0.4]]), 0.6)
    sample = law.sample(20_000, np.random.default_rng(3))
    counts = np.bincount(sample.labels * 4 + sample.votes.sum(axis=1), minlength=8)
    expected_counts = np.concatenate([0.4 * law.pmf[0], 0.6 * law.pmf[1]]) * 20_000
    assert chisquare(counts, expected_counts).pvalue > 1e-3
    assert chisquare(sample.votes.sum(axis=0)).pvalue > 1e-3


def test_majority_accuracy_is_a_binomial_tail() -> None:
    """Five judges of equal skill: the textbook jury theorem."""
    from scipy.stats import binom

    panel = IndependentPanel.of([0.7] * 5, [0.7] * 5)
    assert panel.majority_accuracy() == pytest.approx(binom.sf(2, 5, 0.7))
    assert panel.bayes_accuracy() == pytest.approx(binom.sf(2, 5, 0.7))


def test_tied_votes_go_where_they_are_told() -> None:
    """Two judges: ties to 1 raise the accuracy in class 1 at the cost of class 0."""
    panel = IndependentPanel.of([0.8, 0.8], [0.6, 0.6])
    tie_one, tie_zero = 2 * 0.8 * 0.2, 2 * 0.6 * 0.4
    assert panel.majority_accuracy(1.0) == pytest.approx(0.5 * (0.64 + tie_one) + 0.5 * 0.36)
    assert panel.majority_accuracy(0.0) == pytest.approx(0.5 * 0.64 + 0.5 * (0.36 + tie_zero))


@pytest.mark.parametrize("n_judges", [0, 21])
def test_enumeration_is_bounded(n_judges: int) -> None:
    with pytest.raises(StatisticsError, match="can enumerate"):
        all_votes(n_judges)


def test_lopsided_couplings_are_refused() -> None:
    with pytest.raises(StatisticsError, match="symmetric"):
        IsingPanel.of([[0, 0], [0, 0]], [[0, 1], [0, 0]])


@pytest.mark.parametrize(("prevalence", "n"), [(0.0, 5), (1.0, 5), (0.5, 0)])
def test_samples_of_nothing_are_refused(prevalence: float, n: int) -> None:
    panel = IndependentPanel.of([0.9], [0.9], prevalence)
    with pytest.raises(StatisticsError):
        panel.sample(n, np.random.default_rng(0))
