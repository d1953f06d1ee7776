"""Settings of all unit tests."""

from hypothesis import settings

# No deadline: on a busy machine an example may take its time.
settings.register_profile("unit", deadline=None)
settings.load_profile("unit")
