from __future__ import annotations

import os
from typing import Annotated

import typer

from clash.cli.common import AsJson, ConfigFile, EnvFile, TrustHost


def doctor(
    panel: Annotated[
        str | None,
        typer.Option("--panel", "-p", help="Check this panel instead of all shipped ones."),
    ] = None,
    models: Annotated[
        str | None, typer.Option("--models", "-m", help="Check these models too: provider/model,…")
    ] = None,
    ping: Annotated[
        bool, typer.Option("--ping", help="Ask each model for one word (costs a little).")
    ] = False,
    config: ConfigFile = None,
    env_file: EnvFile = None,
    trust_host: TrustHost = None,
    as_json: AsJson = False,
) -> None:
    """Check keys, addresses, models, prices and disk; never prints a key."""
    from clash.cli.common import print_json, stdout
    from clash.collect import checkup
    from clash.collect.resolve import load_environ
    from clash.report.tables import Table
    from clash.report.terminal import show_table

    environ = load_environ(os.environ, env_file, trust_host or ())
    found = list(checkup.run(config, panel, models, environ, ping=ping))
    bad = any(finding.level == "bad" for finding in found)
    if as_json:
        print_json({"ok": not bad, "findings": [finding.as_json() for finding in found]})
    else:
        columns = ["", "what", "is", "mend"]
        rows = [[f.level, f.subject, f.says, f.mend] for f in found]
        show_table(stdout(), Table("clash doctor", columns, rows))
    raise typer.Exit(1 if bad else 0)
