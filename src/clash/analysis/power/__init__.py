"""How many items a question needs: from assumptions, from a pilot, and as published."""

from clash.analysis.power.pilot import Addition, JudgeRate, Pilot, pilot
from clash.analysis.power.scenarios import Ask, Cell, Panel, Scenario, scenario

__all__ = [
    "Addition",
    "Ask",
    "Cell",
    "JudgeRate",
    "Panel",
    "Pilot",
    "Scenario",
    "pilot",
    "scenario",
]
