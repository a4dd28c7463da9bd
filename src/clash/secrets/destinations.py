"""Decide where a key may be sent, by who chose its variable and server and what the owner confirmed.

The decision is pure: :func:`is_expected` reads nothing but its arguments. Confirmed destinations
are stored in the user's configuration directory, which no working folder can name.
"""

from __future__ import annotations

import errno
import hashlib
import hmac
import json
import os
import re
import secrets
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from clash.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Source = Literal["owner", "file", "auto", "run"]
"""Who chose an address or a variable: the owner of the keys (on the command line, in the
environment of the process, or by choosing nothing), a file that the owner named, a file that was
read by itself (``clash.yaml`` and the panel that it names), or a run folder."""

HOMES: Mapping[str, str] = {
    "OPENAI_API_KEY": "https://api.openai.com",
    "ANTHROPIC_API_KEY": "https://api.anthropic.com",
    "GOOGLE_API_KEY": "https://generativelanguage.googleapis.com",
    "GEMINI_API_KEY": "https://generativelanguage.googleapis.com",
    "OPENROUTER_API_KEY": "https://openrouter.ai",
    "HF_TOKEN": "https://huggingface.co",
}
"""The server that each vendor's key was issued for."""
_HOSTS = "CLASH_TRUST_HOSTS"
_DEFAULT_PORTS = {"http": 80, "https": 443}
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_STORE, _SECRET = "trust.json", "origin.key"
_SECRET_BYTES = 32


def server_of(url: str) -> str:
    """``scheme://host[:port]`` of an address, in one spelling; a default port is left out.

    Raises:
        ValueError: it is no http(s) URL, or two programs could read it differently.
    """
    # Parsers disagree about backslashes, blanks and control characters, and letters of other scripts
    # look like Latin ones: in both cases clash would show one server and call another.
    if not url.isascii() or not url.isprintable() or re.search(r"[\s\\]", url):
        raise ValueError("contains characters that are not allowed in an address")
    parts = urlsplit(url)
    if parts.scheme not in _DEFAULT_PORTS or not parts.hostname:
        raise ValueError("is no http(s) URL")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    port = parts.port
    port_suffix = "" if port in (None, _DEFAULT_PORTS[parts.scheme]) else f":{port}"
    return f"{parts.scheme}://{host}{port_suffix}"


@dataclass(frozen=True, slots=True, order=True)
class Destination:
    """The NAME of a variable that holds a key, and the server that the key would be sent to."""

    variable: str
    server: str

    def __str__(self) -> str:
        return f"{self.variable} -> {self.host}"

    @property
    def host(self) -> str:
        """The server as people write it: the scheme is left out where it is https."""
        return self.server.removeprefix("https://")

    @property
    def is_encrypted(self) -> bool:
        """Whether the connection hides the key from everyone in between."""
        return self.server.startswith("https://")

    @property
    def is_loopback(self) -> bool:
        """Whether the server is this machine."""
        host = urlsplit(self.server).hostname or ""
        if host == "localhost":
            return True
        try:
            return ip_address(host).is_loopback
        except ValueError:
            return False


def is_expected(destination: Destination, *, address: Source, variable: Source) -> bool:
    """Whether a key may go to ``destination`` without the owner confirming it.

    Args:
        destination: the key and the server.
        address: who chose the server.
        variable: who chose the variable; the provider's default is the owner's choice.
    """
    if HOMES.get(destination.variable) == destination.server:
        return True
    if variable not in ("owner", "file"):
        return False
    if destination.is_loopback:
        return address != "run"
    return address == "owner" and destination.is_encrypted


class Environ(dict[str, str]):
    """The variables that clash reads, with the destinations that their owner has confirmed.

    A plain mapping in its place confirms nothing, and neither does a copy of this one.
    """

    def __init__(
        self,
        variables: Mapping[str, str],
        *,
        destinations: Iterable[Destination] = (),
        hosts: Iterable[str] = (),
    ) -> None:
        super().__init__(variables)
        self._destinations = set(destinations)
        self._servers = {server_named(host) for host in hosts}

    def confirm(self, destinations: Iterable[Destination]) -> None:
        """Allow these keys to be sent to these servers, in this process."""
        self._destinations |= set(destinations)

    def allows(self, destination: Destination) -> bool:
        """Whether the owner has confirmed it."""
        return destination in self._destinations or destination.server in self._servers


def trusted_hosts(environ: Mapping[str, str]) -> list[str]:
    """The hosts of ``CLASH_TRUST_HOSTS`` in the environment of the process."""
    return environ.get(_HOSTS, "").split()


