"""What may overrule majority, and what may not; on simulations and on real panels."""

import gzip
import json
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from clash.errors import StatisticsError
from clash.stats.latent.cross_validation import HeldOutScores, folds, paired_z, votes_held_out
from clash.stats.latent.dawid_skene import dawid_skene, no_agreement
from clash.stats.latent.factor import factor
from clash.stats.latent.fit import vote_share
from clash.stats.latent.model_selection import select, weigh_models
from clash.stats.latent.patterns import collapse
from clash.stats.latent.temperature_scaling import blend, leave_one_judge_out, temper
from clash.stats.latent.vote_correlations import (
    are_borne_out,
    are_near_copies,
    class_carriers,
    correlated_blocs,
    mean_correlation,
)
from clash.stats.latent.vote_counting import majority, weighted_majority
from clash.stats.latent.witnesses import RefittedOneCoin, WitnessGuard, contested_items
from stats.latent.simulated import accuracy, coupled, independent, moved

VOTES = Path(__file__).resolve().parents[3] / "../shared/data/votes"
CODES = {"A": 1, "B": 0, "tie": 2, None: -1}


def log_loss(p, truth):
    return -np.log(np.clip(np.where(truth == 1, p, 1 - p), 1e-15, 1)).mean()


def test_independent_judges_of_unequal_skill_are_weighted():
    rng = np.random.default_rng(0)
    votes, truth = independent(2000, [0.95, 0.9, 0.62, 0.6, 0.6, 0.62], rng)
    selection = select(votes, rng=rng)
    assert selection.method in {"one-coin", "dawid-skene"}
    item_posterior = majority(collapse(votes)).item_posterior
    assert accuracy(selection.item_posterior, truth) > accuracy(item_posterior, truth) + 0.05
    assert log_loss(selection.item_posterior, truth) < log_loss(item_posterior, truth)


@pytest.mark.parametrize("share", [1.0, 0.99], ids=["always", "nearly always"])
def test_a_judge_that_always_says_the_same_does_not_hide_an_expert(share):
    rng = np.random.default_rng(0)
    votes, truth = independent(400, [0.95, 0.6, 0.6, 0.6, 0.55], rng)
    more_votes = np.column_stack([votes, (rng.random(400) < share).astype(np.int8)])
    without, selection = (
        select(rows, rng=np.random.default_rng(0)) for rows in (votes, more_votes)
    )
    assert without.method == selection.method != "majority"
    np.testing.assert_allclose(selection.item_posterior, without.item_posterior)
    np.testing.assert_allclose(selection.posterior(more_votes), selection.item_posterior)
    assert "always say the same" in selection.reason
    assert accuracy(selection.item_posterior, truth) > 0.85


def test_a_judge_of_a_few_votes_is_not_one_that_always_says_the_same():
    rng = np.random.default_rng(0)
    votes, _ = independent(400, [0.95, 0.6, 0.6, 0.6, 0.55], rng)
    seldom = np.full(400, -1, np.int8)
    seldom[:20] = 1
    assert select(np.column_stack([votes, seldom]), rng=rng).judges is None


def test_a_judge_that_always_names_the_common_class_counts_for_majority():
    """It is right on 90% of the items, and nothing in its votes says that it did not look."""
    rng = np.random.default_rng(1)
    truth = (rng.random(400) < 0.9).astype(np.int8)
    right = rng.random((400, 4)) < [0.8, 0.75, 0.75, 0.7]
    votes = np.where(right, truth[:, None], 1 - truth[:, None]).astype(np.int8)
    selection = select(np.column_stack([votes, np.ones(400, np.int8)]), rng=rng)
    assert selection.judges is None


def test_copies_of_one_source_cannot_be_held_out():
    rng = np.random.default_rng(0)
    votes, _ = independent(100, [0.9, 0.8, 0.7, 0.7], rng)
    selection = select(votes, rng=rng, groups=np.zeros(100, int))
    assert selection.method == "majority"
    assert "copies of one source" in selection.reason


def test_a_moved_bloc_is_discounted():
    rng = np.random.default_rng(1)
    skill = [1.2] * 5 + [2.0, 2.3, 2.6, 2.9]
    votes, truth = moved(2000, skill, [1.8] * 5 + [0.0] * 4, rng)
    selection = select(votes, rng=rng)
    item_posterior = majority(collapse(votes)).item_posterior
    assert selection.method == "factor"
    assert accuracy(selection.item_posterior, truth) > accuracy(item_posterior, truth) + 0.03
    assert log_loss(selection.item_posterior, truth) < log_loss(item_posterior, truth)


