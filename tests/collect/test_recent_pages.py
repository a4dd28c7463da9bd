"""Pages are kept for judges that lag, up to so many characters."""

from __future__ import annotations

import gc

import anyio
import pytest

from clash.collect.blind import presentations
from clash.collect.judge import PromptCache
from clash.collect.pages import MOST_CHARACTERS, RecentPages
from clash.config import BlindingConfig
from clash.records import Item


class Maker:
    """Makes the pages of items whose two responses have so many characters each."""

    def __init__(self, size):
        self.size = size
        self.positions = []

    def __call__(self, position):
        self.positions.append(position)
        texts = {"a": "x" * self.size, "b": "y" * self.size}
        item = Item(item_id=f"q{position}", prompt="Say something.")
        return item, tuple(presentations(item.item_id, texts, ["j"], BlindingConfig(), 0))


def test_short_pages_are_made_once_for_judges_far_apart():
    make = Maker(1000)
    pages = RecentPages(make, least=4)
    n_items = MOST_CHARACTERS // 2000
    assert [pages.of(n) for n in range(n_items)] == [pages.of(n) for n in range(n_items)]
    assert make.positions == [*range(n_items)]


@pytest.mark.parametrize("least", [1, 3])
def test_of_long_pages_no_more_are_kept_than_judges_are_at(least):
    make = Maker(MOST_CHARACTERS)
    pages = RecentPages(make, least)
    for position in range(5):
        pages.of(position)
    make.positions.clear()
    for position in reversed(range(5)):
        pages.of(position)
    assert make.positions == [*reversed(range(5 - least))]


def test_a_page_that_was_asked_for_again_stays():
    make = Maker(MOST_CHARACTERS)
    pages = RecentPages(make, least=2)
    for position in (0, 1, 0, 2, 0):
        pages.of(position)
    assert make.positions == [0, 1, 2]


def test_a_prompt_is_kept_as_long_as_its_page():
    pages, rendered = RecentPages(Maker(MOST_CHARACTERS), least=1), []

    def render(presentation):
        rendered.append(presentation.blinding.item_id)
        return object()

    async def main():
        prompts = PromptCache(render)
        for position in (0, 0, 1):
            await prompts.of(pages.of(position)[1][0])
        gc.collect()
        return len(prompts)

    assert anyio.run(main) == 1
    assert rendered == ["q0", "q1"]
