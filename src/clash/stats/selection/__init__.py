"""Finite-calibration panel selection: which judges, and which map from their votes to labels.

Source: Zhu and Rao, A Finite-Calibration Regime Map for LLM Judge Panels (2026); equations,
tables and appendices named in this package are of that paper.
"""
