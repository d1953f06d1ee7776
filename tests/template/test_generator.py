"""gen-controller: adds files that need no hand edit, and changes nothing when it cannot."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from bonny.errors import UsageError
from bonny_dev.project import Project
from bonny_dev.tasks.generate import plan_kind
from bonny_dev.tasks.options import NewKind
from bonny_dev.tasks.plan import Plan, complaints, formatted
from tests.support.generating import state

WIDGET = NewKind(kind="Widget", plural="widgets", version="v2alpha1")


def add(project: Path, request: NewKind) -> Plan:
    plan = plan_kind(Project.at(project), request)
    plan.write()
    return plan


def written(plan: Plan) -> tuple[str, ...]:
    return tuple(sorted(plan.texts))


def test_a_new_kind_gets_api_controller_sample_and_tests(project: Path) -> None:
    before = state(project)

    files = plan_kind(Project.at(project), WIDGET).write()

    assert files == (
        "samples/widget-v2alpha1.yaml",
        "src/widgets_operator/api/v2alpha1/__init__.py",
        "src/widgets_operator/api/v2alpha1/widget.py",
        "src/widgets_operator/controllers/widget.py",
        "tests/integration/test_widget.py",
        "tests/unit/test_widget.py",
    )
    after = state(project)
    assert {name for name in after if name not in before} == set(files)
    assert {name: after[name] for name in before} == before


UNSORTED = "import sys\nimport os\nx = [ 1 ]\n"


def test_ruff_is_found_beside_python_or_as_a_module_and_may_be_absent(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside Python its start is the fast one; in an environment that sees the packages of another, it is there as
    a module alone."""
    at = Project.at(project)
    sorted_lines = formatted(at, UNSORTED, "src/x.py")
    assert sorted_lines.startswith("import os\nimport sys\n")
    assert complaints(at, UNSORTED, "src/x.py") >= {"F401", "I001"}

    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(project))
    assert formatted(at, UNSORTED, "src/x.py") == sorted_lines

    bare = project / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n', "utf-8")
    bare.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(bare))
    assert formatted(at, UNSORTED, "src/x.py") == UNSORTED
    assert complaints(at, UNSORTED, "src/x.py") == set()


def test_the_same_again_writes_nothing(project: Path) -> None:
    add(project, WIDGET)
    add(project, NewKind(kind="Widget", plural="widgets", version="v1"))
    before = state(project)

    for version in ("v2alpha1", "v1"):
        assert plan_kind(Project.at(project), NewKind(kind="Widget", plural="widgets", version=version)).write() == ()

    assert state(project) == before


def test_a_file_that_was_removed_comes_back_when_nothing_else_was_touched(project: Path) -> None:
    add(project, WIDGET)
    before = state(project)
    (project / "samples/widget-v2alpha1.yaml").unlink()

    assert plan_kind(Project.at(project), WIDGET).write() == ("samples/widget-v2alpha1.yaml",)
    assert state(project) == before


def test_a_kind_that_exists_gets_no_other_version_without_being_asked(project: Path) -> None:
    add(project, WIDGET)
    before = state(project)

    with pytest.raises(UsageError) as caught:
        add(project, NewKind(kind="Widget", plural="widgets"))

    assert str(caught.value) == (
        "Widget exists already, in version v2alpha1: edit src/widgets_operator/api/v2alpha1/widget.py, or add a "
        "version of it with --version"
    )
    assert state(project) == before


def test_a_bare_kind_has_neither_the_example_nor_its_fields(project: Path) -> None:
    files = add(project, NewKind(kind="Widget", plural="widgets", bare=True, finalizer=True))

    texts = "".join(files.texts.values())
    assert len(files.texts) == 6
    assert "ConfigMap" not in texts
    assert "size" not in texts
    assert "async def finalize" in texts


def test_a_kind_without_a_controller_has_api_sample_and_a_test(project: Path) -> None:
    plan = add(project, NewKind(kind="Widget", plural="widgets", no_controller=True))
    further = add(project, NewKind(kind="Widget", plural="widgets", version="v2", no_controller=True))
    copied = (project / "samples/widget-v2.yaml").read_text("utf-8")

    assert written(plan) == (
        "samples/widget-v1.yaml",
        "src/widgets_operator/api/v1/__init__.py",
        "src/widgets_operator/api/v1/widget.py",
        "tests/unit/test_widget.py",
    )
    assert "  name: widget-sample-v2\n" in copied  # with the first one's name, `kubectl apply` would change that
    assert "tests/integration/test_widget_v2.py" not in written(further)
    tests = [sys.executable, "-m", "pytest", "-q", "tests/unit/test_widget.py", "tests/unit/test_widget_v2.py"]
    done = subprocess.run(tests, cwd=project, capture_output=True, text=True, check=False)
    assert "3 passed" in done.stdout, done.stdout


