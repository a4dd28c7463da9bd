"""The Potts model against votes and likelihoods enumerated one by one."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from clash.errors import NotIdentifiedError, StatisticsError
from clash.stats.latent import potts as module
from clash.stats.latent.multiclass import collapse_classes, dawid_skene_classes
from clash.stats.latent.potts import PottsLaw, PottsPriors, potts
from clash.stats.simulate.spins import IsingPanel


def law(n_judges: int = 4, n_outcomes: int = 3, seed: int = 0, scale: float = 1.0) -> PottsLaw:
    rng = np.random.default_rng(seed)
    fields = scale * rng.normal(size=(n_outcomes, n_judges, n_outcomes))
    couplings = rng.normal(size=n_judges * (n_judges - 1) // 2)
    prior = rng.dirichlet(np.full(n_outcomes, 5.0))
    return PottsLaw(prior, fields, couplings)


def by_hand(entry: PottsLaw, truth: int) -> dict[tuple[int, ...], float]:
    """P(votes | truth) of every vote vector, by loops."""
    _, n_judges, n_outcomes = entry.fields.shape
    weight = {}
    for votes in product(range(n_outcomes), repeat=n_judges):
        energy = sum(entry.fields[truth, j, v] for j, v in enumerate(votes))
        at = 0
        for j in range(n_judges):
            for k in range(j + 1, n_judges):
                energy += entry.couplings[at] * (votes[j] == votes[k])
                at += 1
        weight[votes] = np.exp(energy)
    total = sum(weight.values())
    return {votes: w / total for votes, w in weight.items()}


def test_the_law_is_that_of_its_definition() -> None:
    probabilities = law()
    for truth, log_pmf in enumerate(probabilities.log_pmf()):
        expected_value_by_hand = by_hand(probabilities, truth)
        np.testing.assert_allclose(
            np.exp(log_pmf),
            [expected_value_by_hand[tuple(s)] for s in probabilities.states.tolist()],
        )
    rates = [
        sum(p for votes, p in by_hand(probabilities, 1).items() if votes[2] == outcome)
        for outcome in range(3)
    ]
    np.testing.assert_allclose(probabilities.confusion()[2, 1], rates)


def test_missing_votes_are_summed_out() -> None:
    probabilities = law()
    joint = probabilities.log_joint(np.array([[0, -1, 2, -1], [-1, -1, -1, -1]], np.int8))
    for truth in range(3):
        expected_value_by_hand = by_hand(probabilities, truth)
        mass = sum(
            p for votes, p in expected_value_by_hand.items() if votes[0] == 0 and votes[2] == 2
        )
        assert joint[0, truth] == pytest.approx(np.log(probabilities.prior[truth] * mass))
        assert joint[1, truth] == pytest.approx(np.log(probabilities.prior[truth]))


def test_with_two_outcomes_it_is_the_shared_ising_model() -> None:
    """1[a = b] = 1 - a - b + 2 a b, so W = 2 w and the fields take up the rest."""
    probabilities = law(n_outcomes=2)
    table = np.zeros((4, 4))
    table[np.triu_indices(4, 1)] = probabilities.couplings
    table += table.T
    fields = probabilities.fields[:, :, 1] - probabilities.fields[:, :, 0] - table.sum(axis=1)
    ising = IsingPanel.of(fields, 2 * table)
    order = [ising.states.tolist().index(s) for s in probabilities.states.tolist()]
    np.testing.assert_allclose(np.exp(probabilities.log_pmf()), ising.pmf()[:, order])


def test_the_gradient_is_that_of_the_likelihood() -> None:
    rng = np.random.default_rng(1)
    votes = rng.integers(-1, 3, (60, 4))
    labels = np.where(rng.random(60) < 0.3, rng.integers(0, 3, 60), -1)
    patterns = collapse_classes(votes, labels=labels)
    problem = module._PottsLikelihood(patterns, PottsPriors())
    x = problem.pack(dawid_skene_classes(patterns)) + 0.1 * rng.normal(size=3 + 36 + 6)
    value, gradient = problem.value_and_gradient(x)
    step = 1e-6
    for i in range(0, len(x), 4):
        shift = np.zeros(len(x))
        shift[i] = step
        up, down = (problem.value_and_gradient(x + s * shift)[0] for s in (1, -1))
        assert gradient[i] == pytest.approx((up - down) / (2 * step), abs=1e-6)
    assert np.isfinite(value)


def sample(entry: PottsLaw, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    truth = rng.choice(3, size=n, p=entry.prior)
    pmf = np.exp(entry.log_pmf())
    states = entry.states
    return states[[rng.choice(len(states), p=pmf[y] / pmf[y].sum()) for y in truth]], truth


def near_copies() -> PottsLaw:
    """Three judges that agree with each other beyond the truth, and three that are better."""
    skill = np.array([0.7, 0.7, 0.7, 1.6, 1.6, 1.6])
    fields = skill[None, :, None] * np.eye(3)[:, None, :]
    couplings = np.zeros(15)
    couplings[[0, 1, 5]] = 2.0
    return PottsLaw(np.full(3, 1 / 3), fields, couplings)


def test_near_copies_are_discounted_where_dawid_skene_follows_them() -> None:
    """Simulated with a known truth: couplings are found, and the verdicts are right more often."""
    votes, truth = sample(near_copies(), 1500, 3)
    patterns = collapse_classes(votes)
    coupled_fit, independent = potts(patterns), dawid_skene_classes(patterns)
    right = [
        float((fit.item_posterior.argmax(axis=1) == truth).mean())
        for fit in (coupled_fit, independent)
    ]
    assert coupled_fit.converged
    assert right[0] > right[1] + 0.05
    assert coupled_fit.couplings is not None
    assert coupled_fit.couplings[0, 1] > 1
    assert abs(coupled_fit.couplings[3, 4]) < 0.6
    assert coupled_fit.log_likelihood > independent.log_likelihood


def test_independent_judges_have_no_couplings_and_the_same_verdicts() -> None:
    fields = near_copies().fields[:, 1:]
    law = PottsLaw(np.full(3, 1 / 3), fields, np.zeros(10))
    votes = sample(law, 1200, 4)[0]
    patterns = collapse_classes(votes)
    coupled_fit, independent = potts(patterns), dawid_skene_classes(patterns)
    is_same = coupled_fit.item_posterior.argmax(axis=1) == independent.item_posterior.argmax(axis=1)
    assert is_same.mean() > 0.9
    assert np.abs(coupled_fit.couplings).max() < 0.6


def test_given_labels_stand() -> None:
    votes, truth = sample(near_copies(), 200, 5)
    labels = np.where(np.arange(200) < 50, truth, -1)
    fit = potts(collapse_classes(votes, labels=labels))
    assert (fit.item_posterior[:50].argmax(axis=1) == truth[:50]).all()
    assert (fit.item_posterior[:50].max(axis=1) == 1).all()


@pytest.mark.parametrize(
    ("votes", "error", "message"),
    [
        (np.zeros((40, 5), int), NotIdentifiedError, "there are 0"),
        (np.tile([[0, 1, 2]], (40, 1)), NotIdentifiedError, "four judges"),
        (np.random.default_rng(0).integers(0, 3, (60, 10)), StatisticsError, "up to 9 judges"),
    ],
    ids=["constant", "three judges", "ten judges"],
)
def test_votes_that_cannot_be_fitted_are_refused(votes, error, message) -> None:
    with pytest.raises(error, match=message):
        potts(collapse_classes(votes))
