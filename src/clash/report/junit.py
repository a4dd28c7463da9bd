"""A gate's outcome as JUnit XML: one suite, one case a rule."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from clash.escape import for_xml

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clash.analysis.gate import Checked


def document(
    run: str, found: Sequence[Checked], *, time: str, properties: Mapping[str, str]
) -> str:
    """The whole document.

    Args:
        run: name of the run, which names the suite.
        found: the rules.
        time: when the run ended, ISO 8601.
        properties: whatever else says what was tested.
    """
    failed = str(sum(not line.passed for line in found))
    counts = {"tests": str(len(found)), "failures": failed, "errors": "0", "time": "0"}
    suites = ET.Element("testsuites", {"name": "clash gate", **counts})
    about = {"name": for_xml(run), "hostname": "localhost", "timestamp": time[:19], "skipped": "0"}
    suite = ET.SubElement(suites, "testsuite", {**about, **counts})
    listed = ET.SubElement(suite, "properties")
    for name, value in properties.items():
        ET.SubElement(listed, "property", {"name": for_xml(name), "value": for_xml(value)})
    for line in found:
        _case(suite, run, line)
    ET.indent(suites)
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(suites, encoding="unicode") + "\n"
    )


def _case(suite: ET.Element, run: str, line: Checked) -> None:
    name = f"{line.rule.figure} {line.rule.way} {line.rule.limit:g}"
    about = {"name": for_xml(name), "classname": for_xml(f"clash.gate.{run}"), "time": "0"}
    case = ET.SubElement(suite, "testcase", about)
    if not line.passed:
        kind = "missing" if line.value is None else "threshold"
        failure = ET.SubElement(case, "failure", {"message": for_xml(line.message), "type": kind})
        failure.text = for_xml(line.message)
    out = ET.SubElement(case, "system-out")
    out.text = for_xml(line.message)
