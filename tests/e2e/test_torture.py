"""``clash doctor --torture`` against servers that keep to the rules, and servers that do not."""

from __future__ import annotations

import http.server
import json
import threading
from contextlib import contextmanager

import pytest

from wire import faults

SEA = "The sea is a large body of salt water, and its tides follow the moon. " * 20


def obliging(request) -> str:
    """A model that does what it is told, as far as the probes tell it."""
    if request.schema is not None:
        return json.dumps({"colour": "red", "count": 1})
    if "exactly this JSON object" in request.prompt:
        return request.prompt.rpartition("nothing else: ")[2]
    return SEA if "Count from" in request.prompt else "here"


@pytest.fixture
def torture(lab):
    """The findings on one model of the server, by probe."""

    def run(model="honest", code=0, **conduct):
        lab.server.conduct(model, **{"answer": obliging, **conduct})
        lab.server.misbehave(faults.not_found(), model=f"{model}-no-such-model", times=9)
        url = lab.environ["COMPATIBLE_BASE_URL"]
        result = lab.here("doctor", "--torture", url, "--models", f"compatible/{model}", "--json")
        assert result.code == code, (result.out, result.err)
        rows = result.json["findings"]
        return {row["subject"].rpartition(": ")[2]: row for row in rows}

    return run


def test_a_gateway_that_keeps_to_the_rules_passes(torture):
    outcomes = torture()
    assert {row["level"] for row in outcomes.values()} == {"ok"}, outcomes
    assert len(outcomes) == 11


@pytest.mark.parametrize(
    ("probe", "level", "conduct"),
    [
        ("JSON Schema", "warn", {"answer": lambda request: "The sea is blue."}),
        ("JSON Schema", "note", {"refuses": ("json_schema",)}),
        ("code in words", "warn", {"answer": lambda request: '{"colour": "red", "count": 1}'}),
        ("usage", "warn", {"usage": False}),
        ("usage", "bad", {"reports": {"prompt_tokens": 10**9, "completion_tokens": 5}}),
        ("usage", "bad", {"reports": {"prompt_tokens": 12, "completion_tokens": 5}}),
        ("usage", "bad", {"reports": {"prompt_tokens": 900, "completion_tokens": 10**6}}),
        ("model served", "bad", {"served": "cheap-7b"}),
        ("model served", "bad", {"served": "cheat-distill-1.5b"}),
        ("cap on tokens", "bad", {"capped": False}),
        (
            "cap on tokens",
            "warn",
            {
                "answer": lambda request: (
                    "one, two" if "Count" in request.prompt else obliging(request)
                )
            },
        ),
        (
            "refusals",
            "bad",
            {"answer": lambda request: "" if "Refuse" in request.prompt else obliging(request)},
        ),
    ],
)
def test_each_way_of_cheating_is_seen(torture, probe, level, conduct):
    outcomes = torture("cheat", code=1 if level == "bad" else 0, **conduct)
    assert outcomes[probe]["level"] == level, outcomes[probe]
    assert outcomes[probe]["says"]


def test_a_gateway_that_answers_for_any_name_is_seen(lab):
    lab.server.conduct("any", answer=obliging)
    url = lab.environ["COMPATIBLE_BASE_URL"]
    result = lab.here("doctor", "--torture", url, "--models", "compatible/any", "--json")
    (row,) = [r for r in result.json["findings"] if r["subject"].endswith("unknown model")]
    assert row["level"] == "bad"
    assert "does not exist" in row["says"]


def test_a_dated_form_of_a_name_is_the_same_model(torture):
    assert torture("gpt-9", served="gpt-9-2026-05-01")["model served"]["level"] == "ok"


def test_a_gateway_that_does_not_answer_is_asked_no_more(lab, torture):
    lab.server.misbehave(faults.unauthorized(), model="down", times=99)
    outcomes = torture("down", code=1)
    assert list(outcomes) == ["answers"]
    assert "auth" in outcomes["answers"]["says"]


def test_a_key_is_not_printed(lab, torture):
    lab.server.conduct("honest", answer=obliging)
    result = lab.here(
        "doctor", "--torture", lab.environ["COMPATIBLE_BASE_URL"], "--models", "compatible/honest"
    )
    key = lab.environ["COMPATIBLE_API_KEY"]
    assert key not in result.out + result.err


class _Listing(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = json.dumps({"data": [{"id": "beta"}, {"id": "alpha"}]}).encode()
        self.send_response(200 if self.path == "/v1/models" else 404)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        self.send_response(404)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


@contextmanager
def listing():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Listing)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def test_without_a_name_the_first_listed_model_is_tried(lab):
    with listing() as address:
        result = lab.here("doctor", "--torture", f"{address}/v1", "--json")
        assert result.code == 1
        assert [row["subject"] for row in result.json["findings"]] == ["compatible/alpha: answers"]
        refused_result = lab.here("doctor", "--torture", f"{address}/v2", "--json")
    assert refused_result.code == 2
    assert "lists no models" in refused_result.json["error"]["message"]


def test_a_panel_is_tried_model_by_model_and_baselines_are_not(lab):
    lab.server.conduct("one", answer=obliging)
    lab.panel("compatible/one", "baseline/longest", "openai/two")
    result = lab.here("doctor", "--torture", "panel.yaml", "--json")
    models = {row["subject"].rpartition(": ")[0] for row in result.json["findings"]}
    assert models == {"compatible/one", "openai/two"}
