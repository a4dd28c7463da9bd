"""Serve a page until Ctrl-C."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from clash.cli.common import say

if TYPE_CHECKING:
    from clash.serving.server import LocalServer


def serve(server: LocalServer, url: str, *, browse: bool) -> None:
    """Serve until a person ends it here, which is how it should end."""
    import webbrowser

    with server:
        try:
            say(url, style="bold")
            say("Ctrl-C ends it")
            if browse:
                webbrowser.open(url)
            threading.Event().wait()
        except KeyboardInterrupt:
            say("")
