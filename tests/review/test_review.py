"""A review session: blinded, at once on disk, together with others, and closed to strangers."""

import base64
import contextlib
import http.client
import json
import os
import re
import shutil
import socket
import struct
import threading
import time
import zlib
from functools import partial

import numpy as np
import pytest

from clash.analysis.findings import compute_findings
from clash.analysis.label_change import label_change, more_labels
from clash.analysis.label_sample import draw_rate
from clash.analysis.labelled import LabelConcordance
from clash.analysis.rundata import RunData
from clash.cli.app import run
from clash.errors import InputError
from clash.pipeline.review import page_secret, read_item_list, why_decision_stands
from clash.records import LabelDraw
from clash.review.page import FORMAT, live, order, proof
from clash.review.review_server import ReviewServer
from clash.review.session import Session
from clash.review.tasks import named_tasks, needs_person, review_tasks
from clash.stats.intervals import wilson
from clash.store.folder import RunFolder
from review.runs import judged, plain_prompts


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    return judged(tmp_path_factory.mktemp("review"), plain_prompts(24))


@pytest.fixture
def folder(original, tmp_path):
    shutil.copytree(original.path, tmp_path / "run")
    return RunFolder(tmp_path / "run")


@contextlib.contextmanager
def session(folder, order="all", **options):
    data = RunData.load(folder)
    new_session = Session(folder, data, review_tasks(data, order), **options)
    try:
        yield new_session
    finally:
        new_session.close()


def decide(batch, person, choice, **more):
    return batch.decide(
        person, {"item": batch.state(person)["item"]["item"], "choice": choice, **more}
    )


def test_those_that_need_a_person_come_first_least_sure_first(folder):
    data = RunData.load(folder)
    verdicts = {v.item_id: v for v in data.verdicts}
    unsure = [verdicts[task.item.item_id] for task in review_tasks(data, "unsure")]
    assert unsure
    assert all(map(needs_person, unsure))
    assert [v.confidence for v in unsure] == sorted(v.confidence for v in unsure)
    assert len(review_tasks(data, "all")) == 24
    assert review_tasks(data, "all")[: len(unsure)] == review_tasks(data, "unsure")


def test_a_list_names_the_items_and_their_order(folder, tmp_path):
    data = RunData.load(folder)
    item_ids = [task.item.item_id for task in review_tasks(data, "all")][3:6]
    path = tmp_path / "next.txt"
    path.write_text(f"{item_ids[2]}\n\n{item_ids[0]}#a|b\n{item_ids[2]}\n")
    tasks = named_tasks(data, read_item_list(path))
    assert [task.item.item_id for task in tasks] == [item_ids[2], item_ids[0]]
    with pytest.raises(InputError, match="'nobody' is no item"):
        named_tasks(data, ["nobody"])
    path.write_text("\n")
    with pytest.raises(InputError, match="names no item"):
        read_item_list(path)
    path.unlink()
    os.mkfifo(path)  # which would be waited for
    with pytest.raises(InputError, match=r"next\.txt"):
        read_item_list(path)


@pytest.mark.parametrize("sample", [10, None])
def test_a_draw_is_of_all_items_and_of_its_seed(folder, sample):
    data = RunData.load(folder)
    first, again, other_item_ids = (
        [t.item.item_id for t in review_tasks(data, seed=seed, sample=sample)] for seed in (1, 1, 2)
    )
    assert len(set(first)) == (sample or 24)
    assert first == again != other_item_ids


def test_a_label_keeps_how_its_item_was_drawn_and_others_keep_nothing(folder):
    rates = {v.item_id: draw_rate(v) for v in RunData.load(folder).verdicts}
    with session(folder, "drawn") as review_session:
        decide(review_session, "ann", "A")
    with session(folder) as review_session:
        decide(review_session, "bob", "A")
    first, second = folder.labels()
    assert first.draw == LabelDraw(seed=42, rate=rates[first.item_id])
    assert second.draw is None


