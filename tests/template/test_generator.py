"""gen-controller: adds files that need no hand edit, and changes nothing when it cannot."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bonny.errors import UsageError
from bonny.scaffold.project import Project
from bonny.tasks.generate import Report, Request, generate

WIDGET = Request(kind="Widget", plural="widgets", version="v2alpha1")


def add(project: Path, request: Request) -> Report:
    return generate(Project.at(project), request)


def state(project: Path) -> dict[str, str]:
    """Every file that a generator could touch."""
    folders = (project / "src", project / "samples", project / "tests")
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    return {str(path.relative_to(project)): path.read_text(encoding="utf-8") for path in files}


def test_a_new_kind_gets_api_controller_sample_and_tests(project: Path) -> None:
    before = state(project)

    report = add(project, WIDGET)

    assert report.written == (
        "samples/widget-v2alpha1.yaml",
        "src/widgets_operator/api/v2alpha1/__init__.py",
        "src/widgets_operator/api/v2alpha1/widget.py",
        "src/widgets_operator/controllers/widget.py",
        "tests/integration/test_widget.py",
        "tests/unit/test_widget.py",
    )
    assert report.notes == ()
    after = state(project)
    assert {name for name in after if name not in before} == set(report.written)
    assert {name: after[name] for name in before} == before


def test_the_same_again_says_so_and_changes_nothing(project: Path) -> None:
    add(project, WIDGET)
    before = state(project)

    with pytest.raises(UsageError, match=r"Widget v2alpha1 exists already .*, so nothing was written"):
        add(project, WIDGET)

    assert state(project) == before


def test_another_version_of_a_kind_gets_api_sample_and_one_test(project: Path) -> None:
    add(project, WIDGET)

    report = add(project, Request(kind="Widget", plural="widgets", version="v1"))

    assert report.written == (
        "samples/widget-v1.yaml",
        "src/widgets_operator/api/v1/__init__.py",
        "src/widgets_operator/api/v1/widget.py",
        "tests/integration/test_widget_v1.py",
    )
    text = (project / "src/widgets_operator/api/v1/widget.py").read_text(encoding="utf-8")
    assert "    storage = False\n    hub = False\n" in text


def test_another_version_comes_with_the_lines_to_change_for_a_flip(project: Path) -> None:
    """Following the printed lines gives a project in which the new version is hub and storage."""
    add(project, WIDGET)
    report = add(project, Request(kind="Widget", plural="widgets", version="v1"))

    assert "v2alpha1 stays the hub" in report.notes[0]
    for line in report.notes[2:]:
        name, number, text = (part.strip() for part in line.split(":", maxsplit=2))
        lines = (project / name).read_text(encoding="utf-8").splitlines()
        old = lines[int(number) - 1]
        lines[int(number) - 1] = old[: len(old) - len(old.lstrip())] + text
        (project / name).write_text("\n".join(lines) + "\n", encoding="utf-8")

    flags = {
        version: [
            line.strip()
            for line in (project / f"src/widgets_operator/api/{version}/widget.py").read_text("utf-8").splitlines()
            if line.strip().startswith(("hub", "storage"))
        ]
        for version in ("v1", "v2alpha1")
    }
    assert flags == {"v1": ["storage = True", "hub = True"], "v2alpha1": ["storage = False", "hub = False"]}
    text = (project / "src/widgets_operator/controllers/widget.py").read_text(encoding="utf-8")
    assert "api.v1.widget import Widget" in text
    assert "api.v2alpha1" not in text


def test_scope_and_group_of_a_kind_carry_over_to_its_other_versions(project: Path) -> None:
    add(project, Request(kind="Fleet", plural="fleets", cluster_scoped=True, group="fleet.example.org"))
    add(project, Request(kind="Fleet", plural="fleets", version="v2"))

    text = (project / "src/widgets_operator/api/v2/fleet.py").read_text(encoding="utf-8")
    assert 'group = "fleet.example.org"' in text
    assert "scope = Scope.CLUSTER" in text
    assert (project / "samples/fleet-v2.yaml").read_text("utf-8").startswith("apiVersion: fleet.example.org/v2\n")


def test_the_operators_own_group_is_not_written_out_even_if_it_is_named(project: Path) -> None:
    add(project, Request(kind="Widget", plural="widgets", group="example.com"))

    assert "group" not in (project / "src/widgets_operator/api/v1/widget.py").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("request_", "sentence"),
    [
        (Request(kind="widget", plural="widgets"), "'widget' is not a kind"),
        (Request(kind="Wid-get", plural="widgets"), "'Wid-get' is not a kind"),
        (Request(kind="W" * 60, plural="widgets"), "is not a kind"),
        (Request(kind="None", plural="nones"), "'None' cannot be a kind"),
        (Request(kind="Controller", plural="controllers"), "'Controller' cannot be a kind"),
        (Request(kind="Exception", plural="exceptions"), "'Exception' cannot be a kind here: Python"),
        (Request(kind="Path", plural="paths"), "'Path' cannot be a kind here: Python"),
        (Request(kind="../Widget", plural="widgets"), "is not a kind"),
        (Request(kind="Widget", plural="Widgets"), "'Widgets' is not a plural"),
        (Request(kind="Widget", plural=""), "'' is not a plural"),
        (Request(kind="Widget", plural="wid/gets"), "is not a plural"),
        (Request(kind="Widget", plural="widgets", version="2"), "'2' is not an API version"),
        (Request(kind="Widget", plural="widgets", version="v1.0"), "is not an API version"),
        (Request(kind="Widget", plural="widgets", version="../../x"), "is not an API version"),
        (Request(kind="Widget", plural="widgets", group="example"), "'example' is not an API group"),
        (Request(kind="Widget", plural="widgets", group="apps.k8s.io"), "cannot be your API group"),
        (Request(kind="Gadget", plural="gizmos", version="v2"), "Gadget has the plural gadgets"),
        (Request(kind="Gizmo", plural="gadgets"), "would share the name gadgets in example.com"),
        (Request(kind="GadgetList", plural="gadgetlists"), "would share the name GadgetList"),
        (Request(kind="GADGET", plural="gs"), "would share the name gadget in"),
        (Request(kind="Gadgets", plural="gadgetses"), "would share the name gadgets in"),
        (Request(kind="Gadget", plural="gadgets", version="v2", group="x.example.org"), "Gadget is in the group"),
        (Request(kind="Gadget", plural="gadgets", version="v2", cluster_scoped=True), "Gadget is namespaced"),
    ],
)
def test_a_name_that_cannot_be_is_refused_in_a_sentence_and_changes_nothing(
    project: Path, request_: Request, sentence: str
) -> None:
    add(project, Request(kind="Gadget", plural="gadgets"))
    before = state(project)

    with pytest.raises(UsageError) as caught:
        add(project, request_)

    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)
    assert state(project) == before


def test_two_kinds_of_one_plural_may_live_in_different_groups(project: Path) -> None:
    add(project, Request(kind="Gadget", plural="gadgets"))

    assert add(project, Request(kind="Gizmo", plural="gadgets", group="gizmos.example.org")).written


def test_a_kind_named_like_a_word_of_python_gets_an_importable_module(project: Path) -> None:
    written = add(project, Request(kind="Class", plural="classes")).written

    assert "src/widgets_operator/api/v1/class_.py" in written


def test_a_file_that_is_in_the_way_is_named_and_nothing_is_written(project: Path) -> None:
    (project / "samples" / "widget-v2alpha1.yaml").write_text("mine\n", encoding="utf-8")
    before = state(project)

    with pytest.raises(UsageError, match=r"samples/widget-v2alpha1\.yaml exists already, so nothing was written"):
        add(project, WIDGET)

    assert state(project) == before


def test_a_folder_that_cannot_be_made_leaves_nothing_half_written(project: Path) -> None:
    (project / "tests" / "unit" / "test_operator.py").unlink()
    (project / "tests" / "unit").rmdir()
    (project / "tests" / "unit").write_text("in the way\n", encoding="utf-8")
    before = state(project)

    with pytest.raises(UsageError, match=r"cannot be written .*, so nothing was"):
        add(project, WIDGET)

    assert state(project) == before
    assert not (project / "src/widgets_operator/api/v2alpha1").exists()


def test_a_module_that_is_half_edited_is_named(project: Path) -> None:
    (project / "src/widgets_operator/api/broken.py").write_text("class (", encoding="utf-8")

    with pytest.raises(UsageError, match=r"broken\.py is not valid Python .*: mend it"):
        add(project, WIDGET)


def test_an_operator_without_a_written_group_asks_for_it(project: Path) -> None:
    operator = project / "src/widgets_operator/operator.py"
    operator.write_text(operator.read_text("utf-8").replace('group="example.com"', "group=GROUP"), encoding="utf-8")

    with pytest.raises(UsageError, match="name the group with --group"):
        add(project, WIDGET)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["Widget", "widgets", "--version", "v2alpha1"], 0, "wrote src/widgets_operator/controllers/widget.py"),
        (["widget", "widgets"], 2, "'widget' is not a kind"),
        (["Widget", "widgets", "--version", "two"], 2, "'two' is not an API version"),
        (["Widget"], 1, "did not receive"),
    ],
)
def test_the_task_ends_with_a_sentence_and_a_code(project: Path, arguments: list[str], code: int, said: str) -> None:
    command = [sys.executable, "-m", "invoke", "gen-controller", *arguments]
    done = subprocess.run(command, cwd=project / "src", capture_output=True, text=True, check=False)

    assert (done.returncode, said in (done.stdout if code == 0 else done.stderr)) == (code, True), done
    assert "Traceback" not in done.stderr


def test_a_package_that_is_missing_is_named_with_the_line_that_installs_it(project: Path) -> None:
    code = (
        "import sys, runpy; sys.modules['jinja2'] = None; sys.argv = ['invoke', 'gen-controller', 'Widget', 'widgets'];"
        "from invoke.main import program; program.run()"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=project, capture_output=True, text=True, check=False)

    assert done.returncode == 2
    assert done.stderr.strip() == "jinja2 is not installed here: run `pip install -e '.[dev]'` and try again"
