"""`invoke update-runtime`: runtime and tools are replaced together or not at all, and what was edited is not lost."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from bonny.errors import UsageError
from bonny_dev.tasks.update_runtime import Edited, update_runtime
from bonny_dev.wheel import PATTERN, VERSION, base_of, contents, selected, version_of
from tests.support.baking import TEMPLATE, bake, checksums
from tests.support.releases import CHANGED, CHANGED_TOOL, NEW, OLD, UNCHANGED, git, releases

MARK = "# New in 0.2.0.\n"
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(TEMPLATE / "runtime"), "PYTHONDONTWRITEBYTECODE": "1"}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return releases(tmp_path_factory.mktemp("releases") / "template")


@pytest.fixture(scope="module")
def delivered(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project that was rendered from the older version."""
    folder = tmp_path_factory.mktemp("delivered")
    git(folder, "clone", "--quiet", "--branch", OLD, str(template), "old")
    baked = bake(folder / "bake", template=folder / "old")
    assert baked.code == 0, baked.said
    return baked.project


@pytest.fixture
def root(delivered: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(delivered, tmp_path / "project"))


def vendored(root: Path, name: str) -> Path:
    return root / "vendor" / name


def wheel(root: Path) -> Path:
    (found,) = (root / "vendor").glob(PATTERN)
    return found


def tool(root: Path, name: str) -> str:
    """The text of a file of the developer tools."""
    with zipfile.ZipFile(wheel(root)) as archive:
        return archive.read(name).decode()


def is_whole(root: Path) -> bool:
    """Whether the runtime holds the files in its wheel, without those of other extras, and the version of that wheel,
    and pyproject.toml installs that wheel."""
    folder = root / "vendor/bonny"
    return (
        contents(folder) == selected(base_of(wheel(root)), extras_of(root))
        and (folder / VERSION).read_text("utf-8") == f"{version_of(wheel(root).name)}\n"
        and (root / "pyproject.toml").read_text("utf-8").count(f"vendor/{wheel(root).name}") == 2
    )


def extras_of(root: Path) -> list[str]:
    extras: list[str] = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["tool"]["bonny"]["extras"]
    return extras


def is_all_there_is(root: Path) -> bool:
    """Whether vendor/ holds the runtime and one wheel, and nothing that an update left behind."""
    return sorted(path.name for path in (root / "vendor").iterdir()) == ["bonny", wheel(root).name]


def test_it_takes_the_newest_tag_and_shows_what_changed(root: Path, template: Path) -> None:
    report = update_runtime(root, origin=f"file://{template}")

    assert (report.before, report.after, report.edited) == ("0.1.0", "0.2.0", ())
    assert report.changed == ("__init__.py", CHANGED.removeprefix("bonny/"))
    assert report.origin == f"{NEW} of file://{template}"
    assert report.changelog == "## [0.2.0] - 2026-03-01\n\n- Better errors."
    assert report.left == ()
    assert vendored(root, CHANGED).read_text("utf-8").endswith(MARK)
    assert tool(root, CHANGED_TOOL).endswith(MARK)
    assert wheel(root).name.startswith("bonny_dev-0.2.0+")
    assert is_whole(root)
    assert is_all_there_is(root)


