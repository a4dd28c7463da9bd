"""Results of a rerun of a published simulation, beside the published figures."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clash.stats.intervals import Interval
    from clash.stats.selection.regime import RegimeMap

PaperStanding = Literal["agrees", "differs", "no figure"]

WITHIN = 3.0
"""Standard errors up to which two figures are called the same."""


@dataclass(frozen=True)
class PaperComparison:
    """One figure of the paper and ours.

    Attributes:
        quantity: what it is.
        ours: our value.
        paper: what the paper prints, or what its theorem says; null where it has no figure.
        source: where in the paper.
        se: standard error of our value by Monte Carlo; null where it is exact.
        paper_se: standard error of the paper's value, from its own number of trials; null where
            it is exact.
        resolution: half a unit of the last digit the paper prints.
        note: why they differ, where they do.
    """

    json_keys: ClassVar[Mapping[str, str]] = {"distance": "distance_se"}
    json_properties: ClassVar[tuple[str, ...]] = ("distance", "standing")

    quantity: str
    ours: float
    paper: float | None = None
    source: str = ""
    se: float | None = None
    paper_se: float | None = None
    resolution: float = 0.0
    note: str = ""

    @classmethod
    def of(
        cls,
        quantity: str,
        mean: SampleMean,
        paper: float | None = None,
        source: str = "",
        *,
        resolution: float = 0.0,
        note: str = "",
    ) -> PaperComparison:
        """A figure by Monte Carlo."""
        return cls(
            quantity, mean.value, paper, source, se=mean.se, resolution=resolution, note=note
        )

    @property
    def distance(self) -> float | None:
        """|ours - paper| beyond rounding, in standard errors; null without an error or figure."""
        if self.paper is None:
            return None
        error = np.hypot(self.se or 0.0, self.paper_se or 0.0)
        gap = max(0.0, abs(self.ours - self.paper) - self.resolution)
        return None if error == 0 else float(gap / error)

    @property
    def standing(self) -> PaperStanding:
        """Whether the two are the same within rounding and three standard errors."""
        if self.paper is None:
            return "no figure"
        if self.distance is None:
            agrees = abs(self.ours - self.paper) <= self.resolution
        else:
            agrees = self.distance <= WITHIN
        return "agrees" if agrees else "differs"


@dataclass(frozen=True)
class RiskCurve:
    """One curve of a plot: risks by number of judges.

    Attributes:
        errors: standard errors at each point; null where exact.
        level: a horizontal line, ``y`` its height.
        colour: its place among the colours, for curves that belong together.
    """

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    errors: tuple[float, ...] | None = None
    level: bool = False
    colour: int | None = None


@dataclass(frozen=True)
class CurvePlot:
    """Panels of curves, side by side."""

    name: str
    titles: tuple[str, ...]
    panels: tuple[tuple[RiskCurve, ...], ...]
    x_label: str
    y_label: str
    log_x: bool = False


@dataclass(frozen=True)
class RegimeMaps:
    """Regime maps, side by side."""

    name: str
    titles: tuple[str, ...]
    maps: tuple[RegimeMap, ...]


@dataclass(frozen=True)
class DesignCell:
    """What rules come to on the panels of one design and size; accuracies are means over panels.

    Attributes:
        design: the kind of panel.
        n_items: items of each panel.
        n_panels: panels drawn.
        majority: accuracy of the majority, a tie half right.
        dawid_skene: of Dawid-Skene.
        auto: of the model that ``select`` chooses.
        best_member: the model of its menu, or majority, that is right most often here.
        best_member_accuracy: how often; known only with the labels.
        oracle: of Bayes' rule under the law that drew the votes.
        against_majority: auto less majority, paired, over panels.
        against_member: auto less the best member, paired, over panels.
        log_loss_against_share: auto's log-loss less that of the smoothed vote share.
        panels_below: panels on which auto is below majority by 1.96 standard errors over items.
        panels_above: on which it is above.
        chosen: how often each method was chosen.
        panels_that_tell: panels whose votes tell which reading is right, as
            :meth:`clash.reproduction.simulations.vote_readings.PanelReadings.telling` has it.
        panels_that_do_not_tell: panels whose votes do not; on the rest majority is as good as any model.
        against_member_where_votes_tell: on the panels that tell, auto less the reading that is best with
            items without end; null below two such panels.
    """

    design: str
    n_items: int
    n_panels: int
    majority: float
    dawid_skene: float
    auto: float
    best_member: str
    best_member_accuracy: float
    oracle: float
    against_majority: Interval
    against_member: Interval
    log_loss_against_share: Interval
    panels_below: int
    panels_above: int
    chosen: dict[str, int]
    panels_that_tell: int
    panels_that_do_not_tell: int
    against_member_where_votes_tell: Interval | None


@dataclass(frozen=True)
class Simulation:
    """A rerun.

    Attributes:
        name: as on the command line.
        title: what was simulated.
        source: sections, tables and figures of the paper.
        setting: parameters by name.
        rows: figures beside the paper's.
        findings: what follows, a sentence each.
        plots: curves.
        maps: regime maps.
        cells: results by design and size, where the simulation is no rerun of a paper's.
        seed: of the generator.
        replications: of the Monte Carlo part.
    """

    name: str
    title: str
    source: str
    setting: dict[str, str]
    rows: tuple[PaperComparison, ...]
    findings: tuple[str, ...]
    seed: int
    replications: int
    plots: tuple[CurvePlot, ...] = field(default=())
    maps: tuple[RegimeMaps, ...] = field(default=())
    cells: tuple[DesignCell, ...] = field(default=())


@dataclass(frozen=True)
class SampleMean:
    """The mean of a Monte Carlo sample and its standard error."""

    value: float
    se: float
    sd: float

    @classmethod
    def of(cls, sample: npt.ArrayLike) -> SampleMean:
        """From one value per replication; one replication has no standard error."""
        x = np.asarray(sample, dtype=np.float64)
        sd = float(x.std(ddof=1)) if len(x) > 1 else float("nan")
        return cls(float(x.mean()), sd / len(x) ** 0.5, sd)