def test_a_continuum_without_classes_stays_with_majority():
    """Judges that share an opinion, not a truth: classes may not be read into it."""
    rng = np.random.default_rng(2)
    votes, _ = moved(600, [0.0] * 6, [1.5, 1.5, 1.5, 1.0, 1.0, 0.5], rng)
    selection = select(votes, rng=rng)
    assert selection.method == "majority"
    assert all(candidate.doubt for candidate in selection.candidates)
    np.testing.assert_array_equal(
        selection.item_posterior, majority(collapse(votes)).item_posterior
    )


def test_classes_that_may_be_swapped_stay_with_majority():
    """Two judges against two: which pair is right is anybody's guess."""
    rng = np.random.default_rng(3)
    votes, _ = independent(300, [0.9, 0.9, 0.1, 0.1], rng)
    assert select(votes, rng=rng).method == "majority"


def test_labels_show_what_votes_cannot():
    """A majority that is wrong together is invisible without labels, and said to be so."""
    rng = np.random.default_rng(4)
    votes, truth = independent(600, [0.3, 0.3, 0.35, 0.9, 0.85], rng)
    blind = select(votes, rng=rng)
    assert any("cannot be detected without labels" in warning for warning in blind.warnings)
    labels = np.where(np.arange(600) < 200, truth, -1)
    selection = select(votes, rng=rng, labels=labels)
    assert selection.method != "majority"
    assert accuracy(selection.item_posterior[200:], truth[200:]) > 0.9
    np.testing.assert_array_equal(selection.item_posterior[:200], truth[:200])


def test_judges_near_chance_are_not_to_be_trusted():
    rng = np.random.default_rng(5)
    selection = select(rng.integers(0, 2, (200, 5)), rng=rng)
    assert selection.method == "majority"
    assert any("little more than by chance" in warning for warning in selection.warnings)


def test_the_choice_is_the_same_for_the_same_seed():
    votes, _ = independent(300, [0.9, 0.8, 0.7, 0.75], np.random.default_rng(6))
    selection, two = (select(votes, rng=np.random.default_rng(7)) for _ in range(2))
    assert selection.reason == two.reason
    np.testing.assert_array_equal(selection.item_posterior, two.item_posterior)


def test_new_votes_get_the_posterior_of_their_pattern():
    rng = np.random.default_rng(8)
    votes, _ = independent(500, [0.97, 0.95, 0.9, 0.8], rng)
    selection = select(votes, rng=rng)
    np.testing.assert_allclose(selection.posterior(votes[:50]), selection.item_posterior[:50])


@settings(max_examples=25, deadline=None)
@given(
    arrays(
        np.int8,
        st.tuples(st.integers(2, 15), st.integers(1, 5)),
        elements=st.sampled_from([-1, 0, 1, 2]),
    )
)
def test_degenerate_votes_give_an_error_or_a_finite_posterior(votes):
    try:
        selection = select(votes, rng=np.random.default_rng(0), n_folds=2)
    except StatisticsError:
        return
    assert np.isfinite(selection.item_posterior).all()
    assert ((selection.item_posterior >= 0) & (selection.item_posterior <= 1)).all()
    assert selection.reason


COIN = np.random.default_rng(0).integers(0, 2, 40)


@pytest.mark.parametrize(
    "votes",
    [
        COIN[:, None],
        np.repeat(COIN[:, None], 4, axis=1),
        np.ones((40, 4)),
        np.column_stack([COIN, np.ones(40), np.zeros(40)]),
    ],
    ids=["one judge", "four copies", "all agree on one class", "constant judges"],
)
def test_panels_with_nothing_to_learn_fall_back_to_majority(votes):
    selection = select(votes, rng=np.random.default_rng(0))
    assert selection.method == "majority"
    assert "no model is identified" in selection.reason


def test_all_missing_is_refused():
    with pytest.raises(StatisticsError, match="no judge voted"):
        select(np.full((5, 3), -1), rng=np.random.default_rng(0))


def test_tempering_undoes_the_double_counting_of_copies():
    """Four copies of each of three judges have the evidence of three, not of twelve."""
    rng = np.random.default_rng(9)
    votes, truth = independent(4000, [0.75, 0.75, 0.75], rng)
    slips = rng.random((4000, 12)) < 0.02
    copies = np.where(slips, 1 - np.repeat(votes, 4, axis=1), np.repeat(votes, 4, axis=1))
    fit = temper(dawid_skene(collapse(copies)))
    assert fit.temperature > 2
    assert log_loss(fit.tempered_posterior, truth) < 0.6 * log_loss(fit.item_posterior, truth)
    np.testing.assert_array_equal(fit.tempered_posterior > 0.5, fit.item_posterior > 0.5)


