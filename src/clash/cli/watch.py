"""The terminal as observer of a run that a page in the browser shows too."""

from __future__ import annotations

import sys
import webbrowser
from typing import TYPE_CHECKING, Self

from clash.cli.common import say
from clash.cli.observer import TerminalObserver

if TYPE_CHECKING:
    from pathlib import Path

    from clash.view.server import ViewServer


class RunObserver(TerminalObserver):
    """Watches runs for the terminal and, with ``watch``, for a page of each, while it is entered.

    On leaving, a page that is open is given the time to become the report.
    """

    def __init__(self, *, quiet: bool, watch: bool) -> None:
        super().__init__(quiet=quiet)
        self._watch = watch
        self._server: ViewServer | None = None
        self._path: Path | None = None

    def run_opened(self, path: Path) -> None:
        """Serve the page of a run."""
        if not self._watch or path == self._path:
            return
        from clash.view.server import ViewServer

        self._path = path
        if self._server is None:
            self._server = ViewServer(path.parent)
            self._server.__enter__()
        url = self._server.run_url(path)
        say(f"watch the run at {url}", style="bold")
        webbrowser.open(url)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._server is None:
            return
        try:
            if sys.exception() is None:
                self._server.linger()
        finally:
            self._server.__exit__()
