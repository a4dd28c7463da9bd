"""Every command's ``--json``, exit code and run-folder file is what it was: users script against it."""

from __future__ import annotations

import pytest

from golden.record import COMMANDS, differences, read, record


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> dict:
    return record()


@pytest.fixture(scope="module")
def golden() -> dict:
    return read()


@pytest.mark.timeout(600)
def test_nothing_is_gone(golden: dict, recording: dict) -> None:
    assert set(golden) <= set(recording)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("title", COMMANDS)
def test_a_command_prints_what_it_printed(title: str, golden: dict, recording: dict) -> None:
    assert differences(golden[title], recording[title]) == []


@pytest.mark.timeout(600)
def test_files_hold_what_they_held(golden: dict, recording: dict) -> None:
    files = {title: part for title, part in golden.items() if title not in COMMANDS}
    assert differences(files, recording) == []


def test_a_difference_is_found() -> None:
    old = {"a": [1.0, {"b": "x"}], "gone": 1}
    new = {"a": [1.1, {"b": "y", "more": 2}]}
    assert differences(old, new) == [
        ".gone: is gone", ".a[0]: 1.0 before, 1.1 now", ".a[1].b: 'x' before, 'y' now",
    ]  # fmt: skip
