"""Tags: the last release of a repository, as its git tags say, and the manifest of that release.

The manifest is made by the code of the tag, with the runtime and the developer tools that it carries.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Final

from bonny.errors import UsageError
from bonny.resource import Resource

from ..install import read_documents
from ..wheel import PATTERN

# The image plays no part in a comparison; without one there would be no webhooks.
IMAGE: Final = "bonny.invalid/image:0"
OUT: Final = "manifest-of-the-tag.yaml"
PYTHON: Final = ("PYTHONPATH", "PYTHONSTARTUP", "PYTHONHOME")


def last_tag(root: Path) -> str:
    """The newest tag before the state in `root`: of a commit that is tagged and unchanged the one before. Empty for
    none.

    Raises: `UsageError` where `root` is not a git repository, or lacks its history.
    """
    if _git(root, "rev-parse", "--is-inside-work-tree") is None:
        raise UsageError("there is no git repository here, so no last release to compare with: run `git init`")
    if _git(root, "rev-parse", "--is-shallow-repository") == "true":
        raise UsageError(
            "this clone lacks the history and the tags to compare with: fetch them, in a pipeline by fetch-depth: 0 or "
            "GIT_DEPTH: 0"
        )
    changed = _git(root, "diff", "--quiet", "HEAD") is None
    return _git(root, "describe", "--tags", "--abbrev=0", "HEAD" if changed else "HEAD^") or ""


def manifest_of(root: Path, tag: str) -> list[Resource]:
    """The objects of the manifest at `tag`. Raises: `UsageError` when there is no such tag, or its code fails."""
    archive = subprocess.run(
        ["git", "archive", "--format=tar", f"{tag}^{{tree}}"], cwd=root, capture_output=True, check=False
    )
    if archive.returncode:
        raise UsageError(f"there is no tag or commit {tag} in this repository: `git tag` lists them")
    with tempfile.TemporaryDirectory(prefix="bonny-release-") as name:
        folder = Path(name)
        with tarfile.open(fileobj=BytesIO(archive.stdout)) as tar:
            tar.extractall(folder / "tree", filter="data")
        environment = {name: value for name, value in os.environ.items() if name not in PYTHON}
        wheel = next(iter((folder / "tree" / "vendor").glob(PATTERN)), None)
        if wheel is not None:
            with zipfile.ZipFile(wheel) as tools:
                tools.extractall(folder / "tools")  # noqa: S202  of this repository, as its code is
            environment["PYTHONPATH"] = str(folder / "tools")
        command = [sys.executable, "-m", "invoke", "manifest", "--image", IMAGE, "--out", OUT]
        done = subprocess.run(
            command, cwd=folder / "tree", env=environment, capture_output=True, text=True, check=False
        )
        out = folder / "tree" / OUT
        if done.returncode or not out.exists():
            last = (done.stderr.strip().splitlines() or ["it printed nothing"])[-1]
            raise UsageError(f"the manifest of {tag} cannot be made with the packages that are installed here: {last}")
        return read_documents(f"the manifest of {tag}", out.read_bytes())


def _git(root: Path, *arguments: str) -> str | None:
    """The output of git; None when it fails."""
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None
