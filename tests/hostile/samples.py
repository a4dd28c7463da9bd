"""Files that an attacker would write: each costs a reader at most one message and exit code 2.

Every function writes its samples into a folder and returns them, for any test that wants to point
a command at them.
"""

from __future__ import annotations

import gzip
import json
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

DEEP = 200_000
LAUGHS = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 10)
)
"""Ten lines that stand for 9 ** 10 values."""

MANY_VALUES = b"[" + b"[]," * 600_000 + b"]"
"""YAML of 2 MB, which takes a hundred times that in memory once it is read."""

VOTE = b'{"item": "q1", "judge": "gpt", "vote": 1}\n'

YAML: Mapping[str, bytes] = {
    "deep-list": b"[" * DEEP,
    "deep-mapping": b"{a: " * DEEP,
    "deep-block": b"".join(b" " * n + b"-\n" for n in range(400)),
    "contains-itself": b"a: &a [*a]\n",
    "merges-itself": b"a: &a\n  <<: *a\n",
    "billion-laughs": LAUGHS.encode(),
    "merged-laughs": b"a0: &a0 {k: v}\n"
    + b"".join(b"a%d: &a%d {<<: [*a%d], l: [*a%d, *a%d]}\n" % (n, n, *[n - 1] * 3) for n in range(1, 40)),
    "long-number": b"- prompt: " + b"9" * 1_000_000,
    "sexagesimal": b"- prompt: 1" + b":10" * 100_000,
    "tagged-number": b"- prompt: !!int 1" + b":10" * 100_000,
    "month-13": b"- prompt: 2026-13-45\n",
    "python-tag": b"- prompt: !!python/object/apply:os.system [id]\n",
    "unknown-tag": b"- prompt: !secret x\n",
    "no-anchor": b"- prompt: *nowhere\n",
    "two-documents": b"- prompt: a\n---\n- prompt: b\n",
    "list-as-key": b"- ? [a]\n  : b\n",
    "key-twice": b"- prompt: a\n  prompt: b\n",
    "null-byte": b"- prompt: a\x00b\n",
    "utf-16": "- prompt: a\n".encode("utf-16"),
    "latin-1": "- prompt: Zürich\n".encode("latin-1"),
    "surrogate": b'- prompt: "\\ud800"\n  responses: 3\n',
}  # fmt: skip

JSONL: Mapping[str, bytes] = {
    "deep-list": b'{"prompt": ' + b"[" * DEEP + b"\n",
    "deep-object": b'{"prompt": ' * DEEP + b"1" + b"}" * DEEP + b"\n",
    "deep-150": b'{"item": "q", "judge": "a", "vote": ' + b"[" * 150 + b"]" * 150 + b"}\n",
    "long-number": b'{"item": "q", "judge": "a", "vote": ' + b"9" * 5_000 + b"}\n",
    "bare-list": b"[1, 2]\n",
    "key-twice": b'{"item": "q", "judge": "a", "vote": 1, "prompt": "x", "vote": 0, "prompt": "y"}\n',
    "truncated": b'{"item": "q", "judge": "a", "vote',
    "latin-1": '{"prompt": "Zürich"}\n'.encode("latin-1"),
    "null-bytes": b"\x00" * 100_000,
    "empty": b"",
}

CSV: Mapping[str, bytes] = {
    "million-columns": b"item,judge,vote,prompt" + b",x" * 1_000_000 + b"\n" + b"q\n" * 10_000,
    "distinct-columns": b"item,judge," + b",".join(b"c%d" % n for n in range(300_000)) + b"\nq\n" * 9_999,
    "unclosed-quote": b'item,judge,vote,prompt\nq,"' + b"x\n" * 9_000_000,
    "column-twice": b"item,judge,vote,vote,prompt,prompt\nq,a,1,0,x,y\n",
    "more-cells": b"item,judge,vote,prompt\nq,a,1,x,y,z\n",
    "no-text": b"item,judge,vote,prompt\nq,a,\xff,x\n",
}  # fmt: skip

GZIP: Mapping[str, bytes] = {
    "zeros": gzip.compress(b"\x00" * 120_000_000, 9, mtime=0),
    "votes": gzip.compress(VOTE * 3_000_000, 9, mtime=0),
    "truncated": gzip.compress(VOTE * 1_000, 9, mtime=0)[:-20],
    "changed": gzip.compress(VOTE * 1_000, 9, mtime=0)[:-8] + b"\x00" * 8,
    "plain": VOTE,
}


