"""The project that docs/security.md speaks of."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.baking import uninstalled


@pytest.fixture(scope="session")
def with_widgets(pristine: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The default project with one kind."""
    project = Path(shutil.copytree(pristine, tmp_path_factory.mktemp("widgets") / pristine.name))
    uninstalled(project, "gen-controller", "Widget", "widgets")
    return project
