"""A fixture that makes runs inside a test, and a marker that holds them to thresholds.

pytest loads this module in every project that has clash installed, whether it uses it or not. So
nothing but pytest is imported here; the rest of clash is imported by the first test that needs it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from clash.library.results import GateResult, Run

_MARKER = (
    "clash(min={FIGURE: VALUE}, max={FIGURE: VALUE}, on='bound'):"
    " fail the test where a run that it makes with the fixture `clash` misses a threshold"
    " of `clash gate`"
)
_PANEL = "baseline"
_KEYLESS_CAP = 1e-9
"""US dollars. A cap is positive; this one is below the price of any call."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--clash-runs`` and ``clash_max_cost``."""
    group = parser.getgroup("clash")
    group.addoption(
        "--clash-runs",
        metavar="DIR",
        help="Folder of the runs that tests make with the fixture `clash`; default: tmp_path.",
    )
    parser.addini(
        "clash_max_cost",
        "US dollars that one run of the fixture `clash` may cost, where the test names no "
        "max_cost; default: nothing, so only judges that need no key can be used.",
        default="",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, which strict markers ask for."""
    config.addinivalue_line("markers", _MARKER)


@dataclass(frozen=True)
class MarkedThresholds:
    """What one ``pytest.mark.clash`` asks of every run of its test."""

    least: Mapping[str, float]
    most: Mapping[str, float]
    on: Literal["bound", "point"]

    @classmethod
    def of(cls, mark: pytest.Mark) -> MarkedThresholds:
        """Read a marker.

        Raises:
            ValueError: it has an argument that it cannot have; the message names the fix.
        """
        arguments = dict(mark.kwargs)
        thresholds = cls(
            arguments.pop("min", {}),
            arguments.pop("max", {}),
            arguments.pop("on", "bound"),
        )
        if mark.args or arguments:
            strange = [*map(repr, mark.args), *arguments]
            raise ValueError(f"takes min, max and on, not {', '.join(strange)}")
        for name, limits in (("min", thresholds.least), ("max", thresholds.most)):
            if not isinstance(limits, dict) or not all(map(_is_limit, limits.items())):
                raise ValueError(f"{name} is {limits!r}; expected numbers by figure")
        if thresholds.on not in ("bound", "point"):
            raise ValueError(f"on is {thresholds.on!r}; expected 'bound' or 'point'")
        if not thresholds.least and not thresholds.most:
            raise ValueError("names no threshold, so nothing could fail")
        return thresholds


def _is_limit(pair: tuple[object, object]) -> bool:
    figure, limit = pair
    is_number = isinstance(limit, int | float) and not isinstance(limit, bool)
    return isinstance(figure, str) and is_number and not math.isnan(limit)  # type: ignore[arg-type]


class ClashFixture:
    """The functions of clash, bound to a folder of runs and a cap on their cost.

    Arguments are those of the functions of the same name in :mod:`clash`. Without a panel the
    built-in baseline judges are used, which need no key; candidates are called only where the test names them.
    With a list of judges there are no criteria, unless the test asks for some.
    A ``clash.yaml`` is read only where the test names it as ``config``.

    Attributes:
        folder: where the runs land.
        max_cost: US dollars for each run; null lets only judges that need no key sit.
        runs: the runs that the test made, in order.
    """

    def __init__(self, folder: Path, max_cost: float | None) -> None:
        self.folder = folder
        self.max_cost = max_cost
        self.runs: list[Run] = []

    def evaluate(
        self,
        prompts: Any,  # noqa: ANN401 - as in the library, here and below
        candidates: Any = None,  # noqa: ANN401
        panel: Any = None,  # noqa: ANN401
        **options: Any,  # noqa: ANN401
    ) -> Run:
        """As :func:`clash.evaluate`."""
        import clash

        return self._note(clash.evaluate(prompts, candidates, **self._options(panel, options)))

    async def evaluate_async(
        self,
        prompts: Any,  # noqa: ANN401
        candidates: Any = None,  # noqa: ANN401
        panel: Any = None,  # noqa: ANN401
        **options: Any,  # noqa: ANN401
    ) -> Run:
        """As :func:`clash.evaluate_async`."""
        import clash

        options = self._options(panel, options)
        return self._note(await clash.evaluate_async(prompts, candidates, **options))

    def validate(self, dataset: Any, panel: Any = None, **options: Any) -> Run:  # noqa: ANN401
        """As :func:`clash.validate`."""
        import clash

        return self._note(clash.validate(dataset, **self._options(panel, options)))

    def load(self, run: str | Path) -> Run:
        """A run by path, or by its id in :attr:`folder`. The marker does not hold for it."""
        import clash

        return clash.load(run, out=self.folder)

    def compare(self, a: Any, b: Any, **options: Any) -> Any:  # noqa: ANN401
        """As :func:`clash.compare`."""
        import clash

        return clash.compare(a, b, **options)

    def gate(self, run: Any, thresholds: Mapping[str, Any], **options: Any) -> GateResult:  # noqa: ANN401
        """As :func:`clash.gate`: ``assert clash.gate(run, {"concordance": 0.8})``."""
        import clash

        return clash.gate(run, thresholds, **options)

    def _options(self, panel: Any, options: dict[str, Any]) -> dict[str, Any]:  # noqa: ANN401
        cap = _KEYLESS_CAP if self.max_cost is None else self.max_cost
        defaults: dict[str, Any] = {"max_cost": cap, "out": self.folder}
        if isinstance(panel, list | tuple) or callable(panel):
            # Else the default model would be called to write criteria, which no test named.
            defaults["criteria"] = "none"
        settings = {name: value for name, value in options.items() if value is not None}
        return {**defaults, **settings, "panel": _PANEL if panel is None else panel}

    def _note(self, run: Run) -> Run:
        self.runs.append(run)
        return run


_FIXTURE = pytest.StashKey[ClashFixture]()


@pytest.fixture
def clash(request: pytest.FixtureRequest) -> ClashFixture:
    """Evaluate, validate, load, compare and gate runs in a folder of this test."""
    folder = request.config.getoption("--clash-runs")
    runs = Path(folder) if folder else request.getfixturevalue("tmp_path") / "runs"
    fixture = ClashFixture(runs, _max_cost(request.config))
    request.node.stash[_FIXTURE] = fixture
    return fixture


def _max_cost(config: pytest.Config) -> float | None:
    text = str(config.getini("clash_max_cost")).strip()
    if not text:
        return None
    try:
        cap = float(text)
    except ValueError:
        cap = math.nan
    if not 0 < cap < math.inf:
        raise pytest.UsageError(
            f"clash_max_cost: {text!r} is not an amount of US dollars\n  fix: clash_max_cost = 0.50"
        )
    return cap


def _marks(item: pytest.Item) -> list[MarkedThresholds]:
    """The thresholds of a test; it fails where a marker cannot be read."""
    try:
        return [MarkedThresholds.of(mark) for mark in item.iter_markers("clash")]
    except ValueError as error:
        pytest.fail(
            f"pytest.mark.clash: {error}"
            '\n  fix: @pytest.mark.clash(min={"win_rate.mine": 0.5}, max={"cost": 1})',
            pytrace=False,
        )


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Refuse a marker that cannot hold anything, before the test spends money."""
    if _marks(item) and "clash" not in getattr(item, "fixturenames", ()):
        pytest.fail(
            "pytest.mark.clash: the test does not use the fixture `clash`, so nothing could fail"
            "\n  fix: take `clash` as an argument and make the run with clash.evaluate(…)",
            pytrace=False,
        )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Hold the runs of a test that passed to its thresholds."""
    outcome = yield
    marks = _marks(item)
    if marks:
        runs = item.stash[_FIXTURE].runs
        if not runs:
            pytest.fail(
                "pytest.mark.clash: the test made no run, so no threshold was checked\n  fix: "
                "make it with clash.evaluate(…) or clash.validate(…)",
                pytrace=False,
            )
        misses = [miss for run in runs for mark in marks if (miss := _miss(run, mark)) is not None]
        if misses:
            pytest.fail("\n".join(misses), pytrace=False)
    return outcome


def _miss(run: Run, mark: MarkedThresholds) -> str | None:
    """The tables of a run that misses a threshold; null where all hold."""
    import clash

    least = {figure: ("min", limit) for figure, limit in mark.least.items()}
    most = {figure: ("max", limit) for figure, limit in mark.most.items()}
    # A gate takes one threshold a figure; a figure between two limits takes two gates.
    groups = [least, most] if least.keys() & most.keys() else [least | most]
    gates = [clash.gate(run, thresholds, on=mark.on) for thresholds in groups]
    return "\n".join(gate_text(gate) for gate in gates if not gate.passed) or None


def gate_text(gate: GateResult) -> str:
    """The table of a gate, and below it a line for each threshold that fails."""
    import io

    from clash.report.terminal import console, print_tables

    page = console(width=110)
    page.file = io.StringIO()
    print_tables(page, gate.tables)
    failures = [f"  {check.message}" for check in gate.checks if not check.passed]
    return "\n".join([page.file.getvalue().strip("\n"), *failures])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Name the run folders of a test that fails."""
    report = yield
    fixture = item.stash.get(_FIXTURE, None)
    if report.when == "call" and report.failed and fixture is not None and fixture.runs:
        lines = [f"{run.path}  ({run.status})" for run in fixture.runs]
        report.sections.append(("clash runs", "\n".join(lines)))
    return report
