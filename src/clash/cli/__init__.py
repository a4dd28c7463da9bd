"""The command line: parse, call, print. One module a command."""

from __future__ import annotations

import gc
import sys

from clash.cli import streams

_YOUNG = 20_000


def main() -> None:
    """Run ``clash``; errors of ours become a message and an exit code, never a traceback."""
    from clash.cli.app import run

    sys.stdout, sys.stderr = streams.patient(sys.stdout), streams.patient(sys.stderr)
    streams.guard()
    # A run holds many small objects for long and makes few cycles: looking for them at the default
    # of every 700 costs a tenth of its time. At 50,000 a report of 5,000 items takes 11 MB more.
    gc.set_threshold(_YOUNG)
    code = run(sys.argv[1:])
    # What is left ends with the process. Looking through it for cycles takes longer than to say --help.
    gc.freeze()
    failure = streams.failure(sys.stdout)
    if failure is not None:
        sys.stderr.write(f"error: stdout: cannot be written ({failure.strerror})\n")
    sys.exit(code or (2 if failure is not None else 0))
