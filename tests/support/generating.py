"""Generating: runs the generators' tasks in this process, and tells what a repository holds."""

from __future__ import annotations

import subprocess
from copy import deepcopy
from pathlib import Path

from invoke.collection import Collection
from invoke.program import Program

from bonny_dev import tasks


def run_task(project: Path, words: str) -> int | str | None:
    """Run `invoke` with `words` in `project`, but in this process; returns its exit code."""
    collection = deepcopy(Collection.from_module(tasks))  # a task hands out the help of its arguments once
    collection.configure({"root": str(project)})
    try:
        Program(namespace=collection).run(f"invoke {words}")
    except SystemExit as end:
        return end.code
    return 0


def commit(project: Path) -> None:
    """Keep everything that `project` has now in a repository of its own."""
    who = ("-c", "user.name=test", "-c", "user.email=test@example.com")
    for words in (("init", "--quiet"), ("add", "--all"), (*who, "commit", "--quiet", "--message", "rendered")):
        subprocess.run(["git", *words], cwd=project, check=True)


def changes(project: Path) -> list[str]:
    """What git sees since the commit: a line a file, `?? NAME` for one that was added."""
    command = ["git", "status", "--porcelain", "--untracked-files=all"]
    return subprocess.run(command, cwd=project, check=True, capture_output=True, text=True).stdout.splitlines()


def state(project: Path) -> dict[str, str]:
    """The text of every file that a generator could touch."""
    folders = (project / "src", project / "samples", project / "tests", project / "vendor" / "bonny")
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    files.append(project / "pyproject.toml")
    return {str(path.relative_to(project)): path.read_text(encoding="utf-8") for path in files}
