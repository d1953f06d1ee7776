"""The archive for Windows: its names are legal there, and it renders the same bytes as the repository.

The names are refused by an imitation (tests/support/windows); nothing here has run on Windows itself.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.support.baking import TEMPLATE, bake
from tests.template.conftest import ANSWER_SETS
from tests.template.test_rendering import ILLEGAL_ON_WINDOWS, contents, copied_template
from tests.template.test_shipping import git
from tools import portable

# Without a setting, Windows allows 260 characters; the folder for temporary files takes about 70 of them.
LONGEST = 180


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = copied_template(tmp_path_factory.mktemp("portable"))
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "first")
    return folder


@pytest.fixture(scope="module")
def archive(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("archive")
    assert portable.main(["--out", str(out)], repository) == 0
    (path,) = out.iterdir()
    return path


def there(home: Path, *words: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a module of Python where Windows' refusals are imitated; everything that it writes is below `home`."""
    path = os.pathsep.join([str(TEMPLATE / "tests" / "support" / "windows"), os.environ["PYTHONPATH"]])
    settings = {"HOME": str(home), "TMPDIR": str(home), "WINDOWS_BELOW": str(home), "PYTHONPATH": path}
    command = [sys.executable, "-m", *map(str, words)]
    return subprocess.run(command, cwd=cwd, env={**os.environ, **settings}, capture_output=True, text=True, check=False)


def cut(home: Path, template: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """cookiecutter as a person on Windows has it."""
    (home / "out").mkdir(parents=True)
    return there(home, "cookiecutter", "--output-dir", home / "out", template, *words, cwd=home)


@pytest.mark.parametrize("answers", [{}, ANSWER_SETS["fullest"]], ids=["default", "fullest"])
def test_the_archive_renders_the_same_bytes_where_names_are_refused(
    answers: dict[str, str], archive: Path, tmp_path: Path
) -> None:
    words = [f"{name}={text}" for name, text in answers.items()]

    done = cut(tmp_path / "home", archive, "--no-input", *words)

    assert done.returncode == 0, done.stdout + done.stderr
    baked = bake(tmp_path / "bake", answers)
    assert baked.code == 0, baked.said
    (project,) = (tmp_path / "home" / "out").iterdir()
    assert contents(project) == contents(baked.project)


def test_a_rendered_repository_is_worked_on_there_without_a_sandbox(archive: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert cut(home, archive, "--no-input").returncode == 0
    project = home / "out" / "widgets-operator"
    for words in (
        ("invoke", "gen-controller", "Widget", "widgets"),
        ("invoke", "manifest", "--image", "registry.example.com/widgets-operator:1"),
        ("pytest", "-q", "-p", "no:cacheprovider", "tests/unit"),
    ):
        done = there(home, *words, cwd=project)
        assert done.returncode == 0, done.stdout + done.stderr

    refused = there(home, "invoke", "run-local", "--sandbox", cwd=project)

    assert (refused.returncode, refused.stderr) == (
        2,
        "a sandbox needs Linux or macOS: on Windows use WSL2 or the dev container\n",
    )


def test_the_repository_itself_is_refused_there(repository: Path, tmp_path: Path) -> None:
    """So the imitation does refuse: an archive of git has the names of the repository."""
    git(repository, "archive", "--format=zip", "--prefix=template/", f"--output={tmp_path}/template.zip", "HEAD")

    done = cut(tmp_path / "home", tmp_path / "template.zip", "--no-input")

    assert done.returncode != 0
    assert "Windows refuses this name" in done.stderr


def test_all_names_of_the_archive_are_legal_short_and_apart(archive: Path) -> None:
    with zipfile.ZipFile(archive) as opened:
        names = opened.namelist()
    assert names[0] == f"{archive.stem}/"
    assert [name for name in names for part in name.rstrip("/").split("/") if ILLEGAL_ON_WINDOWS.search(part)] == []
    assert max(map(len, names)) <= LONGEST
    assert len({name.lower() for name in names}) == len(names)


def test_a_commit_has_one_archive(repository: Path) -> None:
    assert portable.archived(repository, "HEAD") == portable.archived(repository, "HEAD")


def test_an_answer_with_a_mark_of_the_archive_is_refused(archive: Path, tmp_path: Path) -> None:
    recorded = tmp_path / "answers.json"
    (tmp_path / "first").mkdir()
    assert cut(tmp_path / "first" / "home", archive, "--no-input").returncode == 0
    (kept,) = (tmp_path / "first" / "home" / ".cookiecutter_replay").glob("*.json")
    given = json.loads(kept.read_text("utf-8"))
    given["cookiecutter"]["description"] = "a @{b"
    recorded.write_text(json.dumps(given), "utf-8")

    done = cut(tmp_path / "home", archive, f"--replay-file={recorded}")

    assert done.returncode != 0
    assert "Refused: description holds @{, which begins template code here: leave it out." in done.stderr
    assert list((tmp_path / "home" / "out").iterdir()) == []


@pytest.mark.parametrize(
    ("text", "there"),
    [
        ("a << b >> c", "a @{ b }@ c"),
        ("<%- if a %>\nb\n<% endif -%>\n", "@%- if a %@\nb\n@% endif -%@\n"),
        ("<# << #>", "@# << #@"),
        ("<% raw %><<<% endraw %>", "@% raw %@<<@% endraw %@"),
        ("${{ x }} %} # @ { 1 >> 2", "${{ x }} %} # @ { 1 >> 2"),
    ],
)
def test_marks_are_exchanged_and_nothing_else(text: str, there: str) -> None:
    before = json.loads((TEMPLATE / "cookiecutter.json").read_text("utf-8"))["_jinja2_env_vars"]
    assert portable.translated(text, {mark: before[mark] for mark in portable.MARKS}, "a file") == there


def test_a_file_with_a_mark_of_the_archive_is_refused_in_a_sentence(
    repository: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", str(repository), str(clone))
    with (clone / portable.FOLDER / "README.md").open("a", encoding="utf-8") as file:
        file.write("@{\n")
    git(clone, "commit", "--quiet", "--all", "--message", "a mark")

    assert portable.main(["--out", str(tmp_path / "out")], clone) == 2
    assert capsys.readouterr().err == (
        f"{portable.FOLDER}/README.md holds '@{{', a mark of the archive: write it in another way\n"
    )
    assert portable.main(["--ref", "v9", "--out", str(tmp_path / "out")], clone) == 2
    assert capsys.readouterr().err.startswith("git archive failed: ")
    assert not (tmp_path / "out").exists()