def test_a_review_ends_when_the_decision_stands_and_says_so(folder):
    data = RunData.load(folder)
    tasks = review_tasks(data)
    with session(folder, "drawn", stop=partial(why_decision_stands, data)) as review_session:
        for _ in range(24):
            state = review_session.state("ann")
            if state["stands"]:
                break
            sides = next(t for t in tasks if t.item.item_id == state["item"]["item"])
            responses = state["item"]["responses"]
            choice = next(side for side in responses if responses[side] == sides.text("north"))
            review_session.decide("ann", {"item": state["item"]["item"], "choice": choice})
        assert 5 <= state["done"] < 24
        assert state["item"] is None
        assert state["stands"].startswith("The decision stands: people would prefer north to south")
        assert review_session.undo("ann")["item"] is not None
    hidden_reason = why_decision_stands(data, folder.labels(), names=False)
    assert hidden_reason is None or "north" not in hidden_reason


def test_nobody_sees_a_name_or_a_verdict_before_deciding(folder):
    with session(folder) as review_session:
        state_text = json.dumps(review_session.state("ann"))
        for secret in ("north", "south", "coverage", "winner", "label"):
            assert secret not in state_text


def test_sides_are_shuffled_anew_for_everyone_and_stay_through_a_reload(folder):
    with session(folder) as review_session:
        first = review_session.state("ann")["item"]
        assert review_session.state("ann")["item"] == first
    tasks = review_tasks(RunData.load(folder), "all")
    left = [task.sides(key)["A"] == "north" for key in map(str, range(50)) for task in tasks]
    # 1200 tosses: 5 standard errors are 7 points.
    assert abs(np.mean(left) - 0.5) < 0.07


@pytest.mark.parametrize("choice", ["A", "B", "tie", "both bad"])
def test_a_decision_is_on_disk_at_once_and_means_whom_the_person_saw(folder, choice):
    with session(folder) as review_session:
        item = review_session.state("ann")["item"]
        decide(review_session, "ann", choice, note="because")
        (label_rows,) = folder.labels()
        data = RunData.load(folder)
        if choice in "AB":
            assert data.texts[item["item"]][label_rows.winner] == item["responses"][choice]
        else:
            assert label_rows.winner == choice
        assert (label_rows.annotator, label_rows.note) == ("ann", "because")


def test_scores_are_kept_by_candidate(folder):
    with session(folder) as review_session:
        item = review_session.state("ann")["item"]
        name = item["criteria"][0]["name"]
        decide(review_session, "ann", "A", scores={"A": {name: 5}, "B": {name: 2}})
        (label_rows,) = folder.labels()
        assert label_rows.scores[label_rows.winner] == {name: 5}


def test_undo_takes_back_and_shows_the_same_item_again(folder):
    with session(folder) as review_session:
        first = review_session.state("ann")["item"]
        decide(review_session, "ann", "A")
        assert review_session.state("ann")["done"] == 1
        state = review_session.undo("ann")
        assert state["item"] == first
        assert state["done"] == 0
    data = RunData.load(folder)
    assert first["item"] not in {k for k in data.truth if data.truth[k] != "north"}
    assert all(label.winner is None for label in data.labels)
    assert run(["aggregate", str(folder.path)]) == 0


def test_skipped_items_come_back_at_the_end_and_nothing_is_written(folder):
    with session(folder) as review_session:
        first = review_session.state("ann")["item"]["item"]
        decide(review_session, "ann", "skip")
        assert review_session.state("ann")["item"]["item"] != first
        while (state := review_session.state("ann"))["item"]["item"] != first:
            decide(review_session, "ann", "tie")
        assert (state["done"], state["skipped"]) == (23, 1)
        assert first not in {label.item_id for label in folder.labels()}


def test_another_session_goes_on_where_the_last_ended(folder):
    with session(folder) as review_session:
        decide(review_session, "ann", "A")
        left = review_session.state("ann")["item"]["item"]
    with session(folder) as review_session:
        state = review_session.state("ann")
        assert (state["done"], state["item"]["item"]) == (1, left)
        assert review_session.state("bob")["done"] == 0


