"""gen-webhook: the files and the extra that it adds."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from bonny.errors import UsageError
from bonny_dev.project import Project
from bonny_dev.tasks.generate import plan_kind
from bonny_dev.tasks.generators import plan_webhook
from bonny_dev.tasks.options import NewKind
from tests.support.generating import run_task, state

PACKAGES = ["cryptography>=46,<51", "uvicorn>=0.38,<1"]
FILES = (
    "src/widgets_operator/controllers/gadget_admission.py",
    "tests/integration/test_gadget_admission.py",
    "tests/unit/test_gadget_admission.py",
)


def pyproject(text: str) -> tuple[dict[str, list[str]], list[str]]:
    """The extras, and those for the image."""
    table: dict[str, Any] = tomllib.loads(text)
    return table["project"]["optional-dependencies"], table["tool"]["bonny"]["extras"]


@pytest.fixture
def gadgets(project: Path) -> Path:
    """A copy of the default project with a kind Gadget, to change."""
    plan_kind(Project.at(project), NewKind(kind="Gadget", plural="gadgets")).write()
    return project


def test_a_webhook_of_an_own_kind_comes_with_its_tests_and_its_extra(
    gadgets: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = state(gadgets)
    assert run_task(gadgets, "gen-webhook Gadget") == 0

    said, after = capsys.readouterr().out, state(gadgets)
    changed = {name for name in before if after[name] != before[name]}
    assert changed == {"pyproject.toml"}
    added = after.keys() - before.keys()
    folders = ("vendor/bonny/webhooks/", "vendor/bonny/tls/")
    assert {name for name in added if not name.startswith(folders)} == {*FILES, "vendor/bonny/CHECKSUMS"}
    extras, chosen = pyproject((gadgets / "pyproject.toml").read_text("utf-8"))
    assert sorted(chosen) == ["fast", "scheduler", "webhooks"]
    assert extras["webhooks"] == PACKAGES
    assert "class GadgetAdmission(Admission[Gadget]):" in after[FILES[0]]
    assert re.search(
        r"^added the extra webhooks: 1\d{3} lines in vendor/bonny, and cryptography, uvicorn in the image$", said, re.M
    )
    assert run_task(gadgets, "gen-webhook Gadget") == 0
    assert "nothing to do" in capsys.readouterr().out
    assert state(gadgets) == after


def test_a_webhook_of_another_kind_fails_open_and_reviews_only_what_has_its_label(gadgets: Path) -> None:
    written = plan_webhook(Project.at(gadgets), "Pod").write()

    assert written == (FILES[0].replace("gadget", "pod"), FILES[2].replace("gadget", "pod"))
    text = (gadgets / written[0]).read_text("utf-8")
    assert 'resource = Kind("v1", "Pod")\n    object_selector = {"example.com/pod": "enabled"}' in text
    assert "failure_policy" not in text


def test_a_kind_that_kubernetes_does_not_serve_is_described(gadgets: Path) -> None:
    plan = plan_webhook(Project.at(gadgets), "cert-manager.io/v1/Certificate")

    assert "Certificate is not a kind of Kubernetes itself, and is taken to be namespaced" in plan.notes[0]
    kind = 'Kind("cert-manager.io/v1", "Certificate", plural="certificates", scope=Scope.NAMESPACED)'
    assert any(kind in text for text in plan.texts.values())


def test_a_dry_run_names_the_extra_and_writes_nothing(gadgets: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = state(gadgets)
    assert run_task(gadgets, "gen-webhook Gadget --dry-run") == 0
    said = capsys.readouterr().out
    assert state(gadgets) == before

    diff, _, last = said.rstrip("\n").rpartition("\n")
    assert last == "the extra webhooks would be added"
    subprocess.run(["git", "apply", "-"], cwd=gadgets, input=f"{diff}\n", text=True, check=True)
    assert plan_webhook(Project.at(gadgets), "Gadget").missing() == ()


def test_when_a_file_exists_already_the_extra_is_not_added_either(gadgets: Path) -> None:
    (gadgets / FILES[0]).write_text("mine = True\n", "utf-8")
    before = state(gadgets)

    assert run_task(gadgets, "gen-webhook Gadget") == 2

    assert state(gadgets) == before


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
