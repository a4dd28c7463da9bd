"""The command line: parse, call, print. One module a command."""

from __future__ import annotations

import sys


def main() -> None:
    """Run ``clash``; errors of ours become a message and an exit code, never a traceback."""
    from clash.cli.app import run

    sys.exit(run(sys.argv[1:]))
