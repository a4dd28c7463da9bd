"""What a run needs beside its plan, and the observer that it reports to and asks."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    import anyio

    from clash.analysis.prereg import FrozenRegistration
    from clash.collect.calling import PendingCall
    from clash.collect.run import Progress
    from clash.records import Call, Kind, Label, PoolItem
    from clash.secrets.redaction import Redactor

Level = Literal["detail", "progress", "notice", "warning"]
"""How much a note matters: details may be left out, the others may not."""
AGGREGATE_METHODS = (
    "auto,majority,one-coin,dawid-skene,ising-shared,ising-class,ising-family,factor"
)
"""The methods of ``clash aggregate`` where none is named."""
DEFAULT_DROP = 0.05
"""How far concordance (unanimity without labels) may fall against a baseline, by default."""


class CostCounter:
    """Counts money, calls in flight and failed attempts, and shows nothing."""

    def __init__(self) -> None:
        self.in_flight = 0
        self.cost_usd = 0.0
        self.errors = 0

    def count_spent(self, usd: float) -> None:
        """Count the money of earlier processes of this run."""
        self.cost_usd += usd

    def stage_began(self, name: str, totals: Mapping[str, int]) -> None:
        """A stage begins."""

    def attempt_began(self, pending: PendingCall) -> None:  # noqa: ARG002 - part of the protocol
        """An attempt goes out."""
        self.in_flight += 1

    def attempt_ended(self, pending: PendingCall, call: Call) -> None:  # noqa: ARG002 - part of the protocol
        """An attempt ended."""
        self.in_flight -= 1
        self.cost_usd += call.cost_usd or call.cost_bound_usd or 0.0
        self.errors += call.outcome == "error"

    def count_done(self, actor: str, *, is_failure: bool) -> None:
        """A piece of work ended."""

    def batch_polled(self, model: str, n_done: int, n_rows: int) -> None:
        """A batch was polled."""


class Observer:
    """Follows a run and is asked before it spends. This one is silent and has nobody to ask."""

    def note(self, text: str, level: Level = "notice") -> None:
        """Take note of something that a person should know."""

    def confirm(self, question: str, details: tuple[str, ...] = ()) -> bool | None:  # noqa: ARG002
        """Ask a person; null where there is nobody to ask."""
        return None

    def learn(self, redact: Redactor) -> None:
        """Learn which texts are secret, before any of them could be shown."""

    def run_opened(self, path: Path) -> None:
        """The folder of the run, each time it begins or is resumed."""

    def progress(self) -> AbstractContextManager[Progress]:
        """Watch the calls for as long as the context is open."""
        return nullcontext(CostCounter())

    async def listen(self, stop: Callable[[], None], scope: anyio.CancelScope) -> None:
        """Call ``stop`` when a person wants the run to end, cancel ``scope`` when at once."""


@dataclass(frozen=True)
class Origin:
    """What a run has beside its plan, for its manifest and ``labels.jsonl``.

    Attributes:
        labels: people's decisions.
        dataset: the data set that they come from.
        candidates: what is known of injected candidates (family, tier, rating).
        parent: the run that this one repeats.
        seeds: seeds beside the run's own.
        registration: the plan that the run is held to.
        stopping: the stopping rule; ``pool`` the items that it may come to.
    """

    labels: tuple[Label, ...] = ()
    dataset: Mapping[str, Any] = field(default_factory=dict)
    candidates: tuple[Mapping[str, Any], ...] = ()
    parent: str | None = None
    seeds: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    registration: FrozenRegistration | None = None
    stopping: Mapping[str, Any] | None = None
    pool: tuple[PoolItem, ...] = ()


@dataclass(frozen=True)
class RunOptions:
    """Everything that a run needs beside its plan.

    Attributes:
        environ: where keys and addresses are looked up.
        observer: hears notes and progress, and is asked before money is spent.
        kind: what the run is for.
        out: the folder that runs land in; null is that of the configuration.
        run_id: the name of the run folder; null derives one from prompts and time.
        yes: agree to the price without being asked.
        compress: compress raw answers, whatever the configuration says.
    """

    environ: Mapping[str, str]
    observer: Observer = field(default_factory=Observer)
    kind: Kind = "eval"
    out: Path | None = None
    run_id: str | None = None
    origin: Origin = field(default_factory=Origin)
    yes: bool = False
    compress: bool = False
