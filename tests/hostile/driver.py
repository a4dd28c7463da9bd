"""Runs command lines of clash one after the other, in little memory, and says what each did.

A process of its own: what it listens to (:func:`sys.addaudithook`) cannot be taken off again, and a
pattern that never returns is ended from outside, by the alarm.
"""

from __future__ import annotations

import contextlib
import io
import json
import resource
import signal
import sys
import time

SECONDS, MEGABYTES = 60, 1_400
STARTED = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "pty.spawn")
"""Events of a process that starts another."""


def main() -> None:
    from clash.cli.app import run

    events: list[str] = []

    def listen(event: str, args: tuple[object, ...]) -> None:
        if event.startswith(STARTED):
            events.append(f"{event} {args}")
        elif event == "socket.connect":
            events.append(f"connect {args[1:]}")

    sys.addaudithook(listen)
    resource.setrlimit(resource.RLIMIT_DATA, (MEGABYTES << 20,) * 2)
    for line in sys.stdin:
        words = json.loads(line)
        out = io.StringIO()
        events.clear()
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        began = time.process_time()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            try:
                code: object = run(words)
            except BaseException as error:  # noqa: BLE001 - whatever it is, it is told
                code = f"{type(error).__name__}: {error}"
        cpu_s = time.process_time() - began
        signal.setitimer(signal.ITIMER_PROF, 0)
        record = {"words": words, "code": code, "events": list(events), "seconds": cpu_s}
        sys.stdout.write(json.dumps({**record, "output": out.getvalue()}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
