"""Usage that cannot be true is unknown: whatever a server says, the money it can claim is bounded."""

from __future__ import annotations

import json
import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clash.config import ModelRef, TokenPrice
from clash.providers import prices, usage
from clash.providers.base import Reply, Request
from clash.providers.payload import clean, count, money
from clash.records import Tokens, Turn

PRICE = TokenPrice(input=1, output=10)
PRICED = ModelRef(model="compatible/m", price=PRICE)
UNPRICED = ModelRef(model="compatible/m")
REQUEST = Request(turns=(Turn(role="user", content="How much? " * 20),), max_tokens=100)
FIELDS = ("input", "output", "cached", "reasoning")
ANY_COUNT = st.none() | st.integers(0, 5000) | st.integers(0, 10**400)


def reply(tokens=None, response=None, **more):
    plain = {"text": "x", "outcome": "ok", "request": {}}
    return Reply(**plain, response=response, tokens=tokens or Tokens(), **more)


@pytest.mark.parametrize(
    ("tokens", "usable_tokens", "reason"),
    [
        (Tokens(input=10**30, output=5), Tokens(output=5), "about 10\\^30 input tokens"),
        (Tokens(input=10**400, output=5), Tokens(output=5), "about 10\\^400 input tokens"),
        (Tokens(input=5, output=101), Tokens(input=5), "101 output tokens, where the cap is 100"),
        (Tokens(input=5000, output=500), Tokens(), "5,000 input tokens.*; 500 output tokens"),
    ],
)
def test_counts_above_what_was_sent_or_capped_are_unknown_and_so_is_the_cost(
    tokens, usable_tokens, reason
):
    cost = usage.charge(PRICED, REQUEST, reply(tokens))
    assert cost.cost is None
    assert cost.tokens == usable_tokens
    assert cost.doubt is not None
    assert re.search(reason, cost.doubt)


@pytest.mark.parametrize(
    ("tokens", "usable_tokens", "reason"),
    [
        (Tokens(input=0, output=5), Tokens(output=5), "0 input tokens"),
        (Tokens(input=5, output=0), Tokens(input=5), "0 output tokens for an answer of 1 char"),
    ],
)
def test_counts_of_nothing_would_never_spend_a_budget_and_are_unknown(
    tokens, usable_tokens, reason
):
    cost = usage.charge(PRICED, REQUEST, reply(tokens))
    assert (cost.cost, cost.tokens) == (None, usable_tokens)
    assert reason in (cost.doubt or "")


def test_a_model_that_is_free_may_count_nothing():
    free = ModelRef(model="compatible/m", price=TokenPrice(input=0, output=0))
    cost = usage.charge(free, REQUEST, reply(Tokens(input=0, output=0)))
    assert (cost.doubt, cost.cost.usd) == (None, 0)


@pytest.mark.parametrize("value", [-1, 12.5, "12", True, "many", -math.inf])
def test_what_is_no_count_is_named(value):
    raw = {"usage": {"prompt_tokens": 5, "completion_tokens": value}}
    cost = usage.charge(PRICED, REQUEST, reply(Tokens(input=5), raw))
    assert cost.cost is None
    assert "completion_tokens is" in (cost.doubt or "")


@pytest.mark.parametrize("cost", [-0.5, True, "free"])
def test_a_cost_that_is_none_is_named_and_not_replaced_by_another(cost):
    raw = {"usage": {"prompt_tokens": 5, "completion_tokens": 5, "cost": cost}}
    charged = usage.charge(PRICED, REQUEST, reply(Tokens(input=5, output=5), raw))
    assert charged.cost is None
    assert "cost is" in (charged.doubt or "")


def test_what_servers_send_beside_counts_is_no_reason_for_doubt():
    raw = {
        "usage": {
            "prompt_tokens": 5,
            "completion_tokens": 5.0,
            "total_time": 0.25,
            "service_tier": "standard",
            "is_byok": False,
            "prompt_tokens_details": {"cached_tokens": None, "audio_tokens": 0},
            "server_tool_use": None,
        }
    }
    cost = usage.charge(PRICED, REQUEST, reply(Tokens(input=5, output=5), raw))
    assert cost.doubt is None
    assert cost.cost is not None


@pytest.mark.parametrize("cost", [1000.0, 1e300])
@pytest.mark.parametrize("ref", [PRICED, UNPRICED], ids=["priced", "unpriced"])
def test_a_reported_cost_is_bounded_with_and_without_a_known_price(ref, cost):
    charged = usage.charge(ref, REQUEST, reply(Tokens(input=5, output=5), cost_usd=cost))
    assert charged.cost is None
    assert "a cost of $" in (charged.doubt or "")


def test_a_reported_cost_may_be_above_an_old_list_price():
    worst = float(prices.worst_case(PRICED, REQUEST).usd)
    cost = usage.charge(PRICED, REQUEST, reply(cost_usd=3 * worst))
    assert (cost.doubt, cost.cost.source) == (None, "reported")


def test_a_replay_keeps_its_counts_and_costs_nothing():
    ref = ModelRef(model="replay/openai/gpt-4o-mini")
    cost = usage.charge(ref, REQUEST, reply(Tokens(input=10**6, output=10**6), cost_usd=0.0))
    assert (cost.cost.usd, cost.tokens.input, cost.doubt) == (0, 10**6, None)


@given(
    st.builds(Tokens, **dict.fromkeys(FIELDS, ANY_COUNT)),
    st.none() | st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(
        [
            PRICED,
            UNPRICED,
            ModelRef(model="openai/gpt-4o-mini"),
            ModelRef(model="google/gemini-2.5-pro"),
        ]
    ),
)
def test_whatever_is_reported_the_charge_is_bounded_and_can_be_written(tokens, cost, ref):
    charged = usage.charge(ref, REQUEST, reply(tokens, cost_usd=cost))
    if charged.cost is not None:
        worst = prices.worst_case(ref, REQUEST)
        most = worst.usd * usage.MOST_OVER_LIST if worst else 6
        assert 0 <= charged.cost.usd <= most
    for field in FIELDS:
        value = getattr(charged.tokens, field)
        if charged.doubt is not None:
            assert value is None or value <= prices.input_bound(REQUEST)
    assert json.loads(json.dumps(charged.doubt)) == charged.doubt


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists))
def test_no_value_on_the_wire_breaks_the_readers_of_counts_and_amounts(value):
    number, amount = count(value), money(value)
    assert number is None or number >= 0
    assert amount is None or math.isfinite(amount)
    clean(value)


@pytest.mark.parametrize("value", [10**400, -(10**400)])
def test_integers_beyond_every_float_are_no_amounts(value):
    assert money(value) is None
    assert count(value) in (None, 10**400)
