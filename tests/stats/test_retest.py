"""Test-retest statistics give the paper's table and do what they say on known truths."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from clash.errors import StatisticsError
from clash.stats.retest.ranking_stability import decompose, kendall_tau, ranking_stability
from clash.stats.retest.repeats import (
    confirm,
    flip_rate,
    inter_run,
    low_confidence_first,
    majority_over_runs,
    match_table,
    select_targets,
    self_consistency,
    stability,
)

NAN = math.nan
# 71 both right, 5 the first only, 4 the second only, 20 neither: Table 8 of the paper.
FIRST = np.repeat([1, 1, 0, 0], [71, 5, 4, 20])
SECOND = np.repeat([1, 0, 1, 0], [71, 5, 4, 20])
RIGHT = np.ones(100, dtype=int)


def test_table_8_of_the_paper():
    table = match_table(FIRST, SECOND)
    assert (table.both, table.first, table.second, table.neither) == (71, 5, 4, 20)
    assert table.kappa.estimate == pytest.approx(0.757, abs=5e-4)
    assert table.corrected.statistic == 0
    assert table.change.p == pytest.approx(1.0)
    assert table.n == 100


def test_the_stability_classes_of_the_paper():
    stability_findings = stability(np.stack([FIRST, SECOND], axis=1), RIGHT)
    names = ("stably correct", "stably incorrect", "unstable")
    assert [stability_findings.count(name) for name in names] == [71, 20, 9]
    # 69% of what is not stably correct is systematic.
    assert (stability_findings.systematic.estimate, stability_findings.systematic.n) == (
        pytest.approx(20 / 29),
        29,
    )
    assert stability_findings.share("unstable").estimate == pytest.approx(0.09)


def test_without_labels_items_are_stable_or_not():
    stability_findings = stability([[0, 0], [0, 1], [-1, -1], [2, -1]])
    assert stability_findings.categories.tolist() == ["stable", "unstable", "stable", "unstable"]
    assert stability_findings.incomplete == 2
    assert math.isnan(stability_findings.systematic.estimate)


def test_no_verdict_is_never_correct_and_wrong_in_two_ways_is_unstable():
    stability_findings = stability([[-1, -1], [1, 2], [1, -1], [1, 1]], [1, 0, 1, 1])
    assert stability_findings.categories.tolist() == [
        "stably incorrect",
        "unstable",
        "unstable",
        "stably correct",
    ]


@pytest.mark.parametrize(
    ("runs", "labels"), [([[0], [1]], None), ([[0, 1]], [0, 1]), ([[0, 1]], [-1])]
)
def test_runs_and_labels_that_do_not_fit_are_refused(runs, labels):
    with pytest.raises(StatisticsError):
        stability(runs, labels)


def test_inter_run_agreement_is_over_items_that_either_run_judged():
    agreement = inter_run([0, 1, 1, -1, -1], [0, 1, 0, 1, -1], 2)
    assert (agreement.agreement.estimate, agreement.agreement.n) == (0.5, 4)
    assert agreement.kappa.interval.n == 3
    assert agreement.unjudged == 1


def test_inter_run_agreement_is_clustered():
    a = np.tile([0, 1], 40)
    b = np.where(np.repeat(np.arange(8), 10) < 6, a, 1 - a)
    blind, aware = inter_run(a, b, 2), inter_run(a, b, 2, np.repeat(np.arange(8), 10))
    assert aware.agreement.n_effective < 10 < blind.agreement.n_effective


def test_runs_of_unlike_length_are_refused():
    with pytest.raises(StatisticsError):
        match_table([1, 0], [1])


def test_majority_over_runs_counts_only_runs_that_judged():
    assert majority_over_runs([[0, 0, 1], [1, -1, 1], [0, 1, -1], [-1, -1, -1]]).tolist() == [
        0,
        1,
        -1,
        -1,
    ]


def test_targets_are_all_errors_all_unstable_and_the_least_confident():
    runs = np.stack([FIRST, SECOND], axis=1)
    confidence = np.linspace(1, 0, 100)
    targets = select_targets(stability(runs, RIGHT), confidence, 31)
    assert [
        len(x) for x in (targets.stably_incorrect, targets.unstable, targets.low_confidence)
    ] == [
        20,
        9,
        31,
    ]
    assert targets.low_confidence.tolist() == list(range(40, 71))
    assert len(set(targets.indices.tolist())) == 60


def test_targets_without_labels_and_with_too_few_items():
    targets = select_targets(stability([[0, 0], [0, 1], [1, 1]]), [0.5, 0.1, 0.2], 31)
    assert (targets.stably_incorrect.tolist(), targets.unstable.tolist()) == ([], [1])
    assert targets.low_confidence.tolist() == [0, 2]
    with pytest.raises(StatisticsError, match="2 confidences for 3"):
        select_targets(stability([[0, 0], [0, 1], [1, 1]]), [0.5, 0.1])


def test_lots_decide_among_items_of_equal_confidence_and_each_is_as_likely():
    """Two of low confidence, then 4 of 10 equals: each of the ten in 40% of the draws."""
    rng = np.random.default_rng(3)
    stable, confidence = stability(np.zeros((12, 2), int)), [0.1, 0.2, *[1.0] * 10]
    draws = [select_targets(stable, confidence, 6, rng) for _ in range(2000)]
    counts = np.bincount(np.concatenate([draw.low_confidence for draw in draws]), minlength=12)
    assert counts[:2].tolist() == [2000, 2000]
    assert np.allclose(counts[2:] / 2000, 0.4, atol=4 * (0.24 / 2000) ** 0.5)
    assert (draws[0].n_level, draws[0].n_level_taken) == (10, 4)
    full_targets = select_targets(stable, confidence, 12, rng)
    assert full_targets.n_level == full_targets.n_level_taken == 10
    assert select_targets(stable, confidence, 0, rng).n_level == 0


def test_unknown_confidence_comes_first_and_runs_are_averaged():
    order = low_confidence_first([[1.0, 0.0], [NAN, 0.4], [NAN, NAN], [0.9, 0.8]])
    assert order.tolist() == [2, 1, 0, 3]


def test_the_confirmation_of_the_paper_is_what_selection_predicts_anyway():
    """19 of 20: P is 2.003e-5 against coin flips; heterogeneous items predict 90%."""
    confirmation = confirm(19, 20, match_table(FIRST, SECOND))
    assert confirmation.coin.p == pytest.approx(2.003e-5, rel=1e-3)
    # By hand: mean 0.245, E[wrong^2] 0.20, so Beta of size 0.185 / 0.13998 - 1 = 0.3214.
    size = 0.245 * 0.755 / (0.2 - 0.245**2) - 1
    assert confirmation.expected == pytest.approx((0.245 * size + 2) / (size + 2))
    assert 0.88 < confirmation.expected < 0.91
    assert not confirmation.rate.excludes(confirmation.expected)


def test_expected_confirmation_is_right_on_a_known_population():
    rng = np.random.default_rng(0)
    wrong = rng.beta(0.4, 1.2, 200000)
    runs = rng.random((3, 200000)) < wrong
    table = match_table(~runs[0], ~runs[1])
    again = runs[2][runs[0] & runs[1]].mean()
    assert confirm(1, 1, table).expected == pytest.approx(again, abs=0.01)


def test_expected_confirmation_is_unknown_where_runs_show_no_persistence():
    assert math.isnan(confirm(0, 0, match_table([1, 1], [1, 1])).expected)
    assert math.isnan(confirm(0, 0, match_table([1, 0], [0, 1])).expected)
    assert math.isnan(confirm(0, 0, match_table([], [])).expected)


@settings(deadline=None)
@given(
    hnp.arrays(float, 6, elements=st.integers(0, 4).map(float)),
    hnp.arrays(float, 6, elements=st.integers(0, 4).map(float)),
)
def test_tau_agrees_with_scipy(x, y):
    from scipy.stats import kendalltau

    if np.ptp(x) == 0 or np.ptp(y) == 0:
        assert math.isnan(kendall_tau(x, y))
    else:
        assert kendall_tau(x, y) == pytest.approx(kendalltau(x, y).statistic)


def test_ranking_stability_over_cycles():
    stability_result = ranking_stability([[3, 2, 1], [3, 2, 1], [2, 3, 1]])
    assert stability_result.mean.estimate == pytest.approx((1 + 1 / 3 + 1 / 3) / 3)
    assert stability_result.same_winner == pytest.approx(1 / 3)
    assert stability_result.mean.low <= stability_result.mean.estimate <= stability_result.mean.high


def test_cycles_that_all_agree_and_cycles_that_tie_everything():
    assert ranking_stability([[3, 2, 1]] * 10).mean.estimate == 1
    stability_result = ranking_stability([[3, 2, 1], [1, 1, 1], [3, 1, 2]])
    assert stability_result.undefined == 2
    assert stability_result.mean.method == "no interval"
    nothing = ranking_stability([[1, 1], [1, 1]])
    assert (math.isnan(nothing.mean.estimate), nothing.same_winner) == (True, 1.0)
    with pytest.raises(StatisticsError, match="two cycles"):
        ranking_stability([[1, 2]])
    with pytest.raises(StatisticsError, match="without NaN"):
        kendall_tau([1, NAN], [1, 2])


@pytest.mark.slow
def test_the_interval_of_mean_tau_covers():
    rng, strength, hits = np.random.default_rng(1), np.array([2.0, 1.0, 0.5, 0.0, -1.0]), 0
    draws = strength + rng.normal(size=(4000, 2, 5))
    truth = np.mean([kendall_tau(*pair) for pair in draws])
    for _ in range(150):
        mean_tau = ranking_stability(strength + rng.normal(size=(10, 5))).mean
        hits += mean_tau.low <= truth <= mean_tau.high
    assert 0.88 < hits / 150 <= 1.0


def simulate(rng, n_prompts, generations, judgments, prompt, generation, judgment):
    """Gaussian outcomes of a nested design."""
    p = np.repeat(np.arange(n_prompts), generations * judgments)
    g = np.tile(np.repeat(np.arange(generations), judgments), n_prompts)
    y = (
        rng.normal(scale=prompt, size=n_prompts)[p]
        + rng.normal(scale=generation, size=(n_prompts, generations))[p, g]
        + rng.normal(scale=judgment, size=len(p))
    )
    return y, p, g


def test_components_of_a_nested_design_are_recovered():
    rng = np.random.default_rng(2)
    stability_parts = decompose(*simulate(rng, 600, 3, 2, 1.5, 1.0, 0.5), rng, categorical=False)
    assert stability_parts.judgment == pytest.approx(0.25, rel=0.1)
    assert stability_parts.generation == pytest.approx(1.0, rel=0.15)
    assert stability_parts.prompt == pytest.approx(2.25, rel=0.2)
    assert stability_parts.generation_share.low < 0.8 < stability_parts.generation_share.high


def test_components_agree_with_the_analysis_of_variance_where_balanced():
    """Henderson's ANOVA estimates of the nested model."""
    rng = np.random.default_rng(3)
    y, p, g = simulate(rng, 12, 3, 2, 1, 1, 1)
    cells = y.reshape(12, 3, 2)
    within = cells.var(axis=2, ddof=1).mean()
    between = cells.mean(axis=2).var(axis=1, ddof=1).mean()
    stability_parts = decompose(y, p, g, rng, categorical=False, n_bootstrap=50)
    assert stability_parts.judgment == pytest.approx(within)
    assert stability_parts.generation == pytest.approx(between - within / 2)