def test_a_release_candidate_is_taken_only_by_its_name(root: Path, template: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", str(template), "candidate")
    for tag in (f"{NEW}rc2", "v0.10.0-rc.1", "vnext"):
        git(tmp_path / "candidate", "tag", tag, OLD)

    report = update_runtime(root, origin=f"file://{tmp_path}/candidate")

    assert (report.origin.partition(" ")[0], report.after) == (NEW, "0.2.0")


def test_a_token_in_the_url_of_the_template_is_not_told(
    root: Path, template: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """git takes the folder for that URL."""
    url = "https://somebody:s3cr3t@git.example.com/template.git"
    for name, text in (("COUNT", "1"), ("KEY_0", f"url.file://{template}.insteadOf"), ("VALUE_0", url)):
        monkeypatch.setenv(f"GIT_CONFIG_{name}", text)
    monkeypatch.setenv("GIT_TERMINAL_PROMPT", "0")

    assert update_runtime(root, origin=url).origin == f"{NEW} of https://git.example.com/template.git"
    with pytest.raises(UsageError, match=r"https://git\.example\.com/template\.git has no tag"):
        update_runtime(root, origin=url, ref="v9.9.9")
    with pytest.raises(UsageError, match="git clone failed") as failed:
        update_runtime(root, origin="http://somebody:s3cr3t@127.0.0.1:1/template.git")
    assert "s3cr3t" not in str(failed.value)


@pytest.mark.parametrize("ref", [OLD, "side", "sha"])
def test_a_ref_is_a_tag_a_branch_or_a_commit_and_may_lead_back(root: Path, template: Path, ref: str) -> None:
    git(template, "branch", "--force", "side", OLD)
    name = git(template, "rev-parse", OLD).strip() if ref == "sha" else ref
    update_runtime(root, origin=str(template), ref=NEW)

    report = update_runtime(root, origin=str(template), ref=name)

    assert (report.before, report.after) == ("0.2.0", "0.1.0")
    assert report.changelog.startswith("## [0.1.0]")
    assert not vendored(root, CHANGED).read_text("utf-8").endswith(MARK)


def test_a_folder_is_taken_as_it_lies_there_without_git(
    root: Path, template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(
        shutil.copytree(template, tmp_path / "unpacked", ignore=shutil.ignore_patterns(".git"), symlinks=True)
    )
    (folder / "runtime/bonny/__pycache__").mkdir()
    (folder / "runtime/bonny/__pycache__/x.pyc").write_bytes(b"x")
    monkeypatch.setenv("PATH", str(tmp_path))

    assert update_runtime(root, origin=str(folder)).after == "0.2.0"
    assert not vendored(root, "bonny/__pycache__").exists()
    assert is_whole(root)


def edit(root: Path, name: str, old: str, new: str) -> None:
    text = vendored(root, name).read_text("utf-8")
    assert text.count(old) == 1
    vendored(root, name).write_text(text.replace(old, new), "utf-8")


def test_an_edit_is_merged_with_what_the_new_version_changed(root: Path, template: Path) -> None:
    """Here at the first line, there at the end of the file."""
    first = vendored(root, CHANGED).read_text("utf-8").splitlines()[0]
    edit(root, CHANGED, first, f"# Mine.\n{first}")
    vendored(root, UNCHANGED).write_text("# mine\n", "utf-8")
    vendored(root, "bonny/steps/mine.py").write_text("# mine, too\n", "utf-8")
    vendored(root, "bonny/events.py").unlink()

    report = update_runtime(root, origin=str(template), ref=NEW)

    assert [(name, outcome) for name, outcome in report.edited] == [
        (CHANGED.removeprefix("bonny/"), "merged"),
        (UNCHANGED.removeprefix("bonny/"), "kept"),
        ("steps/mine.py", "kept"),
    ]
    merged = vendored(root, CHANGED).read_text("utf-8")
    assert merged.startswith(f"# Mine.\n{first}\n")
    assert merged.endswith(MARK)
    assert vendored(root, UNCHANGED).read_text("utf-8") == "# mine\n"
    assert vendored(root, "bonny/steps/mine.py").read_text("utf-8") == "# mine, too\n"
    assert vendored(root, "bonny/events.py").exists()
    again = update_runtime(root, origin=str(template), ref=NEW)
    assert [name for name, _ in again.edited] == [name for name, _ in report.edited]
    assert vendored(root, CHANGED).read_text("utf-8") == merged


def test_an_edit_of_what_the_new_version_changed_is_left_to_the_user_between_marks(root: Path, template: Path) -> None:
    before = vendored(root, CHANGED).read_text("utf-8")
    vendored(root, CHANGED).write_text(f"{before}# Mine.\n", "utf-8")

    report = update_runtime(root, origin=str(template), ref=NEW)

    assert report.edited == (Edited(CHANGED.removeprefix("bonny/"), "conflicts"),)
    after = f"{before}<<<<<<< yours\n# Mine.\n||||||| before\n=======\n{MARK}>>>>>>> new\n"
    assert vendored(root, CHANGED).read_text("utf-8") == after


def test_a_file_that_both_added_is_left_to_the_user(root: Path, template: Path, tmp_path: Path) -> None:
    newer = Path(shutil.copytree(template / "runtime", tmp_path / "newer/runtime")).parent
    (newer / "runtime/bonny/steps/mine.py").write_text("# theirs\n", "utf-8")
    vendored(root, "bonny/steps/mine.py").write_text("# mine\n", "utf-8")

    report = update_runtime(root, origin=str(newer))

    assert report.edited == (Edited("steps/mine.py", "conflicts"),)
    assert "# theirs" in (text := vendored(root, "bonny/steps/mine.py").read_text("utf-8"))
    assert "# mine" in text


def test_an_edited_file_that_the_new_version_removes_stays(root: Path, template: Path, tmp_path: Path) -> None:
    newer = Path(shutil.copytree(template / "runtime", tmp_path / "newer/runtime")).parent
    (newer / "runtime" / UNCHANGED).unlink()
    vendored(root, UNCHANGED).write_text("# mine\n", "utf-8")

    report = update_runtime(root, origin=str(newer))

    assert report.edited == (Edited(UNCHANGED.removeprefix("bonny/"), "kept"),)
    assert vendored(root, UNCHANGED).read_text("utf-8") == "# mine\n"


def test_a_checkout_with_other_line_endings_is_no_edit(
    root: Path, template: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As git makes it where core.autocrlf is true; here by a checkout of the rendered repository itself."""
    git(root, "init", "--quiet")
    (root / ".gitattributes").unlink()
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "rendered")
    shutil.rmtree(root / "vendor")
    git(root, "-c", "core.autocrlf=true", "checkout", "--", "vendor")
    assert b"\r\n" in vendored(root, CHANGED).read_bytes()
    for name, text in (("COUNT", "1"), ("KEY_0", "core.autocrlf"), ("VALUE_0", "true")):
        monkeypatch.setenv(f"GIT_CONFIG_{name}", text)

    report = update_runtime(root, origin=str(template), ref=NEW)

    assert (report.after, report.edited) == ("0.2.0", ())
    assert b"\r\n" not in vendored(root, CHANGED).read_bytes()
    assert is_whole(root)


def test_the_rendered_repository_keeps_the_runtime_as_delivered(root: Path) -> None:
    git(root, "init", "--quiet")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "rendered")
    before = {path: path.read_bytes() for path in (vendored(root, CHANGED), wheel(root))}
    shutil.rmtree(root / "vendor")
    git(root, "-c", "core.autocrlf=true", "checkout", "--", "vendor")
    assert {path: path.read_bytes() for path in before} == before


def test_the_version_that_is_told_is_the_one_that_is_there(root: Path, template: Path) -> None:
    with vendored(root, "bonny/__init__.py").open("a", encoding="utf-8") as file:
        file.write("# mine\n")

    report = update_runtime(root, origin=str(template), ref=NEW)

    assert (report.after, report.edited) == ("0.2.0", (Edited("__init__.py", "merged"),))


def test_force_replaces_edited_files_too(root: Path, template: Path) -> None:
    vendored(root, CHANGED).write_text("# mine\n", "utf-8")
    assert update_runtime(root, origin=str(template), ref=NEW, force=True).edited == ()
    assert is_whole(root)


@pytest.mark.parametrize("version", ["", "0.1.0+0123456789ab\n"])
def test_a_runtime_that_was_not_delivered_with_the_wheel_is_replaced_only_with_force(
    root: Path, template: Path, version: str
) -> None:
    """Its files cannot be compared with those in the wheel: what differs would be taken for an edit."""
    vendored(root, f"bonny/{VERSION}").write_text(version, "utf-8")
    before = checksums(root / "vendor")
    with pytest.raises(UsageError, match=r"was not delivered with bonny_dev-.*\.whl, .* --force"):
        update_runtime(root, origin=str(template), ref=NEW)
    assert checksums(root / "vendor") == before
    update_runtime(root, origin=str(template), ref=NEW, force=True)
    assert is_whole(root)


def test_the_origin_is_what_cruft_recorded_or_else_what_pyproject_says(root: Path, template: Path) -> None:
    pyproject = root / "pyproject.toml"
    known = pyproject.read_text("utf-8")
    pyproject.write_text(known.replace('template = "gh:org/bonny-template"', f'template = "{template}"'), "utf-8")
    assert update_runtime(root, ref=NEW).after == "0.2.0"

    (root / ".cruft.json").write_text(json.dumps({"template": f"file://{template}"}), "utf-8")
    assert update_runtime(root, ref=OLD).origin == f"{OLD} of file://{template}"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"ref": "v9.9.9"}, "no tag, branch or commit 'v9.9.9'"),
        ({"ref": "--upload-pack=x"}, "cannot begin with a dash"),
        ({"origin": "-x"}, "cannot begin with a dash"),
        ({"origin": "file:///nowhere/at/all"}, "git clone failed"),
        ({"origin": "ext::sh -c true"}, "git clone failed"),
        ({"origin": str(TEMPLATE / "docs")}, "has no runtime/bonny"),
    ],
)
def test_what_cannot_be_fetched_is_refused_and_nothing_changes(
    root: Path, template: Path, arguments: dict[str, str], told: str
) -> None:
    before = checksums(root)
    with pytest.raises(UsageError, match=told):
        update_runtime(root, **{"origin": str(template), **arguments})
    assert checksums(root) == before


def needing(template: Path, folder: Path, *requirements: str) -> str:
    """A copy of the template whose runtime needs other packages."""
    shutil.copytree(template / "runtime", folder / "runtime")
    lines = ", ".join(f'"{line}"' for line in requirements)
    (folder / "pyproject.toml").write_text(f"[dependency-groups]\nruntime = [{lines}]\n", "utf-8")
    return str(folder)


def test_a_missing_requirement_is_added_and_another_specifier_is_named(
    root: Path, template: Path, tmp_path: Path
) -> None:
    before = (root / "pyproject.toml").read_bytes().replace(b"\n", b"\r\n")
    (root / "pyproject.toml").write_bytes(before)
    (root / "pyproject.toml").chmod(0o640)
    name = wheel(root).name

    report = update_runtime(
        root,
        origin=needing(template, tmp_path / "newer", "Kubernetes>=37,<38", "msgspec>=1", "new_package>=1,<2"),
    )

    assert report.left == (
        "pyproject.toml: it requires kubernetes>=37,<38, and the runtime Kubernetes>=37,<38",
        "pyproject.toml: it requires msgspec>=0.19,<1, and the runtime msgspec>=1",
        "pyproject.toml: add new_package>=1,<2 to the dependencies",
    )
    assert (root / "pyproject.toml").read_bytes() == before.replace(name.encode(), wheel(root).name.encode())
    assert (root / "pyproject.toml").stat().st_mode & 0o777 == 0o640


def test_a_requirement_is_added_with_the_permissions_of_the_file(root: Path, template: Path, tmp_path: Path) -> None:
    before, name = (root / "pyproject.toml").read_text("utf-8"), wheel(root).name
    (root / "pyproject.toml").chmod(0o640)

    report = update_runtime(root, origin=needing(template, tmp_path / "newer", "new_package>=1,<2"))

    assert report.left == ()
    after = (root / "pyproject.toml").read_text("utf-8").replace(wheel(root).name, name)
    assert after == before.replace("dependencies = [\n", 'dependencies = [\n    "new_package>=1,<2",\n', 1)
    assert (root / "pyproject.toml").stat().st_mode & 0o777 == 0o640


def test_a_pyproject_that_cannot_be_read_is_named_and_nothing_changes(root: Path, template: Path) -> None:
    (root / "pyproject.toml").write_bytes(b"\xff")
    before = checksums(root)
    with pytest.raises(UsageError, match=r"pyproject\.toml cannot be read"):
        update_runtime(root, origin=str(template))
    assert checksums(root) == before


def test_a_pyproject_that_does_not_install_the_wheel_is_left_alone_and_the_line_is_named(
    root: Path, template: Path
) -> None:
    path = root / "pyproject.toml"
    text = path.read_text("utf-8").replace(wheel(root).name, "elsewhere.whl")
    path.write_text(text, "utf-8")

    report = update_runtime(root, origin=str(template), ref=NEW)

    line = f'"bonny-dev @ {{root:uri}}/vendor/{wheel(root).name}"'
    assert report.left == (f"pyproject.toml: write {line} into the extra dev",)
    assert path.read_text("utf-8") == text


def test_a_wheel_that_cannot_be_read_is_named_where_it_is_needed(root: Path, template: Path) -> None:
    vendored(root, CHANGED).write_text("# mine\n", "utf-8")
    wheel(root).write_bytes(b"not a wheel")
    before = checksums(root)
    with pytest.raises(UsageError, match=r"bonny_dev-.*\.whl cannot be read .*: restore it from git"):
        update_runtime(root, origin=str(template), ref=NEW)
    assert checksums(root) == before


@pytest.mark.parametrize("wheels", [0, 2])
def test_a_repository_without_a_wheel_or_with_several_is_refused_in_a_sentence(
    root: Path, template: Path, wheels: int
) -> None:
    if wheels:
        shutil.copy(wheel(root), root / "vendor/bonny_dev-0.0.9-py3-none-any.whl")
    else:
        wheel(root).unlink()
    before = checksums(root)
    with pytest.raises(UsageError, match=f"vendor holds {wheels} wheels .* should hold one"):
        update_runtime(root, origin=str(template), ref=NEW)
    assert checksums(root) == before


def test_an_unrecorded_origin_is_asked_for(root: Path) -> None:
    (root / "pyproject.toml").write_text("", "utf-8")
    with pytest.raises(UsageError, match="--from"):
        update_runtime(root)


def test_a_link_in_the_place_of_the_runtime_is_left_alone(root: Path, template: Path) -> None:
    shutil.rmtree(root / "vendor/bonny")
    (root / "vendor/bonny").symlink_to(TEMPLATE / "runtime/bonny")
    with pytest.raises(UsageError, match="not a vendored package"):
        update_runtime(root, origin=str(template), ref=NEW)


def test_a_version_of_the_template_with_one_package_is_refused(root: Path, template: Path, tmp_path: Path) -> None:
    shutil.copytree(template / "runtime/bonny", tmp_path / "older/runtime/bonny")
    before = checksums(root)
    with pytest.raises(UsageError, match="has no runtime/bonny_dev"):
        update_runtime(root, origin=str(tmp_path / "older"))
    assert checksums(root) == before


def program(root: Path, template: Path) -> list[str]:
    script = (
        f"from bonny_dev.tasks.update_runtime import *; update_runtime(Path({str(root)!r}), origin={str(template)!r})"
    )
    return [sys.executable, "-c", f"from pathlib import Path; {script}"]


def test_a_disk_that_is_full_leaves_the_old_runtime_whole(root: Path, template: Path) -> None:
    """As a limit on the size of a file: the same error in the same place, and a real one."""
    before = checksums(root)
    done = subprocess.run(
        program(root, template),
        env=ENVIRONMENT,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert "could not be replaced: all is as before ([Errno 27] File too large" in done.stderr
    assert checksums(root) == before


def test_a_kill_while_the_new_version_is_staged_leaves_the_old_one_whole(root: Path, template: Path) -> None:
    before = checksums(root)
    python, option, script = program(root, template)
    killed = (
        "import itertools, os; write, numbers = Path.write_bytes, itertools.count(1)\n"
        "Path.write_bytes = lambda *given: write(*given) if next(numbers) <= 50 else os._exit(9)\n"
    )
    done = subprocess.run([python, option, f"from pathlib import Path; {killed}{script}"], env=ENVIRONMENT, check=False)
    assert done.returncode == 9
    assert list((root / "vendor").glob(".bonny-*/new/vendor/bonny/*"))
    assert {name: digest for name, digest in checksums(root).items() if "/.bonny-" not in name} == before

    assert update_runtime(root, origin=str(template), ref=NEW).after == "0.2.0"
    assert is_whole(root)
    assert is_all_there_is(root)


@pytest.mark.parametrize("renames", [1, 2, 3, 4])
def test_a_kill_between_two_renames_leaves_what_was_replaced_beside_it(
    root: Path, template: Path, renames: int
) -> None:
    runtime, tools = checksums(root / "vendor/bonny"), wheel(root).read_bytes()
    name = wheel(root).name
    python, option, script = program(root, template)
    killed = (
        "import itertools, os; rename, numbers = Path.rename, itertools.count(1)\n"
        f"Path.rename = lambda *paths: rename(*paths) if next(numbers) <= {renames} else os._exit(9)\n"
    )
    done = subprocess.run([python, option, f"from pathlib import Path; {killed}{script}"], env=ENVIRONMENT, check=False)
    assert done.returncode == 9

    (old,) = (root / "vendor").glob(".bonny-*/old/vendor")
    assert checksums(old / "bonny") == runtime
    assert ((old if renames > 2 else root / "vendor") / name).read_bytes() == tools


# Each has an update of its own: the first and the last, and the others where time is.
@pytest.mark.parametrize("number", [1, *(pytest.param(each, marks=pytest.mark.slow) for each in (2, 3, 4, 5)), 6])
def test_a_rename_that_fails_is_undone_with_those_before_it(
    root: Path, template: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    before = checksums(root)
    with monkeypatch.context() as patched:
        fail_at(patched, number, OSError(28, "No space left on device"))
        with pytest.raises(UsageError, match="all is as before"):
            update_runtime(root, origin=str(template), ref=NEW)
    assert checksums(root) == before
    assert is_all_there_is(root)
    assert update_runtime(root, origin=str(template), ref=NEW).after == "0.2.0"
    assert is_all_there_is(root)


def test_what_could_not_be_put_back_is_not_deleted(root: Path, template: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = checksums(root / "vendor/bonny")
    fail_at(monkeypatch, 2, OSError(5, "Input/output error"), after_that=OSError(5, "Input/output error"))
    with pytest.raises(UsageError):
        update_runtime(root, origin=str(template), ref=NEW)

    (old,) = (root / "vendor").glob(".bonny-*/old/vendor/bonny")
    assert checksums(old) == before


def fail_at(
    patched: pytest.MonkeyPatch, number: int, error: BaseException, *, after_that: BaseException | None = None
) -> None:
    """Let rename number `number` raise `error`, and the later ones `after_that`, if any."""
    rename, calls = Path.rename, []

    def failing(self: Path, target: Path) -> Path:
        calls.append(self)
        raised = error if len(calls) == number else after_that if len(calls) > number else None
        if raised:
            raise raised
        return rename(self, target)

    patched.setattr(Path, "rename", failing)


def test_the_task_says_what_changed_what_was_edited_and_what_is_next(root: Path, template: Path) -> None:
    for name in (CHANGED, UNCHANGED):
        with vendored(root, name).open("a", encoding="utf-8") as file:
            file.write("# mine\n")
    done = subprocess.run(
        [sys.executable, "-m", "invoke", "update-runtime", "--from", str(template), "--ref", NEW],
        cwd=root / "src",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == (
        "## [0.2.0] - 2026-03-01\n\n- Better errors.\n\n"
        f"vendor/bonny and the developer tools are 0.2.0 now, from {NEW} of {template}; before: 0.1.0\n"
        "vendor/bonny/__init__.py is changed by the new version\n"
        f"vendor/{CHANGED} is changed by the new version\n"
        f"vendor/{CHANGED} was edited here: conflicts, choose between the lines at <<<<<<< and >>>>>>>\n"
        f"vendor/{UNCHANGED} was edited here: kept\n"
        "next: `uv sync` or pip install -e '.[dev]', then invoke lint, invoke test, and commit\n"
    )