def test_left_out_votes_are_predicted_from_the_others_alone():
    patterns = collapse(independent(200, [0.9, 0.8, 0.7, 0.75], np.random.default_rng(10))[0])
    law = dawid_skene(patterns).parameters
    left = leave_one_judge_out(law, patterns)
    np.testing.assert_allclose(left.vote[: len(patterns.counts)], patterns.votes[:, 0])
    other_votes = patterns.votes.copy()
    other_votes[:, 0] = 1 - other_votes[:, 0]
    swapped_fits = leave_one_judge_out(law, collapse(other_votes[patterns.inverse]))
    first = np.sort(left.odds[: len(patterns.counts)])
    np.testing.assert_allclose(first, np.sort(swapped_fits.odds[: len(patterns.counts)]), atol=1e-9)


def test_the_blend_keeps_every_decision_of_the_fit():
    votes, _ = moved(500, [1.2] * 5 + [2.4] * 3, [1.8] * 5 + [0.0] * 3, np.random.default_rng(11))
    fit = temper(factor(collapse(votes)))
    np.testing.assert_array_equal(blend(fit) > 0.5, fit.pattern_posterior > 0.5)
    share = vote_share(fit.patterns)
    sure = np.abs(blend(fit) - 0.5) <= np.maximum(
        np.abs(share - 0.5), np.abs(fit.pattern_posterior - 0.5)
    )
    assert sure.all()


def test_folds_are_balanced_and_scores_paired():
    fold = folds(23, 5, np.random.default_rng(0))
    assert np.bincount(fold).tolist() == [5, 5, 5, 4, 4]
    held_out_scores = HeldOutScores("one", np.array([1.0, 2.0, 3.0]))
    other_held_out_scores = HeldOutScores("other", np.array([0.0, 2.0, 1.0]))
    difference = np.array([1.0, 0.0, 2.0])
    assert paired_z(held_out_scores, other_held_out_scores) == pytest.approx(
        difference.mean() / difference.std(ddof=1) * 3**0.5
    )
    assert paired_z(held_out_scores, held_out_scores) == 0
    assert paired_z(HeldOutScores("refused", None, "why"), held_out_scores) == -np.inf


def test_copies_of_an_item_are_held_out_together():
    groups = np.repeat(np.arange(20), 3)
    fold = folds(60, 5, np.random.default_rng(0), groups)
    assert (np.ptp(fold.reshape(20, 3), axis=1) == 0).all()
    assert np.bincount(fold).tolist() == [12] * 5


def test_held_out_items_do_not_inform_their_own_score():
    """A pattern that only the held-out fold has is scored by a fit that has never seen it."""
    votes, _ = independent(120, [0.9] * 3, np.random.default_rng(1))
    votes[:60][(votes[:60] == [0, 1, 0]).all(axis=1)] = 0
    votes[100:] = [0, 1, 0]
    fold = (np.arange(120) >= 60).astype(int)
    score = votes_held_out("ds", dawid_skene, collapse(votes), fold).scores[100:]
    first = dawid_skene(collapse(votes[:60])).parameters
    both_logs = first.log_likelihoods(np.array([[0, 1, 0]], np.int8)) + np.log(
        [1 - first.prior, first.prior]
    )
    np.testing.assert_allclose(score, np.logaddexp(*both_logs[0]), atol=1e-4)


def test_mean_correlation_against_numpy():
    votes, _ = independent(500, [0.8, 0.7, 0.9], np.random.default_rng(12))
    upper = np.corrcoef(votes.T)[np.triu_indices(3, 1)]
    assert mean_correlation(collapse(votes)) == pytest.approx(upper.mean())


def near_copies(n, sources, slip, rng, *, prior=0.5):
    """For each source (accuracy, how many copies): judges that repeat its verdict but for slips."""
    truth = (rng.random(n) < prior).astype(int)
    columns = []
    for accuracy_, times in sources:
        own_indices = np.where(rng.random(n) < accuracy_, truth, 1 - truth)
        columns += [
            np.where(rng.random(n) < slip, 1 - own_indices, own_indices) for _ in range(times)
        ]
    return np.column_stack(columns).astype(np.int8), truth


def gain(votes, truth, seed=0, **options):
    """How much more often auto is right than majority, and by how much its log-loss is lower."""
    selection = select(votes, rng=np.random.default_rng(seed), **options)
    item_posterior = majority(collapse(votes)).item_posterior
    gained_share = accuracy(selection.item_posterior, truth) - accuracy(item_posterior, truth)
    return (
        gained_share,
        log_loss(item_posterior, truth) - log_loss(selection.item_posterior, truth),
        selection,
    )


