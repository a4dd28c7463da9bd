"""The calibrator: its file ``calibrator.json``, its use on new votes, and the checks that refuse it.

The file holds the training rows as counts of vote patterns and sums of labels, and the choice of
judges and family. The map is fitted from these anew wherever it is used, which takes milliseconds
and gives the same numbers: there is one implementation of every family, and nothing of an item's
text is in the file.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from clash.documents import read_yaml, validate
from clash.errors import InputError, StatisticsError
from clash.stats.selection import shift
from clash.stats.selection.conformal import BinomialControl, ConformalControl
from clash.stats.selection.families import ANCHOR, FAMILIES, fit_family
from clash.stats.selection.metrics import confidence, expected_side, verdicts
from clash.stats.selection.panel import Cells, Evidence, PanelVotes
from clash.stats.selection.scalar import vote_shares

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from clash.stats.typing import Floats


SCHEMA = "clash-calibrator/1"
CONTROL_SHARE = 0.3
"""Labelled sources that the map is not fitted to, so that a risk can be promised by them."""
_MOST_ROWS = 1e9
"""Rows of a pattern in a file; more are a forgery."""


class CalibratorPart(BaseModel):
    """A part of a calibrator."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class TrainingPattern(CalibratorPart):
    """Training rows with the same votes.

    Attributes:
        votes: by asked judge, on [0, 1]; null where there was none.
        n: labelled rows.
        s: sum of their targets, by class.
        n_rows: rows, labelled or not; ``seen`` in the file.
    """

    model_config = ConfigDict(populate_by_name=True)

    votes: list[float | None]
    n: float = Field(ge=0, le=_MOST_ROWS)
    s: list[float]
    n_rows: float = Field(alias="seen", ge=0, le=_MOST_ROWS)


class HeldOutSources(CalibratorPart):
    """Labelled sources that were held out of the fit.

    Attributes:
        n: how many, one row of each.
        wrong: confidence of the map in each of its verdicts on them that is wrong.
        right: the same of those that are right; null in files of version 0.2 and before, which
            cannot promise a risk with confidence.
    """

    n: int = Field(ge=0)
    wrong: list[float]
    right: list[float] | None = None


class DeployedMap(CalibratorPart):
    """One of the maps whose weighted mean is deployed.

    Attributes:
        judges: places in ``asked``, in the order of its path.
    """

    family: str
    judges: list[int]
    weight: float = Field(gt=0)


class TrainingRecord(CalibratorPart):
    """The labels that a calibrator was fitted to, and its validation risk."""

    source: str
    n: int
    sources: int
    seed: int
    validation_risk: float | None
    majority_risk: float | None


class Calibrator(CalibratorPart):
    """A fitted panel.

    Attributes:
        path, k, family: of the heaviest map.
        judges: of the panel it was fitted on, all of them.
        asked: those that are read, in order.
        maps: what is deployed; none where it is one family on all that are asked.
        models: model of each judge, where a run said so.
        templates: hash of the prompts that judges were given, where a run said so.
        low: the score that is 0.
        high: the score that is 1.
        patterns: the training rows, which are also its domain of application.
    """

    schema_: Literal["clash-calibrator/1"] = Field(alias="schema")
    clash: str
    target: Literal["binary", "three", "scalar"]
    path: str
    k: int
    family: str
    judges: list[str]
    asked: list[str]
    maps: list[DeployedMap] = []
    models: dict[str, str] | None = None
    templates: str | None = None
    low: float = 0.0
    high: float = 1.0
    training: TrainingRecord
    patterns: list[TrainingPattern]
    control: HeldOutSources

    @property
    def panel_hash(self) -> str:
        """SHA-256 of the judges, and their models where known."""
        from hashlib import sha256

        names = sorted(f"{j}={(self.models or {}).get(j, '')}" for j in self.judges)
        return sha256("\n".join(names).encode()).hexdigest()

    def as_json(self) -> dict[str, Any]:
        """The content of ``calibrator.json``."""
        return {**self.model_dump(by_alias=True), "panel_hash": self.panel_hash}


