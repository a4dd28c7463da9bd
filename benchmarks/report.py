"""What a report costs to compute, to write and to open, at 100, 1,000 and 5,000 items.

``python benchmarks/report.py`` makes runs that look like those of language models (two responses
of some 250 words, three judges that score four criteria with reasons, every call whole), writes
the page, and opens it in a headless Chromium where there is one: the time until the list stands,
until a filter has been applied, and until an item and its raw calls are unpacked. Computing is
timed in seconds of the processor, which a busy machine does not stretch; waiting by the clock. The
words are drawn at random from the documentation, which deflates worse than sentences do.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from clash.analysis.findings import compute_findings
from clash.analysis.rundata import RunData
from clash.cli.app import run as clash
from clash.records import Blinding, Call, Criteria, Criterion, Item, Judgment, Response
from clash.report.html import render_report
from clash.store import layout
from clash.store.folder import RunFolder, RunWriter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clash.records import Record

ROOT = Path(__file__).parents[1]
NAMES = ("Accuracy", "Clarity", "Completeness", "Helpfulness")
JUDGES = ("coverage", "structure", "dense")
TIME = "2026-01-01T00:00:00.000Z"


@dataclass(frozen=True)
class Words:
    """Text at random."""

    rng: np.random.Generator
    known: np.ndarray

    def text(self, n: int) -> str:
        return " ".join(self.rng.choice(self.known, n))


def words(seed: int) -> Words:
    """Words of the documentation, as often as they stand there."""
    pages = " ".join(page.read_text() for page in sorted((ROOT / "docs").glob("*.md")))
    return Words(np.random.default_rng(seed), np.array(pages.split()))


def records(item: str, source: Words) -> Iterator[Record]:
    """Everything a run keeps of one item."""
    yield Item(item_id=item, prompt=source.text(60), tags=[item[-1]])
    texts = {name: source.text(250) for name in ("north", "south")}
    for name, text in texts.items():
        yield Response(item_id=item, candidate=name, text=text, source="injected")
    yield Blinding(item_id=item, presentation=0, labels={"A0": "north", "A1": "south"})
    rubric = [Criterion(name=name, weight=0.25, description=source.text(8)) for name in NAMES]
    yield Criteria(item_id=item, source="dynamic", criteria=rubric)
    page = source.text(400) + "\n".join(texts.values())
    for judge in JUDGES:
        yield from judged(item, judge, page, source)


def judged(item: str, judge: str, page: str, source: Words) -> Iterator[Record]:
    """A judgment and its call, which holds the whole prompt and the whole answer."""
    first = bool(source.rng.random() < 0.55)
    scores = {
        label: {name: int(source.rng.integers(1, 6)) for name in NAMES} for label in ("A0", "A1")
    }
    reasons = {label: {name: source.text(10) for name in NAMES} for label in ("A0", "A1")}
    ranking = [["A0"], ["A1"]] if first else [["A1"], ["A0"]]
    yield Call(
        call_id=f"{judge}-{item}", purpose="judge", item_id=item, judge=judge, presentation=0,
        attempt=1, model=f"compatible/{judge}", request={"messages": [{"role": "user", "content": page}]},
        request_hash="0" * 64, response={"choices": [{"message": {"content": str([ranking, scores, reasons])}}]},
        outcome="ok", time=TIME,
    )  # fmt: skip
    yield Judgment(
        item_id=item, presentation=0, judge=judge, role="voting", weight=1.0, ranking=ranking,
        scores=scores, reasons=reasons, parse="clean", call_id=f"{judge}-{item}",
    )  # fmt: skip


def synthetic(folder: Path, n: int) -> RunFolder:
    """A run of ``n`` items; its manifest is that of the demonstration."""
    clash(["demo", "--out", str(folder), "--run-id", "demo", "-q", "--json"])
    manifest = RunFolder(folder / "demo").manifest().model_copy(update={"run": f"items-{n}"})
    source = words(n)
    with RunWriter.create(folder, f"items-{n}", manifest) as writer:
        for i in range(n):
            for record in records(f"item-{i:05d}", source):
                writer.append(record)
    return RunFolder(writer.path)


def timed(work: Any) -> tuple[Any, float]:
    """A result and the seconds it took."""
    start = time.perf_counter()
    return work(), time.perf_counter() - start


def worked(work: Any) -> tuple[Any, float]:
    """A result and the seconds that the processor worked for it."""
    start = time.process_time()
    return work(), time.process_time() - start


def peak_mb() -> float:
    """The most memory that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def in_browser(page: Path, program: str, driver: str) -> dict[str, float]:
    """Milliseconds that a reader waits."""
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    options = Options()
    options.binary_location = program
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(flag)
    browser = webdriver.Chrome(options=options, service=Service(driver))
    try:
        _, first = timed(
            lambda: (browser.get(page.as_uri()), wait(browser, "document.body.dataset.ready"))
        )
        waits = {"open": 1000 * first}
        for name, act, is_ready in (
            ("filter", "document.querySelector('[name=split]').click()", "true"),
            ("item", "document.querySelector('.item').open = true", "document.querySelector('h4')"),
            (
                "raw calls",
                "document.querySelector('.body details').open = true",
                "document.querySelector('pre.raw')",
            ),
        ):
            start = time.perf_counter()
            browser.execute_script(act)
            wait(browser, is_ready)
            waits[name] = 1000 * (time.perf_counter() - start)
        return waits
    finally:
        browser.quit()


def wait(browser: Any, truth: str) -> None:
    """Until it is true; a look costs a few milliseconds."""
    until = time.perf_counter() + 60
    while not browser.execute_script(f"return Boolean({truth})"):
        if time.perf_counter() > until:
            raise TimeoutError(truth)


def main() -> int:
    """Print one line for each size."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--items", type=int, nargs="*", default=[100, 1000, 5000])
    sizes = parser.parse_args().items
    programs = [
        shutil.which("chromium") or shutil.which("google-chrome"),
        shutil.which("chromedriver"),
    ]
    for n in sizes:
        with tempfile.TemporaryDirectory() as folder_name:
            folder = synthetic(Path(folder_name), n)
            data, read_s = worked(lambda: RunData.load(folder))  # noqa: B023
            findings, found_s = worked(lambda: compute_findings(data))  # noqa: B023
            made, html_s = worked(lambda: render_report(findings, data, folder.path))  # noqa: B023
            page, beside = (
                Path(folder_name) / layout.REPORT_HTML,
                Path(folder_name) / layout.REPORT_DATA,
            )
            page.write_text(made.page, encoding="utf-8")
            beside.write_text(made.data or "", encoding="utf-8")
            print(f"{n:6d} items: reading {read_s:.2f} s, findings {found_s:.2f} s,"
                  f" page {html_s:.2f} s, {page.stat().st_size / 1e6:.2f} MB and beside it"
                  f" {beside.stat().st_size / 1e6:.2f} MB, memory {peak_mb():.0f} MB")  # fmt: skip
            if all(programs):
                waits = in_browser(page, *programs)
                print("        " + ", ".join(f"{name} {ms:.0f} ms" for name, ms in waits.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
