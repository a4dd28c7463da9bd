"""Brings pages that live beside `docs/` into the site, and points links at them.

The repository's front matter (changelog, security policy, …) stays where people look for it; the
site shows it under *Project*. Links from there into `docs/` and back are rewritten, so that a strict
build can check them all.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mkdocs.structure.files import File, Files

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent

OUTSIDE = {
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security-policy.md",
    "benchmarks/README.md": "project/benchmarks.md",
}
"""Path in the repository -> path of its page in the site."""

LINK = re.compile(r"(?<!!)\[([^\]\n]*)\]\(([^)\s#]+)(#[^)\s]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for path, page in OUTSIDE.items():
        if (ROOT / path).is_file():
            content = (ROOT / path).read_text(encoding="utf-8")
            files.append(File.generated(config, page, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Links to files beside `docs/`: to their page in the site, or the path as code if none."""
    uri = page.file.src_uri
    sources = {target: path for path, target in OUTSIDE.items()}
    record = sources.get(uri, f"docs/{uri}")

    def rewrite(match: re.Match[str]) -> str:
        text, target, anchor = match[1], match[2], match[3] or ""
        if "://" in target or target.startswith(("mailto:", "/")):
            return match[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(record), target))
        if path.startswith("docs/") and uri not in sources:
            return match[0]
        destination = OUTSIDE.get(
            path, path.removeprefix("docs/") if path.startswith("docs/") else None
        )
        if destination is None:
            if not (ROOT / path).exists():
                return match[0]  # the strict build names it
            return text if text.startswith("`") else f"{text} (`{path}`)"
        relative = posixpath.relpath(destination, posixpath.dirname(uri) or ".")
        return f"[{text}]({relative}{anchor})"

    return LINK.sub(rewrite, markdown)
