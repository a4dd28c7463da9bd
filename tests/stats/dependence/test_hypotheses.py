"""The tests of dependence hold their size under the null and see what was planted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from clash.errors import NotIdentifiedError, StatisticsError
from clash.stats.dependence.hypotheses import (
    classes_alike,
    exchangeable,
    families_independent,
    score_test,
)
from clash.stats.dependence.independence import independence_tests
from clash.stats.dependence.residual_correlation import off_diagonal, residual_correlations
from clash.stats.latent.dawid_skene import dawid_skene
from clash.stats.latent.patterns import MISSING, TIE, collapse
from stats.dependence import panels

if TYPE_CHECKING:
    from clash.stats.latent.patterns import Patterns


def rejections(p: list[float], level: float = 0.05) -> float:
    return float((np.array(p) < level).mean())


def independence_p(
    n_judges: int,
    n: int,
    *,
    with_labels: bool,
    times: int = 1,
    missing: float = 0.0,
    runs: int = 60,
) -> tuple[list[float], list[float]]:
    """p values of all pairs and of the joint test on independent judges."""
    rng = np.random.default_rng(n_judges + n)
    panel, pairs, joint = panels.independent(n_judges), [], []
    for _ in range(runs):
        sample = panel.sample(n, rng)
        sample.votes[rng.random(sample.votes.shape) < missing] = MISSING
        patterns = panels.patterns(sample, with_labels=with_labels, times=times)
        clusters = None if times == 1 else np.repeat(np.arange(n), times)
        tests = independence_tests(patterns, rng, clusters=clusters)
        pairs += [test.p for test in tests.tests]
        joint.append(tests.joint.p)
    return pairs, joint


@pytest.mark.parametrize(
    "setting",
    [
        {"n_judges": 4, "n": 400, "with_labels": False},
        {"n_judges": 6, "n": 300, "with_labels": False},
        {"n_judges": 6, "n": 300, "with_labels": False, "missing": 0.2},
        {"n_judges": 6, "n": 200, "with_labels": True},
        {"n_judges": 6, "n": 200, "with_labels": True, "times": 2},
        {"n_judges": 5, "n": 300, "with_labels": False, "times": 2},
    ],
    ids=str,
)
def test_independence_tests_hold_their_size(setting: dict) -> None:
    """5% of the pairs of independent judges are rejected, hidden truth, gaps and copies or not."""
    pairs, joint = independence_p(**setting)
    assert 0.02 < rejections(pairs) < 0.09
    assert rejections(joint) < 0.17
    assert 0.3 < np.mean(np.array(pairs) < 0.5) < 0.7


def test_copies_taken_for_items_of_their_own_would_be_rejected() -> None:
    """Why clusters matter: the same items counted three times reject what is true."""
    rng = np.random.default_rng(0)
    panel, naive, clustered_p = panels.independent(5), [], []
    for _ in range(40):
        patterns = panels.patterns(panel.sample(200, rng), with_labels=True, times=3)
        naive += [test.p for test in independence_tests(patterns, rng).tests]
        groups = np.repeat(np.arange(200), 3)
        clustered_p += [t.p for t in independence_tests(patterns, rng, clusters=groups).tests]
    assert rejections(naive) > 0.2
    assert rejections(clustered_p) < 0.1


@pytest.mark.parametrize("with_labels", [True, False])
def test_independence_tests_find_the_coupled_pair(with_labels: bool) -> None:
    """Two copies among five independent judges, with and without labels; nobody else is blamed."""
    sample = panels.with_copies(2, 5, 1500, np.random.default_rng(1))
    tests = independence_tests(
        panels.patterns(sample, with_labels=with_labels), np.random.default_rng(2)
    )
    by_pair = dict(zip(tests.pairs, tests.tests, strict=True))
    assert by_pair[0, 1].p < 1e-6
    assert by_pair[0, 1].direction == 1
    assert min(by_pair, key=lambda pair: by_pair[pair].p) == (0, 1)
    assert tests.joint.p < 1e-6


def test_with_labels_it_is_the_test_of_a_residual_correlation() -> None:
    """The score statistic of a pair is n r^2, up to the simulated information."""
    sample = panels.families().sample(500, np.random.default_rng(3))
    patterns = panels.patterns(sample, with_labels=True)
    r = off_diagonal(residual_correlations(patterns, patterns.labels.astype(float)).within_classes)
    tests = independence_tests(patterns, np.random.default_rng(4))
    statistics = np.array([test.statistic for test in tests.tests])
    np.testing.assert_allclose(statistics, 500 * r**2, rtol=0.1, atol=0.2)


def test_three_judges_without_labels_have_nothing_to_test() -> None:
    """Independence explains any votes of three judges: seven parameters, seven frequencies."""
    sample = panels.independent(3).sample(500, np.random.default_rng(5))
    tests = independence_tests(panels.patterns(sample, with_labels=False), np.random.default_rng(0))
    assert tests.tests == (None, None, None)
    assert tests.joint is None


def test_judges_that_never_met_are_not_tested() -> None:
    rng = np.random.default_rng(6)
    sample = panels.independent(4).sample(400, rng)
    sample.votes[::2, 0] = MISSING
    sample.votes[1::2, 1] = MISSING
    tests = independence_tests(panels.patterns(sample, with_labels=True), rng)
    tested_fields = dict(zip(tests.pairs, tests.tests, strict=True))
    assert tested_fields[0, 1] is None
    assert tested_fields[2, 3] is not None


def test_ties_are_no_votes() -> None:
    rng = np.random.default_rng(7)
    sample = panels.independent(4).sample(300, rng)
    tied, gap = sample.votes.copy(), sample.votes.copy()
    where = rng.random(tied.shape) < 0.1
    tied[where], gap[where] = TIE, MISSING
    tests, other_tests = (
        independence_tests(collapse(votes, labels=sample.labels), np.random.default_rng(0))
        for votes in (tied, gap)
    )
    assert [test.p for test in tests.tests] == [test.p for test in other_tests.tests]


def estimate_of(patterns: Patterns) -> np.ndarray:
    is_known = patterns.labels != MISSING
    p = dawid_skene(patterns).pattern_posterior
    return np.where(is_known, patterns.labels, p)


HYPOTHESES = {
    "families": lambda: families_independent(panels.FAMILIES),
    "equals": lambda: exchangeable(panels.FAMILIES),
    "classes": lambda: classes_alike(5),
}


def hypothesis_p(
    hypothesis: str, n: int, *, with_labels: bool, runs: int, times: int = 1, **effect: float
) -> list[float]:
    rng = np.random.default_rng(n)
    panel, p_values = panels.families(**effect), []
    for _ in range(runs):
        patterns = panels.patterns(panel.sample(n, rng), with_labels=with_labels, times=times)
        clusters = None if times == 1 else np.repeat(np.arange(n), times)
        test = score_test(
            HYPOTHESES[hypothesis](), patterns, estimate_of(patterns), rng, clusters=clusters
        )
        p_values.append(test.p)
    return p_values


@pytest.mark.slow
@pytest.mark.parametrize("hypothesis", HYPOTHESES)
@pytest.mark.parametrize(
    ("n", "with_labels", "times"), [(500, True, 1), (500, True, 2), (1500, False, 1)]
)
def test_hypotheses_hold_their_size(hypothesis: str, n: int, with_labels: bool, times: int) -> None:
    """All three are true of this panel: about one in twenty is rejected."""
    p = hypothesis_p(hypothesis, n, with_labels=with_labels, times=times, runs=40)
    assert rejections(p) <= 0.15
    assert 0.25 < np.mean(np.array(p) < 0.5) < 0.75


@pytest.mark.slow
@pytest.mark.parametrize(
    ("hypothesis", "effect"),
    [("families", {"cross": 0.8}), ("equals", {"uneven": 1.6}), ("classes", {"by_class": 1.3})],
)
def test_hypotheses_see_what_was_planted(hypothesis: str, effect: dict[str, float]) -> None:
    """Each is rejected when it alone is broken, and the others are not."""
    p = hypothesis_p(hypothesis, 700, with_labels=True, runs=8, **effect)
    assert rejections(p) >= 0.75
    for alternative in set(HYPOTHESES) - {hypothesis}:
        assert rejections(hypothesis_p(alternative, 700, with_labels=True, runs=8, **effect)) <= 0.4


def test_coupled_families_are_seen_without_labels() -> None:
    assert rejections(hypothesis_p("families", 3000, with_labels=False, runs=4, cross=0.8)) == 1


def test_hypotheses_that_make_no_sense_are_refused() -> None:
    with pytest.raises(StatisticsError, match="one family"):
        families_independent(np.zeros(4, np.intp))
    with pytest.raises(StatisticsError, match="three judges"):
        exchangeable(np.array([0, 0, 1, 1]))


def test_more_parameters_than_votes_can_tell_are_refused() -> None:
    """Four judges without labels give 15 frequencies; two classes of couplings want 21."""
    sample = panels.independent(4).sample(300, np.random.default_rng(8))
    patterns = panels.patterns(sample, with_labels=False)
    with pytest.raises(NotIdentifiedError, match="21 parameters against 15"):
        score_test(classes_alike(4), patterns, estimate_of(patterns), np.random.default_rng(0))


def test_too_few_clusters_are_refused() -> None:
    sample = panels.families().sample(60, np.random.default_rng(9))
    patterns = panels.patterns(sample, with_labels=True)
    with pytest.raises(StatisticsError, match="clusters are too few"):
        score_test(
            classes_alike(5),
            patterns,
            patterns.labels.astype(float),
            np.random.default_rng(0),
            clusters=np.arange(60) % 6,
        )
