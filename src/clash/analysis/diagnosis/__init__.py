"""Is this judge worth its ballots: facts, biases, thresholds, and what to do about it."""

from clash.analysis.diagnosis.judge_quality import Agreement, JudgeFacts, judge_facts
from clash.analysis.diagnosis.panel_diagnosis import Diagnosis, diagnose
from clash.analysis.diagnosis.panel_quality import PanelFacts, Thresholds, panel_facts, thresholds
from clash.analysis.diagnosis.recommendations import ActionReason, Recommendation, Saving, recommend

__all__ = [
    "ActionReason",
    "Agreement",
    "Diagnosis",
    "JudgeFacts",
    "PanelFacts",
    "Recommendation",
    "Saving",
    "Thresholds",
    "diagnose",
    "judge_facts",
    "panel_facts",
    "recommend",
    "thresholds",
]
