"""Options that several commands share, each declared once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clash.cli.common import environment
from clash.cli.completion import complete_panels, complete_runs, complete_verdict_methods
from clash.cli.observer import TerminalObserver
from clash.cli.option_groups import OptionGroup
from clash.errors import ConfigError

if TYPE_CHECKING:
    from clash.cli.watch import RunObserver
    from clash.config import RayCluster
    from clash.pipeline.sources import VoteSelection
    from clash.secrets.destinations import Environ


def _check_run_id(run_id: str | None) -> str | None:
    from clash.store.folder import check_run_id

    return None if run_id is None else check_run_id(run_id)


# -- where things are ----------------------------------------------------------------------------

RunArgument = Annotated[
    str,
    typer.Argument(
        help="A run folder, a run id under --out, or `latest`.",
        metavar="RUN",
        autocompletion=complete_runs,
    ),
]
RunsArgument = Annotated[
    list[str],
    typer.Argument(
        help="Run folders, run ids under --out, or `latest`.",
        metavar="RUN…",
        autocompletion=complete_runs,
    ),
]
ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", "-c", help="Configuration file; clash.yaml is read automatically."),
]
EnvFile = Annotated[
    Path | None,
    typer.Option("--env-file", help="File of NAME=value lines; .env is read automatically."),
]
Out = Annotated[
    Path, typer.Option("--out", "-o", envvar="CLASH_OUT", help="Folder for run folders.")
]
RunId = Annotated[
    str | None, typer.Option("--run-id", callback=_check_run_id, help="Name of the run folder.")
]
RunsFolder = Annotated[
    Path, typer.Option("--runs", envvar="CLASH_OUT", help="Folder to look up run ids in.")
]
ReportFile = Annotated[
    Path | None, typer.Option("--to", help="Also write the report to this file: .md or .json.")
]

# -- what is printed -----------------------------------------------------------------------------

AsJson = Annotated[
    bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else.")
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="No progress; only the decision, in one line.")
]
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="Print the whole report on the terminal.")
]


# -- who judges, and how -------------------------------------------------------------------------

Models = Annotated[
    str | None,
    typer.Option("--models", "-m", envvar="CLASH_MODELS", help="Candidates: provider/model,…"),
]
PanelName = Annotated[
    str | None,
    typer.Option(
        "--panel",
        "-p",
        envvar="CLASH_PANEL",
        help="Name or file of the panel.",
        autocompletion=complete_panels,
    ),
]
Method = Annotated[
    str | None,
    typer.Option(
        "--method",
        help="How judgments become verdicts: borda (the default), majority, weighted, dawid-skene, "
        "ising-shared, ising-class, factor, auto or bradley-terry.",
        autocompletion=complete_verdict_methods,
    ),
]
MinConfidence = Annotated[
    float | None,
    typer.Option(
        "--min-confidence",
        help="Leave winners below this confidence, 0 to 1, for review: no verdict.",
    ),
]
Prereg = Annotated[
    Path | None,
    typer.Option(
        "--prereg",
        help="A plan written by `clash prereg`; the report lists every deviation from it.",
    ),
]
Seed = Annotated[
    int | None,
    typer.Option("--seed", min=0, envvar="CLASH_SEED", help="Seed of every random choice."),
]

# -- what may be spent ---------------------------------------------------------------------------

MaxCost = Annotated[
    float | None,
    typer.Option(
        "--max-cost",
        envvar="CLASH_MAX_COST",
        min=0,
        help="Spending cap in US dollars; never exceeded.",
    ),
]
UnknownPrice = Annotated[
    bool, typer.Option("--allow-unknown-price", help="Call models even if their price is unknown.")
]
RunConcurrency = Annotated[
    int | None,
    typer.Option("--concurrency", "-j", min=1, help="Maximum number of concurrent calls."),
]
"""Of commands that repeat a run: its own setting holds, and no variable changes it."""
OnlyReport = Annotated[
    bool, typer.Option("--report", help="Report on the arms that are there; make no call.")
]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers",
        min=0,
        max=64,
        help="Make the calls in this many further processes; for many calls through SDKs. Limits, "
        "money and the run folder stay with this one.",
    ),
]
Ray = Annotated[
    str | None,
    typer.Option(
        "--ray",
        metavar="ADDRESS|local",
        help="Work on this Ray cluster: HOST:PORT, `auto` on one of its machines, or `local` for one "
        "on this machine. Needs the extra ray.",
    ),
]
RaySendKeys = Annotated[
    bool,
    typer.Option(
        "--ray-send-keys",
        help="Send the API keys to the cluster, where others may read them; default: each node "
        "has them in its own environment.",
    ),
]
Compress = Annotated[
    bool,
    typer.Option(
        "--compress",
        help="Compress raw answers with Zstandard: calls.jsonl takes a tenth of the disk. Every "
        "command reads such a run.",
    ),
]
Batch = Annotated[
    bool | None,
    typer.Option(
        "--batch/--live",
        envvar="CLASH_BATCH",
        help="Use the providers' batch APIs: half the price, answers within a day.",
    ),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show the plan and its price; make no call.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before spending.")]

# -- when a run stops ----------------------------------------------------------------------------

Until = Annotated[
    str | None,
    typer.Option(
        "--until",
        help='Judge in batches until this holds, for example "ci<0.1"; default: judge all at once.',
    ),
]
Sequential = Annotated[
    str,
    typer.Option(
        "--sequential",
        help="How repeated looks are corrected for: always-valid, obrien-fleming or pocock.",
    ),
]
RiskConfidence = Annotated[
    float | None,
    typer.Option(
        "--risk-confidence",
        help="Keep --max-risk with this confidence, such as 0.9; default: on average.",
    ),
]
Looks = Annotated[
    int,
    typer.Option("--looks", min=1, max=50, help="Number of looks with --until, evenly spaced."),
]

# -- which votes are read -------------------------------------------------------------------------

VotesArgument = Annotated[
    str,
    typer.Argument(
        help="A votes file (.jsonl, .csv, .gz), a run, or a name of `clash datasets list`.",
        metavar="RUN|VOTES",
    ),
]
SourcesArgument = Annotated[
    list[str],
    typer.Argument(
        help="A votes file (.jsonl, .csv, .gz), runs, or a name of `clash datasets list`.",
        metavar="RUN…|VOTES",
    ),
]
Judges = Annotated[
    str | None,
    typer.Option("--judges", help="Only these judges: names with wildcards, comma separated."),
]
Decisive = Annotated[
    bool, typer.Option("--decisive", help="Only items whose label names one side (no ties).")
]
UseLabels = Annotated[
    bool,
    typer.Option(
        "--use-labels/--no-labels",
        help="Labels that are there are used; --no-labels leaves them out.",
    ),
]


def ray_cluster(address: str | None, *, send_keys: bool) -> RayCluster | None:
    """The cluster that ``--ray`` names.

    Raises:
        ConfigError: keys are to be sent nowhere.
    """
    from clash.config import RayCluster

    if address is not None:
        return RayCluster(address, send_keys)
    if send_keys:
        raise ConfigError("there is no cluster", field="--ray-send-keys", hint="add --ray ADDRESS")
    return None


# -- groups ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Output(OptionGroup):
    """How much is printed, and in which form."""

    as_json: AsJson = False
    quiet: Quiet = False
    verbose: Verbose = False

    @property
    def is_silent(self) -> bool:
        """Whether progress and details are left out."""
        return self.quiet or self.as_json


@dataclass(frozen=True)
class Access(OptionGroup):
    """Which keys there are, and which servers they may be sent to."""

    env_file: EnvFile = None
    trust_host: Annotated[
        list[str] | None,
        typer.Option(
            "--trust-host",
            metavar="HOST",
            help="Allow keys to be sent to this server in this command; `clash trust` allows it "
            "permanently. Repeat for several servers, or list them in CLASH_TRUST_HOSTS.",
        ),
    ] = None

    def environ(self) -> Environ:
        """The process's environment with the keys of ``.env``, and where keys may go."""
        return environment(self.env_file, self.trust_host)


