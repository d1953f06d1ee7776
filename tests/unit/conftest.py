"""Settings of all unit tests."""

import os

from hypothesis import Phase, settings

# A mutant need only be noticed: the smallest example that shows it is nobody's interest (tools/mutants.py).
PHASES = (Phase.explicit, Phase.generate) if "MUTANTS" in os.environ else tuple(Phase)
# No deadline: on a busy machine an example may take its time. CI asks the same questions each time, people new ones.
settings.register_profile("unit", deadline=None, derandomize="CI" in os.environ, print_blob=True, phases=PHASES)
settings.load_profile("unit")
