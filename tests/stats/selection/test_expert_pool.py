"""The pool of experts: the optimum it claims, labels that do not leak, and panels of every kind."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize

from clash.errors import StatisticsError
from clash.stats import scoring
from clash.stats.logistic import log_odds, sigmoid
from clash.stats.selection.expert_pool import (
    ANCHOR,
    ETA,
    PRIORS,
    PoolLabels,
    PoolPriors,
    Readings,
    ScalePrior,
    evidence,
    pool,
    read_without_labels,
)

NOTHING = ScalePrior(0.5, 0.5, 1e-300)


def panel(n=600, skill=(0.8, 0.75, 0.7, 0.65, 0.6), *, prevalence=0.5, seed=0):
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < prevalence).astype(float)
    right = rng.random((n, len(skill))) < skill
    return np.where(right, y[:, None], 1 - y[:, None]).astype(np.int8), y


def readings(votes):
    """The vote share, and the same twice as sure; models of votes have tests of their own."""
    spins = np.where(votes < 0, 0.0, 2.0 * votes - 1)
    share = log_odds(((spins > 0).sum(axis=1) + 1) / ((spins != 0).sum(axis=1) + 2))
    return Readings((ANCHOR, "sure"), np.column_stack([share, 2 * share]), spins)


def labels(y, n, seed=1):
    rows = np.random.default_rng(seed).permutation(len(y))[:n]
    return PoolLabels(rows, y[rows], rows)


def fit(read, pool_labels, priors=PRIORS, seed=2):
    return pool(read, pool_labels, np.random.default_rng(seed), priors)


def one_logistic(width, anchor, level):
    """Priors under which the pool is one anchored logistic."""
    scales = {ANCHOR: replace(anchor, weight=1e-300)}
    return PoolPriors(scales, NOTHING, {width: 1.0}, 1e-300, level)


def test_the_anchored_logistic_is_that_of_scikit_learn():
    from sklearn.linear_model import LogisticRegression

    votes, y = panel()
    read, pool_labels = readings(votes), labels(y, 60)
    width, level = 0.5, 0.7
    p = fit(read, pool_labels, one_logistic(width, ScalePrior(0.0, 0.8, 1), level)).p
    spread = np.array([0.8, level * width, *[width / votes.shape[1] ** 0.25] * votes.shape[1]])
    columns = np.column_stack([read.odds[:, 0], np.ones(len(y)), read.spins]) * spread
    model = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-10, max_iter=1000)
    model.fit(columns[pool_labels.rows], pool_labels.y)
    assert p == pytest.approx(model.predict_proba(columns)[:, 1], abs=1e-5)


def test_the_scale_is_where_the_posterior_is_largest():
    votes, y = panel()
    read, pool_labels = readings(votes), labels(y, 30)
    prior = PRIORS.scale(ANCHOR)

    def loss(t):
        odds = t * read.odds[pool_labels.rows, 0]
        likelihood = (pool_labels.y * odds - np.logaddexp(0, odds)).sum()
        return -likelihood + 0.5 * ((t - prior.mean) / prior.sd) ** 2

    assert fit(read, pool_labels).scale == pytest.approx(
        float(minimize(loss, [1.0]).x[0]), abs=1e-5
    )


def test_the_evidence_is_the_integral_of_prior_and_likelihood():
    """By quadrature; the rows of an item count as one."""
    votes, y = panel()
    read, pool_labels = readings(votes), labels(y, 20)
    prior, odds = PRIORS.scale(ANCHOR), read.odds[pool_labels.rows, 0]

    def density(t):
        likelihood = pool_labels.y @ (t * odds) - np.logaddexp(0, t * odds).sum()
        normal = np.exp(-0.5 * ((t - prior.mean) / prior.sd) ** 2) / prior.sd / np.sqrt(2 * np.pi)
        return np.exp(likelihood) * normal

    integral = np.log(quad(density, -4, 8)[0])
    assert evidence(read, pool_labels)[ANCHOR] == pytest.approx(ETA * integral, abs=0.05)
    twice = np.tile(np.arange(20), 2)
    copies, strangers = (
        PoolLabels(pool_labels.rows[twice], pool_labels.y[twice], groups)
        for groups in (pool_labels.groups[twice], np.arange(40))
    )
    once = evidence(read, pool_labels)[ANCHOR]
    assert evidence(read, copies)[ANCHOR] == pytest.approx(once, rel=0.15)
    assert evidence(read, strangers)[ANCHOR] < 1.6 * once


def test_no_label_reaches_its_own_probability():
    votes, y = panel(skill=(0.7, 0.6, 0.55))
    read, pool_labels = readings(votes), labels(y, 40)
    before = fit(read, pool_labels)
    flipped_y = pool_labels.y.copy()
    flipped_y[7] = 1 - flipped_y[7]
    after = fit(read, replace(pool_labels, y=flipped_y))
    assert after.held_out[7] == before.held_out[7]
    assert after.p[pool_labels.rows[7]] != before.p[pool_labels.rows[7]]


def test_copies_of_an_item_are_held_out_together():
    votes, y = panel(skill=(0.7, 0.6, 0.55))
    pool_labels = labels(y, 40)
    twins = replace(pool_labels, groups=np.arange(40) // 2)
    flipped_y = twins.y.copy()
    flipped_y[7] = 1 - flipped_y[7]
    read = readings(votes)
    before, after = fit(read, twins), fit(read, replace(twins, y=flipped_y))
    assert after.held_out[6] == before.held_out[6]


def test_which_side_is_called_1_does_not_matter():
    votes, y = panel(skill=(0.8, 0.7, 0.6))
    read, pool_labels = readings(votes), labels(y, 30)
    mirror = Readings(read.names, -read.odds, -read.spins)
    p, q = fit(read, pool_labels).p, fit(mirror, replace(pool_labels, y=1 - pool_labels.y)).p
    assert q == pytest.approx(1 - p, abs=1e-9)


@pytest.mark.parametrize("n_judges", [1, 2, 3, 30])
@pytest.mark.parametrize("kind", ["random", "one class", "constant judge", "missing votes"])
def test_probabilities_are_had_on_every_panel(n_judges, kind):
    votes, y = panel(120, np.linspace(0.85, 0.55, n_judges))
    if kind == "constant judge":
        votes[:, 0] = 1
    if kind == "missing votes":
        votes[np.random.default_rng(3).random(votes.shape) < 0.6] = -1
    pool_labels = labels(y, 10)
    if kind == "one class":
        pool_labels = replace(pool_labels, y=np.ones(10))
    result = fit(readings(votes), pool_labels)
    assert result.converged
    assert ((result.p > 0) & (result.p < 1)).all()
    assert ((result.held_out > 0) & (result.held_out < 1)).all()
    assert result.weights.sum() == pytest.approx(1)


@pytest.mark.parametrize("n_judges", [1, 2, 5])
def test_models_that_cannot_be_fitted_are_left_out(n_judges):
    votes, y = panel(100, (0.8,) * n_judges)
    read = read_without_labels(votes, np.random.default_rng(0))
    assert read.names[:2] == (ANCHOR, "vote share")
    assert ("dawid-skene" in read.names) == (n_judges >= 3)
    assert np.isfinite(fit(read, labels(y, 20)).p).all()


def test_copies_of_one_item_alone_say_little():
    votes, y = panel(100)
    rows = np.arange(10)
    result = fit(readings(votes), PoolLabels(rows, y[rows], np.zeros(10, np.intp)))
    assert np.isfinite(result.p).all()
    assert np.isfinite(result.held_out).all()


def test_what_is_no_label_is_refused():
    votes, _ = panel(100)
    read = readings(votes)
    with pytest.raises(StatisticsError, match="no labelled row"):
        fit(read, PoolLabels(np.array([], np.intp), np.array([]), np.array([], np.intp)))
    with pytest.raises(StatisticsError, match="between 0 and 1"):
        fit(read, PoolLabels(np.array([0]), np.array([2.0]), np.array([0])))
    with pytest.raises(StatisticsError, match="log-odds must be"):
        Readings(("a",), np.zeros((3, 2)), np.zeros((3, 1)))


def losses(votes, y, n_labels):
    """Mean log-loss without labels and with, over rows without a label and ten draws of labels."""
    read, with_labels, without = readings(votes), [], []
    for seed in range(10):
        pool_labels = labels(y, n_labels, seed)
        unlabelled_rows = np.setdiff1d(np.arange(len(y)), pool_labels.rows)
        with_labels.append(
            scoring.log_loss(fit(read, pool_labels).p[unlabelled_rows], y[unlabelled_rows])
        )
        without.append(scoring.log_loss(sigmoid(read.odds[unlabelled_rows, 0]), y[unlabelled_rows]))
    return float(np.mean(without)), float(np.mean(with_labels))


def test_fifty_labels_turn_a_panel_that_is_wrong_together():
    votes, y = panel(1000, (0.35, 0.35, 0.35, 0.35, 0.85, 0.85))
    without, with_labels = losses(votes, y, 50)
    # The best there is: the posterior under the true rates.
    rates = log_odds(np.array([0.35, 0.35, 0.35, 0.35, 0.85, 0.85]))
    best = scoring.log_loss(sigmoid((2 * votes - 1.0) @ rates), y)
    assert with_labels < without - 0.2
    # Seven parameters cost about 7 / (2 * 50) nats.
    assert with_labels < best + 0.09


def test_ten_labels_hardly_hurt_where_there_is_nothing_to_learn():
    without, with_labels = losses(*panel(1000, (0.75,) * 5), 10)
    assert with_labels < without + 0.03
