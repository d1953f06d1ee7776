"""Releases: which tag an upgrade begins with, and which lives are about it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from bonny_dev.prove.plans import Fault
from bonny_dev.prove.release import last_tag
from bonny_dev.prove.state import State
from bonny_dev.prove.upgrade import compared, is_about_releases, plans_of


def git(root: Path, *arguments: str) -> None:
    author = ("-c", "user.name=A Developer", "-c", "user.email=developer@example.com")
    subprocess.run(["git", *author, *arguments], cwd=root, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "--quiet")
    (tmp_path / "file").write_text("", "utf-8")
    commit(tmp_path)
    return tmp_path


def commit(root: Path) -> None:
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--allow-empty", "--message", "a change")


def test_there_is_no_tag_without_git_and_without_a_release(tmp_path: Path, repository: Path) -> None:
    (outside := tmp_path / "outside").mkdir()
    git(repository, "tag", "nightly")
    commit(repository)

    assert last_tag(outside) == last_tag(repository) == ""


def test_the_newest_reachable_version_is_taken_and_not_the_last_by_name(repository: Path) -> None:
    for tag in ("v1.9.0", "v1.10.0"):
        git(repository, "tag", tag)
        commit(repository)
    git(repository, "checkout", "--quiet", "-b", "other")
    commit(repository)
    git(repository, "tag", "v9.0.0")
    git(repository, "checkout", "--quiet", "-")

    assert last_tag(repository) == "v1.10.0"


def test_a_tag_of_this_commit_is_tried_itself_unless_a_file_was_changed_since(repository: Path) -> None:
    git(repository, "tag", "v1.0.0")
    commit(repository)
    git(repository, "tag", "v1.1.0")

    assert last_tag(repository) == "v1.0.0"
    (repository / "file").write_text("changed", "utf-8")
    assert last_tag(repository) == "v1.1.0"


def test_only_names_that_end_with_a_release_are_about_one() -> None:
    assert is_about_releases("desk/upgrade")
    assert is_about_releases("*/downgrade")
    assert not is_about_releases("desk/*")
    assert [plan.name for plan in plans_of("desk", ())] == ["desk/upgrade", "desk/downgrade"]
    assert [plan.name for plan in plans_of("desk", ["*/upgrade"])] == ["desk/upgrade"]
    assert plans_of("wall", ["desk/upgrade"]) == []


def maps(**data: str) -> State:
    return {"ConfigMap desk": {f"data.{name}": value for name, value in data.items()}}


def test_the_way_up_is_compared_with_a_new_object_and_the_way_back_with_the_old_one() -> None:
    life = [maps(a="1"), maps(a="2"), maps(a="3")]

    pairs = compared([life, life], [[maps(a="4")], [maps(a="4")]])

    assert pairs == {
        Fault.UPGRADE: (maps(a="2"), maps(a="4")),
        Fault.DOWNGRADE: (maps(a="3"), maps(a="1")),
    }


def test_what_differs_between_two_equal_histories_is_left_out() -> None:
    one = [maps(a="1", key="x"), maps(a="1", key="x"), maps(a="1", key="x")]
    other = [maps(a="1", key="y"), maps(a="1", key="y"), maps(a="1", key="y")]

    pairs = compared([one, other], [[maps(a="1", key="z")], [maps(a="1", key="w")]])

    assert pairs[Fault.UPGRADE] == (maps(a="1"), maps(a="1"))


@pytest.mark.parametrize(("reached", "faults"), [(0, []), (1, []), (2, [Fault.UPGRADE])])
def test_a_life_that_did_not_come_so_far_is_not_compared(reached: int, faults: list[Fault]) -> None:
    life = [maps(), maps(), maps()]

    assert list(compared([life, life[:reached]], [[maps()], [maps()]])) == faults
    assert list(compared([life, life], [[maps()], []])) == [Fault.DOWNGRADE]