def test_two_sessions_write_at_once_and_no_line_is_lost_or_mixed(folder):
    def work(person):
        with session(folder) as review_session:
            for _ in range(24):
                decide(review_session, person, "A", note=person * 300)

    threads = [threading.Thread(target=work, args=(person,)) for person in ("ann", "bob", "cho")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    labels = folder.labels()
    assert len(labels) == 72
    assert all(label.note == label.annotator * 300 for label in labels)


def test_people_are_told_their_agreement_with_each_other_and_the_panel(folder):
    with session(folder) as review_session:
        for person in ("ann", "bob"):
            for task in review_session.tasks.values():
                side = {c: s for s, c in task.sides(review_session._people[person].key).items()}[
                    "north"
                ]
                review_session.decide(person, {"item": task.item.item_id, "choice": side})
        lines = {line["with"]: line for line in review_session.state("bob")["agreement"]}
    assert lines["ann"]["same"][0] == 1.0
    assert lines["ann"]["kappa"] is None  # everyone chose the same one: nothing to compare
    assert lines["everyone"]["n"] == 24
    panel = [v.winner == "north" for v in RunData.load(folder).verdicts]
    assert lines["the panel"]["same"][0] == pytest.approx(np.mean(panel))


def test_agreement_of_people_has_intervals_around_what_the_counts_give(folder):
    with session(folder) as review_session:
        for person, flips in (("ann", ()), ("bob", (0, 1, 2))):
            for position, task in enumerate(review_session.tasks.values()):
                first = (position % 2 == 0) != (position in flips)
                side = {c: s for s, c in task.sides(review_session._people[person].key).items()}
                choice = side["north" if first else "south"]
                review_session.decide(person, {"item": task.item.item_id, "choice": choice})
        lines = {line["with"]: line for line in review_session.state("bob")["agreement"]}
    share, low, high = lines["ann"]["same"]
    assert share == pytest.approx(21 / 24)
    assert low < share < high
    kappa = lines["ann"]["kappa"]
    assert kappa[0] == pytest.approx((21 / 24 - 0.5) / 0.5, abs=0.01)  # margins are nearly even
    assert kappa[1] < kappa[0] < kappa[2]
    alpha = lines["everyone"]["alpha"]
    assert alpha[1] < alpha[0] < alpha[2]
    assert alpha[0] == pytest.approx(kappa[0], abs=0.02)


def test_without_reveal_nothing_is_told_afterwards_either(folder):
    with session(folder, reveal=False) as review_session:
        state = decide(review_session, "ann", "A")
        assert state["last"] is None
        assert state["agreement"] == []
        assert "north" not in json.dumps(state)


@pytest.mark.parametrize(
    "reply",
    [
        {"choice": "C"},
        {"choice": None},
        {"choice": "north"},
        {"choice": "A", "item": "nowhere"},
        {"choice": "A", "note": "x" * 2001},
        {"choice": "A", "scores": {"A": {"Accuracy": 6}}},
        {"choice": "A", "scores": {"A": {"Accuracy": True}}},
        {"choice": "A", "scores": {"A": {"Beauty": 3}}},
        {"choice": "A", "scores": {"Z": {"Accuracy": 3}}},
        {"choice": "A", "scores": "5"},
    ],
)
def test_what_is_no_decision_is_refused_and_not_written(folder, reply):
    with session(folder) as review_session:
        item = review_session.state("ann")["item"]["item"]
        with pytest.raises(InputError):
            review_session.decide("ann", {"item": item, **reply})
    assert folder.labels() == []


@pytest.mark.parametrize("name", ["", "  ", "x" * 61, "a\u202eb", None, 7])
def test_a_name_is_something_that_can_be_seen(folder, name):
    with session(folder) as review_session, pytest.raises(InputError):
        review_session.state(name)


@contextlib.contextmanager
def serve(folder):
    with session(folder) as review_session, ReviewServer(review_session, live("run")) as server:
        yield server


def post(server, path="/api/decide", *, body=None, **label_change):
    decision = {"annotator": "eve", "item": next(iter(server.session.tasks)), "choice": "tie"}
    headers = {
        "Host": f"127.0.0.1:{server.port}",
        "Origin": server.origins[0],
        "Content-Type": "application/json",
        "X-Clash-Token": server.token,
    }
    headers |= {name.replace("_", "-"): value for name, value in label_change.items()}
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=100)
    data = json.dumps(decision).encode() if body is None else body
    connection.putrequest("POST", path, skip_host=True, skip_accept_encoding=True)
    for name, value in headers.items():
        if value is not None:
            connection.putheader(name, value)
    connection.putheader("Content-Length", str(len(data)))
    connection.endheaders(data)
    answer = connection.getresponse()
    reply = answer.status, json.loads(answer.read())
    connection.close()
    return reply


