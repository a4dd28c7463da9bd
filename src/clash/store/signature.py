"""Who vouches for a run: an SSH signature over its sealed manifest, by OpenSSH's own program.

The manifest holds the hash of every file and of the last call, so its signature covers them all.
``ssh-keygen -Y`` is run only where a user asks for it, never because of what a folder holds.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from clash.errors import AuditFailed, ConfigError

NAMESPACE = "clash-run"
"""What a signature is for: one that was made for a commit or a mail is none of a run."""
_PROGRAM = "ssh-keygen"


def check_key(key: Path) -> None:
    """Find out before the work what would keep a key from signing.

    Raises:
        ConfigError: there is no such file, or no program that signs.
    """
    _program("--sign")
    if not key.is_file():
        raise ConfigError(
            "no such key", path=key, field="--sign", hint="name an SSH key: ~/.ssh/id_ed25519"
        )


def sign(data: bytes, key: Path) -> bytes:
    """The signature over ``data``; asks for the key's passphrase on the terminal where it has one.

    Args:
        data: what is signed.
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


def signer_of(data: bytes, signature: bytes, allowed_signers: Path) -> str:
    """The allowed signer whose signature over ``data`` this is.

    Args:
        data: what was signed.
        signature: as :func:`sign` made it.
        allowed_signers: an OpenSSH ``allowed_signers`` file.

    Raises:
        ConfigError: there is no such file.
        AuditFailed: the signature is of nobody in it, or of other data.
    """
    if not allowed_signers.is_file():
        raise ConfigError("no such file", path=allowed_signers, field="--signers", hint=_EXAMPLE)
    with TemporaryDirectory() as folder:
        # A copy: the program opens the file by its name, which a stranger's folder may swap.
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


_EXAMPLE = 'a line of it is: ann@example.org namespaces="clash-run" ssh-ed25519 AAAA…'


def _run(
    option: str, action: str, *words: str, data: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(  # noqa: S603 - no shell, a program of the user's own path
        [_program(option), "-Y", action, *words], input=data, capture_output=True, check=False
    )


def _program(option: str) -> str:
    """The program, by an absolute path: what lies in the current directory is not run."""
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