def test_judges_of_equal_skill_are_not_weighted_but_their_majority_is_believed_more():
    """Majority's verdicts exactly, with a probability that a further such judge would confirm."""
    votes, truth = independent(1000, [0.88] * 5, np.random.default_rng(20))
    gain_by_label, sharper, family = gain(votes, truth)
    assert family.method == "majority"
    assert gain_by_label == 0
    assert sharper > 0.05
    np.testing.assert_allclose(family.posterior(votes[:40]), family.item_posterior[:40])


def test_even_panels_of_equal_judges_leave_their_ties_standing():
    votes, _ = independent(600, [0.9] * 4, np.random.default_rng(21), prior=0.8)
    selection = select(votes, rng=np.random.default_rng(0))
    assert selection.method == "majority"
    level = votes.sum(axis=1) == 2
    np.testing.assert_allclose(selection.item_posterior[level], 0.5)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize(
    "sources",
    [
        [(0.7, 3), (0.75, 3), (0.8, 3)],
        [(0.85, 4), (0.9, 1), (0.92, 1), (0.88, 1), (0.91, 1), (0.87, 1)],
        [(0.65, 4), (0.8, 1), (0.75, 1), (0.85, 1), (0.9, 1), (0.7, 1)],
        [(0.8, 10), (0.85, 10), (0.9, 10)],
    ],
    ids=["three families", "copies among good judges", "copies of a weak judge", "thirty judges"],
)
def test_near_copies_do_not_become_the_truth(sources, seed):
    """A class that is one source's own votes would cost up to twenty points."""
    votes, truth = near_copies(1000, sources, 0.04, np.random.default_rng(seed))
    gain_by_label, _, _ = gain(votes, truth)
    assert gain_by_label > -0.01


def test_copies_count_once_where_the_votes_tell_them_from_judges():
    """Four copies of a weak judge outvote five better ones; the factor models, too, follow them."""
    sources = [(0.65, 4), (0.8, 1), (0.75, 1), (0.85, 1), (0.9, 1), (0.7, 1)]
    votes, truth = near_copies(1500, sources, 0.04, np.random.default_rng(0))
    gain_by_label, sharper, family = gain(votes, truth)
    assert family.method == "factor-blocs"
    assert gain_by_label > 0.1
    assert sharper > 0
    np.testing.assert_allclose(family.posterior(votes[:40]), family.item_posterior[:40])


@pytest.mark.parametrize("slip", [0.0, 0.01])
def test_copies_of_one_judge_that_are_most_of_the_panel_are_not_believed_more_than_its_share(slip):
    """Five copies of a 70% judge agree as five judges of 97% would, and one coin takes them for these."""
    sources = [(0.7, 5), (0.8, 1), (0.75, 1), (0.7, 1)]
    votes, truth = near_copies(600, sources, slip, np.random.default_rng(0))
    gain_in_accuracy, gain_in_log_loss, selection = gain(votes, truth)
    assert selection.method == "majority"
    assert gain_in_accuracy == 0
    assert gain_in_log_loss == 0


@pytest.mark.parametrize("n_good", [3, 5])
def test_good_judges_that_the_others_bear_out_are_no_copies(n_good):
    """Equally good judges agree as copies do; the others agree with them more than with one another."""
    rng = np.random.default_rng(0)
    votes, truth = independent(1000, [0.95] * n_good + [0.7, 0.6, 0.65, 0.75], rng)
    assert are_near_copies(collapse(votes), range(n_good), rng)
    gain_in_accuracy, gain_in_log_loss, selection = gain(votes, truth)
    assert selection.method in {"one-coin", "dawid-skene"}
    assert gain_in_accuracy > 0
    assert gain_in_log_loss > 0.05


def test_what_bears_judges_out_is_what_two_others_have_in_common_with_them():
    rng = np.random.default_rng(1)
    others = [(0.8, 1), (0.75, 1), (0.7, 1)]
    copies, _ = near_copies(1000, [(0.7, 4), *others], 0.03, rng)
    good, _ = independent(1000, [0.95] * 4 + [0.8, 0.75, 0.7], rng)
    assert not are_borne_out(collapse(copies), range(4), rng)
    assert are_borne_out(collapse(good), range(4), rng)
    assert not are_borne_out(collapse(good[:, :5]), range(4), rng)


def test_judges_near_chance_and_a_good_one_that_seldom_votes_are_believed_as_much_as_their_share():
    """No vote of a weak judge can be predicted well: tempering alone left them fainter than the share."""
    rng = np.random.default_rng(0)
    votes, truth = independent(1500, [0.97, 0.65, 0.58, 0.62, 0.67, 0.6, 0.66, 0.57], rng)
    votes[rng.random(1500) < 0.85, 0] = -1
    _, gain_in_log_loss, selection = gain(votes, truth)
    assert selection.method == "one-coin"
    assert gain_in_log_loss > 0


