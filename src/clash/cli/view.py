from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clash.errors import InputError


def view(
    folder: Annotated[
        Path,
        typer.Argument(envvar="CLASH_OUT", help="A folder of runs, or one run.", metavar="FOLDER"),
    ] = Path("runs"),
    browse: Annotated[bool, typer.Option("--open/--no-open", help="Open the browser.")] = True,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0: any free one.")] = 0,
) -> None:
    """Show the runs of a folder in the browser: headlines, reports, comparisons, and runs going on.

    The page is served to this machine alone, until Ctrl-C.
    """
    from clash.cli.browser import serve
    from clash.store import layout
    from clash.view.server import ViewServer

    if not folder.is_dir():
        hint = "`clash demo` makes a run in runs/"
        raise InputError("there is no such folder", path=folder, hint=hint)
    is_run = (folder / layout.MANIFEST).exists()
    server = ViewServer(folder.resolve().parent if is_run else folder, port)
    url = server.run_url(folder.resolve()) if is_run else server.url
    serve(server, url, browse=browse)
