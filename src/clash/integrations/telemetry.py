"""A run for OpenTelemetry: a span for each stage and call, an event for each evaluation.

Names follow OpenTelemetry's semantic conventions for generative AI. Where spans are sent, and with
which headers, is what the ``OTEL_*`` variables say, as for every program that speaks OTLP. What
people and models write is left out unless ``OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT``
is true; secrets are left out always.
"""

from __future__ import annotations

import json
import logging
import os
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Self

from opentelemetry._logs import SeverityNumber
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, set_span_in_context

from clash.errors import ConfigError
from clash.pipeline.options import CostCounter
from clash.providers.prices import OFFLINE
from clash.store import layout
from clash.store.folder import RunFolder
from clash.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from clash.collect.calling import PendingCall
    from clash.records import Call, Verdict
    from clash.secrets.redaction import Redactor

CONTENT_VARIABLE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_PROVIDERS = {"google": "gcp.gemini"}
"""Providers that the conventions name otherwise than clash does."""
_MOST_ATTEMPTS_KEPT = 100_000
"""Spans of responses that evaluations point to; beyond it evaluations belong to the run's span."""
_FLUSH_MS = 10_000
_NUMBERS = ("_TIMEOUT", "_DELAY", "_SIZE", "_LIMIT")
"""Ends of the names of variables that hold a number."""


def check_environment() -> None:
    """Refuse settings that no span could be sent with, before anything is made or spent.

    Raises:
        ConfigError: a number in an ``OTEL_*`` variable is none, or is out of its range.
    """
    for name, text in os.environ.items():
        if name.startswith("OTEL_") and name.endswith(_NUMBERS) and not _is_number(name, text):
            requirement = "a whole number" if name.endswith("_LIMIT") else "a number above 0"
            raise ConfigError(f"{name} is {text[:40]!r}, not {requirement}", hint=f"unset {name}")
    try:
        tracers, loggers = _exporters(Resource({}))
    except ValueError as error:  # settings that contradict each other
        raise ConfigError(
            f"the OTEL_* variables contradict each other: {error}", hint="unset those for batches"
        ) from None
    tracers.shutdown()
    loggers.shutdown()


def _is_number(name: str, text: str) -> bool:
    """Whether the value of a variable is a number in its range; an empty one is no setting."""
    try:
        if name.endswith("_LIMIT"):
            return not text.strip() or int(text) >= 0
        return not text.strip() or 0 < float(text) < float("inf")
    except ValueError:
        return False


def _exporters(resource: Resource) -> tuple[TracerProvider, LoggerProvider]:
    """Where spans and events go."""
    tracers = TracerProvider(resource=resource, shutdown_on_exit=False)
    tracers.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    loggers = LoggerProvider(resource=resource, shutdown_on_exit=False)
    loggers.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter()))
    return tracers, loggers


