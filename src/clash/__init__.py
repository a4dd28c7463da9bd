"""Which model is better on my prompts, how confident can I be, and can I defend it?

>>> import clash
>>> run = clash.evaluate("prompts.yaml", candidates=["openai/gpt-6-luna"], panel="budget")
>>> run.decision.headline, run.leaderboard.to_frame(), run.report("report.html")

The functions below are the library; ``clash`` on the command line calls the same code. They print
nothing, raise :class:`~clash.errors.ClashError`, and work inside a running event loop. Importing
this module imports none of them: each is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from clash.version import __version__ as __version__

if TYPE_CHECKING:
    from clash.errors import ClashError as ClashError
    from clash.library.evaluation import evaluate as evaluate
    from clash.library.evaluation import evaluate_async as evaluate_async
    from clash.library.evaluation import favouritism as favouritism
    from clash.library.evaluation import load as load
    from clash.library.evaluation import merge as merge
    from clash.library.evaluation import rerun as rerun
    from clash.library.evaluation import rerun_async as rerun_async
    from clash.library.evaluation import resume as resume
    from clash.library.evaluation import resume_async as resume_async
    from clash.library.evaluation import validate as validate
    from clash.library.evaluation import validate_async as validate_async
    from clash.library.evaluation import variance as variance
    from clash.library.results import GateResult as GateResult
    from clash.library.results import Records as Records
    from clash.library.results import Result as Result
    from clash.library.results import Run as Run
    from clash.library.statistics import aggregate as aggregate
    from clash.library.statistics import apply_calibrator as apply_calibrator
    from clash.library.statistics import audit as audit
    from clash.library.statistics import calibrate as calibrate
    from clash.library.statistics import choose as choose
    from clash.library.statistics import compare as compare
    from clash.library.statistics import dependence as dependence
    from clash.library.statistics import diagnose as diagnose
    from clash.library.statistics import explain as explain
    from clash.library.statistics import gate as gate
    from clash.library.statistics import power as power
    from clash.library.statistics import read_votes as read_votes

_HOMES = {
    "clash.errors": ("ClashError",),
    "clash.library.results": ("GateResult", "Records", "Result", "Run"),
    "clash.library.evaluation": (
        "evaluate", "evaluate_async", "favouritism", "load", "merge", "rerun", "rerun_async", "resume",
        "resume_async", "validate", "validate_async", "variance",
    ),
    "clash.library.statistics": (
        "aggregate", "apply_calibrator", "audit", "calibrate", "choose", "compare", "dependence",
        "diagnose", "explain", "gate", "power", "read_votes",
    ),
}  # fmt: skip
_MODULE_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = ["__version__", *sorted(_MODULE_OF)]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - any part of the library
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'clash' has no attribute {name!r}")
    value = getattr(import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
