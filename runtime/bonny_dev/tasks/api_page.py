"""API page: writes the reference page of the operator's own kinds, or checks it, as `invoke api-docs` does."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from bonny.errors import UsageError

from .. import files
from ..crd.definition import crds
from ..install import read_documents
from ..project import Project
from ..release.reference import page

PAGE: Final = "docs/api.md"


def write(project: Project, out: str = "") -> str:
    """Write the page, and return its name. Raises: `UsageError` when it cannot be written."""
    name = out or PAGE
    path, text = project.root / name, _text(project)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write(path, text, mode=0o644)
    except OSError as error:
        raise UsageError(f"{name} cannot be written ({error.strerror}): name another file by --out") from None
    return name


def problem(project: Project, out: str = "") -> str:
    """A sentence if the page is there and outdated; else empty. Raises: `UsageError` when it cannot be read."""
    name = out or PAGE
    path = project.root / name
    if not path.exists():
        return ""
    try:
        current = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        raise UsageError(f"{name} cannot be read as text: name another file by --out, or remove it") from None
    return "" if current == _text(project) else f"{name} is outdated: run `invoke api-docs`, and commit the page"


def _text(project: Project) -> str:
    operator = project.load_operator()
    paths: list[Path] = sorted((project.root / "samples").glob("*.yaml"))
    samples = [each for path in paths for each in read_documents(f"samples/{path.name}", path.read_bytes())]
    return page(operator.name, crds(operator.crds, operator.group), samples)
