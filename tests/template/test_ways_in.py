"""Ways in: how the template gets to a person, where it is rendered to, and what is said when that cannot be."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.baking import TEMPLATE, uv
from tests.template.test_rendering import contents, copied_template, runtime_in
from tests.template.test_shipping import git

ANSWERS = {"operator_name": "Gadgets Operator", "licence": "MIT", "ci": "gitlab"}


class Cutter:
    """cookiecutter with a home of its own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        home.mkdir()

    def __call__(self, *words: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "HOME": str(self.home), "TMPDIR": str(self.home)}
        command = [sys.executable, "-m", "cookiecutter", *map(str, words)]
        return subprocess.run(
            command, cwd=cwd or self.home, env=environment, capture_output=True, text=True, check=False
        )


@pytest.fixture
def cutter(tmp_path: Path) -> Cutter:
    return Cutter(tmp_path / "home")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    return tmp_path / "out"


@pytest.fixture(scope="module")
def tagged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A git repository of the template with the tags v1 and v2, which differ in one line of a README."""
    folder = copied_template(tmp_path_factory.mktemp("tagged"))
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "first")
    git(folder, "tag", "v1")
    readme = folder / "<<cookiecutter.operator_slug>>" / "README.md"
    readme.write_text(readme.read_text("utf-8") + "\nThis is the second version.\n", encoding="utf-8")
    git(folder, "commit", "--quiet", "--all", "--message", "second")
    git(folder, "tag", "v2")
    return folder


def answers() -> Iterator[str]:
    return (f"{name}={text}" for name, text in ANSWERS.items())


def said(done: subprocess.CompletedProcess[str]) -> str:
    return done.stdout + done.stderr


# --- where it comes from ----------------------------------------------------------------------------------------------


def test_replay_renders_the_same_again(cutter: Cutter, out: Path, tmp_path: Path) -> None:
    first = cutter("--no-input", "--output-dir", out, TEMPLATE, *answers())
    again = cutter("--replay", "--output-dir", tmp_path / "again", TEMPLATE)

    assert (first.returncode, again.returncode) == (0, 0), said(first) + said(again)
    assert contents(tmp_path / "again") == contents(out)


def test_answers_can_be_kept_in_a_file(cutter: Cutter, out: Path, tmp_path: Path) -> None:
    kept = tmp_path / "answers.json"
    assert cutter("--no-input", "--output-dir", out, TEMPLATE, *answers()).returncode == 0
    (recorded,) = (cutter.home / ".cookiecutter_replay").glob("*.json")
    shutil.copy(recorded, kept)

    again = cutter("--replay-file", kept, "--output-dir", tmp_path / "again", TEMPLATE)

    assert again.returncode == 0, said(again)
    assert contents(tmp_path / "again") == contents(out)
    assert json.loads(kept.read_text("utf-8"))["cookiecutter"]["operator_name"] == "Gadgets Operator"


@pytest.mark.parametrize(("tag", "second"), [("v1", False), ("v2", True)])
def test_a_tag_of_a_clone_can_be_chosen(tag: str, second: bool, tagged: Path, cutter: Cutter, out: Path) -> None:
    done = cutter("--no-input", "--checkout", tag, "--output-dir", out, f"git+file://{tagged}")

    assert done.returncode == 0, said(done)
    readme = (out / "widgets-operator" / "README.md").read_text("utf-8")
    assert ("This is the second version." in readme) is second
    assert runtime_in(out / "widgets-operator") == contents(TEMPLATE / "runtime")


def test_an_archive_made_by_git_renders(tagged: Path, cutter: Cutter, out: Path, tmp_path: Path) -> None:
    """A zip holds the link to the runtime as text; the hook mends that from the archive's own runtime."""
    git(tagged, "archive", "--format=zip", "--prefix=template/", f"--output={tmp_path}/template.zip", "v1")

    done = cutter("--no-input", "--output-dir", out, tmp_path / "template.zip")

    assert done.returncode == 0, said(done)
    assert runtime_in(out / "widgets-operator") == contents(TEMPLATE / "runtime")


def test_an_archive_rendered_over_its_own_project_is_refused_in_the_words_of_cookiecutter(
    tagged: Path, cutter: Cutter, out: Path, tmp_path: Path
) -> None:
    """Where a zip does not do: `--overwrite-if-exists` meets a folder where the archive has a text file."""
    git(tagged, "archive", "--format=zip", "--prefix=template/", f"--output={tmp_path}/template.zip", "v1")
    assert cutter("--no-input", "--output-dir", out, tmp_path / "template.zip").returncode == 0

    again = cutter("--no-input", "--overwrite-if-exists", "--output-dir", out, tmp_path / "template.zip")

    assert again.returncode != 0
    assert "IsADirectoryError" in said(again)
    assert (out / "widgets-operator/vendor/bonny/errors.py").is_file()


