"""Releases of this repository: refused in one sentence, shown by a dry run, made as one commit with its tag."""

from __future__ import annotations

from pathlib import Path

import pytest

import bonny
from tests.support.releases import git
from tools import release

ROOT = Path(__file__).parents[2]
NOTES = "### Added\n\n- A widget."
CHANGELOG = f"# Changelog\n\n## [Unreleased]\n\n{NOTES}\n\n## [0.1.0] - 2026-01-02\n\n- The first.\n"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository after its release 0.1.0, with notes for the next one."""
    code = tmp_path / release.PLACE
    code.parent.mkdir(parents=True)
    code.write_text('"""The face."""\n\n__version__ = "0.1.0"\n', "utf-8")
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG, "utf-8")
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", "--all")
    git(tmp_path, "config", "user.name", "Ann")
    git(tmp_path, "config", "user.email", "ann@example.com")
    git(tmp_path, "commit", "--quiet", "--message", "first")
    git(tmp_path, "tag", "v0.1.0")
    return tmp_path


def state(repository: Path) -> tuple[str, ...]:
    files = (release.PLACE, "CHANGELOG.md")
    return (*(git(repository, *words) for words in (("log",), ("tag",), ("status", "--short"))),
            *((repository / name).read_text("utf-8") for name in files))  # fmt: skip


def write(repository: Path, name: str, text: str) -> None:
    (repository / name).write_text(text, "utf-8")
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "--message", "a change")


def test_a_dry_run_prints_the_notes_and_changes_nothing(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = state(repository)

    assert release.main(["--version", "0.2.0", "--dry-run"], repository) == 0

    printed = capsys.readouterr().out
    assert "v0.2.0" in printed
    assert "nothing was changed" in printed
    assert printed.endswith(f"\n{NOTES}\n")
    assert state(repository) == before


def test_a_release_is_one_commit_with_a_tag_that_has_the_notes(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert release.main(["--version", "0.2.0"], repository) == 0

    printed = capsys.readouterr().out
    assert "git push --atomic origin HEAD v0.2.0" in printed
    assert "`invoke archive --ref v0.2.0`" in printed
    assert git(repository, "status", "--short") == ""
    assert git(repository, "log", "--format=%s", "v0.1.0..v0.2.0").split("\n")[0] == "build: release 0.2.0"
    assert git(repository, "tag", "--list", "--format=%(contents)", "v0.2.0").strip() == f"0.2.0\n\n{NOTES}"
    assert '__version__ = "0.2.0"' in (repository / release.PLACE).read_text("utf-8")
    changelog = (repository / "CHANGELOG.md").read_text("utf-8")
    head, section, older = changelog.split("\n## [")[0:3]
    assert (head, section) == ("# Changelog\n", "Unreleased]\n")
    assert older.split("\n", 1)[1] == f"\n{NOTES}\n"
    assert changelog.endswith("\n\n## [0.1.0] - 2026-01-02\n\n- The first.\n")


def test_after_a_release_the_next_one_has_no_notes(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert release.main(["--version", "0.2.0"], repository) == 0
    assert release.main(["--version", "0.3.0"], repository) == 2
    assert capsys.readouterr().err == (
        "CHANGELOG.md has no entries below [Unreleased]: add the changes that users notice\n"
    )


def test_the_first_release_takes_the_version_of_the_code(repository: Path) -> None:
    git(repository, "tag", "--delete", "v0.1.0")
    assert release.main([], repository) == 0
    assert git(repository, "tag").split() == ["v0.1.0"]


@pytest.mark.parametrize(
    ("version", "sentence"),
    [
        ("0.1.0", "0.1.0 is not newer than the last release, 0.1.0: choose a newer one with --version"),
        ("0.0.9", "0.0.9 is not newer than the last release, 0.1.0: choose a newer one with --version"),
        ("v0.2.0", "'v0.2.0' is not a version: use three numbers, for example 0.2.0"),
        ("0.2", "'0.2' is not a version: use three numbers, for example 0.2.0"),
        ("00.2.0", "'00.2.0' is not a version: use three numbers, for example 0.2.0"),
    ],
)
def test_a_version_that_cannot_be_next_is_refused(
    repository: Path, version: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = state(repository)
    assert release.main(["--version", version], repository) == 2
    assert capsys.readouterr().err == f"{sentence}\n"
    assert state(repository) == before


def test_a_work_tree_with_changes_is_refused(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (repository / "new.txt").touch()
    assert release.main(["--version", "0.2.0", "--dry-run"], repository) == 2
    assert capsys.readouterr().err == (
        "the work tree has changes that are not committed: commit or remove them (`git status`)\n"
    )


@pytest.mark.parametrize(
    "text", ["# Changelog\n", "# Changelog\n\n## [Unreleased]\n\n### Added\n\n## [0.1.0]\n\n- x\n"]
)
def test_missing_notes_are_refused(repository: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    write(repository, "CHANGELOG.md", text)
    assert release.main(["--version", "0.2.0"], repository) == 2
    assert "CHANGELOG.md has no entries below [Unreleased]" in capsys.readouterr().err


def test_a_commit_that_is_refused_leaves_the_files_as_they_were(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hook = repository / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho no >&2\nexit 1\n", "utf-8")
    hook.chmod(0o755)
    before = state(repository)
    assert release.main(["--version", "0.2.0"], repository) == 2
    assert capsys.readouterr().err == "git commit failed: no\n"
    assert state(repository) == before


def test_the_version_of_this_repository_is_in_one_place_and_has_notes_to_come() -> None:
    code = (ROOT / release.PLACE).read_text("utf-8")
    assert release.CURRENT.findall(code) == [bonny.__version__]
    assert release.UNRELEASED in (ROOT / "CHANGELOG.md").read_text("utf-8")
