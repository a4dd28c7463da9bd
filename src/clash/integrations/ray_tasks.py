"""Run computations as tasks on the Ray cluster that this process is connected to."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from clash.analysis.tasks import run_by
from clash.errors import ConfigError
from clash.providers.ray_cluster import cluster_connection
from clash.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from clash.analysis.tasks import Result, Setting, Task
    from clash.config import RayCluster

_REPEATS = 10
"""Times that a task is run again where its node was lost: it gives the same result."""

_NO_MODULE = "failed to import on the worker"
"""Ray's words, in a plain RuntimeError, where a node has no clash or another one."""


@contextmanager
def tasks_on(cluster: RayCluster | None) -> Iterator[None]:
    """Run tasks on a cluster; without one, here.

    Raises:
        ConfigError: there is no cluster at the address, or its nodes have another clash.
    """
    with cluster_connection(cluster), run_by(None if cluster is None else _ray_map):
        yield


def _ray_map(
    function: Callable[[Setting, Task], Result], setting: Setting, tasks: Sequence[Task]
) -> Iterator[Result]:
    """Results in the order of the tasks; what they share is sent to each node once."""
    import ray
    from ray.exceptions import RayError, RayTaskError

    remote = ray.remote(_run).options(
        num_cpus=1, max_retries=_REPEATS, scheduling_strategy="SPREAD", name=function.__name__
    )
    everything = ray.put(setting)
    references = [remote.remote(__version__, function, everything, task) for task in tasks]
    for reference in references:
        try:
            yield ray.get(reference)
        except RayError as error:
            cause = error.cause if isinstance(error, RayTaskError) else error
            if not isinstance(cause, RayError) and _NO_MODULE not in str(cause):
                raise cause from None
            lines = str(cause).strip().splitlines() or [type(cause).__name__]
            raise ConfigError(
                f"the cluster lost a task: {lines[0][:200]}",
                field="--ray",
                hint=f"see `ray status`; every node needs clash {__version__}, extra ray",
            ) from None


def _run(
    version: str, function: Callable[[Any, Any], Any], setting: object, task: object
) -> object:
    """On a node: run a task, if the two programs are the same."""
    if version != __version__:
        raise ConfigError(
            f"a node of the cluster has clash {__version__}, and this is {version}",
            field="--ray",
            hint="install the same version everywhere",
        )
    return function(setting, task)
