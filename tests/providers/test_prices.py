"""What calls cost, against sums made by hand."""

from __future__ import annotations

from decimal import Decimal

import pytest
from genai_prices import Usage
from genai_prices.data_snapshot import get_snapshot
from hypothesis import given, settings
from hypothesis import strategies as st

from clash.config import ModelRef, Options, TokenPrice
from clash.providers import prices
from clash.providers.base import Reply, Request
from clash.records import Tokens, Turn

PATIENT = settings(deadline=None, max_examples=60)  # a busy machine is no failure
USD = Decimal


def ref(model, **more):
    return ModelRef(model=model, **more)


def reply(tokens=None, response=None, **more):
    plain = {"text": "x", "outcome": "ok", "request": {}}
    return Reply(**plain, response=response, tokens=tokens or Tokens(), **more)


def request(text="x" * 1000, max_tokens=100, **more):
    return Request(turns=(Turn(role="user", content=text),), max_tokens=max_tokens, **more)


PRICE = TokenPrice(input=0.15, output=0.60)


@pytest.mark.parametrize(
    ("model", "tokens", "usd"),
    [
        # USD per million tokens: 0.15 and 0.60
        ("openai/gpt-4o-mini", Tokens(input=1_000_000, output=1_000_000), "0.75"),
        # 1000 of the input from the cache at 0.075: 1000*0.15 + 1000*0.075 + 500*0.6
        ("openai/gpt-4o-mini", Tokens(input=2000, output=500, cached=1000), "0.000525"),
        # 5 and 25
        ("anthropic/claude-opus-4-5", Tokens(input=1000, output=1000), "0.03"),
        # 1.25 and 10 up to 200 000 tokens of input, 2.5 and 15 above
        ("google/gemini-2.5-pro", Tokens(input=200_000, output=1000), "0.26"),
        ("google/gemini-2.5-pro", Tokens(input=200_001, output=1000), "0.5150025"),
        # 21 and 168, by OpenRouter's id
        ("openrouter/openai/gpt-5.2-pro", Tokens(input=1000, output=1000), "0.189"),
    ],
)
def test_costs_from_the_table(model, tokens, usd):
    actual_usd = prices.cost(ref(model), reply(tokens))
    assert actual_usd.usd == USD(usd)
    assert actual_usd.source.startswith("genai-prices ")


def test_reported_beats_the_users_price_and_that_beats_the_table():
    tokens = Tokens(input=1_000_000, output=1_000_000)
    model_ref = ref("openai/gpt-4o-mini", price=TokenPrice(input=1, output=2))
    assert prices.cost(model_ref, reply(tokens, cost_usd=0.1)) == prices.Cost(
        USD("0.1"), "reported"
    )
    assert prices.cost(model_ref, reply(tokens)) == prices.Cost(USD(3), "config")


def test_the_users_price_is_meant_in_decimals():
    """0.15 is not the binary fraction beside it, a million times."""
    usd = prices.cost(ref("compatible/m", price=PRICE), reply(Tokens(input=3, output=7)))
    assert usd.usd == USD("0.00000465")


def test_tokens_written_to_a_cache_cost_more():
    """gpt-6-luna: 0.10 plain, 0.125 written to the cache, 0.5 out."""
    raw = {"usage": {"prompt_tokens_details": {"cache_write_tokens": 600_000}}}
    tokens = Tokens(input=1_000_000, output=0)
    usd = prices.cost(ref("openai/gpt-6-luna"), reply(tokens, raw))
    plain = prices.cost(ref("openai/gpt-6-luna"), reply(tokens))
    assert usd.usd / plain.usd == USD("1.15")


def test_anthropics_cache_writes_are_found_too():
    raw = {"usage": {"cache_creation_input_tokens": 1000}}
    usd = prices.cost(ref("anthropic/claude-opus-4-5"), reply(Tokens(input=1000, output=0), raw))
    assert usd.usd == USD("0.00625")


@pytest.mark.parametrize(
    "tokens",
    [
        Tokens(),
        Tokens(input=5),
        Tokens(output=5),
        Tokens(input=10, output=5, cached=50),  # more from the cache than there was
    ],
)
def test_counts_that_are_missing_or_contradict_each_other_make_an_unknown_cost(tokens):
    assert prices.cost(ref("openai/gpt-4o-mini"), reply(tokens)) is None


