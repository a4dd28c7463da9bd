"""The command line in a process of its own, against a server on the loopback that answers."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from clash.cli import app as cli
from wire.answers import labels, schema_of, with_code

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from wire import VendorRequest, WireServer

_RESPONSE = re.compile(r'<response label="(A\d+)"[^>]*>\n(.*?)\n</response', re.DOTALL)
PRICE = {"input": 1.0, "output": 10.0}
"""Dollars per million tokens, where a test wants the price to be known."""


@dataclass(frozen=True)
class CommandResult:
    """A command that has ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """The one object on stdout; anything else there is an error."""
        record = json.loads(self.out)
        assert isinstance(record, dict)
        return record


@dataclass(frozen=True)
class Folder:
    """A run folder, as plain data."""

    path: Path

    def lines(self, name: str) -> list[dict[str, Any]]:
        file = self.path / f"{name}.jsonl"
        return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]

    @property
    def manifest(self) -> dict[str, Any]:
        return json.loads((self.path / "manifest.json").read_text(encoding="utf-8"))

    @property
    def report(self) -> dict[str, Any]:
        return json.loads((self.path / "report.json").read_text(encoding="utf-8"))

    @property
    def winners(self) -> dict[str, str | None]:
        return {verdict["item_id"]: verdict["winner"] for verdict in self.lines("verdicts")}

    def judgments(self, judge: str | None = None) -> list[dict[str, Any]]:
        """The judgments that count: where a resumed run asked again, the last."""
        last = {(j["item_id"], j["presentation"], j["judge"]): j for j in self.lines("judgments")}
        return [j for j in last.values() if judge in (None, j["judge"])]

    def attempts(self, judge: str) -> list[dict[str, Any]]:
        return [call for call in self.lines("calls") if call["judge"] == judge]

    def answered(self) -> list[str]:
        return [call["call_id"] for call in self.lines("calls") if call["outcome"] != "error"]


