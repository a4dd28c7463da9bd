"""The connection to a Ray cluster, made before anything is asked of it and ended with the command.

Ray trusts its cluster: who may connect to it may run code on every machine of it, and what is sent
through it is read by whoever else may. So an address comes from the command line alone, and a
cluster that is started here takes no connection without a token that only this process has.
"""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
from contextlib import chdir, contextmanager
from typing import TYPE_CHECKING, Any

from clash.errors import ConfigError
from clash.extras import require

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clash.config import RayCluster

LOCAL = "local"
"""In place of an address: a cluster of this machine alone, for this command."""
_THIS_CLUSTER = "auto"
_CONNECT_S = 5.0
_PROBE_S = 30.0
"""Seconds that a cluster has to take a connection; it takes three."""
_STORE_BYTES = 200_000_000
_NOWHERE = os.path.abspath(os.sep)  # noqa: PTH100 - the root of the drive, too
_PROBE = """
import sys, ray
context = ray.init(address=sys.argv[1], logging_level="ERROR", log_to_driver=False)
print("connected to", context.address_info["gcs_address"])
"""


@contextmanager
def cluster_connection(cluster: RayCluster | None) -> Iterator[None]:
    """Be connected to a cluster; without one, do nothing.

    Raises:
        MissingPackageError: Ray is not installed.
        ConfigError: there is no cluster at the address, or it is of another version.
    """
    if cluster is None:
        yield
        return
    require("ray", field="--ray")
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    # Under `uv run`, Ray would upload the working folder, with its .env, to the cluster.
    os.environ["RAY_ENABLE_UV_RUN_RUNTIME_ENV"] = "0"
    options: dict[str, Any] = {"address": LOCAL}
    if cluster.address == LOCAL:
        os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
        options |= {"include_dashboard": False, "object_store_memory": _STORE_BYTES}
    else:
        options["address"] = _reachable(cluster.address)
    import ray
    from ray._private import worker

    # Whatever a node of the cluster complains of, Ray would print on our stdout.
    worker.print_to_stdstream = _print_nothing
    terminate = signal.getsignal(signal.SIGTERM)
    try:
        # Ray lets every worker import from the folder where it was started: a module there must
        # not take the place of one of clash or of an SDK.
        with chdir(_NOWHERE):
            ray.init(**options, logging_level="ERROR", log_to_driver=False)
    except (RuntimeError, ConnectionError, ValueError, OSError) as error:
        raise _refusal(cluster.address, str(error)) from None
    finally:
        signal.signal(signal.SIGTERM, terminate)  # Ray's own would end the process at once
    try:
        yield
    finally:
        ray.shutdown()


def _print_nothing(*_: object, **__: object) -> None:
    """In place of Ray's printing: a lost node shows in the calls that are lost with it."""


def _reachable(address: str) -> str:
    """The address of the cluster, once another process could connect to it.

    To an address that does not answer, Ray tries for minutes, and then ends the process.

    Raises:
        ConfigError: no cluster answers there, or not to this machine.
    """
    if address != _THIS_CLUSTER:
        _check_port(address)
    command = [sys.executable, "-P", "-c", _PROBE, address]
    try:
        probe = subprocess.run(  # noqa: S603 - this program
            command, capture_output=True, text=True, timeout=_PROBE_S, cwd=_NOWHERE, check=False
        )
    except subprocess.TimeoutExpired:
        raise _refusal(address, "") from None
    if probe.returncode or "connected to" not in probe.stdout:
        raise _refusal(address, probe.stderr)
    return probe.stdout.rpartition("connected to")[2].strip()


def _check_port(address: str) -> None:
    host, _, port = address.rpartition(":")
    if not host or "/" in host or not port.isdigit():
        raise ConfigError(
            f"{address!r} is no address of a Ray cluster",
            field="--ray",
            hint="--ray HOST:6379, --ray auto on a machine of the cluster, or --ray local",
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_S).close()
    except (OSError, OverflowError):
        raise _refusal(address, "") from None


def _refusal(address: str, text: str) -> ConfigError:
    """Why there is no connection, by what Ray said."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if "Version mismatch" in text:
        versions = [line for line in lines if line.startswith(("Ray:", "Python:"))]
        cluster_versions, own_versions = ", ".join(versions[:2]), ", ".join(versions[2:4])
        return ConfigError(
            f"the cluster at {address} runs {cluster_versions}, and this is {own_versions}",
            field="--ray",
            hint="install the same versions of Ray and Python everywhere",
        )
    if "authentication" in text.lower():
        return ConfigError(
            f"the cluster at {address} takes no connection without its token",
            field="--ray",
            hint="set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN as on the cluster",
        )
    reason = f": {lines[-1][:200]}" if lines else ""
    return ConfigError(
        f"no Ray cluster answers at {address}{reason}",
        field="--ray",
        hint="see `ray status`; run clash on a machine of the cluster, or with `--ray local`",
    )
