"""Benches: measurements of operators on a real API server; the runtime is found without being installed."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "runtime"))
