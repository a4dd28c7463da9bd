"""The batch APIs, by the real SDKs over the loopback: handed in, looked after, found, read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from clash.config import Limits, ModelRef, Options
from clash.errors import ProviderError
from clash.providers import can_batch, open_batches
from clash.providers.batch import BatchResult, BatchStatus, Lot, never_came
from clash.providers.failures import Failure
from wire.asking import SCHEMA, Asker, run
from wire.batches import LOST

KINDS = ("openai", "responses", "anthropic", "google")
VENDORS = ("openai", "anthropic", "google")
SUBMIT = {"openai": "/batches", "anthropic": "/batches", "google": ":batchGenerateContent"}


@dataclass
class Desk:
    """One model of the loopback server, asked in batches."""

    asker: Asker

    def lot(self, rows: int, **more: Any) -> Lot:
        return Lot("mark", "run", rows, datetime.now(UTC), **more)

    async def _with(self, work: Any) -> Any:
        batches = open_batches(
            self.asker.ref(),
            self.asker.server.environ(),
            Limits(timeout_s=5, connect_timeout_s=2),
        )
        try:
            return await work(batches)
        finally:
            await batches.aclose()

    def do(self, work: Any) -> Any:
        return run(self._with(work))

    def handed_in(self, n: int = 2, **changes: Any) -> str:
        """``n`` rows, handed in; the vendor's id."""

        async def work(api: Any) -> str:
            rows = [api.row(self.asker.request(**changes), f"judge-{i}-mark") for i in range(n)]
            return await api.submit(self.lot(n), rows)

        return self.do(work)

    def asked(self, n: int = 2, **changes: Any) -> dict[str, Any]:
        """``n`` rows, asked and read: a reply or an error for each key."""

        async def work(api: Any) -> dict[str, Any]:
            rows = {
                f"judge-{i}-mark": api.row(self.asker.request(**changes), f"judge-{i}-mark")
                for i in range(n)
            }
            batch = await api.submit(self.lot(n), list(rows.values()))
            assert (await api.poll(batch)).is_final
            results: dict[str, BatchResult] = {}
            await api.fetch(batch, lambda result: results.update({result.key: result}))
            replies: dict[str, Any] = {}
            for key, result in results.items():
                try:
                    replies[key] = api.read(rows[key], result)
                except ProviderError as error:
                    replies[key] = error
            return replies

        return self.do(work)


@pytest.fixture
def desk(server):
    def of(kind: str, **options: Any) -> Desk:
        return Desk(Asker(server, kind, f"batch-{kind}", options=options))

    return of


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("schema", [None, SCHEMA])
def test_a_row_is_read_as_the_same_question_is_live(desk, kind, schema):
    batch_desk = desk(kind)
    live = batch_desk.asker.reply(schema=schema)
    replies = batch_desk.asked(3, schema=schema)
    assert set(replies) == {f"judge-{i}-mark" for i in range(3)}
    for reply in replies.values():
        for name in ("text", "outcome", "finish_reason", "tokens", "served_model", "degraded"):
            assert getattr(reply, name) == getattr(live, name)
        if kind != "google":  # its SDK makes the body of a live call; a batch has its arguments
            fields, sent_fields = (dict(r.request["body"]) for r in (reply, live))
            assert not fields.pop("stream", False)
            sent_fields.pop("stream", None)
            assert fields == sent_fields
    assert all(row.fate == "answered" for row in batch_desk.asker.server.batches.rows())


@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_that_is_none_is_read_as_what_it_is(desk, kind):
    batch_desk = desk(kind)
    cut = batch_desk.asked(1, max_tokens=16, schema=None)["judge-0-mark"]
    assert cut.outcome in ("ok", "truncated")
    batch_desk.asker.server.conduct(batch_desk.asker.model, answer=lambda _: "")
    empty = batch_desk.asked(1)["judge-0-mark"]
    batch_desk.asker.server.conduct(batch_desk.asker.model)
    assert empty.outcome == "empty"


@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize(
    ("status", "error_class", "action"),
    [("400", "bad_request", "fail"), ("404", "not_found", "stop"), ("500", "server", "retry")],
)
def test_the_error_of_a_row_means_what_it_means_live(desk, vendor, status, error_class, action):
    batch_desk = desk(vendor)
    batch_desk.asker.server.batches.fate = lambda n: status if n == 1 else "answered"
    replies = batch_desk.asked(2)
    assert replies["judge-0-mark"].outcome == "ok"
    error = replies["judge-1-mark"]
    assert isinstance(error, ProviderError)
    assert (error.error_class, error.action) == (error_class, action)
    assert not error.maybe_billed
    assert error.request is not None
    assert error.response is not None


