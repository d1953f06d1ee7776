"""gen-controller --version: a further version has what was written for the hub, and can take its place."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from bonny.errors import UsageError
from bonny_dev.project import Project
from bonny_dev.tasks.extras import add as add_extra
from bonny_dev.tasks.generate import plan_kind
from bonny_dev.tasks.generators import plan_webhook
from bonny_dev.tasks.options import NewKind
from bonny_dev.tasks.plan import Plan
from tests.support.baking import TEMPLATE
from tests.support.generating import state

V2 = "src/widgets_operator/api/v2alpha1/widget.py"
V1 = "src/widgets_operator/api/v1/widget.py"

# What a person may make of the generated module: comments, a neighbour, fields, rules, and letters of two bytes.
WRITTEN = '''"""Widget v2alpha1: sizes, as in v2alpha1 and not in v2alpha10; grün."""

from __future__ import annotations

from bonny.api import AGE, Column, Field, Rule, Scope, Spec, Status, Version, WithConditions

from .common import Colour


LIMIT = 8
LIMIT = LIMIT + 1


class WidgetSpec(Spec):
    """What the user wants."""

    replicas: int = Field(1, ge=1, le=LIMIT)
    colour: Colour = Colour.RED


class WidgetStatus(Status, WithConditions):
    """What the operator reports."""


class Widget(Version):
    """Grün."""

    kind = "Widget"; version = "v2alpha1"  # noqa: E702
    plural = "widgets"
    categories = ("all",)
    scope = Scope.NAMESPACED
    deprecated = True
    deprecation_warning = (
        "Widget v2alpha1 goes"
    )
    storage: bool = True  # type: ignore[misc]
    hub = True  # what the controller works with
    spec: WidgetSpec
    status: WidgetStatus
    columns = (Column("Replicas", "integer", ".spec.replicas"), AGE)
    rules = (Rule("self.spec.replicas < 9", message="ö"),)
'''
COMMON = '''"""What the kinds of this version share."""

from enum import StrEnum


class Colour(StrEnum):
    """Which colour."""

    RED = "red"
    BLUE = "blue"
'''
DIFFERING = (
    "conversion between versions of a kind whose fields differ needs the extra webhooks, which is not in vendor/: run "
    "`invoke extras --add webhooks`\n"
)


def add(project: Path, version: str) -> Plan:
    plan = plan_kind(Project.at(project), NewKind(kind="Widget", plural="widgets", version=version))
    plan.write()
    return plan


def write(project: Path, name: str, text: str) -> None:
    (project / name).write_text(text, encoding="utf-8")


def manifest(project: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "invoke", "manifest", "--out", "-"]
    return subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)


def versions_served(project: Path) -> dict[str, dict[str, object]]:
    done = manifest(project)
    assert done.returncode == 0, done.stderr
    (crd,) = [known for known in yaml.safe_load_all(done.stdout) if known["kind"] == "CustomResourceDefinition"]
    return {version["name"]: version for version in crd["spec"]["versions"]}


def test_it_gets_api_sample_and_tests_and_neither_hub_nor_storage(project: Path) -> None:
    add(project, "v2alpha1")
    before = state(project)

    plan = plan_kind(Project.at(project), NewKind(kind="Widget", plural="widgets", version="v1"))

    assert plan.write() == (
        "samples/widget-v1.yaml",
        "src/widgets_operator/api/v1/__init__.py",
        V1,
        "tests/integration/test_widget_v1.py",
        "tests/unit/test_widget_v1.py",
    )
    assert "    storage = False\n    hub = False\n" in (project / V1).read_text(encoding="utf-8")
    assert {name: text for name, text in state(project).items() if name in before} == before


def test_it_has_what_the_owner_wrote_for_the_hub(project: Path) -> None:
    add(project, "v2alpha1")
    write(project, V2, WRITTEN)
    write(project, "src/widgets_operator/api/v2alpha1/common.py", COMMON)
    mine = "# mine, not of my.example.com/v2alpha1 or example.com/v2alpha10\n"
    sample = "apiVersion: example.com/v2alpha1\nkind: Widget\nmetadata: {name: w}\nspec: {replicas: 2}\n"
    write(project, "samples/widget-v2alpha1.yaml", mine + sample)

    add(project, "v1")

    text = (project / V1).read_text(encoding="utf-8")
    assert text.startswith('"""Widget v1: sizes, as in v1 and not in v2alpha10; grün."""\n')
    assert "from ..v2alpha1.common import Colour\n" in text
    assert "from bonny import Resource\n" in text
    assert "    hub = False  # what the controller works with\n" in text
    assert (project / "samples/widget-v1.yaml").read_text("utf-8") == mine + sample.replace("v2alpha1", "v1")
    served = versions_served(project)
    assert list(served) == ["v1", "v2alpha1"]
    same = ("schema", "additionalPrinterColumns", "subresources")
    assert [served["v1"][part] for part in same] == [served["v2alpha1"][part] for part in same]
    assert [served["v1"].get(part, False) for part in ("served", "storage", "deprecated")] == [True, False, False]


def test_the_lines_to_change_put_it_in_the_place_of_the_hub(project: Path) -> None:
    add(project, "v2alpha1")
    add_extra(Project.at(project), ["webhooks"])
    plan_webhook(Project.at(project), "Widget").write()
    plan = add(project, "v1")

    assert "v2alpha1 stays the hub" in plan.notes[0]
    for line in plan.notes[2:]:
        name, number, text = (part.strip() for part in line.split(":", maxsplit=2))
        lines = (project / name).read_text(encoding="utf-8").splitlines()
        old = lines[int(number) - 1]
        lines[int(number) - 1] = old[: len(old) - len(old.lstrip())] + text
        write(project, name, "\n".join(lines) + "\n")

    flags = {
        name: [line for line in (project / name).read_text("utf-8").splitlines() if " = " in line] for name in (V1, V2)
    }
    assert {"    storage = True", "    hub = True"} <= set(flags[V1])
    assert {"    storage = False", "    hub = False"} <= set(flags[V2])
    text = (project / "src/widgets_operator/controllers/widget.py").read_text(encoding="utf-8")
    assert "api.v1.widget import Widget" in text
    assert "api.v2alpha1" not in text
    assert [name for name, version in versions_served(project).items() if version["storage"]] == ["v1"]
    command = [sys.executable, "-m", "pytest", "-q", "tests/unit"]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    on_a_server = (project / "tests/integration/test_widget.py").read_text(encoding="utf-8")
    assert '"widget-v1.yaml"' in on_a_server, "regression: it failed as soon as the old version was no longer served"
    admission = (project / "src/widgets_operator/controllers/widget_admission.py").read_text(encoding="utf-8")
    assert "api.v1.widget import Widget" in admission, "regression: it went on reviewing the old version"
    assert (done.returncode, "8 passed" in done.stdout) == (0, True), done.stdout


def test_a_third_version_is_made_from_the_hub_whatever_came_last(project: Path) -> None:
    add(project, "v2alpha1")
    add(project, "v1")

    add(project, "v3")

    text = (project / "tests/unit/test_widget_v3.py").read_text("utf-8")
    assert '["widget-v3.yaml", "widget-v2alpha1.yaml"]' in text
    assert list(versions_served(project)) == ["v3", "v1", "v2alpha1"]


def test_versions_whose_fields_differ_are_converted_by_the_functions_or_refused_in_a_sentence(project: Path) -> None:
    add(project, "v2alpha1")
    add(project, "v1")
    text = (project / V1).read_text("utf-8")
    renamed = text.replace("    size: int", "    replicas: int").replace(".spec.size", ".spec.replicas")
    write(project, V1, renamed)
    done = manifest(project)
    assert (done.returncode, done.stderr) == (2, DIFFERING)

    command = [sys.executable, "-m", "pytest", "-q", "tests/unit/test_widget_v1.py"]
    add_extra(Project.at(project), ["webhooks"])
    assert list(versions_served(project)) == ["v1", "v2alpha1"]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert "has to carry spec.size: convert it, or set carried=['spec.size']" in done.stdout
    # Regression: the integration test compared the fields of two versions, and failed as soon as they differed.
    on_a_server = (project / "tests/integration/test_widget_v1.py").read_text("utf-8")
    assert 'as_hub["spec"] == round_trip(created, v1.Widget, v2alpha1.Widget)["spec"]' in on_a_server

    write(project, V1, renamed[: renamed.index("    @staticmethod")])
    done = manifest(project)
    assert done.returncode == 2
    (sentence,) = done.stderr.splitlines()
    page = (TEMPLATE / "docs/how-to/add-a-version.md").read_text("utf-8")
    assert sentence in page.replace("\n> ", " ")


@pytest.mark.parametrize("hidden", [V1, V2])
def test_regression_a_version_that_is_not_served_is_not_read_on_a_server(project: Path, hidden: str) -> None:
    add(project, "v2alpha1")
    add(project, "v1")
    spoiled(project, hidden, '    kind = "Widget"\n', '    kind = "Widget"\n    served = False\n')

    command = [sys.executable, "-m", "pytest", "-q", "tests/integration/test_widget_v1.py"]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)

    assert (done.returncode, "1 skipped" in done.stdout) == (0, True), done.stdout


def spoiled(project: Path, name: str, old: str, new: str) -> None:
    text = (project / name).read_text("utf-8")
    assert old in text
    write(project, name, text.replace(old, new))


@pytest.mark.parametrize(
    ("name", "old", "new", "sentence"),
    [
        (V2, "hub = True", "hub = False", r"no version of Widget has hub = True: set it on one of v2alpha1"),
        (V2, "    storage = True\n", "", r"Widget v2alpha1 .* does not set storage: add the line storage = False"),
        (
            V2,
            "class Widget(",
            'class Old(Version):\n    kind = "Old"\n    version = "v1"\n\n\nclass Widget(',
            "cannot copy Widget v2alpha1: .* has other classes",
        ),
        (
            "samples/widget-v2alpha1.yaml",
            "example.com/v2alpha1",
            "example.com/v9",
            "has no object of example.com/v2alpha1, and the sample of v1 would be made from it",
        ),
    ],
)
def test_a_hub_that_cannot_be_copied_is_refused_with_what_to_do(
    project: Path, name: str, old: str, new: str, sentence: str
) -> None:
    add(project, "v2alpha1")
    spoiled(project, name, old, new)
    before = state(project)

    with pytest.raises(UsageError, match=sentence):
        add(project, "v1")

    assert state(project) == before


def test_a_sample_that_is_gone_is_asked_for(project: Path) -> None:
    add(project, "v2alpha1")
    (project / "samples/widget-v2alpha1.yaml").unlink()

    with pytest.raises(UsageError, match=r"widget-v2alpha1\.yaml has no object of example\.com/v2alpha1"):
        add(project, "v1")
