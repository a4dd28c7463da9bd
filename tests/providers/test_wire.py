"""The loopback server does what the tests that stand on it believe."""

from __future__ import annotations

import itertools
import json
import urllib.error
import urllib.request

import pytest

from clash.providers.ladder import in_words
from wire import VendorRequest, WireServer, criteria, deterministic, faults, judge
from wire.asking import SCHEMA

TEXTS = ("The sky is blue.", "The sky is green.", "It depends on the hour.")


def asked(texts, *, model="m", schema=None, system=""):
    labels = [f"A{n}" for n in range(len(texts))]
    pages = [
        f'<response label="{label}" nonce="abc">\n{text}\n</response nonce="abc">'
        for label, text in zip(labels, texts, strict=True)
    ]
    group = {"type": "array", "items": {"type": "string", "enum": labels}}
    score = {"type": "integer", "enum": [1, 2, 3, 4, 5]}
    row = {
        "type": "object",
        "properties": {"C1": {"type": "object", "properties": {"score": score}}},
    }
    wanted_formats = {
        "type": "object",
        "properties": {
            "scores": {"type": "object", "properties": dict.fromkeys(labels, row)},
            "ranking": {"type": "array", "items": group},
        },
    }
    turns = [("user", "\n\n".join(pages))]
    native = wanted_formats if schema is None else None
    return VendorRequest(
        "openai", "chat", model, system, turns, native, True, 500, False, False, {}
    )


def order(texts, **more):
    record = json.loads(judge(asked(texts, **more)))
    return [texts[int(group[0][1:])] for group in record["ranking"]]


def test_a_verdict_depends_on_the_text_and_never_on_label_or_order():
    orders = {tuple(order(permuted_rows)) for permuted_rows in itertools.permutations(TEXTS)}
    assert len(orders) == 1


def test_judges_differ_now_and_then():
    pairs = [(f"first {n}", f"second {n}") for n in range(200)]
    first_orders, other_orders = (
        [order(pair, model=name)[0] for pair in pairs] for name in ("m1", "m2")
    )
    agreement = sum(a == b for a, b in zip(first_orders, other_orders, strict=True)) / len(pairs)
    assert 0.6 < agreement < 0.95


def test_scores_follow_the_ranking():
    record = json.loads(judge(asked(TEXTS)))
    scores = [record["scores"][group[0]]["C1"]["score"] for group in record["ranking"]]
    assert scores == [5, 4, 3]


def test_a_schema_in_the_prompt_is_as_good_as_one_beside_it():
    request = asked(TEXTS[:2], schema=False, system=in_words(SCHEMA))
    assert sorted(json.loads(deterministic(request))["ranking"]) == [["A0"], ["A1"]]


def test_criteria_add_up():
    rows = json.loads(criteria(asked(())))["criteria"]
    assert sum(row["weight"] for row in rows) == 100
    assert len({row["name"] for row in rows}) == 4


def post(server, body, key=None):
    key = server.keys["openai"] if key is None else key
    request = urllib.request.Request(
        server.base_url("openai") + "/chat/completions",
        data=json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {key}"},
    )
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        with error:
            return error.code


BODY = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


def test_the_journal_counts_what_was_paid_and_what_was_paid_twice(server):
    server.misbehave(faults.server_error(), model="m")
    assert [post(server, BODY) for _ in range(3)] == [500, 200, 200]
    assert (server.count(), server.count(is_paid=True)) == (3, 2)
    assert server.count(model="other") == 0
    assert len(server.paid_twice()) == 1


def test_faults_come_when_they_are_ordered(server):
    server.misbehave(faults.server_error(), nth=2)
    server.misbehave(faults.rate_limit(), every=3)
    assert [post(server, BODY) for _ in range(6)] == [200, 500, 200, 429, 200, 200]


def test_a_wrong_key_is_refused(server):
    assert post(server, BODY, key="sk-wrong") == 401
    assert not server.count(is_paid=True)


def test_each_account_has_a_rate_of_its_own():
    server = WireServer(per_second=5)
    refusals = {vendor: [server.refusal_s(vendor) for _ in range(7)] for vendor in ("a", "b")}
    for waits in refusals.values():
        assert waits[:5] == [None] * 5
        assert None not in waits[5:]


def test_another_answer_may_be_plugged_in():
    with WireServer(answer=lambda request: f"to {request.model}") as other_server:
        assert post(other_server, BODY) == 200
        assert other_server.calls[0].text == "to m"


@pytest.mark.parametrize("vendor", ["openai", "anthropic", "google", "openrouter", "compatible"])
def test_every_vendor_has_a_key_and_an_address(server, vendor):
    environ = server.environ(vendor)
    assert len(environ) == 2
    assert server.base_url(vendor) in environ.values()
