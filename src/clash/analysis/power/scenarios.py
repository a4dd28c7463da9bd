"""Sample size, power and detectable effect of a question under each assumption."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Literal

import numpy as np

from clash.analysis.tasks import run_tasks
from clash.errors import ConfigError
from clash.stats.power import monte_carlo
from clash.stats.power.comparisons import Comparison
from clash.stats.power.design import Clustering, Demand, ErrorRates
from clash.stats.power.precision import concordance_items, kappa_items, retest_items

if TYPE_CHECKING:
    from collections.abc import Sequence

Question = Literal["compare", "paired", "concordance", "kappa", "retest"]
QUESTIONS: tuple[Question, ...] = ("compare", "paired", "concordance", "kappa", "retest")
UNITS = {
    "compare": "runs in each condition",
    "paired": "items",
    "concordance": "labelled items",
    "kappa": "items",
    "retest": "items",
}


@dataclass(frozen=True)
class PanelDesign:
    """A panel as power sees it.

    Attributes:
        discrimination: share of ballots without ties, by judge.
        ballots: ballots of all judges on one run or item.
    """

    discrimination: tuple[float, ...]
    ballots: float

    @property
    def mean(self) -> float:
        """Mean discrimination: judges cast equally many ballots."""
        return sum(self.discrimination) / len(self.discrimination)

    @property
    def informative(self) -> float:
        """Ballots of a run that are no tie."""
        return self.ballots * self.mean


@dataclass(frozen=True)
class PowerQuestion:
    """The question that a sample size answers, and its assumptions.

    Attributes:
        effect: absolute difference to detect (compare: of two proportions; paired: wins minus
            losses).
        middle: mean of the two proportions.
        half_width: of the interval (concordance, kappa, retest).
        expected: concordance, kappa or agreement that is expected.
        runs: runs of a test-retest.
        per_cluster: items that share a question (concordance, kappa, retest).
        n: what there is, to be told what it can show.
    """

    question: Question
    effect: float = 0.10
    middle: float = 0.5
    level: ErrorRates = field(default_factory=ErrorRates)
    half_width: float = 0.05
    expected: float = 0.8
    runs: int = 2
    per_cluster: float = 1.0
    n: int | None = None


@dataclass(frozen=True)
class PowerSimulation:
    """A Monte-Carlo check.

    Attributes:
        claimed: power, or coverage of the interval.
        simulated: the share of simulated studies, with its interval's ends.
        half_width: mean of the simulated intervals; null for a test.
    """

    claimed: float
    simulated: float
    low: float
    high: float
    replications: int
    half_width: float | None


@dataclass(frozen=True)
class PowerCell:
    """One assumption.

    Attributes:
        panel: index of the panel; null where the question has none.
        needed: runs or items, rounded up; ``exact`` before that.
        ballots: ballots to pay for, ties included; null without a panel.
        power_at_n: with ``n`` of them; ``detectable`` the effect found with the power asked for.
    """

    panel: int | None
    icc: float
    size: float
    design_effect: float
    observations: float
    exact: float
    needed: int
    ballots: float | None = None
    power_at_n: float | None = None
    detectable: float | None = None
    checked: PowerSimulation | None = None


@dataclass(frozen=True)
class Scenario:
    """A question answered for every panel and correlation."""

    ask: PowerQuestion
    unit: str
    panels: tuple[PanelDesign, ...]
    cells: tuple[PowerCell, ...]
    notes: tuple[str, ...]

    def cell(self, panel: int | None, icc: float) -> PowerCell:
        """One of them."""
        return next(c for c in self.cells if c.panel == panel and c.icc == icc)


def scenario(
    question: PowerQuestion,
    panels: Sequence[PanelDesign],
    correlations: Sequence[float],
    *,
    simulate: bool = False,
    replications: int = monte_carlo.REPLICATIONS,
    seed: int = 0,
) -> Scenario:
    """Answer ``question`` for every panel and intra-cluster correlation.

    Raises:
        ConfigError: no panel or no correlation where the question needs one.
        StatisticsError: an assumption out of range.
    """
    indices: list[int | None] = list(range(len(panels)))
    if question.question not in ("compare", "paired"):
        indices = [None]
    if not indices or not correlations:
        raise ConfigError("power needs a panel and a correlation", field="--panel, --icc")
    assumptions = [(index, icc) for index in indices for icc in correlations]
    # A seed for each, so that results are the same wherever and in whatever order they are simulated.
    seeds = np.random.SeedSequence(seed).spawn(len(assumptions)) if simulate else ()
    tasks = [(index, icc, own_seed) for (index, icc), own_seed in zip_longest(assumptions, seeds)]
    cells = tuple(run_tasks(_cell, (question, panels, replications), tasks))
    panels_used = tuple(panels) if indices != [None] else ()
    return Scenario(
        question, UNITS[question.question], panels_used, cells, _notes(question, panels_used, cells)
    )


def clustering_of(question: PowerQuestion, panel: PanelDesign | None, icc: float) -> Clustering:
    """The clusters: ballots of a run or of an item, or items that share a question."""
    if question.question == "compare" and panel is not None:
        return Clustering(panel.informative, icc)
    if question.question == "paired" and panel is not None:
        return Clustering(panel.ballots, icc)
    return Clustering(question.per_cluster, icc)


def _comparison(
    question: PowerQuestion, panel: PanelDesign | None, clustering: Clustering
) -> Comparison | None:
    """The comparison that is asked about; null where the question is of precision."""
    if panel is None or not (question.question == "compare" or question.question == "paired"):
        return None
    return Comparison(
        question.question,
        question.effect,
        clustering,
        question.level,
        middle=question.middle,
        decisive=panel.mean,
    )


def _precision(question: PowerQuestion, clustering: Clustering) -> Demand:
    """The sample size of a question of precision."""
    if question.question == "kappa":
        return kappa_items(
            question.half_width,
            question.expected,
            question.middle,
            None,
            clustering,
            _confidence(question),
        )
    if question.question == "retest":
        return retest_items(
            question.half_width, question.expected, question.runs, clustering, _confidence(question)
        )
    return concordance_items(
        question.half_width, question.expected, clustering, _confidence(question)
    )


def _confidence(question: PowerQuestion) -> float:
    return 1 - question.level.alpha


def _cell(
    setting: tuple[PowerQuestion, Sequence[PanelDesign], int],
    task: tuple[int | None, float, np.random.SeedSequence | None],
) -> PowerCell:
    (question, panels, replications), (index, icc, seed) = setting, task
    rng = None if seed is None else np.random.default_rng(seed)
    panel = None if index is None else panels[index]
    question = _of_panel(question, panels, index)
    clustering = clustering_of(question, panel, icc)
    comparison = _comparison(question, panel, clustering)
    need = _precision(question, clustering) if comparison is None else comparison.demand()
    # Precision questions are about items: what is counted is items, in clusters or not.
    count = need.exact if panel is not None else need.observations
    size = math.ceil(count - 1e-9)
    return PowerCell(
        panel=index,
        icc=icc,
        size=clustering.size,
        design_effect=need.design_effect,
        observations=need.observations,
        exact=count,
        needed=size,
        ballots=None if panel is None else size * panel.ballots,
        power_at_n=None
        if comparison is None or question.n is None
        else comparison.power(question.n),
        detectable=None
        if comparison is None or question.n is None
        else comparison.detectable(question.n),
        checked=None
        if rng is None
        else _simulate(question, comparison, clustering, size, rng, replications),
    )


def _of_panel(
    question: PowerQuestion, panels: Sequence[PanelDesign], index: int | None
) -> PowerQuestion:
    """The difference as this panel shows it: the one asked for is as the first panel does.

    Two conditions are compared on ballots without ties, which a tie does not touch.
    """
    if question.question != "paired" or not index:
        return question
    return replace(question, effect=question.effect * panels[index].mean / panels[0].mean)


def _simulate(
    question: PowerQuestion,
    comparison: Comparison | None,
    clustering: Clustering,
    n_needed: int,
    rng: np.random.Generator,
    replications: int,
) -> PowerSimulation:
    if comparison is not None:
        check = monte_carlo.check_comparison(comparison, n_needed, rng, replications)
    elif question.question == "concordance":
        clusters = math.ceil(n_needed / question.per_cluster)
        check = monte_carlo.check_concordance(
            clusters, question.expected, clustering, rng, _confidence(question), replications
        )
    elif question.question == "kappa":
        rates = question.middle, question.middle
        check = monte_carlo.check_kappa(
            n_needed, question.expected, *rates, rng, _confidence(question), replications
        )
    else:
        check = monte_carlo.check_retest(
            n_needed, question.expected, question.runs, rng, _confidence(question), replications
        )
    share = check.rate
    return PowerSimulation(
        check.claim, share.estimate, share.low, share.high, replications, check.width
    )


def _notes(
    question: PowerQuestion, panels: Sequence[PanelDesign], cells: Sequence[PowerCell]
) -> tuple[str, ...]:
    notes = {
        "compare": [
            "two conditions on different runs, ballots without ties, two-sided z test; design "
            "effect 1 + (m - 1) rho, m informative ballots a run",
            "rho is the correlation on the scale of outcomes (`clash power --from RUN` estimates"
            " it); a latent one of a logistic model is larger",
        ],
        "paired": [
            "two candidates on the same items, wins minus losses, McNemar's test clustered by "
            "item; ties count as ballots: they lower the largest possible difference and the "
            "variance",
        ],
        "concordance": ["Wilson's interval; items that share a question are clustered"],
        "kappa": [
            "two classes, both raters with the share of --base in class 1, items independent"
        ],
        "retest": [
            "share of agreeing pairs of runs; with more than two runs, each item's instability "
            "is assumed to follow a beta distribution"
        ],
    }[question.question]
    if question.question == "paired" and len(panels) > 1:
        notes.append(
            "the difference is as measured by panel A; a panel that ties more measures a smaller "
            "one"
        )
    if question.question in ("kappa", "retest") and any(c.checked and c.icc > 0 for c in cells):
        notes.append("the simulation assumes independent items")
    return tuple(notes)