def is_confirmed(destination: Destination, environ: Mapping[str, str]) -> bool:
    """Whether the owner of the variables has confirmed the destination."""
    return isinstance(environ, Environ) and environ.allows(destination)


def server_named(host: str) -> str:
    """The server for ``host``, ``host:port`` or a URL; without a scheme it is https.

    Raises:
        ConfigError: it names no server.
    """
    try:
        return server_of(host if "://" in host else f"https://{host}")
    except ValueError as error:
        raise ConfigError(
            f"{host!r} {error}", field="HOST", hint="write gateway.example or http://10.0.0.5:8000"
        ) from None


def destination_named(variable: str, host: str) -> Destination:
    """The destination for the name of a variable and a host.

    Raises:
        ConfigError: one of them is invalid; the message never quotes ``variable``, which may be a
            key given by mistake.
    """
    if not _VARIABLE.fullmatch(variable):
        raise ConfigError(
            "expected the NAME of an environment variable, not a key",
            field="VARIABLE",
            hint="clash trust GATEWAY_KEY gateway.example",
        )
    return Destination(variable, server_named(host))


# -- confirmed destinations, on disk ------------------------------------------------------------


def config_folder() -> Path:
    """The user's configuration folder: ``CLASH_CONFIG_DIR``, else the folder of the platform.

    Raises:
        FileNotFoundError: the user has no home.
    """
    if folder := os.environ.get("CLASH_CONFIG_DIR"):
        return Path(folder)
    if sys.platform == "win32" and (roaming := os.environ.get("APPDATA")):
        return Path(roaming) / "clash"
    root = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    if (
        root.is_absolute()
    ):  # a relative one would depend on the working folder, which may be a stranger's
        return root / "clash"
    try:
        return Path.home() / ".config" / "clash"
    except RuntimeError:
        raise FileNotFoundError(errno.ENOENT, "the user has no home folder") from None


def read_confirmed() -> frozenset[Destination]:
    """The destinations that the owner has confirmed permanently.

    Raises:
        ConfigError: the file cannot be read.
    """
    try:
        records = json.loads((config_folder() / _STORE).read_bytes())["confirmed"]
        return frozenset(Destination(record["variable"], record["server"]) for record in records)
    except FileNotFoundError:
        return frozenset()
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise ConfigError(
            f"cannot be read ({type(error).__name__})",
            path=config_folder() / _STORE,
            hint="delete it, then confirm again with `clash trust VARIABLE HOST`",
        ) from None


def write_confirmed(destinations: Iterable[Destination]) -> Path:
    """Store these destinations as the confirmed ones, in place of all others.

    Raises:
        ConfigError: the folder cannot be written to.
    """
    records = [{"variable": d.variable, "server": d.server} for d in sorted(destinations)]
    try:
        file = config_folder() / _STORE
        _write(file, json.dumps({"v": 1, "confirmed": records}, indent=1).encode() + b"\n")
    except OSError as error:
        raise ConfigError(
            f"the user's configuration folder cannot be written to ({error.strerror})",
            path=error.filename,
            hint="make it writable, or give --trust-host HOST each time",
        ) from None
    return file


def _write(file: Path, content: bytes, *, replace: bool = True) -> None:
    """Write a private file atomically; without ``replace`` an existing file is kept."""
    if not replace and file.exists():
        return
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle, part = tempfile.mkstemp(dir=file.parent)  # a random name, mode 0600
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        if replace:
            Path(part).replace(file)
        else:
            file.hardlink_to(part)
    finally:
        Path(part).unlink(missing_ok=True)


# -- runs made on this machine -----------------------------------------------------------------


def run_tag(run: str, destinations: Iterable[Destination]) -> str | None:
    """A tag by which this user, on this machine only, recognises a run with these destinations.

    Returns:
        An HMAC; null where its secret cannot be stored.
    """
    with suppress(OSError):  # FileExistsError too: two processes both use the first one's secret
        _write(config_folder() / _SECRET, secrets.token_bytes(_SECRET_BYTES), replace=False)
    return _tag(run, destinations)


def is_tagged(run: str, destinations: Iterable[Destination], tag: str) -> bool:
    """Whether :func:`run_tag` created this tag."""
    expected_tag = _tag(run, destinations)
    return expected_tag is not None and hmac.compare_digest(expected_tag.encode(), tag.encode())


def _tag(run: str, destinations: Iterable[Destination]) -> str | None:
    try:
        secret = (config_folder() / _SECRET).read_bytes()
    except OSError:
        return None
    content = json.dumps([run, sorted([d.variable, d.server] for d in destinations)])
    return hmac.new(secret, content.encode(), hashlib.sha256).hexdigest()
