"""The review page on this machine, for one session."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from clash.errors import InputError
from clash.serving.server import LocalServer

if TYPE_CHECKING:
    from collections.abc import Callable

    from clash.review.session import Session
    from clash.serving.server import Page


class ReviewServer(LocalServer):
    """Serves one session until a person ends it.

    Args:
        session: the session.
        page: the page, which holds no data of the run.
        port: the port; 0 means any free one.
        summary: returns what is shown when a person finishes: tables, each with ``title``,
            ``columns``, ``rows`` and ``notes``.
    """

    def __init__(
        self,
        session: Session,
        page: Page,
        port: int = 0,
        summary: Callable[[], list[dict[str, Any]]] = list,
    ) -> None:
        super().__init__(port)
        self.session, self._page, self._summary = session, page, summary
        self.finish_event = threading.Event()

    def page(self, path: str) -> Page | None:
        """The page of the session."""
        return self._page if path == "/" else None

    def answer(self, path: str, request: dict[str, Any]) -> dict[str, Any]:
        """Answer a request of the page.

        Raises:
            InputError: the request is invalid.
        """
        annotator = request.get("annotator")
        match path:
            case "/api/state":
                return self.session.state(annotator)
            case "/api/decide":
                return self.session.decide(annotator, request)
            case "/api/undo":
                return self.session.undo(annotator)
            case "/api/finish":
                summary = self._summary()
                self.finish_event.set()
                return {"told": summary}
            case _:
                raise InputError(f"no {path}")
