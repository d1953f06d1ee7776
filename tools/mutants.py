"""Mutants: breaks one guarantee at a time and expects the named tests to notice.

    make mutants

Each file of tests/mutants/ is a patch of runtime/, with the tests that must fail in its first line. It is applied to a
copy; a patch that does not apply any more, or a mutant that its tests do not notice, fails the run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
MUTANTS: Final = ROOT / "tests" / "mutants"
MARK: Final = "# tests: "
# What pytest says when tests failed; anything else means that they could not be run.
TESTS_FAILED: Final = 1


def survives(patch: Path, copy: Path) -> str | None:
    """Why the mutant counts as not noticed; None when its tests fail as they should."""
    first, _, diff = patch.read_text("utf-8").partition("\n")
    if not first.startswith(MARK):
        return f"its first line does not name tests ({MARK}...)"
    shutil.rmtree(copy / "runtime", ignore_errors=True)
    shutil.copytree(ROOT / "runtime", copy / "runtime", ignore=shutil.ignore_patterns("__pycache__"))
    applied = subprocess.run(
        ["git", "apply", "--unidiff-zero", "-"], input=diff, text=True, cwd=copy, capture_output=True, check=False
    )
    if applied.returncode:
        return f"the patch does not apply any more: {applied.stderr.strip()}"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *first.removeprefix(MARK).split()],
        cwd=copy,
        env={
            **os.environ,
            "PYTHONPATH": str(copy / "runtime"),
            "MUTANTS": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        capture_output=True,
        text=True,
        errors="backslashreplace",  # a test may print bytes that are no text
        check=False,
    )
    return None if done.returncode == TESTS_FAILED else f"its tests ended with code {done.returncode}:\n{done.stdout}"


def main() -> int:
    patches = sorted(MUTANTS.glob("*.patch"))
    survivors = 0
    with tempfile.TemporaryDirectory(prefix="bonny-mutants-") as folder:
        copy = Path(folder)
        shutil.copytree(ROOT / "tests", copy / "tests", ignore=shutil.ignore_patterns("__pycache__"))
        # What tests hear of events is compared with their reference page.
        shutil.copytree(ROOT / "docs" / "reference", copy / "docs" / "reference")
        shutil.copy(ROOT / "pyproject.toml", copy)
        for patch in patches:
            why = survives(patch, copy)
            survivors += why is not None
            print(
                f"{'noticed ' if why is None else 'SURVIVES'}  {patch.stem}{'' if why is None else f': {why}'}",
                flush=True,
            )
    print(f"{len(patches) - survivors} of {len(patches)} mutants noticed")
    return int(survivors > 0 or not patches)


if __name__ == "__main__":
    sys.exit(main())
