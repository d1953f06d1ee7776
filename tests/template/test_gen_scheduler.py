"""gen-scheduler: adds a scheduler that needs no hand edit, and changes nothing when it cannot."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from bonny.errors import UsageError
from bonny_dev import wheel
from bonny_dev.lines import code_lines
from bonny_dev.project import Project
from bonny_dev.tasks.generate import plan_kind
from bonny_dev.tasks.generators import plan_scheduler
from bonny_dev.tasks.options import NewKind
from tests.support.baking import bake, install, invoke
from tests.support.generating import run_task, state
from tests.template.conftest import ANSWER_SETS


def test_a_scheduler_gets_class_sample_and_tests(project: Path) -> None:
    before = state(project)

    written = plan_scheduler(Project.at(project), "cheap-node").write()

    assert written == (
        "samples/cheap-node.yaml",
        "src/widgets_operator/controllers/cheap_node.py",
        "tests/integration/test_cheap_node.py",
        "tests/unit/test_cheap_node.py",
    )
    after = state(project)
    assert {name for name in after if name not in before} == set(written)
    assert {name: after[name] for name in before} == before
    sample = yaml.safe_load(after["samples/cheap-node.yaml"])
    assert (sample["kind"], sample["spec"]["schedulerName"]) == ("Pod", "cheap-node")
    assert 'class CheapNode(Scheduler):\n    name = "cheap-node"\n' in after[written[1]]


def test_the_same_again_writes_nothing_and_what_was_edited_is_never_overwritten(project: Path) -> None:
    plan_scheduler(Project.at(project), "cheap-node").write()
    assert plan_scheduler(Project.at(project), "cheap-node").write() == ()
    mine = project / "src/widgets_operator/controllers/cheap_node.py"
    mine.write_text(mine.read_text("utf-8") + "# mine\n", encoding="utf-8")
    before = state(project)

    with pytest.raises(
        UsageError, match=r"controllers/cheap_node\.py.*: exists with different content, so nothing was"
    ):
        plan_scheduler(Project.at(project), "cheap-node").write()

    assert state(project) == before


def test_a_controller_of_the_same_name_is_not_overwritten(project: Path) -> None:
    plan_kind(Project.at(project), NewKind(kind="CheapNode", plural="cheapnodes")).write()
    before = state(project)

    with pytest.raises(UsageError, match=r"exists with different content, so nothing was written"):
        plan_scheduler(Project.at(project), "cheap-node").write()

    assert state(project) == before


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("CheapNode", "'CheapNode' is not a scheduler name: use lower-case letters"),
        ("", "'' is not a scheduler name"),
        ("cheap_node", "'cheap_node' is not a scheduler name"),
        ("../cheap", "'../cheap' is not a scheduler name"),
        ("x" * 64, "is not a scheduler name"),
        ("default-scheduler", "'default-scheduler' is the scheduler of Kubernetes itself"),
        ("3-nodes", "'3-nodes' cannot be a scheduler here: no class can be called 3Nodes"),
        ("none", "'none' cannot be a scheduler here: no class can be called None"),
        ("exception", "'exception' cannot be a scheduler: Python or a generated file already uses the name"),
        ("scheduler", "'scheduler' cannot be a scheduler: Python or a generated file already uses the name"),
    ],
)
def test_a_name_that_cannot_be_is_refused_in_a_sentence_and_changes_nothing(
    project: Path, name: str, sentence: str
) -> None:
    before = state(project)

    with pytest.raises(UsageError) as caught:
        plan_scheduler(Project.at(project), name)

    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)
    assert state(project) == before


def test_a_scheduler_named_like_a_word_of_python_gets_an_importable_module(project: Path) -> None:
    texts = plan_scheduler(Project.at(project), "class").texts

    assert "src/widgets_operator/controllers/class_.py" in texts


def test_the_task_adds_the_filters_and_says_with_how_many_lines(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = state(project)
    assert run_task(project, "gen-scheduler cheap-node --dry-run") == 0
    assert "the extra filters would be added" in capsys.readouterr().out.splitlines()
    assert state(project) == before

    assert run_task(project, "gen-scheduler cheap-node") == 0

    said, after = capsys.readouterr().out, state(project)
    own = wheel.selected(wheel.sources(), ("scheduler", "filters")).keys()
    own -= wheel.selected(wheel.sources(), ("scheduler",)).keys()
    lines = wheel_lines({name: after[f"vendor/bonny/{name}"] for name in own})
    assert f"added the extra filters: {lines} lines in vendor/bonny" in said.splitlines()
    assert {name for name in after.keys() - before.keys() if name.startswith("vendor/")} == {
        f"vendor/bonny/{name}" for name in (*own, wheel.CHECKSUMS)
    }
    assert {name for name in before if after[name] != before[name]} == {"pyproject.toml"}
    assert run_task(project, "gen-scheduler cheap-node") == 0
    assert "nothing to do" in capsys.readouterr().out


def wheel_lines(files: Mapping[str, str]) -> int:
    return sum(code_lines(text) for name, text in files.items() if name.endswith(".py"))


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["cheap-node"], 0, "wrote src/widgets_operator/controllers/cheap_node.py"),
        (["CheapNode"], 2, "'CheapNode' is not a scheduler name"),
        ([], 2, "gen-scheduler needs NAME"),
    ],
)
def test_the_task_ends_with_a_sentence_and_a_code(project: Path, arguments: list[str], code: int, said: str) -> None:
    command = [sys.executable, "-m", "invoke", "gen-scheduler", *arguments]
    done = subprocess.run(command, cwd=project / "src", capture_output=True, text=True, check=False)

    assert (done.returncode, said in (done.stdout if code == 0 else done.stderr)) == (code, True), done
    assert "Traceback" not in done.stderr


# --- at work ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def scheduling(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An installed project with two schedulers and nothing else; it watches one namespace, but schedulers see all."""
    baked = bake(tmp_path_factory.mktemp("scheduling") / "bake", ANSWER_SETS["fullest"])
    assert baked.code == 0, baked.said
    install(baked.project)
    for name in ("cheap-node", "x" * 63):
        done = invoke(baked.project, "gen-scheduler", name)
        assert done.returncode == 0, done.stderr
    return baked.project


