"""Quality: runs a repository's tests, checks and locks with the Python that runs the task."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

from bonny.errors import UsageError

from ..project import Project
from .api_page import problem
from .imports import lacking
from .pyproject import PROJECT

CHECKS = (("ruff", "check"), ("ruff", "format", "--check"), ("mypy",))
# Packages in the image, and packages that build its wheel; with the hash of every file, for all platforms.
LOCKS = {"requirements.txt": ("pyproject.toml",), "requirements-build.txt": ("--group", "build")}
LOCK = ("uv", "pip", "compile", "--upgrade", "--universal", "--generate-hashes", "--quiet", "--no-header")


def run_tests(root: Path, *, unit: bool) -> int:
    """Run pytest in `root` and return its exit code; `unit` leaves out the tests that need an API server."""
    return _run(root, ("pytest", "tests/unit") if unit else ("pytest",))


def run_checks(root: Path) -> int:
    """Run every check, also after one failed, and return 0 when all passed."""
    codes = [_run(root, check) for check in CHECKS]
    project = Project.at(root)
    sentences = lacking(project)
    if outdated := problem(project):
        sentences.append(outdated)
    for sentence in sentences:
        print(sentence)
    return max(*codes, min(len(sentences), 1))


def run_lock(project: Project) -> int:
    """Write the locks again, with the newest versions that pyproject.toml allows; without the address of an index.

    Raises: `UsageError` when the image would lack a package that the operator imports.
    """
    if sentences := lacking(project):
        raise UsageError("\n".join(sentences))
    table = tomllib.loads((project.root / PROJECT).read_text("utf-8"))["project"].get("optional-dependencies", {})
    extras = [word for extra in project.extras if extra in table for word in ("--extra", extra)]
    codes = []
    for out, sources in LOCKS.items():
        more = extras if out == "requirements.txt" else []
        codes.append(_run(project.root, (*LOCK, "--no-annotate", "--output-file", out, *sources, *more)))
    return max(codes)


def _run(root: Path, command: Sequence[str]) -> int:
    module, *arguments = command
    if importlib.util.find_spec(module) is None:
        raise UsageError(f"{module} is not installed here: run `uv sync`, or `pip install -e '.[dev]'`, and try again")
    print(f"$ {' '.join(command)}", flush=True)
    return subprocess.run([sys.executable, "-m", module, *arguments], cwd=root, check=False).returncode
