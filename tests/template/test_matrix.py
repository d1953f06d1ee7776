"""Matrix: every two values of different options together; each project is checked, and each is installed where time is.

All of them are laid at one path, one after the other, and share an environment and the cache of mypy. Of those whose
Python files and settings are equal, one is checked for all.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from bonny_dev.wheel import PATTERN
from tests.support.baking import install, invoke, rendered_files
from tests.support.judges import Judges
from tests.support.pairwise import pairs, rows
from tests.template.conftest import ANSWER_SETS, INSTALLED, OPTIONS, project_of

CHECKED = sorted(set(ANSWER_SETS) - set(INSTALLED))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which each project is laid as `project`."""
    return tmp_path_factory.mktemp("matrix")


def run(project: Path, *arguments: str) -> str:
    """Run a module of this environment in the project, as if it were installed; return what it printed."""
    (wheel,), tools = (project / "vendor").glob(PATTERN), project.parent / "tools"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tools)
    environment = {**os.environ, "PYTHONPATH": f"{project}/src:{project}/vendor:{tools}", "MYPYPATH": str(tools)}
    environment.update(MYPY_CACHE_DIR=str(project.parent / "mypy"), RUFF_NO_CACHE="true")
    command = [sys.executable, "-m", *arguments]
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{arguments}\n{done.stdout}{done.stderr}"
    return done.stdout


def code_of(project: Path) -> tuple[object, ...]:
    """All that the checks look at: Python files, and the tables of pyproject.toml that they read."""
    table = tomllib.loads((project / "pyproject.toml").read_text("utf-8"))
    files = [path for path in rendered_files(project) if path.suffix == ".py"]
    return table["tool"], [(path.relative_to(project), path.read_bytes()) for path in files]


@pytest.mark.parametrize("name", CHECKED)
def test_lint_types_imports_and_manifest_are_right_with_these_answers(
    name: str, baked_sets: dict[str, Path], tmp_path_factory: pytest.TempPathFactory, judges: Judges, place: Path
) -> None:
    rendered = project_of(name, baked_sets, tmp_path_factory)
    earlier = [project_of(other, baked_sets, tmp_path_factory) for other in CHECKED[: CHECKED.index(name)]]
    if code_of(rendered) in map(code_of, earlier):
        return
    shutil.rmtree(place / "project", ignore_errors=True)
    project = Path(shutil.copytree(rendered, place / "project"))

    # One process for both: the first that fails ends it.
    run(project, "invoke", "gen-controller", "Widget", "widgets", "lint")
    run(project, rendered.name.replace("-", "_"), "version")
    judges.accept(
        "kubernetes-validate", "--strict", "-", cwd=project, given=run(project, "invoke", "manifest", "--out", "-")
    )


@pytest.mark.slow
@pytest.mark.server
@pytest.mark.parametrize("name", CHECKED)
def test_every_project_of_the_matrix_is_green_when_it_is_installed(
    name: str, baked_sets: dict[str, Path], tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    rendered = project_of(name, baked_sets, tmp_path_factory)
    project = Path(shutil.copytree(rendered, tmp_path / rendered.name))
    install(project)

    for words in ("gen-controller Widget widgets", "lint", "test", "manifest"):
        done = invoke(project, *words.split())
        assert done.returncode == 0, done.stdout + done.stderr


def test_every_two_values_of_different_options_meet_in_a_row() -> None:
    met = set().union(*map(pairs, rows(OPTIONS)))
    names = sorted(OPTIONS)
    wanted = {
        frozenset({(first, one), (second, other)})
        for number, first in enumerate(names)
        for second in names[number + 1 :]
        for one in OPTIONS[first]
        for other in OPTIONS[second]
    }

    assert met == wanted
    assert len(rows(OPTIONS)) < 16