def test_lint_and_types_of_a_generated_scheduler_are_green(scheduling: Path) -> None:
    done = invoke(scheduling, "lint")

    assert done.returncode == 0, done.stdout + done.stderr


def test_the_tests_of_a_generated_scheduler_pass(scheduling: Path) -> None:
    done = invoke(scheduling, "test", "--unit")

    assert done.returncode == 0, done.stdout + done.stderr
    assert "6 passed" in done.stdout


@pytest.mark.slow  # for each commit, test_how_to_scheduler runs the same tests of one of these schedulers
@pytest.mark.server
def test_a_generated_scheduler_binds_on_a_real_api_server_with_the_manifests_permissions(scheduling: Path) -> None:
    done = invoke(scheduling, "test")

    assert done.returncode == 0, done.stdout + done.stderr
    assert "9 passed" in done.stdout


def test_the_manifest_grants_what_a_scheduler_needs_and_the_lease_and_nothing_else(scheduling: Path) -> None:
    done = invoke(scheduling, "manifest", "--out", "-")

    documents = list(yaml.safe_load_all(done.stdout))
    granted = {
        (document["kind"], group, resource): set(rule["verbs"])
        for document in documents
        for rule in document.get("rules", ())
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    seen, anew = {"get", "list", "watch"}, {"create", "patch"}
    lease: Any = {granted.pop(key) and key for key in list(granted) if key[2] == "leases"}
    assert {kind for kind, _, _ in lease} == {"Role"}
    assert granted == {
        ("ClusterRole", "", "nodes"): seen,
        ("ClusterRole", "", "pods"): seen,
        ("ClusterRole", "", "pods/binding"): {"create"},
        ("ClusterRole", "", "pods/status"): {"patch"},
        ("ClusterRole", "events.k8s.io", "events"): anew,
    }
