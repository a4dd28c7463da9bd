"""The proxy that the environment asks for: HTTPS_PROXY, NO_PROXY and what the system says."""

from __future__ import annotations

from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from clash.errors import ConfigError


def proxy_for(url: str) -> str | None:
    """The proxy to reach ``url`` through; null for none.

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
