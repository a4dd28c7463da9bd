"""Takes the pictures of the pages in a headless Chromium, and draws the verdict cards.

PYTHONPATH=tests python docs/pictures.py              # writes docs/images/*.png and card*.svg
PYTHONPATH=tests python docs/pictures.py report runs  # only those whose name begins so
"""

from __future__ import annotations

import base64
import contextlib
import json
import math
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clash.store.folder import RunFolder
from clash.view.server import ViewServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from selenium.webdriver import Chrome

IMAGES = Path(__file__).parent / "images"
DECISIONS = 20
LAPTOP, PHONE, WINDOW = 1280, 390, 1100
"""Widths in CSS pixels."""

MARGIN = 32
"""Pixels around an element on either side."""


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
    driver_session = webdriver.Chrome(options=options, service=Service(driver))
    try:
        yield driver_session
    finally:
        driver_session.quit()


def screen(browser: Chrome, width: int, height: int, theme: str = "light") -> None:
    """The size of the window, and whether it is dark."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width == PHONE}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": theme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def wait(browser: Chrome, truth: str) -> Any:
    """What a script returns once it is true."""
    until = time.monotonic() + 60
    while not (value := browser.execute_script(f"return {truth}")):
        if time.monotonic() > until:
            sys.exit(f"waited for {truth}")
        time.sleep(0.05)
    return value


def save(browser: Chrome, name: str, part: str = "", height: int = 0) -> None:
    """Save what the window shows, or the element that ``part`` selects, in 64 colours.

    Args:
        name: of the file, without its ending.
        part: a CSS selector; the whole window without it.
        height: at most so many pixels of the element; 0 for all of it.
    """
    from io import BytesIO

    from PIL import Image

    options: dict[str, Any] = {}
    if part:
        script = """const r = document.querySelector(arguments[0]).getBoundingClientRect();
                    return [r.left + scrollX, r.top + scrollY, r.width, r.height];"""
        x, y, width, tall = browser.execute_script(script, part)
        tall = min(tall, height or math.inf)
        clip = {"x": x - MARGIN, "y": y, "width": width + 2 * MARGIN, "height": tall, "scale": 1}
        options = {"captureBeyondViewport": True, "clip": clip}
    png = base64.b64decode(browser.execute_cdp_cmd("Page.captureScreenshot", options)["data"])
    picture = Image.open(BytesIO(png)).convert("RGB").quantize(64, dither=Image.Dither.NONE)
    picture.save(IMAGES / f"{name}.png", optimize=True)


def clash(folder: Path, *words: str, **environ: str) -> None:
    """A command of ours, silent."""
    command = [sys.executable, "-m", "clash", *words]
    subprocess.run(
        command, cwd=folder, check=True, capture_output=True, env={**os.environ, **environ}
    )


@dataclass(frozen=True)
class Shot:
    """One picture of a report.

    Attributes:
        name: of the file.
        run: the folder of the run whose report it shows.
        part: the element; the first screen without one.
        anchor: what stands after ``#`` in the address.
        height: of the window, or the most of the element.
    """

    name: str
    run: str = "runs/demo"
    part: str = ""
    anchor: str = ""
    width: int = LAPTOP
    height: int = 800
    theme: str = "light"


SHOTS = (
    Shot("report", height=760),
    Shot("report-phone", width=PHONE, height=844),
    Shot("report-phone-dark", width=PHONE, height=844, theme="dark"),
    Shot("report-trust", part="#trust", height=1200),
    Shot("report-differ", part="#differ", anchor="show=telling&item=discount", height=1500),
    Shot("report-cost", run="priced/five-models", part="#cost", height=1200),
    Shot("report-details", part="#details", height=1200),
)


def reports(browser: Chrome, folder: Path, shots: tuple[Shot, ...]) -> None:
    """The report of each run, part by part."""
    for shot in shots:
        screen(browser, shot.width, shot.height if not shot.part else 900, shot.theme)
        browser.get("about:blank")
        page = (folder / shot.run / "report.html").as_uri()
        browser.get(f"{page}#{shot.anchor}" if shot.anchor else page)
        wait(browser, "document.body.dataset.ready")
        browser.execute_script("scrollTo(0, 0)")  # a fixed header stays out of the way
        save(browser, shot.name, shot.part, shot.height)


@contextlib.contextmanager
def serving(folder: Path, *words: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A command that serves a page, and the address of the page; ends as with Ctrl-C."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with subprocess.Popen(
        [sys.executable, "-m", "clash", *words, "--no-open"],
        cwd=folder,
        env={**os.environ, "COLUMNS": "200"},
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        address = re.search(r"http://\S+", process.stderr.readline() if process.stderr else "")
        yield (address[0] if address else ""), process
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


def review(browser: Chrome, folder: Path) -> None:
    """The page after three decisions, and what twenty changed."""
    with serving(folder, "review", "runs/demo", "--all") as (address, process):
        screen(browser, WINDOW, 810)
        browser.get(address)
        wait(browser, "document.body.dataset.ready")
        browser.switch_to.active_element.send_keys("Ann\n")
        for n_decisions in range(DECISIONS):
            is_next = f"document.getElementById('bar').value === {n_decisions}"
            wait(browser, f"{is_next} && document.body.dataset.item")
            if n_decisions == 3:
                save(browser, "review")
            browser.execute_script(_LONGEST)
        wait(browser, f"document.getElementById('bar').value === {DECISIONS}")
        browser.find_element("id", "finish").click()
        wait(browser, "document.querySelector('#told table') !== null")
        screen(browser, WINDOW, 860)
        save(browser, "review-end")
        process.communicate(timeout=60)


_LONGEST = """
const texts = [...document.querySelectorAll("#responses pre")].map((one) => one.textContent.length);
const best = texts.indexOf(Math.max(...texts));
document.querySelectorAll("#choices .choose")[best].click();
"""


def cards(folder: Path) -> None:
    """The verdict card of the demo, light and dark."""
    for theme, name in (((), "card"), (("--dark",), "card-dark")):
        files = (f"--card={IMAGES / name}.{kind}" for kind in ("svg", "png"))
        clash(folder, "report", "runs/demo", *files, *theme)


def notebook(browser: Chrome, folder: Path) -> None:
    """A notebook that compares two functions, with what a cell of it shows."""
    import nbformat
    from nbclient import NotebookClient
    from nbconvert import HTMLExporter

    path = Path(__file__).parent / "notebooks" / "compare-my-functions.ipynb"
    cells = nbformat.read(path, as_version=4)
    NotebookClient(cells, timeout=240, resources={"metadata": {"path": str(folder)}}).execute()
    page = folder / "notebook.html"
    page.write_text(HTMLExporter().from_notebook_node(cells)[0], encoding="utf-8")
    screen(browser, WINDOW, 900)
    browser.get(page.as_uri())
    browser.execute_script("document.querySelectorAll('.jp-CodeCell')[4].scrollIntoView()")
    save(browser, "notebook")


def support_prompts(folder: Path, better: str = "") -> None:
    """Prompts with responses of three made-up candidates, one of which may be made better."""
    chance = random.Random(7)
    words = ("open", "the", "settings", "then", "choose", "your", "account", "and", "confirm", "with",
             "a", "code", "that", "we", "send", "by", "mail", "within", "one", "hour")  # fmt: skip
    records = []
    for number in range(40):
        responses = {}
        for name, level in (("atlas-2", 17), ("atlas-1", 12), ("mini-1", 8)):
            length = max(3, round(chance.gauss(level + 4 * (name == better), 4)))
            text = " ".join(words[i % len(words)] for i in range(length))
            responses[name] = f"To reset device {number}: {text}."
        records.append(
            {
                "id": f"q{number}",
                "prompt": f"How do I reset device {number}?",
                "responses": responses,
            }
        )
    text = "".join(json.dumps(record) + "\n" for record in records)
    (folder / "support-replies.jsonl").write_text(text)


def run_list(browser: Chrome, folder: Path) -> None:
    """The list of runs with two of them compared."""
    for better, name in (("", "monday"), ("atlas-1", "friday")):
        support_prompts(folder, better)
        clash(folder, "eval", "support-replies.jsonl", "--panel", "baseline", "--yes", "-q",
              "--run-id", name)  # fmt: skip
    clash(folder, "rerun", "runs/monday", "--yes", "-q")
    with ViewServer(folder / "runs") as server:
        screen(browser, WINDOW, 860)
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
        screen(browser, WINDOW, 720)
        browser.get(server.run_url(path))
        wait(browser, "document.querySelector('#chart .dot') !== null")
        time.sleep(1)  # the bar slides to where it is
        save(browser, "live")


def make_runs(folder: Path) -> None:
    """The runs that the pictures show: the demo, and five priced models on a stand-in's prompts."""
    from docs.vendor_standin import five_models
    from wire import WireServer

    clash(folder, "demo", "--run-id", "demo", "-q")
    with WireServer() as server:
        environ = server.environ("openrouter") | {
            "CLASH_TRUST_HOSTS": f"127.0.0.1:{server.port}",
            "CLASH_CONFIG_DIR": str(folder / "config"),
        }
        models = five_models(server, folder / "prompts.yaml")
        command = ("eval", "prompts.yaml", "--models", models, "--panel", "supreme-court", "--yes")
        clash(
            folder,
            *command,
            "--observers",
            "none",
            "--run-id",
            "five-models",
            "--out",
            "priced",
            **environ,
        )


def main() -> int:
    """Take them all, or those that are named."""
    names = tuple(sys.argv[1:])
    shots = tuple(s for s in SHOTS if not names or s.name.startswith(names))
    with tempfile.TemporaryDirectory() as folder_name, chromium() as browser:
        make_runs(Path(folder_name))
        reports(browser, Path(folder_name), shots)
        if not names or "card".startswith(names):
            cards(Path(folder_name))
        if not names or "notebook".startswith(names):
            notebook(browser, Path(folder_name))
        if not names or "review".startswith(names):
            review(browser, Path(folder_name))
        if not names or {"runs", "live"} & set(names):
            run_list(browser, Path(folder_name))
            live(browser, Path(folder_name))
    return 0


if __name__ == "__main__":
    sys.exit(main())
