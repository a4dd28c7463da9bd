"""Properties are not timed: how long an example takes is a matter of the machine."""

from __future__ import annotations

import pytest
from hypothesis import settings

settings.register_profile("clash", deadline=None)
settings.load_profile("clash")


@pytest.fixture(scope="session", autouse=True)
def _no_configuration_of_the_user(tmp_path_factory: pytest.TempPathFactory):
    """No test reads or writes what the user of this machine has confirmed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLASH_CONFIG_DIR", str(tmp_path_factory.mktemp("config")))
        patch.delenv("CLASH_TRUST_HOSTS", raising=False)
        yield
