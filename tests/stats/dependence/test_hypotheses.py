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
    n_judges: int, n: int, *, labelled: bool, times: int = 1, missing: float = 0.0, runs: int = 60
) -> tuple[list[float], list[float]]:
    """p values of all pairs and of the joint test on independent judges."""
    rng = np.random.default_rng(n_judges + n)
    panel, pairs, joint = panels.independent(n_judges), [], []
    for _ in range(runs):
        sample = panel.sample(n, rng)
        sample.votes[rng.random(sample.votes.shape) < missing] = MISSING
        patterns = panels.patterns(sample, labelled=labelled, times=times)
        clusters = None if times == 1 else np.repeat(np.arange(n), times)
        found = independence_tests(patterns, rng, clusters=clusters)
        pairs += [test.p for test in found.tests]
        joint.append(found.joint.p)
    return pairs, joint


@pytest.mark.parametrize(
    "setting",
    [
        {"n_judges": 4, "n": 400, "labelled": False},
        {"n_judges": 6, "n": 300, "labelled": False},
        {"n_judges": 6, "n": 300, "labelled": False, "missing": 0.2},
        {"n_judges": 6, "n": 200, "labelled": True},
        {"n_judges": 6, "n": 200, "labelled": True, "times": 2},
        {"n_judges": 5, "n": 300, "labelled": False, "times": 2},
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
    panel, naive, clustered = panels.independent(5), [], []
    for _ in range(40):
        patterns = panels.patterns(panel.sample(200, rng), labelled=True, times=3)
        naive += [test.p for test in independence_tests(patterns, rng).tests]
        groups = np.repeat(np.arange(200), 3)
        clustered += [t.p for t in independence_tests(patterns, rng, clusters=groups).tests]
    assert rejections(naive) > 0.2
    assert rejections(clustered) < 0.1


@pytest.mark.parametrize("labelled", [True, False])
def test_independence_tests_find_the_coupled_pair(labelled: bool) -> None:
    """Two copies among five independent judges, with and without labels; nobody else is blamed."""
    sample = panels.with_copies(2, 5, 1500, np.random.default_rng(1))
    found = independence_tests(panels.patterns(sample, labelled=labelled), np.random.default_rng(2))
    by_pair = dict(zip(found.pairs, found.tests, strict=True))
    assert by_pair[0, 1].p < 1e-6
    assert by_pair[0, 1].direction == 1
    assert min(by_pair, key=lambda pair: by_pair[pair].p) == (0, 1)
    assert found.joint.p < 1e-6


def test_with_labels_it_is_the_test_of_a_residual_correlation() -> None:
    """The score statistic of a pair is n r^2, up to the simulated information."""
    sample = panels.families().sample(500, np.random.default_rng(3))
    patterns = panels.patterns(sample, labelled=True)
    r = off_diagonal(residual_correlations(patterns, patterns.labels.astype(float)).within_classes)
    found = independence_tests(patterns, np.random.default_rng(4))
    statistics = np.array([test.statistic for test in found.tests])
    np.testing.assert_allclose(statistics, 500 * r**2, rtol=0.1, atol=0.2)


def test_three_judges_without_labels_have_nothing_to_test() -> None:
    """Independence explains any votes of three judges: seven parameters, seven frequencies."""
    sample = panels.independent(3).sample(500, np.random.default_rng(5))
    found = independence_tests(panels.patterns(sample, labelled=False), np.random.default_rng(0))
    assert found.tests == (None, None, None)
    assert found.joint is None


def test_judges_that_never_met_are_not_tested() -> None:
    rng = np.random.default_rng(6)
    sample = panels.independent(4).sample(400, rng)
    sample.votes[::2, 0] = MISSING
    sample.votes[1::2, 1] = MISSING
    found = independence_tests(panels.patterns(sample, labelled=True), rng)
    tested = dict(zip(found.pairs, found.tests, strict=True))
    assert tested[0, 1] is None
    assert tested[2, 3] is not None


def test_ties_are_no_votes() -> None:
    rng = np.random.default_rng(7)
    sample = panels.independent(4).sample(300, rng)
    tied, gap = sample.votes.copy(), sample.votes.copy()
    where = rng.random(tied.shape) < 0.1
    tied[where], gap[where] = TIE, MISSING
    one, other = (
        independence_tests(collapse(votes, labels=sample.labels), np.random.default_rng(0))
        for votes in (tied, gap)
    )
    assert [test.p for test in one.tests] == [test.p for test in other.tests]


def estimated(patterns: Patterns) -> np.ndarray:
    known = patterns.labels != MISSING
    p = dawid_skene(patterns).pattern_posterior
    return np.where(known, patterns.labels, p)


HYPOTHESES = {
    "families": lambda: families_independent(panels.FAMILIES),
    "equals": lambda: exchangeable(panels.FAMILIES),
    "classes": lambda: classes_alike(5),
}


def hypothesis_p(
    which: str, n: int, *, labelled: bool, runs: int, times: int = 1, **planted: float
) -> list[float]:
    rng = np.random.default_rng(n)
    panel, found = panels.families(**planted), []
    for _ in range(runs):
        patterns = panels.patterns(panel.sample(n, rng), labelled=labelled, times=times)
        clusters = None if times == 1 else np.repeat(np.arange(n), times)
        test = score_test(
            HYPOTHESES[which](), patterns, estimated(patterns), rng, clusters=clusters
        )
        found.append(test.p)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("which", HYPOTHESES)
@pytest.mark.parametrize(
    ("n", "labelled", "times"), [(500, True, 1), (500, True, 2), (1500, False, 1)]
)
def test_hypotheses_hold_their_size(which: str, n: int, labelled: bool, times: int) -> None:
    """All three are true of this panel: about one in twenty is rejected."""
    p = hypothesis_p(which, n, labelled=labelled, times=times, runs=40)
    assert rejections(p) <= 0.15
    assert 0.25 < np.mean(np.array(p) < 0.5) < 0.75


@pytest.mark.slow
@pytest.mark.parametrize(
    ("which", "planted"),
    [("families", {"cross": 0.8}), ("equals", {"uneven": 1.6}), ("classes", {"by_class": 1.3})],
)
def test_hypotheses_see_what_was_planted(which: str, planted: dict[str, float]) -> None:
    """Each is rejected when it alone is broken, and the others are not."""
    p = hypothesis_p(which, 700, labelled=True, runs=8, **planted)
    assert rejections(p) >= 0.75
    for other in set(HYPOTHESES) - {which}:
        assert rejections(hypothesis_p(other, 700, labelled=True, runs=8, **planted)) <= 0.4


def test_coupled_families_are_seen_without_labels() -> None:
    assert rejections(hypothesis_p("families", 3000, labelled=False, runs=4, cross=0.8)) == 1


def test_hypotheses_that_make_no_sense_are_refused() -> None:
    with pytest.raises(StatisticsError, match="one family"):
        families_independent(np.zeros(4, np.intp))
    with pytest.raises(StatisticsError, match="three judges"):
        exchangeable(np.array([0, 0, 1, 1]))


def test_more_parameters_than_votes_can_tell_are_refused() -> None:
    """Four judges without labels give 15 frequencies; two classes of couplings want 21."""
    sample = panels.independent(4).sample(300, np.random.default_rng(8))
    patterns = panels.patterns(sample, labelled=False)
    with pytest.raises(NotIdentifiedError, match="21 parameters against 15"):
        score_test(classes_alike(4), patterns, estimated(patterns), np.random.default_rng(0))


def test_too_few_clusters_are_refused() -> None:
    sample = panels.families().sample(60, np.random.default_rng(9))
    patterns = panels.patterns(sample, labelled=True)
    with pytest.raises(StatisticsError, match="clusters are too few"):
        score_test(
            classes_alike(5),
            patterns,
            patterns.labels.astype(float),
            np.random.default_rng(0),
            clusters=np.arange(60) % 6,
        )
