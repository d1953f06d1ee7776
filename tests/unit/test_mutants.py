"""Mutants: each patch still fits the runtime, and names tests that exist. Whether they notice it is `make mutants`."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from tools.mutants import MARK, MUTANTS, ROOT


def misfit(patch: Path) -> str:
    """Why it would count for nothing; empty when it fits."""
    first, _, diff = patch.read_text("utf-8").partition("\n")
    # An option such as `-k word` chooses among the tests of the files.
    named = [word for word in first.removeprefix(MARK).split() if word.startswith("tests/")]
    for word in named:
        file, *names = word.split("::")
        name = names[-1].partition("[")[0] if names else ""
        if not (ROOT / file).exists() or not re.search(rf"\b{name}\b", (ROOT / file).read_text("utf-8")):
            return f"{word} does not exist"
    command = ["git", "apply", "--check", "--unidiff-zero", "-"]
    done = subprocess.run(command, input=diff, text=True, cwd=ROOT, capture_output=True, check=False)
    return done.stderr if named else f"its first line does not name tests ({MARK}...)"


def test_every_mutant_fits_what_it_breaks_and_names_tests_that_exist() -> None:
    """Regression: one did not apply any more, and nobody saw it until all of them were run, an hour long."""
    patches = sorted(MUTANTS.glob("*.patch"))
    assert {patch.stem: why for patch in patches if (why := misfit(patch))} == {}
    assert len(patches) > 100
