"""Everything a report says is plain data, the same at every reading, even where there is nothing."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from analysis.simulated_runs import grouped, run_data
from clash.analysis.findings import compute_findings
from clash.analysis.labelled import concordance_with_labels
from clash.analysis.serialize import to_dict
from clash.records import Item
from clash.report import markdown
from clash.report.sections import report_tables

ADA, BOB, TIE = [["ada"], ["bob"]], [["bob"], ["ada"]], [["ada", "bob"]]
NAMES = ["ada", "bob"]
RUNS = {
    "decided": [{"x": ADA, "y": ADA}] * 12,
    "split": [{"x": ADA, "y": BOB}] * 3,
    "all tied": [{"x": TIE, "y": TIE}] * 3,
    "all failed": [{"x": None, "y": None}] * 3,
    "one item": [{"x": ADA, "y": BOB}],
    "half failed": [{"x": ADA, "y": None}, {"x": None, "y": BOB}, {"x": ADA, "y": ADA}],
    "four of them": [{"x": grouped([0, 1, 2, 2], ["ada", "bob", "cyd", "dan"])}] * 3,
}


@pytest.fixture(params=RUNS.values(), ids=RUNS)
def data(request):
    table = request.param
    names = sorted({n for row in table for groups in row.values() for g in groups or [] for n in g})
    return run_data(table, names or NAMES)


def test_a_report_is_strict_json_with_no_number_that_is_none(data):
    fields = to_dict(compute_findings(data))
    text = json.dumps(fields, allow_nan=False)
    assert json.loads(text) == fields
    assert fields["decision"]["status"] in ("decided", "leading", "tied", "none")
    assert fields["decision"]["sentence"]


def test_the_same_run_gives_the_same_report(data):
    assert to_dict(compute_findings(data)) == to_dict(compute_findings(data))


def test_every_run_has_tables_and_a_page_with_its_decision(data):
    findings = compute_findings(data)
    page = markdown.render_report(findings, list(data.verdicts))
    assert findings.decision.sentence in page.replace("\\", "")
    for table in report_tables(findings):
        assert all(len(row) == len(table.columns) for row in table.rows), table.title
        assert not re.search(r"\bnan\b|\binf\b|None", str(table.rows))


def test_what_adds_up_in_the_records_adds_up_in_the_report(data):
    findings = compute_findings(data)
    coverage = findings.coverage
    assert coverage.n_decided + coverage.n_tied + sum(coverage.abstained.values()) == coverage.items
    assert sum(row.wins for row in findings.leaderboard) == coverage.n_decided
    assert findings.unanimity.unanimous == sum(verdict.unanimous for verdict in data.verdicts)
    assert findings.unanimity.rate.n == coverage.items


def test_another_order_of_the_records_gives_the_same_report(data):
    shuffled_data = replace(data, judgments=data.judgments[::-1], responses=data.responses[::-1])
    assert to_dict(compute_findings(shuffled_data)) == to_dict(compute_findings(data))


# -- labels -----------------------------------------------------------------------------------------


def with_labels(table, labels):
    data = run_data(table, NAMES)
    items = tuple(Item(item_id=f"q{i}", prompt="?", label=label) for i, label in enumerate(labels))
    return replace(data, items=items)


def test_concordance_counts_every_labelled_item_and_a_missing_verdict_is_a_miss():
    table = [{"x": ADA}, {"x": ADA}, {"x": TIE}, {"x": TIE}, {"x": None}, {"x": BOB}]
    agreement = concordance_with_labels(
        with_labels(table, ["ada", "bob", "tie", "ada", "ada", None])
    )
    assert (agreement.n, agreement.no_verdict) == (5, 1)
    assert (agreement.concordance.estimate, agreement.concordance.n) == (pytest.approx(2 / 5), 5)
    assert agreement.unanimous.n == 4


def test_without_labels_there_is_no_concordance():
    assert concordance_with_labels(with_labels([{"x": ADA}], [None])) is None
