"""Whether the page of a run is the one that its records make: drawn anew and compared."""

from __future__ import annotations

import base64
import re
import zlib
from typing import TYPE_CHECKING

from clash import files
from clash.report.html.more import RETEST
from clash.report.html.page import document, key
from clash.store import layout
from clash.store.manifest import versions

if TYPE_CHECKING:
    from clash.analysis.findings import Findings
    from clash.analysis.rundata import RunData
    from clash.store.folder import RunFolder

_LARGEST = 1 << 29
"""Bytes of a page: far more than a browser opens."""
_DECIDING = ("clash", "numpy", "scipy")
_BLOCK = re.compile(r'(<script type="text/plain" id="[\w-]+">)([A-Za-z0-9+/=]+)(</script>)')
_DIRECTIONS = re.compile(r'(<script type="text/plain" id="beside">|data-key=")[^<"]*')
_RETEST = re.compile(
    rf'<a href="#{key(RETEST)}">[^<]*</a>\n|<section id="{key(RETEST)}".*?</section>\n', re.DOTALL
)


def redrawn(folder: RunFolder, data: RunData, found: Findings) -> str | None:
    """What is wrong with the pages of a run, or null.

    Blocks are compared unpacked, for another build of zlib packs otherwise. What a rerun says of
    its parent is left out: it follows from another folder, whose labels may have grown. Not
    compared are pages of runs that were sealed without one, or under another version of clash or
    of what fits its models, which may round the last digit of a coupling otherwise.
    """
    sealed, here = folder.manifest(), versions()
    same = all(sealed.versions.get(name) == here.get(name) for name in _DECIDING)
    if layout.REPORT_HTML not in sealed.files or not same:
        return None
    made = document(found, data, folder.path)
    pages = {layout.REPORT_HTML: made.page, layout.REPORT_DATA: made.data}
    for name, drawn in pages.items():
        problem = _differs(folder, name, drawn)
        if problem is not None:
            return problem
    return None


def _differs(folder: RunFolder, name: str, drawn: str | None) -> str | None:
    path = folder.path / name
    if not files.is_file(path):
        return None if drawn is None else f"{name} is missing"
    if drawn is None:
        return f"{name} is of another report: this one has all items in its page"
    text = files.read(path, most=_LARGEST).decode(errors="replace")
    written = _bare(text).splitlines()
    follows = _bare(drawn).splitlines()
    for number, (there, here) in enumerate(zip(written, follows, strict=False), start=1):
        if there != here:
            return f"{name}:{number} is not what the records make of it"
    return None if len(written) == len(follows) else f"{name} has lines of its own"


def _bare(page: str) -> str:
    return _BLOCK.sub(_unpacked, _DIRECTIONS.sub(r"\1", _RETEST.sub("", page)))


def _unpacked(found: re.Match[str]) -> str:
    try:
        text = zlib.decompress(base64.b64decode(found[2])).decode(errors="replace")
    except (ValueError, zlib.error):
        return found[0]  # nothing that we packed: it differs as it is
    return found[1] + text + found[3]
