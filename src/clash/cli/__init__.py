"""The command line: parse, call, print. One module a command."""

from __future__ import annotations

import gc
import os
import sys

_YOUNG = 10_000


def main() -> None:
    """Run ``clash``; errors of ours become a message and an exit code, never a traceback."""
    from clash.cli.app import run

    # A run holds many small objects for long and makes few cycles: looking for them at the default
    # of every 700 costs a twentieth of its time.
    gc.set_threshold(_YOUNG)
    code = run(sys.argv[1:])
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader left (`clash report | head`); what is still held back has nowhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)