def read_calibrator(path: Path) -> Calibrator:
    """A calibrator from its file.

    Raises:
        InputError: it is none, was changed, or names a family that this version lacks.
    """
    return parse_calibrator(read_yaml(path).value, path)


def _is_consistent(calibrator: Calibrator) -> bool:
    """Whether patterns have a vote of each asked judge and possible targets, and held-out rows add up."""
    classes = 3 if calibrator.target == "three" else 1
    control = calibrator.control
    if len(control.wrong) > control.n:
        return False
    if control.right is not None and len(control.right) + len(control.wrong) != control.n:
        return False
    return calibrator.low < calibrator.high and all(
        len(pattern.votes) == len(calibrator.asked)
        and all(vote is None or 0 <= vote <= 1 for vote in pattern.votes)
        and len(pattern.s) == classes
        and all(0 <= total <= pattern.n for total in pattern.s)
        for pattern in calibrator.patterns
    )


def parse_calibrator(value: Any, path: Path | str = "calibrator") -> Calibrator:  # noqa: ANN401 - parsed JSON
    """A calibrator from plain data.

    Raises:
        InputError: as :func:`read_calibrator`.
    """
    from pathlib import Path

    from clash.documents import Document

    if not isinstance(value, dict):
        raise InputError("is no calibrator", path=path, hint="clash calibrate VOTES --out FILE")
    fields = {key: part for key, part in value.items() if key != "panel_hash"}
    calibrator = validate(Calibrator, Document(Path(path), fields), error=InputError)
    unknown_families = {calibrator.family, *(part.family for part in calibrator.maps)} - set(
        FAMILIES
    )
    columns = {column for part in calibrator.maps for column in part.judges}
    if (
        unknown_families
        or set(calibrator.asked) - set(calibrator.judges)
        or columns - set(range(len(calibrator.asked)))
    ):
        raise InputError(f"family or judges of {calibrator.family!r} are unknown", path=path)
    if not _is_consistent(calibrator):
        raise InputError(
            "its patterns or held-out verdicts do not match its judges and labels",
            path=path,
            field="patterns",
            hint="fit it again: clash calibrate",
        )
    if value.get("panel_hash") != calibrator.panel_hash:
        raise InputError(
            "the panel differs from the one it was fitted to (its hash differs)",
            path=path,
            field="panel_hash",
            hint="fit it again: clash calibrate",
        )
    return calibrator


@dataclass(frozen=True)
class CalibratedRows:
    """A calibrator on new rows.

    Attributes:
        p: (N, C), calibrated; vote shares where the map fell back to majority.
        is_answered: (N,), whether the risk allows an answer; all where none was given.
        shift: how the rows differ from the training rows.
        fallback: the map was not used, because the rows differ too much.
        warnings: on the domain of the votes and on the risk.
    """

    p: Floats
    is_answered: NDArray[np.bool_]
    shift: shift.Shift
    fallback: bool
    warnings: tuple[str, ...]

    @property
    def side(self) -> Floats:
        """(N,), expected side: P(side 1), a tie counting half."""
        return expected_side(self.p)

    @property
    def verdict(self) -> Floats:
        """(N,), 1, 0, or 0.5 for a tie."""
        shares = verdicts(self.p)
        return shares[:, 1] if self.p.shape[1] == 1 else shares[:, 2] + shares[:, 1] / 2


