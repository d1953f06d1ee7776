"""Before a release: `invoke crd-check` and `invoke api-docs` in a rendered repository with tags."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bonny_dev.project import Project
from bonny_dev.tasks.generate import plan_kind
from bonny_dev.tasks.options import NewKind
from tests.support.releases import git

WIDGET = "src/widgets_operator/api/v1/gadget.py"
SPEC = '''class GadgetSpec(Spec):
    """The desired state of a Gadget."""

    size: int = Field(1, ge=1, description="How large it is.")
    colour: Literal["red", "green"] = "red"
'''


def invoked(project: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "invoke", *words]
    return subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)


def commit(project: Path, *tags: str) -> None:
    git(project, "add", "--all")
    git(project, "commit", "--quiet", "--allow-empty", "--message", "a change")
    for tag in tags:
        git(project, "tag", tag)


def change(project: Path, old: str, new: str) -> None:
    path = project / WIDGET
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


@pytest.fixture
def released(project: Path) -> Path:
    """A repository with a kind, whose first release is tagged."""
    plan_kind(Project.at(project), NewKind(kind="Gadget", plural="gadgets")).write()
    path = project / WIDGET
    text = path.read_text("utf-8")
    before, rest = text.split("class GadgetSpec(Spec):", 1)
    _, after = rest.split("class GadgetStatus", 1)
    head = before.replace("from bonny", "from typing import Literal\n\nfrom bonny", 1)
    path.write_text(f"{head}{SPEC}\n\nclass GadgetStatus{after}", encoding="utf-8")
    git(project, "init", "--quiet")
    commit(project, "v0.1.0")
    return project


def test_without_a_tag_the_check_is_skipped_in_one_line(project: Path) -> None:
    git(project, "init", "--quiet")
    commit(project)

    done = invoked(project, "crd-check")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "skipped: no tag of an earlier release is in this repository, so there is nothing to compare with\n"
    )


def test_changes_between_two_tags_are_refused_shown_and_accepted(released: Path) -> None:
    same = invoked(released, "crd-check", "--since", "v0.1.0")
    assert (same.returncode, same.stderr) == (0, "")
    assert same.stdout == "compared with v0.1.0:\n  no change of a CRD\n  no change of a permission\n"

    change(released, 'Field(1, ge=1, description="How large it is.")', "Field(1, ge=1, le=9)")
    change(released, '    colour: Literal["red", "green"] = "red"\n', "    shape: str\n")
    plan_kind(Project.at(released), NewKind(kind="Thing", plural="things")).write()
    commit(released, "v0.2.0")  # of a tagged commit, the tag before counts

    done = invoked(released, "crd-check")

    assert (done.returncode, done.stderr) == (1, "")
    head, *lines, last = done.stdout.splitlines()
    assert head == "compared with v0.1.0:"
    breaking = [line for line in lines if line.startswith("  breaks: ")]
    text = (released / WIDGET).read_text("utf-8").splitlines()
    numbers = {name: 1 + next(n for n, line in enumerate(text) if line.startswith(name)) for name in
               ("class GadgetSpec", "    shape", "    size")}  # fmt: skip
    where = {name: f"  breaks: {WIDGET}:{number}: Gadget v1 spec" for name, number in numbers.items()}
    gone = "is gone: the API server drops it from stored objects and from the writes of clients"
    assert breaking == [
        f"{where['class GadgetSpec']}.colour {gone}",
        f"{where['    shape']}.shape is required, without a default: objects that lack it are refused",
        f"  breaks: {WIDGET}:{numbers['    size']}: Gadget v1 spec.size has maximum 9, which it had not",
    ]
    assert "  changed: Thing is new" in lines
    assert any(line.startswith("  new permission: ClusterRole ") and "things" in line for line in lines)
    assert last == (
        "3 of these break stored objects or clients: keep the old form, add a version, or accept it by name in "
        '[tool.bonny] of pyproject.toml: accepted-breaks = ["Gadget v1 spec.colour"]'
    )

    pyproject = released / "pyproject.toml"
    names = '["Gadget v1 spec.colour", "Gadget v1 spec.shape", "Gadget v1 spec.size", "Gadget v9"]'
    pyproject.write_text(
        pyproject.read_text("utf-8").replace("[tool.bonny]", f"[tool.bonny]\naccepted-breaks = {names}")
    )
    accepted = invoked(released, "crd-check", "--since", "v0.1.0")
    assert accepted.returncode == 0
    assert accepted.stdout.count("  accepted: ") == 3
    assert (
        "  accepted-breaks names 'Gadget v9', and that did not change: remove it from pyproject.toml" in accepted.stdout
    )


def test_the_newest_tag_counts_for_what_is_not_committed(released: Path) -> None:
    commit(released, "v0.2.0")
    change(released, '"green"', '"green", "blue"')

    done = invoked(released, "crd-check")

    assert done.returncode == 0, done.stdout
    assert done.stdout.startswith('compared with v0.2.0:\n  changed: Gadget v1 spec.colour also takes "blue"\n')


def test_what_cannot_be_compared_is_one_sentence(released: Path, tmp_path: Path) -> None:
    unknown = invoked(released, "crd-check", "--since", "v9")
    assert (unknown.returncode, unknown.stderr) == (
        2,
        "there is no tag or commit v9 in this repository: `git tag` lists them\n",
    )

    broken = released / "src/widgets_operator/operator.py"
    before = broken.read_text("utf-8")
    broken.write_text("raise ValueError('no')\n", encoding="utf-8")
    commit(released, "v0.3.0")
    broken.write_text(before, encoding="utf-8")
    failed = invoked(released, "crd-check", "--since", "v0.3.0")
    assert failed.returncode == 2
    assert failed.stderr == (
        "the manifest of v0.3.0 cannot be made with the packages that are installed here: ValueError: no\n"
    )

    git(tmp_path, "clone", "--quiet", "--depth", "1", f"file://{released}", "shallow")
    shallow = invoked(tmp_path / "shallow", "crd-check")
    assert shallow.returncode == 2
    assert shallow.stderr.startswith("this clone lacks the history and the tags to compare with: fetch them")


def test_without_a_git_repository_it_says_so(project: Path) -> None:
    done = invoked(project, "crd-check")

    assert done.returncode == 2
    assert done.stderr == "there is no git repository here, so no last release to compare with: run `git init`\n"


def test_the_page_of_the_kinds_is_written_and_its_age_noticed(released: Path) -> None:
    absent = invoked(released, "api-docs", "--check")
    assert (absent.returncode, absent.stdout) == (0, "nothing to do: the page is up to date, or there is none\n")

    written = invoked(released, "api-docs")
    assert (written.returncode, written.stdout, written.stderr) == (0, "wrote docs/api.md\n", "")
    text = (released / "docs/api.md").read_text("utf-8")
    assert "| `spec.size` | integer | `1` | How large it is. (at least 1) |" in text
    assert "Example:\n\n```yaml\napiVersion: example.com/v1\nkind: Gadget\n" in text
    assert invoked(released, "api-docs", "--check").returncode == 0

    change(released, "How large it is.", "How wide it is.")
    stale = invoked(released, "api-docs", "--check")
    sentence = "docs/api.md is outdated: run `invoke api-docs`, and commit the page\n"
    assert (stale.returncode, stale.stdout) == (1, sentence)
    assert (released / "docs/api.md").read_text("utf-8") == text
    lint = invoked(released, "lint")
    assert lint.returncode == 1
    assert lint.stdout.endswith(sentence)

    refused = invoked(released, "api-docs", "--out", "src")
    assert refused.returncode == 2
    assert refused.stderr == "src cannot be written (Is a directory): name another file by --out\n"
