"""Keys and addresses: which variable holds the key of a model, and where the model is reached."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec

from clash.errors import ConfigError
from clash.secrets.destinations import Destination, is_confirmed, is_expected, server_of
from clash.secrets.redaction import NO_SECRETS, SECRET_HEADER, Redactor, secret_fields

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from clash.config import ModelRef
    from clash.secrets.destinations import Source


@dataclass(frozen=True, slots=True)
class _Vendor:
    """Where a vendor's key and address are found by default; the first variable set wins."""

    keys: tuple[str, ...]
    address: str
    base_url: str | None
    needs_key: bool = True


_VENDORS: Mapping[str, _Vendor] = {
    "openai": _Vendor(("OPENAI_API_KEY",), "OPENAI_BASE_URL", "https://api.openai.com/v1"),
    "anthropic": _Vendor(("ANTHROPIC_API_KEY",), "ANTHROPIC_BASE_URL", "https://api.anthropic.com"),
    "google": _Vendor(
        ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
        "GOOGLE_GEMINI_BASE_URL",
        "https://generativelanguage.googleapis.com",
    ),
    "openrouter": _Vendor(
        ("OPENROUTER_API_KEY",), "OPENROUTER_BASE_URL", "https://openrouter.ai/api/v1"
    ),
    "compatible": _Vendor(("COMPATIBLE_API_KEY",), "COMPATIBLE_BASE_URL", None, needs_key=False),
    # Ray's own variables, and where its dashboard listens by default.
    "vllm": _Vendor(
        ("RAY_AUTH_TOKEN",), "RAY_API_SERVER_ADDRESS", "http://127.0.0.1:8265", needs_key=False
    ),
}
STEERING = frozenset(
    {
        *(vendor.address for vendor in _VENDORS.values()),
        *(f"{vendor}_CUSTOM_HEADERS" for vendor in ("OPENAI", "ANTHROPIC")),
        "CLASH_REPLAY",
    }
)
"""Variables that are no keys: they decide where a key goes, or what is sent beside it."""
_SECRET_QUERY = re.compile(r"(?:^|&)[\w-]*(?:key|token|secret|password)=", re.IGNORECASE)
_BY: Mapping[Source, str] = {
    "owner": "the environment",
    "file": "the file that you named",
    "auto": "clash.yaml, which was read automatically",
    "run": "the run folder, which may not have been made on this machine",
}
LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "::1", "0.0.0.0"})  # noqa: S104 - names, no bind


@dataclass(frozen=True, slots=True)
class Account:
    """A key at an address.

    Attributes:
        key: never shown; empty where the server needs none.
        key_variable: the variable it was read from.
        has_own_url: the address stands in the model's entry, so that what the environment holds for
            the vendor's own address (organisation, custom headers) is not meant for it.
        redactor: knows the key, and every other secret of the environment and the entry.
    """

    vendor: str
    base_url: str
    key: str = field(repr=False)
    key_variable: str | None
    has_own_url: bool
    redactor: Redactor = field(default=NO_SECRETS, repr=False)

    @property
    def name(self) -> str:
        """What rate limits are shared by; safe to show."""
        return (
            f"{self.vendor} at {urlsplit(self.base_url).netloc} with "
            f"{self.key_variable or 'no key'}"
        )

    @property
    def local(self) -> bool:
        """The server is this machine."""
        return urlsplit(self.base_url).hostname in LOCAL_HOSTS


def key_variable(ref: ModelRef, environ: Mapping[str, str]) -> str | None:
    """The NAME of the variable that holds the key of ``ref``.

    Returns:
        The variable that is set, the one to set where none is, or null where no key is needed.
    """
    if ref.api_key_env is not None:
        return ref.api_key_env
    vendor = _VENDORS.get(ref.provider)
    if vendor is None:
        return None
    for name in vendor.keys:
        if environ.get(name, "").strip():
            return name
    return vendor.keys[0] if vendor.needs_key else None


def has_key(ref: ModelRef, environ: Mapping[str, str]) -> bool:
    """Whether ``ref`` can be called as far as its key goes: it is set, or none is needed."""
    variable = key_variable(ref, environ)
    return variable is None or bool(environ.get(variable, "").strip())


def base_url(ref: ModelRef, environ: Mapping[str, str]) -> str | None:
    """Where ``ref`` is reached.

    Returns:
        Null where its provider has no address (baseline, replay, python), or where a compatible server
        was given none.
    """
    vendor = _VENDORS.get(ref.provider)
    if vendor is None:
        return None
    return ref.base_url or environ.get(vendor.address, "").strip() or vendor.base_url


def account(ref: ModelRef, environ: Mapping[str, str]) -> Account:
    """The key and the address of ``ref``: whoever sends a key gets it here, and only here.

    Raises:
        ConfigError: the key is missing (the message names its variable), the address is missing
            or no http(s) URL, or the owner of the key has not confirmed that it may go there.
    """
    url, key = _checked_url(ref, environ), _key(ref, environ)
    if needs_confirmation(ref, environ):
        raise not_confirmed([ref], environ)
    return Account(
        vendor=ref.provider,
        base_url=url,
        key=key,
        key_variable=key_variable(ref, environ),
        has_own_url=ref.base_url is not None,
        redactor=Redactor.of_environ(environ).with_secrets(secrets(ref, environ)),
    )


