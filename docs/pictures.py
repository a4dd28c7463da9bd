"""Takes the pictures of the local pages in a headless Chromium, and draws the verdict cards.

python docs/pictures.py             # writes docs/images/{report*,review*,runs,live}.png and card*.{svg,png}
python docs/pictures.py report      # only those of the report (review, runs, live)
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clash.store.folder import RunFolder
from clash.view.server import ViewServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from selenium.webdriver import Chrome

IMAGES = Path(__file__).parent / "images"
WIDTH = 1100
DECISIONS = 20


@contextlib.contextmanager
def chromium() -> Iterator[Chrome]:
    """A browser without a window; exits with a word where there is none."""
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if program is None or driver is None:
        sys.exit("no browser: apt-get install chromium chromium-driver")
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    options = Options()
    options.binary_location = program
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                 "--hide-scrollbars"):  # fmt: skip
        options.add_argument(flag)
    opened = webdriver.Chrome(options=options, service=Service(driver))
    try:
        yield opened
    finally:
        opened.quit()


def screen(browser: Chrome, height: int, theme: str = "light", width: int = WIDTH) -> None:
    """The size of the window, and whether it is dark; below 700 pixels it is a phone."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 700}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": theme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def wait(browser: Chrome, truth: str) -> Any:
    """What a script returns once it is true."""
    until = time.monotonic() + 60
    while not (found := browser.execute_script(f"return {truth}")):
        if time.monotonic() > until:
            sys.exit(f"waited for {truth}")
        time.sleep(0.05)
    return found


def save(browser: Chrome, name: str) -> None:
    """What the window shows, in 64 colours."""
    from io import BytesIO

    from PIL import Image

    png = base64.b64decode(browser.execute_cdp_cmd("Page.captureScreenshot", {})["data"])
    picture = Image.open(BytesIO(png)).convert("RGB").quantize(64, dither=Image.Dither.NONE)
    picture.save(IMAGES / f"{name}.png", optimize=True)


def clash(folder: Path, *words: str) -> None:
    """A command of ours, silent."""
    command = [sys.executable, "-m", "clash", *words]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)


def report(browser: Chrome, folder: Path) -> None:
    """What one sees first, in light, in the dark and on a phone; the questions; an item; a validation."""
    demo = (folder / "runs" / "demo" / "report.html").as_uri()
    pictures = [
        ("report", demo, 800, "light", 1280, ""),
        ("report-dark", demo, 800, "dark", 1280, ""),
        ("report-phone", demo, 844, "light", 390, ""),
        ("report-trust", demo, 1000, "light", 1280, "document.getElementById('trust').scrollIntoView()"),
        ("report-items", demo, 1180, "light", 1280, _FIRST_ITEM),
    ]  # fmt: skip
    for name, page, height, theme, width, script in pictures:
        screen(browser, height, theme, width)
        browser.get("about:blank")
        browser.get(page)
        wait(browser, "document.body.dataset.ready")
        browser.execute_script(script)
        wait(browser, "!document.body.innerText.includes('unpacking…')")
        save(browser, name)


_FIRST_ITEM = """
document.querySelector(".item").open = true;
document.getElementById("differ").scrollIntoView();
"""


