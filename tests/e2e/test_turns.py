"""Conversations of several turns: each answered before the next is sent, all of them judged."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from e2e.lab import PRICE
from wire import faults
from wire.answers import deterministic, schema_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from e2e.lab import Folder, Lab
    from wire import Asked

VENDORS = ("openai", "anthropic", "google", "openrouter", "compatible")
WORDS = ("prompts.yaml", "--panel", "panel.yaml", "--criteria", "none")
BLOCK = re.compile(
    r'<(response|prompt) label="(A\d)" turn="(\d)" nonce="(\w+)">\n(.*?)\n</\1 nonce="\4">',
    re.DOTALL,
)


def candidate(asked: Asked) -> str:
    """Answers with the number of messages it got, and only to what every vendor takes."""
    roles = [role.replace("model", "assistant") for role, _ in asked.turns if role != "system"]
    assert roles == ["user", "assistant"] * (len(roles) // 2) + ["user"], roles
    return f"{asked.model} answers message {len(roles)}: {asked.turns[-1][1][:40]}"


def answers(user: Callable[[Asked], str] = candidate) -> Callable[[Asked], str]:
    """Judges, candidates, and a model named ``user`` that plays one."""

    def answer(asked: Asked) -> str:
        if schema_of(asked) is not None:
            return deterministic(asked)
        return user(asked) if asked.model == "user" else candidate(asked)

    return answer


def lay(lab: Lab, *candidates: str, **config: Any) -> None:
    lab.panel({"model": "openrouter/judge", "price": PRICE})
    models = [{"model": name, "price": PRICE} for name in candidates]
    lab.write("clash.yaml", {"candidates": models, "observers": [], **config})


def page_of(run: Folder, item: str) -> str:
    """What the judge of an item read."""
    (call,) = [c for c in run.lines("calls") if c["purpose"] == "judge" and c["item_id"] == item]
    return "\n".join(str(message["content"]) for message in call["request"]["body"]["messages"])


def test_each_turn_is_sent_after_the_answer_to_the_one_before_by_every_vendor(lab: Lab) -> None:
    lab.server.answer = answers()
    lay(lab, *(f"{vendor}/of-{vendor}" for vendor in VENDORS))
    messages = [
        {"role": "user", "content": "An example?"},
        {"role": "assistant", "content": "A recorded answer."},
        {"role": "user", "content": "First?"},
        {"role": "user", "content": "Second?"},
    ]
    lab.write("prompts.yaml", [{"id": "q", "messages": messages, "system": "Be brief."}])
    planned = lab.here("eval", *WORDS, "--dry-run", "--json").json
    assert planned["calls"] == 2 * len(VENDORS) + 1
    run = lab.judged(*WORDS)
    for response in run.lines("responses"):
        name, turns = response["candidate"], response["turns"]
        texts = [f"{name} answers message 3: First?", f"{name} answers message 5: Second?"]
        assert [turn["text"] for turn in turns] == texts
        assert response["text"] == f"[Turn 1]\n{texts[0]}\n\n[Turn 2]\n{texts[1]}"
        assert response["cost_usd"] == pytest.approx(sum(turn["cost_usd"] for turn in turns))
        assert response["latency_s"] == pytest.approx(sum(turn["latency_s"] for turn in turns))
        assert response["tokens"]["input"] == sum(turn["tokens"]["input"] for turn in turns)
    assert sum(call["purpose"] == "generate" for call in run.lines("calls")) == 2 * len(VENDORS)
    assert all("Be brief." in json.dumps(seen.body) for seen in lab.server.calls[:10])
    page = page_of(run, "q")
    assert "[user, turn 2]\nSecond?" in page
    assert [block[:3] for block in BLOCK.findall(page)] == [
        ("response", f"A{label}", turn) for label in range(len(VENDORS)) for turn in "12"
    ]
    assert lab.here("verify", run.path).code == 0
    again = lab.here("eval", "--replay", str(run.path), "--run-id", "again", "--yes")
    assert again.code == 0, again.err
    repeated = {r["candidate"]: r["text"] for r in lab.folder("again").lines("responses")}
    assert repeated == {r["candidate"]: r["text"] for r in run.lines("responses")}


def test_a_conversation_is_resumed_in_its_middle_and_its_failure_is_counted(lab: Lab) -> None:
    lab.server.answer = answers()
    lay(lab, "openrouter/one", "openrouter/two", limits={"max_attempts": 1, "max_failed": 0})
    lab.write("prompts.yaml", [{"id": "q", "turns": ["First?", "Second?", "Third?"]}])
    lab.server.misbehave(faults.server_error(), model="two", nth=2)
    run = lab.judged(*WORDS, code=3)
    failure = next(r for r in run.lines("responses") if r["candidate"] == "two")
    assert failure["text"] is None
    assert failure["error"].endswith("(turn 2 of 3)")
    assert [turn["text"] for turn in failure["turns"]] == ["two answers message 1: First?"]
    assert failure["cost_usd"] == failure["turns"][0]["cost_usd"]
    assert lab.here("verify", run.path).code == 0
    n_asked = lab.server.count(model="two")
    run = lab.resumed()
    assert lab.server.count(model="two") == n_asked + 2
    assert lab.server.paid_twice() == []
    last = run.lines("responses")[-1]
    assert [turn["text"][-6:] for turn in last["turns"]] == ["First?", "econd?", "Third?"]
    assert lab.here("verify", run.path).code == 0
