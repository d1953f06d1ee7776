"""Types of the public API, as mypy and pyright see them: what users write passes, and their mistakes do not.

The files in `typed` are never run. A line that must be refused ends with `# error:` and the codes of mypy, then of
pyright; every other line must pass both.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "tests" / "unit" / "typed").glob("*.py"))

Errors = list[tuple[str, int, str]]
"""File, line and code of each error, sorted."""


def run(*command: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "runtime"), "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}
    words = [sys.executable, "-m", *command]
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout


def errors_of_mypy() -> Errors:
    printed = run("mypy", "--output=json", "--cache-dir=.mypy_cache/typed", *map(str, FILES))
    found = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    errors = [error for error in found if error["severity"] == "error"]
    return sorted((Path(error["file"]).name, error["line"], error["code"]) for error in errors)


def errors_of_pyright() -> Errors:
    found = json.loads(run("pyright", "--outputjson", "--pythonpath", sys.executable))["generalDiagnostics"]
    return sorted((Path(error["file"]).name, error["range"]["start"]["line"] + 1, error["rule"]) for error in found)


def expected(*, of_pyright: bool) -> Errors:
    return sorted(
        (file.name, number, code)
        for file in FILES
        for number, line in enumerate(file.read_text("utf-8").splitlines(), start=1)
        if (marked := re.search("# error: (.*)", line))
        for code in marked[1].split(", ")
        if code.startswith("report") == of_pyright
    )


def test_the_page_on_types_shows_what_is_checked_here() -> None:
    checked = (ROOT / "tests" / "unit" / "typed" / "how_to.py").read_text("utf-8").partition('"""\n\n')[2]
    assert f"```python\n{checked}```" in (ROOT / "docs" / "how-to" / "use-types.md").read_text("utf-8")


def test_mypy_refuses_the_mistakes_and_nothing_else() -> None:
    assert errors_of_mypy() == expected(of_pyright=False)


def test_pyright_refuses_the_mistakes_and_nothing_else() -> None:
    assert errors_of_pyright() == expected(of_pyright=True)
