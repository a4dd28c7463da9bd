"""Audit of ``report.md`` and ``report.html``: render them again from the records and compare."""

from __future__ import annotations

import base64
import json
import re
import zlib
from pathlib import PurePath
from typing import TYPE_CHECKING

from clash.analysis.recheck import no_report
from clash.analysis.retest import retest
from clash.analysis.rundata import RunData
from clash.analysis.serialize import to_dict
from clash.errors import RunFolderError
from clash.files import run_files
from clash.report import markdown
from clash.report.headline import run_headline
from clash.report.html.report_page import END_OF_PARENT, OF_PARENT, render_report
from clash.report.retest import tables, title_of
from clash.store import layout
from clash.store.audit import BROKEN, AuditGap, finding
from clash.store.folder import RunFolder
from clash.store.manifest import other_versions
from clash.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from clash.analysis.findings import Findings
    from clash.store.audit import AuditFinding

_TIMES = 4
"""How many times as long as the expected page a page may be, packed and unpacked. No other version
of clash or zlib writes a longer one; a forged page may fill the disk, and unpack to a thousand times
its size."""
_ROOM = 1 << 20
_NO_LIMIT = 1 << 50
_BLOCK = re.compile(r'(<script type="text/plain" id="[\w-]+">)([A-Za-z0-9+/=]+)(</script>)')
_DIRECTIONS = re.compile(r'(<script type="text/plain" id="beside">|data-key=")[^<"]*')
# The pattern stops where another comment begins. Without that, a page with many unclosed parts
# would be read to its end once for each of them.
_OF_PARENT = re.compile(rf"{OF_PARENT}\n[^<]*+(?:<(?!!--)[^<]*+)*+{END_OF_PARENT}\n")


def audit_pages(folder: RunFolder, run: RunData, findings: Findings) -> Iterator[AuditFinding]:
    """Compare ``report.md`` and ``report.html`` with what follows from the records.

    Another version of clash, or of the libraries that fit its models, may render them otherwise: a
    difference is then reported as one that could not be checked.
    """
    unless = other_versions(run.manifest)
    yield finding(
        "report.md shows the report", _markdown_problems(folder, run, findings), unless=unless
    )
    yield finding(
        "report.html shows the report", _html_problems(folder, run, findings), unless=unless
    )
    yield finding(
        "report.json states the headline", _headline_problems(folder, findings), unless=unless
    )
    if any(
        run_files.is_file(folder.path / name) for name in (layout.RETEST_JSON, layout.RETEST_MD)
    ):
        yield finding("the retest report follows from its runs", _retest_gaps(folder, run))


def _markdown_problems(
    folder: RunFolder, run: RunData, findings: Findings
) -> Iterator[str | AuditGap]:
    expected_text = markdown.render_report(findings, run.verdicts)
    yield from _compare_file(folder, run, layout.REPORT_MD, expected_text)


def _headline_problems(folder: RunFolder, findings: Findings) -> Iterator[str | AuditGap]:
    """Earlier versions stated none; a report that is missing is found elsewhere."""
    path = folder.path / layout.REPORT_JSON
    if not run_files.is_file(path):
        return
    on_disk = json.loads(run_files.read(path)).get("headline")
    if on_disk is None:
        yield AuditGap(f"{path.name} was written without a headline")
    elif on_disk != run_headline(findings).as_json():
        yield f"{path.name} has a different headline"


def _html_problems(folder: RunFolder, run: RunData, findings: Findings) -> Iterator[str | AuditGap]:
    """Blocks are compared unpacked, for another build of zlib packs otherwise."""
    page = render_report(findings, run, folder.path)
    yield from _compare_file(folder, run, layout.REPORT_HTML, page.html)
    data_page = folder.path / layout.REPORT_DATA
    if page.data_html is not None:
        yield from _data_page_problems(folder, run, page.data_html)
    elif run_files.is_file(data_page):
        yield f"{data_page.name} belongs to another report: this one has all items in its page"


def _data_page_problems(
    folder: RunFolder, run: RunData, expected_parts: Callable[[], Iterator[str]]
) -> Iterator[str | AuditGap]:
    """Compare the page of the items line by line: it is as large as all that it holds."""
    path = folder.path / layout.REPORT_DATA
    if not run_files.is_file(path):
        yield from no_report(run, path.name)
        return
    if path.lstat().st_size > _TIMES * sum(map(len, expected_parts())) + _ROOM:
        yield f"{path.name} is much longer than the report that follows from the records"
        return
    with run_files.open_to_read(path) as file:
        for number, expected_line in enumerate(_lines(expected_parts()), start=1):
            line = file.readline(_TIMES * len(expected_line) + _ROOM)
            # Another build of zlib packs a block otherwise.
            if line != expected_line.encode() and (
                not line or _first_difference("", line.decode(errors="replace"), expected_line)
            ):
                yield f"{path.name}:{number} does not follow from the records"
                return
        if file.read(1):
            yield f"{path.name} has extra lines"


