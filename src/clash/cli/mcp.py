from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clash.cli.options import Out


def mcp(
    out: Out = Path("runs"),
    max_cost: Annotated[
        float | None,
        typer.Option(
            "--max-cost",
            envvar="CLASH_MAX_COST",
            min=0,
            help="Total spending cap in US dollars for all evaluations of this server; default: "
            "0, so only judges that cost nothing can be used.",
        ),
    ] = None,
) -> None:
    """Serve evaluations to an agent over the Model Context Protocol, on stdin and stdout.

    `clash mcp --out runs --max-cost 2` is a command for the client to start, not for a person.
    """
    from clash.extras import require

    require("mcp")
    from clash.integrations.mcp_server import serve

    serve(out, max_cost or 0.0)
