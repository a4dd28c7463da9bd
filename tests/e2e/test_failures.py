"""The failure catalogue: what each misbehaviour of a provider leaves in the folder."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from e2e.lab import PRICE, Folder, Lab
from wire import faults

if TYPE_CHECKING:
    from wire import Fault, WireServer

ITEMS = 2
ATTEMPTS = 3
ALWAYS = math.inf


@dataclass(frozen=True)
class Row:
    """One judge that is treated badly, one call at a time.

    Attributes:
        times: how often, from its first request on.
        errors: class of the failed attempts, as the journal should name it.
        end: ``answered``, or the cause that its judgments should name.
        failed: of its judgments.
        requests: that the server should see.
        billed: the vendor may have charged for the failed attempts.
    """

    id: str
    fault: Fault
    times: float
    errors: str | None
    end: str
    failed: int
    requests: int
    billed: bool = False


def mended_row(
    name: str, fault: Fault, error: str, times: int = 2, *, is_billed: bool = False
) -> Row:
    """It is asked again, and answers."""
    return Row(name, fault, times, error, "answered", 0, ITEMS + times, is_billed)


def exhausted_row(name: str, fault: Fault, error: str, *, is_billed: bool = False) -> Row:
    """It is asked again as often as is allowed, and never answers."""
    return Row(name, fault, ALWAYS, error, error, ITEMS, ITEMS * ATTEMPTS, is_billed)


def lost_row(name: str, fault: Fault, error: str) -> Row:
    """This call fails at once; the next is made as ever."""
    return Row(name, fault, 1, error, error, 1, ITEMS)


def stopped_row(name: str, fault: Fault, error: str) -> Row:
    """Nothing more is asked of this judge."""
    return Row(name, fault, ALWAYS, error, error, ITEMS, 1)


ROWS = [
    mended_row("hinted", faults.rate_limit("0.01"), "rate_limit"),
    mended_row("unhinted", faults.rate_limit(), "rate_limit", 1),
    mended_row("busy", faults.overloaded(), "overloaded", 1),
    mended_row("broken", faults.server_error(), "server"),
    mended_row("gateway", faults.bad_gateway(), "server"),
    mended_row("cut-before", faults.reset_before_headers(), "connection", is_billed=True),
    mended_row("cut-within", faults.reset_mid_body(), "connection", is_billed=True),
    mended_row("nothing", faults.empty_200(), "bad_payload", is_billed=True),
    mended_row("no-content", faults.no_content(), "bad_payload", is_billed=True),
    mended_row("junk", faults.not_json(), "bad_payload", is_billed=True),
    mended_row("error-in-200", faults.error_in_200(502), "server", is_billed=True),
    mended_row("error-finish", faults.error_finish(502), "server", is_billed=True),
    mended_row("portal", faults.html_200(), "proxy", 1),
    mended_row("late", faults.hang(), "timeout", 1, is_billed=True),
    exhausted_row("ever-broken", faults.server_error(), "server"),
    exhausted_row("ever-limited", faults.rate_limit("0.01"), "rate_limit"),
    exhausted_row("ever-junk", faults.not_json(), "bad_payload", is_billed=True),
    lost_row("long", faults.too_long(), "too_long"),
    lost_row("moderated", faults.moderation(), "blocked"),
    lost_row("do-not-retry", faults.should_not_retry(), "server"),
    stopped_row("no-quota", faults.quota(), "quota"),
    stopped_row("no-money", faults.payment_required(), "quota"),
    stopped_row("no-key", faults.unauthorized(), "auth"),
    stopped_row("no-entry", faults.forbidden(), "permission"),
    stopped_row("no-model", faults.not_found(), "not_found"),
    stopped_row("come-back-tomorrow", faults.rate_limit("86400"), "rate_limit"),
    # Answers that are worth less than they look: the attempts are answered, not failed.
    Row("cut-once", faults.truncated(), 1, None, "answered", 0, ITEMS + 1),
    Row("ever-cut", faults.truncated(), ALWAYS, None, "truncated", ITEMS, 2 * ITEMS),
    Row("ever-thinking", faults.reasoning_only(), ALWAYS, None, "truncated", ITEMS, 2 * ITEMS),
    Row("ever-empty", faults.empty(), ALWAYS, None, "empty", ITEMS, 2 * ITEMS),
    Row("prose-once", faults.text("A0 is nicer."), 1, None, "answered", 0, ITEMS + 1),
    Row("ever-prose", faults.text("A0 is nicer."), ALWAYS, None, "unreadable", ITEMS, 2 * ITEMS),
    Row("refuses", faults.refusal(), ALWAYS, None, "refusal", ITEMS, ITEMS),
    Row("filtered", faults.safety(), ALWAYS, None, "blocked", ITEMS, ITEMS),
    Row("uncounted", faults.no_usage(), ALWAYS, None, "answered", 0, ITEMS),
    Row("swapped", faults.swapped("another-model"), ALWAYS, None, "answered", 0, ITEMS),
]
LADDER = {
    "no-schema": (("json_schema",), 1, ["schema"]),
    "no-json": (("json_schema", "json_object"), 2, ["schema", "json"]),
    "no-cap": (("max_tokens",), 1, ["max_tokens"]),
}
"""Judges that refuse a part of the request: which, refused attempts, what is left out then."""
SOUND = [f"sound-{n}" for n in range(len(ROWS) + len(LADDER) + 1)]
"""More judges without a fault than with one, so that every item has a quorum."""


def _order(server: WireServer) -> None:
    for row in ROWS:
        server.misbehave(row.fault, model=row.id, times=row.times)
    for name, (refuses, _, _) in LADDER.items():
        server.conduct(name, refuses=refuses)


@dataclass(frozen=True)
class Storm:
    """A run in which nearly everything went wrong.

    Attributes:
        requests: that the server saw, by model.
    """

    lab: Lab
    run: Folder
    code: int
    printed: str
    requests: Counter[str]


@pytest.fixture(scope="module")
def storm(tmp_path_factory: pytest.TempPathFactory, server: WireServer) -> Storm:
    lab = Lab(tmp_path_factory.mktemp("storm"), server, server.environ("openrouter", "compatible"))
    _order(server)
    lab.prompts(ITEMS)
    names = [row.id for row in ROWS] + list(LADDER)
    judges = [
        {
            # OpenRouter's error in 200 is its own; the rest any server can say.
            "model": f"{'openrouter' if 'error' in name or name == 'moderated' else 'compatible'}/{name}",
            "concurrency": 1,
            "price": PRICE,
            "options": {"max_tokens": 500},
        }
        for name in names
    ]
    lab.panel(*judges, *({"model": f"compatible/{name}", "price": PRICE} for name in SOUND))
    lab.write(
        "clash.yaml",
        {
            "panel": "panel.yaml",
            "criteria": {"mode": "none"},
            "limits": {"timeout_s": 6, "max_attempts": ATTEMPTS},
        },
    )
    result = lab("eval", "prompts.yaml", "--run-id", "run", "--yes")
    requests = Counter(call.model for call in server.calls)
    return Storm(lab, lab.folder(), result.code, result.out + result.err, requests)


def cause(judgment: dict) -> str:
    if judgment["error"] is None:
        return "answered"
    head = judgment["error"].partition(":")[0]
    return head if head.replace("_", "").isalpha() else "unreadable"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_a_judgment_is_answered_or_failed_with_its_cause(storm, row):
    judgments = storm.run.judgments(row.id)
    assert len(judgments) == ITEMS
    failures = [j for j in judgments if j["ranking"] is None]
    assert len(failures) == row.failed
    assert {cause(j) for j in failures} <= {row.end}
    assert all((j["ranking"] is None) == (j["parse"] == "failed") for j in judgments)
    assert all((j["ranking"] is None) == (j["error"] is not None) for j in judgments)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_every_attempt_is_in_the_journal_with_its_class_and_its_cost(storm, row):
    attempts = storm.run.attempts(row.id)
    assert len(attempts) == storm.requests[row.id] == row.requests
    failures = [a for a in attempts if a["outcome"] == "error"]
    assert {a["error_class"] for a in failures} == ({row.errors} if row.errors else set())
    assert all(a["error"] for a in failures)
    for attempt in failures:
        assert (attempt["cost_usd"] is None) == row.billed
        assert (attempt["cost_bound_usd"] is not None) == row.billed
    by_call = Counter(a["call_id"] for a in attempts)
    for call_id, number in by_call.items():
        numbers = [a["attempt"] for a in attempts if a["call_id"] == call_id]
        assert numbers == list(range(1, number + 1))


@pytest.mark.parametrize("name", LADDER)
def test_what_a_model_refuses_is_refused_once_and_left_out_from_then_on(storm, name):
    _, refused_field, dropped_field = LADDER[name]
    attempts = storm.run.attempts(name)
    assert [a["error_class"] for a in attempts] == ["unsupported"] * refused_field + [None] * ITEMS
    assert [a["status"] for a in attempts] == [400] * refused_field + [200] * ITEMS
    assert all(a["degraded"] == dropped_field for a in attempts[refused_field:])
    assert {j["parse"] for j in storm.run.judgments(name)} == {"clean"}


def test_a_refused_model_keeps_its_item_and_says_which_status_it_had(storm):
    statuses = {row.id: storm.run.attempts(row.id)[0]["status"] for row in ROWS}
    assert statuses["no-key"] == 401
    assert statuses["no-money"] == 402
    assert statuses["no-model"] == 404
    assert statuses["hinted"] == statuses["no-quota"] == 429
    assert statuses["error-in-200"] == 200
    assert statuses["cut-before"] is None


def test_a_second_question_is_seen_in_the_judgment(storm):
    (mended_one,) = [j for j in storm.run.judgments("prose-once") if j["repairs"]]
    assert mended_one["repairs"] == ["asked a second time"]
    assert mended_one["parse"] == "repaired"
    assert mended_one["call_id"].endswith("+reask")
    longer = [j for j in storm.run.judgments("cut-once") if j["call_id"].endswith("+longer")]
    assert len(longer) == 1
    caps = [a["request"]["body"]["max_tokens"] for a in storm.run.attempts("ever-cut")]
    assert sorted(caps) == [500, 500, 1000, 1000]


def test_another_model_than_was_asked_is_on_record(storm):
    assert {a["served_model"] for a in storm.run.attempts("swapped")} == {"another-model"}


def test_a_failure_is_neither_a_vote_nor_a_tie(storm):
    judgments = storm.run.judgments()
    for verdict in storm.run.lines("verdicts"):
        votes = [
            j for j in judgments if j["item_id"] == verdict["item_id"] and j["ranking"] is not None
        ]
        # One point for each ranking of two candidates, and none for anything else.
        assert sum(verdict["scores"].values()) == pytest.approx(len(votes))
        assert not verdict["unanimous"]


def test_the_denominators_count_every_failure_by_its_cause(storm):
    coverage = storm.run.report["coverage"]
    judgments = storm.run.judgments()
    assert coverage["expected"] == len(judgments) == ITEMS * len([*ROWS, *LADDER, *SOUND])
    causes = Counter(cause(j) for j in judgments if j["ranking"] is None)
    assert Counter(coverage["failed"]) == causes
    assert sum(causes.values()) == sum(row.failed for row in ROWS)
    parts = coverage["clean"] + coverage["repaired"] + sum(coverage["failed"].values())
    assert parts + coverage["not_run"] == coverage["expected"]
    assert coverage["decided"] + coverage["tied"] + sum(coverage["abstained"].values()) == ITEMS


def test_models_that_refused_for_good_are_named_and_the_exit_code_is_4(storm):
    assert storm.code == 4
    final = {f"compatible/{row.id}" for row in ROWS if row.requests == 1 and row.failed == ITEMS}
    assert set(storm.run.manifest["stopped"]) == final
    assert storm.run.manifest["status"] == "partial"
    for model in final:
        assert model in storm.printed
    assert "clash resume" in storm.printed
    assert storm.lab.server.keys["compatible"] not in storm.printed


def test_a_model_that_another_one_answered_for_is_named_once(storm):
    line = "compatible/swapped was asked, and the server names another-model as the model"
    assert storm.printed.count(line) == 1
    assert [note for note in storm.run.manifest["notes"] if line in note]
    assert "was asked, and the server names" not in storm.printed.replace(line, "")


def test_the_storm_passes_the_audit(storm):
    result = storm.lab.here("verify", "runs/run")
    assert result.code == 0, result.out


def test_a_resumed_run_asks_again_what_may_be_mended_and_nothing_else(storm):
    lab, server = storm.lab, storm.lab.server
    before = storm.run.answered()
    server.clear()  # the weather is fine now
    run = lab.resumed()  # what was refused, blocked or unreadable stays so, within max_failed
    counts = Counter(call.model for call in server.calls)
    again = {row.id: row.failed for row in ROWS if row.errors not in (None, "too_long", "blocked")}
    refused_times = {name: times for name, (_, times, _) in LADDER.items()}
    assert counts == Counter({name: n for name, n in again.items() if n})
    assert not set(counts) & set(refused_times)
    answered_ids = run.answered()
    assert answered_ids[: len(before)] == before
    assert len(set(answered_ids)) == len(answered_ids)
    left = {j["judge"] for j in run.judgments() if j["ranking"] is None}
    assert left == {row.id for row in ROWS if row.failed and row.id not in again}
    assert run.manifest["stopped"] == {}
    assert lab.here("verify", "runs/run").code == 0


def test_the_commonest_error_of_responses_is_shown(lab: Lab, server: WireServer) -> None:
    lab.prompts(4, candidates=("ada",))
    server.misbehave(faults.too_long(), model="bob", times=1)
    server.misbehave(faults.status(400, "not today"), model="bob", times=3)
    words = ("prompts.yaml", "--models", "compatible/bob", "--panel", "baseline", "--yes")
    result = lab.here("eval", *words, "--criteria", "none", "--concurrency", 1)
    assert result.code == 3
    assert "4 responses failed, 3 of them with bad_request: not today" in result.err
