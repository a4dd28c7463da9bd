"""The style sheet, script and templates of a page: the shared ones first, then its own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from clash.escape import inline_source, template_environment
from clash.pages.glossary import GLOSSARY, define, gloss, unbroken
from clash.pages.tokens import colour_rules

if TYPE_CHECKING:
    from jinja2 import Environment

_FOLDER = Path(__file__).parent


def stylesheet(*files: Path) -> str:
    """Colours, shared rules and the rules of these files, as the one style sheet of a page."""
    return colour_rules() + "".join(map(inline_source, (_FOLDER / "pages.css", *files)))


def script(*files: Path) -> str:
    """The shared behaviour (tooltips, printing) and these files, as the one script of a page.

    The files find elements, text and unpacking in ``dom``.
    """
    scripts = ("pages.js", "dom.js") if files else ("pages.js",)
    return "".join(map(inline_source, (*(_FOLDER / name for name in scripts), *files)))


def templates(folder: Path) -> Environment:
    """Templates of a folder, which may import the macros of ``parts.html.j2``.

    They escape every value. ``term`` of the macros explains one word; the filter ``gloss`` finds
    the terms of the glossary in a text, and ``unbroken`` keeps the names of a headline whole.
    """
    environment = template_environment(folder, _FOLDER)
    environment.globals |= {"define": define, "glossary": GLOSSARY.values()}
    environment.filters |= {"gloss": gloss, "unbroken": unbroken}
    return environment
