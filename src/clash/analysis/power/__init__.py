"""How many items a question needs: from assumptions, from a pilot, and as published."""

from clash.analysis.power.pilot import Addition, JudgeRate, Pilot, pilot
from clash.analysis.power.scenarios import PanelDesign, PowerCell, PowerQuestion, Scenario, scenario

__all__ = [
    "Addition",
    "JudgeRate",
    "PanelDesign",
    "Pilot",
    "PowerCell",
    "PowerQuestion",
    "Scenario",
    "pilot",
    "scenario",
]
