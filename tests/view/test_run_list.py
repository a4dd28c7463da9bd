"""The list of runs: newest first, whatever lies in the folder, for nobody but who has the token."""

import html
import json
import os
import shutil

import pytest

from clash.errors import InputError
from clash.store.folder import RunFolder
from clash.view.server import PORTION, ViewServer
from review.runs import judged, plain_prompts
from view.asking import ask, get, rows


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return judged(tmp_path_factory.mktemp("runs"), plain_prompts(12)).path


@pytest.fixture
def folder(run, tmp_path):
    """Three runs of three days, copied."""
    for name, day in (("old", "2025-03-01"), ("new", "2025-03-03"), ("mid", "2025-03-02")):
        copy(run, tmp_path / name, started=f"{day}T12:00:00.000Z")
    return tmp_path


def copy(run, to, **manifest):
    shutil.copytree(run, to)
    change(to / "manifest.json", **manifest)


def change(file, **values):
    file.write_text(json.dumps(json.loads(file.read_text()) | values))


@pytest.fixture
def server(folder):
    with ViewServer(folder) as view_server:
        yield view_server


def test_runs_are_listed_newest_first_with_the_figures_of_their_reports(server, run):
    report = json.loads((run / "report.json").read_text())
    row_list = rows(server)
    assert [row["id"] for row in row_list] == ["new", "mid", "old"]
    assert row_list[0]["items"] == "12 prompts"
    assert row_list[0]["day"] == "3 March 2025"
    assert row_list[0]["headline"].replace("\u00a0", " ") == report["headline"]["text"]
    assert " p = " not in row_list[0]["headline"]  # no line break divides a figure
    rate = report["leaderboard"][0]["win_rate_ties_half"]
    figure = row_list[0]["figure"]
    assert [figure["low"], figure["high"]] == pytest.approx([100 * rate["low"], 100 * rate["high"]])
    assert row_list[0]["measure"].startswith(report["leaderboard"][0]["candidate"])


def _link(path):
    (path / "manifest.json").symlink_to("/etc/passwd")


def _pipe(path):
    os.mkfifo(path / "manifest.json")


def _text(path):
    (path / "manifest.json").write_text('{"run": 1}')


def _deep(path):
    (path / "manifest.json").write_text("[" * 100_000)


def _time(path):
    (path / "manifest.json").write_text(
        '{"run": "x", "kind": "eval", "started": "99999-99", "counts": {}}'
    )


def _report(path):
    (path / "manifest.json").write_text('{"run": "x", "kind": "eval", "seal": "x"}')
    (path / "report.json").write_text('{"leaderboard": [{"candidate": 7}]}')


def _numbers(path):
    (path / "manifest.json").write_text('{"run": "x", "kind": "eval", "seal": "x"}')
    interval = '{"estimate": 1e308, "low": -5, "high": null}'
    decision = '{"status": "decided", "winner": "\\u202e<b>@me"}'
    (path / "report.json").write_text(
        f'{{"decision": {decision}, "leaderboard": [{{"candidate": "\\u202e<b>@me", "points": {interval}}}]}}'
    )


@pytest.mark.parametrize("harm", [_link, _pipe, _text, _deep, _time, _report, _numbers])
def test_a_hostile_folder_is_one_row_and_hides_no_other(server, folder, harm):
    (folder / "evil").mkdir()
    harm(folder / "evil")
    actual_rows = {row["id"]: row for row in rows(server)}
    assert set(actual_rows) == {"old", "mid", "new", "evil"}
    assert actual_rows["evil"]["headline"]
    assert actual_rows["evil"]["figure"] is None
    assert "root:" not in json.dumps(actual_rows)


def test_a_run_that_was_broken_off_is_stopped_unless_a_process_writes_to_it(server, folder):
    change(folder / "new" / "manifest.json", status="running", seal=None, files={})
    (folder / "new" / "report.json").unlink()
    row = rows(server)[0]
    assert row["state"] == "stopped"
    assert "clash resume" in row["headline"]
    with RunFolder(folder / "new").write():
        row = rows(server)[0]
        assert (row["state"], row["headline"]) == ("running", "No result yet.")


