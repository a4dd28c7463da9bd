"""Dawid-Skene against crowd-kit, against its own equations, and where it must refuse."""

import numpy as np
import pytest

from clash.errors import NotIdentifiedError, StatisticsError
from clash.stats.latent.dawid_skene import (
    FLAT,
    BetaPriors,
    dawid_skene,
    equal_skill,
    one_coin,
    position_bias,
    refits,
)
from clash.stats.latent.patterns import collapse
from clash.stats.latent.vote_counting import majority, weighted_majority
from clash.stats.logistic import sigmoid

SENSITIVITY = np.array([0.9, 0.8, 0.7, 0.65, 0.85])
SPECIFICITY = np.array([0.7, 0.9, 0.8, 0.6, 0.75])


def independent(n, rng, sensitivity=SENSITIVITY, specificity=SPECIFICITY, prior=0.6):
    truth = (rng.random(n) < prior).astype(int)
    rate = np.where(truth[:, None] == 1, sensitivity, 1 - specificity)
    return (rng.random(rate.shape) < rate).astype(np.int8), truth


def test_recovers_the_judges_it_was_simulated_with():
    votes, truth = independent(40_000, np.random.default_rng(0))
    fit = dawid_skene(collapse(votes))
    assert fit.converged
    np.testing.assert_allclose(fit.parameters.sensitivity, SENSITIVITY, atol=0.015)
    np.testing.assert_allclose(fit.parameters.specificity, SPECIFICITY, atol=0.015)
    assert fit.parameters.prior == pytest.approx(0.6, abs=0.015)
    share_right = ((fit.item_posterior > 0.5) == truth).mean()
    share_of_counting = ((majority(collapse(votes)).item_posterior > 0.5) == truth).mean()
    assert share_right > share_of_counting


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("share_missing", [0.0, 0.2])
def test_agrees_with_crowd_kit(share_missing):
    pandas = pytest.importorskip("pandas")
    crowdkit = pytest.importorskip("crowdkit.aggregation")
    rng = np.random.default_rng(3)
    votes, _ = independent(400, rng)
    votes[rng.random(votes.shape) < share_missing] = -1
    votes = votes[(votes >= 0).any(axis=1)]
    item, judge = np.nonzero(votes >= 0)
    frame = pandas.DataFrame({"task": item, "worker": judge, "label": votes[item, judge]})
    # its lower bound counts the prior once per vote, so with gaps its own stopping rule is early
    reference_fit_result = crowdkit.DawidSkene(n_iter=150, tol=-np.inf).fit(frame)
    our_fit = dawid_skene(collapse(votes), priors=FLAT, tol=1e-10, max_iter=20_000)
    np.testing.assert_allclose(
        our_fit.item_posterior, reference_fit_result.probas_[1].to_numpy(), atol=1e-6
    )


def test_the_weighted_vote_of_equation_12_is_the_posterior():
    votes, _ = independent(500, np.random.default_rng(1))
    fit = dawid_skene(collapse(votes))
    linear = fit.parameters.intercept + votes @ fit.parameters.weights
    np.testing.assert_allclose(sigmoid(linear), fit.item_posterior, atol=1e-12)


def test_the_likelihood_never_falls_from_one_iteration_to_the_next():
    patterns = collapse(independent(300, np.random.default_rng(5))[0])
    with_budget = [
        dawid_skene(patterns, priors=FLAT, max_iter=n).log_likelihood for n in range(1, 30)
    ]
    assert np.diff(with_budget).min() >= -1e-9


def test_at_the_end_rates_equal_expected_counts():
    """The equation the fit solves: a judge's rate is its expected share of right votes."""
    votes, _ = independent(1000, np.random.default_rng(7))
    fit = dawid_skene(collapse(votes), priors=FLAT, tol=1e-12, max_iter=50_000)
    p = fit.item_posterior
    np.testing.assert_allclose(fit.parameters.sensitivity, p @ votes / p.sum(), atol=1e-9)
    np.testing.assert_allclose(
        fit.parameters.specificity, (1 - p) @ (1 - votes) / (1 - p).sum(), atol=1e-9
    )
    assert fit.parameters.prior == pytest.approx(p.mean(), abs=1e-9)


def test_renaming_judges_permuting_items_and_flipping_classes_change_nothing():
    rng = np.random.default_rng(11)
    votes, _ = independent(800, rng)
    fit = dawid_skene(collapse(votes))
    judges, items = rng.permutation(5), rng.permutation(800)
    permuted_fit = dawid_skene(collapse(votes[items][:, judges]))
    np.testing.assert_allclose(permuted_fit.item_posterior, fit.item_posterior[items], atol=1e-5)
    flipped_fit = dawid_skene(collapse(1 - votes))
    np.testing.assert_allclose(flipped_fit.item_posterior, 1 - fit.item_posterior, atol=1e-5)