def secrets(ref: ModelRef, environ: Mapping[str, str]) -> dict[str, str]:
    """What an entry makes secret, and where each value comes from: its key, its marked fields."""
    variable = key_variable(ref, environ)
    key = environ.get(variable, "").strip() if variable else ""
    options = ref.options
    sources = {value: f"extra.{name}" for name, value in secret_fields(options.extra)}
    arguments = ref.engine.arguments if ref.engine else {}
    sources |= {value: f"arguments.{name}" for name, value in secret_fields(arguments)}
    sources |= {
        value: name for name, value in options.headers.items() if SECRET_HEADER.search(name)
    }
    return {**sources, key: str(variable)} if key else sources


def destination(ref: ModelRef, environ: Mapping[str, str]) -> Destination | None:
    """Where the key of ``ref`` would go.

    Returns:
        Null where no key is sent, or where a compatible server was given no address.

    Raises:
        ConfigError: the address is no http(s) URL.
    """
    variable = key_variable(ref, environ)
    if variable is None or base_url(ref, environ) is None:
        return None
    return Destination(variable, server_of(_checked_url(ref, environ)))


def engine_destination(ref: ModelRef, environ: Mapping[str, str]) -> Destination | None:
    """The settings of an engine, by their hash, and the cluster that they are for; null without.

    They name code that the cluster runs, so what holds for a key holds for them.
    """
    if ref.engine is None:
        return None
    content = msgspec.json.encode([ref.name, ref.engine.model_dump()], order="sorted")
    digest = hashlib.sha256(content).hexdigest()
    return Destination(f"engine:{digest}", server_of(_checked_url(ref, environ)))


def needs_confirmation(ref: ModelRef, environ: Mapping[str, str]) -> bool:
    """Whether the owner of the key of ``ref`` has yet to confirm the server that it would go to.

    Raises:
        ConfigError: the address is no http(s) URL.
    """
    where = destination(ref, environ)
    if where is None or is_confirmed(where, environ):
        return False
    return not is_expected(
        where, address=_address_source(ref, where.server), variable=_variable_source(ref)
    )


def _address_source(ref: ModelRef, server: str) -> Source:
    vendor_url = _VENDORS[ref.provider].base_url
    is_custom = ref.base_url is not None and (vendor_url is None or server != server_of(vendor_url))
    return ref.source if is_custom else "owner"


def _variable_source(ref: ModelRef) -> Source:
    return "owner" if ref.api_key_env in (None, *_VENDORS[ref.provider].keys) else ref.source


def not_confirmed(refs: Iterable[ModelRef], environ: Mapping[str, str]) -> ConfigError:
    """The error for models that would send a key to a server that its owner has not confirmed."""
    refs_by_target = {
        target: ref for ref in refs if (target := destination(ref, environ)) is not None
    }
    pairs = ", ".join(
        f"{target} (set by {_BY[ref.source]})" for target, ref in refs_by_target.items()
    )
    commands = "; ".join(
        f"clash trust {target.variable} {target.host}" for target in refs_by_target
    )
    hosts = " ".join(
        f"--trust-host {server}" for server in {target.host: 0 for target in refs_by_target}
    )
    return ConfigError(
        f"a key would be sent to a server that you have not confirmed for it: {pairs}",
        hint=f"if you mean it: {commands}; for this command only: {hosts}",
    )


def _checked_url(ref: ModelRef, environ: Mapping[str, str]) -> str:
    url = base_url(ref, environ)
    if url is None:
        raise ConfigError(
            f"{ref.model} is a server of your own, and its address is missing",
            field="base_url",
            hint="base_url: http://localhost:11434/v1 (or set COMPATIBLE_BASE_URL)",
        )
    try:
        server_of(url)
    except ValueError as error:
        raise ConfigError(
            f"{ref.model} has an address that {error} ({NO_SECRETS.message(url)!r})",
            field="base_url",
            hint="begin it with https:// or http://, and write its host in ASCII",
        ) from None
    parts = urlsplit(url)
    if parts.username or parts.password or _SECRET_QUERY.search(parts.query):
        raise ConfigError(
            f"{ref.model} has an address with a password or a key in it",
            field="base_url",
            hint="put the key into a variable and name it in api_key_env",
        )
    return url.rstrip("/")


def _key(ref: ModelRef, environ: Mapping[str, str]) -> str:
    variable = key_variable(ref, environ)
    if variable is None:
        return ""
    key = environ.get(variable, "").strip()
    if not key:
        alternatives = (
            [] if ref.api_key_env else [n for n in _VENDORS[ref.provider].keys if n != variable]
        )
        also = f" (or {', '.join(alternatives)})" if alternatives else ""
        raise ConfigError(
            f"{ref.model} needs a key, and {variable}{also} is not set",
            field="api_key_env",
            hint=f"export {variable}=… or put it into .env",
        )
    # A key cannot hold these, and a client would show it whole in the error about its header.
    if not key.isascii() or not key.isprintable():
        raise ConfigError(
            f"the key in {variable} contains characters that keys never have",
            field="api_key_env",
            hint=f"copy the key into {variable} again",
        )
    return key
