"""A proxy that refuses: what it is asked with comes out nowhere."""

from __future__ import annotations

import asyncio
import base64
import json
import threading
import traceback
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from clash.config import Limits, ModelRef
from clash.errors import ProviderError
from clash.providers import open_provider
from clash.secrets.destinations import Environ
from wire.asking import PROVIDERS, Asker

if TYPE_CHECKING:
    from collections.abc import Iterator

USER, PASSWORD = "proxy-user-b0b", "s3cr%21t-Pa55"
PLAIN = "s3cr!t-Pa55"


class Refusing(BaseHTTPRequestHandler):
    """Answers 407 to everything, and repeats what it was sent."""

    def _refuse(self) -> None:
        record = self.headers.get("proxy-authorization", "")
        self.server.sent.append(record)  # type: ignore[attr-defined] # ours
        body = f"407: {record} is not {USER}:{PLAIN}".encode()
        self.send_response(407, "Proxy Authentication Required")
        self.send_header("content-length", str(len(body)))
        self.send_header("connection", "close")
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_CONNECT = _refuse  # noqa: N815 - the names that the base looks for

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def refusing() -> Iterator[ThreadingHTTPServer]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as server:
        server.sent = []  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def failure(provider: str, scheme: str, proxy: str, monkeypatch: pytest.MonkeyPatch):
    asker = Asker(None, provider, "m")  # type: ignore[arg-type] # no server is reached
    variables = {"MY_KEY": "sk-my0Key1Abc2Def3Ghi4Jkl5", f"{scheme}_proxy": proxy}
    environ = Environ(variables, hosts=[f"{scheme}://models.invalid"])
    monkeypatch.setenv(f"{scheme}_proxy", proxy)
    ref = ModelRef(
        model=f"{asker.vendor}/m", base_url=f"{scheme}://models.invalid/v1", api_key_env="MY_KEY"
    )

    async def main() -> ProviderError:
        provider = open_provider(ref, environ=environ, limits=Limits(timeout_s=20))
        try:
            with pytest.raises(ProviderError) as error:
                await provider.complete(asker.request())
            return error.value
        finally:
            await provider.aclose()

    return asyncio.run(main())


def everything(error: ProviderError) -> str:
    return "\n".join(
        ["".join(traceback.format_exception(error)), repr(vars(error)), json.dumps(error.response)]
    )


def assert_hidden(error: ProviderError) -> None:
    visible_text = everything(error)
    pair = base64.b64encode(f"{USER}:{PLAIN}".encode()).decode()
    for secret in (USER, PASSWORD, PLAIN, pair):
        assert secret not in visible_text


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_proxy_that_refuses_leaves_no_password_behind(provider, scheme, refusing, monkeypatch):
    proxy = f"http://{USER}:{PASSWORD}@127.0.0.1:{refusing.server_port}"
    error = failure(provider, scheme, proxy, monkeypatch)
    assert (error.error_class, error.action) == ("proxy", "stop"), error.message
    assert any(sent.startswith("Basic ") for sent in refusing.sent)
    assert_hidden(error)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_proxy_that_is_not_there_is_named_without_its_password(
    provider, unused_port, monkeypatch
):
    proxy = f"http://{USER}:{PASSWORD}@127.0.0.1:{unused_port}"
    error = failure(provider, "https", proxy, monkeypatch)
    assert f"127.0.0.1:{unused_port}" in error.message
    assert_hidden(error)