def test_a_clone_without_links_and_with_a_relative_path_is_refused_in_a_sentence(
    tagged: Path, cutter: Cutter, out: Path
) -> None:
    git(cutter.home, "-c", "core.symlinks=false", "clone", "--quiet", str(tagged), "clone")

    done = cutter("--no-input", "--output-dir", out, "./clone")

    refusals = [line for line in done.stderr.splitlines() if line.startswith("Refused: ")]
    assert done.returncode != 0
    assert len(refusals) == 1
    assert "symbolic links" in refusals[0]
    assert list(out.iterdir()) == []


def test_files_of_options_that_were_not_chosen_are_missing_without_hooks_too(cutter: Cutter, out: Path) -> None:
    done = cutter("--no-input", "--accept-hooks", "no", "--output-dir", out, TEMPLATE, "ci=none")

    names = {path.name for path in (out / "widgets-operator").rglob("*") if path.is_file()}
    assert done.returncode == 0, said(done)
    assert (
        not {"ci.yml", ".gitlab-ci.yml", "dependabot.yml", "renovate.json", "CODEOWNERS", "devcontainer.json"} & names
    )


def test_the_version_before_the_oldest_that_can_render_it_says_so(tmp_path: Path, out: Path) -> None:
    """2.6.0 is the first that looks for a folder by the delimiters that cookiecutter.json names."""
    environment = tmp_path / "old"
    uv(tmp_path, "venv", "--quiet", "--python", sys.executable, str(environment))
    uv(tmp_path, "pip", "install", "--quiet", "--python", str(environment / "bin/python"), "cookiecutter==2.5.0")

    command = [str(environment / "bin/cookiecutter"), "--no-input", "--output-dir", str(out), str(TEMPLATE)]
    settings = {**os.environ, "HOME": str(tmp_path)}
    done = subprocess.run(command, env=settings, capture_output=True, text=True, check=False)

    assert done.returncode != 0
    assert list(out.iterdir()) == []


# --- where it goes to -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["spaces, ünïcødé ☃, quote's, double\"quote, $HOME", "-dash"])
def test_the_target_may_be_called_anything(name: str, tmp_path: Path, cutter: Cutter) -> None:
    target = tmp_path / name
    done = cutter("--no-input", "--output-dir", target, TEMPLATE)
    assert done.returncode == 0, said(done)

    listed = subprocess.run(
        [sys.executable, "-m", "invoke", "manifest"],
        cwd=target / "widgets-operator",
        capture_output=True,
        text=True,
        check=False,
    )
    assert (listed.returncode, listed.stdout) == (0, "wrote manifest.yaml\n"), listed.stderr


def test_a_project_that_exists_is_not_touched(cutter: Cutter, out: Path) -> None:
    mine = out / "widgets-operator" / "mine.txt"
    mine.parent.mkdir()
    mine.write_text("mine", encoding="utf-8")

    done = cutter("--no-input", "--output-dir", out, TEMPLATE)

    assert done.returncode != 0
    assert "already exists" in said(done)
    assert [path.name for path in mine.parent.iterdir()] == ["mine.txt"]


def test_rendering_over_a_project_leaves_what_its_owner_added(cutter: Cutter, out: Path) -> None:
    assert cutter("--no-input", "--output-dir", out, TEMPLATE).returncode == 0
    project = out / "widgets-operator"
    (project / "src/widgets_operator/controllers/widget.py").write_text("MINE = 1\n", encoding="utf-8")
    (project / "vendor/bonny/errors.py").write_text("edited\n", encoding="utf-8")

    done = cutter("--no-input", "--overwrite-if-exists", "--output-dir", out, TEMPLATE)

    assert done.returncode == 0, said(done)
    assert (project / "src/widgets_operator/controllers/widget.py").read_text("utf-8") == "MINE = 1\n"
    assert runtime_in(project) == contents(TEMPLATE / "runtime")


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MiB, which the runtime does not fit into."""
    folder = tmp_path / "mounted"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", folder], check=False).returncode:
        pytest.skip("only root can mount here")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_target_that_cannot_be_written_to_is_named_and_left_alone(mounted: Path, cutter: Cutter) -> None:
    subprocess.run(["mount", "-o", "remount,ro", mounted], check=True)

    done = cutter("--no-input", "--output-dir", mounted, TEMPLATE)

    assert done.returncode != 0
    assert "Read-only file system" in said(done)
    assert str(mounted) in said(done)
    assert list(mounted.iterdir()) == []


def test_a_full_disk_is_refused_in_a_sentence_before_anything_is_written(mounted: Path, cutter: Cutter) -> None:
    """Regression: cookiecutter itself stops in the middle, with a list of 60 files, and leaves half a project."""
    done = cutter("--no-input", "--output-dir", mounted, TEMPLATE)

    refusals = [line for line in done.stderr.splitlines() if line.startswith("Refused: ")]
    assert done.returncode != 0
    assert len(refusals) == 1
    assert "MB left on the disk and 8 are needed" in refusals[0]
    assert list(mounted.iterdir()) == []


def test_what_is_asked_for_of_the_disk_is_more_than_a_project_takes(pristine: Path) -> None:
    said = subprocess.run(["du", "--summarize", "--block-size=1", pristine], capture_output=True, text=True, check=True)

    assert int(said.stdout.split()[0]) < 6_000_000