def test_agreement_rates_of_a_hand_made_case():
    """Two prompts, two generations of two judgments: (0,0),(1,1) and (0,1),(0,0)."""
    stability_parts = decompose(
        [0, 0, 1, 1, 0, 1, 0, 0],
        [0] * 4 + [1] * 4,
        [0, 0, 1, 1] * 2,
        np.random.default_rng(0),
        n_bootstrap=100,
    )
    # Same responses: pairs agree in 3 of 4 sets; the means over prompts are 1 and 1/2.
    assert stability_parts.same_responses == pytest.approx((1 + 0.5) / 2)
    # Fresh responses: prompt one never agrees, prompt two in two of four pairs.
    assert stability_parts.fresh_responses == pytest.approx((0 + 0.5) / 2)
    assert stability_parts.judgment == pytest.approx((1 - stability_parts.same_responses) / 2)


def test_only_judging_varies_and_only_generating_varies():
    rng = np.random.default_rng(4)
    prompt, generation = np.repeat(np.arange(40), 4), np.tile([0, 0, 1, 1], 40)
    stability_parts = decompose(rng.integers(0, 2, 160), prompt, generation, rng)
    assert abs(stability_parts.generation) < 0.06
    fresh = np.repeat(rng.integers(0, 2, 80), 2)
    generated_part = decompose(fresh, prompt, generation, rng)
    assert (generated_part.judgment, generated_part.same_responses) == (0, 1)
    assert generated_part.generation_share.estimate == pytest.approx(1)


