"""Mutants: each patch still fits the runtime, compiles, and names tests that exist.

Whether these tests notice it is `make mutants`.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from tools.mutants import MARK, MUTANTS, ROOT


def misfit(patch: Path, copy: Path) -> str:
    """Why it would count for nothing; empty when it fits. `copy` is where it is tried."""
    first, _, diff = patch.read_text("utf-8").partition("\n")
    # An option such as `-k word` chooses among the tests of the files.
    named = [word for word in first.removeprefix(MARK).split() if word.startswith("tests/")]
    for word in named:
        file, *names = word.split("::")
        name = names[-1].partition("[")[0] if names else ""
        if not (ROOT / file).exists() or not re.search(rf"\b{name}\b", (ROOT / file).read_text("utf-8")):
            return f"{word} does not exist"
    if not named:
        return f"its first line does not name tests ({MARK}...)"
    files = re.findall(r"^--- a/(\S+)$", diff, re.MULTILINE)
    for file in files:
        if not (ROOT / file).is_file():
            return f"{file} does not exist"
        (copy / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, copy / file)
    command = ["git", "apply", "--unidiff-zero", "-"]
    done = subprocess.run(command, input=diff, text=True, cwd=copy, capture_output=True, check=False)
    if done.returncode:
        return done.stderr
    for file in files:
        try:
            compile((copy / file).read_bytes(), file, "exec")
        except SyntaxError as error:  # every test notices that, whatever it tests
            return str(error)
    return ""


def test_every_mutant_fits_what_it_breaks_and_names_tests_that_exist(tmp_path: Path) -> None:
    """Regression: one did not apply any more, and nobody saw it until all of them were run, an hour long.

    Another one was no Python after its file had changed, so that its tests failed for a wrong reason.
    """
    patches = sorted(MUTANTS.glob("*.patch"))
    assert {patch.stem: why for patch in patches if (why := misfit(patch, tmp_path))} == {}
    assert len(patches) > 100
