"""A folder of generated files and files of the user: what is replaced, kept, removed and refused."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from bonny.errors import UsageError
from bonny_dev.formats.folder import Folder, Written, write

FIRST = Folder(generated={"chart/a.yaml": "a: 1\n", "chart/deep/b.yaml": "b: 1\n"}, own={"chart/values.yaml": "v: 1\n"})
SECOND = Folder(generated={"chart/a.yaml": "a: 2\n"}, own={"chart/values.yaml": "v: 2\n"})


def tree(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != "CHECKSUMS")
    return {path.relative_to(folder).as_posix(): path.read_text("utf-8") for path in files}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "deploy" / "helm", FIRST)
    return tmp_path / "deploy" / "helm"


def test_the_first_time_everything_is_written(folder: Path) -> None:
    assert tree(folder) == {**FIRST.generated, **FIRST.own}
    assert [path.name for path in folder.parent.iterdir()] == ["helm"]
    subprocess.run(["sha256sum", "--check", "--quiet", "CHECKSUMS"], cwd=folder, check=True)


def test_the_second_time_nothing_is_changed(folder: Path) -> None:
    assert write(folder, FIRST) == Written(changed=[], removed=[], kept=[])


def test_files_that_nobody_edited_follow_and_those_that_are_no_longer_made_go(folder: Path) -> None:
    done = write(folder, SECOND)

    assert done == Written(changed=["chart/a.yaml", "chart/values.yaml"], removed=["chart/deep/b.yaml"], kept=[])
    assert tree(folder) == {**SECOND.generated, **SECOND.own}
    assert not (folder / "chart" / "deep").exists()


def test_edits_of_the_users_files_stay_in_each_further_run(folder: Path) -> None:
    (folder / "chart" / "values.yaml").write_text("v: mine\n", encoding="utf-8")
    (folder / "chart" / "extra.yaml").write_text("mine\n", encoding="utf-8")

    for _ in range(2):
        assert write(folder, SECOND).kept == ["chart/values.yaml"]
        assert tree(folder) == {**SECOND.generated, "chart/values.yaml": "v: mine\n", "chart/extra.yaml": "mine\n"}


def test_a_users_file_that_was_deleted_stays_away(folder: Path) -> None:
    (folder / "chart" / "values.yaml").unlink()

    for _ in range(2):
        write(folder, SECOND)
        assert tree(folder) == SECOND.generated


def test_a_users_file_that_was_there_before_is_kept(tmp_path: Path) -> None:
    (tmp_path / "chart").mkdir()
    (tmp_path / "chart" / "values.yaml").write_text("v: mine\n", encoding="utf-8")

    assert write(tmp_path, FIRST).kept == ["chart/values.yaml"]
    assert write(tmp_path, SECOND).kept == ["chart/values.yaml"]


@pytest.mark.parametrize("name", ["chart/a.yaml", "chart/deep/b.yaml"])
def test_an_edited_generated_file_is_named_and_nothing_is_written(folder: Path, name: str) -> None:
    (folder / name).write_text("edited\n", encoding="utf-8")
    before = tree(folder)

    with pytest.raises(
        UsageError, match=f"generated files were edited: {name}; move the changes to a file of your own"
    ):
        write(folder, SECOND)
    assert tree(folder) == before

    write(folder, SECOND, force=True)
    assert tree(folder) == {**SECOND.generated, **SECOND.own}


def test_a_foreign_file_in_the_place_of_a_generated_one_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "chart").mkdir()
    (tmp_path / "chart" / "a.yaml").write_text("other\n", encoding="utf-8")

    with pytest.raises(UsageError, match=r"were edited: chart/a\.yaml"):
        write(tmp_path, FIRST)


def test_a_failure_leaves_the_folder_as_it_was(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = tree(folder)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copytree", full)
    with pytest.raises(UsageError, match=r"helm cannot be written \(No space left on device\): name another folder"):
        write(folder, SECOND)

    assert tree(folder) == before
    assert [path.name for path in folder.parent.iterdir()] == ["helm"]


def test_checksums_cannot_lead_out_of_the_folder(folder: Path) -> None:
    outside = folder.parent / "precious"
    outside.write_text("x", encoding="utf-8")
    with (folder / "CHECKSUMS").open("a", encoding="utf-8") as file:
        file.write(f"{'0' * 64}  ../precious\n{'0' * 64}  {outside}\n")

    write(folder, SECOND, force=True)

    assert outside.exists()


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "helm").write_text("x", encoding="utf-8")

    with pytest.raises(UsageError, match="helm is a file: name a folder by --out"):
        write(tmp_path / "helm", FIRST)
