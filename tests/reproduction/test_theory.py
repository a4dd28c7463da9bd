"""Statements of the four papers, checked by enumeration, closed forms and draws with a known truth."""

from __future__ import annotations

import math
from collections import Counter
from itertools import product

import numpy as np
import pytest

from clash.stats.latent.dawid_skene import DawidSkene
from clash.stats.selection.joint_table import ALPHA
from clash.stats.selection.model_choice import selection_penalty
from clash.stats.simulate.panels import CountLaw
from clash.stats.simulate.spins import CurieWeiss, IsingPanel
from clash.stats.voting.borda import borda
from clash.stats.voting.bradley_terry import bradley_terry, count_comparisons

RNG = np.random.default_rng(12)


# -- the first paper -------------------------------------------------------------------------------


def test_the_worked_example_of_section_5_9():
    """Two judges rank A1 first, one A0: S(A0) = 1, S(A1) = 2."""
    scores = borda(np.array([[2.0, 1.0], [1.0, 2.0], [2.0, 1.0]]), np.ones(3))
    assert scores.scores.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("p", "n", "published_value"),
    [(0.76, 100, (0.353, 0.687)), (0.75, 100, (0.330, 0.670)), (0.755, 200, (0.391, 0.629))],
)
def test_the_intervals_of_kappa_in_table_6_are_walds_of_2p_less_1(p, n, published_value):
    half_width = 2 * 1.96 * math.sqrt(p * (1 - p) / n)
    assert (2 * p - 1 - half_width, 2 * p - 1 + half_width) == pytest.approx(
        published_value, abs=6e-4
    )


# -- the Ising paper -------------------------------------------------------------------------------


def spin_law(n: int, beta: float, field: float) -> np.ndarray:
    """(2^n,), equation 6 or 7 by enumerating every vector of spins."""
    total = np.array([sum(x) for x in product((-1, 1), repeat=n)], dtype=float)
    weights = np.exp(beta / (2 * n) * total**2 + field * total)
    return weights / weights.sum()


def test_shared_couplings_make_the_log_odds_linear_and_others_do_not():
    """Equations 1 to 5: second differences over two votes are the difference of the couplings."""
    w = np.triu(RNG.normal(size=(3, 3)), 1)
    fields, other_couplings = RNG.normal(size=(2, 3)), np.triu(RNG.normal(size=(3, 3)), 1)
    for couplings, expected_value in (
        ((w, w), np.zeros((3, 3))),
        ((w, w + other_couplings), other_couplings),
    ):
        panel = IsingPanel.of(fields, np.stack([c + c.T for c in couplings]), 0.4)
        p = panel.posterior()
        odds = dict(zip(map(tuple, panel.states.tolist()), np.log(p / (1 - p)), strict=True))
        for j, k in ((0, 1), (0, 2), (1, 2)):
            patterns_of_pair = [
                tuple(int(i in on) for i in range(3)) for on in ((), (j,), (k,), (j, k))
            ]
            second = (
                odds[patterns_of_pair[3]]
                - odds[patterns_of_pair[1]]
                - odds[patterns_of_pair[2]]
                + odds[patterns_of_pair[0]]
            )
            assert second == pytest.approx(expected_value[j, k], abs=1e-9)


@pytest.mark.parametrize("field", [0.0, 0.15])
def test_the_law_of_the_count_is_that_of_all_vectors(field):
    """Equations 27 and 30, 10 judges."""
    n = 10
    law = CurieWeiss((0.5, 1.8), field or -1e-12, n * field, 0.5).counts(n)
    n_ones = np.array([sum(x) for x in product((0, 1), repeat=n)])
    for y, beta in enumerate((0.5, 1.8)):
        expected_counts = np.bincount(n_ones, spin_law(n, beta, field))
        assert law.pmf[y] == pytest.approx(expected_counts, rel=1e-6)


def test_equation_6_in_votes_of_0_and_1():
    """Fields -2 beta (1 - 1/K) and couplings 4 beta / K give the law of the spins."""
    n, beta = 6, 1.4
    votes = np.array(list(product((0, 1), repeat=n)), dtype=float)
    n_ones = votes.sum(axis=1)
    energy = -2 * beta * (1 - 1 / n) * n_ones + 4 * beta / n * n_ones * (n_ones - 1) / 2
    weights = np.exp(energy)
    assert weights / weights.sum() == pytest.approx(spin_law(n, beta, 0.0), rel=1e-9)


