"""The command line: parse, call, print. One module a command."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run ``clash``; errors of ours become a message and an exit code, never a traceback."""
    from clash.cli.app import run

    code = run(sys.argv[1:])
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader left (`clash report | head`); what is still held back has nowhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)