def test_a_missing_vote_is_summed_out():
    """The likelihood of a row with a gap is the sum over what might have stood in it."""
    law = dawid_skene(collapse(independent(300, np.random.default_rng(2))[0])).parameters
    gap, votes_of_one, zero = (np.array([[v, 1, 0, 0, 1]], np.int8) for v in (-1, 1, 0))
    both_log_sum = np.logaddexp(law.log_likelihoods(votes_of_one), law.log_likelihoods(zero))
    np.testing.assert_allclose(law.log_likelihoods(gap), both_log_sum, atol=1e-12)


def test_labels_enter_as_observed():
    """Two thirds of the judges are wrong together; only labels can tell."""
    rng = np.random.default_rng(4)
    rates = np.array([0.85, 0.3, 0.3])
    votes, truth = independent(3000, rng, rates, rates, 0.5)
    labels = np.where(np.arange(3000) < 100, truth, -1)
    blind = dawid_skene(collapse(votes)).item_posterior[100:]
    fit = dawid_skene(collapse(votes, labels=labels))
    assert ((blind > 0.5) == truth[100:]).mean() < 0.5
    assert ((fit.item_posterior[100:] > 0.5) == truth[100:]).mean() > 0.8
    np.testing.assert_array_equal(fit.item_posterior[:100], truth[:100])


PSEUDO = BetaPriors(right=3, wrong=1, truth=4 * 6)
"""Six judges' pseudo-votes and the items that they are on: see ``with_pseudo_items``."""


def with_pseudo_items(votes, labels):
    """Six judges with the counts of PSEUDO as data: labelled items, each with a single vote."""
    judge = np.repeat(np.arange(6), 8)
    label = np.tile([1, 1, 1, 1, 0, 0, 0, 0], 6)
    vote = np.tile([1, 1, 1, 0, 0, 0, 0, 1], 6)
    alone = np.full((48, 6), -1, np.int8)
    alone[np.arange(48), judge] = vote
    return np.vstack([votes, alone]), np.concatenate([labels, label])


def two_questions(seed):
    """Three judges answer a question; three others the contrary of the one that labels are of."""
    rng = np.random.default_rng(seed)
    votes_seen, label_votes = rng.integers(0, 2, (2, 60))
    rate = rng.uniform(0.75, 0.95, 2)

    def judges(answer, rate):
        right = rng.random((60, 3)) < rate
        return np.where(right, answer[:, None], 1 - answer[:, None]).astype(np.int8)

    votes = np.hstack([judges(votes_seen, rate[0]), judges(1 - label_votes, rate[1])])
    labels = np.full(60, -1)
    printed_joined = np.concatenate([np.flatnonzero(label_votes == c)[:5] for c in (0, 1)])
    labels[printed_joined] = label_votes[printed_joined]
    return votes, labels


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("seed", [125, 439])
def test_the_start_that_wins_has_the_highest_posterior_not_the_highest_likelihood(seed):
    """Where MAP ends is where crowd-kit's maximum likelihood does, given the priors as data.

    Whole pseudo-counts are labelled items with one vote each. In these data the start from the
    labels ends at a likelihood that is 10 nats higher, with judges that the priors hold to be
    so unlikely that its posterior is 9 nats lower.
    """
    pandas = pytest.importorskip("pandas")
    crowdkit = pytest.importorskip("crowdkit.aggregation")
    votes, labels = two_questions(seed)
    fit = dawid_skene(collapse(votes, labels=labels), priors=PSEUDO, tol=1e-10, max_iter=20_000)

    augmented_votes, gold = with_pseudo_items(votes, labels)
    item, judge = np.nonzero(augmented_votes >= 0)
    frame = pandas.DataFrame({"task": item, "worker": judge, "label": augmented_votes[item, judge]})
    known_labels = pandas.Series(gold)[gold >= 0]
    reference_fit_result = crowdkit.DawidSkene(n_iter=60, tol=-np.inf).fit(
        frame, true_labels=known_labels
    )
    np.testing.assert_allclose(
        fit.item_posterior, reference_fit_result.probas_[1].to_numpy()[:60], atol=1e-6
    )

    given_classes = augmented_votes[:, :, None] == np.arange(2)
    errors = (
        reference_fit_result.errors_.unstack("label").to_numpy().reshape(6, 2, 2)
    )  # (judge, truth, vote)
    joint = np.einsum("ijv,jtv->it", given_classes, np.log(errors)) + np.log(
        reference_fit_result.priors_.to_numpy()
    )
    own_indices = np.where(gold >= 0, joint[np.arange(108), gold], np.logaddexp(*joint.T))
    objectives = {start.name: start.objective for start in fit.starts}
    assert objectives[fit.start] == pytest.approx(own_indices.sum(), abs=1e-6)
    assert objectives["majority"] > objectives["labels"] + 8


SWAPPED = np.arange(200) % 3 == 0


