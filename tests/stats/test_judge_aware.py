"""Strengths with judges' reliability and style agree with other software and hold known truths."""

import numpy as np
import pytest

from clash.errors import StatisticsError
from clash.stats.voting import judge_aware as module
from clash.stats.voting.bradley_terry import bradley_terry, count_comparisons
from clash.stats.voting.judge_aware import STYLE_SCALE, judge_aware, judged_pairs


def simulate(rng, theta, reliability, *, n=200, nu=0.6, style=(0.5, 0.3)):
    """Items of two candidates before every judge; style is a length and a random position."""
    k, j = len(theta), len(reliability)
    first = rng.integers(0, k, n)
    second = (first + rng.integers(1, k, n)) % k
    item, judge = np.repeat(np.arange(n), j), np.tile(np.arange(j), n)
    length = np.repeat(rng.normal(size=n), j)
    position = rng.choice([-1.0, 1.0], n * j)
    gap = np.asarray(theta)[first] - np.asarray(theta)[second]
    eta = np.asarray(reliability)[judge] * gap[item] + style[0] * length + style[1] * position
    weights = np.stack([np.exp(eta / 2), np.full(n * j, nu), np.exp(-eta / 2)])
    u = rng.random(n * j) * weights.sum(axis=0)
    points = np.where(u < weights[0], 1.0, np.where(u < weights[:2].sum(axis=0), 0.5, 0.0))
    return judged_pairs(
        first[item],
        second[item],
        points,
        judge,
        item,
        n_candidates=k,
        style=np.stack([length, position], axis=1),
    )


def without_style(pairs):
    return judged_pairs(
        pairs.first,
        pairs.second,
        pairs.points,
        np.zeros(len(pairs.points), int),
        pairs.cluster,
        n_candidates=pairs.n_candidates,
    )


def test_one_judge_without_style_is_the_plain_fit():
    pairs = without_style(simulate(np.random.default_rng(0), [1.0, 0, -0.5, -0.5], [1.0]))
    fit = judge_aware(pairs)
    plain = bradley_terry(count_comparisons(pairs.first, pairs.second, pairs.points, 4))
    assert fit.converged
    assert fit.theta == pytest.approx(plain.theta - plain.theta.mean(), abs=1e-6)
    assert fit.tie[0] == pytest.approx(plain.nu, rel=1e-6)


def test_strengths_and_style_agree_with_scikit_learn():
    """Without ties and reliabilities it is a logistic regression on contrasts and style."""
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(1)
    pairs = simulate(rng, [0.8, 0.2, -1.0], [1.0], n=800, nu=0.0)
    fit = judge_aware(pairs, reliability=False, prior=1e-6)
    contrast = np.eye(3)[pairs.first] - np.eye(3)[pairs.second]
    # The ridge of scikit-learn is 1 for all columns: style is scaled to have the same prior.
    design = np.hstack([contrast * 1e3, pairs.style * STYLE_SCALE])
    other_reference_fit = LogisticRegression(
        solver="newton-cholesky", fit_intercept=False, tol=1e-12
    )
    other_reference_fit.fit(design, pairs.points)
    theta, style = (
        other_reference_fit.coef_[0, :3] * 1e3,
        other_reference_fit.coef_[0, 3:] * STYLE_SCALE,
    )
    assert fit.theta == pytest.approx(theta - theta.mean(), abs=1e-4)
    assert fit.style == pytest.approx(style, abs=1e-4)


def test_errors_are_those_of_the_inverse_information_where_the_model_holds():
    """And every item its own cluster: the sandwich estimates the same, here within a tenth."""
    pairs = simulate(np.random.default_rng(2), [0.5, 0, -0.5], [1.0], n=4000, nu=0.0)
    fit = judge_aware(pairs)
    eta = (fit.theta[pairs.first] - fit.theta[pairs.second]) + pairs.style @ fit.style
    p = 1 / (1 + np.exp(-eta))
    design = np.hstack([np.eye(3)[pairs.first] - np.eye(3)[pairs.second], pairs.style])
    inverse = np.linalg.pinv(design.T @ (design * (p * (1 - p))[:, None]))
    assert np.sqrt(np.diag(fit.covariance)[:5]) == pytest.approx(np.sqrt(np.diag(inverse)), rel=0.1)


def test_sparse_tables_give_the_same_fit(monkeypatch):
    pairs = simulate(np.random.default_rng(8), [0.8, 0, -0.8], [1.5, 0.5])
    dense = judge_aware(pairs)
    monkeypatch.setattr("clash.stats.voting.judge_aware._CELLS", 0)
    sparse = judge_aware(pairs)
    assert sparse.theta == pytest.approx(dense.theta, abs=1e-9)
    assert sparse.covariance == pytest.approx(dense.covariance, abs=1e-9)