class Telemetry(CostCounter):
    """Sends the spans of one run while it is entered, and its evaluations at the end.

    Args:
        path: the run folder.
        redactor: removes secrets from what is sent.
        warn: is told, once, that spans cannot be delivered. They never hold up or end a run.
    """

    def __init__(self, path: Path, redactor: Redactor, warn: Callable[[str], None]) -> None:
        super().__init__()
        self._path = path
        self._redactor = redactor
        self._has_content = os.environ.get(CONTENT_VARIABLE, "").strip().lower() == "true"
        resource = Resource({"service.name": "clash", "service.version": __version__})
        resource = resource.merge(OTELResourceDetector().detect())
        self._tracers, self._loggers = _exporters(resource)
        self._tracer = self._tracers.get_tracer("clash", __version__)
        self._calls: dict[str, Span] = {}
        self._answers: dict[tuple[str, str], tuple[Span, str | None]] = {}
        self._stage: Span | None = None
        self._log = _DeliveryLog(warn)
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._stack.enter_context(self._log)
        self._run = self._tracer.start_span("clash.run", attributes={"clash.run": self._path.name})
        return self

    def __exit__(self, *_: object) -> None:
        with self._stack:
            for span in self._calls.values():  # calls that were cut off have no answer
                span.set_attribute("error.type", "cancelled")
                span.set_status(Status(StatusCode.ERROR))
                span.end()
            if self._stage is not None:
                self._stage.end()
            self._send_evaluations()
            self._run.end()
            for provider in (self._tracers, self._loggers):
                provider.force_flush(_FLUSH_MS)
                provider.shutdown()

    def stage_began(self, name: str, totals: Mapping[str, int]) -> None:
        """End the span of the stage before, and begin one."""
        if self._stage is not None:
            self._stage.end()
        attributes = {"clash.stage": name, "clash.stage.calls": sum(totals.values())}
        self._stage = self._begin(f"clash.stage {name}", self._run, attributes)

    def attempt_began(self, pending: PendingCall) -> None:
        """Begin the span of an attempt; a rule that judges without a model has none."""
        super().attempt_began(pending)
        if pending.ref.provider in OFFLINE:
            return
        attributes: dict[str, Any] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": _PROVIDERS.get(pending.ref.provider, pending.ref.provider),
            "gen_ai.request.model": pending.ref.name,
            "gen_ai.request.max_tokens": pending.request.max_tokens,
            "gen_ai.output.type": "text" if pending.request.schema is None else "json",
            "clash.purpose": pending.purpose,
            "clash.item": pending.item_id,
        }
        if pending.judge is not None:
            attributes["clash.judge"] = pending.judge
        if pending.candidate is not None:
            attributes["clash.candidate"] = pending.candidate
        if self._has_content:
            attributes |= self._content_of(pending)
        parent = self._run if self._stage is None else self._stage
        name = f"chat {pending.ref.name}"
        self._calls[pending.call_id] = self._begin(name, parent, attributes, SpanKind.CLIENT)

    def attempt_ended(self, pending: PendingCall, call: Call) -> None:
        """End the span of an attempt, with what the provider reports."""
        super().attempt_ended(pending, call)
        span = self._calls.pop(pending.call_id, None)
        if span is None:
            return
        response_id = _response_id(call)
        span.set_attributes({k: v for k, v in _outcome(call, response_id).items() if v is not None})
        if call.outcome == "error":
            span.set_attribute("error.type", call.error_class or "_OTHER")
            span.set_status(Status(StatusCode.ERROR))
        elif self._has_content and call.text is not None:
            part = {"type": "text", "content": self._redact(call.text)}
            message = {"role": "assistant", "parts": [part], "finish_reason": call.finish_reason}
            span.set_attribute("gen_ai.output.messages", json.dumps([message]))
        span.end()
        if pending.candidate is not None and len(self._answers) < _MOST_ATTEMPTS_KEPT:
            self._answers[pending.item_id, pending.candidate] = span, response_id

    def _begin(
        self,
        name: str,
        parent: Span,
        attributes: Mapping[str, Any],
        kind: SpanKind = SpanKind.INTERNAL,
    ) -> Span:
        context = set_span_in_context(parent)
        return self._tracer.start_span(
            name, context, kind, {**attributes, "clash.run": self._path.name}
        )

    def _redact(self, text: str) -> str:
        return str(self._redactor.data(text))

    def _content_of(self, pending: PendingCall) -> dict[str, str]:
        """What is asked, as the conventions write messages."""
        messages = [
            {
                "role": turn.role,
                "parts": [{"type": "text", "content": self._redact(turn.content)}],
            }
            for turn in pending.request.turns
        ]
        content = {"gen_ai.input.messages": json.dumps(messages)}
        if pending.request.system is not None:
            system = [{"type": "text", "content": self._redact(pending.request.system)}]
            content["gen_ai.system_instructions"] = json.dumps(system)
        return content

    def _send_evaluations(self) -> None:
        """An event for each response with a verdict, beside the call that the response came from."""
        if not (self._path / layout.VERDICTS).is_file():
            return
        logger = self._loggers.get_logger("clash", __version__)
        for verdict in RunFolder(self._path).verdicts():
            for candidate, label in _places(verdict):
                span, response_id = self._answers.get(
                    (verdict.item_id, candidate), (self._run, None)
                )
                attributes: dict[str, Any] = {
                    "gen_ai.evaluation.name": f"clash.{verdict.method}",
                    "gen_ai.evaluation.score.label": label,
                    "gen_ai.evaluation.score.value": verdict.scores.get(candidate),
                    "gen_ai.response.id": response_id,
                    "clash.run": self._path.name,
                    "clash.item": verdict.item_id,
                    "clash.candidate": candidate,
                }
                logger.emit(
                    event_name="gen_ai.evaluation.result",
                    severity_number=SeverityNumber.INFO,
                    context=set_span_in_context(span),
                    attributes={k: v for k, v in attributes.items() if v is not None},
                )


def _places(verdict: Verdict) -> list[tuple[str, str]]:
    """Each candidate of a verdict, and whether it came ``first``, ``tied`` for it, or ``behind``."""
    first, *later_groups = verdict.ranking or [[]]
    label = "first" if len(first) == 1 else "tied"
    return [(name, label) for name in first] + [
        (n, "behind") for group in later_groups for n in group
    ]


def _response_id(call: Call) -> str | None:
    response = call.response if isinstance(call.response, dict) else {}
    value = response.get("id") or response.get("responseId")
    return value if isinstance(value, str) else None


def _outcome(call: Call, response_id: str | None) -> dict[str, Any]:
    """Attributes of an attempt that ended; null is unknown and left out."""
    tokens = call.tokens
    return {
        "gen_ai.response.model": call.served_model,
        "gen_ai.response.id": response_id,
        "gen_ai.response.finish_reasons": None
        if call.finish_reason is None
        else [call.finish_reason],
        "gen_ai.usage.input_tokens": None if tokens is None else tokens.input,
        "gen_ai.usage.output_tokens": None if tokens is None else tokens.output,
        "gen_ai.usage.cache_read.input_tokens": None if tokens is None else tokens.cached,
        "http.response.status_code": call.status,
        "clash.attempt": call.attempt,
        "clash.outcome": call.outcome,
        "clash.cost_usd": call.cost_usd,
    }


class _DeliveryLog(logging.Handler):
    """Turns what the exporters log while it is entered into one warning."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._warn = warn
        self._has_warned = False
        self._logger = logging.getLogger("opentelemetry")

    def __enter__(self) -> Self:
        self._logger.addHandler(self)
        self._propagates, self._logger.propagate = self._logger.propagate, False
        return self

    def __exit__(self, *_: object) -> None:
        self._logger.propagate = self._propagates
        self._logger.removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Warn; the text of the record may hold addresses and headers, so it is not shown."""
        if not self._has_warned:
            self._has_warned = True
            self._warn(
                f"OpenTelemetry could not deliver some spans ({record.levelname.lower()} of "
                f"{record.name.rpartition('.')[2]}); the run goes on. "
                "fix: set OTEL_EXPORTER_OTLP_ENDPOINT to a collector that answers"
            )