@pytest.mark.parametrize("vendor", ["openai", "anthropic"])
@pytest.mark.parametrize(
    ("fate", "error_class"), [("expired", "timeout"), ("cancelled", "interrupted")]
)
def test_a_row_that_was_never_asked_says_so_and_costs_nothing(desk, vendor, fate, error_class):
    batch_desk = desk(vendor)
    batch_desk.asker.server.batches.fate = lambda n: fate
    error = batch_desk.asked(1)["judge-0-mark"]
    assert (error.error_class, error.action, error.maybe_billed) == (error_class, "fail", False)


def test_what_a_batch_has_nothing_of_is_known_by_how_it_ended():
    def kind(outcome: str, failure: Failure | None = None) -> tuple[str, bool]:
        missing_rows = never_came(BatchStatus(True, outcome, failure=failure))
        return missing_rows.error_class, missing_rows.maybe_billed

    assert kind("expired") == kind("EXPIRED") == kind("ended, some expired") == ("timeout", False)
    assert kind("cancelled") == kind("CANCELLED") == ("interrupted", False)
    # Asked or not, nobody can know: it counts as paid.
    assert kind("completed") == kind("PARTIALLY_SUCCEEDED") == ("bad_payload", True)
    assert kind("failed", Failure("not_found", "stop", "no model")) == ("not_found", False)


@pytest.mark.parametrize(
    ("vendor", "body"),
    [
        *((vendor, b"<html>Please log in</html>") for vendor in VENDORS),
        *((vendor, body) for vendor in ("openai", "anthropic") for body in (b"null", b"[5]")),
    ],
)
def test_an_answer_about_no_batch_is_asked_for_again(desk, vendor, body):
    batch_desk = desk(vendor)
    batch = batch_desk.handed_in(1)
    batch_desk.asker.server.batches.trouble("GET", "", body)
    with pytest.raises(ProviderError) as error:
        batch_desk.do(lambda api: api.poll(batch))
    assert error.value.action == "retry"


@pytest.mark.parametrize("result", ["5", '{"type": "succeeded", "message": [5]}', '{"error": 5}'])
def test_a_row_of_other_types_is_a_failed_row(desk, result):
    batch_desk = desk("anthropic")
    row = f'{{"custom_id": "judge-0-mark", "result": {result}}}'
    batch_desk.asker.server.batches.trouble("GET", "/results", row.encode())
    assert batch_desk.asked(1)["judge-0-mark"].error_class in ("bad_payload", "server")


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_batch_whose_answer_was_lost_is_found(desk, vendor):
    batch_desk = desk(vendor)
    batches = batch_desk.asker.server.batches
    assert batch_desk.do(lambda api: api.find(batch_desk.lot(2))) is None
    batches.trouble("POST", SUBMIT[vendor], LOST)
    with pytest.raises(ProviderError) as error:
        batch_desk.handed_in(2)
    assert error.value.maybe_billed
    (batch,) = batches.submitted
    assert batch_desk.do(lambda api: api.find(batch_desk.lot(2))) == batch.id


@pytest.mark.parametrize("vendor", ["openai", "google"])
def test_a_batch_is_found_by_our_name_for_it(desk, vendor):
    batch_desk = desk(vendor)
    batch_desk.handed_in(2)
    other_lot = replace(batch_desk.lot(2), mark="other")
    assert batch_desk.do(lambda api: api.find(other_lot)) is None


def test_anthropic_knows_no_name_so_a_batch_is_found_by_size_and_moment(desk):
    batch_desk = desk("anthropic")
    new_batch = batch_desk.handed_in(3)
    known_batch = batch_desk.handed_in(2)

    def found(lot: Lot) -> str | None:
        return batch_desk.do(lambda api: api.find(lot))

    assert found(batch_desk.lot(3)) == new_batch
    assert found(batch_desk.lot(4)) is None
    assert found(batch_desk.lot(2, other_ids=frozenset({known_batch}))) is None
    late = replace(batch_desk.lot(3), began=datetime.now(UTC) + timedelta(hours=1))
    assert found(late) is None


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_batch_is_looked_after_until_it_ends(desk, vendor):
    batch_desk = desk(vendor)
    batch_desk.asker.server.batches.polls = 2
    batch = batch_desk.handed_in(4)
    first, second = (batch_desk.do(lambda api: api.poll(batch)) for _ in range(2))
    assert (first.is_final, first.n_done) == (False, 0)
    assert (second.is_final, second.n_done, second.failure) == (True, 4, None)


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_cancelled_batch_has_ended_and_can_be_cancelled_again(desk, vendor):
    batch_desk = desk(vendor)
    batch_desk.asker.server.batches.hold = True
    batch = batch_desk.handed_in(4)
    for _ in range(2):
        batch_desk.do(lambda api: api.cancel(batch))
    progress = batch_desk.do(lambda api: api.poll(batch))
    assert progress.is_final
    assert never_came(progress).error_class == "interrupted"


