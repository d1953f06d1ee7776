"""Generating: runs the generators' tasks in this process, and tells what a repository holds."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path

from invoke.collection import Collection
from invoke.program import Program

from bonny import tasks


def run_task(project: Path, words: str) -> int | str | None:
    """Run `invoke` with `words` in `project`, but in this process; returns its exit code."""
    collection = deepcopy(Collection.from_module(tasks))  # a task hands out the help of its arguments once
    collection.configure({"root": str(project)})
    try:
        Program(namespace=collection).run(f"invoke {words}")
    except SystemExit as end:
        return end.code
    return 0


def state(project: Path) -> dict[str, str]:
    """The text of every file that a generator could touch."""
    folders = (project / "src", project / "samples", project / "tests")
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    return {str(path.relative_to(project)): path.read_text(encoding="utf-8") for path in files}
