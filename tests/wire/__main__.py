"""``python -m wire``: the server in a process of its own. Prints its port as a line of JSON."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import sys

from wire import WireServer, faults


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before each answer")
    parser.add_argument("--rate-limit-every", type=int, help="429 on every so-manyth request")
    parser.add_argument("--error-every", type=int, help="500 on every so-manyth request")
    parser.add_argument(
        "--per-second", type=float, help="429 to more requests a second of an account"
    )
    parser.add_argument("--forgetful", action="store_true", help="count requests, keep none")
    options = parser.parse_args()
    server = WireServer(latency_s=options.latency, port=options.port)
    server.is_forgetful = options.forgetful
    server.per_second = options.per_second
    if options.rate_limit_every:
        limit = faults.rate_limit("50", header="retry-after-ms")
        server.misbehave(limit, every=options.rate_limit_every)
    if options.error_every:
        server.misbehave(faults.server_error(), every=options.error_every)
    await server.serve(lambda: sys.stdout.write(_where(server)) and sys.stdout.flush())


def _where(server: WireServer) -> str:
    return json.dumps({"port": server.port, "environ": server.environ()}) + "\n"


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main())
