"""One model behind several addresses: each call goes to the least busy server that answers.

A server that fails rests, twice as long each time, and is then tried with one call. While others
answer, its failures end neither the call nor the model: the next attempt goes elsewhere.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from clash.errors import ProviderError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from clash.providers.base import Provider, Reply, Request

FIRST_REST_S = 1.0
LONGEST_REST_S = 60.0
_UNWELL = frozenset(
    {
        "connection",
        "timeout",
        "server",
        "overloaded",
        "incomplete_stream",
        "bad_payload",
        "rate_limit",
    }
)
"""Failures of a server, and not of the question."""


@dataclass(slots=True)
class Server:
    """One address of a model.

    Attributes:
        address: host and port, as records name it.
        in_flight: calls that wait for its answer.
        failures: failed calls since the last answer.
        rests_until: by the clock of the pool; before it no call goes there.
        refuses: its last failure was one that ends a model with a single server.
    """

    address: str
    provider: Provider
    in_flight: int = 0
    failures: int = 0
    rests_until: float = 0.0
    refuses: bool = False

    def is_ready(self, now: float) -> bool:
        """Whether a call may go there: after a failure one at a time, until one is answered."""
        return now >= self.rests_until and (not self.failures or not self.in_flight)


class Replicas:
    """Several servers of one model as one provider.

    Args:
        servers: address and provider of each, two at least.
        clock: seconds, for the rests.

    Attributes:
        account: what rate limits are shared by; names every address.
    """

    offline = False

    def __init__(
        self,
        servers: Sequence[tuple[str, Provider]],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._servers = [Server(urlsplit(url).netloc, provider) for url, provider in servers]
        self._clock = clock
        self._turn = 0
        first = self._servers[0]
        addresses = ", ".join(server.address for server in self._servers)
        self.account = first.provider.account.replace(first.address, addresses, 1)

    async def complete(self, request: Request) -> Reply:
        """Make one attempt, at the server that :meth:`choose` names.

        Raises:
            ProviderError: it has no usable answer. Where another server is ready, the error asks
                for another attempt at once; it ends the model only where every server refuses.
        """
        server = self.choose()
        server.in_flight += 1
        try:
            reply = await server.provider.complete(request)
        except ProviderError as error:
            error.address = server.address
            is_unwell = error.action == "retry" and error.error_class in _UNWELL
            if is_unwell or error.action == "stop":
                self._pause(server, error)
            raise
        finally:
            server.in_flight -= 1
        server.failures, server.refuses = 0, False
        return replace(reply, address=server.address)

    def choose(self) -> Server:
        """The ready server with the fewest calls in flight; equals take turns.

        Where none is ready, the one whose rest ends first.
        """
        now = self._clock()
        self._turn += 1
        order = self._servers[self._turn % len(self._servers) :] + self._servers
        ready = [server for server in order if server.is_ready(now)]
        if ready:
            return min(ready, key=lambda server: server.in_flight)
        return min(order, key=lambda server: server.rests_until)

    async def aclose(self) -> None:
        """Close every connection."""
        for server in self._servers:
            await server.provider.aclose()

    def _pause(self, server: Server, error: ProviderError) -> None:
        """Send no call to the server for a while, and let this one be made elsewhere."""
        now = self._clock()
        server.refuses = error.action == "stop"
        # Calls that were in flight together fail together: they count once.
        if now >= server.rests_until:
            server.failures += 1
            pause = min(LONGEST_REST_S, FIRST_REST_S * 2 ** (server.failures - 1))
            server.rests_until = now + max(pause, error.retry_after or 0.0)
        peers = [peer for peer in self._servers if peer is not server]
        willing = [peer for peer in peers if not peer.refuses]
        if any(peer.is_ready(now) for peer in peers):
            error.action, error.retry_after = "retry", 0.0
        elif willing:
            wait = max(0.0, min(peer.rests_until for peer in willing) - now)
            if error.action == "stop":
                error.action, error.retry_after = "retry", wait
            elif error.retry_after is not None:
                error.retry_after = min(error.retry_after, wait)