@pytest.mark.parametrize("model", ["openai/no-such-model", "compatible/llama3"])
def test_an_unknown_price_is_not_zero(model):
    tokens = Tokens(input=5, output=5)
    assert prices.cost(ref(model), reply(tokens)) is None
    assert prices.worst_case(ref(model), request()) is None
    assert prices.expected_cost(ref(model), request()) is None
    assert not prices.has_price(ref(model))


def test_a_local_server_is_free_only_where_the_user_says_so():
    local_url = "http://127.0.0.1:11434/v1"
    assert (
        prices.cost(ref("compatible/m", base_url=local_url), reply(Tokens(input=1, output=1)))
        is None
    )
    free = ref("compatible/m", base_url=local_url, price=TokenPrice(input=0, output=0))
    assert prices.cost(free, reply(Tokens(input=1, output=1))) == prices.Cost(USD(0), "config")
    assert prices.worst_case(free, request()).usd == 0


def test_a_compatible_server_that_the_table_knows_has_its_price():
    groq = ref("compatible/llama-3.1-8b-instant", base_url="https://api.groq.com/openai/v1")
    assert prices.has_price(groq)


@pytest.mark.parametrize("model", ["baseline/longest", "replay/openai/gpt-4o-mini"])
def test_what_makes_no_call_costs_nothing(model):
    assert prices.cost(ref(model), reply()) == prices.Cost(USD(0), "offline")
    assert prices.worst_case(ref(model), request()).usd == 0
    assert prices.expected_cost(ref(model), request()).usd == 0


def test_a_model_by_another_name_is_priced_by_the_name_that_answered():
    tokens = Tokens(input=1_000_000, output=0)
    usd = prices.cost(ref("openai/our-alias"), reply(tokens, served_model="gpt-4o-mini"))
    assert usd.usd == USD("0.15")


# -- the most that a call can cost -----------------------------------------------------------------


def test_the_worst_case_by_hand():
    """1000 bytes, two turns' and the call's overhead, all output: at 1 and 2 dollars."""
    model_ref = ref("compatible/m", price=TokenPrice(input=1, output=2))
    tokens_in = 1000 + 2 * 32 + 1024
    assert prices.worst_case(model_ref, request()).usd == (USD(tokens_in) + 2 * 100) / 1_000_000


@pytest.mark.parametrize("text", ["word " * 200, "日本語" * 100, "🙂" * 50, "\ud83d", ""])
def test_a_text_has_no_more_tokens_than_bytes(text):
    size = len(text.encode("utf-8", "replace"))
    bound = prices.input_bound(request(text))
    assert bound >= size + 1024
    assert prices.input_estimate(request(text)) <= bound


def test_a_schema_and_extra_fields_are_input_too():
    plain = prices.input_bound(request())
    assert prices.input_bound(request(schema={"description": "y" * 500})) > plain + 500
    assert prices.input_bound(request(options=Options(extra={"tool": "y" * 500}))) > plain + 500


def test_long_prompts_are_bounded_at_the_dearest_tier_that_they_may_reach():
    """gemini-2.5-pro above 200 000 tokens of input: 2.50 and 15."""
    bound_usd = prices.worst_case(ref("google/gemini-2.5-pro"), request("x" * 200_000, 1000))
    tokens = 200_000 + 2 * 32 + 1024
    assert bound_usd.usd == (USD("2.5") * tokens + 15 * 1000) / 1_000_000
    short = prices.worst_case(ref("google/gemini-2.5-pro"), request("x" * 1000, 1000))
    assert short.usd == (USD("1.25") * (1000 + 64 + 1024) + 10 * 1000) / 1_000_000


@pytest.mark.parametrize("tokens", [199_999, 200_000, 200_001, 200_002])
def test_the_bound_enters_a_tier_at_the_token_at_which_the_vendor_does(tokens):
    """gemini-2.5-pro at as many tokens as the bound allows: what genai-prices asks for them."""
    sent_request = request("x" * (tokens - 2 * 32 - 1024), 1000)
    assert prices.input_bound(sent_request) == tokens
    usd = prices.cost(ref("google/gemini-2.5-pro"), reply(Tokens(input=tokens, output=1000)))
    assert prices.worst_case(ref("google/gemini-2.5-pro"), sent_request).usd == usd.usd


