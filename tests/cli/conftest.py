"""An honest run, judged once for all tests of this folder, and a copy that a test may change."""

import shutil

import pytest

from clash.store.folder import RunFolder
from review.runs import judged, plain_prompts


@pytest.fixture(scope="session")
def honest(tmp_path_factory):
    return judged(tmp_path_factory.mktemp("honest"), plain_prompts(6))


@pytest.fixture
def folder(honest, tmp_path):
    return RunFolder(shutil.copytree(honest.path, tmp_path / "run"))