def test_the_page_itself_may_decide(folder):
    with serve(folder) as server:
        assert post(server)[0] == 200
        assert post(server, Origin=None)[0] == 200
        assert len(folder.labels()) == 1


@pytest.mark.parametrize(
    "label_change",
    [
        {"X_Clash_Token": "wrong"},
        {"X_Clash_Token": None},
        {"X_Clash_Token": "n\u00e4he"},
        {"Host": "evil.test"},
        {"Host": "127.0.0.1:1"},
        {"Host": None},
        {"Origin": "http://evil.test"},
        {"Origin": "null"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
        {"Content_Type": "text/plain"},
        {"Content_Type": "application/x-www-form-urlencoded"},
    ],
)
def test_a_stranger_is_refused_and_writes_nothing(folder, label_change):
    with serve(folder) as server:
        assert post(server, **label_change)[0] == 403
    assert folder.labels() == []


@pytest.mark.parametrize("body", [b"[]", b"{", b"\xff", b"[" * 50_000, b'{"annotator": 1}'])
def test_nonsense_is_answered_in_one_line(folder, body):
    with serve(folder) as server:
        status, answer = post(server, body=body)
        assert status == 400
        assert answer["error"]
        assert post(server, "/api/nothing")[0] == 400
        assert post(server, body=b"x" * 200_000)[0] == 403
        assert post(server)[0] == 200


@pytest.mark.parametrize("method", ["PUT", "OPTIONS", "DELETE", "HEAD", "TRACE", "PATCH", "X" * 50])
def test_another_method_is_refused_under_the_same_headers(folder, method):
    with serve(folder) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port)
        connection.request(method, "/", headers={"Host": f"127.0.0.1:{server.port}"})
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
    assert answer.status == 405
    assert answer.headers["Allow"] == "GET, POST"
    assert answer.headers["Content-Security-Policy"] == "default-src 'none'"
    assert answer.headers["X-Frame-Options"] == "DENY"
    assert body == (b"" if method == "HEAD" else b'{"error": "only GET and POST"}')


@pytest.mark.parametrize("request_line", [b"nonsense", b"GET / HTTP/9.9", b"GET /" + b"x" * 70_000])
def test_what_is_no_request_is_refused_under_the_same_headers(folder, request_line):
    with (
        serve(folder) as server,
        socket.create_connection(("127.0.0.1", server.port)) as connection,
    ):
        connection.sendall(request_line + b"\r\n\r\n")
        answer = b""
        with contextlib.suppress(ConnectionResetError):
            while part := connection.recv(4096):
                answer += part
    assert answer.startswith(b"HTTP/1.1 ")
    assert b"X-Frame-Options: DENY" in answer
    assert b"<html" not in answer.lower()


def test_connections_that_stall_keep_nobody_out_and_are_bounded(folder):
    before = threading.active_count()
    with serve(folder) as server, contextlib.ExitStack() as open_sockets:
        for _ in range(150):
            connection = open_sockets.enter_context(
                socket.create_connection(("127.0.0.1", server.port))
            )
            connection.sendall(b"POST /api/state HTTP/1.1\r\n")
        assert post(server, "/api/state", body=b'{"annotator": "ann"}')[0] == 200
        deadline = time.monotonic() + 100
        while threading.active_count() - before > 40 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert threading.active_count() - before <= 40


def test_a_reader_who_leaves_prints_nothing(folder, capsys):
    with serve(folder) as server:
        for _ in range(5):
            connection = socket.create_connection(("127.0.0.1", server.port))
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.sendall(
                f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n".encode() * 50
            )
            connection.close()  # at once, with a reset
        assert post(server, "/api/state", body=b'{"annotator": "ann"}')[0] == 200
        time.sleep(0.3)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("header", ["Content-Length: " + "9" * 5000, "Content-Length: -1",
                                    "Content-Length: 100001", "Transfer-Encoding: chunked"])  # fmt: skip
