"""A run is followed by a collector of spans and by Prometheus; neither sees what people wrote."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from prometheus_client.parser import text_string_to_metric_families

PROMPTS = "prompts:\n- Which river is longest, swordfish?\n- Name 2 colours, swordfish.\n"
CANDIDATES = "openai/gpt-4o-mini,anthropic/claude-sonnet-4-5"


class Collector:
    """What an OpenTelemetry collector receives over HTTP."""

    def __init__(self):
        self.spans, self.events, self.bodies = [], [], []

    def receive(self, path, body):
        self.bodies.append(body)
        if path == "/v1/traces":
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                self.spans += [span for scope in resource.scope_spans for span in scope.spans]
        else:
            for resource in ExportLogsServiceRequest.FromString(body).resource_logs:
                self.events += [e for scope in resource.scope_logs for e in scope.log_records]


@pytest.fixture
def collector():
    collected = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            collected.receive(self.path, self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    collected.url = f"http://127.0.0.1:{server.server_port}"
    yield collected
    server.shutdown()
    server.server_close()


def attributes(record):
    return {pair.key: _value(pair.value) for pair in record.attributes}


def _value(value):
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(part) for part in value.array_value.values]
    return getattr(value, kind)


@pytest.fixture
def words(lab):
    (lab.path / "prompts.yaml").write_text(PROMPTS)
    lab.panel("google/gemini-2.5-flash", "openai/gpt-4o")
    return "prompts.yaml", "--models", CANDIDATES, "--panel", "panel.yaml"


def test_each_attempt_is_a_span_and_each_judged_response_an_event(lab, words, collector):
    lab.judged(*words, "--otel", "--metrics", "m.prom", OTEL_EXPORTER_OTLP_ENDPOINT=collector.url)
    calls = [
        json.loads(line)
        for line in (lab.path / "runs" / "run" / "calls.jsonl").read_text().splitlines()
    ]
    chats = [span for span in collector.spans if span.name.startswith("chat ")]
    assert len(chats) == len([call for call in calls if "outcome" in call])
    stages = {span.span_id for span in collector.spans if span.name.startswith("clash.stage")}
    (root,) = [span for span in collector.spans if span.name == "clash.run"]
    assert {span.parent_span_id for span in chats} <= stages
    assert {s.parent_span_id for s in collector.spans if s.span_id in stages} == {root.span_id}
    chat = next(s for s in chats if attributes(s)["clash.purpose"] == "judge")
    facts = attributes(chat)
    assert facts["gen_ai.operation.name"] == "chat"
    assert facts["gen_ai.provider.name"] in {"openai", "gcp.gemini"}
    assert facts["gen_ai.usage.input_tokens"] > 0
    assert chat.name == f"chat {facts['gen_ai.request.model']}"
    answers = {s.span_id for s in chats if attributes(s)["clash.purpose"] == "generate"}
    assert len(collector.events) == 4  # two items, two candidates
    assert {event.span_id for event in collector.events} == answers
    assert {event.event_name for event in collector.events} == {"gen_ai.evaluation.result"}
    assert not any(b"swordfish" in body for body in collector.bodies)

    metrics = text_string_to_metric_families((lab.path / "m.prom").read_text())
    samples = {(s.name, *sorted(s.labels.items())): s.value for f in metrics for s in f.samples}
    assert samples["clash_run_ended",] == 1
    assert sum(v for k, v in samples.items() if k[0] == "clash_calls_total") == len(chats)
    n_done = samples["clash_stage_done", ("failed", "false"), ("stage", "judgments")]
    assert n_done == samples["clash_stage_work", ("stage", "judgments")] > 0


def test_texts_are_sent_only_where_they_are_asked_for_and_without_secrets(lab, words, collector):
    key = lab.environ["OPENAI_API_KEY"]
    (lab.path / "prompts.yaml").write_text(f"prompts:\n- Say swordfish and {key}\n")
    lab.judged(
        *words,
        "--otel",
        OTEL_EXPORTER_OTLP_ENDPOINT=collector.url,
        OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT="true",
    )
    assert any(b"swordfish" in body for body in collector.bodies)
    assert not any(key.encode() in body for body in collector.bodies)


def test_a_collector_that_is_not_there_neither_ends_nor_changes_a_run(lab, words):
    run = lab.here(
        "eval", *words, "--run-id", "run", "--yes", "--otel",
        OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9", OTEL_EXPORTER_OTLP_TIMEOUT="1",
    )  # fmt: skip
    assert run.code == 0
    assert run.err.count("OpenTelemetry could not deliver") == 1
    assert "Traceback" not in run.err
    assert lab.here("verify", "runs/run").code == 0


@pytest.mark.parametrize(
    ("flags", "environ", "message"),
    [
        (("--metrics", "no/such/m.prom"), {}, "no/such/m.prom: no/such is no folder"),
        (("--metrics", "."), {}, ".: is a folder"),
        (("--otel",), {"OTEL_BSP_SCHEDULE_DELAY": "soon"}, "DELAY is 'soon', not a number"),
        (("--otel",), {"OTEL_EXPORTER_OTLP_TIMEOUT": "nan"}, "TIMEOUT is 'nan', not a number"),
        (("--otel",), {"OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT": "-1"}, "is '-1', not a whole number"),
        (("--otel",), {"OTEL_BSP_MAX_QUEUE_SIZE": "3"}, "contradict each other"),
    ],
)
def test_what_nobody_could_watch_with_is_refused_before_there_is_a_run(
    lab, words, flags, environ, message
):
    result = lab.here("eval", *words, "--run-id", "run", "--yes", *flags, **environ)
    assert result.code == 2
    assert message in result.err
    assert "fix: " in result.err
    assert "Traceback" not in result.err
    assert not lab.server.calls
    assert not (lab.path / "runs").exists()
