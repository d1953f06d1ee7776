"""The suite itself: what tests/conftest.py sets for all tests."""

from __future__ import annotations

import os
from pathlib import Path


def test_each_worker_has_a_cache_of_mypy_of_its_own() -> None:
    """Regression: workers inherited the folder of the process that starts them. mypy crashed in one run of four."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "alone")
    assert Path(os.environ["MYPY_CACHE_DIR"]).parts[-2:] == ("rendered", worker)
