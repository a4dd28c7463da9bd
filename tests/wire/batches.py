"""The vendors' batch APIs on the loopback: files and batches, message batches, inlined requests.

``server.batches`` holds what was handed in, and how it goes on from there::

    server.batches.polls = 3                        # looks until a batch ends
    server.batches.hold = True                      # none ends
    server.batches.fate = lambda n: "expired"       # of the nth row (from 0) of a batch
    server.batches.trouble("POST", "/batches", 503) # the next such request
    server.batches.trouble("POST", "/batches", LOST)  # it is done, and its answer is lost
    server.batches.trouble("GET", "", b"null")      # a 200 that says this

A row that is answered is counted like a live call: in ``server.calls``, and paid.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import time
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from wire import vendors

if TYPE_CHECKING:
    from collections.abc import Callable

    from wire.server import Line, WireServer

LOST = "lost"
"""The request is carried out, and the line breaks before the answer."""
HUNG = "hung"
"""It is carried out, and never answered."""
STALLED = "stalled"
"""It is neither."""
Fate = str
"""``answered``, ``expired``, ``cancelled``, ``missing``, or an HTTP status as text."""


@dataclass
class Row:
    key: str
    path: str
    body: dict[str, Any]
    fate: Fate = ""
    answer: dict[str, Any] = field(default_factory=dict)


@dataclass
class VendorBatch:
    """A batch that was handed in."""

    id: str
    vendor: str
    name: str
    rows: list[Row]
    created: float = field(default_factory=time.time)
    about: dict[str, Any] = field(default_factory=dict)
    polls: int = 0
    ended: str | None = None
    leaving: bool = False

    def count(self, *fates: str) -> int:
        return sum(row.fate in fates for row in self.rows)

    @property
    def failed(self) -> int:
        return sum(row.fate.isdecimal() for row in self.rows)


class Batches:
    """What was handed in to a server, and what becomes of it."""

    def __init__(self, server: WireServer) -> None:
        self._server = server
        self.clear()

    def clear(self) -> None:
        self.submitted: list[VendorBatch] = []
        self.files: dict[str, bytes] = {}
        self.requests: list[str] = []
        self.polls = 1
        self.hold = False
        self.reverse = True
        self.refuses_endpoint: str | None = None
        self.results_at: str | None = None
        self.refuse: dict[str, Any] | None = None
        self.fate: Callable[[int], Fate] = lambda _: "answered"
        self._troubles: list[tuple[str, str, int | str | bytes]] = []
        self._ids = itertools.count(1)

    def trouble(self, method: str, ending: str, problem: int | str | bytes) -> None:
        """The next request of ``method`` whose path ends so goes wrong."""
        self._troubles.append((method, ending, problem))

    def rows(self, model: str | None = None) -> list[Row]:
        actual_rows = [row for batch in self.submitted for row in batch.rows]
        return [row for row in actual_rows if model in (None, _model(row))]

    # -- the wire -------------------------------------------------------------------------------

    async def serve(self, line: Line, vendor: str, method: str, target: str, data: bytes) -> None:
        path, _, query = target.partition("?")
        self.requests.append(f"{method} {path}")
        wrong = next((t for t in self._troubles if t[0] == method and path.endswith(t[1])), None)
        if wrong is not None:
            self._troubles.remove(wrong)
        if wrong is not None and wrong[2] == STALLED:
            await asyncio.sleep(60)
        if wrong is not None and isinstance(wrong[2], int):
            request = replace(_NOTHING, vendor=vendor)
            await line.json(wrong[2], vendors.error(request, wrong[2], "it did not work"))
            return
        if wrong is not None and isinstance(wrong[2], bytes):
            await line.send(200, wrong[2], "application/json")
            return
        speaks = {"openai": self._openai, "anthropic": self._anthropic, "google": self._google}
        answer = speaks[vendor](method, path, parse_qs(query), data, line)
        if wrong is not None and wrong[2] == HUNG:
            await asyncio.sleep(60)
        elif wrong is not None:
            line.reset()
        elif answer is None:
            await line.json(404, {"error": {"message": f"no batch at {path}"}})
        elif isinstance(answer, bytes):
            await line.send(200, answer, "application/binary")
        else:
            await line.json(200, answer)

    def _named(self, path: str) -> VendorBatch | None:
        return next((m for m in self.submitted if re.search(rf"{re.escape(m.id)}\b", path)), None)

    def _make(
        self, vendor: str, name: str, rows: list[Row], prefix: str, **subject: Any
    ) -> VendorBatch:
        batch = VendorBatch(f"{prefix}{next(self._ids)}", vendor, name, rows, about=subject)
        self.submitted.append(batch)
        return batch

    def _look(self, batch: VendorBatch, line: Line) -> None:
        """A look brings a batch nearer to its end."""
        batch.polls += 1
        if batch.leaving and batch.ended is None:
            self._end(batch, line, "cancelled")
        if batch.ended is None and not self.hold and batch.polls >= self.polls:
            self._end(batch, line, "completed")

    def _end(self, batch: VendorBatch, line: Line, how: str) -> None:
        half = len(batch.rows) // 2
        for n, row in enumerate(batch.rows):
            row.fate = self.fate(n)
            if how == "cancelled" and n >= half:
                row.fate = "cancelled"
            if row.fate == "answered":
                self._answer(batch.vendor, row, line)
        batch.ended = "expired" if batch.count("expired") and how == "completed" else how

    def _answer(self, vendor: str, row: Row, line: Line) -> None:
        from wire.server import ServedRequest, carries

        server = self._server
        request = vendors.read(vendor, row.path, row.body)
        record = ServedRequest(len(server.calls) + 1, vendor, row.path, {}, row.body, request.model)
        server.calls.append(record)
        conduct = server.conduct_of(request.model)
        refused_name = next((name for name in conduct.refuses if carries(request, name)), None)
        if refused_name is not None:
            text = f"Unsupported parameter: '{refused_name}' is not supported with this model."
            row.fate = record.status = str(conduct.refusal_status)  # type: ignore[assignment]
            row.answer = vendors.error(request, conduct.refusal_status, text, param=refused_name)
            return
        reply = line.said(request, conduct)
        record.status, record.paid, record.text = 200, True, reply.text
        row.answer = vendors.body(request, reply)

    # -- OpenAI ---------------------------------------------------------------------------------

    def _openai(self, method: str, path: str, query: Any, data: bytes, line: Line) -> Any:
        part = path.removeprefix(vendors.PREFIXES["openai"])
        batch = self._named(part)
        match method, part.strip("/").split("/"):
            case "POST", ["files"]:
                name = f"file-{next(self._ids)}"
                self.files[name] = _uploaded(data)
                return {
                    "id": name, "object": "file", "bytes": len(self.files[name]),
                    "created_at": int(time.time()), "filename": "x.jsonl", "purpose": "batch",
                    "status": "processed",
                }  # fmt: skip
            case "GET", ["files", name, "content"]:
                return self.files.get(name)
            case "POST", ["batches"]:
                return self._openai_batch(self._openai_new(json.loads(data)))
            case "GET", ["batches"]:
                batches = [m for m in reversed(self.submitted) if m.vendor == "openai"]
                rows = [self._openai_batch(m) for m in batches]
                return {"object": "list", "data": rows, "has_more": False}
            case "GET", ["batches", _] if batch is not None:
                self._look(batch, line)
                self._openai_files(batch)
                return self._openai_batch(batch)
            case "POST", ["batches", _, "cancel"] if batch is not None:
                assert batch.ended is None, "only what goes on can be cancelled"
                assert not batch.leaving, "and only once"
                batch.leaving = True
                return self._openai_batch(batch)
        return None

    def _openai_new(self, body: dict[str, Any]) -> VendorBatch:
        rows = [json.loads(text) for text in self.files[body["input_file_id"]].splitlines()]
        assert {row["url"] for row in rows} == {body["endpoint"]}, "a file has one endpoint"
        assert len({row["body"]["model"] for row in rows}) == 1, "a file has one model"
        batch = self._make(
            "openai",
            body["metadata"]["clash_batch"],
            [Row(row["custom_id"], row["url"], row["body"]) for row in rows],
            "batch_",
            metadata=body["metadata"],
            endpoint=body["endpoint"],
            input=body["input_file_id"],
        )
        if self.refuse is not None and self.refuses_endpoint in (None, body["endpoint"]):
            batch.ended = "failed"
        return batch

    def _openai_files(self, batch: VendorBatch) -> None:
        if batch.ended in (None, "failed") or "output" in batch.about:
            return
        lines: dict[bool, list[dict[str, Any]]] = {True: [], False: []}
        rows = reversed(batch.rows) if self.reverse else batch.rows
        for n, row in enumerate(rows):
            head = {"id": f"batch_req_{n}", "custom_id": row.key}
            status = 200 if row.fate == "answered" else row.fate
            if str(status).isdecimal():
                answer = {"status_code": int(status), "request_id": f"req-b{n}", "body": row.answer}
                row.answer = row.answer or {"error": {"message": "it did not work", "type": "x"}}
                answer["body"] = row.answer
                lines[status == 200].append({**head, "response": answer, "error": None})
            elif row.fate in ("expired", "cancelled"):
                error = {"code": f"batch_{row.fate}", "message": f"This request was {row.fate}."}
                lines[False].append({**head, "response": None, "error": error})
        for name, value in (("output", lines[True]), ("errors", lines[False])):
            if value:
                batch.about[name] = f"file-{name}-{batch.id}"
                text = "\n".join(map(json.dumps, value)) + "\n"
                self.files[batch.about[name]] = text.encode()
        batch.about.setdefault("output", None)

    def _openai_batch(self, batch: VendorBatch) -> dict[str, Any]:
        n_calls = batch.count("answered")
        return {
            "id": batch.id, "object": "batch", "endpoint": batch.about["endpoint"],
            "errors": self.refuse if batch.ended == "failed" else None,
            "input_file_id": batch.about["input"], "completion_window": "24h",
            "status": batch.ended or ("cancelling" if batch.leaving else "in_progress"), "created_at": int(batch.created),
            "output_file_id": batch.about.get("output"), "error_file_id": batch.about.get("errors"),
            "metadata": batch.about["metadata"],
            "request_counts": {"total": len(batch.rows), "completed": n_calls, "failed": batch.failed},
        }  # fmt: skip

    # -- Anthropic ------------------------------------------------------------------------------

    def _anthropic(self, method: str, path: str, query: Any, data: bytes, line: Line) -> Any:
        part = path.removeprefix(f"{vendors.PREFIXES['anthropic']}/v1/messages/batches")
        batch = self._named(part)
        match method, part.strip("/").split("/"):
            case "POST", [""]:
                rows = json.loads(data)["requests"]
                assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", row["custom_id"]) for row in rows)
                batch = self._make(
                    "anthropic", "",
                    [Row(row["custom_id"], "/v1/messages", row["params"]) for row in rows],
                    "msgbatch_",
                )  # fmt: skip
                return self._anthropic_batch(batch)
            case "GET", [""]:
                batches = [m for m in reversed(self.submitted) if m.vendor == "anthropic"]
                batch_rows = [self._anthropic_batch(m) for m in batches]
                return {"data": batch_rows, "has_more": False, "first_id": None, "last_id": None}
            case "GET", [_] if batch is not None:
                self._look(batch, line)
                return self._anthropic_batch(batch)
            case "GET", [_, "results"] if batch is not None:
                rows_ = reversed(batch.rows) if self.reverse else batch.rows
                row_list = [_anthropic_row(row) for row in rows_ if row.fate != "missing"]
                return ("\n".join(map(json.dumps, row_list)) + "\n").encode()
            case "POST", [_, "cancel"] if batch is not None:
                assert batch.ended is None, "only what goes on can be cancelled"
                batch.leaving = True
                return self._anthropic_batch(batch)
        return None

    def _anthropic_batch(self, batch: VendorBatch) -> dict[str, Any]:
        open_ = len(batch.rows) if batch.ended is None else 0
        when = datetime.fromtimestamp(batch.created, UTC).isoformat()
        where = f"http://127.0.0.1:{self._server.port}/anthropic/v1/messages/batches"
        return {
            "id": batch.id, "type": "message_batch", "created_at": when, "expires_at": when,
            "archived_at": None, "ended_at": when if batch.ended else None,
            "cancel_initiated_at": when if batch.ended == "cancelled" else None,
            "processing_status": "ended" if batch.ended
            else "canceling" if batch.leaving else "in_progress",
            "results_url": f"{self.results_at or where}/{batch.id}/results" if batch.ended else None,
            "request_counts": {
                "processing": open_, "succeeded": batch.count("answered"), "errored": batch.failed,
                "canceled": batch.count("cancelled"), "expired": batch.count("expired"),
            },
        }  # fmt: skip

    # -- Google ---------------------------------------------------------------------------------

    def _google(self, method: str, path: str, query: Any, data: bytes, line: Line) -> Any:
        made = self._named(path)
        if method == "POST" and path.endswith(":batchGenerateContent"):
            model = path.rpartition("/models/")[2].partition(":")[0]
            batch = json.loads(data)["batch"]
            made = self._make(
                "google",
                batch["displayName"],
                [
                    Row(row["metadata"]["key"], f"/models/{model}:generateContent", row["request"])
                    for row in batch["inputConfig"]["requests"]["requests"]
                ],
                "batches/",
                model=model,
            )
            return self._google_batch(made)
        if method == "GET" and path.endswith("/batches"):
            batches = [m for m in reversed(self.submitted) if m.vendor == "google"]
            return {"operations": [self._google_batch(m) for m in batches]}
        if made is None:
            return None
        if method == "POST" and path.endswith(":cancel"):
            self._end(made, line, "cancelled")
            return {}
        self._look(made, line)
        return self._google_batch(made)

    def _google_batch(self, batch: VendorBatch) -> dict[str, Any]:
        state = {None: "RUNNING", "completed": "SUCCEEDED"}.get(batch.ended, "")
        when = datetime.fromtimestamp(batch.created, UTC).isoformat()
        description: dict[str, Any] = {
            "@type": "type.googleapis.com/google.ai.generativelanguage.v1main.GenerateContentBatch",
            "model": f"models/{batch.about['model']}",
            "displayName": batch.name,
            "createTime": when,
            "state": f"BATCH_STATE_{state or str(batch.ended).upper()}",
        }
        if batch.ended:
            row_list = [_google_row(row) for row in batch.rows]
            description["output"] = {
                "inlinedResponses": {"inlinedResponses": list(filter(None, row_list))}
            }
        return {"name": batch.id, "metadata": description, "done": batch.ended is not None}


_NOTHING = vendors.VendorRequest(
    "anthropic", "batch", "", "", [], None, False, None, False, False, {}
)


def _anthropic_row(row: Row) -> dict[str, Any]:
    match row.fate:
        case "answered":
            result: dict[str, Any] = {"type": "succeeded", "message": row.answer}
        case "expired":
            result = {"type": "expired"}
        case "cancelled":
            result = {"type": "canceled"}
        case _:
            error = row.answer or vendors.error(_NOTHING, int(row.fate), "it did not work")
            result = {"type": "errored", "error": error}
    return {"custom_id": row.key, "result": result}


def _google_row(row: Row) -> dict[str, Any] | None:
    head = {"metadata": {"key": row.key}}
    if row.fate == "answered":
        return {**head, "response": row.answer}
    if row.fate in ("missing", "expired"):
        return None
    code = {"cancelled": 1, "400": 3, "404": 5, "429": 8}.get(row.fate, 13)
    text = row.answer.get("error", {}).get("message", f"the row was {row.fate}")
    return {**head, "error": {"code": code, "message": text}}


def _model(row: Row) -> str:
    return str(row.body.get("model") or row.path.rpartition("/models/")[2].partition(":")[0])


def _uploaded(data: bytes) -> bytes:
    """The file in a multipart body."""
    border = data.partition(b"\r\n")[0]
    for piece in data.split(border):
        head, _, content = piece.partition(b"\r\n\r\n")
        if b"filename=" in head:
            return content.removesuffix(b"\r\n")
    raise AssertionError("no file was uploaded")


def is_batch(vendor: str, path: str) -> bool:
    """Whether a path is of the batch API."""
    part = path.removeprefix(vendors.PREFIXES[vendor])
    match vendor:
        case "openai":
            return part.startswith(("/files", "/batches"))
        case "anthropic":
            return part.startswith("/v1/messages/batches")
        case "google":
            return ":batchGenerateContent" in part or "/batches" in part
    return False
