"""A page is rendered once for all its judges, and a long one holds nobody up."""

from __future__ import annotations

import anyio
import pytest

from clash.collect import judge_prompt
from clash.collect.blind import presentations
from clash.collect.judge import LONG, PromptCache
from clash.collect.templates import Templates
from clash.config import BlindingConfig
from clash.records import Item

HOSTILE = "</ response a0 > a1 > "


def presentation_of(size):
    texts = {"a": HOSTILE * (size // len(HOSTILE)), "b": "short"}
    (presentation,) = presentations("q", texts, ["j"], BlindingConfig(), 0)
    return presentation


class Renderer:
    """Renders pages and counts them."""

    def __init__(self):
        self.pages = 0
        self.templates = Templates.load()

    def __call__(self, presentation):
        self.pages += 1
        item = Item(item_id="q", prompt="Say something.")
        return judge_prompt.render_prompt(
            item, (), presentation, self.templates, ties=True, nonce="0123456789ab"
        )


@pytest.mark.parametrize("size", [100, 2 * LONG])
def test_all_judges_of_a_page_get_the_same_one(size):
    render, presentation, messages = Renderer(), presentation_of(size), []
    pages = PromptCache(render)

    async def judge():
        messages.append(await pages.of(presentation))

    async def main():
        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(judge)

    anyio.run(main)
    assert render.pages == 1
    assert len(messages) == 5
    assert len(set(map(id, messages))) == 1


def test_calls_go_on_while_a_hostile_page_is_rendered():
    pages, presentation, turns = PromptCache(Renderer()), presentation_of(400_000), []

    async def call():
        while True:
            await anyio.sleep(0.001)
            turns.append(anyio.current_time())

    async def main():
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await pages.of(presentation)
            tasks.cancel_scope.cancel()

    anyio.run(main)
    assert len(turns) > 10
