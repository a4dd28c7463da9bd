"""Dependence between judges: correlated errors, and the effective number of judges."""

from clash.analysis.dependence.panel_dependence import DependenceOptions, diagnose
from clash.analysis.dependence.results import Dependence
from clash.analysis.dependence.truth import METHODS

__all__ = ["METHODS", "Dependence", "DependenceOptions", "diagnose"]
