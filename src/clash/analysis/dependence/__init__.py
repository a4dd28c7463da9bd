"""Dependence between judges: from votes to what the panel is worth."""

from clash.analysis.dependence.panel_dependence import Options, diagnose
from clash.analysis.dependence.results import Dependence
from clash.analysis.dependence.truth import METHODS

__all__ = ["METHODS", "Dependence", "Options", "diagnose"]
