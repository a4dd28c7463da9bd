"""Quality, cost and speed: who is dominated, and what a model cost in calls, money and time."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.simulated_runs import run_data
from clash.analysis.leaderboard import standings
from clash.analysis.pareto import economies, trades
from clash.analysis.rundata import Usage
from clash.records import Response, Tokens
from store.calls import call

NAMES = ["ada", "bob", "cyd"]
ORDER = [["ada"], ["bob"], ["cyd"]]


def measured_data(costs, times):
    """Three candidates, ranked ada, bob, cyd; cost and latency of each, null where unknown."""
    data = run_data([{"x": ORDER}] * 2, NAMES)
    return replace(
        data,
        responses=tuple(
            Response(
                item_id=f"q{i}",
                candidate=name,
                text="x",
                source="generated",
                cost_usd=cost,
                latency_s=time,
            )
            for i in range(2)
            for name, cost, time in zip(NAMES, costs, times, strict=True)
        ),
    )


def dominators_of(costs, times):
    data = measured_data(costs, times)
    return {trade.candidate: trade.dominated_by for trade in trades(data, standings(data))}


def test_who_is_better_on_one_scale_and_no_worse_on_any_dominates():
    assert dominators_of([3, 2, 1], [1, 1, 1]) == {"ada": [], "bob": [], "cyd": []}
    assert dominators_of([1, 2, 2], [1, 1, 1]) == {"ada": [], "bob": ["ada"], "cyd": ["ada", "bob"]}
    assert dominators_of([2, 1, 3], [2, 3, 1]) == {"ada": [], "bob": [], "cyd": []}


def test_a_scale_that_one_of_two_lacks_does_not_compare_them():
    assert dominators_of([1, None, 2], [1, 2, None]) == {"ada": [], "bob": ["ada"], "cyd": ["ada"]}


def test_quality_alone_is_a_ranking_and_no_trade_off():
    assert dominators_of([None] * 3, [None] * 3) == {"ada": [], "bob": [], "cyd": []}


@given(*[st.lists(st.integers(0, 3), min_size=3, max_size=3)] * 2)
def test_somebody_is_always_undominated_and_nobody_dominates_itself(costs, times):
    dominators = dominators_of(costs, times)
    assert any(not by for by in dominators.values())
    for name, by in dominators.items():
        assert name not in by
        for alternative in by:
            assert name not in dominators[alternative]
            # Whoever dominates my dominator dominates me.
            assert set(dominators[alternative]) <= set(by)


# -- usage ------------------------------------------------------------------------------------------


def answer_call(**more):
    return call(**{"cost_usd": 0.5, "latency_s": 1.0, "tokens": Tokens(input=10, output=5), **more})


LOST = {"outcome": "error", "error_class": "timeout", "cost_usd": None, "cost_bound_usd": 0.9}
REFUSED = {"outcome": "error", "error_class": "rate_limit", "cost_usd": 0.0}


def economy(*calls):
    use = Usage()
    for record in calls:
        use.add(record)
    data = run_data([{"x": ORDER}], NAMES)
    (results,) = economies(replace(data, usage={("judge", "x"): use}))
    return results


def test_attempts_are_counted_apart_from_answered_calls_and_failures_by_class():
    economics = economy(
        answer_call(), answer_call(**REFUSED), answer_call(**REFUSED), answer_call(**LOST)
    )
    assert (economics.calls, economics.attempts) == (1, 4)
    assert economics.errors == {"rate_limit": 2, "timeout": 1}
    assert (economics.tokens_in, economics.tokens_out) == (10, 5)
    assert economics.cost_usd == 0.5
    assert not economics.exact  # the lost one may have been billed


def test_a_cost_is_exact_unknown_or_a_lower_bound_and_never_zero_for_unknown():
    assert (
        economy(answer_call(), answer_call()).cost_usd,
        economy(answer_call(), answer_call()).exact,
    ) == (
        1.0,
        True,
    )
    unknown = economy(answer_call(cost_usd=None))
    assert (unknown.cost_usd, unknown.exact) == (None, False)
    partly = economy(answer_call(), answer_call(cost_usd=None))
    assert (partly.cost_usd, partly.exact) == (0.5, False)
    free = economy(answer_call(cost_usd=0.0))
    assert (free.cost_usd, free.exact) == (0.0, True)


def test_latencies_are_those_of_answered_attempts():
    calls = [answer_call(latency_s=float(n)) for n in range(1, 11)]
    economics = economy(*calls, answer_call(**LOST, latency_s=120.0))
    assert economics.latency_median_s == pytest.approx(5.5)
    assert economics.latency_p90_s == 10.0
    assert economics.ttft_median_s is None
    nothing = economy(answer_call(**REFUSED))
    assert (nothing.latency_median_s, nothing.latency_p90_s) == (None, None)