def test_good_judges_among_others_that_err_together_are_not_counted_once():
    """The mirror image of copies: three good judges agree, and a factor moves all others."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 800)
    good = np.where(rng.random((800, 3)) < 0.93, truth[:, None], 1 - truth[:, None])
    pull = (2 * truth - 1)[:, None] * [0.5, 0.8, 0.9, 1.1] + 1.8 * rng.normal(size=(800, 1))
    other_votes = rng.random(pull.shape) < 1 / (1 + np.exp(-pull))
    gain_by_label, _, _ = gain(np.column_stack([good, other_votes]).astype(np.int8), truth)
    assert gain_by_label >= 0


@pytest.mark.parametrize("seed", [1, 5, 7])
def test_blocs_without_a_clear_class_do_not_overrule_majority(seed):
    """Three copies of a good judge, and five weak ones that copy an opinion at times."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, 600)

    def right(share):
        return np.where(rng.random(600) < share, truth, 1 - truth)

    best, opinion = right(0.93), right(0.6)
    good = [np.where(rng.random(600) < 0.93, best, 1 - best) for _ in range(3)]
    other_indices = [np.where(rng.random(600) < 0.4, opinion, right(0.6)) for _ in range(5)]
    gain_by_label, _, family = gain(np.column_stack([*good, *other_indices]).astype(np.int8), truth)
    assert family.method != "factor-blocs"
    assert gain_by_label > -0.02


def test_copies_that_no_class_explains_keep_their_votes():
    """Four copies of a judge of 93% among eight of 60% that share an opinion: every model takes the opinion."""
    rng = np.random.default_rng(0)
    truth, opinion = rng.integers(0, 2, (2, 700))
    source = np.where(rng.random(700) < 0.93, truth, 1 - truth)[:, None]
    copies = np.where(rng.random((700, 4)) < 0.03, 1 - source, source)
    pull = 0.5 * (2 * truth - 1) + 1.6 * (2 * opinion - 1)
    other_votes = rng.random((700, 8)) < 1 / (1 + np.exp(-pull[:, None]))
    votes = np.column_stack([copies, other_votes]).astype(np.int8)
    gain_by_label, _, family = gain(votes, truth)
    assert gain_by_label == 0
    assert "agree closely" in family.reason


def test_a_bloc_of_seven_against_six_is_no_class():
    """Seven of thirteen judges are misled on a quarter of the items, or six are: the votes are the same."""
    rng = np.random.default_rng(0)
    truth, is_misled = rng.integers(0, 2, 1000), rng.random(1000) < 0.25
    right = np.tile(rng.uniform(0.65, 0.85, 13), (1000, 1))
    right[is_misled, :7] = 1 - right[is_misled, :7]
    is_right = rng.random((1000, 13)) < right
    votes = np.where(is_right, truth[:, None], 1 - truth[:, None]).astype(np.int8)
    gain_by_label, _, _ = gain(votes, truth)
    assert gain_by_label > -0.01


def test_weak_judges_of_equal_skill_are_believed_no_less_than_the_share_says():
    """Nothing predicts a judge of 66% well, which is no reason to doubt nine of them."""
    votes, truth = independent(1500, [0.66] * 7, np.random.default_rng(2))
    gain_by_label, sharper, family = gain(votes, truth)
    assert (family.method, gain_by_label) == ("majority", 0)
    assert family.reason.startswith("no weighting")
    assert sharper >= 0


