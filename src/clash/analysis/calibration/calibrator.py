"""What is deployed: ``calibrator.json``, its use on new votes, and when it must not be used.

The file holds the training rows as counts of vote patterns and sums of labels, and the choice of
judges and family. The map is fitted from these anew wherever it is used, which takes milliseconds
and gives the same numbers: there is one implementation of every family, and nothing of an item's
text is in the file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from clash.documents import read_yaml, validate
from clash.errors import InputError, StatisticsError
from clash.stats.selection import shift
from clash.stats.selection.conformal import ConformalControl
from clash.stats.selection.families import ANCHOR, FAMILIES, fit_family
from clash.stats.selection.metrics import expected_side, verdicts
from clash.stats.selection.panel import Cells, Evidence, PanelVotes
from clash.stats.selection.scalar import vote_shares

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from clash.stats.typing import Floats


SCHEMA = "clash-calibrator/1"


class Part(BaseModel):
    """A part of a calibrator."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Pattern(Part):
    """Training rows with the same votes.

    Attributes:
        votes: by asked judge, on [0, 1]; null where there was none.
        n: labelled rows.
        s: sum of their targets, by class.
        seen: rows, labelled or not.
    """

    votes: list[float | None]
    n: float = Field(ge=0)
    s: list[float]
    seen: float = Field(ge=0)


class Held(Part):
    """Labelled sources that were held out of the fit.

    Attributes:
        n: how many, one row of each.
        wrong: confidence of the map in each of its verdicts on them that is wrong.
    """

    n: int = Field(ge=0)
    wrong: list[float]


class Map(Part):
    """One of the maps whose weighted mean is deployed.

    Attributes:
        judges: places in ``asked``, in the order of its path.
    """

    family: str
    judges: list[int]
    weight: float = Field(gt=0)


class Training(Part):
    """How the calibrator came about."""

    source: str
    n: int
    sources: int
    seed: int
    validation_risk: float | None
    majority_risk: float | None


class Calibrator(Part):
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
    maps: list[Map] = []
    models: dict[str, str] | None = None
    templates: str | None = None
    low: float = 0.0
    high: float = 1.0
    training: Training
    patterns: list[Pattern]
    control: Held

    @property
    def panel_hash(self) -> str:
        """SHA-256 of the judges, and their models where known."""
        from hashlib import sha256

        names = sorted(f"{j}={(self.models or {}).get(j, '')}" for j in self.judges)
        return sha256("\n".join(names).encode()).hexdigest()

    def as_json(self) -> dict[str, Any]:
        """What is written."""
        return {**self.model_dump(by_alias=True), "panel_hash": self.panel_hash}


def read_calibrator(path: Path) -> Calibrator:
    """A calibrator from its file.

    Raises:
        InputError: it is none, was changed, or names a family that this version lacks.
    """
    return parse(read_yaml(path).value, path)


def _is_whole(found: Calibrator) -> bool:
    """Whether each pattern has a vote of each asked judge, and targets that its rows can have."""
    classes = 3 if found.target == "three" else 1
    return found.low < found.high and all(
        len(pattern.votes) == len(found.asked)
        and all(vote is None or 0 <= vote <= 1 for vote in pattern.votes)
        and len(pattern.s) == classes
        and all(0 <= total <= pattern.n for total in pattern.s)
        for pattern in found.patterns
    )


def parse(value: Any, path: Path | str = "calibrator") -> Calibrator:  # noqa: ANN401 - parsed JSON
    """A calibrator from plain data.

    Raises:
        InputError: as :func:`read_calibrator`.
    """
    from pathlib import Path

    from clash.documents import Document

    if not isinstance(value, dict):
        raise InputError("is no calibrator", path=path, hint="clash calibrate VOTES --out FILE")
    known = {key: part for key, part in value.items() if key != "panel_hash"}
    found = validate(Calibrator, Document(Path(path), known), error=InputError)
    unknown = {found.family, *(part.family for part in found.maps)} - set(FAMILIES)
    places = {place for part in found.maps for place in part.judges}
    if unknown or set(found.asked) - set(found.judges) or places - set(range(len(found.asked))):
        raise InputError(f"family or judges of {found.family!r} are unknown", path=path)
    if not _is_whole(found):
        raise InputError(
            "its patterns are not votes and targets of the judges that are asked",
            path=path,
            field="patterns",
            hint="fit it anew: clash calibrate",
        )
    if value.get("panel_hash") != found.panel_hash:
        raise InputError(
            "the panel is not the one it was fitted on: its hash differs",
            path=path,
            field="panel_hash",
            hint="fit it anew: clash calibrate",
        )
    return found


def confidence(p: Floats) -> Floats:
    """(n,), probability of the verdict."""
    return np.asarray(np.maximum(p[:, 0], 1 - p[:, 0]) if p.shape[1] == 1 else p.max(axis=1))