def write(folder: Path, bodies: Mapping[str, bytes], suffix: str) -> list[Path]:
    """One file for each body."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, body in bodies.items():
        path = folder / f"{name}{suffix}"
        path.write_bytes(body)
        paths.append(path)
    return paths


def no_files(folder: Path, suffix: str) -> list[Path]:
    """What a name may stand for that is no file to read, or no end of one."""
    folder.mkdir(parents=True, exist_ok=True)
    names = ("pipe", "endless", "loop", "nowhere", "folder", "sparse")
    pipe, endless, loop, nowhere, inside, sparse = (folder / f"{n}{suffix}" for n in names)
    os.mkfifo(pipe)
    endless.symlink_to("/dev/zero")
    loop.symlink_to(loop)
    nowhere.symlink_to(folder / "not-there")
    inside.mkdir()
    with sparse.open("wb") as file:
        file.truncate(3_000_000_000)
    return [pipe, endless, loop, nowhere, inside, sparse]


NAMES = (
    '=HYPERLINK("http://evil.example","ok")',
    "@SUM(1+1)*cmd|' /C calc'!A0",
    "\uff1d1+1",
    "a\u202egpj.exe",
    "b\u200bc\u2066d",
    "\x1b]0;owned\x07\x1b[2Je",
    "\x9b31mf",
    "@everyone #1 GH-2 owner/repo#3 a@b.example",
    "![x](http://evil.example/p.png) <img src=x onerror=alert(1)> www.evil.example",
    "[red]g[/] ::error::h%0A` | ``|\\` </script>",
)
"""What somebody may call a model, an item or a judge, to reach whoever reads the report."""


def prompts_with_names(path: Path) -> Path:
    """A prompts file whose ids, candidates and tags are such names."""
    first, second = NAMES[0], NAMES[-1]
    lines = [
        {
            "id": name,
            "prompt": f"What is {name}?",
            "tags": [name],
            "responses": {first: f"It is {name}, surely.", second: "No. " * (number + 1)},
            "label": first,
        }
        for number, name in enumerate(NAMES)
    ]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return path


SPOILT: Mapping[str, Callable[[Path], None]] = {
    "item-removed": lambda run: _lines(run / "items.jsonl", lambda lines: lines[1:]),
    "pages-removed": lambda run: _lines(run / "blinding.jsonl", lambda lines: lines[1:]),
    "pages-emptied": lambda run: _each(run / "blinding.jsonl", labels={}),
    "unknown-label": lambda run: _each(run / "judgments.jsonl", ranking=[["A9"], ["A0"]]),
    "label-twice": lambda run: _each(run / "judgments.jsonl", ranking=[["A0", "A0"]]),
    "deep-line": lambda run: _lines(run / "calls.jsonl", lambda _: ["[" * DEEP]),
    "no-text": lambda run: (run / "responses.jsonl").write_bytes(b"\xff\xfe\x00" * 99),
    "panel-emptied": lambda run: _manifest(run, panel={}),
    "panel-of-lists": lambda run: _manifest(run, panel={"judges": [[]], "quorum": "x"}),
    "family-of-objects": lambda run: _manifest(run, candidates=[{"id": {}, "family": {}}]),
    "config-of-lists": lambda run: _manifest(run, config={"blinding": [], "aggregate": []}),
    "deep-manifest": lambda run: _write(run / "manifest.json", "[" * DEEP),
    "deep-report": lambda run: _write(run / "report.json", "[" * DEEP),
}
"""What somebody may have done to a run folder before passing it on."""


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def _lines(path: Path, change: Callable[[list[str]], list[str]]) -> None:
    _write(path, "".join(f"{line}\n" for line in change(path.read_text("utf-8").splitlines())))


def _each(path: Path, **fields: object) -> None:
    _lines(path, lambda lines: [json.dumps({**json.loads(line), **fields}) for line in lines])


def _manifest(run: Path, **fields: object) -> None:
    path = run / "manifest.json"
    _write(path, json.dumps({**json.loads(path.read_text("utf-8")), **fields}))