def test_a_body_of_unknown_or_great_length_is_not_read(folder, header):
    with serve(folder) as server:
        address = ("127.0.0.1", server.port)
        with socket.create_connection(address) as connection:
            host = f"Host: 127.0.0.1:{server.port}"
            request = f"POST /api/decide HTTP/1.1\r\n{host}\r\n{header}\r\n\r\n"
            connection.sendall(request.encode())
            assert connection.recv(4096).startswith(b"HTTP/1.1 403 ")
    assert folder.labels() == []


def test_the_page_holds_nothing_of_the_run_and_may_not_be_framed(folder):
    with serve(folder) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=100)
        connection.request("GET", "/")
        answer = connection.getresponse()
        text = answer.read().decode()
        assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
        assert answer.headers["Cache-Control"] == "no-store"
        connection.request("GET", "/items.jsonl")
        assert connection.getresponse().status == 404
        connection.close()
    assert server.token not in text
    assert "colours" not in text


@pytest.mark.parametrize(
    ("options", "is_drawn"), [(["--all"], False), ([], True), (["--sample", "24"], True)]
)
def test_a_page_from_disk_holds_no_name_and_its_file_is_read_back(
    folder, tmp_path, capsys, options, is_drawn
):
    page, file = tmp_path / "page.html", tmp_path / "labels.json"
    words = ["review", str(folder.path), *options, "--export-static", str(page)]
    assert run(words) == 0
    data = RunData.load(folder)
    text = page.read_text()
    assert "north" not in text
    packed_text = re.search(r'id="held">([^<]*)<', text)[1]
    record = json.loads(zlib.decompress(base64.b64decode(packed_text)))
    assert "north" not in json.dumps(record)
    decisions = [
        {"item": item["item"], "choice": side}
        for item in record["items"]
        for side, answer in item["responses"].items()
        if answer == data.texts[item["item"]]["south"]
    ]
    given_page = {**record, "annotator": "Dee", "decisions": decisions}
    file.write_text(json.dumps(given_page))
    assert run(["review", str(folder.path), "--import", str(file)]) == 0
    labels = folder.labels()
    assert len(labels) == 24
    assert {(label.winner, label.annotator) for label in labels} == {("south", "Dee")}
    assert {label.draw is not None for label in labels} == {is_drawn}
    assert run(["verify", str(folder.path)]) == 0
    for draw in (None, {"seed": -1, "equal": False}, {"seed": 7, "equal": False}, [], "drawn"):
        if draw != given_page["draw"]:
            file.write_text(json.dumps({**given_page, "draw": draw}))
            assert run(["review", str(folder.path), "--import", str(file)]) == 2
            assert "a draw that no page of this run had" in capsys.readouterr().err
    assert len(folder.labels()) == 24


def test_whoever_knows_the_names_cannot_work_out_the_sides_of_a_page_from_disk(folder, tmp_path):
    page = tmp_path / "page.html"
    assert run(["review", str(folder.path), "--all", "--export-static", str(page)]) == 0
    data = RunData.load(folder)
    packed_text = re.search(r'id="held">([^<]*)<', page.read_text())[1]
    record = json.loads(zlib.decompress(base64.b64decode(packed_text)))
    shown_texts = {item["item"]: item["responses"]["A"] for item in record["items"]}
    tasks = review_tasks(data, "all")
    guesses = [
        shown_texts[t.item.item_id] == data.texts[t.item.item_id][t.sides(record["key"])["A"]]
        for t in tasks
    ]
    sequence = order(record["key"], page_secret(folder))
    certain = [
        shown_texts[t.item.item_id] == data.texts[t.item.item_id][t.sides(sequence)["A"]]
        for t in tasks
    ]
    assert all(certain)
    assert 2 < sum(guesses) < 22  # 24 tosses; outside once in 50,000


def test_a_key_that_is_no_text_is_no_crash(folder, tmp_path):
    file = tmp_path / "labels.json"
    answer_file = {"format": FORMAT, "run": folder.path.name, "key": "\ud800", "annotator": "Dee"}
    answer_file["proof"] = proof("\ud800", None, page_secret(folder))
    file.write_text(json.dumps({**answer_file, "decisions": [{"item": "q0", "choice": "A"}]}))
    assert run(["review", str(folder.path), "--import", str(file)]) == 0
    assert len(folder.labels()) == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        '{"format": "clash-review-2", "key": 1}',
        '{"format": "clash-review-1", "key": "0", "decisions": []}',
    ],
)
def test_a_file_that_no_page_gave_back_is_refused(folder, tmp_path, text):
    file = tmp_path / "labels.json"
    file.write_text(text)
    assert run(["review", str(folder.path), "--import", str(file)]) == 2
    assert folder.labels() == []


