"""Release: the last release of a repository, in a git worktree of its tag, with its own runtime and tools."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bonny.errors import UsageError
from bonny.resource import Resource

from ..install import read_documents
from ..project import Project
from ..wheel import PATTERN

NO_TAG: Final = "no upgrade is tried: no tag v* of an earlier release is reachable from this commit"


@dataclass(frozen=True, slots=True)
class Release:
    """The files of a tag."""

    tag: str
    root: Path
    package: str
    documents: list[Resource]
    """Its definitions and roles, as its own tools write them."""


def last_tag(root: Path) -> str:
    """The newest tag `v*` before what lies in `root`; empty where there is none, or no git.

    A tag of this commit is itself what is tried, unless files were changed since.
    """
    tags = _git(root, "tag", "--list", "v*", "--merged", "HEAD", "--sort=-version:refname").split()
    if not _git(root, "status", "--porcelain"):
        here = _git(root, "tag", "--points-at", "HEAD").split()
        tags = [tag for tag in tags if tag not in here]
    return tags[0] if tags else ""


@contextmanager
def released(root: Path, tag: str) -> Iterator[Release]:
    """The files of `tag`, until the end of the block.

    Raises: `UsageError` when they cannot be checked out, or do not belong to an operator.
    """
    inside = _git(root, "rev-parse", "--show-prefix").strip()
    with tempfile.TemporaryDirectory(prefix="bonny-release-") as name:
        tree = Path(name, "tree")
        hooks = f"core.hooksPath={os.devnull}"
        _git(root, "-c", hooks, "worktree", "add", "--detach", str(tree), tag)
        try:
            yield _read(tag, tree / inside, Path(name, "tools"))
        finally:
            _git(root, "worktree", "remove", "--force", str(tree))


def _read(tag: str, root: Path, tools: Path) -> Release:
    """Raises: `UsageError`."""
    package = Project.at(root, fitting=False).package
    for wheel in (root / "vendor").glob(PATTERN):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(tools)
    # Of a release without tools of its own, these write the manifest.
    folders = (tools, root / "src", root / "vendor", Path(__file__).parents[2])
    path = os.pathsep.join(map(str, folders))
    command = [sys.executable, "-m", "invoke", "manifest", "--local", "--out", "-"]
    done = subprocess.run(
        command, cwd=root, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise UsageError(f"its manifest cannot be written: {last}")
    return Release(tag, root, package, read_documents(f"manifest of {tag}", done.stdout))


def _git(root: Path, *arguments: str) -> str:
    """The output of a git command; empty when it fails, or there is no git."""
    try:
        done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return done.stdout if done.returncode == 0 else ""
