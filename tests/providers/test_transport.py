"""aiohttp under httpx2: what is bounded, and how."""

from __future__ import annotations

import asyncio
import gzip

import httpx2
import pytest

from clash.providers.payload import TooMuch
from clash.providers.transport import AiohttpTransport

TEXT = b"x" * 1_000_000


def packed_answer(longest: int) -> bytes:
    """What a client makes of a megabyte that is sent as one kilobyte."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        body = gzip.compress(TEXT)
        head = f"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        writer.close()

    async def main() -> bytes:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        async with server, httpx2.AsyncClient(transport=AiohttpTransport(url, longest)) as client:
            return (await client.get(url)).content

    return asyncio.run(main())


def test_a_packed_answer_is_as_long_as_it_is_unpacked():
    assert packed_answer(2_000_000) == TEXT
    with pytest.raises(TooMuch, match="more than 10000 bytes"):
        packed_answer(10_000)