@pytest.mark.parametrize("edited", ["api/v2alpha1/widget.py", "controllers/widget.py"])
def test_the_same_again_after_an_edit_says_so_and_changes_nothing(project: Path, edited: str) -> None:
    add(project, WIDGET)
    path = project / "src/widgets_operator" / edited
    path.write_text(path.read_text("utf-8") + "\n\n# mine\n", "utf-8")
    before = state(project)

    with pytest.raises(UsageError, match=r"Widget v2alpha1 exists already .* and is not as it was generated"):
        add(project, WIDGET)

    assert state(project) == before


def test_scope_and_group_of_a_kind_carry_over_to_its_other_versions(project: Path) -> None:
    add(project, NewKind(kind="Fleet", plural="fleets", cluster_scoped=True, group="fleet.example.org"))
    add(project, NewKind(kind="Fleet", plural="fleets", version="v2"))

    text = (project / "src/widgets_operator/api/v2/fleet.py").read_text(encoding="utf-8")
    assert 'group = "fleet.example.org"' in text
    assert "scope = Scope.CLUSTER" in text
    assert (project / "samples/fleet-v2.yaml").read_text("utf-8").startswith("apiVersion: fleet.example.org/v2\n")


def test_short_names_are_written_and_carry_over_to_other_versions(project: Path) -> None:
    add(project, NewKind(kind="Widget", plural="widgets", short_name=["wd"]))
    add(project, NewKind(kind="Widget", plural="widgets", version="v2"))

    for version in ("v1", "v2"):
        text = (project / f"src/widgets_operator/api/{version}/widget.py").read_text(encoding="utf-8")
        assert 'short_names = ("wd",)' in text


def test_a_finalizer_comes_with_its_tests(project: Path) -> None:
    add(project, NewKind(kind="Widget", plural="widgets", finalizer=True))
    add(project, NewKind(kind="Gadget", plural="gadgets"))

    def has(name: str, word: str) -> bool:
        return word in (project / name).read_text(encoding="utf-8")

    for place in ("src/widgets_operator/controllers/{}.py", "tests/unit/test_{}.py", "tests/integration/test_{}.py"):
        assert (has(place.format("widget"), "final"), has(place.format("gadget"), "final")) == (True, False)