def check_panel(
    calibrator: Calibrator,
    judges: Sequence[str],
    *,
    models: Mapping[str, str] | None = None,
    templates: str | None = None,
    where: str = "",
) -> tuple[str, ...]:
    """Refuse another panel or other prompts; warn where these are not known.

    Raises:
        InputError: a judge is missing or is another model, or the prompts are others.
    """
    missing = [judge for judge in calibrator.asked if judge not in judges]
    hint = "fit one on this panel: clash calibrate"
    if missing:
        raise InputError(
            f"the calibrator uses {missing[0]!r}, which is not in this panel",
            path=where or None,
            field="calibrator",
            hint=hint,
        )
    for judge in calibrator.asked if models and calibrator.models else ():
        if (models or {}).get(judge) != (calibrator.models or {}).get(judge):
            raise InputError(
                f"judge {judge!r} is a different model from the one the calibrator was fitted to",
                path=where or None,
                field="calibrator",
                hint=hint,
            )
    if templates and calibrator.templates and templates != calibrator.templates:
        raise InputError(
            "the judges' prompts differ from those the calibrator was fitted to",
            path=where or None,
            field="calibrator",
            hint=hint,
        )
    if templates and not calibrator.templates:
        return ("the calibrator does not say which prompts its judges were given",)
    return ()


@dataclass(frozen=True)
class RiskLimit:
    """The share of wrong verdicts among the answered ones that is allowed.

    Attributes:
        max_risk: the share.
        level: confidence that the share is kept; null keeps it on average over batches.
    """

    max_risk: float
    level: float | None = None

    @property
    def in_words(self) -> str:
        """The promise."""
        with_level = "" if self.level is None else f" with {self.level:.0%} confidence"
        return f"a risk of {self.max_risk:g}{with_level}"


def apply(calibrator: Calibrator, votes: Floats, limit: RiskLimit | None = None) -> CalibratedRows:
    """Calibrated predictions of new rows.

    Args:
        calibrator: the calibrator.
        votes: (N, k), of the asked judges in order; NaN where there is none.
        limit: the share of wrong verdicts among the answered ones to keep, see
            :mod:`clash.stats.selection.conformal`; None answers everything.

    Raises:
        InputError: a risk with confidence, and a calibrator of an earlier version.
    """
    new = np.asarray(votes, dtype=float)
    if (calibrator.low, calibrator.high) != (0.0, 1.0):
        new = np.clip((new - calibrator.low) / (calibrator.high - calibrator.low), 0.0, 1.0)
    old = np.array([[np.nan if v is None else v for v in p.votes] for p in calibrator.patterns])
    all_votes = np.vstack([old, new])
    panel = PanelVotes.of(
        all_votes, np.full(len(all_votes), np.nan), np.arange(len(all_votes)), calibrator.target
    )
    cells = panel.cells(range(all_votes.shape[1]))
    cell_of = cells.of_pattern[panel.pattern]
    training_cells, new_cells = cell_of[: len(old)], cell_of[len(old) :]
    evidence = _evidence(calibrator, training_cells, len(cells.values))
    p = _predict(calibrator, panel, cells, evidence)
    counts = np.bincount(new_cells, minlength=len(cells.values)).astype(float)
    drift = shift.compare_votes(cells, evidence.n, counts, p)
    warnings = tuple(f"shifted domain: {reason}" for reason in drift.reasons)
    is_answered, no_risk = np.ones(len(new), bool), ""
    if limit is not None and drift.is_shift:
        is_answered = np.zeros(len(new), bool)
        no_risk = "no risk can be guaranteed under domain shift, so every item is left for review"
    elif limit is not None:
        sure = confidence(p)
        is_answered, no_risk = _answers(calibrator, limit, sure, evidence.votes, sure[new_cells])
    fallback = drift.is_shift and {part.family for part in _maps(calibrator)} != {ANCHOR}
    if fallback:
        p = vote_shares(cells)
        warnings += ("the calibrator was not used: verdicts are by uniform majority",)
    if no_risk:
        warnings += (no_risk,)
    return CalibratedRows(p[new_cells], is_answered, drift, fallback, warnings)