def test_the_gradient_vanishes_and_reliabilities_have_mean_one():
    fit = judge_aware(simulate(np.random.default_rng(3), [1.0, 0, -1.0], [1.8, 1.1, 0.1]))
    assert fit.converged
    assert fit.gradient < 1e-5
    assert fit.reliability.mean() == pytest.approx(1)
    assert fit.theta.mean() == pytest.approx(0, abs=1e-12)


def test_a_coin_and_an_inverted_judge_are_found():
    fit = judge_aware(
        simulate(np.random.default_rng(4), [1.5, 0, -1.5], [1.6, 1.6, 1.6, 0.2, -1.0], n=300)
    )
    order = fit.reliability
    assert min(order[:3]) > 1.2
    assert abs(order[3] - 0.25) < 0.5
    assert order[4] < -0.5
    assert fit.theta[0] > 0.5 > -0.5 > fit.theta[2]


@pytest.mark.slow
def test_strengths_style_and_reliabilities_hold_their_truth():
    rng, runs = np.random.default_rng(5), 120
    reliability = np.array([1.7, 1.2, 0.9, 0.2])
    reliability /= reliability.mean()
    hits = {"strength": [], "style": [], "reliability": []}
    for _ in range(runs):
        theta = rng.normal(size=4) * 0.7
        fit = judge_aware(simulate(rng, theta, reliability, n=80))
        for name, intervals, truth in (
            ("strength", fit.strengths(), theta - theta.mean()),
            ("style", fit.style_effects(), (0.5, 0.3)),
            ("reliability", fit.reliabilities(), reliability),
        ):
            pairs = zip(intervals, truth, strict=True)
            hits[name] += [i.low <= t <= i.high for i, t in pairs]
    for name, n_held in hits.items():
        assert 0.915 < np.mean(n_held) < 0.985, name


def test_copies_of_an_item_tell_nothing_new():
    pairs = simulate(np.random.default_rng(6), [0.5, 0, -0.5], [1.0], n=60)
    twice = judged_pairs(
        *(np.tile(part, 20) for part in (pairs.first, pairs.second, pairs.points, pairs.judge)),
        np.tile(pairs.cluster, 20),
        n_candidates=3,
        style=np.tile(pairs.style, (20, 1)),
    )
    first_fit, many = judge_aware(pairs), judge_aware(twice)
    assert many.n_clusters == first_fit.n_clusters == 60
    widths = [fit.strengths()[0].half_width for fit in (first_fit, many)]
    assert widths[1] == pytest.approx(widths[0], rel=0.1)


def test_a_candidate_that_won_everything_is_finite_and_unsure():
    pairs = judged_pairs([0] * 6, [1] * 6, [1.0] * 6, [0] * 6, range(6), n_candidates=2)
    fit = judge_aware(pairs)
    interval = fit.contrast(np.array([1.0, -1.0, 1.0])[[0, 1, 2]] * np.array([1, 1, 0]))
    assert fit.converged
    assert interval.estimate > 0
    assert np.isfinite(interval.high)
    assert interval.half_width > 1


def test_one_item_bounds_nothing():
    pairs = judged_pairs([0, 0], [1, 1], [1.0, 0.5], [0, 1], [3, 3], n_candidates=2)
    assert judge_aware(pairs).strengths()[0].high == np.inf


def test_ties_alone_are_level():
    pairs = judged_pairs([0, 1, 2], [1, 2, 0], [0.5] * 3, [0, 0, 1], [0, 1, 2], n_candidates=3)
    fit = judge_aware(pairs)
    assert fit.theta == pytest.approx([0, 0, 0], abs=1e-9)
    assert fit.converged


@pytest.mark.parametrize(
    ("first", "points", "style"),
    [
        ([0], [0.7], None),
        ([1], [1.0], None),
        ([0], [1.0], [[np.nan]]),
        ([], [], None),
        ([5], [1], None),
    ],
)
def test_what_is_no_comparison_is_refused(first, points, style):
    with pytest.raises(StatisticsError):
        judged_pairs(
            first, [1] * len(first), points, [0] * len(first), [0] * len(first),
            n_candidates=2, style=style,
        )  # fmt: skip


@pytest.mark.parametrize("cells", [0, 1 << 21], ids=["sparse", "dense"])
def test_a_fit_in_blocks_is_the_fit_of_all_comparisons(monkeypatch, cells):
    pairs = simulate(np.random.default_rng(5), [0.7, 0.1, -0.8], [1.3, 1.0, 0.7], n=60)
    full_fit = judge_aware(pairs)
    monkeypatch.setattr(module, "_BLOCK", 7)
    monkeypatch.setattr(module, "_CELLS", cells)
    blocks = judge_aware(pairs)
    assert blocks.theta == pytest.approx(full_fit.theta, abs=1e-9)
    assert blocks.covariance == pytest.approx(full_fit.covariance, abs=1e-9)