@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize(("status", "action"), [(401, "stop"), (429, "retry"), (503, "retry")])
def test_what_the_batch_api_answers_is_classified_like_any_answer(desk, vendor, status, action):
    batch_desk = desk(vendor)
    batch_desk.asker.server.batches.trouble("POST", SUBMIT[vendor], status)
    with pytest.raises(ProviderError) as error:
        batch_desk.handed_in()
    assert error.value.action == action
    assert not error.value.maybe_billed
    assert batch_desk.asker.server.keys[vendor] not in str(error.value)


def test_openai_tells_why_it_refused_a_file(desk):
    batch_desk = desk("openai")
    batches = batch_desk.asker.server.batches
    for code, message, error_class in (
        ("model_not_found", "The model does not exist", "not_found"),
        ("token_limit_exceeded", "Enqueued token limit reached for m", "rate_limit"),
        ("invalid_json_line", "This line is no JSON", "bad_request"),
    ):
        error = {"code": code, "message": message, "line": 3, "param": None}
        batches.refuse = {"object": "list", "data": [error]}
        batch = batch_desk.handed_in()
        failure = batch_desk.do(lambda api, batch=batch: api.poll(batch)).failure
        assert failure.error_class == error_class
        assert message in failure.message
        assert "line 3" in failure.message


def test_a_refusal_of_the_whole_is_no_word_on_any_row(desk):
    """Or a resumed run would hold that the prompts are too long, and ask none of them again."""
    batch_desk = desk("openai")
    batch_desk.asker.server.batches.trouble("POST", "/files", 413)
    with pytest.raises(ProviderError) as error:
        batch_desk.handed_in()
    assert error.value.error_class == "bad_request"


def test_a_key_does_not_go_where_anthropic_says_the_results_are(desk):
    """Behind a gateway it names its own address, and the gateway's key is not for it."""
    batch_desk = desk("anthropic")
    batch_desk.asker.server.batches.results_at = "http://127.0.0.1:9/v1/messages/batches"
    replies = batch_desk.asked(2)
    assert [reply.outcome for reply in replies.values()] == ["ok", "ok"]


def test_files_do_not_stay_with_openai_for_ever(desk, monkeypatch):
    request_bodies: list[bytes] = []
    batch_desk = desk("openai")
    serve = batch_desk.asker.server.batches._openai
    monkeypatch.setattr(
        batch_desk.asker.server.batches,
        "_openai",
        lambda method, path, query, data, line: (
            request_bodies.append(data) or serve(method, path, query, data, line)
        ),
    )
    batch_desk.handed_in()
    assert b"expires_after" in request_bodies[0]
    assert b"output_expires_after" in request_bodies[1]


def test_a_temperature_is_sent_to_anthropic_under_the_version_that_knows_it(desk):
    plain, warm = desk("anthropic"), desk("anthropic", temperature=0.3)

    def target(entry: Desk) -> str:
        async def work(api: Any) -> str:
            return api.row(entry.asker.request()).target

        return entry.do(work)

    assert target(plain) == "/v1/messages"
    assert target(warm) == "/v1/messages 2023-06-01"  # so the two are never in one batch
    assert warm.asked(1)["judge-0-mark"].outcome == "ok"


def test_headers_of_ones_own_part_batches_too(desk):
    batch_desk = desk("openai", headers={"X-Team": "blue"})

    async def work(api: Any) -> str:
        return api.row(batch_desk.asker.request()).target

    assert batch_desk.do(work) == '/chat/completions {"X-Team": "blue"}'
    reply = batch_desk.asked(1)["judge-0-mark"]
    assert reply.request["headers"] == {"X-Team": "blue"}
    assert reply.request["url"].endswith("/openai/v1/chat/completions")


def test_which_questions_can_go_into_a_batch(desk):
    request = desk("google").asker.request()
    extra = replace(request, options=Options(extra={"safetySettings": []}))
    can = {v: can_batch(ModelRef(model=f"{v}/m"), request) for v in ("openrouter", *VENDORS)}
    assert can == {"openrouter": False, "openai": True, "anthropic": True, "google": True}
    assert not can_batch(ModelRef(model="google/m"), extra)
    assert can_batch(ModelRef(model="openai/m"), extra)
    assert not can_batch(ModelRef(model="replay/openai/m"), request)


def test_a_row_that_no_file_can_hold_is_refused(desk):
    batch_desk = desk("openai")

    async def work(api: Any) -> None:
        api.row(batch_desk.asker.request(system="\ud800"))

    with pytest.raises(ProviderError, match="not valid text"):
        batch_desk.do(work)
