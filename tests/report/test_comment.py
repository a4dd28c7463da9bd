"""The comment of a gate: what a reviewer needs, and nothing that does anything."""

import re
from dataclasses import replace

import pytest
from markdown_it import MarkdownIt
from rich.cells import cell_len

from clash.analysis.explanation.disagreements import (
    Opinion,
    Reason,
    TellingDisagreement,
    telling_disagreements,
)
from clash.analysis.findings import compute_findings
from clash.analysis.gate import GateCheck, ThresholdRule
from clash.analysis.rundata import RunData
from clash.cli.app import run as clash
from clash.report.answer_chart import AnswerChart
from clash.report.comment import (
    MARKER,
    MOST_CHARACTERS,
    GateComment,
    _chart,
    actions_link,
    render_comment,
)
from clash.report.html.words import share_row
from clash.stats.intervals import wilson
from review.runs import judged, plain_prompts

EVIL = (
    "@octocat fixes #1 GH-2 org/repo#3 http://evil.test www.evil.test ![i](http://evil.test/i.png)"
    " [x](javascript:alert(1)) <img src=x> <script>alert(1)</script> ```\n# h\n- [ ] task | a | b |"
    " \u202e&copy; $\\sum$ `code` :tada: --> <!-- <details>"
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return judged(tmp_path_factory.mktemp("comment"), plain_prompts(12))


@pytest.fixture(scope="module")
def comment(run):
    data = RunData.load(run)
    check = GateCheck(
        ThresholdRule("cost", "max", 1.0), 0.0, None, None, 0.0, "point", True, "cost is 0"
    )
    return GateComment(
        "run", compute_findings(data), [check], telling_disagreements(data, 3), "https://a.test/1"
    )


def tokens(text):
    """Every token of the text, those inside paragraphs too."""
    for token in MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text):
        yield token
        yield from token.children or ()


def test_it_states_the_headline_the_chart_the_rules_and_why_people_disagree(comment):
    text = render_comment(comment)
    assert text.startswith(MARKER)
    assert "### clash gate passed" in text
    for row in comment.findings.leaderboard:
        assert f"{row.win_rate_ties_half.estimate:.0%}" in text
    assert "●" in text
    line, scale = text.split("```")[1].splitlines()[-2:]
    assert scale.index("50%") <= line.index("┊") <= scale.index("level")
    assert "| pass | cost |" in text
    first = comment.disagreements[0]
    assert f"1. **{first.item_id}**" in text
    assert "[workflow run](https://a.test/1)" in text


def hostile(comment, n=3):
    opinion = Opinion(EVIL * 20, EVIL + "0", Reason(EVIL, EVIL, 1, EVIL * 1000))
    disagreement = TellingDisagreement(
        "people", EVIL, EVIL * 1000, EVIL + "1", EVIL + "2", EVIL, False, 0.5, (opinion,) * 30
    )
    board = [
        replace(row, candidate=f"{EVIL}{i}")
        for i, row in enumerate(comment.findings.leaderboard * 20)
    ]
    check = GateCheck(
        ThresholdRule(EVIL, "min", 1.0), None, None, None, None, EVIL, False, EVIL * 100
    )
    board = [*comment.findings.leaderboard, *board]
    findings = replace(comment.findings, leaderboard=board, status=EVIL)
    return replace(
        comment, run=EVIL, findings=findings, checks=[check] * 500, disagreements=[disagreement] * n
    )


def test_nothing_that_others_wrote_mentions_links_loads_or_is_markup(comment):
    text = render_comment(hostile(comment))
    token_list = list(tokens(text))
    assert [t.content for t in token_list if t.type == "html_block"] == [f"{MARKER}\n"]
    assert not [t for t in token_list if t.type in ("html_inline", "image")]
    assert [t.attrs["href"] for t in token_list if t.type == "link_open"] == ["https://a.test/1"]
    words = " ".join(t.content for t in token_list if t.type == "text")
    assert not re.search(r"@\w|#\d|://|www\.|GH-\d|\u202e", words)
    headings = [t.tag for t in token_list if t.type == "heading_open"]
    assert headings == ["h3", "h4"]


def test_it_fits_what_github_takes_whatever_there_is_to_say(comment):
    text = render_comment(hostile(comment))
    assert len(text) <= MOST_CHARACTERS
    assert "failed, 500 of 500 rules" in text
    assert text.rstrip().endswith("says what the decision rests on")


def test_the_command_writes_it_whether_the_gate_passes_or_fails(run, tmp_path, monkeypatch):
    monkeypatch.setenv("GITHUB_SERVER_URL", "https://github.com")
    monkeypatch.setenv("GITHUB_REPOSITORY", "a/b")
    monkeypatch.setenv("GITHUB_RUN_ID", "7")
    file = tmp_path / "deep" / "comment.md"
    words = ["gate", str(run.path), "--comment", str(file)]
    assert clash([*words, "--max", "cost=1"]) == 0
    assert "### clash gate passed" in file.read_text()
    assert clash([*words, "--min", "unanimity=1.1"]) == 1
    assert "### clash gate failed, 1 of 2 rules" in file.read_text()
    assert "(https://github.com/a/b/actions/runs/7)" in file.read_text()


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"GITHUB_SERVER_URL": "javascript:x", "GITHUB_REPOSITORY": "a/b", "GITHUB_RUN_ID": "1"},
        {"GITHUB_SERVER_URL": "https://x", "GITHUB_REPOSITORY": "a) [b](c", "GITHUB_RUN_ID": "1"},
    ],
)
def test_there_is_no_link_where_there_is_no_workflow(environ):
    assert actions_link(environ) is None


def test_a_name_of_wide_characters_leaves_the_chart_straight():
    rows = tuple(share_row(name, wilson(3, 6, 0.95)) for name in ("中文模型", "plain"))
    text = _chart(AnswerChart("Win rate", rows, (0.5, "50% = level")))
    columns = {cell_len(line[: line.index("●")]) for line in text.splitlines() if "●" in line}
    assert len(columns) == 1