@pytest.mark.parametrize("prevalence", [0.3, 0.5, 0.8])
def test_theorem_1(prevalence):
    """Zero field: marginals of one half, independence errs on the rarer class, Bayes vanishes."""
    risks = []
    for n in (51, 201, 801):
        law = CurieWeiss((0.5, 1.5), -1e-300, 0.0, prevalence).counts(n)
        share = law.pmf @ np.arange(n + 1) / n
        assert share == pytest.approx([0.5, 0.5], abs=1e-12)
        m2 = (2 * np.arange(n + 1) / n - 1) ** 2
        rule = m2 >= 0.85858**2 / 2  # half of m_*^2, m_* = tanh(1.5 m_*)
        wrong = (1 - prevalence) * law.pmf[0][rule].sum() + prevalence * law.pmf[1][~rule].sum()
        assert law.risk(rule) == pytest.approx(wrong)
        risks.append(wrong)
    assert risks[0] > risks[1] > risks[2]
    assert risks[2] < 1e-4
    # With both marginals 1/2 independence knows nothing of the votes: it says one class always.
    constant = (law.risk(np.full(n + 1, opinions)) for opinions in (False, True))
    assert min(constant) == pytest.approx(min(prevalence, 1 - prevalence))


@pytest.mark.parametrize(("beta", "maxima"), [(0.4, 1), (0.95, 1), (1.05, 2), (1.5, 2), (4.0, 2)])
def test_lemma_1(beta, maxima):
    """Maxima of H((1 + m) / 2) + beta m^2 / 2: at 0, or at the two roots of m = tanh(beta m)."""
    m = np.linspace(-0.99999, 0.99999, 200_001)
    up = (1 + m) / 2
    height = -(up * np.log(up) + (1 - up) * np.log(1 - up)) + beta / 2 * m**2
    top = np.flatnonzero((height[1:-1] > height[:-2]) & (height[1:-1] >= height[2:])) + 1
    assert len(top) == maxima
    assert m[top] == pytest.approx(np.tanh(beta * m[top]), abs=2e-4)
    assert (abs(m[top]).max() < 1e-3) == (maxima == 1)


def test_lemmas_2_and_3_the_mass_away_from_the_maxima_falls_exponentially():
    """Log mass per judge settles: -log P / K of 400, 800 and 1600 judges is about the same."""
    for hot in (True, False):
        rates = []
        for n in (400, 800, 1600):
            law = CurieWeiss((0.6, 1.6), -1e-300, 0.0, 0.5).counts(n)
            m = np.abs(2 * np.arange(n + 1) / n - 1)
            star = CurieWeiss((0.6, 1.6), -0.1, 0.0, 0.5).cold_mean
            far = m >= 0.5 if hot else np.abs(m - star) >= 0.3
            rates.append(-math.log(law.pmf[0 if hot else 1][far].sum()) / n)
        assert rates[0] > 0.005
        assert rates == pytest.approx([rates[1]] * 3, rel=0.15)


def test_the_bound_of_equation_17_holds_with_room():
    t = np.linspace(-20, 20, 400_001)
    p = 1 / (1 + np.exp(-t))
    third = np.abs(p * (1 - p) * (1 - 2 * p)).max()
    assert third == pytest.approx(1 / (6 * math.sqrt(3)), rel=1e-6)
    assert third / 6 < 1 / 24


def test_a_weight_of_equation_12_is_positive_for_judges_better_than_a_coin():
    alpha, beta = RNG.uniform(0.05, 0.95, (2, 200))
    weights = DawidSkene(alpha, beta, 0.5, 401).weights
    assert ((weights > 0) == (alpha + beta > 1)).all()
    assert weights == pytest.approx(np.log(alpha * beta / ((1 - alpha) * (1 - beta))))


def test_bayes_of_a_count_law_is_the_least_risk():
    law = CountLaw(np.array([[0.5, 0.3, 0.2], [0.1, 0.4, 0.5]]), 0.4)
    risks = [law.risk(np.array(rule)) for rule in product((False, True), repeat=3)]
    assert min(risks) == pytest.approx(np.minimum(0.6 * law.pmf[0], 0.4 * law.pmf[1]).sum())


# -- the finite-calibration paper ------------------------------------------------------------------


def test_theorem_1_of_selection_holds_in_its_worst_case():
    """One of 30 candidates is better; the chosen one is rarely worse by more than the bound."""
    n, delta = 60, 0.1
    risk = np.full(30, 0.5)
    risk[0] = 0.2
    bound = selection_penalty(30, n, delta)
    assert bound == pytest.approx(2 * math.sqrt(math.log(2 * 30 / delta) / (2 * n)))
    chosen_columns = (RNG.binomial(n, risk, (2000, 30)) / n).argmin(axis=1)
    assert (risk[chosen_columns] - risk.min() > bound).mean() <= delta