def test_many_judges_decide_level_votes_where_all_models_agree():
    rng = np.random.default_rng(0)
    truth = (rng.random(600) < 0.5).astype(int)
    family = rng.normal(size=(600, 6))[:, np.arange(16) // 3]
    pull = (2 * truth - 1)[:, None] * rng.uniform(0.2, 1.5, 16) + 1.2 * family
    votes = (rng.random(pull.shape) < 1 / (1 + np.exp(-pull))).astype(np.int8)
    gain_by_label, sharper, chosen = gain(votes, truth)
    item_posterior = majority(collapse(votes)).item_posterior
    assert chosen.method == "majority"
    assert "decides level votes alone" in chosen.reason
    assert gain_by_label > 0.005
    assert sharper > 0
    is_uneven = votes.sum(axis=1) != 8
    np.testing.assert_array_equal(chosen.item_posterior[is_uneven], item_posterior[is_uneven])
    np.testing.assert_allclose(chosen.posterior(votes[:40]), chosen.item_posterior[:40])


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize(
    ("skill", "at_least"),
    [
        ([0.95, 0.55, 0.56, 0.58, 0.6, 0.57, 0.54, 0.61, 0.59], 0.1),
        ([0.3, 0.35, 0.7, 0.75, 0.8, 0.85, 0.7, 0.75, 0.8], 0.03),
        ([0.9, 0.85, 0.8, 0.7, 0.65, 0.6], 0.005),
    ],
    ids=["one good judge", "a minority that is mostly wrong", "mixed skill"],
)
def test_independent_judges_are_weighted_where_the_data_can_tell(skill, at_least, seed):
    votes, truth = independent(4000, skill, np.random.default_rng(seed))
    gain_by_label, sharper, _ = gain(votes, truth)
    assert gain_by_label > at_least
    assert sharper > 0


@pytest.mark.slow
@pytest.mark.parametrize("n", [30, 200])
@pytest.mark.parametrize("prior", [0.5, 0.95])
def test_small_and_lopsided_panels_are_no_worse_than_majority_on_average(n, prior):
    """A bloc misled on a fifth of the items, with gaps; single panels may lose, the mean may not."""
    gains = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        votes, truth = independent(n, rng.uniform(0.65, 0.9, 6), rng, prior=prior)
        is_misled = (rng.random(n) < 0.2)[:, None] & (np.arange(6) < 3)
        votes = np.where(is_misled & (rng.random(votes.shape) < 0.8), 1 - truth[:, None], votes)
        votes = np.where(rng.random(votes.shape) < 0.15, -1, votes).astype(np.int8)
        gains.append(gain(votes, truth)[0])
    assert np.mean(gains) > -0.01


def blocs_by_class(n, seed):
    """Three judges coupled in class 0, three others in class 1: the dependence is the class's own."""
    couplings = np.zeros((2, 6, 6))
    couplings[0, :3, :3], couplings[1, 3:, 3:] = 2.0, 1.8
    couplings[:, range(6), range(6)] = 0
    fields = np.array([-1.0, 1.0])[:, None] * np.full(6, 0.42)
    return coupled(n, fields, couplings, np.random.default_rng(seed))


def test_dependence_by_class_is_used_where_it_leads_every_other_model():
    votes, truth = blocs_by_class(10_000, 0)
    gain_by_label, sharper, family = gain(votes, truth)
    assert family.method == "ising-class"
    assert "one class otherwise than in the other" in family.reason
    assert gain_by_label > 0.03
    assert sharper > 0
    np.testing.assert_allclose(family.posterior(votes[:40]), family.item_posterior[:40])


def test_a_factor_of_one_class_does_not_become_the_truth():
    """Dawid-Skene and the factor model lose three to six points here, and describe the votes well."""
    rng = np.random.default_rng(2)
    truth = rng.integers(0, 2, 1500)
    pull = (truth == 1)[:, None] * rng.normal(size=(1500, 1)) * rng.uniform(1.2, 2.4, 9)
    chance = 1 / (1 + np.exp(-((2 * truth - 1)[:, None] * rng.uniform(0.6, 1.5, 9) + pull)))
    votes = (rng.random(chance.shape) < chance).astype(np.int8)
    item_posterior = factor(collapse(votes)).item_posterior
    counted_posterior = majority(collapse(votes)).item_posterior
    assert accuracy(item_posterior, truth) < accuracy(counted_posterior, truth) - 0.02
    gain_by_label, sharper, family = gain(votes, truth)
    assert gain_by_label == 0
    assert sharper == 0
    assert "factor-class" in family.reason
    assert "contest more than 25%" in family.reason


def leaning(n, prior, seed, n_judges=5):
    """Judges that err alone, with a rate of their own in each class."""
    rng = np.random.default_rng(seed)
    truth = (rng.random(n) < prior).astype(int)
    sensitivity, specificity = rng.uniform(0.65, 0.9, n_judges), rng.uniform(0.6, 0.9, n_judges)
    rates = np.where(truth[:, None] == 1, sensitivity, 1 - specificity)
    return (rng.random(rates.shape) < rates).astype(np.int8), truth


def test_a_class_that_is_rare_by_majority_too_is_the_truth():
    """A factor of one class describes these votes nearly as well, and majority knows no base rate."""
    votes, truth = leaning(1000, 0.9, 11)
    gain_by_label, sharper, family = gain(votes, truth)
    assert family.method == "dawid-skene"
    assert gain_by_label > 0.03
    assert sharper > 0
    mirrored_selection = select(1 - votes, rng=np.random.default_rng(0))
    np.testing.assert_allclose(
        mirrored_selection.item_posterior, 1 - family.item_posterior, atol=1e-6
    )


@pytest.mark.parametrize(
    ("prior", "is_contested"), [(0.92, False), (0.7, True), (0.08, True)], ids=str
)
def test_a_class_that_a_model_sees_more_often_than_majority_is_contested(prior, is_contested):
    """Lenient judges: a model that takes items out of the common class may follow a factor of it."""
    votes, _ = leaning(1000, 0.9, 11)
    patterns, rng = collapse(votes), np.random.default_rng(0)
    challenge, _ = weigh_models(patterns, None, folds(len(votes), 5, rng))
    fit = challenge.fits["dawid-skene"]
    challenge.fits["dawid-skene"] = replace(fit, parameters=replace(fit.parameters, prior=prior))
    assert (challenge.guard("dawid-skene").witnesses != ()) == is_contested


def test_a_reading_whose_own_classes_are_not_plain_contests_nothing():
    """One expert: a factor of one class describes such votes as well, and means nothing by it."""
    rng = np.random.default_rng(3)
    votes, truth = independent(2000, [0.53, 0.58, 0.94, 0.6, 0.57], rng)
    gain_by_label, sharper, family = gain(votes, truth)
    assert family.method == "one-coin"
    assert gain_by_label > 0.1
    assert sharper > 0
    patterns = family.fit.patterns
    unclear = replace(factor(patterns), anchor_agreement=0.65)
    assert any(contested_items(family.fit, [unclear]))
    assert family.guard.witnesses == ()


def test_three_judges_of_whom_one_contradicts_the_others():
    """Where the two disagree, the third is right less often than not."""
    votes, truth = independent(800, [0.86, 0.25, 0.8], np.random.default_rng(4))
    gain_by_label, sharper, family = gain(votes, truth)
    assert family.method == "one-coin"
    assert "votes against both others" in family.reason
    assert gain_by_label > 0.05
    assert sharper > 0
    np.testing.assert_allclose(family.posterior(votes[:40]), family.item_posterior[:40])


@pytest.mark.parametrize("skill", [(0.8, 0.7, 0.6), (0.52, 0.5, 0.48)])
def test_other_threes_stay_with_majority(skill):
    """No judge votes against both others; nothing but chance."""
    votes, truth = independent(400, skill, np.random.default_rng(5))
    gain_by_label, _, _ = gain(votes, truth)
    assert gain_by_label == 0


def test_a_verdict_of_refits_is_one_that_nearly_all_share():
    """The share by hand; 1/2 where fewer than 97 of 100 agree."""
    weights = np.ones((100, 3))
    weights[:4, 0] = 5.0
    reading = RefittedOneCoin(weights, np.zeros(100))
    votes = np.array([[1, 0, 0], [1, 1, 0], [0, 1, 1]], np.int8)
    np.testing.assert_allclose(reading.posterior(votes), [0.5, 1.0, 0.5])
    nearly = RefittedOneCoin(weights[2:], np.zeros(98))
    np.testing.assert_allclose(nearly.posterior(votes), [2 / 98, 1.0, 96 / 98])


def test_a_contested_model_decides_level_votes_alone():
    """Four judges of whom two are level: there, and only where the witness agrees, it decides."""
    votes = np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 1, 1, 0], [1, 0, 0, 0]], np.int8)
    fit = weighted_majority(collapse(votes), [3.0, 0.5, 0.5, 0.5])
    alike = weighted_majority(collapse(votes), [2.0, 0.5, 0.5, 0.5])
    other_fit = weighted_majority(collapse(votes), [0.5, 0.5, 0.5, 3.0])
    stands = WitnessGuard((alike,), level_votes_alone=True).stands
    np.testing.assert_array_equal(stands(fit, votes), [False, False, True, True])
    assert WitnessGuard((other_fit,), level_votes_alone=True).stands(fit, votes).all()
    np.testing.assert_array_equal(
        WitnessGuard((other_fit,)).stands(fit, votes), [False, False, False, True]
    )
    assert not WitnessGuard((alike,)).stands(fit, votes).any()


