"""Every failing row of the fault catalogue says how it is run again."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROW = "tests/faults/test_streams.py::test_w5_garbage_in_a_watch_is_survived[text]"
# Fails before a fixture is made, so that no server is needed.
BROKEN = """
import pytest

@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    raise RuntimeError("broken on purpose")
"""


def run(arguments: list[str], plugins: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": str(plugins)}
    command = [sys.executable, "-m", "pytest", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False).stdout


def test_a_row_that_fails_prints_the_one_line_that_runs_it_again(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(BROKEN, "utf-8")

    said = run(["-p", "broken", ROW], tmp_path)

    assert "broken on purpose" in said
    (line,) = [line for line in said.splitlines() if line.startswith("re-run: ")]
    program, *arguments = shlex.split(line.removeprefix("re-run: "))
    assert program == ".venv/bin/pytest"
    collected = run([*arguments, "--collect-only", "-q"], tmp_path)
    assert [line for line in collected.splitlines() if "::" in line] == [ROW]
