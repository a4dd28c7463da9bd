from __future__ import annotations

from typing import Annotated

import typer

from clash.cli.common import print_json, print_line
from clash.cli.options import AsJson
from clash.errors import ConfigError


def trust(
    variable: Annotated[
        str | None, typer.Argument(help="The NAME of the variable that holds the key.")
    ] = None,
    host: Annotated[
        str | None, typer.Argument(help="gateway.example, gateway.example:8443, http://10.0.0.5.")
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Withdraw the permission.")] = False,
    as_json: AsJson = False,
) -> None:
    """Allow a key for a server that is not its vendor's; alone, list what is allowed.

    `clash trust GATEWAY_KEY gateway.example`
    """
    from clash.secrets.destinations import destination_named, read_confirmed, write_confirmed

    destinations = set(read_confirmed())
    if variable is not None and host is not None:
        destination = destination_named(variable, host)
        if remove and destination not in destinations:
            raise ConfigError(
                f"{destination} was not confirmed",
                field="--remove",
                hint="`clash trust` lists what is",
            )
        destinations = destinations - {destination} if remove else destinations | {destination}
        write_confirmed(destinations)
    elif variable is not None or remove:
        raise ConfigError("names no host", field="HOST", hint="clash trust VARIABLE HOST")
    if as_json:
        records = [{"variable": d.variable, "server": d.server} for d in sorted(destinations)]
        print_json({"confirmed": records})
        return
    for where in sorted(destinations):
        print_line(str(where))
    if not destinations:
        print_line("nothing is confirmed: keys go to their vendors' own servers only")
