"""A run while it goes on: read as it grows, shown by intervals that allow for looking."""

import json
import re
import shutil
import signal
import time
from dataclasses import replace
from itertools import pairwise

import pytest

from clash.analysis.live import PANEL, live_findings
from clash.analysis.rundata import RunData
from clash.report.live import live_words
from clash.store.folder import RunFolder
from clash.store.follow import FollowedFolder
from clash.view.live_run import LiveRun
from clash.view.server import ViewServer
from e2e.lab import PRICE, Lab
from review.browser import chrome
from review.runs import judged, plain_prompts
from view.asking import ask, get
from wire import WireServer

JOURNALS = ("items", "responses", "blinding", "criteria", "judgments", "calls", "reservations")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return judged(tmp_path_factory.mktemp("live"), plain_prompts(30)).path


@pytest.fixture
def growing(run, tmp_path):
    """The folder of the run as it was before its first call."""
    folder = tmp_path / "run"
    shutil.copytree(run, folder)
    for name in ("judgments", "calls", "reservations"):
        (folder / f"{name}.jsonl").write_bytes(b"")
    for name in ("report.json", "report.html", "report.md", "verdicts.jsonl"):
        (folder / name).unlink()
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(
        json.dumps(manifest | {"seal": None, "files": {}, "status": "running"})
    )
    return folder


def grow(run, folder, name, start, stop):
    """Append the bytes of a journal from one share of them to another."""
    data = (run / f"{name}.jsonl").read_bytes()
    with (folder / f"{name}.jsonl").open("ab") as file:
        file.write(data[int(start * len(data)) : int(stop * len(data))])


def test_a_journal_is_read_on_from_where_it_ended_whatever_line_is_cut(run, growing):
    followed, shares = FollowedFolder(growing), [0, 0.113, 0.114, 0.5, 0.871, 1]
    for start, stop in pairwise(shares):
        for name in ("judgments", "calls"):
            grow(run, growing, name, start, stop)
        followed.refresh()
    full_run_folder = RunFolder(run)
    assert followed.judgments() == full_run_folder.judgments()
    assert list(followed.call_summaries()) == list(full_run_folder.call_summaries())
    assert followed.items() == full_run_folder.items()
    assert followed.refresh() == 0


def test_intervals_shrink_as_judgments_arrive_and_only_whole_items_count(run, growing):
    widths = []
    followed = FollowedFolder(growing)
    for start, stop in ((0, 0.05), (0.05, 0.5), (0.5, 1)):
        grow(run, growing, "judgments", start, stop)
        followed.refresh()
        data = RunData.load(followed)
        findings = live_findings(data)
        item_ids = {j.item_id for j in data.judgments}
        assert findings.n_judged <= len(item_ids)
        rate = findings.standings[0].rate
        widths.append(1.0 if rate is None else rate.high - rate.low)
        if start == 0:
            assert findings.state == "early"
    assert widths[0] == 1.0 > widths[1] > widths[2]
    # The last look is at the whole run, and wider than the report's interval of a single look.
    report = json.loads((run / "report.json").read_text())
    rate = report["leaderboard"][0]["win_rate_ties_half"]
    assert findings.standings[0].candidate == report["leaderboard"][0]["candidate"]
    assert findings.standings[0].rate.estimate == pytest.approx(rate["estimate"])
    assert widths[-1] > rate["high"] - rate["low"]


def test_what_is_known_is_said_to_hold_at_every_look(run):
    folder = FollowedFolder(run)
    folder.refresh()
    findings = live_findings(RunData.load(folder))
    words = live_words(findings)
    assert findings.state == "winner"
    assert findings.duel.low > 0.5
    assert words.headline == "Enough is known: south is ahead of north."
    assert "always valid" in words.evidence
    assert "Ctrl-C" in words.hint


def test_a_validation_shows_how_far_panel_and_judges_agree_with_people(run, tmp_path):
    shutil.copytree(run, tmp_path / "run")
    manifest = json.loads((run / "manifest.json").read_text())
    (tmp_path / "run" / "manifest.json").write_text(json.dumps(manifest | {"kind": "validate"}))
    folder = FollowedFolder(tmp_path / "run")
    folder.refresh()
    data = RunData.load(folder)
    findings = live_findings(data)
    right = [v.winner == data.truth[v.item_id] for v in data.verdicts if v.item_id in data.truth]
    assert findings.state == "agreement"
    assert findings.standings[0].rate.estimate == pytest.approx(sum(right) / len(right))
    assert {row.candidate for row in findings.standings[1:]} == {p.id for p in data.rules.seats}
    share = f"{sum(right) / len(right):.0%}"
    assert live_words(findings).headline.startswith(f"The panel agrees with people on {share} [")


