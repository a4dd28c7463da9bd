"""What a run folder comes to when it is read, and when records were added to it by hand."""

from dataclasses import replace

import pytest

from clash.analysis.rundata import RunData
from clash.errors import RunFolderError
from clash.records import Reservation
from clash.store import layout
from clash.store.journal import encode
from review.runs import judged, plain_prompts


@pytest.fixture
def copy(tmp_path):
    return judged(tmp_path, plain_prompts(3))


def add(folder, name, *records):
    with (folder.path / name).open("ab") as file:
        file.writelines(encode(record) for record in records)


def test_of_each_attempt_without_an_end_the_last_reservation_counts(copy):
    before = RunData.load(copy)
    first_call = next(iter(copy.calls()))
    reservation = Reservation(call_id=first_call.call_id, attempt=first_call.attempt, usd=9)
    again = Reservation(call_id=first_call.call_id, attempt=2, usd=0.25)
    lost_reservation = Reservation(call_id="unknown", attempt=1, usd=8)
    add(
        copy,
        layout.RESERVATIONS,
        reservation,
        again,
        lost_reservation,
        lost_reservation.model_copy(update={"usd": 0.5}),
    )
    run = RunData.load(copy)
    assert run.n_lost == 2
    assert run.tally == replace(before.tally, bound_usd=before.tally.bound_usd + 0.75)


def test_an_item_that_is_there_twice_is_named(copy):
    add(copy, layout.ITEMS, copy.items()[1])
    with pytest.raises(RunFolderError, match=r"items\.jsonl: has the item 'q1' twice"):
        RunData.load(copy)
