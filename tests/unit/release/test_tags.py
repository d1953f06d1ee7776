"""The last release, as the tags of a repository say."""

from __future__ import annotations

from pathlib import Path

import pytest

from bonny.errors import UsageError
from bonny_dev.release.tags import last_tag
from tests.support.releases import git


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Three commits; the first and the last are tagged."""
    git(tmp_path, "init", "--quiet")
    for number in range(3):
        (tmp_path / "file").write_text(f"{number}\n", encoding="utf-8")
        git(tmp_path, "add", "file")
        git(tmp_path, "commit", "--quiet", "--message", f"{number}")
        if number != 1:
            git(tmp_path, "tag", f"v{number}")
    return tmp_path


def test_a_tagged_commit_is_compared_with_the_tag_before(repository: Path) -> None:
    assert last_tag(repository) == "v0"


def test_changes_are_compared_with_the_newest_tag(repository: Path) -> None:
    (repository / "file").write_text("changed\n", encoding="utf-8")

    assert last_tag(repository) == "v2"

    git(repository, "commit", "--quiet", "--all", "--message", "changed")
    assert last_tag(repository) == "v2"


def test_the_first_tag_has_none_before_it(repository: Path) -> None:
    git(repository, "checkout", "--quiet", "v0")

    assert last_tag(repository) == ""


def test_a_repository_without_tags_has_none(repository: Path) -> None:
    git(repository, "tag", "--delete", "v0", "v2")

    assert last_tag(repository) == ""


def test_a_repository_without_commits_has_none(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")

    assert last_tag(tmp_path) == ""


def test_a_folder_without_a_repository_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))

    with pytest.raises(UsageError, match="there is no git repository here"):
        last_tag(tmp_path)