def test_many_runs_come_in_portions_and_each_file_is_read_once(server, folder, run, monkeypatch):
    for number in range(PORTION):
        copy(run, folder / f"r{number:03}", started=f"2024-01-01T00:00:{number % 60:02}.000Z")
    assert len(ask(server, "runs", **{"from": 0})[1]["rows"]) == PORTION
    row_list = rows(server)
    assert len({row["id"] for row in row_list}) == len(row_list) == PORTION + 3
    monkeypatch.setattr("clash.files.run_files.read", lambda *_, **__: pytest.fail("read again"))
    assert rows(server) == row_list
    version = ask(server, "runs", **{"from": 0})[1]["version"]
    assert ask(server, "runs", **{"from": 0, "version": version})[1]["rows"] == []


def test_a_run_opens_as_a_report_computed_anew(server, folder):
    (folder / "new" / "report.html").write_text("<script>alert(1)</script>")
    row = rows(server)[0]
    status, text, headers = get(server, f"/run/{row['key']}/")
    assert status == 200
    assert "alert(1)" not in text
    assert "Name 2 colours" in text or "north" in text
    assert headers["X-Frame-Options"] == "DENY"
    assert '<a href="/">All runs</a>' in text


def test_the_end_of_one_watched_run_is_not_that_of_the_next(server, folder, monkeypatch):
    monkeypatch.setattr("clash.view.server._LINGER_S", 0.2)
    first, second = (server.run_url(folder / name).split("/")[-2] for name in ("old", "new"))
    ask(server, "live", run=second)  # its page is open
    server.on_page_sent(f"/run/{first}/report")
    assert server._watched_run not in server._ended_runs
    server.linger()
    server.on_page_sent(f"/run/{second}/report")
    assert server._watched_run in server._ended_runs


def test_records_that_do_not_fit_together_are_a_page_that_says_so(server, folder):
    (folder / "new" / "items.jsonl").write_text("")
    status, text, _ = get(server, f"/run/{rows(server)[0]['key']}/")
    assert status == 200
    assert "cannot be shown" in text
    assert "items.jsonl" in text


def test_nobody_without_the_token_sees_a_run(server):
    key = rows(server)[0]["key"]
    assert ask(server, "runs", token="wrong", **{"from": 0})[0] == 403
    assert get(server, "/run/new/")[0] == 404
    assert get(server, f"/run/{'0' * 40}/")[0] == 404
    assert get(server, f"/run/{key}/", Host="evil.test")[0] == 403
    assert get(server, f"/run/{key}/", Sec_Fetch_Site="cross-site")[0] == 403
    assert "new" not in get(server, "/")[1].split("<body>")[1].split("<script>")[0]


@pytest.mark.parametrize("request_", [{}, {"from": -1}, {"from": "0"}, {"from": True}])
def test_what_is_no_request_is_refused(server, request_):
    assert ask(server, "runs", **request_)[0] == 400


def test_a_taken_port_is_said_in_two_lines(server, folder):
    with pytest.raises(InputError, match="fix"):
        ViewServer(folder, server.port)


def test_two_runs_are_compared_the_older_as_a(server, run):
    keys = {row["id"]: row["key"] for row in rows(server)}
    status, answer = ask(server, "compare", runs=[keys["old"], keys["new"]])
    assert status == 200
    # The three are copies of one run, which have one id: their folders tell them apart.
    assert answer["headline"].startswith("old and new agree on each of the 12 items")
    assert {row["name"] for row in answer["rows"]} == {"north", "south"}
    assert {row["figure"] for row in answer["rows"]} == {"0"}
    status, text, headers = get(server, f"/compare/{keys['old']}/{keys['new']}/")
    assert status == 200
    assert answer["headline"] in html.unescape(text)
    assert "script-src 'sha256-" in headers["Content-Security-Policy"]


@pytest.mark.parametrize("runs", [None, [], ["x", "y"], [1, 2]])
def test_only_two_runs_of_the_folder_are_compared(server, runs):
    assert ask(server, "compare", runs=runs)[0] == 400