@pytest.mark.skipif(os.name == "nt", reason="pipes and devices of POSIX")
def test_a_pipe_or_a_device_in_place_of_such_a_file_is_refused_and_not_waited_for(
    folder, tmp_path, capsys
):
    pipe = tmp_path / "labels.json"
    os.mkfifo(pipe)
    for path in (str(pipe), "/dev/zero"):
        assert run(["review", str(folder.path), "--import", path]) == 2
        assert f"{path}: is not a regular file" in capsys.readouterr().err


def test_new_labels_change_the_concordance_and_the_page_says_how_many_more(folder):
    before = compute_findings(RunData.load(folder))
    with session(folder) as review_session:
        for _ in range(20):
            decide(review_session, "ann", "tie")
    after = compute_findings(RunData.load(folder))
    change = label_change(before, after, 20)
    assert before.label_concordance.n == 8
    assert after.label_concordance.n > 20
    assert (
        after.label_concordance.concordance.estimate < before.label_concordance.concordance.estimate
        or (before.label_concordance.concordance.estimate == 0)
    )
    assert change.more == more_labels(after.label_concordance)


def test_so_many_more_labels_do_make_the_interval_that_narrow():
    for right, n in ((40, 50), (3, 3), (25, 50), (300, 300)):
        label_concordance = LabelConcordance(n, wilson(right, n), 0, None, None)
        more = more_labels(label_concordance)
        centre = (right + 1.92) / (n + 3.84)
        then = wilson(centre * (n + more), n + more)
        assert (then.high - then.low) / 2 <= 0.0502
        if more:
            less = wilson(centre * (n + more - 10), n + more - 10)
            assert (less.high - less.low) / 2 > 0.05


def test_a_session_of_twenty_decisions_changes_the_report_of_a_validation(tmp_path):
    prompts = [
        {**record, "label": ("north", "south")[i % 2]} for i, record in enumerate(plain_prompts(24))
    ]
    file = tmp_path / "pairs.jsonl"
    file.write_text("".join(json.dumps(record) + "\n" for record in prompts), encoding="utf-8")
    words = ["--panel", "baseline", "--out", str(tmp_path), "--run-id", "val", "--yes", "-q"]
    assert run(["validate", str(file), *words]) == 0
    folder = RunFolder.open(tmp_path / "val")
    report = folder.path / "report.json"
    before = json.loads(report.read_text())
    verdicts = {v.item_id: v.winner for v in folder.verdicts()}
    with session(folder) as review_session:
        for _ in range(20):
            item = review_session.state("ann")["item"]["item"]
            sides = review_session.tasks[item].sides(review_session._people["ann"].key)
            other_side = next(side for side, person in sides.items() if person != verdicts[item])
            review_session.decide("ann", {"item": item, "choice": other_side})
    assert run(["report", str(folder.path)]) == 0
    after = json.loads(report.read_text())
    assert before["kind"] == after["kind"] == "validate"
    assert before["labelled"]["n"] == after["labelled"]["n"] == 24
    # Where the two of them differ the label is a tie, which agrees with no winner.
    shares = [part["labelled"]["concordance"]["estimate"] for part in (before, after)]
    assert shares[1] < shares[0]
    assert after["concordance"]["headline"] != before["concordance"]["headline"]
    assert after["concordance"]["people"]["items"] == 20
    own_winners = {
        record.item_id: record.winner for record in folder.labels() if record.annotator == "ann"
    }
    agreements = [
        own_winners[record["id"]] == record["label"]
        for record in prompts
        if record["id"] in own_winners
    ]
    assert after["concordance"]["people"]["agreement"]["estimate"] == pytest.approx(
        np.mean(agreements)
    )
    page = (folder.path / "report.html").read_text()
    assert f"{after['labelled']['concordance']['estimate']:.0%} [" in page
    assert run(["verify", str(folder.path)]) == 0
