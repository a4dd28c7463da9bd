"""A loopback server that speaks every provider's wire, and misbehaves when told to.

Use it as a context manager; it runs in a thread of its own, so that clients under test, in this
process or another, reach it over real HTTP::

    from wire import WireServer, faults

    with WireServer() as server:
        environ = server.environ()                 # keys and base URLs of every vendor
        server.base_url("openrouter")              # http://127.0.0.1:PORT/openrouter/api/v1
        server.misbehave(faults.rate_limit("1"), model="gpt-x", times=2)
        server.misbehave(faults.reset_mid_body(), nth=3)
        server.conduct("old-model", refuses=("json_schema", "temperature"), usage=False)
        ...
        server.count(model="gpt-x")                # requests seen
        server.count(model="gpt-x", is_paid=True)  # answers that a provider would bill
        server.calls[0].body                       # every request, whole, in order

``WireServer(answer=f)`` takes a pure function from :class:`VendorRequest` to the text of the answer. The
default, :func:`deterministic`, is a judge, a writer of criteria and a generator in one, decided by
what is asked for: a judge's verdict depends on the responses' text alone (and a little on the
judge's name, so that judges differ), never on label or order.

``python -m wire --latency 0.1`` serves from a process of its own (benchmarks, command-line tests):
it prints one line of JSON with its port, and ``GET /journal`` tells how many calls it has seen.
"""

from wire import faults
from wire.answers import criteria, deterministic, generator, judge
from wire.faults import Fault
from wire.server import ServedRequest, WireServer
from wire.vendors import VendorReply, VendorRequest

__all__ = [
    "Fault",
    "ServedRequest",
    "VendorReply",
    "VendorRequest",
    "WireServer",
    "criteria",
    "deterministic",
    "faults",
    "generator",
    "judge",
]
