"""Updates: a rendered repository takes over a newer template with cruft, and keeps what its owner wrote."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.baking import TEMPLATE, bake
from tests.support.judges import Judges
from tests.template.test_rendering import contents, copied_template
from tests.template.test_shipping import git

FOLDER = "<<cookiecutter.operator_slug>>"
OWN = "src/widgets_operator/controllers/widget.py"


@pytest.fixture(scope="module")
def versions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The template as a repository with two tags; the second differs in the runtime and in files around it."""
    folder = copied_template(tmp_path_factory.mktemp("versions"))
    shutil.copytree(TEMPLATE / "{{cookiecutter.cruft}}", folder / "{{cookiecutter.cruft}}")
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "first")
    git(folder, "tag", "v1")
    runtime = folder / "runtime/bonny"
    (runtime / "added.py").write_text('"""Added in v2."""\n', encoding="utf-8")
    (runtime / "errors.py").write_text((runtime / "errors.py").read_text("utf-8") + "# v2\n", encoding="utf-8")
    for name in ("Dockerfile", "README.md"):
        path = folder / FOLDER / name
        path.write_text(path.read_text("utf-8") + ("# v2\n" if name == "Dockerfile" else "\nv2\n"), encoding="utf-8")
    (folder / FOLDER / "CHANGELOG.md").write_text("# Changelog of the template\n", encoding="utf-8")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "second")
    git(folder, "tag", "v2")
    return folder


@pytest.fixture
def project(versions: Path, judges: Judges, tmp_path: Path) -> Path:
    """Made by cruft from v1, committed, with a kind of its owner's."""
    judges.accept("cruft", "create", "--no-input", "--checkout", "v1", "--output-dir", tmp_path, versions, cwd=tmp_path)
    made = tmp_path / "widgets-operator"
    task(made, "gen-controller", "Widget", "widgets")
    with (made / OWN).open("a", encoding="utf-8") as controller:
        controller.write("\n\n# mine\n")
    (made / "CHANGELOG.md").write_text("# My changelog\n", encoding="utf-8")
    commit(made)
    return made


def task(project: Path, *words: str) -> str:
    command = [sys.executable, "-m", "invoke", *words]
    paths = os.pathsep.join([str(project / "src"), str(project / "vendor")])
    environment = {**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def commit(project: Path) -> None:
    git(project, "init", "--quiet")
    git(project, "add", "--all")
    git(project, "commit", "--quiet", "--message", "work")


def test_cookiecutter_and_cruft_render_the_same(versions: Path, judges: Judges, tmp_path: Path) -> None:
    judges.accept("cruft", "create", "--no-input", "--output-dir", tmp_path, versions, cwd=tmp_path)
    by_cruft = contents(tmp_path / "widgets-operator")
    by_cookiecutter = contents(bake(tmp_path / "bake", template=versions).project)

    assert by_cruft.pop(".cruft.json")
    assert by_cruft == by_cookiecutter


def test_an_update_brings_the_new_runtime_and_leaves_what_the_owner_wrote(
    project: Path, versions: Path, judges: Judges
) -> None:
    own = {name: data for name, data in contents(project).items() if name.startswith(("src/", "samples/"))}
    assert judges.run("cruft", "check", cwd=project).returncode == 1  # behind

    judges.accept("cruft", "update", "--skip-apply-ask", "--checkout", "v2", cwd=project)

    judges.accept("cruft", "check", cwd=project)
    updated = contents(project)
    assert {name: data for name, data in updated.items() if name in own} == own
    assert updated["CHANGELOG.md"] == b"# My changelog\n"
    assert updated["Dockerfile"].endswith(b"# v2\n")
    assert contents(project / "vendor/bonny") == contents(versions / "runtime/bonny")
    assert git(project, "diff", "--name-only", "--diff-filter=U") == ""
    task(project, "lint")
    task(project, "test", "--unit")


@pytest.mark.slow
def test_an_edit_that_the_template_made_too_is_shown_as_a_conflict(project: Path, judges: Judges) -> None:
    dockerfile = project / "Dockerfile"
    dockerfile.write_text(dockerfile.read_text("utf-8") + "# mine\n", encoding="utf-8")
    commit(project)

    judges.run("cruft", "update", "--skip-apply-ask", "--checkout", "v2", cwd=project)

    assert "<<<<<<<" in dockerfile.read_text("utf-8")
    assert git(project, "diff", "--name-only", "--diff-filter=U") == "Dockerfile"
    assert (project / "vendor/bonny/added.py").exists()


@pytest.mark.slow
def test_a_project_that_is_up_to_date_has_no_difference(versions: Path, judges: Judges, tmp_path: Path) -> None:
    judges.accept("cruft", "create", "--no-input", "--output-dir", tmp_path, versions, cwd=tmp_path)
    project = tmp_path / "widgets-operator"
    commit(project)

    judges.accept("cruft", "check", cwd=project)
    assert judges.accept("cruft", "diff", cwd=project) == ""
