"""What a simulated user is told, and what it says. Pure.

It reads its goal and the conversation, as a judge would see it: the candidate's name is masked, and
nothing in an answer can give it orders or pass for a message of its own.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from typing import TYPE_CHECKING

from clash.collect.blind import visible_text
from clash.collect.conversation import Script
from clash.collect.defusing import defuse, defuse_delimiters
from clash.providers.base import Request
from clash.records import Turn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.collect.plan import Plan
    from clash.config import Candidate, SimulatedUser
    from clash.records import AnsweredTurn, Item

END = "[END]"
"""What a simulated user says when it has no more to say."""
USER_TOKENS = 1024
_END_LINE = re.compile(r"[*_`\"'“”\s]{0,9}\[END\][*_`.\"'“”\s]{0,9}", re.IGNORECASE)


def user_request(
    plan: Plan,
    item: Item,
    candidate: Candidate,
    user: SimulatedUser,
    turns: Sequence[AnsweredTurn],
) -> Request:
    """The request to a simulated user: its goal and the conversation, without the candidate's name.

    The answers are masked and defused as they are for judges.
    """
    nonce = _nonce(plan, item.item_id, candidate.id, len(turns) + 1)
    script = Script.of(item, user)
    blocks = []
    for message in script.messages(turns, user=""):
        if message.role == "assistant":
            text, _ = visible_text(message.content, plan.names, plan.config.blinding.scrub)
            blocks.append(_delimit("response", defuse(text, nonce, "", []), nonce))
        elif message.role == "user" and message.content:
            text = defuse_delimiters(message.content).replace(nonce, "·" * len(nonce))
            blocks.append(_delimit("prompt", text, nonce))
    fields = {
        "goal": defuse_delimiters(user.goal or ""),
        "conversation": "\n\n".join(blocks),
        "nonce": nonce,
        "end": END,
    }
    return Request(
        turns=(Turn(role="user", content=plan.templates.render("user.next", fields)),),
        system=plan.templates.render("user.system", {"end": END}),
        max_tokens=user.options.max_tokens or USER_TOKENS,
        options=user.options,
    )


def next_message(answer: str) -> str | None:
    """What a simulated user says next; null where it ends the conversation.

    The end stands alone on the last line. What is said before it is a farewell and is not sent.
    """
    text = answer.strip()
    last = text.rpartition("\n")[2]
    return None if len(last) < 40 and _END_LINE.fullmatch(last) else text


def _delimit(name: str, text: str, nonce: str) -> str:
    return f'<{name} nonce="{nonce}">\n{text}\n</{name} nonce="{nonce}">'


def _nonce(plan: Plan, item_id: str, *parts: object) -> str:
    """The code in the delimiters, which no candidate can know; the same on every resume."""
    key = json.dumps(["user", item_id, *parts]).encode()
    secret = (plan.secret_of(item_id) or f"seed {plan.config.seed}").encode()
    return hmac.new(secret, key, hashlib.sha256).hexdigest()[:12]
