"""Calibrate a panel on human labels: compare panels and families, then fit what is deployed."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clash.errors import ConfigError, InputError, one_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from clash.analysis.calibration.calibrator import Calibrator
    from clash.analysis.calibration.planning import LabelPlan
    from clash.analysis.calibration.regimes import PanelRegimes
    from clash.analysis.calibration.risk import AnsweredShare, RiskByLabels
    from clash.analysis.calibration.study import CalibrationStudy
    from clash.pipeline.sources import VoteSelection
    from clash.report.tables import Table
    from clash.stats.selection.candidate_methods import SelectionSettings
    from clash.stats.selection.prior import Prior
    from clash.votes import Votes

    OnSplit = Callable[[int, int], None]


@dataclass(frozen=True)
class CalibrateOptions:
    """How a panel is calibrated; null where the default depends on the votes or other options.

    Attributes:
        labels: labelled items to learn from in each split.
        splits: random splits by source.
        folds: cross-validation in place of splits.
        protocol: ``rotate``: every label selects, calibrates and validates in turn, and the choice
            is refitted; ``blocks``: one block each, as published.
        paths: path rules, comma separated.
        families: families of calibration maps, comma separated.
        sizes: prefix sizes, comma separated; null is 1 to all judges.
        loss: what validation compares, ``mse`` or ``nll``.
        select: ``average`` weighs the menu by validation; ``one`` takes the best that passes the
            guard.
        guard: standard errors by which one must beat majority.
        prior: calibrators of earlier panels, comma separated, or ``task``.
        jobs: processes; null is one a core.
        sources: what a split keeps together: ``group``, or ``item`` where groups are categories.
    """

    labels: int | None = None
    splits: int = 30
    folds: int | None = None
    protocol: str = "rotate"
    paths: str | None = None
    families: str | None = None
    sizes: str | None = None
    loss: str = "mse"
    select: str | None = None
    guard: float | None = None
    prior: str | None = None
    jobs: int | None = None
    seed: int = 42
    sources: str = "group"

    def votes(self, selection: VoteSelection) -> Votes:
        """The selected votes, with the sources that are asked for.

        Raises:
            ConfigError: there is no such kind of source.
            InputError: the votes cannot be read.
        """
        by_item = _names(self.sources, ("group", "item"), "--sources")[0] == "item"
        votes = selection.votes()
        return votes.by_item() if by_item else votes

    @property
    def names_no_menu(self) -> bool:
        """Whether the menu may depend on the number of labels: nobody chose any part of it."""
        options = (self.paths, self.families, self.sizes, self.select, self.guard, self.prior)
        return self.protocol == "rotate" and all(option is None for option in options)

    def settings(self) -> SelectionSettings:
        """The settings of selection.

        Raises:
            ConfigError: a name is unknown, or options contradict each other.
        """
        from clash.analysis.calibration.study import SIZES
        from clash.stats.selection.candidate_methods import SelectionSettings
        from clash.stats.selection.families import FAMILIES, MENU
        from clash.stats.selection.paths import PATH_RULES

        is_published = _names(self.protocol, ("rotate", "blocks"), "--protocol")[0] == "blocks"
        select = self.select or ("one" if is_published or self.guard is not None else "average")
        selects_one = _names(select, ("average", "one"), "--select")[0] == "one"
        if self.guard is not None and not selects_one:
            raise ConfigError("the average has no guard", field="--guard", hint="--select one")
        families = (
            MENU if self.families is None else _names(self.families, tuple(FAMILIES), "--families")
        )
        return SelectionSettings(
            rules=_names(self.paths, PATH_RULES, "--paths"),
            families=families,
            loss="nll" if _names(self.loss, ("mse", "nll"), "--loss")[0] == "nll" else "mse",
            combine="one" if selects_one else "average",
            guard=self.guard,
            refit=not is_published,
            sizes=_prefix_sizes(self.sizes) if self.sizes else SIZES,
        )


def _names(text: str | None, choices: tuple[str, ...], option: str) -> tuple[str, ...]:
    """The names of a comma-separated list; all of the choices where there is none."""
    if text is None:
        return choices
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    wrong = [name for name in names if name not in choices]
    if wrong or not names:
        hint = one_of(wrong[0] if wrong else "", choices)
        raise ConfigError(f"no {wrong[0] if wrong else 'name'!r}", field=option, hint=hint)
    return names


def _prefix_sizes(text: str) -> tuple[int, ...]:
    try:
        sizes = tuple(sorted({int(part) for part in text.split(",")}))
    except ValueError:
        sizes = ()
    if not sizes or sizes[0] < 1:
        raise ConfigError(f"not prefix sizes: {text!r}", field="--k", hint="--k 1,2,3")
    return sizes


@dataclass(frozen=True)
class CalibrateFindings:
    """How calibrated panels fare on labels that they were not fitted to.

    Attributes:
        votes: what was studied.
        prior: the prior of families; null where none was asked for.
    """

    selection: VoteSelection
    votes: Votes
    study: CalibrationStudy
    prior: Prior | None
    seed: int

    def as_json(self) -> dict[str, Any]:
        """The contract of ``clash calibrate --json``, without ``source``, ``written`` and plots."""
        from clash.report import calibration

        prior = {} if self.prior is None else {"prior": calibration.prior_json(self.prior)}
        risk = {"risk": calibration.risk_json(self.risk)}
        return {**calibration.as_json(self.study), **risk, **prior}

    def tables(self, *, verbose: bool = True) -> list[Table]:
        """The panels side by side; with ``verbose`` also risks and families."""
        from clash.report import calibration

        return calibration.tables(self.study, self.risk, verbose=verbose)

    @cached_property
    def risk(self) -> RiskByLabels:
        """Which risk can be promised with how many labels, and how many rows are answered."""
        from clash.analysis.calibration.risk import risk_curve

        return risk_curve(self.study, self.seed)

    def headlines(self) -> list[str]:
        """The answer: what the labels gain, and what is deployed; then the prior, if there is one."""
        from clash.report import calibration

        prior = [] if self.prior is None else [calibration.prior_line(self.prior)]
        return [*calibration.headlines(self.study, self.risk), *prior]

    def fit(self) -> Calibrator:
        """Choose and fit on all labels what is deployed.

        Raises:
            StatisticsError: too few sources.
        """
        from clash.analysis.calibration.calibrated_verdicts import models_of_run
        from clash.analysis.calibration.fitting import fit

        models, templates = None, None
        if self.selection.folder is not None:
            manifest = self.selection.folder.manifest()
            models, templates = models_of_run(manifest.panel), manifest.hashes.get("templates")
        return fit(
            self.votes,
            self.study.frame,
            self.study.frame.panel(self.votes),
            self.study.settings,
            seed=self.seed,
            models=models,
            templates=templates,
        )

    def answer_shares(self, calibrator: Calibrator) -> tuple[AnsweredShare, ...]:
        """How many of the rows a written calibrator answers, by risk."""
        from clash.analysis.calibration.risk import answered_shares

        return answered_shares(calibrator, self.votes)

    def regimes(self, on_split: OnSplit | None = None) -> PanelRegimes:
        """Which family wins, by judges and labels, and what the next judge changes."""
        from clash.analysis.calibration.regimes import regimes

        return regimes(self.votes, self.study, seed=self.seed, on_split=on_split)


def calibrate_votes(
    selection: VoteSelection, options: CalibrateOptions, on_split: OnSplit | None = None
) -> CalibrateFindings:
    """Compare calibrated panels on labelled votes, by random splits or cross-validation.

    Args:
        selection: the votes.
        options: how.
        on_split: called after each split with how many are done, and of how many.

    Raises:
        ConfigError: an option is wrong.
        InputError: the votes or an earlier calibrator cannot be read.
        StatisticsError: too few labels.
    """
    from clash.analysis.calibration.study import default_settings, study
    from clash.stats.selection.blocks import SplitPlan

    settings = options.settings()
    votes = options.votes(selection)
    if options.names_no_menu:
        settings = replace(default_settings(votes), loss=settings.loss, refit=settings.refit)
    prior = None if options.prior is None else _prior(options, votes, settings)
    if prior is not None:
        settings = replace(settings, prior=prior.weights)
    plan = SplitPlan(labels=options.labels, rotations=1 if options.protocol == "blocks" else 5)
    findings = study(
        votes,
        settings=settings,
        plan=plan,
        splits=options.splits,
        folds=options.folds,
        seed=options.seed,
        jobs=options.jobs,
        on_split=on_split,
    )
    return CalibrateFindings(selection, votes, findings, prior, options.seed)


def _prior(options: CalibrateOptions, votes: Votes, settings: SelectionSettings) -> Prior:
    """The prior of families from earlier calibrators, or from the kind of target alone."""
    import numpy as np

    from clash.analysis.calibration.calibrator import read_calibrator
    from clash.analysis.calibration.frame import ScoreFrame
    from clash.analysis.calibration.priors import prior_for
    from clash.stats.selection.blocks import FEWEST_GROUPS

    frame = ScoreFrame.of(votes, FEWEST_GROUPS)
    n_sources = len(np.unique(votes.groups[votes.labelled]))
    n_items = len({votes.items[row] for row in np.flatnonzero(votes.labelled)})
    share = 1.0 if options.labels is None else min(options.labels / n_items, 1.0)
    n_labels = max(round(share * n_sources), 1)
    names = [name.strip() for name in (options.prior or "").split(",") if name.strip()]
    files = [] if names == ["task"] else names
    earlier = {name: read_calibrator(Path(name)) for name in files}
    return prior_for(frame.target, n_labels, settings.families, earlier, options.seed)


def plan_labels(selection: VoteSelection, options: CalibrateOptions, n: int) -> LabelPlan:
    """Which ``n`` items to label next.

    Raises:
        ConfigError: an option is wrong.
        InputError: the votes cannot be read.
        StatisticsError: too few items without a label.
    """
    from clash.analysis.calibration.planning import label_plan

    options.settings()  # refuses wrong options
    return label_plan(options.votes(selection), n, options.seed)


def write_calibrator(calibrator: Calibrator, path: Path) -> None:
    """Write a calibrator, for ``clash eval`` and ``clash aggregate`` to deploy.

    Raises:
        InputError: the file may not be written.
    """
    text = json.dumps(calibrator.as_json(), ensure_ascii=False, allow_nan=False)
    try:
        path.write_text(f"{text}\n", encoding="utf-8")
    except OSError as error:
        raise InputError(f"may not be written: {error.strerror}", path=path) from None
