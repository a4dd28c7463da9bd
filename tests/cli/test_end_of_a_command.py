"""What a command does once its output is written."""

from __future__ import annotations

import gc
import sys

import pytest

from clash.cli import main


def test_no_cycles_are_looked_for_at_the_end_of_a_command(monkeypatch):
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, getattr(sys, name))
    monkeypatch.setattr(sys, "argv", ["clash", "--version"])
    threshold = gc.get_threshold()
    gc.unfreeze()
    try:
        with pytest.raises(SystemExit):
            main()
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()
        gc.set_threshold(*threshold)
