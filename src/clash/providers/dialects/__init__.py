"""What is said to each vendor and what it says back, as pure functions on JSON.

Nothing here knows of a network or an SDK; streams are put together again into the same JSON as an
unstreamed answer, so that there is one way to read either.
"""
