from __future__ import annotations

import os
from pathlib import Path

import typer

from clash.cli.common import AsJson, Out, Quiet, RunId, Verbose


def demo(
    out: Out = Path("runs"),
    run_id: RunId = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """The quickstart: 32 prompts with ready responses, judged offline, no key, in seconds."""
    from clash import assets
    from clash.collect.resolve import KEYLESS_PANEL
    from clash.pipeline import execute as pipeline
    from clash.pipeline import prepare as beginning

    overrides = {"panel": KEYLESS_PANEL, "prompts": str(assets.path("datasets", "quickstart.yaml"))}
    # A clash.yaml that happens to lie here is not part of the demonstration.
    made = beginning.prepare(None, overrides, {}, ignore_config=True)
    raise typer.Exit(
        pipeline.launch(
            made,
            os.environ,
            kind="eval",
            out=out,
            run_id=run_id,
            as_json=as_json,
            quiet=quiet,
            whole=verbose,
        )
    )
