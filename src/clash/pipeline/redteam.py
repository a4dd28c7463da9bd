"""Control items that attack a panel, and how it resists them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from clash.collect.load import Prompts
from clash.config import Config
from clash.datasets.controls import SOUND, WORSE, control_items, draw, read_controls
from clash.errors import RunFolderError
from clash.store.manifest import sha256_json

if TYPE_CHECKING:
    from clash.analysis.redteam import Redteam, Resistance
    from clash.store.folder import RunFolder


def control_prompts(attacks: Path | None, n: int, repeats: int, seed: int | None) -> Prompts:
    """Control items, as a prompts file would hold them.

    Args:
        attacks: injections and controls of one's own; null is the shipped ones.
        n: attacked items.
        repeats: judgments of each clean control.
        seed: of the draw; null is that of a configuration.
    """
    controls = read_controls(attacks)
    attacked_items = draw(controls, n, Config().seed if seed is None else seed)
    items, responses = control_items(attacked_items, repeats=repeats)
    warnings: tuple[str, ...] = ()
    if len(attacked_items) < n:
        warnings = (f"{len(attacked_items)} attacked items: the files contain no more",)
    digest = sha256_json(controls.model_dump())
    return Prompts(attacks or Path("redteam"), items, responses, digest, warnings)


def resistance_of(folder: RunFolder) -> Redteam:
    """How the panel of a run resists the attacks on its control items.

    Raises:
        RunFolderError: the run holds no control items.
    """
    from clash.analysis.redteam import redteam
    from clash.analysis.rundata import RunData

    run = RunData.load(folder)
    result = redteam(run.controls or run, SOUND, WORSE)
    if result is None:
        raise RunFolderError(
            f"{folder.path}: holds no control items"
            "\n  fix: `clash redteam PANEL` makes such a run; `blinding: {controls: 20}` adds them"
            " to any run"
        )
    return result


def worst_rate(panel: Resistance) -> float:
    """The upper bound of the rate, items without a verdict taken as turned: no proof of the rest."""
    unknown = panel.n_failed / panel.n_attacked if panel.n_attacked else 0.0
    return min(1.0, panel.rate.high + unknown)
