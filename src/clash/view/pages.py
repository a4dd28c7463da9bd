"""The pages of the view server that hold no data, and the one for what went wrong."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup

from clash import pages
from clash.escape import content_security_policy
from clash.report.drawing import svg
from clash.serving.server import LOCAL_SCRIPT, Page

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jinja2 import Environment

    from clash.view.comparison import ComparisonView

_FOLDER = Path(__file__).parent


def run_list_page() -> Page:
    """The list of runs, which asks for its rows."""
    return _page("runs.html.j2", ("runs.js",))


def live_page(run: str, key: str) -> Page:
    """One run while it goes on.

    Args:
        run: its name.
        key: what the page names the run by.
    """
    return _page("live.html.j2", ("live.js",), run=run, key=key)


def comparison_page(view: ComparisonView, links: Sequence[str] = ()) -> Page:
    """Runs beside each other.

    Args:
        view: what changed.
        links: the addresses of the runs, on a server that also lists them.
    """
    label = "Change of each candidate's win rate in points, with 95% intervals"
    chart = pages.interval_chart(view.rows, view.axis, label=label, large=True) if view.rows else ""
    gradient = "" if view.gradient is None else Markup(svg(view.gradient))  # noqa: S704 - escaped
    return _page(
        "compare.html.j2", (), view=view, links=list(links), chart=chart, gradient=gradient
    )


def problem_page(message: str) -> Page:
    """What went wrong, and the way back."""
    lines = message.splitlines()
    return _page("problem.html.j2", (), title="This run cannot be shown", lines=lines)


def _page(template: str, scripts: tuple[str, ...], **values: object) -> Page:
    css = pages.stylesheet(_FOLDER / "view.css")
    files = [LOCAL_SCRIPT, _FOLDER / "chart.js", *(_FOLDER / name for name in scripts)]
    script = pages.script(*files) if scripts else pages.script()
    policy = content_security_policy(css, script, connect="'self'" if scripts else "'none'")
    text = _templates().get_template(template).render(
        css=css, script=script, policy=policy, **values
    )  # fmt: skip
    return Page(text, f"{policy}; frame-ancestors 'none'")


@cache
def _templates() -> Environment:
    return pages.templates(_FOLDER)