def test_the_operators_own_group_is_not_written_out_even_if_it_is_named(project: Path) -> None:
    add(project, NewKind(kind="Widget", plural="widgets", group="example.com"))

    assert "group" not in (project / "src/widgets_operator/api/v1/widget.py").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("request_", "sentence"),
    [
        (NewKind(kind="widget", plural="widgets"), "'widget' is not a kind"),
        (NewKind(kind="Wid-get", plural="widgets"), "'Wid-get' is not a kind"),
        (NewKind(kind="W" * 60, plural="widgets"), "is not a kind"),
        (NewKind(kind="None", plural="nones"), "'None' cannot be a kind"),
        (NewKind(kind="Controller", plural="controllers"), "'Controller' cannot be a kind"),
        (NewKind(kind="Exception", plural="exceptions"), "'Exception' cannot be a kind: Python"),
        (NewKind(kind="AGE", plural="ages"), "'AGE' cannot be a kind: Python or a generated file"),
        (NewKind(kind="Widget", plural="widgets", short_name=["W"]), "'W' is not a short name"),
        (NewKind(kind="Widget", plural="widgets", short_name=[""]), "'' is not a short name"),
        (NewKind(kind="Widget", plural="widgets", short_name=["widgets"]), "short name widgets is a name of Widget"),
        (NewKind(kind="Widget", plural="widgets", short_name=["widget"]), "short name widget is a name of Widget"),
        (NewKind(kind="Widget", plural="widgets", short_name=["w", "w"]), "short name w is a name of Widget already"),
        (NewKind(kind="Widget", plural="widgets", short_name=["gd"]), "would share the name gd in example.com"),
        (NewKind(kind="Widget", plural="widgets", short_name=["gadgets"]), "would share the name gadgets"),
        (NewKind(kind=f"W{'x' * 53}", plural="ws", finalizer=True), "and 63 characters are allowed: choose a shorter"),
        (NewKind(kind="Gd", plural="gds"), "would share the name gd in example.com"),
        (
            NewKind(kind="Gadget", plural="gadgets", version="v2", short_name=["g"]),
            "Gadget has the short names gd in all its versions (src",
        ),
        (NewKind(kind="Gadget", plural="gadgets", version="v2", finalizer=True), "Gadget has its controller already"),
        (NewKind(kind="../Widget", plural="widgets"), "is not a kind"),
        (NewKind(kind="Widget", plural="Widgets"), "'Widgets' is not a plural"),
        (NewKind(kind="Widget", plural=""), "'' is not a plural"),
        (NewKind(kind="Widget", plural="wid/gets"), "is not a plural"),
        (NewKind(kind="Widget", plural="widgets", version="2"), "'2' is not an API version"),
        (NewKind(kind="Widget", plural="widgets", version="v1.0"), "is not an API version"),
        (NewKind(kind="Widget", plural="widgets", version="../../x"), "is not an API version"),
        (NewKind(kind="Widget", plural="widgets", group="example"), "'example' is not an API group"),
        (NewKind(kind="Widget", plural="widgets", group="apps.k8s.io"), "cannot be your API group"),
        (NewKind(kind="Gadget", plural="gizmos", version="v2"), "Gadget has the plural gadgets"),
        (NewKind(kind="Gizmo", plural="gadgets"), "would share the name gadgets in example.com"),
        (NewKind(kind="GadgetList", plural="gadgetlists"), "would share the name GadgetList"),
        (NewKind(kind="GADGET", plural="gs"), "would share the name gadget in"),
        (NewKind(kind="Gadgets", plural="gadgetses"), "would share the name gadgets in"),
        (NewKind(kind="Gadget", plural="gadgets", version="v2", group="x.example.org"), "Gadget has the group"),
        (
            NewKind(kind="Gadget", plural="gadgets", version="v2", cluster_scoped=True),
            "Gadget has the scope Namespaced",
        ),
    ],
)
def test_a_name_that_cannot_be_is_refused_in_a_sentence_and_changes_nothing(
    with_gadget: Path, request_: NewKind, sentence: str
) -> None:
    before = state(with_gadget)

    with pytest.raises(UsageError) as caught:
        add(with_gadget, request_)

    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)
    assert state(with_gadget) == before


def test_two_kinds_of_one_plural_may_live_in_different_groups(project: Path) -> None:
    add(project, NewKind(kind="Gadget", plural="gadgets"))

    assert add(project, NewKind(kind="Gizmo", plural="gadgets", group="gizmos.example.org")).texts


def test_a_kind_named_like_a_word_of_python_gets_an_importable_module(project: Path) -> None:
    files = written(add(project, NewKind(kind="Class", plural="classes")))

    assert "src/widgets_operator/api/v1/class_.py" in files


def test_a_file_that_is_in_the_way_is_named_and_nothing_is_written(project: Path) -> None:
    (project / "samples" / "widget-v2alpha1.yaml").write_text("mine\n", encoding="utf-8")
    before = state(project)

    with pytest.raises(UsageError, match=r"samples/widget-v2alpha1\.yaml: exists with different content, so"):
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

    with pytest.raises(UsageError, match=r"broken\.py:1 is not valid Python .*: correct it"):
        add(project, WIDGET)


