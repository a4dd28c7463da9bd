"""Escape text that others wrote, with one function for each output medium.

Names, responses, reasons, errors and paths may hold sequences that act on a reader's terminal,
forge, spreadsheet or browser. The output shows such sequences and runs none of them.
HTML is escaped by the templates of :func:`template_environment`; a page loads nothing from elsewhere.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
import zlib
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from jinja2 import Environment

INVISIBLE = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff"
)
"""Invisible characters, as a character set of a regular expression: controls, marks that change
the direction of text, blanks without width, and tags that carry text unseen.

Tab and line feed are left out, and so are joiners, which emoji and several scripts need.
"""

_INVISIBLE = re.compile(f"[{INVISIBLE}]")
_UNPRINTABLE = re.compile(f"[{INVISIBLE}\ud800-\udfff]")
_SEQUENCE = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[@-_]|[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#|&~]|\$(?!\d))")
_LIVE = re.compile(r"@|#\d|[!&~]\d|://|\bwww\.|\bGH-\d", re.IGNORECASE)
_TICKS = re.compile("`+")
_LOG_COMMAND = re.compile(r"^([^\S\n]*)::", re.MULTILINE)
_LATER_LOG_COMMAND = re.compile(r"(\n[^\S\n]*)::")
_FORMULA = re.compile("\\A'*[=+\\-@\t\r\uff1d\uff0b\uff0d\uff20]")


def visible(text: str) -> str:
    """The text with every invisible character written out, as ``[U+202E]``."""
    return _INVISIBLE.sub(lambda match: f"[U+{ord(match[0]):04X}]", text.replace("\r\n", "\n"))


def for_terminal(text: str) -> str:
    """Text without escape sequences, its other invisible characters written out."""
    visible_text = visible(_SEQUENCE.sub("", text))
    return _UNPRINTABLE.sub("\ufffd", visible_text)


def for_actions_log(text: str, *, starts_line: bool = True) -> str:
    """Text in which GitHub Actions finds no command: ``::error::``, or ``##[error]`` anywhere.

    Args:
        text: printed to the log of a step, where blanks before a command do not disarm it.
        starts_line: whether nothing but blanks stands before the text in its line.
    """
    lines = _LOG_COMMAND if starts_line else _LATER_LOG_COMMAND
    return lines.sub(r"\1: :", text).replace("##[", "# #[")


def for_json(text: str) -> str:
    """JSON whose invisible characters are escapes: the same data, harmless on a terminal."""
    return _UNPRINTABLE.sub(_as_escape, text)


def _as_escape(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))


def for_markdown(text: str) -> str:
    r"""One line without effect in Markdown: no markup, HTML, mention, reference, link or image.

    A backslash does not stop a forge from notifying ``@name`` or linking ``www.a.b``, because it
    looks for them in the rendered text. Only code is exempt, so words with such parts become code.
    """
    return " ".join(map(_word, visible(text).split()))


def _word(word: str) -> str:
    if not _LIVE.search(word):
        return _MARKDOWN.sub(r"\\\1", word)
    # A table cell ends at a bar even in code, unless there is a backslash before it.
    fence = "`" * (1 + max(map(len, _TICKS.findall(word)), default=0))
    pad = " " if fence != "`" else ""
    return f"{fence}{pad}{word.replace('|', chr(92) + '|')}{pad}{fence}"


def for_xml(text: str) -> str:
    """Text without the characters that XML cannot hold, even escaped, or that hide."""
    return _NOT_XML.sub("\ufffd", visible(text))


def for_csv(cell: str) -> str:
    """A cell that no spreadsheet computes: ``'`` precedes anything that could start a formula."""
    visible_cell = visible(cell)
    return f"'{visible_cell}" if _FORMULA.match(visible_cell) else visible_cell


def from_csv(cell: str) -> str:
    """The text of a cell that :func:`for_csv` wrote."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def for_workflow(text: str) -> str:
    """Text inside a GitHub workflow command, which ends at a line end."""
    visible_text = visible(text)
    return visible_text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


_LEVEL = 4  # two thirds of the time of zlib's default, for a page larger by 5%


def clip(text: str, length: int) -> str:
    """One line of at most ``length`` characters."""
    line = visible(" ".join(text.split()))
    return line if len(line) <= length else line[: length - 1] + "…"


def for_html(text: str) -> str:
    """A text or an attribute of a page: markup is inert, marks that cannot be seen are spelled out."""
    return html.escape(visible(text))


def pack(data: bytes) -> str:
    """Deflated data in base64, which cannot end a script element or start another."""
    return base64.b64encode(zlib.compress(data, _LEVEL)).decode()


def content_security_policy(
    css: str, script: str, *, connect: str = "'none'", frame: str = "'none'"
) -> str:
    """The content security policy of a page: its one script, its one style sheet, no loading.

    Trusted types keep the script from turning strings into markup, in browsers that support them.
    """
    return (
        f"default-src 'none'; script-src '{digest(script)}'; style-src '{digest(css)}';"
        f" connect-src {connect}; frame-src {frame}; base-uri 'none'; form-action 'none';"
        " require-trusted-types-for 'script'; trusted-types 'none'"
    )


def digest(text: str) -> str:
    """The hash of an inline element, as a content security policy names it."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def inline_source(file: Path) -> str:
    """The text of a script or style sheet that is put into the page."""
    return file.read_text(encoding="utf-8")


def template_environment(*folders: Path) -> Environment:
    """Templates of these folders that escape every value and write out its invisible characters."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(folders),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )


def _finalize(value: Any) -> Any:  # noqa: ANN401 - any value of a template
    return visible(value) if type(value) is str else value
