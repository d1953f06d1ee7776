"""gen-webhook: what it adds, also to a repository that was rendered before there were webhooks."""

from __future__ import annotations

import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from bonny.errors import UsageError
from bonny_dev.project import Project
from bonny_dev.tasks.generate import plan_kind
from bonny_dev.tasks.options import NewKind
from bonny_dev.tasks.parts import plan_webhook
from bonny_dev.tasks.pyproject import CRYPTOGRAPHY, with_webhooks
from tests.support.generating import run_task, state

FILES = (
    "src/widgets_operator/controllers/gadget_admission.py",
    "tests/integration/test_gadget_admission.py",
    "tests/unit/test_gadget_admission.py",
)
OF_0_1 = """\
[project.optional-dependencies]
dev = [
    "aiohttp>=3.13.3,<4",  # the proxy that injects faults in tests
    "watchfiles>=1.1,<2",
]
fast = ["uvloop>=0.22,<1; sys_platform != 'win32'"]

[tool.bonny]
package = "widgets_operator"
extras = ["fast"]  # extras above that `invoke lock` puts into the image
"""


def pyproject(text: str) -> tuple[dict[str, list[str]], list[str]]:
    """The extras, and those for the image."""
    table: dict[str, Any] = tomllib.loads(text)
    return table["project"]["optional-dependencies"], table["tool"]["bonny"]["extras"]


@pytest.fixture
def gadgets(project: Path) -> Path:
    """A copy of the default project with a kind Gadget, to change."""
    plan_kind(Project.at(project), NewKind(kind="Gadget", plural="gadgets")).write()
    return project


def test_a_webhook_of_an_own_kind_comes_with_its_tests_and_its_package(gadgets: Path) -> None:
    before = state(gadgets)
    plan = plan_webhook(Project.at(gadgets), "Gadget")

    assert plan.write() == ("pyproject.toml", *FILES)

    after = state(gadgets)
    assert {name: after[name] for name in before} == before
    extras, chosen = pyproject((gadgets / "pyproject.toml").read_text("utf-8"))
    assert chosen == ["webhooks", "fast"]
    assert extras["webhooks"] == [CRYPTOGRAPHY.strip('"')]
    assert "class GadgetAdmission(Admission[Gadget]):" in after[FILES[0]]
    assert plan.notes[-1].startswith("Next: `invoke lock`: the image needs the package cryptography")
    again = plan_webhook(Project.at(gadgets), "Gadget")
    assert (again.write(), again.notes[-1].count("invoke lock")) == ((), 0)


def test_a_webhook_of_another_kind_fails_open_and_reviews_only_what_has_its_label(gadgets: Path) -> None:
    written = plan_webhook(Project.at(gadgets), "Pod").write()

    assert written == ("pyproject.toml", FILES[0].replace("gadget", "pod"), FILES[2].replace("gadget", "pod"))
    text = (gadgets / written[1]).read_text("utf-8")
    assert 'resource = Kind("v1", "Pod")\n    object_selector = {"example.com/pod": "enabled"}' in text
    assert "failure_policy" not in text


def test_a_kind_that_kubernetes_does_not_serve_is_described(gadgets: Path) -> None:
    plan = plan_webhook(Project.at(gadgets), "cert-manager.io/v1/Certificate")

    assert "Certificate is not a kind of Kubernetes itself, and is taken to be namespaced" in plan.notes[0]
    kind = 'Kind("cert-manager.io/v1", "Certificate", plural="certificates", scope=Scope.NAMESPACED)'
    assert any(kind in text for text in plan.texts.values())


def test_the_diff_has_the_edit_too_and_writes_nothing(gadgets: Path) -> None:
    before = (gadgets / "pyproject.toml").read_bytes()
    plan = plan_webhook(Project.at(gadgets), "Gadget")
    diff = plan.diff()
    assert (gadgets / "pyproject.toml").read_bytes() == before

    subprocess.run(["git", "apply", "-"], cwd=gadgets, input=diff, text=True, check=True)

    assert plan.missing() == ()


def test_when_a_file_cannot_be_written_the_edit_is_taken_back(gadgets: Path) -> None:
    before = (gadgets / "pyproject.toml").read_bytes()
    plan = plan_webhook(Project.at(gadgets), "Gadget")
    (gadgets / "tests/unit").rename(gadgets / "tests/aside")
    (gadgets / "tests/unit").write_text("in the way\n", "utf-8")

    with pytest.raises(UsageError, match="so nothing was"):
        plan.write()

    assert (gadgets / "pyproject.toml").read_bytes() == before
    assert not (gadgets / FILES[0]).exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("Event", "Event exists in several versions: choose events.k8s.io/v1/Event or v1/Event"),
        ("Widget", "Widget is neither a kind of this operator nor of Kubernetes: see `kubectl api-resources`"),
        ("apps/v1/Deploymnt", "did you mean apps/v1/Deployment?"),
        ("gadget", "'gadget' is not a"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence_and_changes_nothing(
    with_gadget: Path, words: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = state(with_gadget)
    assert run_task(with_gadget, f"gen-webhook {words}") == 2

    said = capsys.readouterr()
    assert sentence in said.err
    assert (said.err.count("\n"), said.out) == (1, "")
    assert state(with_gadget) == before


def test_a_kind_without_its_sample_is_refused(gadgets: Path) -> None:
    (gadgets / "samples/gadget-v1.yaml").unlink()

    with pytest.raises(UsageError, match=r"samples/gadget-v1\.yaml is missing"):
        plan_webhook(Project.at(gadgets), "Gadget")


def test_in_a_repository_of_0_1_the_line_of_the_extra_is_named() -> None:
    text, left = with_webhooks(OF_0_1)

    extras, chosen = pyproject(text)
    assert (chosen, "webhooks" in extras) == (["webhooks", "fast"], False)
    (sentence,) = left
    assert sentence.startswith(f"Next: add webhooks = [{CRYPTOGRAPHY}] to [project.optional-dependencies] in ")
    # What is there already is not added again.
    assert with_webhooks(text) == (text, left)


def test_the_template_has_the_package_that_is_named(gadgets: Path) -> None:
    rendered, _ = pyproject((gadgets / "pyproject.toml").read_text("utf-8"))

    assert rendered["webhooks"] == [CRYPTOGRAPHY.strip('"')]
    assert CRYPTOGRAPHY.strip('"') in rendered["dev"]


def test_a_line_that_was_changed_too_much_is_named() -> None:
    text = OF_0_1.replace("extras = [", "others = [")

    assert with_webhooks(text)[0] == text
    assert with_webhooks(text)[1][-1] == 'Next: add extras = ["webhooks"] to [tool.bonny] in pyproject.toml.'
