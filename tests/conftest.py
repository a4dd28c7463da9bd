"""Properties are not timed: how long an example takes is a matter of the machine."""

from hypothesis import settings

settings.register_profile("clash", deadline=None)
settings.load_profile("clash")
