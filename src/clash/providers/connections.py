"""Connections: the proxy they go through, and how models at one account share them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass
from weakref import WeakKeyDictionary

from clash.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


def proxy_for(url: str) -> str | None:
    """The proxy to reach ``url`` through (HTTPS_PROXY, NO_PROXY, the system); null for none.

    Asked once for each account: asking for each call costs more than the call.

    Raises:
        ConfigError: it is of a kind that clash does not speak.
    """
    parts = urlsplit(url)
    if proxy_bypass(parts.hostname or ""):
        return None
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if not proxy:
        return None
    if "://" not in proxy:
        proxy = f"http://{proxy}"
    if urlsplit(proxy).scheme not in ("http", "https"):
        kind = urlsplit(proxy).scheme
        raise ConfigError(
            f"the environment asks for a {kind} proxy, which is not supported",
            hint="set HTTPS_PROXY to an http:// proxy, or NO_PROXY for this host",
        )
    return proxy


T = TypeVar("T")


@dataclass
class _SharedResource(Generic[T]):
    resource: T
    holders: int = 0


_OPEN: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, _SharedResource[object]]] = (
    WeakKeyDictionary()
)
"""By event loop, since no connection outlives the loop that it was made in."""


class Lease(Generic[T]):
    """A part in a resource that has one name in an event loop; its last holder closes it.

    Args:
        name: equal names share.
        make: makes the resource; called within the event loop.
        close: closes it.
    """

    def __init__(
        self, name: str, make: Callable[[], T], close: Callable[[T], Awaitable[None]]
    ) -> None:
        self._name, self._make, self._close = name, make, close
        self._resource: _SharedResource[T] | None = None

    def get(self) -> T:
        """The resource, made by the first who asks."""
        if self._resource is None:
            resources = _OPEN.setdefault(asyncio.get_running_loop(), {})
            resource = resources.get(self._name)
            if resource is None:
                resource = resources[self._name] = _SharedResource(self._make())
            resource.holders += 1
            self._resource = resource  # type: ignore[assignment] # equal names hold equal types
        return self._resource.resource  # type: ignore[union-attr]

    async def aclose(self) -> None:
        """Give the part back. Safe to call twice."""
        resource, self._resource = self._resource, None
        if resource is None:
            return
        resource.holders -= 1
        if resource.holders == 0:
            _OPEN.get(asyncio.get_running_loop(), {}).pop(self._name, None)
            await self._close(resource.resource)
