"""Settings of all unit tests."""

import os

from hypothesis import settings

# No deadline: on a busy machine an example may take its time. CI asks the same questions each time, people new ones.
settings.register_profile("unit", deadline=None, derandomize="CI" in os.environ, print_blob=True)
settings.load_profile("unit")
