"""Deployers: helm, kustomize and operator-verify, built from Go modules into the user's cache.

You need it in slow tests of what `invoke manifest --format` writes. Their versions and checksums are fixed in `gomod/`;
a build takes one to five minutes the first time, and needs Go. The files there end in `.txt`, so that Go tools do not
take the folders for modules.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path
from shutil import which
from typing import Final

import pytest

from bonny_dev.sandbox.build import PINNED

SOURCES: Final = Path(__file__).with_name("gomod")
PACKAGES: Final = {
    "helm": ("v4.3.1", "helm.sh/helm/v4/cmd/helm"),
    "kustomize": ("v5.8.1", "sigs.k8s.io/kustomize/kustomize/v5"),
    "operator-verify": ("v0.34.0", "github.com/operator-framework/api/cmd/operator-verify"),
}


def deployer(name: str) -> Path:
    """The program, built once; the test is skipped where there is no Go."""
    version, package = PACKAGES[name]
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    program = base / "bonny" / "judges" / f"{name}-{version}" / name
    if program.exists():
        return program
    if which("go") is None:
        pytest.skip(f"{name} is built with Go, which is not on PATH")
    program.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=program.parent) as folder:
        for each in ("go.mod", "go.sum"):
            (Path(folder) / each).write_bytes((SOURCES / name / f"{each}.txt").read_bytes())
        command = ["go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", name, package]
        subprocess.run(command, cwd=folder, env={**os.environ, **PINNED}, check=True, capture_output=True)
        (Path(folder) / name).replace(program)
    return program


def run(name: str, *arguments: str | Path, kubeconfig: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run it to its end, with no settings of the person who tests."""
    with tempfile.TemporaryDirectory() as home:
        settings = {"PATH": os.environ["PATH"], "HOME": home, "KUBECONFIG": str(kubeconfig or os.devnull)}
        command = [str(deployer(name)), *map(str, arguments)]
        return subprocess.run(command, env=settings, capture_output=True, text=True, check=False, timeout=300)


def accept(name: str, *arguments: str | Path, kubeconfig: Path | None = None) -> str:
    """Run it, fail with what it said unless it succeeds, and return what it printed."""
    done = run(name, *arguments, kubeconfig=kubeconfig)
    assert done.returncode == 0, f"{name} {arguments}\n{done.stdout}{done.stderr}"
    return done.stdout
