"""Types the commands of docs/tutorial.md, one after the other, in a clean folder.

PYTHONPATH=tests python -m docs.tutorial_session  # types them, and writes what they print into the page

OpenRouter is a server on the loopback. The reader's browser is a program that notes addresses.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from docs.vendor_standin import person, stand_in
from wire import WireServer

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "tutorial.md"
BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```', re.DOTALL | re.MULTILINE)
CUT = "…"
"""The last line of an output that the page does not show to its end."""

INSTALL = "python -m pip install ."
NOT_OURS = re.compile(r"(_API_KEY|_BASE_URL|^CLASH_|^PYTHONWARNINGS$|^GITHUB_)")


@dataclass(frozen=True)
class Command:
    """One command of the page, and what the page shows below it."""

    words: str
    shown: str


@dataclass(frozen=True)
class Result:
    """What became of a command: its exit code, and what it printed on stdout and stderr."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class TypedFile:
    """A file that the page tells its reader to write."""

    name: str
    text: str


def steps(page: str) -> list[Command | TypedFile]:
    """What a reader does, in the order of the page."""
    records: list[Command | TypedFile] = []
    for language, title, text in BLOCK.findall(page):
        if language == "console":
            parts = re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]
            for part in parts:
                words, _, output = part.replace("\\\n", " ").partition("\n")
                records.append(Command(re.sub(r"\s+#.*", "", words), output.rstrip()))
        elif title:
            records.append(TypedFile(title, text))
    return records


@dataclass
class Reader:
    """A shell in a clean folder, and a person in front of it.

    Attributes:
        environ: the variables of the shell; what the page exports is added.
        choice: the side that the person prefers, from the texts by side.
    """

    home: Path
    environ: dict[str, str] = field(default_factory=dict)
    choice: Callable[[dict[str, str]], str] = min

    def __post_init__(self) -> None:
        """Write the programs that the shell finds: clash, and a browser that notes addresses."""
        self.folder = self.home
        programs = self.home / ".bin"
        programs.mkdir()
        self.visited = self.home / ".visited"
        self._program(programs / "clash", f'exec "{sys.executable}" -m clash "$@"')
        self._program(programs / "browser", f'echo "$1" >> "{self.visited}"')
        values = {name: value for name, value in os.environ.items() if not NOT_OURS.search(name)}
        self.environ = {
            **values,
            "PATH": f"{programs}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT / "src"),
            "HOME": str(self.home),
            "BROWSER": f"{programs / 'browser'} %s",
            "COLUMNS": "80",
            "CLASH_CONFIG_DIR": str(self.home / ".config"),
            **self.environ,
        }

    @staticmethod
    def _program(path: Path, text: str) -> None:
        path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        path.chmod(0o755)

    def write(self, file: TypedFile) -> None:
        """Write a file as the page shows it."""
        path = self.folder / file.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file.text, encoding="utf-8")

    def type(self, words: str) -> Result:
        """Type a command."""
        if words.startswith("export "):
            return Result(0, "", "")  # the key of the stand-in is set already
        script = f'{words}\ncode=$?; pwd > "{self.home}/.pwd"; exit $code'
        with subprocess.Popen(
            ["bash", "-c", script],
            cwd=self.folder,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            text=True,
            encoding="utf-8",
        ) as process:
            if words.startswith("clash review"):
                self._label()
            if words.startswith("clash view"):
                self._address()
                os.killpg(process.pid, signal.SIGINT)
            out, err = process.communicate(timeout=240)
        self.folder = Path((self.home / ".pwd").read_text(encoding="utf-8").strip())
        return Result(process.returncode, out.replace(str(self.home.resolve()), "~"), err)

    def _address(self) -> tuple[str, str]:
        """The host of the page that the browser was last sent to, and its token."""
        deadline = time.monotonic() + 240
        while not (self.visited.exists() and "http://" in self.visited.read_text("utf-8")):
            assert time.monotonic() < deadline, "no page was opened"
            time.sleep(0.01)
        url = urlsplit(self.visited.read_text("utf-8").split()[-1])
        self.visited.unlink()
        return url.netloc, url.fragment

    def _label(self) -> None:
        """Decide every item of the review page, then finish."""
        host, token = self._address()

        def post(path: str, **body: object) -> dict[str, object]:
            headers = {"Content-Type": "application/json", "Origin": f"http://{host}"}
            headers["X-Clash-Token"] = token
            data = json.dumps({"annotator": "Ann", **body})
            with contextlib.closing(http.client.HTTPConnection(host, timeout=240)) as connection:
                connection.request("POST", path, data, headers)
                response = connection.getresponse()
                assert response.status == 200
                return json.loads(response.read())

        state = post("/api/state")
        while item := state["item"]:
            choice = self.choice(item["responses"])
            state = post("/api/decide", item=item["item"], choice=choice)
        post("/api/finish")


def replay(home: Path) -> list[tuple[Command, Result]]:
    """Follow the page in the empty folder ``home``, with a stand-in for the vendor."""
    results = []
    with WireServer() as server:
        stand_in(server)
        address = f"127.0.0.1:{server.port}"
        environ = server.environ("openrouter") | {"CLASH_TRUST_HOSTS": address}
        reader = Reader(home, environ, person)
        for step in steps(PAGE.read_text("utf-8")):
            if isinstance(step, TypedFile):
                reader.write(step)
            elif step.words != INSTALL:
                result = reader.type(step.words)
                out = result.out.replace(f"http://{address}", "openrouter.ai")
                results.append((step, Result(result.code, out, result.err)))
    return results


def comparable(text: str) -> list[str]:
    """The lines of a text without figures, durations, ids of runs, and the width of gaps."""
    text = re.sub(r"\d{8}-\d{6}-([\w-]+?)-[0-9a-f]{8}", r"RUN-\1", text)
    text = re.sub(r"\d[\d,.]*( m?s\b)?", "0", text)
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


def excerpt(visible_text: str, output: str) -> str:
    """What the page shall show: all that was printed, or as many lines as before and a `…`."""
    lines = [line.rstrip() for line in output.strip("\n").splitlines()]
    if visible_text.endswith(CUT):
        lines = [*lines[: visible_text.count("\n")], CUT]
    return "\n".join(lines)


def main() -> int:
    """Write what the commands print into the page, where the page shows an output."""
    with tempfile.TemporaryDirectory() as home:
        results = replay(Path(home))
    page, scan_end = PAGE.read_text("utf-8"), ""
    for command, result in results:
        sys.stdout.write(f"$ {command.words}  ({result.code})\n{result.out}{result.err}\n")
        if command.shown:
            before, page = page.split(f"\n{command.shown}\n", 1)
            scan_end += f"{before}\n{excerpt(command.shown, result.out)}\n"
    PAGE.write_text(scan_end + page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