def review(browser: Chrome, folder: Path) -> None:
    """The page after three decisions, and what twenty changed."""
    command = [sys.executable, "-m", "clash", "review", "runs/demo", "--all", "--no-open"]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    environ = {**os.environ, "COLUMNS": "200"}
    with subprocess.Popen(
        command, cwd=folder, env=environ, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        found = re.search(r"http://\S+", process.stderr.readline() if process.stderr else "")
        screen(browser, 810)
        browser.get(found[0] if found else "")
        wait(browser, "document.body.dataset.ready")
        browser.switch_to.active_element.send_keys("Ann\n")
        for done in range(DECISIONS):
            wait(
                browser,
                f"document.getElementById('bar').value === {done} && document.body.dataset.item",
            )
            if done == 3:
                save(browser, "review")
            browser.execute_script(_LONGEST)
        wait(browser, f"document.getElementById('bar').value === {DECISIONS}")
        browser.find_element("id", "finish").click()
        wait(browser, "document.querySelector('#told table') !== null")
        screen(browser, 860)
        save(browser, "review-end")
        process.communicate(timeout=60)


_LONGEST = """
const texts = [...document.querySelectorAll("#responses pre")].map((one) => one.textContent.length);
const best = texts.indexOf(Math.max(...texts));
document.querySelectorAll("#choices .choose")[best].click();
"""


def support_prompts(folder: Path, better: str = "") -> None:
    """Prompts with responses of three made-up candidates, one of which may be made better."""
    chance = random.Random(7)
    words = ("open", "the", "settings", "then", "choose", "your", "account", "and", "confirm", "with",
             "a", "code", "that", "we", "send", "by", "mail", "within", "one", "hour")  # fmt: skip
    entries = []
    for number in range(40):
        responses = {}
        for name, level in (("atlas-2", 17), ("atlas-1", 12), ("mini-1", 8)):
            length = max(3, round(chance.gauss(level + 4 * (name == better), 4)))
            text = " ".join(words[i % len(words)] for i in range(length))
            responses[name] = f"To reset device {number}: {text}."
        entries.append(
            {
                "id": f"q{number}",
                "prompt": f"How do I reset device {number}?",
                "responses": responses,
            }
        )
    text = "".join(json.dumps(entry) + "\n" for entry in entries)
    (folder / "support-replies.jsonl").write_text(text)


def runs(browser: Chrome, folder: Path) -> None:
    """The list of runs with two of them compared, and the cards of one."""
    for better, name in (("", "monday"), ("atlas-1", "friday")):
        support_prompts(folder, better)
        clash(folder, "eval", "support-replies.jsonl", "--panel", "baseline", "--yes", "-q",
              "--run-id", name)  # fmt: skip
    clash(folder, "rerun", "runs/monday", "--yes", "-q")
    for theme, name in (((), "card"), (("--dark",), "card-dark")):
        files = (f"--card={IMAGES / name}.{kind}" for kind in ("svg", "png"))
        clash(folder, "report", "runs/demo", *files, *theme)
    with ViewServer(folder / "runs") as server:
        screen(browser, 860)
        browser.get(server.url)
        wait(browser, "document.querySelectorAll('.run').length === 4")
        for name in ("friday", "monday"):
            browser.execute_script(
                "document.querySelector(`input[aria-label='Compare ${arguments[0]}']`).click()",
                name,
            )
        wait(browser, "document.querySelector('.sheet .chart .dot') !== null")
        # The folder of a picture is nobody's.
        browser.execute_script(
            "document.getElementById('folder').textContent = '~/support-bot/runs'"
        )
        save(browser, "runs")


def live(browser: Chrome, folder: Path) -> None:
    """The page of a run when half of its judgments are in."""
    path = folder / "runs" / "support-replies"
    shutil.copytree(folder / "runs" / "monday", path)
    for name in ("judgments", "calls"):
        file = path / f"{name}.jsonl"
        data = file.read_bytes()
        file.write_bytes(data[: int(0.6 * len(data))])
    manifest = json.loads((path / "manifest.json").read_text())
    (path / "manifest.json").write_text(
        json.dumps(manifest | {"seal": None, "files": {}, "status": "running"})
    )
    with RunFolder(path).write(), ViewServer(folder / "runs") as server:
        screen(browser, 720)
        browser.get(server.run_url(path))
        wait(browser, "document.querySelector('#chart .dot') !== null")
        time.sleep(1)  # the bar slides to where it is
        save(browser, "live")


def main(only: list[str]) -> int:
    """Take them all, or only those of some pages."""
    with tempfile.TemporaryDirectory() as place, chromium() as browser:
        clash(Path(place), "demo", "--run-id", "demo", "-q")
        for page in (report, review, runs, live):
            if not only or page.__name__ in only:
                page(browser, Path(place))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