def check_limit(calibrator: Calibrator, limit: RiskLimit | None, where: str = "") -> None:
    """Refuse a promise that the file cannot make.

    Raises:
        InputError: a risk with confidence, and a calibrator of an earlier version.
    """
    if limit is not None and limit.level is not None and calibrator.control.right is None:
        raise InputError(
            "an earlier version wrote this calibrator: it promises a risk on average, and none "
            "with confidence",
            path=where or None,
            field="control",
            hint="fit it again (clash calibrate), or leave out --risk-confidence",
        )


def _answers(
    calibrator: Calibrator, limit: RiskLimit, reference: Floats, weights: Floats, new: Floats
) -> tuple[NDArray[np.bool_], str]:
    """Which rows to answer, and why none can be where that is so.

    Args:
        calibrator: the calibrator.
        limit: the share of wrong verdicts.
        reference: (P,), confidence by cell.
        weights: (P,), training rows in each.
        new: (N,), confidence on the new rows.

    Raises:
        InputError: a risk with confidence, and a calibrator of an earlier version.
    """
    check_limit(calibrator, limit)
    control = calibrator.control
    wrong = np.array(control.wrong)
    if limit.level is None:
        average = ConformalControl(wrong, control.n, limit.max_risk)
        fewest, is_answered = average.fewest, average.answers(new)
    else:
        bound = BinomialControl(
            np.array(control.right or []), wrong, reference, weights, limit.max_risk, limit.level
        )
        fewest, is_answered = bound.fewest, bound.answers(new)
        if control.n >= fewest and np.isinf(bound.threshold):
            return is_answered, (
                f"{limit.in_words} cannot be guaranteed: too many of the {control.n} held-out verdicts"
                " are wrong; label more items or allow a higher risk"
            )
    if control.n >= fewest:
        return is_answered, ""
    return is_answered, (
        f"{control.n} held-out sources cannot guarantee {limit.in_words}: at least {fewest} are "
        f"needed, which is about {math.ceil(fewest / CONTROL_SHARE)} labelled items"
    )


def _maps(calibrator: Calibrator) -> list[DeployedMap]:
    single = DeployedMap(
        family=calibrator.family, judges=list(range(len(calibrator.asked))), weight=1.0
    )
    return calibrator.maps or [single]


def _predict(calibrator: Calibrator, panel: PanelVotes, cells: Cells, evidence: Evidence) -> Floats:
    """(P, C), the weighted mean of the maps by cell of all that are asked.

    A model of votes alone is fitted once for the judges that several maps share.
    """
    # Cells of all judges and patterns of the panel are the same rows, perhaps in another order.
    first = np.unique(cells.of_pattern, return_index=True)[1]
    by_pattern = Evidence(
        *(part[cells.of_pattern] for part in (evidence.n, evidence.s, evidence.votes))
    )
    cache: dict[tuple[int, ...], tuple[Cells, Evidence, dict[str, Floats | StatisticsError]]] = {}
    total = np.zeros((len(cells.values), cells.n_classes))
    for part in _maps(calibrator):
        key = tuple(part.judges)
        if key not in cache:
            own_cells = panel.cells(key)
            cache[key] = (own_cells, by_pattern.on(own_cells), {})
        own_cells, own_evidence, scores = cache[key]
        p = fit_family(FAMILIES[part.family], own_cells, own_evidence, scores)
        total += part.weight * p[own_cells.of_pattern][first]
    return np.asarray(total / sum(part.weight for part in _maps(calibrator)))


def _evidence(calibrator: Calibrator, cell_of: NDArray[np.intp], size: int) -> Evidence:
    n, n_votes = np.zeros(size), np.zeros(size)
    s = np.zeros((size, len(calibrator.patterns[0].s)))
    for cell, pattern in zip(cell_of, calibrator.patterns, strict=True):
        n[cell] += pattern.n
        n_votes[cell] += pattern.n_rows
        s[cell] += pattern.s
    return Evidence(n, s, n_votes)
