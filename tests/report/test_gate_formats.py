"""What CI servers read of a gate: JUnit by its schema, GitHub's commands by its escaping."""

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import xmlschema

from clash.analysis.figures import Figure
from clash.analysis.gate import ThresholdRule, check
from clash.report import gate

SCHEMA = xmlschema.XMLSchema(Path(__file__).with_name("junit.xsd"))
FOUND = {"concordance": Figure(0.9, 0.8, 0.95), 'win_rate.a<b&"c"': Figure(0.4)}
RULES = [
    ThresholdRule("concordance", "min", 0.75),
    ThresholdRule('win_rate.a<b&"c"', "min", 0.5),
    ThresholdRule("no such\x00thing", "max", 1),
]
LINES = check(RULES, FOUND)


def suite_of(run="a run"):
    return gate.junit(run, LINES, time="2026-11-21T01:02:03.456Z", properties={"panel": "x & y"})


def test_junit_is_valid_by_its_schema():
    SCHEMA.validate(suite_of())
    SCHEMA.validate(gate.junit("empty", [], time="2026-11-21T01:02:03Z", properties={}))


def test_the_schema_can_fail():
    """A report with a made-up element is refused, so that the test above means something."""
    with pytest.raises(xmlschema.XMLSchemaValidationError):
        SCHEMA.validate(suite_of().replace("<failure", "<fiasco").replace("</failure", "</fiasco"))


def test_junit_counts_and_names_what_failed():
    suite = ET.fromstring(suite_of()).find("testsuite")
    assert (suite.get("tests"), suite.get("failures")) == ("3", "2")
    records = [
        case.get("name") for case in suite.iter("testcase") if case.find("failure") is not None
    ]
    assert records == ['win_rate.a<b&"c" min 0.5', "no such[U+0000]thing max 1"]
    types = [failure.get("type") for failure in suite.iter("failure")]
    assert types == ["threshold", "missing"]


def test_annotations_keep_one_command_a_line_whatever_a_name_holds():
    lines = list(gate.github_annotations("run\n::warning::x", LINES))
    assert len(lines) == 2
    assert all(
        line.startswith("::error title=clash gate%3A") and "\n" not in line for line in lines
    )
    assert "%0A" in lines[0]


def test_a_gate_that_holds_says_so_once():
    assert list(gate.github_annotations("r", LINES[:1])) == [
        "::notice title=clash gate::r: 1 rules hold"
    ]


def test_the_step_summary_is_a_markdown_table():
    text = gate.github_summary("r", LINES)
    assert "| FAIL |" in text
    assert "| pass | concordance |" in text
