"""Releases: a git repository of the template with two tagged versions, to update a project from one to the other.

You need it in tests of `invoke update-runtime` and of cruft. v0.2.0 differs from v0.1.0 as releases do: in the
runtime, in a rendered file, and in the changelog.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from .baking import TEMPLATE

__all__ = ["CHANGED", "CHANGED_TOOL", "NEW", "OLD", "UNCHANGED", "git", "releases"]

OLD, NEW = "v0.1.0", "v0.2.0"
# A file of each package that differs between the two, and one that does not.
CHANGED, CHANGED_TOOL, UNCHANGED = "bonny/errors.py", "bonny_dev/project.py", "bonny/naming.py"
PARTS = ("<<cookiecutter.operator_slug>>", "{{cookiecutter.cruft}}", "hooks", "runtime")
FIRST = "## [0.1.0] - 2026-01-01\n\n- Everything.\n"
CHANGELOGS = {
    OLD: f"# Changelog\n\n{FIRST}",
    NEW: f"# Changelog\n\n## [0.2.0] - 2026-03-01\n\n- Better errors.\n\n{FIRST}",
}


def git(folder: Path, *arguments: str) -> str:
    """Run git in `folder` as somebody without settings of their own."""
    settings = ("-c", "user.name=Somebody", "-c", "user.email=somebody@example.com", "-c", "init.defaultBranch=main")
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    command = ["git", *settings, *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, env=environment).stdout


def releases(folder: Path) -> Path:
    """Make the repository in `folder`, which must not exist yet."""
    folder.mkdir()
    git(folder, "init", "--quiet")
    for name in ("cookiecutter.json", "copier.yml", "pyproject.toml"):
        shutil.copy(TEMPLATE / name, folder)
    for name in PARTS:
        shutil.copytree(TEMPLATE / name, folder / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    version = folder / "runtime" / "bonny" / "__init__.py"
    for tag in (OLD, NEW):
        before = version.read_text("utf-8")
        version.write_text(before.replace('__version__ = "0.1.0"', f'__version__ = "{tag[1:]}"'), "utf-8")
        (folder / "CHANGELOG.md").write_text(CHANGELOGS[tag], "utf-8")
        if tag == NEW:
            for name in (CHANGED, CHANGED_TOOL):
                with (folder / "runtime" / name).open("a", encoding="utf-8") as file:
                    file.write("# New in 0.2.0.\n")
            with (folder / PARTS[0] / ".gitignore").open("a", encoding="utf-8") as file:
                file.write("*.log\n")
        git(folder, "add", "--all")
        git(folder, "commit", "--quiet", "--message", tag)
        git(folder, "tag", tag)
    return folder