def test_a_judge_that_may_not_judge_an_item_has_not_missed_it(run, tmp_path):
    """With ``exclude_self`` a judge is not asked about its own response."""
    folder = FollowedFolder(run)
    folder.refresh()
    data = RunData.load(folder)
    judge = data.rules.seats[0]
    author = data.candidates[0]
    rules = replace(data.rules, exclusions={judge.id: frozenset({author})})
    judgments = [j for j in data.judgments if j.judge != judge.id]
    validation = data.manifest.model_copy(update={"kind": "validate"})
    data = replace(data, rules=rules, judgments=judgments, manifest=validation)
    standing = {row.candidate: row.rate for row in live_findings(data).standings}
    assert standing[judge.id] is None
    assert standing[PANEL] is not None
    n_judges = len(rules.seats)
    assert data.n_pages == len(data.items) * (n_judges - 1) * rules.presentations


def test_a_run_that_nobody_writes_is_interrupted_not_running(growing, run):
    live = LiveRun(growing)
    assert live.phase() == "stopped"
    with RunFolder(growing).write():
        assert live.phase() == "running"
        assert live.state()["judgments"].startswith("0 of ")
    assert LiveRun(run).phase() == "ended"


def test_records_that_cannot_be_read_are_an_answer_and_no_crash(growing):
    (growing / "judgments.jsonl").write_text('{"item_id": 1}\n')
    with ViewServer(growing.parent) as server:
        key = re.search(r"/run/(\w+)/", server.run_url(growing))[1]
        status, answer = ask(server, "live", run=key)
        assert status == 400
        assert "judgments.jsonl:1" in answer["error"]
        assert ask(server, "live", run="x")[0] == 400


# -- with a provider that takes its time ------------------------------------------------------------


@pytest.fixture(scope="module")
def wire():
    with WireServer() as running:
        yield running


@pytest.fixture
def lab(tmp_path, wire):
    wire.clear()
    wire.latency_s = 0.1
    signal.signal(signal.SIGINT, signal.default_int_handler)
    laboratory = Lab(tmp_path, wire, {**wire.environ(), "BROWSER": "true %s"})
    laboratory.prompts(24)
    judges = ({"model": f"compatible/{name}", "price": PRICE} for name in "abc")
    laboratory.panel(*judges, criteria="compatible/writer")
    return laboratory


WORDS = ("eval", "prompts.yaml", "--panel", "panel.yaml", "--run-id", "run", "--yes",
         "--observers", "none", "--criteria", "none", "--concurrency", 4)  # fmt: skip


JUDGMENTS = "const node = document.getElementById('judgments'); return node && node.textContent"


def until(condition, seconds=240):
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)
    return value


def test_the_page_of_watch_follows_the_run_and_becomes_its_report(lab):
    with chrome() as browser:
        process = lab.start(*WORDS, "--watch")
        address = until(lambda: re.search(r"http://127\S+/run/\S+", process.stderr.readline()))[0]
        browser.get(address)
        counts = set()

        def is_report():
            # One call: a node that was looked up may belong to a page that is gone by the next.
            counts.add(browser.execute_script(JUDGMENTS))
            return browser.current_url.endswith("/report")

        until(is_report)
        out, err = process.communicate(timeout=240)
        assert process.returncode == 0, err
        assert len({text for text in counts if " of 72" in (text or "")}) > 1
        assert "#" not in browser.current_url
        headline = json.loads((lab.path / "runs/run/report.json").read_text())["headline"]["text"]
        assert headline.split(":")[0] in out
        assert browser.find_elements("tag name", "h1")
        errors = [e for e in browser.get_log("browser") if "favicon" not in e["message"]]
        assert errors == []


def test_another_process_sees_a_run_interrupted_resumed_and_ended(lab):
    process = lab.start(*WORDS)
    folder = lab.path / "runs" / "run"
    until(lambda: (folder / "manifest.json").exists())
    with ViewServer(lab.path / "runs") as server:
        key = re.search(r"/run/(\w+)/", server.run_url(folder))[1]

        def state():
            return ask(server, "live", run=key)[1]

        assert 'id="judgments"' in get(server, f"/run/{key}/")[1]
        until(lambda: not state()["judgments"].startswith("0 of"))
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=240)
        rule = until(lambda: (s := state())["phase"] == "ended" and s)
        assert rule["status"] == "partial"
        assert not rule["judgments"].startswith("72")
        lab.server.latency_s = 0.0
        lab.resume()
        rule = until(lambda: (s := state())["status"] == "complete" and s)
        assert rule["judgments"] == "72 of 72"
        assert rule["phase"] == "ended"
        assert 'id="judgments"' not in get(server, f"/run/{key}/")[1]
