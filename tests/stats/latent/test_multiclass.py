"""Three outcomes: agreement with crowd-kit, ties as a vote of their own, refusals."""

import numpy as np
import pytest

from clash.errors import NotIdentifiedError, StatisticsError
from clash.stats.latent.dawid_skene import FLAT, dawid_skene
from clash.stats.latent.multiclass import (
    collapse_classes,
    dawid_skene_classes,
    majority_classes,
)
from clash.stats.latent.patterns import MISSING, collapse


def three_classes(n, rng, rates=(0.8, 0.7, 0.75, 0.65)):
    truth = rng.integers(0, 3, n)
    right = rng.random((n, len(rates))) < rates
    wrong = (truth[:, None] + rng.integers(1, 3, (n, len(rates)))) % 3
    return np.where(right, truth[:, None], wrong), truth


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_agrees_with_crowd_kit():
    pandas = pytest.importorskip("pandas")
    crowdkit = pytest.importorskip("crowdkit.aggregation")
    votes, _ = three_classes(400, np.random.default_rng(0))
    item, judge = np.indices(votes.shape)
    frame = pandas.DataFrame(
        {"task": item.ravel(), "worker": judge.ravel(), "label": votes.ravel()}
    )
    reference_probas = crowdkit.DawidSkene(n_iter=300, tol=-np.inf).fit(frame).probas_
    our_fit = dawid_skene_classes(collapse_classes(votes), pseudo=0, tol=1e-10, max_iter=20_000)
    np.testing.assert_allclose(
        our_fit.item_posterior, reference_probas[[0, 1, 2]].to_numpy(), atol=1e-6
    )


def test_with_two_outcomes_it_is_the_binary_model():
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, 500)
    votes = np.where(rng.random((500, 4)) < 0.75, truth[:, None], 1 - truth[:, None])
    several = dawid_skene_classes(
        collapse_classes(votes, n_outcomes=2), pseudo=0, tol=1e-9, max_iter=20_000
    )
    binary = dawid_skene(collapse(votes), priors=FLAT, tol=1e-9, max_iter=20_000)
    np.testing.assert_allclose(several.item_posterior[:, 1], binary.item_posterior, atol=1e-5)
    assert several.log_likelihood == pytest.approx(binary.log_likelihood, abs=1e-4)


def test_a_tie_can_tell_of_a_decisive_truth():
    """A judge that ties on one class only: half a vote would lose that, a third outcome does not."""
    rng = np.random.default_rng(2)
    truth = rng.integers(0, 2, 2000)
    votes = np.where(rng.random((2000, 4)) < 0.8, truth[:, None], 1 - truth[:, None])
    votes[:, 0] = np.where(truth == 1, 2, rng.integers(0, 2, 2000))
    fit = dawid_skene_classes(collapse_classes(votes, classes=(0, 1)))
    assert fit.item_posterior.shape == (2000, 2)
    assert fit.confusion[0, 1, 2] > 0.9
    share_right = (fit.item_posterior.argmax(axis=1) == truth).mean()
    assert (
        share_right > (dawid_skene(collapse(votes)).item_posterior.round() == truth).mean() + 0.03
    )


def test_labels_enter_as_observed_and_tempering_keeps_the_winner():
    votes, truth = three_classes(300, np.random.default_rng(3))
    labels = np.where(np.arange(300) < 30, truth, -1)
    fit = dawid_skene_classes(collapse_classes(votes, labels=labels))
    np.testing.assert_array_equal(fit.item_posterior[:30], np.eye(3)[truth[:30]])
    np.testing.assert_allclose(fit.tempered_posterior.sum(axis=1), 1)
    assert fit.temperature >= 1
    assert (fit.item_posterior[30:].argmax(axis=1) == truth[30:]).mean() > 0.8


def test_majority_is_the_smoothed_share():
    patterns = collapse_classes([[0, 0, 2, -1]])
    np.testing.assert_allclose(majority_classes(patterns).item_posterior, [[3 / 6, 1 / 6, 2 / 6]])


@pytest.mark.parametrize(
    ("votes", "options", "says"),
    [
        (np.zeros(3), {}, "items x judges"),
        ([[3, 0]], {}, "-1 to 2"),
        ([[0.5, 0]], {}, "-1 to 2"),
        ([[0, 1]], {"labels": [0, 1]}, "one per item"),
        ([[0, 1]], {"classes": (0, 1), "labels": [2]}, "one of the classes"),
        ([[0, 1]], {"classes": (0,)}, "two or more"),
    ],
)
def test_bad_votes_are_refused(votes, options, says):
    with pytest.raises(StatisticsError, match=says):
        collapse_classes(votes, **options)


def test_too_few_judges_are_refused():
    with pytest.raises(NotIdentifiedError, match="three judges"):
        dawid_skene_classes(collapse_classes([[0, 1], [2, 0], [1, 1]]))
    with pytest.raises(StatisticsError, match="no judge voted"):
        dawid_skene_classes(collapse_classes(np.full((3, 4), -1)))


def test_a_judge_who_was_always_alone_leaves_a_temperature():
    rng = np.random.default_rng(0)
    together = rng.integers(0, 3, (60, 3))
    votes = np.full((100, 4), MISSING, dtype=np.int8)
    votes[:60, :3] = together
    votes[60:, 3] = rng.integers(0, 3, 40)
    fit = dawid_skene_classes(collapse_classes(votes))
    assert np.isfinite(fit.temperature)
