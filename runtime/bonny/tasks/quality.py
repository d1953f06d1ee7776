"""Quality: runs a repository's tests and checks with the Python that runs the task."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from ..errors import UsageError

__all__ = ["run_checks", "run_tests"]

CHECKS = (("ruff", "check"), ("ruff", "format", "--check"), ("mypy",))


def run_tests(root: Path, *, unit: bool) -> int:
    """Run pytest in `root` and return its exit code; `unit` leaves out the tests that need an API server."""
    return _run(root, ("pytest", "tests/unit") if unit else ("pytest",))


def run_checks(root: Path) -> int:
    """Run every check, also after one failed, and return 0 when all passed."""
    return max([_run(root, check) for check in CHECKS])


def _run(root: Path, command: Sequence[str]) -> int:
    module, *arguments = command
    if importlib.util.find_spec(module) is None:
        raise UsageError(f"{module} is not installed here: run `pip install -e '.[dev]'` and try again")
    print(f"$ {' '.join(command)}", flush=True)
    return subprocess.run([sys.executable, "-m", module, *arguments], cwd=root, check=False).returncode
