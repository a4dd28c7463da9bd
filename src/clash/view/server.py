"""The server of ``clash view``: the runs of a folder, each with its page.

A page with data in it is at an address that follows from the token and cannot be guessed. Reports
are rendered from the records: ``report.html`` in a stranger's folder could contain anything.
"""

from __future__ import annotations

import hashlib
import hmac
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clash.errors import ClashError, InputError, RunFolderError
from clash.serving.server import LocalServer, Page
from clash.store import layout
from clash.store.folder import RunFolder
from clash.view import pages
from clash.view.live_run import LiveRun
from clash.view.run_list import RunList

if TYPE_CHECKING:
    from clash.view.comparison import ComparisonView
    from clash.view.run_list import RunEntry

PORTION = 100
"""Rows sent at a time."""
_CONTRADICTIONS = (LookupError, TypeError, ValueError, ArithmeticError, AttributeError,
                   AssertionError, RecursionError, MemoryError)  # fmt: skip
"""What reading another's records raises where they contradict each other."""
_PRESENT_S, _LINGER_S = 6.0, 30.0
"""Seconds for which a page that asked counts as open, and that its report may take at most."""
_MOST_PAGES = 2
"""Rendered pages that are kept."""


class ViewServer(LocalServer):
    """Serves the runs of a folder.

    Args:
        folder: the folder of the runs.
        port: the port; 0 means any free one.
    """

    def __init__(self, folder: Path, port: int = 0) -> None:
        super().__init__(port)
        self.runs = RunList(folder)
        self._news = threading.Condition()
        self._last_request: float | None = None
        self._watched_run: str | None = None
        self._ended_runs: set[str] = set()
        self._paths: dict[str, Path] = {}
        self._live: dict[str, LiveRun] = {}
        self._pages: dict[tuple[str, str, int], Page] = {}
        self._lock = threading.Lock()

    def run_url(self, path: Path) -> str:
        """The address of a run's page, with the token."""
        key = self._key(path.name)
        self._paths[key], self._watched_run = path, path.name
        return f"{self.origins[0]}/run/{key}/#{self.token}"

    def page(self, path: str) -> Page | None:
        """The list, a run, its report, or a comparison."""
        match path.split("/")[1:]:
            case [""]:
                return pages.run_list_page()
            case ["run", key, ("" | "report") as what] if run := self._path(key):
                return self._guard(lambda: self._run_page(run, key, what))
            case ["compare", first, second, ""] if self._path(first) and self._path(second):
                return self._guard(lambda: self._comparison_page(first, second))
            case _:
                return None

    def answer(self, path: str, request: dict[str, Any]) -> dict[str, Any]:
        """Answer a request of a page.

        Raises:
            ClashError: the request is invalid, or a run cannot be read.
        """
        try:
            match path:
                case "/api/runs":
                    return self._rows(request)
                case "/api/compare":
                    return self._comparison(request.get("runs")).as_json()
                case "/api/live":
                    return self._state(request.get("run"))
                case _:
                    raise InputError(f"no {path}")
        except _CONTRADICTIONS as error:
            raise _unfit(error) from None

    def on_page_sent(self, path: str) -> None:
        """Hear that a browser has a page."""
        _, _, key, *page = [*path.split("/"), ""]
        if page == ["report", ""] and (run := self._path(key)):
            self._end_shown(run.name)

    def linger(self) -> None:
        """Wait until the page of the run that was opened last, and has ended, shows how it ended.

        Returns at once where no page is open, and soon where one is open and does not ask.
        """
        with self._news:
            if self._last_request is None or time.monotonic() - self._last_request > _PRESENT_S:
                return
            self._news.wait_for(lambda: self._watched_run in self._ended_runs, timeout=_LINGER_S)

    def _end_shown(self, run: str) -> None:
        with self._news:
            self._ended_runs.add(run)
            self._news.notify_all()

    def _state(self, key: object) -> dict[str, Any]:
        self._last_request = time.monotonic()
        live_run = self._live_run(key)
        state = live_run.state()
        if state["phase"] == "ended" and state["status"] == "partial":
            self._end_shown(live_run.path.name)
        return state

    def _rows(self, request: dict[str, Any]) -> dict[str, Any]:
        start = request.get("from")
        if type(start) is not int or start < 0:
            raise InputError("is a number", field="from")
        runs = self.runs.runs()
        version = _version(runs)
        rows: list[dict[str, Any]] = []
        if request.get("version") != version:
            for run in runs[start : start + PORTION]:
                key = self._key(run.name)
                self._paths[key] = run.path
                rows.append({**self.runs.row(run), "key": key})
        folder = short_path(self.runs.folder)
        return {"folder": folder, "total": len(runs), "version": version, "rows": rows}

    def _key(self, name: str) -> str:
        code = hmac.new(self.token.encode(), name.encode("utf-8", "surrogateescape"), "sha256")
        return code.hexdigest()[:40]

    def _path(self, key: object) -> Path | None:
        return self._paths.get(key) if isinstance(key, str) else None

    def _live_run(self, key: object) -> LiveRun:
        path = self._path(key)
        if path is None or not isinstance(key, str):
            raise InputError("is no run of this folder", field="run")
        with self._lock:
            return self._live.setdefault(key, LiveRun(path))

    def _run_page(self, path: Path, key: str, page_name: str) -> Page:
        folder = RunFolder.open(path)
        if page_name == "" and (folder.manifest().seal is None or folder.is_being_written()):
            return pages.live_page(path.name, key)
        with self._lock:
            return self._report(folder, key)

    def _report(self, folder: RunFolder, key: str) -> Page:
        from clash.analysis.findings import compute_findings
        from clash.analysis.rundata import RunData
        from clash.report.html import render_report

        stamp = ("report", key, (folder.path / layout.MANIFEST).stat().st_mtime_ns)
        if stamp not in self._pages:
            run = RunData.load(folder)
            page = render_report(compute_findings(run), run, folder.path, list_url="/")
            self._pages[stamp] = Page(page.html, "frame-ancestors 'none'")
            while len(self._pages) > _MOST_PAGES:
                del self._pages[next(iter(self._pages))]
        return self._pages[stamp]

    def _comparison(self, keys: object) -> ComparisonView:
        from clash.analysis.compare import compare, run_names
        from clash.analysis.rundata import RunData
        from clash.view.comparison import ComparisonView

        paths = [self._path(key) for key in keys] if isinstance(keys, list) else []
        folders = [RunFolder(path) for path in paths if path is not None]
        if not len(folders) == len(paths) == 2:
            raise InputError("names two runs of this folder", field="runs")
        runs = [RunData.load(folder) for folder in folders]
        return ComparisonView.of(compare(runs, names=run_names(folders)))

    def _comparison_page(self, first: str, second: str) -> Page:
        view = self._comparison([first, second])
        return pages.comparison_page(view, (f"/run/{first}/", f"/run/{second}/"))

    def _guard(self, render: Any) -> Page:  # noqa: ANN401 - a function without arguments
        try:
            page: Page = render()
        except ClashError as error:
            return pages.problem_page(str(error))
        except _CONTRADICTIONS as error:
            return pages.problem_page(str(_unfit(error)))
        return page


def short_path(path: Path) -> str:
    """A path with ``~`` in place of the home folder."""
    path = path.resolve()
    home = Path.home()
    return (
        f"~/{path.relative_to(home)}" if path.is_relative_to(home) and path != home else str(path)
    )


def _unfit(error: BaseException) -> RunFolderError:
    return RunFolderError(
        f"the records of this run are inconsistent ({type(error).__name__}: {error})"
        "\n  fix: `clash verify RUN` says what was changed"
    )


def _version(runs: list[RunEntry]) -> str:
    """Changes when a run is added, removed, or goes on."""
    digest = hashlib.sha256()
    for run in runs:
        try:
            time = (run.path / layout.MANIFEST).lstat().st_mtime_ns
        except OSError:
            time = 0
        digest.update(f"{run.name}\0{time}\0".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()