@dataclass
class Lab:
    """A folder to work in, a server that answers, and the environment with its keys."""

    path: Path
    server: WireServer
    environ: dict[str, str] = field(default_factory=dict)

    def __call__(self, *words: object, timeout: float = 240, **environ: str) -> CommandResult:
        """``clash WORDS`` to its end."""
        with self.start(*words, **environ) as process:
            out, err = process.communicate(timeout=timeout)
        assert "Traceback" not in err, err
        return CommandResult(process.returncode, out, err)

    def here(self, *words: object, **environ: str) -> CommandResult:
        """``clash WORDS`` in this process: quicker, for what needs no process of its own."""
        out, err = io.StringIO(), io.StringIO()
        before, folder = dict(os.environ), Path.cwd()
        os.environ.clear()
        os.environ.update({**_BARE, "HOME": str(self.path), **self.environ, **environ})
        os.chdir(self.path)
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = cli.run([str(word) for word in words])
        finally:
            os.chdir(folder)
            os.environ.clear()
            os.environ.update(before)
        return CommandResult(code, out.getvalue(), err.getvalue())

    def judged(self, *words: object, run: str = "run", code: int = 0, **environ: str) -> Folder:
        """``clash eval WORDS`` in this process, into ``runs/RUN``."""
        result = self.here("eval", *words, "--run-id", run, "--yes", **environ)
        assert result.code == code, (result.code, result.out, result.err)
        return self.folder(run)

    def resumed(self, *words: object, code: int = 0, **environ: str) -> Folder:
        """``clash resume runs/run`` in this process."""
        result = self.here("resume", "runs/run", *words, **environ)
        assert result.code == code, (result.code, result.out, result.err)
        return self.folder()

    def start(
        self,
        *words: object,
        program: tuple[object, ...] = ("-m", "clash"),
        on: int | None = None,
        preexec_fn: Callable[[], None] | None = None,
        **environ: str,
    ) -> subprocess.Popen[str]:
        """``clash WORDS``, begun; ``on`` is the descriptor of a terminal of its own."""
        return subprocess.Popen(
            [sys.executable, *map(str, (*program, *words))],
            cwd=self.path,
            env={**_BARE, "HOME": str(self.path), **self.environ, **environ},
            stdin=subprocess.DEVNULL if on is None else on,
            stdout=subprocess.PIPE if on is None else on,
            stderr=subprocess.PIPE if on is None else on,
            start_new_session=on is not None,
            preexec_fn=preexec_fn,
            text=True,
            encoding="utf-8",
        )

    def eval(self, *words: object, code: int = 0, **environ: str) -> Folder:
        """``clash eval WORDS`` into ``runs/run``; fails where the exit code is another."""
        result = self("eval", *words, "--run-id", "run", "--yes", **environ)
        assert result.code == code, (result.code, result.out, result.err)
        return self.folder()

    def resume(self, *words: object, code: int = 0, **environ: str) -> Folder:
        """``clash resume runs/run``."""
        result = self("resume", "runs/run", *words, **environ)
        assert result.code == code, (result.code, result.out, result.err)
        return self.folder()

    def folder(self, name: str = "run") -> Folder:
        return Folder(self.path / "runs" / name)

    def write(self, name: str, value: Any) -> Path:
        """A YAML file, or a text as it stands."""
        file = self.path / name
        text = value if isinstance(value, str) else yaml.safe_dump(value, sort_keys=False)
        file.write_text(text, encoding="utf-8")
        return file

    def prompts(
        self, n: int = 3, candidates: tuple[str, ...] = ("ada", "bob"), **more: Any
    ) -> Path:
        """``n`` prompts; each candidate's response holds its name and nothing else of note."""
        records = [
            {
                "id": f"q{i}",
                "prompt": f"Question {i}?",
                "responses": {name: f"{name} says {i * 7} to it." for name in candidates},
                **more,
            }
            for i in range(n)
        ]
        if not candidates:
            records = [{k: v for k, v in e.items() if k != "responses"} for e in records]
        return self.write("prompts.yaml", records)

    def panel(self, *judges: str | Mapping[str, Any], name: str = "panel", **fields: Any) -> Path:
        """A panel of models (``openrouter/x``) or of whole entries."""
        records = [{"model": judge} if isinstance(judge, str) else dict(judge) for judge in judges]
        records = [{"id": e["model"].rpartition("/")[2], **e} for e in records]
        return self.write(f"{name}.yaml", {"name": name, "judges": records, **fields})

    def wait_for(self, ready: Callable[[], bool], process: subprocess.Popen[str]) -> None:
        """Until ``ready``, or the process has ended."""
        deadline = time.monotonic() + 240
        while not ready() and process.poll() is None:
            assert time.monotonic() < deadline, "nothing happened for 30 s"
            time.sleep(0.002)


_BARE = {
    **{
        name: os.environ[name]
        for name in ("PATH", "PYTHONPATH", "SYSTEMROOT")
        if name in os.environ
    },
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "PYTHONWARNINGS": "error::ResourceWarning",
    "COLUMNS": "100",
}


def prefers(key: Callable[[str], float], *, score: Callable[[str], int] = lambda _: 3) -> Any:
    """An answering function: a judge that ranks by ``key`` of a text, equal keys tied."""

    def answer(request: VendorRequest) -> str:
        fields = dict(_RESPONSE.findall(request.prompt))
        names = labels(schema_of(request))
        keys = sorted({key(fields[name]) for name in names}, reverse=True)
        groups = [[n for n in names if key(fields[n]) == k] for k in keys]
        criteria = schema_of(request)["properties"].get("scores")
        if criteria is None:
            return json.dumps(with_code({"ranking": groups}, request))
        ids = list(criteria["properties"][names[0]]["properties"])
        rows = {
            name: {c: {"score": score(fields[name]), "reason": "so it seems"} for c in ids}
            for name in names
        }
        return json.dumps(with_code({"scores": rows, "ranking": groups}, request))

    return answer