def test_judges_that_agree_by_chance_have_the_likelihood_of_their_rates():
    votes = np.random.default_rng(6).integers(0, 2, (50, 3)).astype(np.int8)
    patterns = collapse(votes)
    rates = (votes.sum(axis=0) + 1) / 52
    by_hand = np.where(votes == 1, np.log(rates), np.log(1 - rates)).sum()
    fit = no_agreement(patterns)
    assert fit.log_likelihood == pytest.approx(by_hand)
    np.testing.assert_allclose(fit.item_posterior, 0.5)


def test_where_few_items_have_three_votes_only_judges_that_err_alone_are_weighed():
    rng = np.random.default_rng(3)
    votes, truth = independent(3000, [0.62, 0.66, 0.7, 0.9, 0.92], rng)
    votes = np.where(rng.random(votes.shape) < 0.6, -1, votes).astype(np.int8)
    has_vote = (votes >= 0).any(axis=1)
    gain_by_label, _, family = gain(votes[has_vote], truth[has_vote])
    assert family.method in {"one-coin", "dawid-skene"}
    assert gain_by_label > 0.01


def test_few_items_are_not_enough_to_weigh_judges_by():
    votes, _ = independent(40, [0.97, 0.6, 0.6, 0.6, 0.6], np.random.default_rng(24))
    selection = select(votes, rng=np.random.default_rng(0))
    assert selection.method == "majority"
    assert [candidate.name for candidate in selection.candidates] == ["equal-skill"]


