"""Versions: which Kubernetes and etcd the sandbox is made for, and what a program says it is."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Final, NamedTuple

from .processes import SandboxError

__all__ = ["ETCD", "KUBERNETES", "OLDEST", "Version", "check", "parse", "reported"]


class Version(NamedTuple):
    """A release, comparable."""

    major: int
    minor: int
    patch: int = 0

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"


# What `gomod/` builds; change both together.
KUBERNETES: Final = Version(1, 36, 3)
ETCD: Final = Version(3, 6, 16)

KUBERNETES_PROGRAMS: Final = ("kube-apiserver", "kube-scheduler", "kube-controller-manager")
# The three newest minors of Kubernetes are supported; their API servers ask for etcd 3.5 or newer.
OLDEST: Final = {"etcd": Version(3, 5), **dict.fromkeys(KUBERNETES_PROGRAMS, Version(1, 34))}

# Both programs answer at once; the rest is for a cold disk.
ANSWER_SECONDS: Final = 30.0


def parse(text: str) -> Version | None:
    """The first `1.2.3` or `1.2` in `text`."""
    found = re.search(r"(\d+)\.(\d+)(?:\.(\d+))?", text)
    return Version(int(found[1]), int(found[2]), int(found[3] or 0)) if found else None


def reported(program: Path) -> Version:
    """What `program --version` says. Raises: `SandboxError` when it cannot run here, or says nothing of the kind."""
    try:
        result = subprocess.run(
            [program, "--version"], capture_output=True, text=True, timeout=ANSWER_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SandboxError(
            f"{program} does not run here ({error}): put one there that is built for this machine"
        ) from error
    version = parse(result.stdout)
    if result.returncode != 0 or version is None:
        raise SandboxError(f"{program} --version tells no version: is it really {program.name}?")
    return version


def check(program: Path, *, name: str) -> Version:
    """The version of `program`. Raises: `SandboxError` when it is too old for us, or does not run."""
    version = reported(program)
    if version < OLDEST[name]:
        wanted = f"{OLDEST[name].major}.{OLDEST[name].minor}"
        raise SandboxError(f"{program} is {name} {version}, and the sandbox needs {wanted} or newer: take a newer one")
    return version
