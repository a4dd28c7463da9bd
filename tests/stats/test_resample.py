"""The bootstrap and the jackknife say what theory says of the same statistic."""

import numpy as np
import pytest

from clash.errors import StatisticsError
from clash.stats.resample import cluster_bootstrap, cluster_weights, jackknife


def weighted_mean(x):
    return lambda w: w @ x / w.sum(axis=1)


def test_the_error_of_a_mean_is_the_textbooks():
    x = np.random.default_rng(0).normal(size=400)
    bootstrap = cluster_bootstrap(weighted_mean(x), np.arange(400), np.random.default_rng(1), 4000)
    assert bootstrap.replicates.std() == pytest.approx(x.std() / 20, rel=0.05)
    assert bootstrap.interval().estimate == pytest.approx(x.mean())


def test_clusters_are_drawn_whole():
    """Five copies of each observation leave the error of the originals."""
    x = np.random.default_rng(0).normal(size=100)
    bootstrap = cluster_bootstrap(
        weighted_mean(np.repeat(x, 5)), np.repeat(np.arange(100), 5), np.random.default_rng(1), 3000
    )
    assert bootstrap.replicates.std() == pytest.approx(x.std() / 10, rel=0.06)
    assert bootstrap.n_clusters == 100


def test_weights_are_multinomial_counts_of_clusters():
    clusters = np.array(["a", "b", "b", "c"])
    w = np.concatenate(list(cluster_weights(clusters, np.random.default_rng(2), 5000)))
    assert np.array_equal(w[:, 1], w[:, 2])
    assert np.all(w[:, 0] + w[:, 1] + w[:, 3] == 3)
    # Multinomial(3; 1/3, 1/3, 1/3): mean 1, variance 2/3.
    assert w[:, 0].mean() == pytest.approx(1, abs=0.04)
    assert w[:, 0].var() == pytest.approx(2 / 3, abs=0.05)


def test_the_same_seed_is_the_same_interval():
    x = np.random.default_rng(0).normal(size=30)
    runs = [
        cluster_bootstrap(weighted_mean(x), np.arange(30), np.random.default_rng(7), 500)
        for _ in range(2)
    ]
    assert np.array_equal(runs[0].replicates, runs[1].replicates)


def test_bca_agrees_with_scipy_on_a_skewed_statistic():
    from scipy.stats import bootstrap

    x = np.random.default_rng(3).exponential(size=60)

    def spread(w):
        mean = w @ x / w.sum(axis=1)
        return (w @ x**2) / w.sum(axis=1) - mean**2

    bounds = cluster_bootstrap(
        spread, np.arange(60), np.random.default_rng(4), 20000, method="bca"
    ).interval()
    other_confidence_interval = bootstrap(
        (x,), np.var, n_resamples=20000, method="BCa", rng=np.random.default_rng(5)
    ).confidence_interval
    assert (bounds.low, bounds.high) == pytest.approx(
        (other_confidence_interval.low, other_confidence_interval.high), rel=0.04
    )


def test_several_values_are_bootstrapped_together():
    x = np.random.default_rng(0).normal(size=(50, 2))
    bootstrap = cluster_bootstrap(
        lambda w: (w @ x) / w.sum(axis=1, keepdims=True), np.arange(50), np.random.default_rng(1)
    )
    assert bootstrap.low.shape == bootstrap.high.shape == (2,)
    assert np.all((bootstrap.low < bootstrap.estimate) & (bootstrap.estimate < bootstrap.high))


def test_the_jackknife_leaves_out_a_cluster_at_a_time():
    x, clusters = np.array([1.0, 2.0, 3.0, 10.0]), [0, 0, 1, 2]
    assert jackknife(weighted_mean(x), clusters)[:, 0] == pytest.approx([6.5, 13 / 3, 2.0])


def test_many_clusters_are_left_out_in_a_thousand_groups():
    x = np.arange(5000.0)
    left = jackknife(weighted_mean(x), np.arange(5000))
    assert left.shape == (1000, 1)
    assert left.mean() == pytest.approx(x.mean())


def test_undefined_replicates_are_counted_not_hidden():
    x = np.array([1.0, 0, 0, 0, 1.0, 1.0])

    def share(w):
        among = w @ x
        return np.where(among > 0, w @ (x * [1, 0, 0, 0, 0, 1]) / np.maximum(among, 1), np.nan)

    bootstrap = cluster_bootstrap(share, np.arange(6), np.random.default_rng(0), 2000)
    # Nobody of the three is drawn in 0.5^6 of the resamples.
    assert 5 < bootstrap.undefined < 80
    assert np.isnan(bootstrap.replicates).sum() == bootstrap.undefined
    assert not np.isnan(bootstrap.low).any()


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_a_constant_statistic_has_no_width(method):
    bootstrap = cluster_bootstrap(
        lambda w: np.full(len(w), 0.25), np.arange(5), np.random.default_rng(0), 100, method=method
    )
    assert (bootstrap.low[0], bootstrap.high[0]) == (0.25, 0.25)


@pytest.mark.parametrize("clusters", [[], [3], [3, 3, 3]])
def test_fewer_than_two_clusters_are_refused(clusters):
    with pytest.raises(StatisticsError, match="at least two"):
        cluster_bootstrap(lambda w: w.sum(axis=1), clusters, np.random.default_rng(0))


def test_a_statistic_undefined_on_the_data_is_refused():
    with pytest.raises(StatisticsError, match="undefined on the data"):
        cluster_bootstrap(lambda w: np.full(len(w), np.nan), np.arange(5), np.random.default_rng(0))


def test_a_statistic_that_is_mostly_undefined_is_refused():
    with pytest.raises(StatisticsError, match=r"undefined on \d+ of 500"):
        cluster_bootstrap(
            lambda w: np.where(w[:, 0] == 1, 1.0, np.nan),
            np.arange(5),
            np.random.default_rng(0),
            500,
        )
