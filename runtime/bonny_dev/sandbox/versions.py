"""Versions: which Kubernetes and etcd the sandbox is made for, and what a program says it is."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any, Final, NamedTuple

from .processes import SandboxError


class SemanticVersion(NamedTuple):
    """A release, comparable."""

    major: int
    minor: int
    patch: int = 0

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"


# The versions that `gomod/` builds; change both together.
KUBERNETES: Final = SemanticVersion(1, 36, 3)
ETCD: Final = SemanticVersion(3, 6, 16)

KUBERNETES_PROGRAMS: Final = ("kube-apiserver", "kube-scheduler", "kube-controller-manager")
# The three newest minors of Kubernetes are supported; their API servers ask for etcd 3.5 or newer.
OLDEST: Final = {"etcd": SemanticVersion(3, 5), **dict.fromkeys(KUBERNETES_PROGRAMS, SemanticVersion(1, 34))}

# Both programs answer at once; the rest is for a cold disk.
ANSWER_SECONDS: Final = 30.0


def parse(text: str) -> SemanticVersion | None:
    """The first `1.2.3` or `1.2` in `text`."""
    match = re.search(r"(\d+)\.(\d+)(?:\.(\d+))?", text)
    return SemanticVersion(int(match[1]), int(match[2]), int(match[3] or 0)) if match else None


def printed(*command: str | Path, **options: Any) -> SemanticVersion | None:
    """The version that a command prints; None when it does not run on this machine, or prints none."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=ANSWER_SECONDS, check=False, **options)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return parse(done.stdout) if done.returncode == 0 else None


def check(program: Path, *, name: str) -> SemanticVersion:
    """The version of `program`. Raises: `SandboxError` when it is too old, or does not run."""
    version, oldest = printed(program, "--version"), OLDEST[name]
    if version is None:
        raise SandboxError(f"{program} --version prints no version: use {name} built for this machine")
    if version < oldest:
        needed = f"{oldest.major}.{oldest.minor}"
        raise SandboxError(f"{program} is {name} {version}, and the sandbox needs {needed} or newer: use a newer one")
    return version
