"""Sign a sealed manifest with an SSH key, and check such a signature, by OpenSSH's own program.

The manifest holds the hash of every file and of the last call, so its signature covers them all.
``ssh-keygen -Y`` runs only when a user asks for it, never because of the content of a folder.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from clash.errors import AuditFailed, ConfigError

NAMESPACE = "clash-run"
"""The purpose of a signature: one made for a commit or a mail is not valid for a run."""
_PROGRAM = "ssh-keygen"


def check_key(key: Path) -> None:
    """Check before a long command that a key can sign.

    Raises:
        ConfigError: the file or ``ssh-keygen`` is missing.
    """
    _program("--sign")
    if not key.is_file():
        raise ConfigError(
            "no such key", path=key, field="--sign", hint="name an SSH key: ~/.ssh/id_ed25519"
        )


def sign(data: bytes, key: Path) -> bytes:
    """The signature over ``data``; asks on the terminal for the passphrase of a key that has one.

    Args:
        data: the bytes to sign.
        key: a private key, or the public one of a key that the SSH agent holds.

    Raises:
        ConfigError: the key cannot sign.
    """
    process = _run("--sign", "sign", "-f", str(key), "-n", NAMESPACE, data=data)
    if process.returncode != 0:
        raise ConfigError(
            f"cannot sign ({_reason(process)})",
            path=key,
            field="--sign",
            hint="a public key signs where the SSH agent holds its private key: `ssh-add -l`",
        )
    return process.stdout


def check_signers(allowed_signers: Path) -> None:
    """Check before an audit that there is a file of allowed signers.

    Raises:
        ConfigError: the file is missing.
    """
    if not allowed_signers.is_file():
        raise ConfigError("no such file", path=allowed_signers, field="--signers", hint=_EXAMPLE)


def signer_of(data: bytes, signature: bytes, allowed_signers: Path) -> str:
    """The allowed signer who made ``signature`` over ``data``.

    Args:
        data: the signed bytes.
        signature: the result of :func:`sign`.
        allowed_signers: an OpenSSH ``allowed_signers`` file.

    Raises:
        ConfigError: the file is missing.
        AuditFailed: no allowed signer made the signature, or it is over other data.
    """
    check_signers(allowed_signers)
    with TemporaryDirectory() as folder:
        # A copy, because the program opens the file by name, and a stranger's folder may replace it.
        file = Path(folder) / "signature"
        file.write_bytes(signature)
        options = ("-s", str(file), "-f", str(allowed_signers))
        principals = _run("--signers", "find-principals", *options)
        if principals.returncode != 0:
            raise AuditFailed(f"is signed by a key that {allowed_signers} does not allow")
        for principal in principals.stdout.decode(errors="replace").splitlines():
            verification = _run(
                "--signers", "verify", *options, "-n", NAMESPACE, "-I", principal, data=data
            )
            if verification.returncode == 0:
                return principal
    raise AuditFailed("was changed after it was signed, or its signature is for something else")


_EXAMPLE = 'example line: ann@example.org namespaces="clash-run" ssh-ed25519 AAAA…'


def _run(
    option: str, action: str, *words: str, data: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(  # noqa: S603 - no shell, a program of the user's own path
        [_program(option), "-Y", action, *words], input=data, capture_output=True, check=False
    )


def _program(option: str) -> str:
    """The absolute path of the program; one in the current directory is never run."""
    folders = os.environ.get("PATH", "").split(os.pathsep)
    path = os.pathsep.join(folder for folder in folders if Path(folder).is_absolute())
    program = shutil.which(_PROGRAM, path=path)
    if program is None or not Path(program).is_absolute():
        raise ConfigError(
            f"{_PROGRAM} is not installed",
            field=option,
            hint="install OpenSSH 8.2 or newer (openssh-client, openssh, Git for Windows)",
        )
    return program


def _reason(process: subprocess.CompletedProcess[bytes]) -> str:
    lines = process.stderr.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else f"{_PROGRAM} exited with {process.returncode}"
