"""The unblinded arm of a run: the same pages, and who wrote what."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from clash.analysis.favouritism import favouritism, require_kin
from clash.analysis.rundata import RunData
from clash.analysis.serialize import to_dict
from clash.errors import ConfigError, RunFolderError
from clash.files import run_files
from clash.pipeline.execute import execute
from clash.pipeline.rerun import Rerun, RerunOptions, keeping, plan_rerun
from clash.pipeline.sequential_run import resume_run
from clash.store import layout
from clash.store.folder import RunFolder
from clash.votes.from_run import require_rankings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clash.analysis.favouritism import Favouritism
    from clash.pipeline.finish import RunResult
    from clash.pipeline.options import RunOptions

SUFFIX = "-unblinded"


def unblinded_arm(parent: RunFolder) -> RunFolder:
    """The run folder of the unblinded arm, beside its run; it need not be there yet.

    Raises:
        ConfigError: the run is itself not blind.
        InputError: the run judges each text by itself.
    """
    require_rankings(parent.manifest(), "clash favouritism")
    if parent.manifest().config.get("blinding", {}).get("show_names"):
        raise ConfigError(
            f"the judges of {parent.path.name} were told the names",
            field="RUN",
            hint="name the blind run",
        )
    return RunFolder(parent.path.parent / f"{parent.path.name}{SUFFIX}")


def is_there(folder: RunFolder) -> bool:
    """Whether an arm has begun."""
    return run_files.is_file(folder.path / layout.MANIFEST)


def plan_unblinded(parent: RunFolder, limits: Mapping[str, Any], options: RunOptions) -> Rerun:
    """Plan the unblinded arm: criteria, shuffle and responses are those of the run.

    Raises:
        StatisticsError: no judge has its own among the candidates, so that the arm would tell nothing.
    """
    require_kin(RunData.load(parent))
    rerun = keeping(
        parent, ("criteria", "shuffle", "responses"), RerunOptions(limits=limits, show_names=True)
    )
    notes = (*rerun.notes, "the judges are told who wrote each response")
    return plan_rerun(parent, 0, replace(rerun, notes=notes), options)


def run_unblinded(
    parent: RunFolder, limits: Mapping[str, Any], options: RunOptions
) -> RunResult | None:
    """Run the unblinded arm, or go on with it; null where it is complete already."""
    folder = unblinded_arm(parent)
    if is_there(folder):
        if folder.manifest().status == "complete":
            return None
        return resume_run(folder, options.environ, options.observer, limits)
    plan = plan_unblinded(parent, limits, options)
    out, name = folder.path.parent, folder.path.name
    return execute(
        plan.setup, replace(options, kind="rerun", out=out, run_id=name, origin=plan.origin)
    )


@dataclass(frozen=True)
class ComparedArms:
    """What the two arms say.

    Attributes:
        parent: the blind run.
        arm: the unblinded one.
        findings: how judges treat their own in both.
        result: how the arm ended, where it was run just now.
    """

    parent: RunFolder
    arm: RunFolder
    findings: Favouritism
    result: RunResult | None

    @property
    def exit_code(self) -> int:
        """0, or that of the unblinded arm."""
        return 0 if self.result is None else self.result.exit_code

    def as_json(self) -> dict[str, Any]:
        """What ``clash favouritism --json`` prints."""
        return {
            "run": str(self.parent.path),
            "unblinded": str(self.arm.path),
            "exit_code": self.exit_code,
            "cost_usd": None if self.result is None else self.result.manifest.cost_usd,
            **to_dict(self.findings),
        }


def compare_arms(parent: RunFolder, result: RunResult | None) -> ComparedArms:
    """How judges treat their own in the run and in its unblinded arm.

    Raises:
        RunFolderError: there is no unblinded arm.
    """
    arm = unblinded_arm(parent)
    if not is_there(arm):
        raise RunFolderError(
            f"{arm.path}: is not there\n  fix: `clash favouritism {parent.path}` runs it"
        )
    findings = favouritism(RunData.load(parent), RunData.load(arm))
    return ComparedArms(parent, arm, findings, result)
