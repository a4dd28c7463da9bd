"""Records of calls, of which a test states what it is about."""

from __future__ import annotations

from clash.records import Call


def call(call_id="c", **more):
    """An answered call of a judge."""
    return Call(
        **{
            "call_id": call_id,
            "purpose": "judge",
            "item_id": "q",
            "attempt": 1,
            "model": "m",
            "request_hash": "h",
            "outcome": "ok",
            "time": "t",
            **more,
        }
    )