def test_nothing_ever_changes():
    prompt, generation = np.repeat(np.arange(5), 4), np.tile([0, 0, 1, 1], 5)
    stability_parts = decompose(prompt % 2, prompt, generation, np.random.default_rng(0))
    assert (stability_parts.judgment, stability_parts.generation) == (0, 0)
    assert stability_parts.generation_share.estimate == 0


@pytest.mark.parametrize("generations", [[0, 1, 0, 1], [0, 0, 0, 0]])
def test_a_design_that_cannot_tell_them_apart_is_refused(generations):
    with pytest.raises(StatisticsError, match="cannot be separated"):
        decompose([0, 1, 0, 1], [0, 0, 1, 1], generations, np.random.default_rng(0))


def test_flips_between_orders_and_where_they_lean():
    rate = flip_rate([1, 1, 1, 0, 0, 0.5, NAN, 1], [1, 0, 0, 1, 0, 1, 1, 0.5])
    assert (rate.rate.estimate, rate.rate.n) == (pytest.approx(3 / 5), 5)
    assert (rate.to_first, rate.to_second, rate.softened) == (2, 1, 2)
    assert rate.lean.p == 1.0


def test_a_judge_of_the_first_slot_flips_always_and_one_way():
    rate = flip_rate(np.ones(20), np.zeros(20))
    assert rate.rate.estimate == 1
    assert rate.lean.p < 1e-5
    with pytest.raises(StatisticsError):
        flip_rate([1], [1, 0])