@dataclass(frozen=True)
class Applied:
    """A calibrator on new rows.

    Attributes:
        p: (N, C), calibrated; vote shares where the map fell back to majority.
        answered: (N,), whether the risk allows an answer; all where none was given.
        shift: how the rows differ from the training rows.
        fallback: the map was not used, because the rows differ too much.
        warnings: what a reader must know.
    """

    p: Floats
    answered: NDArray[np.bool_]
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
    found: Calibrator,
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
    missing = [judge for judge in found.asked if judge not in judges]
    hint = "fit one on this panel: clash calibrate"
    if missing:
        raise InputError(
            f"the calibrator asks {missing[0]!r}, which is not on this panel",
            path=where or None,
            field="calibrator",
            hint=hint,
        )
    for judge in found.asked if models and found.models else ():
        if (models or {}).get(judge) != (found.models or {}).get(judge):
            raise InputError(
                f"judge {judge!r} is another model than the calibrator was fitted on",
                path=where or None,
                field="calibrator",
                hint=hint,
            )
    if templates and found.templates and templates != found.templates:
        raise InputError(
            "the judges' prompts are not those the calibrator was fitted on",
            path=where or None,
            field="calibrator",
            hint=hint,
        )
    if templates and not found.templates:
        return ("the calibrator does not say which prompts its judges were given",)
    return ()


def apply(found: Calibrator, votes: Floats, max_risk: float | None = None) -> Applied:
    """Calibrated predictions of new rows.

    Args:
        found: the calibrator.
        votes: (N, k), of the asked judges in order; NaN where there is none.
        max_risk: the share of wrong verdicts among the answered ones to keep, see
            :class:`clash.stats.selection.conformal.Control`; None answers everything.
    """
    new = np.asarray(votes, dtype=float)
    if (found.low, found.high) != (0.0, 1.0):
        new = np.clip((new - found.low) / (found.high - found.low), 0.0, 1.0)
    old = np.array([[np.nan if v is None else v for v in p.votes] for p in found.patterns])
    both = np.vstack([old, new])
    panel = PanelVotes.of(both, np.full(len(both), np.nan), np.arange(len(both)), found.target)
    cells = panel.cells(range(both.shape[1]))
    place = cells.of_pattern[panel.pattern]
    trained, here = place[: len(old)], place[len(old) :]
    seen = _evidence(found, trained, len(cells.values))
    p = _predicted(found, panel, cells, seen)
    counts = np.bincount(here, minlength=len(cells.values)).astype(float)
    moved = shift.compare_votes(cells, seen.n, counts, p)
    warnings = tuple(f"shifted domain: {reason}" for reason in moved.reasons)
    fallback = moved.is_shift and {part.family for part in _maps(found)} != {ANCHOR}
    if fallback:
        p = vote_shares(cells)
        warnings += ("the map was not used: verdicts are those of uniform majority",)
    sure = confidence(p)[here]
    answered = np.ones(len(new), bool)
    if max_risk is not None:
        control = ConformalControl(np.array(found.control.wrong), found.control.n, max_risk)
        answered = np.zeros(len(new), bool) if moved.is_shift else control.answers(sure)
        if moved.is_shift:
            warnings += ("no risk can be promised on a shifted domain: everything abstains",)
        elif control.n < control.fewest:
            warnings += (f"{control.n} held sources cannot promise a risk of {max_risk:g}",)
    return Applied(p[here], answered, moved, fallback, warnings)


def _maps(found: Calibrator) -> list[Map]:
    whole = Map(family=found.family, judges=list(range(len(found.asked))), weight=1.0)
    return found.maps or [whole]


def _predicted(found: Calibrator, panel: PanelVotes, cells: Cells, seen: Evidence) -> Floats:
    """(P, C), the weighted mean of the maps by cell of all that are asked.

    A model of votes alone is fitted once for the judges that several maps share.
    """
    # Cells of all judges and patterns of the panel are the same rows, perhaps in another order.
    first = np.unique(cells.of_pattern, return_index=True)[1]
    whole = Evidence(*(part[cells.of_pattern] for part in (seen.n, seen.s, seen.votes)))
    kept: dict[tuple[int, ...], tuple[Cells, Evidence, dict[str, Floats | StatisticsError]]] = {}
    total = np.zeros((len(cells.values), cells.n_classes))
    for part in _maps(found):
        key = tuple(part.judges)
        if key not in kept:
            own = panel.cells(key)
            kept[key] = (own, whole.on(own), {})
        own, here, scores = kept[key]
        p = fit_family(FAMILIES[part.family], own, here, scores)
        total += part.weight * p[own.of_pattern][first]
    return np.asarray(total / sum(part.weight for part in _maps(found)))


def _evidence(found: Calibrator, place: NDArray[np.intp], size: int) -> Evidence:
    n, seen = np.zeros(size), np.zeros(size)
    s = np.zeros((size, len(found.patterns[0].s)))
    for cell, pattern in zip(place, found.patterns, strict=True):
        n[cell] += pattern.n
        seen[cell] += pattern.seen
        s[cell] += pattern.s
    return Evidence(n, s, seen)
