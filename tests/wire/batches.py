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
class Made:
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
        self.made: list[Made] = []
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

    def trouble(self, method: str, ending: str, what: int | str | bytes) -> None:
        """The next request of ``method`` whose path ends so goes wrong."""
        self._troubles.append((method, ending, what))

    def rows(self, model: str | None = None) -> list[Row]:
        found = [row for made in self.made for row in made.rows]
        return [row for row in found if model in (None, _model(row))]

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
            asked = replace(_NOTHING, vendor=vendor)
            await line.json(wrong[2], vendors.error(asked, wrong[2], "it did not work"))
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

    def _named(self, path: str) -> Made | None:
        return next((m for m in self.made if re.search(rf"{re.escape(m.id)}\b", path)), None)

    def _make(self, vendor: str, name: str, rows: list[Row], prefix: str, **about: Any) -> Made:
        made = Made(f"{prefix}{next(self._ids)}", vendor, name, rows, about=about)
        self.made.append(made)
        return made

    def _look(self, made: Made, line: Line) -> None:
        """A look brings a batch nearer to its end."""
        made.polls += 1
        if made.leaving and made.ended is None:
            self._end(made, line, "cancelled")
        if made.ended is None and not self.hold and made.polls >= self.polls:
            self._end(made, line, "completed")

    def _end(self, made: Made, line: Line, how: str) -> None:
        half = len(made.rows) // 2
        for n, row in enumerate(made.rows):
            row.fate = self.fate(n)
            if how == "cancelled" and n >= half:
                row.fate = "cancelled"
            if row.fate == "answered":
                self._answer(made.vendor, row, line)
        made.ended = "expired" if made.count("expired") and how == "completed" else how

    def _answer(self, vendor: str, row: Row, line: Line) -> None:
        from wire.server import Seen, carries

        server = self._server
        asked = vendors.read(vendor, row.path, row.body)
        seen = Seen(len(server.calls) + 1, vendor, row.path, {}, row.body, asked.model)
        server.calls.append(seen)
        conduct = server.conduct_of(asked.model)
        refused = next((name for name in conduct.refuses if carries(asked, name)), None)
        if refused is not None:
            text = f"Unsupported parameter: '{refused}' is not supported with this model."
            row.fate = seen.status = str(conduct.refusal_status)  # type: ignore[assignment]
            row.answer = vendors.error(asked, conduct.refusal_status, text, param=refused)
            return
        said = line.said(asked, conduct)
        seen.status, seen.paid, seen.text = 200, True, said.text
        row.answer = vendors.body(asked, said)

    # -- OpenAI ---------------------------------------------------------------------------------

    def _openai(self, method: str, path: str, query: Any, data: bytes, line: Line) -> Any:
        part = path.removeprefix(vendors.PREFIXES["openai"])
        made = self._named(part)
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
                mine = [m for m in reversed(self.made) if m.vendor == "openai"]
                shown = [self._openai_batch(m) for m in mine]
                return {"object": "list", "data": shown, "has_more": False}
            case "GET", ["batches", _] if made is not None:
                self._look(made, line)
                self._openai_files(made)
                return self._openai_batch(made)
            case "POST", ["batches", _, "cancel"] if made is not None:
                assert made.ended is None, "only what goes on can be cancelled"
                assert not made.leaving, "and only once"
                made.leaving = True
                return self._openai_batch(made)
        return None

    def _openai_new(self, body: dict[str, Any]) -> Made:
        rows = [json.loads(text) for text in self.files[body["input_file_id"]].splitlines()]
        assert {row["url"] for row in rows} == {body["endpoint"]}, "a file has one endpoint"
        assert len({row["body"]["model"] for row in rows}) == 1, "a file has one model"
        made = self._make(
            "openai",
            body["metadata"]["clash_batch"],
            [Row(row["custom_id"], row["url"], row["body"]) for row in rows],
            "batch_",
            metadata=body["metadata"],
            endpoint=body["endpoint"],
            input=body["input_file_id"],
        )
        if self.refuse is not None and self.refuses_endpoint in (None, body["endpoint"]):
            made.ended = "failed"
        return made

    def _openai_files(self, made: Made) -> None:
        if made.ended in (None, "failed") or "output" in made.about:
            return
        lines: dict[bool, list[dict[str, Any]]] = {True: [], False: []}
        rows = reversed(made.rows) if self.reverse else made.rows
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
        for name, found in (("output", lines[True]), ("errors", lines[False])):
            if found:
                made.about[name] = f"file-{name}-{made.id}"
                text = "\n".join(map(json.dumps, found)) + "\n"
                self.files[made.about[name]] = text.encode()
        made.about.setdefault("output", None)

    def _openai_batch(self, made: Made) -> dict[str, Any]:
        done = made.count("answered")
        return {
            "id": made.id, "object": "batch", "endpoint": made.about["endpoint"],
            "errors": self.refuse if made.ended == "failed" else None,
            "input_file_id": made.about["input"], "completion_window": "24h",
            "status": made.ended or ("cancelling" if made.leaving else "in_progress"), "created_at": int(made.created),
            "output_file_id": made.about.get("output"), "error_file_id": made.about.get("errors"),
            "metadata": made.about["metadata"],
            "request_counts": {"total": len(made.rows), "completed": done, "failed": made.failed},
        }  # fmt: skip

    # -- Anthropic ------------------------------------------------------------------------------

    def _anthropic(self, method: str, path: str, query: Any, data: bytes, line: Line) -> Any:
        part = path.removeprefix(f"{vendors.PREFIXES['anthropic']}/v1/messages/batches")
        made = self._named(part)
        match method, part.strip("/").split("/"):
            case "POST", [""]:
                rows = json.loads(data)["requests"]
                assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", row["custom_id"]) for row in rows)
                made = self._make(
                    "anthropic", "",
                    [Row(row["custom_id"], "/v1/messages", row["params"]) for row in rows],
                    "msgbatch_",
                )  # fmt: skip
                return self._anthropic_batch(made)
            case "GET", [""]:
                mine = [m for m in reversed(self.made) if m.vendor == "anthropic"]
                shown = [self._anthropic_batch(m) for m in mine]
                return {"data": shown, "has_more": False, "first_id": None, "last_id": None}
            case "GET", [_] if made is not None:
                self._look(made, line)
                return self._anthropic_batch(made)
            case "GET", [_, "results"] if made is not None:
                rows_ = reversed(made.rows) if self.reverse else made.rows
                found = [_anthropic_row(row) for row in rows_ if row.fate != "missing"]
                return ("\n".join(map(json.dumps, found)) + "\n").encode()
            case "POST", [_, "cancel"] if made is not None:
                assert made.ended is None, "only what goes on can be cancelled"
                made.leaving = True
                return self._anthropic_batch(made)
        return None

    def _anthropic_batch(self, made: Made) -> dict[str, Any]:
        open_ = len(made.rows) if made.ended is None else 0
        when = datetime.fromtimestamp(made.created, UTC).isoformat()
        where = f"http://127.0.0.1:{self._server.port}/anthropic/v1/messages/batches"
        return {
            "id": made.id, "type": "message_batch", "created_at": when, "expires_at": when,
            "archived_at": None, "ended_at": when if made.ended else None,
            "cancel_initiated_at": when if made.ended == "cancelled" else None,
            "processing_status": "ended" if made.ended
            else "canceling" if made.leaving else "in_progress",
            "results_url": f"{self.results_at or where}/{made.id}/results" if made.ended else None,
            "request_counts": {
                "processing": open_, "succeeded": made.count("answered"), "errored": made.failed,
                "canceled": made.count("cancelled"), "expired": made.count("expired"),
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
            mine = [m for m in reversed(self.made) if m.vendor == "google"]
            return {"operations": [self._google_batch(m) for m in mine]}
        if made is None:
            return None
        if method == "POST" and path.endswith(":cancel"):
            self._end(made, line, "cancelled")
            return {}
        self._look(made, line)
        return self._google_batch(made)

    def _google_batch(self, made: Made) -> dict[str, Any]:
        state = {None: "RUNNING", "completed": "SUCCEEDED"}.get(made.ended, "")
        when = datetime.fromtimestamp(made.created, UTC).isoformat()
        about: dict[str, Any] = {
            "@type": "type.googleapis.com/google.ai.generativelanguage.v1main.GenerateContentBatch",
            "model": f"models/{made.about['model']}",
            "displayName": made.name,
            "createTime": when,
            "state": f"BATCH_STATE_{state or str(made.ended).upper()}",
        }
        if made.ended:
            found = [_google_row(row) for row in made.rows]
            about["output"] = {"inlinedResponses": {"inlinedResponses": list(filter(None, found))}}
        return {"name": made.id, "metadata": about, "done": made.ended is not None}


_NOTHING = vendors.Asked("anthropic", "batch", "", "", [], None, False, None, False, False, {})


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
