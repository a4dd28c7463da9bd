"""Which models a server that speaks OpenAI's chat completions says it has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import aiohttp
import msgspec

from clash.errors import ConfigError
from clash.providers.accounts import account
from clash.providers.http import open_session
from clash.providers.payload import MAX_BYTES, part
from clash.providers.proxies import proxy_for

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clash.config import Limits, ModelRef


async def listed_models(ref: ModelRef, environ: Mapping[str, str], limits: Limits) -> list[str]:
    """The names under ``GET {base_url}/models``, sorted.

    Raises:
        ConfigError: the server does not list its models.
    """
    reached = account(ref, environ)
    url = f"{reached.base_url}/models"
    headers = {"authorization": f"Bearer {reached.key}"} if reached.key else {}
    try:
        async with (
            open_session(reached, limits) as session,
            session.get(
                url, headers=headers, proxy=proxy_for(url), allow_redirects=False
            ) as answer,
        ):
            body = await answer.content.read(MAX_BYTES) if answer.status == 200 else b""
        listing: Any = msgspec.json.decode(body)
    except (aiohttp.ClientError, OSError, msgspec.DecodeError, UnicodeDecodeError):
        listing = None
    rows = part(listing, "data")
    names = {part(row, "id") for row in rows} if isinstance(rows, list) else set()
    models = sorted(name for name in names if isinstance(name, str) and name)
    if not models:
        raise ConfigError(
            f"{url} lists no models",
            field="--torture",
            hint="name one: --models compatible/NAME",
        )
    return models
