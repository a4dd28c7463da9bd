"""Every provider, unpatched, over real HTTP to the loopback server of ``tests/wire``."""

from __future__ import annotations

import itertools
import os
import socket
import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from wire import WireServer
from wire.asking import Asker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture(scope="session")
def wire() -> Iterator[WireServer]:
    with WireServer() as server:
        yield server


@pytest.fixture
def server(wire: WireServer) -> WireServer:
    wire.clear()
    return wire


@pytest.fixture(autouse=True)
def clean_environ(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the machine has set, no test sees it."""
    for name in list(os.environ):
        if name.upper().endswith("_PROXY") or name.startswith(
            ("OPENAI_", "ANTHROPIC_", "GOOGLE_", "GEMINI_", "OPENROUTER_", "COMPATIBLE_")
        ):
            monkeypatch.delenv(name)


_numbers = itertools.count(1)


@pytest.fixture
def asker(server: WireServer) -> Callable[..., Asker]:
    """A model of its own for each test, so that no test knows of another's faults."""

    def made(provider: str, **more: Any) -> Asker:
        return Asker(server, provider, f"model-{next(_numbers)}", **more)

    return made


@pytest.fixture
def unused_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate of our own for 127.0.0.1, which no system trusts, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "wire")])
    now = datetime.now(UTC)
    host = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    signature = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(host, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = tmp_path_factory.mktemp("tls") / "cert.pem"
    plain = serialization.NoEncryption()
    private = serialization.PrivateFormat.PKCS8
    file.write_bytes(
        signature.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(serialization.Encoding.PEM, private, plain)
    )
    return file


@pytest.fixture(scope="session")
def tls_server(wire: WireServer, authority: Path) -> str:
    """The address of the wire server behind TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority)
    port = wire.also_at(context)
    return f"https://127.0.0.1:{port}"
