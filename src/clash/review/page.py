"""The review page, in two forms: served locally, or as a file with its items inside."""

from __future__ import annotations

import hmac
import json
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clash import pages
from clash.escape import content_security_policy, pack
from clash.review.session import blinded_item, name_of
from clash.serving.server import LOCAL_SCRIPT, Page

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.review.tasks import ReviewTask

_FOLDER = Path(__file__).parent
FORMAT = "clash-review-2"


def live(run: str, annotator: str = "") -> Page:
    """The page that loads everything from the server; it holds no data of the run."""
    return _page(run, annotator, "", connect="'self'")


def static(run: str, tasks: Sequence[ReviewTask], secret: str, annotator: str = "") -> Page:
    """The page that holds its items without any candidate's name, and returns a file of decisions.

    The order of the sides follows from a key, which that file repeats, and a secret, which stays
    with the run. Only the run can tell which candidate was meant, whatever a person guesses.
    """
    key = secrets.token_hex(16)
    draw = _draw(tasks)
    contents = {
        "format": FORMAT,
        "run": run,
        "key": key,
        "draw": draw,
        "proof": proof(key, draw, secret),
        "items": [blinded_item(task, order(key, secret)) for task in tasks],
    }
    return _page(run, annotator, pack(json.dumps(contents).encode()), connect="'none'")


def _draw(tasks: Sequence[ReviewTask]) -> dict[str, Any] | None:
    """How the items were drawn, for the file to repeat; null where they were not."""
    draw = next((task.draw for task in tasks if task.draw is not None), None)
    return None if draw is None else {"seed": draw.seed, "equal": draw.equal}


def proof(key: str, draw: object, secret: str) -> str:
    """What shows that a page of this key and draw came from the run.

    Whoever returns a file could otherwise choose the draw in which its items come first.
    """
    text = json.dumps(["draw", key, draw], sort_keys=True)
    return hmac.new(secret.encode(), text.encode(), "sha256").hexdigest()


def order(key: str, secret: str) -> str:
    """The key that shuffles the sides, from the key in a page and the secret of its run."""
    return hmac.new(secret.encode(), key.encode("utf-8", "replace"), "sha256").hexdigest()


def _page(run: str, annotator: str, contents: str, *, connect: str) -> Page:
    css = pages.stylesheet(_FOLDER / "review.css")
    script = pages.script(LOCAL_SCRIPT, _FOLDER / "review.js")
    rules = content_security_policy(css, script, connect=connect)
    template = pages.templates(_FOLDER).get_template("review.html.j2")
    text = template.render(
        run=run,
        annotator=name_of(annotator) if annotator else "",
        held=contents,
        css=css,
        script=script,
        policy=rules,
    )
    return Page(text, f"{rules}; frame-ancestors 'none'")


def parse_returned_file(document: object) -> dict[str, Any] | None:
    """The content of a file returned by a page from disk; null where it is something else."""
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        return None
    is_complete = isinstance(document.get("key"), str) and isinstance(
        document.get("decisions"), list
    )
    return document if is_complete else None
