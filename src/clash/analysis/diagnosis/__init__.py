"""Judge effectiveness: discrimination, agreement, biases, thresholds and recommendations."""

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
