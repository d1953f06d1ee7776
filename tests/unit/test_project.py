"""Project: what a person reads when their operator cannot be imported."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bonny.errors import UsageError
from bonny_dev.project import Project

PACKAGE = "never_imported_before"


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    before = sys.path[:]
    source = tmp_path / "src" / PACKAGE
    source.mkdir(parents=True)
    (source / "__init__.py").touch()
    yield Project(root=tmp_path, package=PACKAGE, image="i", version="1")
    sys.path[:] = before
    for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
        del sys.modules[name]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x = (\n", "SyntaxError"),
        ("x = undefined\n", "line 1, in <module>\n    x = undefined"),
        ("from . import missing\n", "ImportError"),
        ("from .missing import x\n", "ModuleNotFoundError"),
        ("raise RuntimeError('on purpose')\n", "RuntimeError: on purpose"),
    ],
)
def test_what_cannot_be_imported_is_shown_with_the_lines_of_the_repository_only(
    project: Project, text: str, told: str
) -> None:
    (project.source / "operator.py").write_text(text, "utf-8")
    with pytest.raises(UsageError) as refused:
        project.load_operator()
    said = str(refused.value)
    assert said.startswith(f"{project.source / 'operator.py'} cannot be imported:\n")
    assert told in said
    assert "importlib" not in said
    assert "scaffold" not in said


def test_a_package_that_is_not_installed_is_left_to_the_task_which_names_it(project: Project) -> None:
    (project.source / "operator.py").write_text("import a_package_that_nobody_has\n", "utf-8")
    with pytest.raises(ModuleNotFoundError):
        project.load_operator()


def test_a_declaration_that_does_not_fit_is_told_in_its_own_sentence(project: Project) -> None:
    (project.source / "operator.py").write_text("from bonny.kinds import Kind\nKind('v1', 'Nothing')\n", "utf-8")
    with pytest.raises(UsageError, match=r"^Kubernetes has no kind 'Nothing' in v1"):
        project.load_operator()


@pytest.mark.parametrize(
    "package",
    [
        "uvicorn",
        "yaml",
        "bonny_dev",
        "json",
        "class",
        "prometheus_client",
        "a.b",
        "",
        "../up",
        "x; import os",
        "W",
        "a-b",
    ],
)
def test_a_package_that_shadows_a_dependency_or_is_no_name_is_refused(package: str, tmp_path: Path) -> None:
    """It becomes a part of generated code, and is found before the packages that the operator needs."""
    lines = ["[project]", 'version = "0.1.0"', 'dependencies = ["uvicorn>=0.38,<1"]']
    lines += ["[project.optional-dependencies]", 'x = ["prometheus-client>=0.22"]']
    lines += ["[tool.bonny]", f"package = {json.dumps(package)}"]
    (tmp_path / "pyproject.toml").write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(UsageError, match="cannot be a package of this operator: use a lower-case name"):
        Project.at(tmp_path)