@pytest.mark.parametrize(
    ("fit", "n_rates"),
    [
        (lambda votes, priors: dawid_skene(collapse(votes), priors=priors), 10),
        (lambda votes, priors: one_coin(collapse(votes), priors=priors), 5),
        (lambda votes, priors: equal_skill(collapse(votes), priors=priors), 1),
        (lambda votes, priors: position_bias(votes, SWAPPED, priors=priors), 10),
    ],
    ids=["dawid-skene", "one-coin", "equal-skill", "position-bias"],
)
def test_the_objective_holds_the_prior_of_each_free_rate_once(fit, n_rates):
    votes = independent(200, np.random.default_rng(13))[0]
    fit_result = fit(votes, BetaPriors(4, 2, 3))
    rates = np.unique(
        np.concatenate([fit_result.parameters.sensitivity, fit_result.parameters.specificity])
    )
    assert len(rates) == n_rates
    prior = fit_result.parameters.prior
    belief = 4 * np.log(rates) + 2 * np.log(1 - rates)
    expected_objective = fit_result.log_likelihood + belief.sum() + 3 * np.log(prior * (1 - prior))
    assert fit_result.starts[0].objective == pytest.approx(expected_objective, abs=1e-9)


def test_position_bias_is_told_from_prevalence():
    """Judges that pick the first slot are recovered, which a model without order cannot do."""
    rng = np.random.default_rng(6)
    n, first, second = 6000, np.array([0.95, 0.9, 0.85]), np.array([0.6, 0.7, 0.5])
    truth = (rng.random(n) < 0.7).astype(int)
    is_swapped = rng.random(n) < 0.5
    shown_first = (truth == 1) ^ is_swapped
    right = rng.random((n, 3)) < np.where(shown_first[:, None], first, second)
    votes = np.where(right, truth[:, None], 1 - truth[:, None]).astype(np.int8)
    fit = position_bias(votes, is_swapped)
    np.testing.assert_allclose(fit.parameters.sensitivity[:3], first, atol=0.04)
    np.testing.assert_allclose(fit.parameters.sensitivity[3:], second, atol=0.04)
    blind = dawid_skene(collapse(votes)).item_posterior
    assert ((fit.item_posterior > 0.5) == truth).mean() > ((blind > 0.5) == truth).mean() + 0.02


def test_batched_refits_equal_single_fits():
    votes, _ = independent(500, np.random.default_rng(8))
    patterns = collapse(votes)
    counts = patterns.resample(5, np.random.default_rng(9))
    many = refits(patterns, counts, tol=1e-9, max_iter=5000)
    for row, record in enumerate(counts):
        alone = dawid_skene(patterns.with_counts(record), tol=1e-9, max_iter=5000)
        np.testing.assert_allclose(many.sensitivity[row], alone.parameters.sensitivity, atol=1e-6)
        np.testing.assert_allclose(many.posterior[row], alone.pattern_posterior, atol=1e-6)


def rows(*columns):
    return np.column_stack(columns).astype(np.int8)


COIN = np.random.default_rng(0).integers(0, 2, 60)
OTHER = np.random.default_rng(1).integers(0, 2, 60)


@pytest.mark.parametrize(
    "votes",
    [
        rows(COIN),
        rows(COIN, OTHER),
        rows(COIN, COIN, COIN),
        rows(COIN, OTHER, np.ones(60)),
        np.ones((60, 4), np.int8),
    ],
    ids=["one judge", "two", "three copies", "a constant judge", "all agree"],
)
@pytest.mark.parametrize("method", [dawid_skene, one_coin])
def test_what_the_votes_cannot_identify_is_refused(votes, method):
    with pytest.raises(NotIdentifiedError, match="judges that vote both ways"):
        method(collapse(votes))


def test_no_votes_at_all_is_refused():
    with pytest.raises(StatisticsError, match="no judge voted"):
        dawid_skene(collapse(np.full((5, 3), -1)))


def test_labels_identify_what_votes_cannot():
    votes, truth = independent(200, np.random.default_rng(0), np.array([0.8]), np.array([0.9]))
    fit = dawid_skene(collapse(votes, labels=truth), priors=FLAT)
    assert fit.parameters.sensitivity[0] == pytest.approx(votes[truth == 1].mean(), abs=1e-5)


def test_majority_reports_the_smoothed_share():
    patterns = collapse([[1, 1, 0], [1, 2, -1], [-1, -1, -1]])
    np.testing.assert_allclose(majority(patterns).item_posterior, [3 / 5, 2.5 / 4, 0.5])


def test_weighted_majority_is_a_linear_rule():
    patterns = collapse([[1, 0, 0], [1, -1, 2]])
    fit = weighted_majority(patterns, [3.0, 1.0, 1.0], intercept=0.5)
    np.testing.assert_allclose(fit.item_posterior, sigmoid(np.array([1.5, 3.5])))
    np.testing.assert_allclose(fit.posterior([[1, 0, 0]]), sigmoid(1.5))
    with pytest.raises(StatisticsError, match="3 finite numbers"):
        weighted_majority(patterns, [1.0, 2.0])