def test_self_consistency_counts_each_item_once():
    consistency = self_consistency([[0, 0, 0], [0, 1, -1], [1, 1, 0], [1, -1, -1]])
    assert consistency.n == 3
    assert consistency.estimate == pytest.approx((1 + 0 + 1 / 3) / 3)


def test_self_consistency_is_clustered():
    rng = np.random.default_rng(5)
    votes = np.repeat(rng.integers(0, 2, (10, 3)), 10, axis=0)
    once, blind = self_consistency(votes[::10]), self_consistency(votes)
    aware = self_consistency(votes, np.repeat(np.arange(10), 10))
    assert aware.half_width > 2 * blind.half_width
    assert aware.half_width > 0.7 * once.half_width


def test_numbers_of_one_prompt_have_no_variance_between_prompts():
    rng = np.random.default_rng(6)
    y, p, g = simulate(rng, 2, 2, 2, 0, 1, 1)
    with pytest.raises(StatisticsError, match="cannot be separated"):
        decompose(y[:4], p[:4], g[:4], rng, categorical=False)
    stability_parts = decompose(y, p, g, rng, categorical=False, n_bootstrap=50)
    # Half the mean squared difference of outcomes of the two prompts, less the rest.
    between = np.mean((y[:4, None] - y[None, 4:]) ** 2) / 2
    assert (
        stability_parts.judgment + stability_parts.generation + stability_parts.prompt
        == pytest.approx(between)
    )
