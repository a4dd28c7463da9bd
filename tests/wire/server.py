"""The loopback server: HTTP/1.1 by hand, so that it can break its rules."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from wire import faults, vendors
from wire.answers import deterministic
from wire.batches import Batches, is_batch
from wire.vendors import PREFIXES, VendorReply, VendorRequest

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Mapping

    from wire.faults import Fault

KEYS = {
    "openai": "sk-proj-wire0openai0123456789",
    "anthropic": "sk-ant-wire0anthropic0123456789",
    "google": "AIzaWire0google0123456789abcdefghijk",
    "openrouter": "sk-or-v1-wire0openrouter0123456789",
    "compatible": "wire0compatible0123456789",
}
_ENVIRON = {
    "openai": ("OPENAI_API_KEY", "OPENAI_BASE_URL"),
    "anthropic": ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"),
    "google": ("GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL"),
    "openrouter": ("OPENROUTER_API_KEY", "OPENROUTER_BASE_URL"),
    "compatible": ("COMPATIBLE_API_KEY", "COMPATIBLE_BASE_URL"),
}
_REASONS = {200: "OK", 204: "No Content", 307: "Temporary Redirect", 404: "Not Found"}


@dataclass
class ServedRequest:
    """One request, and what became of it.

    Attributes:
        n: its number, from 1.
        headers: with names in lower case.
        status: what was answered; null while it is not, or where the line was reset.
        fault: the misbehaviour that was played.
        paid: a provider would bill for it.
    """

    n: int
    vendor: str
    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    model: str = ""
    status: int | None = None
    fault: str | None = None
    paid: bool = False
    text: str | None = None


@dataclass(frozen=True)
class Conduct:
    """How a model always behaves.

    Attributes:
        refuses: fields of the request that it answers with a 400; ``json_schema`` and
            ``json_object`` stand for those forms of structured output.
        refusal_status: or with another status.
        usage: it counts tokens.
        reports: replaces the usage object of the wire, as it stands.
        served: the model that it says has answered.
        latency_s: replaces the server's.
        cost: what OpenRouter says it cost, in dollars.
        responses_only: it refuses chat completions.
        capped: it cuts its answer at the cap on tokens, and says so.
        answer: replaces the server's answering function.
    """

    refuses: tuple[str, ...] = ()
    refusal_status: int = 400
    usage: bool = True
    reports: Any = None
    served: str | None = None
    latency_s: float | None = None
    cost: float | None = 0.0001
    responses_only: bool = False
    capped: bool = True
    answer: Callable[[VendorRequest], str] | None = None


@dataclass
class _Order:
    fault: Fault
    model: str | None
    vendor: str | None
    times: float
    nth: int | None
    every: int | None
    matched: int = 0


@dataclass
class Allowance:
    """Requests a second of an account, enforced as vendors do: a bucket that fills up, and a 429 where
    it is empty.

    Attributes:
        per_second: how fast it fills; it holds a second's worth.
        refused: requests that it refused, and ``avoidable`` those of a client that had been told to
            wait longer.
    """

    per_second: float
    refused: int = 0
    avoidable: int = 0
    _empty_at: float = 0.0
    _told: float = 0.0
    _closed_until: float = 0.0

    def refusal_s(self) -> float | None:
        """Take a request out; where none is left, the seconds after which there is."""
        now = time.monotonic()
        # It holds what has come together since it was empty, at most a second's worth.
        next_free_at = max(self._empty_at, now - 1) + 1 / self.per_second
        if next_free_at <= now:
            self._empty_at = next_free_at
            return None
        self.refused += 1
        # What arrives just after the first refusal was sent before anybody could know of it.
        self.avoidable += self._told + GRACE_S < now < self._closed_until
        wait = max(RETRY_S, 1 / self.per_second)
        if now >= self._closed_until:
            self._told, self._closed_until = now, now + wait
        return wait


RETRY_S = 0.25
GRACE_S = 0.1
"""Seconds that an answer may take to arrive, and to be read."""


@dataclass
class WireServer:
    """Speaks every vendor's wire on one port of the loopback. See the package's docstring.

    Attributes:
        answer: from what is asked to the text of the answer.
        latency_s: seconds before each answer.
        calls: every request that reached an endpoint, in order.
        peak: the most requests that were in work at once, and ``peaks`` of each model.
        per_second: how many requests a second it takes of each vendor's account; null takes all.
        allowances: what is left of it, by vendor.
        is_forgetful: keep no request, and count them: for hundreds of thousands.
        began: when the first request came, and ``ended`` when the last answer left
            (``time.time``).
    """

    answer: Callable[[VendorRequest], str] = deterministic
    latency_s: float = 0.0
    keys: Mapping[str, str] = field(default_factory=lambda: dict(KEYS))
    port: int = 0
    calls: list[ServedRequest] = field(default_factory=list)
    in_work: int = 0
    peak: int = 0
    peaks: Counter[str] = field(default_factory=Counter)
    connections: int = 0
    began: float | None = None
    ended: float | None = None
    per_second: float | None = None
    allowances: dict[str, Allowance] = field(default_factory=dict)
    is_forgetful: bool = False
    n_calls: int = 0
    n_paid: int = 0
    _working: Counter[str] = field(default_factory=Counter)
    _orders: list[_Order] = field(default_factory=list)
    _conducts: dict[str, Conduct] = field(default_factory=dict)
    _ready: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.batches = Batches(self)

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        if not self._ready.wait(10):
            raise RuntimeError("the wire server did not start")
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    # -- for tests ------------------------------------------------------------------------------

    def base_url(self, vendor: str) -> str:
        """Where ``vendor`` is spoken."""
        return f"http://127.0.0.1:{self.port}{PREFIXES[vendor]}"

    def environ(self, *vendors: str) -> dict[str, str]:
        """Keys and addresses of ``vendors`` (of all, where none is named) as variables."""
        headers_by_name = {}
        for vendor in vendors or tuple(_ENVIRON):
            key, address = _ENVIRON[vendor]
            headers_by_name |= {key: self.keys[vendor], address: self.base_url(vendor)}
        return headers_by_name

    def misbehave(
        self,
        fault: Fault,
        *,
        model: str | None = None,
        vendor: str | None = None,
        times: float = 1,
        nth: int | None = None,
        every: int | None = None,
    ) -> None:
        """Play ``fault`` on matching requests.

        Args:
            fault: what to do.
            model: only on requests for this model.
            vendor: only on requests in this vendor's wire.
            times: how often (``math.inf`` for always).
            nth: only on the nth matching request, from 1.
            every: on every so-manyth matching request.
        """
        often = float("inf") if every else times
        self._orders.append(_Order(fault, model, vendor, often, nth, every))

    def conduct(self, model: str, **conduct: Any) -> None:
        """How ``model`` always behaves: the fields of :class:`Conduct`."""
        self._conducts[model] = Conduct(**conduct)

    def count(
        self, *, model: str | None = None, vendor: str | None = None, is_paid: bool | None = None
    ) -> int:
        """How many requests there were."""
        return sum(
            (model is None or call.model == model)
            and (vendor is None or call.vendor == vendor)
            and (is_paid is None or call.paid == is_paid)
            for call in self.calls
        )

    def paid_twice(self) -> list[str]:
        """Request bodies that were answered and billed more than once."""
        bodies = Counter(
            json.dumps([call.path, call.body], sort_keys=True) for call in self.calls if call.paid
        )
        return [body for body, times in bodies.items() if times > 1]

    def clear(self) -> None:
        """Forget the journal and the orders; conducts stay."""
        self.calls.clear()
        self.n_calls = self.n_paid = 0
        self._orders.clear()
        self.batches.clear()
        self.peak = 0
        self.peaks.clear()
        self.began = self.ended = None

    def also_at(self, context: ssl.SSLContext) -> int:
        """Serve on one more port, behind TLS; returns the port."""

        async def open_port() -> int:
            server = await self._loop.create_server(lambda: Line(self), "127.0.0.1", 0, ssl=context)
            self._servers.append(server)
            return int(server.sockets[0].getsockname()[1])

        return asyncio.run_coroutine_threadsafe(open_port(), self._loop).result(10)

    # -- the thread -----------------------------------------------------------------------------

    def _run(self) -> None:
        asyncio.run(self.serve(self._ready.set))

    async def serve(self, ready: Callable[[], object]) -> None:
        """Serve until stopped; ``ready`` is called once the port is open."""
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        self._lines: set[Line] = set()
        server = await self._loop.create_server(
            lambda: Line(self), "127.0.0.1", self.port, backlog=4096
        )
        self._servers = [server]
        self.port = server.sockets[0].getsockname()[1]
        ready()
        await self._stop.wait()
        for server in self._servers:
            server.close()
        for line in list(self._lines):
            line.abort()
        await asyncio.sleep(0)

    def enter(self, model: str) -> None:
        """A request for ``model`` is in work."""
        self.began = self.began or time.time()
        self.in_work += 1
        self._working[model] += 1
        self.peak = max(self.peak, self.in_work)
        self.peaks[model] = max(self.peaks[model], self._working[model])

    def leave(self, model: str) -> None:
        """It is done with, one way or another."""
        self.ended = time.time()
        self.in_work -= 1
        self._working[model] -= 1

    def fault_for(self, record: ServedRequest) -> Fault | None:
        """The first order that ``seen`` matches and that is not used up."""
        for order in self._orders:
            if order.model not in (None, record.model) or order.vendor not in (None, record.vendor):
                continue
            order.matched += 1
            if order.nth is not None:
                if order.matched == order.nth:
                    return order.fault
            elif order.every is not None:
                if order.matched % order.every == 0:
                    return order.fault
            elif order.times > 0:
                order.times -= 1
                return order.fault
        return None

    def conduct_of(self, model: str) -> Conduct:
        """How ``model`` behaves."""
        return self._conducts.get(model, _PLAIN)

    def refusal_s(self, vendor: str) -> float | None:
        """Seconds that an account is told to wait; null where its request is taken."""
        if self.per_second is None:
            return None
        if vendor not in self.allowances:  # each vendor has one key, so one account
            self.allowances[vendor] = Allowance(self.per_second)
        return self.allowances[vendor].refusal_s()


_PLAIN = Conduct()


class Line(asyncio.Protocol):
    """One connection. Faults write to it as they like."""

    def __init__(self, server: WireServer) -> None:
        self._server = server
        self._buffer = b""
        self._chunked = False
        self._seen: ServedRequest | None = None
        self._task: asyncio.Task[None] | None = None
        self.key = ""

    # -- reading --------------------------------------------------------------------------------

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._server.connections += 1
        self._server._lines.add(self)

    def connection_lost(self, error: Exception | None) -> None:
        self._server._lines.discard(self)
        if self._task is not None:
            self._task.cancel()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, mark, remainder = self._buffer.partition(b"\r\n\r\n")
        if not mark:
            return
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines)}
        length = int(headers.get("content-length", 0))
        if len(remainder) < length:
            return
        self._buffer = remainder[length:]
        method, target, _ = first.split(" ")
        self._task = asyncio.ensure_future(self._serve(method, target, headers, remainder[:length]))

    async def _serve(self, method: str, target: str, headers: dict[str, str], data: bytes) -> None:
        # A proxy is asked for the whole URL.
        path = urlsplit(target).path
        if method == "GET" and path == "/journal":
            await self.json(200, self._journal())
            return
        vendor = next((v for v, prefix in PREFIXES.items() if path.startswith(prefix)), None)
        if vendor is not None and is_batch(vendor, path):
            await self._server.batches.serve(self, vendor, method, target, data)
            return
        if method != "POST" or vendor is None:
            await self.json(404, {"error": {"message": f"nothing at {path}"}})
            return
        server = self._server
        body = json.loads(data)
        server.n_calls += 1
        record = ServedRequest(server.n_calls, vendor, path, headers, body)
        if not server.is_forgetful:
            server.calls.append(record)
        self._seen = record
        request = vendors.read(vendor, path, body)
        record.model = request.model
        server.enter(request.model)
        try:
            await self._reply(record, request)
        finally:
            server.n_paid += record.paid
            server.leave(request.model)

    async def _reply(self, record: ServedRequest, request: VendorRequest) -> None:
        conduct = self._server.conduct_of(request.model)
        if not await self._admitted(request, record, conduct):
            return
        if (wait := self._server.refusal_s(request.vendor)) is not None:
            await faults.rate_limit(f"{wait * 1000:.0f}", header="retry-after-ms").play(
                self, request, VendorReply("", request.model, "stop", None)
            )
            return
        latency = self._server.latency_s if conduct.latency_s is None else conduct.latency_s
        if latency:
            await asyncio.sleep(latency)
        reply = self.said(request, conduct)
        record.text = reply.text
        fault = self._server.fault_for(record)
        if fault is None:
            record.paid = True
            await self.answer(request, reply)
        else:
            record.fault, record.paid = fault.name, fault.billed
            await fault.play(self, request, reply)

    async def _admitted(
        self, request: VendorRequest, record: ServedRequest, conduct: Conduct
    ) -> bool:
        self.key = _key(record)
        entry = self._server.keys.get(record.vendor)
        keyless = record.vendor == "compatible" and not self.key
        if entry and self.key != entry and not keyless:
            await self._refuse_key(request)
        elif request.api == "messages" and "anthropic-version" not in record.headers:
            await self.json(
                400, vendors.error(request, 400, "anthropic-version: header is required")
            )
        elif conduct.responses_only and request.api == "chat":
            text = "This model is only supported in v1/responses and not in v1/chat/completions."
            await self.json(404, vendors.error(request, 404, text))
        elif refused_refuse := next((p for p in conduct.refuses if carries(request, p)), None):
            status = conduct.refusal_status
            text = f"Unsupported parameter: '{refused_refuse}' is not supported with this model."
            code = "unsupported_parameter"
            await self.json(
                status, vendors.error(request, status, text, code=code, param=refused_refuse)
            )
        else:
            return True
        return False

    async def _refuse_key(self, request: VendorRequest) -> None:
        text = faults.wrong_key(self.key)
        if request.vendor == "google":
            details = {
                "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "reason": "API_KEY_INVALID",
            }
            await self.json(400, vendors.error(request, 400, text, details=[details]))
        else:
            await self.json(401, vendors.error(request, 401, text, code="invalid_api_key"))

    def said(self, request: VendorRequest, conduct: Conduct) -> VendorReply:
        """What the model says."""
        text = (conduct.answer or self._server.answer)(request)
        finish = "stop"
        if conduct.capped and request.cap is not None and len(text) > request.cap * 4:
            text, finish = text[: request.cap * 4], "length"
        output = len(text) // 4 + 1
        if request.cap is not None:
            output = min(output, request.cap)
        counts = {"input": len(request.prompt) // 4 + 1, "output": output}
        return VendorReply(
            text,
            conduct.served or request.model,
            finish,
            counts if conduct.usage else None,
            usage=conduct.reports,
            cost=conduct.cost,
        )

    def _journal(self) -> dict[str, Any]:
        server = self._server
        return {
            "calls": server.n_calls,
            "paid": server.n_paid,
            "refused": sum(one.refused for one in server.allowances.values()),
            "avoidable": sum(one.avoidable for one in server.allowances.values()),
            "peak": server.peak,
            "peaks": dict(server.peaks),
            "began": server.began,
            "ended": server.ended,
            "cpu_s": time.process_time(),
            "connections": server.connections,
            "paid_twice": len(server.paid_twice()),
        }

    # -- writing --------------------------------------------------------------------------------

    async def answer(self, request: VendorRequest, reply: VendorReply) -> None:
        """The plain answer, as one body or as a stream, as was asked."""
        if request.stream:
            await self.events(vendors.events(request, reply))
        else:
            await self.json(200, vendors.body(request, reply))

    async def json(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        """A JSON body under ``status``."""
        await self.send(status, json.dumps(body).encode(), "application/json", headers)

    async def send(
        self, status: int, body: bytes, kind: str, headers: dict[str, str] | None = None
    ) -> None:
        """Any body under ``status``."""
        self.head(status, kind, length=len(body), headers=headers, body=body)

    async def events(self, events: list[bytes]) -> None:
        """A stream of server-sent events, properly ended."""
        self.head(200, "text/event-stream")
        for event in events:
            self.chunk(event)
            await asyncio.sleep(0)
        self.write(b"0\r\n\r\n")

    def head(
        self,
        status: int,
        kind: str,
        *,
        length: int | None = None,
        headers: dict[str, str] | None = None,
        body: bytes = b"",
    ) -> None:
        """Status line and headers; without a length the body goes in chunks."""
        if self._seen is not None:
            self._seen.status = status
        lines = [
            f"HTTP/1.1 {status} {_REASONS.get(status, 'Status')}",
            f"content-type: {kind}",
            f"x-request-id: req-{self._seen.n if self._seen else 0}",
            f"request-id: req-{self._seen.n if self._seen else 0}",
        ]
        lines.append(
            "transfer-encoding: chunked" if length is None else f"content-length: {length}"
        )
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        self.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)

    def chunk(self, data: bytes) -> None:
        """One chunk of a chunked body."""
        self.write(b"%x\r\n%b\r\n" % (len(data), data))

    def write(self, data: bytes) -> None:
        """Bytes as they stand."""
        if not self._transport.is_closing():
            self._transport.write(data)

    def reset(self) -> None:
        """End the connection with RST."""
        sock = self._transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._transport.abort()

    def abort(self) -> None:
        """End the connection now."""
        self._transport.abort()


def _key(record: ServedRequest) -> str:
    if record.vendor == "google":
        return record.headers.get("x-goog-api-key", "")
    return record.headers.get("authorization", "").removeprefix("Bearer ")


def carries(request: VendorRequest, name: str) -> bool:
    """Whether a request has the field ``name``, at the top or one level down."""
    body = request.body
    if name in ("json_schema", "json_object"):
        form = (body.get("response_format") or (body.get("text") or {}).get("format") or {}).get(
            "type"
        )
        native = (body.get("output_config") or {}).get("format") or {}
        return name in (form, native.get("type"))
    inner = [part for part in body.values() if isinstance(part, dict)]
    return name in body or any(name in part for part in inner)
