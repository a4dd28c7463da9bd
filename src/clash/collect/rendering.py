"""Pages rendered once for all their judges, and without holding up the calls in flight."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

if TYPE_CHECKING:
    from collections.abc import Callable

    from clash.collect.ballots import Ballot
    from clash.collect.blind import Presentation

LONG = 20_000
"""Characters of responses from which on a page is rendered in a thread: a megabyte that is full of
what imitates delimiters and commands takes seconds."""


class Pages:
    """Pages as judges read them. The judges of one come to it at about the same time.

    Args:
        render: makes the page of a presentation.
        most: how many pages are kept.
    """

    def __init__(self, render: Callable[[Presentation], Ballot], most: int) -> None:
        self._render = render
        self._page = lru_cache(most)(_Page)

    async def of(self, presentation: Presentation) -> Ballot:
        """The page of a presentation."""
        page = self._page(presentation)
        return page.ballot or await page.rendered(self._render)


class _Page:
    """A page, once it is rendered."""

    def __init__(self, presentation: Presentation) -> None:
        self._presentation = presentation
        self._turn = anyio.Lock()
        self.ballot: Ballot | None = None

    async def rendered(self, render: Callable[[Presentation], Ballot]) -> Ballot:
        async with self._turn:
            if self.ballot is None:
                if sum(map(len, self._presentation.texts.values())) < LONG:
                    self.ballot = render(self._presentation)
                else:
                    self.ballot = await anyio.to_thread.run_sync(render, self._presentation)
        return self.ballot
