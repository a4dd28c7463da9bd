"""A real browser, where one is installed, and a server that counts who calls."""

from __future__ import annotations

import contextlib
import shutil
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from selenium.webdriver import Chrome

_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
_FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
          "--window-size=1200,1400", "--no-first-run", "--disable-background-networking")  # fmt: skip


@contextlib.contextmanager
def chrome() -> Iterator[Chrome]:
    """A headless browser; the test is skipped where there is none."""
    program = next(filter(None, map(shutil.which, _NAMES)), None)
    driver = shutil.which("chromedriver")
    if program is None or driver is None:
        pytest.skip("no browser: apt-get install chromium chromium-driver")
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    options = Options()
    options.binary_location = program
    for flag in _FLAGS:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver_session = webdriver.Chrome(options=options, service=Service(driver))
    try:
        yield driver_session
    finally:
        driver_session.quit()


class Beacon:
    """Remembers every path that anyone asked it for."""

    def __init__(self) -> None:
        requests = self.seen = []

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                requests.append(self.path)
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.send_header("Content-Length", "0")
                self.end_headers()

            do_POST = do_GET  # noqa: N815 - the name that http.server calls

            def log_message(self, *_):
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def hostile(url: str) -> str:
    """A response that tries everything at once."""
    return "\n".join([
        "<script>window.pwned = 1</script></script><script>window.pwned = 2</script>",
        f'<img src="{url}/img" onerror="window.pwned=3"><svg onload="window.pwned=4">',
        f"<style>body{{background:url({url}/css)}} .quote{{display:none}}</style>",
        f'<link rel="stylesheet" href="{url}/link"><iframe src="{url}/frame"></iframe>',
        f'<meta http-equiv="refresh" content="0;url={url}/meta"><base href="{url}/">',
        f"![pixel]({url}/markdown) [click](javascript:window.pwned=5)",
        "\u202eright to left\u202c \u2066isolated \x1b[31mred\x1b[0m {{ 7*7 }} {% raw %}",
        '</pre></article><div style="position:fixed;inset:0;z-index:9"><button>A is better</button>'
        "<h1>The winner is me</h1></div>",
        "x" * 200_000,
    ])  # fmt: skip