def test_input_may_be_billed_as_a_cache_write():
    """gpt-6-luna: 0.125 and not 0.10."""
    bound_usd = prices.worst_case(ref("openai/gpt-6-luna"), request("x" * 1000, 16))
    assert bound_usd.usd == (USD("0.125") * (1000 + 64 + 1024) + USD("0.5") * 16) / 1_000_000


MODELS = (
    "openai/gpt-4o-mini",
    "openai/gpt-6-luna",
    "openai/gpt-6-astra",
    "anthropic/claude-opus-4-5",
    "google/gemini-2.5-pro",
    "openrouter/anthropic/claude-opus-4.5",
)


@PATIENT
@given(
    model=st.sampled_from(MODELS),
    size=st.integers(0, 300_000),
    cap=st.integers(1, 100_000),
    share_in=st.floats(0, 1),
    share_out=st.floats(0, 1),
    share_cached=st.floats(0, 1),
)
def test_no_reply_costs_more_than_the_worst_case(
    model, size, cap, share_in, share_out, share_cached
):
    sent_request = request("x" * size, cap)
    tokens_in = int(share_in * prices.input_bound(sent_request))
    n_written = int(share_cached * tokens_in)
    raw = {"usage": {"prompt_tokens_details": {"cache_write_tokens": n_written}}}
    reply_with_tokens = reply(Tokens(input=tokens_in, output=int(share_out * cap)), raw)
    usd = prices.cost(ref(model), reply_with_tokens) or prices.cost(
        ref(model), reply(Tokens(input=tokens_in, output=int(share_out * cap)))
    )
    assert usd.usd <= prices.worst_case(ref(model), sent_request).usd


@pytest.mark.parametrize("model", MODELS)
def test_the_expected_cost_lies_below_the_worst(model):
    sent_request = request("word " * 2000, 1000)
    assert (
        0
        < prices.expected_cost(ref(model), sent_request).usd
        < prices.worst_case(ref(model), sent_request).usd
    )
    few, many = (prices.expected_cost(ref(model), sent_request, output=n).usd for n in (10, 1000))
    assert few < many


def test_importing_the_module_does_not_import_the_table():
    """The table takes a second to import, and many commands need no price."""
    import subprocess
    import sys

    code = "import sys; import clash.providers.prices; print('genai_prices' in sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "False"


@pytest.mark.parametrize(
    "model", ["openai/gpt-6-luna", "anthropic/claude-haiku-5-5", "google/gemini-3.8-flash"]
)
def test_a_batch_costs_half_of_the_table_and_half_of_what_the_user_says(model):
    request = Request(turns=(Turn(role="user", content="word " * 200),), max_tokens=100)
    reply = Reply(
        text="", outcome="ok", request={}, response={}, tokens=Tokens(input=1000, output=50)
    )
    own_price = {"price": {"input": 3, "output": 7}}
    for ref in (ModelRef(model=model), ModelRef(model=model, **own_price)):
        for price_of in (prices.worst_case, prices.expected_cost):
            live, batch = price_of(ref, request), price_of(ref, request, batch=True)
            assert batch.usd * 2 == live.usd > 0
        live, batch = prices.cost(ref, reply), prices.cost(ref, reply, batch=True)
        assert batch.usd * 2 == live.usd > 0
        assert batch.source != live.source
        assert "batch" in batch.source


def test_a_batch_of_a_model_without_a_batch_price_is_at_its_full_price():
    """The table knows of no discount, so none is counted on."""
    ref = ModelRef(model="openai/gpt-4o-search-preview")
    request = Request(turns=(Turn(role="user", content="?"),), max_tokens=100)
    assert prices.worst_case(ref, request, batch=True).usd == prices.worst_case(ref, request).usd


@pytest.mark.parametrize("tokens", [123_457, 200_000, 200_001, 272_000, 272_001])
def test_the_plain_sum_is_the_tables_own_for_every_model_whose_rates_rise(tokens):
    usage = Usage(input_tokens=tokens, output_tokens=7_919)
    n_plain = n_tiers = 0
    for provider in get_snapshot().providers:
        for model in provider.models:
            price = prices.rates(model, None)[0]
            if price.is_plain:
                n_plain += 1
                n_tiers += not isinstance(price.input, Decimal)
                own_total_price = model.calc_price(usage, provider).total_price
                assert prices.plain_sum(price, tokens, 7_919) == own_total_price, (
                    provider.id,
                    model.id,
                )
    assert n_plain > 300
    assert n_tiers > 20
