"""Cache: the folder of this user in which etcd and the Kubernetes programs stay, each with its checksum next to it.

`$XDG_CACHE_HOME/bonny/kubernetes/v1.36.3/kube-apiserver` and `kube-apiserver.sha256` (as `sha256sum --check` reads it).
The checksum detects a damaged file; it does not protect from an attacker who can write to the folder.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeAlias

from .. import files
from .guard import Guard
from .lock import try_lock
from .processes import SandboxError
from .versions import KUBERNETES, KUBERNETES_PROGRAMS, SemanticVersion, check, parse

Progress: TypeAlias = Callable[[str], None]
"""Called with a line to show to a person."""

# Often enough to see that it lives, seldom enough for a CI log.
PROGRESS_SECONDS: Final = 10.0
POLL_SECONDS: Final = 0.1


class Every:
    """Lets a progress line through every ten seconds: `every("building")`."""

    def __init__(self, progress: Progress, *, first: float = PROGRESS_SECONDS) -> None:
        self._progress = progress
        self._next = first
        self._began = time.monotonic()

    def __call__(self, text: str) -> None:
        if self.elapsed >= self._next:
            self._next = self.elapsed + PROGRESS_SECONDS
            self._progress(f"{text} ({self.elapsed:.0f} s so far)")

    @property
    def elapsed(self) -> float:
        """Seconds since it was made."""
        return time.monotonic() - self._began


def root() -> Path:
    """The folder that holds one folder per Kubernetes version."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    # By the XDG rules, relative paths are ignored.
    parent = Path(base) if base.startswith("/") else Path.home() / ".cache"
    return parent / "bonny" / "kubernetes"


def folder_of(version: SemanticVersion) -> Path:
    """Where the programs of one Kubernetes version are, and the etcd that came with them."""
    return root() / f"v{version}"


def lookup(name: str, progress: Progress) -> Path | None:
    """The cached program of our Kubernetes minor, ours before other patches; damaged ones are reported."""
    for folder in candidates():
        program = folder / name
        if program.exists():
            problem = damage(program)
            if problem is None:
                return program
            progress(f"{program} {problem}: getting it again")
    return None


def candidates() -> list[Path]:
    """The version folders to look in. Not every patch release has an archive, so any of our minor will do."""
    ours = folder_of(KUBERNETES)
    others = [path for path in root().glob(f"v{KUBERNETES.major}.{KUBERNETES.minor}.*") if path != ours]
    return [ours, *sorted(others, key=lambda path: parse(path.name) or KUBERNETES, reverse=True)]


def damage(program: Path) -> str | None:
    """The problem with a cached program, or None."""
    try:
        recorded = checksum_file(program).read_text(encoding="utf-8").split()[0]
    except (OSError, IndexError):
        return "has no checksum next to it"
    if recorded != checksum(program):
        return "does not match the checksum next to it"
    try:
        version = check(program, name=program.name)
    except SandboxError as error:
        return f"is of no use ({error})"
    if program.name in KUBERNETES_PROGRAMS and version != parse(program.parent.name):
        return f"reports version {version}"
    return None


def install(program: Path, folder: Path) -> Path:
    """Move a finished program into `folder`, which is on the same file system, and record its checksum."""
    folder.mkdir(parents=True, exist_ok=True)
    program.chmod(0o755)
    target = folder / program.name
    checksum_file(target).unlink(missing_ok=True)  # killed from here on, we leave a program that is not trusted
    program.replace(target)
    # As a whole: a reader without the lock never sees half a line.
    files.write(checksum_file(target), f"{checksum(target)}  {target.name}\n", mode=0o644)
    return target


def checksum_file(program: Path) -> Path:
    """The file that holds the checksum of `program`."""
    return program.with_name(f"{program.name}.sha256")


def checksum(program: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with program.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def workspace(progress: Progress) -> Iterator[Guard]:
    """A guarded temporary folder on the cache's file system, for one process of this user at a time."""
    every = Every(progress, first=0.0)
    while (lock := try_lock(root() / ".lock")) is None:
        every("waiting for another process that fills the cache")
        time.sleep(POLL_SECONDS)
    try:
        for stale in root().glob(".work-*"):  # no other process uses it: we hold the lock
            shutil.rmtree(stale, ignore_errors=True)
        with Guard(root() / f".work-{secrets.token_hex(4)}") as guard:
            yield guard
    finally:
        os.close(lock)
