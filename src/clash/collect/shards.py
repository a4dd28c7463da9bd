"""One shard of a run: every n-th item, and everything else of the whole run.

A shard is planned from the whole run and then cut, so that nothing in it depends on the cut: items
keep their ids, candidates their names, and seed, shuffles, templates and panel are those of the run.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from clash.errors import ConfigError
from clash.records import Item, Response, candidates_of
from clash.store.journal import encode
from clash.store.manifest import MOST_SHARDS, Shard
from clash.store.stored import ItemPart
from clash.store.table import ItemRows, RecordTable
from clash.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from clash.collect.plan import Plan


def parse_shard(text: str) -> tuple[int, int]:
    """``2/4`` as its two numbers.

    Raises:
        ConfigError: it is not a shard.
    """
    match = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text.strip(), re.ASCII)
    number, of = (int(match[1]), int(match[2])) if match else (0, 0)
    if 1 <= number <= of <= MOST_SHARDS:
        return number, of
    hint = "--shard 2/4 is the second of four shards"
    if match and number == 0 and of:
        hint = f"shards count from 1: --shard 1/{of} is the first, --shard {of}/{of} the last"
    raise ConfigError(f"{text!r} is not a shard", field="--shard", hint=hint)


def cut_plan(plan: Plan, number: int, of: int) -> Plan:
    """The plan of one shard.

    Raises:
        ConfigError: no item is left for it.
    """
    items = plan.items[number - 1 :: of]
    if not items:
        raise ConfigError(
            f"shard {number} of {of} has no item: the run has {plural(len(plan.items), 'item')}",
            field="--shard",
            hint=f"at most {plural(len(plan.items), 'shard')}",
        )
    item_ids = {item.item_id for item in items}
    shard = Shard(
        number=number,
        of=of,
        items=len(plan.items),
        candidates=candidates_of(plan.responses),
        sha256=inputs_hash(plan.items, plan.responses),
    )
    return replace(
        plan,
        items=items,
        responses=plan.responses.where(
            part.item_id in item_ids for part in plan.responses.parts(ItemPart)
        ),
        secret=joined_secrets([plan.secret_of(item.item_id) for item in items]),
        shard=shard,
    )


def inputs_hash(items: Iterable[Item], responses: Iterable[Response]) -> str:
    """SHA-256 of items and given responses, those of an item in their order."""
    items = RecordTable.of(Item, items)
    positions = {item.item_id: position for position, item in enumerate(items)}
    of_item = ItemRows(RecordTable.of(Response, responses), positions)
    digest = hashlib.sha256()
    for position, item in enumerate(items):
        digest.update(encode(item))
        for response in of_item.of(position):
            if response.source == "injected":
                digest.update(encode(response))
    return digest.hexdigest()


def joined_secrets(secrets: Sequence[str | None]) -> str | None:
    """The secret of a run whose items have these, in order: the shortest list that repeats.

    Shards draw a secret each, for there is nothing that all of them know and an author of
    responses does not. Taken in turn, theirs are those of the items of the whole run.
    """
    if not secrets or None in secrets:
        return None
    words = [str(secret) for secret in secrets]
    # The shortest period of a sequence, by the failure function of Knuth, Morris and Pratt.
    borders, length = [0], 0
    for word in words[1:]:
        while length and words[length] != word:
            length = borders[length - 1]
        length += words[length] == word
        borders.append(length)
    return " ".join(words[: len(words) - borders[-1]])


def describe_shard(plan: Plan) -> str:
    """What a shard does, and what it may spend, in one line."""
    shard, limit = plan.shard, plan.config.limits.max_cost
    if shard is None:
        raise ValueError("the plan is of a whole run")
    text = f"{shard.title}: {len(plan.items)} of {plural(shard.items, 'item')}"
    if plan.max_cost is None or limit is None:
        return text
    return f"{text}; may spend ${float(plan.max_cost):.4f} of --max-cost ${limit:.4f}"
