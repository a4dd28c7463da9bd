"""The review page in a real browser: by keyboard, reloaded, attacked, and from disk."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from clash.analysis.rundata import RunData
from clash.cli.app import run
from review.browser import Beacon, chrome, hostile
from review.runs import judged, plain_prompts


@pytest.fixture(scope="module")
def beacon():
    beacon_server = Beacon()
    yield beacon_server
    beacon_server.close()


@pytest.fixture
def folder(tmp_path, beacon):
    evil = hostile(beacon.url)
    attack = {"id": "attacked", "prompt": evil, "responses": {"north": evil, "south": "Blue."}}
    return judged(tmp_path, [*plain_prompts(12), attack])


@pytest.fixture(scope="module")
def browsers():
    with chrome() as first, chrome() as second:
        yield first, second


@pytest.fixture
def browser(browsers):
    browsers[0].get("about:blank")
    browsers[0].get_log("browser")
    return browsers[0]


@contextlib.contextmanager
def reviewing(folder, *words):
    """``clash review`` in a process of its own; its address, then it ends as with Ctrl-C."""
    command = [sys.executable, "-m", "clash", "review", str(folder.path), "--all", "--no-open"]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(
        [*command, *words],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "COLUMNS": "200"},
    )
    try:
        yield re.search(r"http://\S+", process.stderr.readline())[0], process
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=240)
        assert process.returncode == 0, out + err
    finally:
        process.kill()
        process.communicate()


def wait_for(browser, truth):
    WebDriverWait(browser, 100).until(lambda _: truth())


def item(browser):
    return browser.execute_script("return document.body.dataset.item")


def start(browser, url, name):
    browser.get(url)
    wait_for(browser, lambda: browser.execute_script("return document.body.dataset.ready"))
    browser.switch_to.active_element.send_keys(name, Keys.ENTER)
    wait_for(browser, lambda: item(browser))


def press(browser, key):
    """A key, and the next item."""
    before = item(browser)
    browser.find_element(By.TAG_NAME, "body").send_keys(key)
    wait_for(browser, lambda: item(browser) != before)


def progress(browser):
    return browser.find_element(By.ID, "progress").text


@pytest.mark.parametrize(("sides", "words"), [("ab", "is better"), ("abc", "is best")])
def test_the_first_of_two_is_better_and_of_three_is_best(browser, tmp_path, sides, words):
    responses = {side: f"{side} says {side}." for side in sides}
    folder = judged(tmp_path, [{"id": "q", "prompt": "Which letter?", "responses": responses}])
    with reviewing(folder) as (url, _):
        start(browser, url, "Ann")
        buttons = browser.find_elements(By.CSS_SELECTOR, "#choices .choose")
        assert len(buttons) == len(sides)
        assert all(words in button.text for button in buttons)


def test_a_session_by_keyboard_with_a_reload_in_the_middle(browser, folder):
    with reviewing(folder) as (url, process):
        start(browser, url, "Ann")
        assert "#" not in browser.current_url  # the token does not stay in the address bar
        first = item(browser)
        press(browser, "a")
        assert [record.item_id for record in folder.labels()] == [first]
        assert browser.find_element(By.ID, "last").text.startswith(f"{first}: A was ")
        press(browser, "t")
        press(browser, "x")
        press(browser, "s")
        assert progress(browser) == "3 of 13 decided, 1 skipped"
        shown_item = item(browser)
        texts = [record.text for record in browser.find_elements(By.CSS_SELECTOR, "#responses pre")]
        browser.refresh()
        wait_for(browser, lambda: item(browser) == shown_item)
        again = [record.text for record in browser.find_elements(By.CSS_SELECTOR, "#responses pre")]
        assert again == texts
        press(browser, "u")
        assert progress(browser).startswith("2 of 13")
        press(browser, "b")
        while item(browser):
            press(browser, "b")
        assert progress(browser) == "13 of 13 decided"
        browser.find_element(By.ID, "finish").send_keys(Keys.ENTER)
        wait_for(browser, lambda: "has ended" in browser.find_element(By.ID, "after").text)
        text = browser.find_element(By.ID, "told").text
        assert "labelled items 4 13" in text
        assert "concordance with the labels" in text
        assert "not calibrated: 13 rows have a label, at least 30 are needed" in text
        assert "17 more labelled items are needed" in text
        process.wait(timeout=240)
    assert {record.item_id for record in folder.labels()} == {i.item_id for i in folder.items()}
    report = json.loads((folder.path / "report.json").read_text())
    assert report["labelled"]["n"] == 13
    assert run(["verify", str(folder.path)]) == 0


def disagreeing_prompts(n, n_labelled):
    """Responses of many lengths; people mostly prefer the longer one."""
    rng = np.random.default_rng(7)
    prompts = plain_prompts(n)
    for i, prompt in enumerate(prompts):
        long, short = (" ".join(["because"] * rng.integers(*size)) for size in ((20, 60), (2, 15)))
        first = bool(rng.random() < 0.5)
        prompt["responses"] = {"north": long if first else short, "south": short if first else long}
        prompt.pop("label", None)
        if i < n_labelled:
            prompt["label"] = "north" if first == (rng.random() < 0.85) else "south"
    return prompts


def test_twenty_decisions_change_the_report_and_the_calibrated_result_and_the_page_says_how(
    browser, tmp_path
):
    new_run = judged(tmp_path / "many", disagreeing_prompts(60, 34))
    assert run(["report", str(new_run.path)]) == 0
    before = json.loads((new_run.path / "report.json").read_text())
    labelled_ids = {f"q{i}" for i in range(34)}
    with reviewing(new_run) as (url, process):
        start(browser, url, "Ann")
        n_decided = 0
        while n_decided < 20:
            if item(browser) in labelled_ids:
                press(browser, "s")
                continue
            texts = [
                record.text for record in browser.find_elements(By.CSS_SELECTOR, "#responses pre")
            ]
            press(browser, "a" if len(texts[0]) < len(texts[1]) else "b")  # the shorter one
            n_decided += 1
        browser.find_element(By.ID, "finish").send_keys(Keys.ENTER)
        until = WebDriverWait(browser, 60).until
        until(lambda b: "has ended" in b.find_element(By.ID, "after").text)
        rows = {
            line.find_element(By.TAG_NAME, "th").text.strip(): [
                cell.text for cell in line.find_elements(By.TAG_NAME, "td")
            ]
            for line in browser.find_elements(By.CSS_SELECTOR, "#told tbody tr")
        }
        text = browser.find_element(By.ID, "told").text
        assert browser.get_log("browser") == []
        process.wait(timeout=240)
    after = json.loads((new_run.path / "report.json").read_text())
    assert (before["labelled"]["n"], after["labelled"]["n"]) == (34, 54)
    assert rows["labelled items"] == ["34", "54"]
    then, now = rows["concordance with the labels"]
    assert then == percent(before["labelled"]["concordance"])
    assert now == percent(after["labelled"]["concordance"])
    assert then != now
    assert rows["accuracy, held out"][0] != rows["accuracy, held out"][1]
    assert rows["calibration error, held out"][0] != rows["calibration error, held out"][1]
    assert "more labels would bring the interval to 5 points" in text
    assert re.search(r"\d+ calibrated verdicts changed: q\d|no calibrated verdict changed", text)
    assert run(["verify", str(new_run.path)]) == 0


def percent(interval):
    low, high = 100 * interval["low"], 100 * interval["high"]
    return f"{interval['estimate']:.0%} [{low:.0f}, {high:.0f}]"


def test_a_note_and_scores_by_keyboard_are_not_taken_for_choices(browser, folder):
    with reviewing(folder) as (url, _):
        start(browser, url, "Ann")
        first = item(browser)
        body = browser.find_element(By.TAG_NAME, "body")
        body.send_keys("n")
        browser.switch_to.active_element.send_keys("a better tie than both")
        assert item(browser) == first
        browser.find_element(By.CSS_SELECTOR, "#scores select").send_keys("4")
        browser.switch_to.active_element.send_keys(Keys.ESCAPE)
        press(browser, "a")
    (label_rows,) = folder.labels()
    assert label_rows.note == "a better tie than both"
    assert list(label_rows.scores[label_rows.winner].values()) == [4]


def test_two_people_at_once_and_their_agreement(browsers, folder):
    with reviewing(folder) as (url, _):
        for person, browser in zip(("Ann", "Bob"), browsers, strict=True):
            start(browser, url, person)
        for _ in range(4):
            for browser in browsers:
                press(browser, "t")
        assert [progress(browser) for browser in browsers] == ["4 of 13 decided"] * 2
        table = browsers[1].find_element(By.ID, "agreement")
        table.find_element(By.TAG_NAME, "summary").click()
        assert "Ann" in table.text
        assert "100%" in table.text
        assert re.search(r"Ann 4 ", table.text)
        press(browsers[1], "t")
        press(browsers[0], "t")  # Bob's table follows without a hand of his
        wait_for(browsers[1], lambda: re.search(r"Ann 5 ", table.text))
        assert progress(browsers[1]) == "5 of 13 decided"
    labels = folder.labels()
    assert {
        (person, sum(label.annotator == person for label in labels)) for person in ("Ann", "Bob")
    } == {
        ("Ann", 5),
        ("Bob", 5),
    }


def test_a_hostile_response_does_nothing_to_the_page_and_decides_nothing(browser, folder, beacon):
    beacon.seen.clear()
    with reviewing(folder) as (url, _):
        start(browser, url, "Ann")
        while item(browser) != "attacked":
            press(browser, "s")
        time.sleep(0.3)
        assert browser.execute_script("return window.pwned") is None
        assert beacon.seen == []
        assert browser.get_log("browser") == []
        inside = "#responses img, #responses button, #responses style, #responses a, iframe"
        assert browser.find_elements(By.CSS_SELECTOR, inside) == []
        assert "U+202E" in browser.find_element(By.ID, "responses").text
        wide = "return document.documentElement.scrollWidth <= document.documentElement.clientWidth"
        assert browser.execute_script(wide)
        choices = browser.find_element(By.ID, "choices").rect
        top = browser.execute_script(
            "return document.elementFromPoint(arguments[0], arguments[1]).closest('#choices') !== null",
            choices["x"] + 20,
            choices["y"] + choices["height"] / 2 - browser.execute_script("return scrollY"),
        )
        assert top  # nothing lies over the buttons
    assert folder.labels() == []


def test_a_foreign_page_cannot_post_a_decision(browser, folder, beacon):
    with reviewing(folder) as (url, _):
        address = url.partition("#")[0]
        browser.get(f"{beacon.url}/foreign")
        attempt = browser.execute_async_script(
            """
            const [address, done] = arguments;
            const body = JSON.stringify({annotator: "eve", item: "q1", choice: "tie"});
            Promise.allSettled([
              fetch(address + "api/decide", {method: "POST", body}),
              fetch(address + "api/decide", {method: "POST", body, mode: "no-cors"}),
              fetch(address + "api/decide", {method: "POST", body,
                headers: {"Content-Type": "application/json", "X-Clash-Token": "guess"}}),
            ]).then((all) => done(all.map((one) => one.status === "fulfilled" ? one.value.type : "failed")));
            """,
            address,
        )
        assert browser.current_url == f"{beacon.url}/foreign"
        assert attempt == ["failed"] * 3
        browser.get(address)  # without the token
        browser.switch_to.active_element.send_keys("eve", Keys.ENTER)
        wait_for(browser, lambda: "wrong token" in browser.find_element(By.ID, "error").text)
    assert folder.labels() == []


def test_a_page_from_disk_is_decided_by_keyboard_and_gives_back_a_file(browser, folder, tmp_path):
    page, downloads = tmp_path / "page.html", tmp_path / "downloads"
    downloads.mkdir()
    words = ["review", str(folder.path), "--all", "--export-static", str(page)]
    assert run(words) == 0
    browser.execute_cdp_cmd(
        "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(downloads)}
    )
    start(browser, page.as_uri(), "Dee")
    choices = {}
    while shown_item := item(browser):
        choices[shown_item] = browser.find_element(By.CSS_SELECTOR, "#responses pre").text
        press(browser, "a")
    assert browser.get_log("browser") == []
    browser.find_element(By.ID, "finish").click()
    wait_for(browser, lambda: list(downloads.glob("*.json")))
    (file,) = downloads.glob("*.json")
    assert run(["review", str(folder.path), "--import", str(file)]) == 0
    texts = RunData.load(folder).texts
    labels = folder.labels()
    assert len(labels) == 13
    for label in labels:
        if label.item_id != "attacked":
            assert texts[label.item_id][label.winner].strip() == choices[label.item_id].strip()
    assert run(["verify", str(folder.path)]) == 0
