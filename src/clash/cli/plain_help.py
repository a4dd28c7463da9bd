"""Help that fits: columns of options need more width than many terminals have."""

from __future__ import annotations

import shutil
from typing import Any

from typer.core import TyperCommand

_PANEL_WIDTH = 100
"""Cells from which on the columns of no command cut the name of an option or of a variable."""


class Command(TyperCommand):
    """A command whose help is plain text where its columns would not fit."""

    # Typer keeps the types of these parameters to itself.
    def format_help(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401
        """Write the help, on a narrow terminal without columns."""
        if shutil.get_terminal_size().columns < _PANEL_WIDTH:
            self.rich_markup_mode = None
        super().format_help(ctx, formatter)
