"""cruft, as its users have it: from one version of the template to the next, without touching what is the user's."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from bonny_dev.wheel import PATTERN
from tests.support.baking import checksums, uv
from tests.support.releases import CHANGED, CHANGED_TOOL, NEW, OLD, git, releases

CRUFT = "cruft==2.16.0"
# What a person writes, or changes after it was generated.
THEIRS = ("src/widgets_operator/api", "src/widgets_operator/controllers", "samples", "tests")


@pytest.fixture(scope="module")
def cruft(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, in an environment of its own: it is no tool of this repository."""
    folder = tmp_path_factory.mktemp("cruft")
    uv(folder, "venv", "--quiet", "--python", sys.executable, ".venv")
    uv(folder, "pip", "install", "--quiet", "--python", ".venv/bin/python", CRUFT)
    return folder / ".venv" / "bin" / "cruft"


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return releases(tmp_path_factory.mktemp("releases") / "template")


@pytest.fixture
def project(cruft: Path, template: Path, tmp_path: Path) -> Path:
    """A project of the older version with a kind of its own, edited and committed."""
    run(cruft, "create", f"file://{template}", "--checkout", OLD, "--no-input", cwd=tmp_path)
    root = tmp_path / "widgets-operator"
    command = [sys.executable, "-m", "invoke", "gen-controller", "Widget", "widgets"]
    subprocess.run(command, cwd=root, check=True, capture_output=True)
    controller = root / "src/widgets_operator/controllers/widget.py"
    controller.write_text(controller.read_text("utf-8").replace("Published", "Told"), "utf-8")
    git(root, "init", "--quiet")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "ours")
    return root


def run(cruft: Path, *arguments: str, cwd: Path, code: int = 0) -> str:
    environment = {
        **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        "GIT_AUTHOR_NAME": "Somebody",
        "GIT_AUTHOR_EMAIL": "somebody@example.com",
        "GIT_COMMITTER_NAME": "Somebody",
        "GIT_COMMITTER_EMAIL": "somebody@example.com",
        "HOME": str(cwd),
    }
    done = subprocess.run(
        [str(cruft), *arguments], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def theirs(root: Path) -> dict[str, str]:
    return {name: found for name, found in checksums(root).items() if name.startswith(THEIRS)}


def test_an_update_brings_what_is_new_and_leaves_what_is_the_users(cruft: Path, project: Path, template: Path) -> None:
    before = theirs(project)
    (before_update,) = (path.name for path in (project / "vendor").glob(PATTERN))
    assert any("Told" in path.read_text("utf-8") for path in (project / "src").rglob("*.py"))
    assert "out of date" in run(cruft, "check", cwd=project, code=1)

    run(cruft, "update", "--skip-apply-ask", "--checkout", NEW, cwd=project)

    run(cruft, "check", "--checkout", NEW, cwd=project)
    assert theirs(project) == before
    assert (project / ".gitignore").read_text("utf-8").endswith("*.log\n")
    assert (project / "vendor" / CHANGED).read_text("utf-8") == git(template, "show", f"{NEW}:runtime/{CHANGED}")
    (wheel,) = (project / "vendor").glob(PATTERN)
    with zipfile.ZipFile(wheel) as archive:
        assert archive.read(CHANGED_TOOL).decode() == git(template, "show", f"{NEW}:runtime/{CHANGED_TOOL}")
    assert json.loads((project / ".cruft.json").read_text("utf-8"))["commit"] == git(template, "rev-parse", NEW).strip()
    changed = git(project, "status", "--porcelain", "--no-renames").splitlines()
    assert sorted(line[3:] for line in changed) == [
        ".cruft.json",
        ".gitignore",
        "pyproject.toml",
        "vendor/bonny/VERSION",
        "vendor/bonny/__init__.py",
        f"vendor/{CHANGED}",
        f"vendor/{before_update}",
        f"vendor/{wheel.name}",
    ]


@pytest.mark.slow  # five seconds of CPU
def test_an_update_after_update_runtime_agrees_with_it(cruft: Path, project: Path) -> None:
    command = [sys.executable, "-m", "invoke", "update-runtime", "--ref", NEW]
    subprocess.run(command, cwd=project, check=True, capture_output=True)
    git(project, "add", "--all")
    git(project, "commit", "--quiet", "--message", "the runtime")

    run(cruft, "update", "--skip-apply-ask", "--checkout", NEW, cwd=project)

    changed = git(project, "status", "--porcelain").splitlines()
    assert sorted(line[3:] for line in changed) == [".cruft.json", ".gitignore"]


@pytest.mark.slow
def test_what_the_user_and_the_template_both_changed_is_shown_as_a_conflict(cruft: Path, project: Path) -> None:
    ignored = project / ".gitignore"
    ignored.write_text(ignored.read_text("utf-8") + "mine/\n", "utf-8")
    git(project, "commit", "--quiet", "--all", "--message", "mine")

    run(cruft, "update", "--skip-apply-ask", "--checkout", NEW, cwd=project)

    assert re.search(r"^<<<<<<<.*^mine/$.*^=======$.*^\*\.log$", ignored.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert git(project, "diff", "--name-only", "--diff-filter=U").split() == [".gitignore"]


@pytest.mark.slow  # four seconds of CPU
def test_a_repository_that_cookiecutter_made_can_be_linked_afterwards(
    cruft: Path, template: Path, tmp_path: Path
) -> None:
    git(tmp_path, "clone", "--quiet", "--branch", OLD, str(template), "old")
    command = [sys.executable, "-m", "cookiecutter", "--no-input", "-o", str(tmp_path), str(tmp_path / "old")]
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, "HOME": str(tmp_path)})
    root = tmp_path / "widgets-operator"
    git(root, "init", "--quiet")
    run(cruft, "link", f"file://{template}", "--checkout", OLD, "--no-input", cwd=root)
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "ours")

    run(cruft, "update", "--skip-apply-ask", "--checkout", NEW, cwd=root)

    assert (root / ".gitignore").read_text("utf-8").endswith("*.log\n")
