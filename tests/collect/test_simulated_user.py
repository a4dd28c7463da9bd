"""When a simulated user has no more to say."""

from __future__ import annotations

import pytest

from clash.collect.simulated_user import next_message


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("[END]", None),
        ("Thank you!\n\n**[end]**\n", None),
        ('"[END]"', None),
        ("“[END].”", None),
        ("You wrote [END]", "You wrote [END]"),
        ("[END]\nOne thing more?", "[END]\nOne thing more?"),
        (" And in blue? ", "And in blue?"),
    ],
)
def test_the_end_is_a_last_line_of_its_own(answer, message):
    assert next_message(answer) == message
