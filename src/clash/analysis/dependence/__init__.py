"""Dependence between judges: from votes to what the panel is worth."""

from clash.analysis.dependence.panel_dependence import DependenceOptions, diagnose
from clash.analysis.dependence.results import Dependence
from clash.analysis.dependence.truth import METHODS

__all__ = ["METHODS", "Dependence", "DependenceOptions", "diagnose"]
