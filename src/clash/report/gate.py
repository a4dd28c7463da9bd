"""The outcome of a gate: a table, JUnit XML, and annotations of GitHub."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from clash.escape import for_workflow, for_xml
from clash.report import markdown
from clash.report.formats import DASH, number
from clash.report.tables import Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from clash.analysis.figures import Figure
    from clash.analysis.gate import GateCheck
    from clash.votes import LabelUse

_SIGN = {"min": "≥", "max": "≤", "max-drop": "falls ≤", "max-rise": "rises ≤"}
_DIGITS = ".4g"


def headline(run: str, checks: Sequence[GateCheck]) -> str:
    """Whether a run passes, and how many rules it breaks."""
    n_failed = sum(not check.passed for check in checks)
    outcome = "passed" if not n_failed else f"failed: {n_failed} of {len(checks)} rules"
    return f"Gate on {run}: {outcome}"


def table(run: str, checks: Sequence[GateCheck], labels: LabelUse | None = None) -> Table:
    """A row for each rule, and what became of the labels."""
    return Table(
        headline(run, checks),
        ["", "figure", "rule", "value", "95% interval", "tested", ""],
        [
            [
                "pass" if check.passed else "FAIL",
                check.rule.figure,
                f"{_SIGN[check.rule.way]} {check.rule.limit:g}",
                number(check.value, _DIGITS),
                _interval(check.low, check.high),
                number(check.tested_value, _DIGITS),
                check.how,
            ]
            for check in checks
        ],
        frozenset({3, 4, 5}),
        [
            "an estimate passes when the bound of its interval does, unless --on point is given",
            *(check.message for check in checks if check.value is None),
            *([labels.sentence] if labels is not None and labels.labelled else []),
        ],
    )


def listing(figures: Mapping[str, Figure]) -> Table:
    """Every figure that a rule may name."""
    return Table.of(
        f"Figures ({len(figures)})",
        [
            {
                "figure": name,
                "value": number(figure.value, _DIGITS),
                "95% interval": _interval(figure.low, figure.high),
            }
            for name, figure in figures.items()
        ],
    )


def _interval(low: float | None, high: float | None) -> str:
    return DASH if low is None else f"[{number(low, _DIGITS)}, {number(high, _DIGITS)}]"


def junit(
    run: str, checks: Sequence[GateCheck], *, time: str, properties: Mapping[str, str]
) -> str:
    """JUnit XML: one suite, one case a rule.

    Args:
        run: name of the run, which names the suite.
        checks: the rules and whether the run passes them.
        time: when the run ended, ISO 8601.
        properties: what else identifies the tested run.
    """
    n_failed = str(sum(not check.passed for check in checks))
    totals = {"tests": str(len(checks)), "failures": n_failed, "errors": "0", "time": "0"}
    suites = ET.Element("testsuites", {"name": "clash gate", **totals})
    head = {"name": for_xml(run), "hostname": "localhost", "timestamp": time[:19], "skipped": "0"}
    suite = ET.SubElement(suites, "testsuite", {**head, **totals})
    container = ET.SubElement(suite, "properties")
    for name, value in properties.items():
        ET.SubElement(container, "property", {"name": for_xml(name), "value": for_xml(value)})
    for check in checks:
        _junit_case(suite, run, check)
    ET.indent(suites)
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(suites, encoding="unicode") + "\n"
    )


def _junit_case(suite: ET.Element, run: str, check: GateCheck) -> None:
    name = f"{check.rule.figure} {check.rule.way} {check.rule.limit:g}"
    head = {"name": for_xml(name), "classname": for_xml(f"clash.gate.{run}"), "time": "0"}
    case = ET.SubElement(suite, "testcase", head)
    if not check.passed:
        kind = "missing" if check.value is None else "threshold"
        failure = ET.SubElement(case, "failure", {"message": for_xml(check.message), "type": kind})
        failure.text = for_xml(check.message)
    output = ET.SubElement(case, "system-out")
    output.text = for_xml(check.message)


def github_annotations(run: str, checks: Sequence[GateCheck]) -> Iterator[str]:
    """A workflow command for each rule that fails, and one notice where none does."""
    failures = [check for check in checks if not check.passed]
    for check in failures:
        title = _github_property(f"clash gate: {check.rule.figure}")
        yield f"::error title={title}::{for_workflow(f'{run}: {check.message}')}"
    if not failures:
        yield f"::notice title=clash gate::{for_workflow(f'{run}: {len(checks)} rules hold')}"


def github_summary(run: str, checks: Sequence[GateCheck]) -> str:
    """Markdown for the summary of the workflow's step."""
    return markdown.render_table(table(run, checks)) + "\n"


def _github_property(value: str) -> str:
    return for_workflow(value).replace(":", "%3A").replace(",", "%2C")