def test_an_operator_whose_group_is_not_written_out_is_told_to_write_it(project: Path) -> None:
    operator = project / "src/widgets_operator/operator.py"
    operator.write_text(operator.read_text("utf-8").replace('group="example.com"', "group=GROUP"), encoding="utf-8")

    with pytest.raises(UsageError, match=r"no Operator\(group=.* that is written out: write it out"):
        add(project, WIDGET)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["Widget", "widgets", "--version", "v2alpha1"], 0, "wrote src/widgets_operator/controllers/widget.py"),
        (["widget", "widgets"], 2, "'widget' is not a kind"),
        (["Widget", "widgets", "--version", "two"], 2, "'two' is not an API version"),
        (["Widget"], 2, "gen-controller needs KIND PLURAL: `invoke --help gen-controller` shows its arguments\n"),
        (["--help"], 2, "gen-controller needs KIND PLURAL: `invoke --help gen-controller` shows its arguments\n"),
        (
            ["Widget", "widgets", "--finaliser"],
            2,
            "gen-controller has no option --finaliser: did you mean --finalizer?\n",
        ),
        (["Widget", "widgets", "--zzz"], 2, "no option --zzz: `invoke --help gen-controller` shows its arguments\n"),
        (["Widget", "widgets", "v1"], 2, "gen-controller takes no further argument, and there is no task v1: `invoke"),
        (["Widget", "widgets", "--version"], 2, "the option --version of gen-controller needs a value: `invoke --help"),
        (
            ["Widget", "widgets", "--short-name", "wd,wg", "--short-name", "wi", "--finalizer"],
            0,
            "Next: edit the fields in",
        ),
        (["Widget", "widgets", "--short-name", "wd,"], 2, "'' is not a short name"),
        (
            ["Deployment", "deployments"],
            0,
            "Kubernetes has a kind of that name: if you mean it, remove these files and give --for apps/v1/Deployment.",
        ),
        (["Deployment", "deployments", "--for", "apps/v1/Deployment"], 0, "wrote tests/unit/test_deployment.py"),
        (["Deployment", "deployments", "--for", "apps/v1"], 2, "--for is 'apps/v1': use API version and kind"),
        (["Pod", "pods", "--for", "v1/Pod", "--version", "v1"], 2, "--version is for a kind of your own"),
        (["Pod", "pods", "--for", "v1/Pod", "--bare"], 2, "--bare and --no-controller are for a kind of your own"),
        (["Widget", "widgets", "--no-controller", "--finalizer"], 2, "--bare and --finalizer are for a controller"),
        (["Widget", "widgets", "--dry-run"], 0, "+++ b/src/widgets_operator/controllers/widget.py"),
    ],
)
def test_the_task_ends_with_a_sentence_and_a_code(project: Path, arguments: list[str], code: int, said: str) -> None:
    command = [sys.executable, "-m", "invoke", "gen-controller", *arguments]
    done = subprocess.run(command, cwd=project / "src", capture_output=True, text=True, check=False)

    assert (done.returncode, said in (done.stdout if code == 0 else done.stderr)) == (code, True), done
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["gen-controler", "Widget", "widgets"], "there is no task gen-controler: did you mean gen-controller?\n"),
        (["--help", "gen-controler"], "there is no task gen-controler: did you mean gen-controller?\n"),
        (["sandbox.strat"], "there is no task sandbox.strat: did you mean sandbox.start?\n"),
        (["xyz"], "there is no task xyz: `invoke --list` shows all tasks\n"),
        (["lint", "--fix"], "lint has no option --fix: run `ruff check --fix`\n"),
        (
            ["test", "-k", "size"],
            "test has no option -k: for options of pytest run `pytest`, such as `pytest -k NAME`\n",
        ),
        (["test", "--unti"], "test has no option --unti: did you mean --unit?\n"),
        (["--foo", "lint"], "invoke has no option --foo: `invoke --help` shows its options\n"),
        (["gen-task", "--help"], "gen-task needs NAME: `invoke --help gen-task` shows its arguments\n"),
    ],
)
def test_a_misspelt_task_is_answered_with_what_comes_close(project: Path, arguments: list[str], said: str) -> None:
    command = [sys.executable, "-m", "invoke", *arguments]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout, done.stderr) == (2, "", said)


def test_the_help_of_a_task_explains_its_arguments(project: Path) -> None:
    command = [sys.executable, "-m", "invoke", "--help", "gen-controller"]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert "kind in CamelCase: Widget" in done.stdout
    assert "objects of the kind have no namespace" in done.stdout


def test_tasks_can_be_imported_by_other_programs(project: Path) -> None:
    """What is on their command line is none of our business."""
    command = [sys.executable, "-c", "import tasks; print(tasks.ns.name)", "no-such-task"]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr


def test_a_package_that_is_missing_is_named_with_the_line_that_installs_it(project: Path) -> None:
    code = (
        "import sys, runpy; sys.modules['jinja2'] = None; sys.argv = ['invoke', 'gen-controller', 'Widget', 'widgets'];"
        "from invoke.main import program; program.run()"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=project, capture_output=True, text=True, check=False)

    assert done.returncode == 2
    assert done.stderr.startswith("jinja2 is not installed here: run `uv sync`, or `pip install -e '.[dev]'`, and try")
    assert len(done.stderr.splitlines()) == 1
