"""Convert the results of other tools, including the system published with the first paper."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from clash.datasets import convert as foreign
from clash.reproduction import agent_clash

if TYPE_CHECKING:
    from pathlib import Path

    from clash.datasets.convert import Conversion

AGENT_CLASH: Literal["agent-clash"] = "agent-clash"
Format = Literal["agent-clash"] | foreign.Format
FORMATS: tuple[Format, ...] = (AGENT_CLASH, *foreign.FORMATS)


def convert(path: Path, form: Format | None = None) -> Conversion:
    """Read the result files of another tool, or a file of labelled pairs.

    Args:
        path: a file, or the folder that the tool wrote to.
        form: which tool, one of ``FORMATS``; recognised from the files where not given.

    Raises:
        InputError: nothing there is recognised, or a record cannot be used.
    """
    if form == AGENT_CLASH or (form is None and agent_clash.is_here(path)):
        return foreign.conversion_of(AGENT_CLASH, agent_clash.read(path), path)
    return foreign.convert(path, form, forms=FORMATS)