@dataclass(frozen=True)
class Monitoring(OptionGroup):
    """Who else hears of a run while it goes on."""

    watch: Annotated[
        bool, typer.Option("--watch", help="Show the run in the browser while judgments arrive.")
    ] = False
    otel: Annotated[
        bool,
        typer.Option(
            "--otel",
            envvar="CLASH_OTEL",
            help="Send spans to the OpenTelemetry collector that OTEL_EXPORTER_OTLP_ENDPOINT names.",
        ),
    ] = False
    metrics: Annotated[
        Path | None,
        typer.Option(
            "--metrics",
            envvar="CLASH_METRICS",
            help="Write Prometheus metrics to this file while the run goes on.",
        ),
    ] = None

    def observer(self, output: Output) -> RunObserver:
        """The terminal as observer, and whoever else was asked for."""
        from clash.cli.watch import RunObserver

        return RunObserver(
            quiet=output.is_silent, watch=self.watch, otel=self.otel, metrics=self.metrics
        )


@dataclass(frozen=True)
class RepeatCalls(OptionGroup):
    """How the calls of a command that repeats or resumes a run are made."""

    concurrency: RunConcurrency = None
    workers: Workers = None
    ray: Ray = None
    ray_send_keys: RaySendKeys = False
    batch: Batch = None

    def cluster(self) -> RayCluster | None:
        """The Ray cluster that makes them; null for this machine."""
        return ray_cluster(self.ray, send_keys=self.ray_send_keys)

    def limits(self) -> dict[str, Any]:
        """What changes of the run's ``limits``; null keeps the run's own."""
        return {
            "concurrency": self.concurrency,
            "workers": self.workers,
            "ray": self.cluster(),
            "batch": self.batch,
        }


@dataclass(frozen=True)
class VoteFilter(OptionGroup):
    """Which votes of a file or run are read."""

    judges: Judges = None
    subset: Annotated[
        str | None, typer.Option("--subset", help="Only these subsets, with wildcards.")
    ] = None
    presentation: Annotated[
        str | None, typer.Option("--presentation", help="Only this presentation: orig or swap.")
    ] = None

    def select(
        self,
        source: str,
        runs: Path,
        *more: str,
        decisive: bool = False,
        use_labels: bool = True,
    ) -> VoteSelection:
        """These votes of a source; of ``more`` runs too, which are read with the first as one."""
        from clash.pipeline.sources import VoteSelection

        return VoteSelection(
            source,
            runs,
            self.judges,
            self.subset,
            self.presentation,
            decisive,
            use_labels,
            TerminalObserver(quiet=False),
            more,
        )
