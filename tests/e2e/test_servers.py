"""A judge that several servers of one's own serve: a dead one costs no judgment."""

from __future__ import annotations

from collections import Counter

import pytest

from wire import WireServer


@pytest.fixture
def second():
    with WireServer() as running:
        yield running


def urls(lab, second):
    first_server, two = (
        server.environ("compatible")["COMPATIBLE_BASE_URL"] for server in (lab.server, second)
    )
    return [first_server, two]


def entry(lab, addresses):
    return {"model": "compatible/j", "base_urls": addresses, "price": {"input": 1, "output": 1}}


WORDS = ("prompts.yaml", "--panel", "panel.yaml", "--criteria", "none")


def test_two_servers_share_the_calls_and_records_name_them(lab, second):
    lab.prompts(30)
    lab.panel(entry(lab, urls(lab, second)))
    run = lab.judged(*WORDS)
    counts = Counter(call["address"] for call in run.attempts("j"))
    assert set(counts) == {url.split("/")[2] for url in urls(lab, second)}
    assert min(counts.values()) >= 10
    assert lab.here("verify", "runs/run").code == 0
    replayed_result = lab.here("eval", "--replay", "runs/run", "--run-id", "again", "--yes")
    assert replayed_result.code == 0, replayed_result.err


def test_a_server_that_is_down_costs_no_judgment(lab, second):
    lab.prompts(30)
    first_url, two = urls(lab, second)
    lab.panel(entry(lab, ["http://127.0.0.1:9/v1", first_url, two]))
    run = lab.judged(*WORDS)
    assert run.manifest["status"] == "complete"
    assert len(run.judgments("j")) == 30


def test_where_every_server_is_down_the_run_says_so(lab):
    lab.prompts(3)
    lab.panel(entry(lab, ["http://127.0.0.1:9/v1", "http://127.0.0.1:19/v1"]))
    result = lab.here("eval", *WORDS, "--run-id", "run", "--yes")
    assert result.code == 4
    assert "connection" in result.err or "connection" in result.out


def test_the_dry_run_names_every_address(lab, second):
    lab.prompts(3)
    lab.panel(entry(lab, urls(lab, second)))
    out = lab.here("eval", *WORDS, "--dry-run").out
    assert all(url.split("/")[2] in out for url in urls(lab, second))
