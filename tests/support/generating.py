"""Generating: what a repository holds that a generator could touch, and the code of it checked as its owner would."""

from __future__ import annotations

from pathlib import Path


def state(project: Path) -> dict[str, str]:
    """The text of every file that a generator could touch."""
    folders = (project / "src", project / "samples", project / "tests")
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    return {str(path.relative_to(project)): path.read_text(encoding="utf-8") for path in files}