def test_copies_are_told_from_good_judges():
    rng = np.random.default_rng(22)
    votes, _ = near_copies(1000, [(0.85, 3), (0.8, 1), (0.75, 1), (0.7, 1)], 0.04, rng)
    patterns = collapse(votes)
    assert are_near_copies(patterns, (0, 1, 2), rng)
    assert not are_near_copies(patterns, (0, 3, 4), rng)
    assert len(set(correlated_blocs(patterns)[:3])) == 1
    assert len(set(correlated_blocs(patterns)[2:])) == 4
    good, truth = independent(2000, [0.97, 0.95, 0.92, 0.6, 0.6, 0.6, 0.6], rng)
    assert not are_near_copies(collapse(good), (0, 1, 2), rng)
    assert class_carriers(
        collapse(good), truth[np.unique(collapse(good).inverse, return_index=True)[1]]
    )


def test_families_keep_judges_of_several_vendors_from_being_taken_for_copies():
    """Three judges equally good and much alike, and one other: copies, unless known to differ."""
    rng = np.random.default_rng(23)
    votes, _ = independent(800, [0.95] * 3 + [0.7], rng)
    unknown = select(votes, rng=np.random.default_rng(0))
    vendors = ["a", "b", "c", "d"]
    selection = select(votes, rng=np.random.default_rng(0), families=vendors)
    assert any("copies of each other" in c.doubt for c in unknown.candidates)
    assert not any("copies of each other" in c.doubt for c in selection.candidates)


def real(name, judges="*", presentation=None):
    path = VOTES / f"{name}.votes.jsonl.gz"
    if not path.exists():
        pytest.skip(f"{path.name}: the public panels are not beside this checkout")
    with gzip.open(path, "rt") as lines:
        records = [json.loads(line) for line in lines]
    retained_records = [
        r
        for r in records
        if any(fnmatch(r["judge"], glob) for glob in judges.split(","))
        and presentation in {None, r["presentation"]}
        and r.get("label") in {"A", "B"}
    ]
    items = {item: i for i, item in enumerate(dict.fromkeys(r["item"] for r in retained_records))}
    columns = {
        judge: i for i, judge in enumerate(dict.fromkeys(r["judge"] for r in retained_records))
    }
    votes = np.full((len(items), len(columns)), -1, np.int8)
    truth = np.zeros(len(items), int)
    for r in retained_records:
        votes[items[r["item"]], columns[r["judge"]]] = CODES[r["vote"]]
        truth[items[r["item"]]] = CODES[r["label"]]
    return votes, truth


@pytest.mark.parametrize(
    ("name", "judges", "presentation", "at_least"),
    [
        ("llmbar-casestudy", "*/Vanilla", "orig", -0.001),
        ("llmbar-processed", "*", "orig", -0.001),
        ("rb2-replicates", "gpt-5.4-nano#*,*#s0", None, 0.02),
        ("llmfao", "gpt-*,heuristic*", None, 0.1),
        ("pandalm", "gpt-*,PandaLM*,heuristic*", None, -0.005),
    ],
)
def test_on_public_panels_it_keeps_up_with_majority(name, judges, presentation, at_least):
    """On the first Dawid-Skene loses seven points; on the second one reading of the votes gains
    three and another loses three; on the last three auto can gain, and does."""
    votes, truth = real(name, judges, presentation)
    selection = select(votes, rng=np.random.default_rng(0))
    item_posterior = majority(collapse(votes)).item_posterior
    gain = accuracy(selection.item_posterior, truth) - accuracy(item_posterior, truth)
    assert gain >= at_least
    assert log_loss(selection.item_posterior, truth) <= log_loss(item_posterior, truth) + 1e-9
