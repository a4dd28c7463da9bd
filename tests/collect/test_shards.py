"""How a run is cut into shards, and how the secrets of their pages are put together again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clash.collect.shards import inputs_hash, joined_secrets, parse_shard
from clash.errors import ConfigError
from clash.records import Item, Response
from clash.store.manifest import Shard


@pytest.mark.parametrize(
    "text", ["", "1", "0/2", "3/2", "1/0", "-1/2", "1/2/3", "١/٢", "1/9999999"]
)
def test_what_is_no_shard_is_refused(text):
    with pytest.raises(ConfigError, match="is not a shard"):
        parse_shard(text)


@given(st.integers(1, 40), st.integers(1, 9))
def test_positions_of_all_shards_are_those_of_the_run(items, of):
    shards = [Shard(number=n, of=of, items=items, sha256="") for n in range(1, of + 1)]
    sizes = [len(range(items)[shard.number - 1 :: of]) for shard in shards]
    places = [s.position(i) for s, size in zip(shards, sizes, strict=True) for i in range(size)]
    assert sorted(places) == list(range(items))


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=4), st.integers(1, 30))
def test_the_joined_secret_repeats_into_those_of_the_items(words, items):
    secrets = [words[n % len(words)] for n in range(items)]
    joined_text = joined_secrets(secrets).split()
    assert [joined_text[n % len(joined_text)] for n in range(items)] == secrets
    assert len(joined_text) <= len(words)


def test_runs_without_a_secret_have_none_together():
    assert joined_secrets(["a", None]) is None
    assert joined_secrets([]) is None


def test_the_hash_sees_each_item_and_each_given_response():
    items = [Item(item_id=n, prompt=n) for n in "ab"]
    responses = [
        Response(item_id=n, candidate=c, text=n + c, source="injected") for n in "ab" for c in "xy"
    ]
    full_digest = inputs_hash(items, responses)
    by_candidate = sorted(responses, key=lambda response: response.candidate)
    assert inputs_hash(items, by_candidate) == full_digest
    changed_responses = [responses[0].model_copy(update={"text": "!"}), *responses[1:]]
    other_inputs = [
        (items, changed_responses),
        (items, responses[1:]),
        (items[:1], responses),
        (items[::-1], responses),
    ]
    assert all(inputs_hash(*alternative) != full_digest for alternative in other_inputs)