def _lines(parts: Iterator[str]) -> Iterator[str]:
    """The lines of a text that comes in parts, each with its line end."""
    tail: list[str] = []
    for part in parts:
        *lines, start = part.split("\n")
        for line in lines:
            yield "".join((*tail, line, "\n"))
            tail = []
        tail.append(start)
    if any(tail):
        yield "".join(tail)


def _retest_gaps(folder: RunFolder, data: RunData) -> Iterator[AuditGap]:
    """Differences count as gaps only: the retest follows from other folders, which may have grown."""
    try:
        record = json.loads(run_files.read(folder.path / layout.RETEST_JSON))
        runs = [str(line["run"]) for line in record["runs"]]
        result = retest([_load_sibling(folder, data, run) for run in runs])
        text = run_files.read(folder.path / layout.RETEST_MD).decode()
    except (*BROKEN, OSError) as error:
        yield AuditGap(f"cannot be recomputed: {str(error).partition(chr(10))[0]}")
        return
    expected_record = {"clash": __version__, **to_dict(result)}
    if record != json.loads(json.dumps(expected_record)):
        yield AuditGap(f"{layout.RETEST_JSON} does not follow from its runs")
    if text != markdown.render_comparison(title_of(runs), tables(result), runs):
        yield AuditGap(f"{layout.RETEST_MD} does not follow from its runs")


def _load_sibling(folder: RunFolder, run: RunData, name: str) -> RunData:
    if name == folder.path.name:
        return run
    if name in ("", "..") or name != PurePath(name).name:
        raise RunFolderError(f"{name!r} is not the name of a run")
    return RunData.load(RunFolder(folder.path.parent / name))


def _compare_file(
    folder: RunFolder, run: RunData, name: str, expected_text: str
) -> Iterator[str | AuditGap]:
    path = folder.path / name
    if not run_files.is_file(path):
        yield from no_report(run, name)
        return
    most = _TIMES * len(expected_text.encode()) + _ROOM
    if path.lstat().st_size > most:
        yield f"{name} is much longer than the report that follows from the records"
        return
    text = run_files.read(path, most=most).decode(errors="replace")
    if text == expected_text:
        return
    problem = _first_difference(name, text, expected_text)
    if problem is None:
        return
    if run.manifest.parent is not None:
        # What a rerun says of its parent follows from another folder, whose labels may have grown.
        problem = _first_difference(
            name, _OF_PARENT.sub("", text), _OF_PARENT.sub("", expected_text)
        )
    parent = run.manifest.parent
    yield problem or AuditGap(
        f"the comparison with {parent} in {name} does not follow from that run"
    )


def _first_difference(name: str, actual_page: str, expected_page: str) -> str | None:
    """The first line where two pages differ, with their packed blocks unpacked; null where none."""
    expected_unpacked = _unpack_blocks(expected_page)
    lines = (
        _unpack_blocks(actual_page, _TIMES * len(expected_unpacked) + _ROOM).splitlines(),
        expected_unpacked.splitlines(),
    )
    for number, (line, expected_line) in enumerate(zip(*lines, strict=False), start=1):
        if line != expected_line:
            return f"{name}:{number} does not follow from the records"
    return None if len(lines[0]) == len(lines[1]) else f"{name} has extra lines"


def _unpack_blocks(page: str, most: int = _NO_LIMIT) -> str:
    """The page with its blocks unpacked, as far as they come to ``most`` characters together."""
    room = most

    def unpack(block: re.Match[str]) -> str:
        nonlocal room
        text = _inflate(block[2], room)
        if text is None:
            return block[0]  # not a block that clash packed: compared as it is
        room -= len(text)
        return block[1] + text + block[3]

    return _BLOCK.sub(unpack, _DIRECTIONS.sub(r"\1", page))


def _inflate(block: str, room: int) -> str | None:
    """The text of a block; null where it is not packed text or exceeds ``room`` bytes."""
    unpacker = zlib.decompressobj()
    try:
        # One byte more than there is room for, since to zlib 0 means no limit.
        data = unpacker.decompress(base64.b64decode(block), max(room, 0) + 1)
    except (ValueError, zlib.error):
        return None
    complete = unpacker.eof and len(data) <= room
    return data.decode(errors="replace") if complete else None