def table_draw(n: int, cells: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Truth, labels and labels of side 1 by cell, and the mean of the labels."""
    truth = RNG.random(cells)
    cell = RNG.integers(0, cells, n)
    y = RNG.random(n) < truth[cell]
    counts = np.bincount(cell, minlength=cells)
    return truth, counts, np.bincount(cell, y, cells), float(y.mean())


@pytest.mark.parametrize(("n", "cells"), [(40, 8), (200, 32), (100, 64)])
def test_proposition_1(n, cells):
    delta, bad_means, bad_risks = 0.1, 0, 0
    for _ in range(500):
        truth, counts, n_ones, base = table_draw(n, cells)
        usage, p = counts > 0, 1 / cells
        width2 = np.log(2 * usage.sum() / delta) / (2 * counts[usage])
        bad_means += bool(((n_ones[usage] / counts[usage] - truth[usage]) ** 2 > width2).any())
        fit = (n_ones + ALPHA * base) / (counts + ALPHA)
        shrunk = (ALPHA / (counts[usage] + ALPHA)) ** 2
        bound = 2 * p * width2.sum() + 2 * p * shrunk.sum() + (~usage).mean()
        bad_risks += p * ((fit - truth) ** 2).sum() > bound
    assert bad_means / 500 <= delta
    assert bad_risks / 500 <= delta


@pytest.mark.parametrize(("per_cell", "within"), [(8, 0.2), (32, 0.05), (128, 0.02)])
def test_proposition_2_a_table_costs_cells_over_labels(per_cell, within):
    """E[1 / N; N > 0] of a binomial count, exactly: the variance of a cell's mean is that of 1 / n."""
    from scipy.stats import binom

    cells = 16
    n = per_cell * cells
    counts = np.arange(1, n + 1)
    inverse = (binom.pmf(counts, n, 1 / cells) / counts).sum()
    assert inverse == pytest.approx(1 / per_cell, rel=within)


# -- the pilot -------------------------------------------------------------------------------------


def test_totals_of_uniform_rubric_scores_tie_more_often_than_the_pilot_says():
    """Section 2.2c has 1 / (4C + 1) = 4.8% for five criteria; totals crowd in the middle."""
    totals = Counter(sum(scores) for scores in product(range(1, 6), repeat=5))
    assert sum((n / 5**5) ** 2 for n in totals.values()) == pytest.approx(0.0878, abs=5e-5)
    assert pytest.approx(0.048, abs=5e-4) == 1 / (4 * 5 + 1)


@pytest.mark.parametrize("k", [3, 4, 6])
def test_the_pilots_condition_for_a_helpful_judge_is_another_threshold(k):
    """delta / (K - 1) > (1 - delta) / (K (K - 1)) is delta > 1 / (K + 1), not 1 / (2K - 1)."""
    delta = np.linspace(0.001, 0.999, 9999)
    helps = delta / (k - 1) > (1 - delta) / (k * (k - 1))
    assert delta[helps].min() == pytest.approx(1 / (k + 1), abs=2e-4)


@pytest.mark.parametrize(("p", "off"), [(0.52, 0.001), (0.9, 0.15)])
def test_ties_as_half_wins_shrink_the_margin_by_the_share_of_decided_ballots(p, off):
    """The margin p - 1/2 shrinks by delta exactly; the fitted log-odds only near one half."""
    delta, n = 0.356, 10_000
    wins, losses = n * delta * p, n * delta * (1 - p)
    counts = count_comparisons(
        [0, 0, 0], [1, 1, 1], [1, 0, 0.5], 2, [wins, losses, n * (1 - delta)]
    )
    fit = bradley_terry(counts, prior=0, ties="half")
    log_odds = float(fit.theta[0] - fit.theta[1])
    share = 1 / (1 + math.exp(-log_odds))
    assert share - 0.5 == pytest.approx(delta * (p - 0.5))
    gap = abs(log_odds - delta * math.log(p / (1 - p)))
    assert (gap < off) if p < 0.6 else (gap > off)


def test_388_ballots():
    """Section 3.2 with its rounded z, and without."""
    from scipy.stats import norm

    spread = 2 * 0.55 * 0.45
    assert math.floor((1.96 + 0.84) ** 2 * spread / 0.01) == 388
    assert (norm.ppf(0.975) + norm.ppf(0.8)) ** 2 * spread / 0.01 == pytest.approx(388.5, abs=0.1)
