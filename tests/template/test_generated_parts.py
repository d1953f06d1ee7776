"""gen-controller --for, gen-task and gen-reconciler, and what all generators share."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest

from bonny.errors import UsageError
from bonny_dev.project import Project
from bonny_dev.tasks.generate import plan_kind
from bonny_dev.tasks.generators import plan_controller_of, plan_reconciler, plan_task
from bonny_dev.tasks.options import NewKind
from bonny_dev.tasks.plan import Plan
from tests.support.generating import run_task, state

Planned = Callable[[Project], Plan]


def widget(project: Project) -> Plan:
    return plan_kind(project, NewKind(kind="Widget", plural="widgets", finalizer=True))


def deployment(project: Project) -> Plan:
    return plan_controller_of(project, NewKind(kind="Deployment", plural="deployments"), "apps/v1/Deployment")


def stale_reports(project: Project) -> Plan:
    return plan_task(project, "stale-reports")


def pod_counter(project: Project) -> Plan:
    return plan_reconciler(project, "PodCounter")


EVERY: tuple[Planned, ...] = (widget, deployment, stale_reports, pod_counter)
every_generator = pytest.mark.parametrize("planned", EVERY, ids=lambda planned: planned.__name__)


def invoke(project: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "invoke", *words]
    return subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)


def served(project: Path) -> str:
    """The parts that the operator discovers, as it would start with them."""
    code = (
        "from widgets_operator.operator import operator as o;"
        "print([c.__name__ for c in o.controllers], [s.__name__ for s in o.servers], [t.id for t in o.tasks])"
    )
    path = os.pathsep.join((str(project / "src"), str(project / "vendor")))
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("planned", "files", "found"),
    [
        (
            deployment,
            ("src/widgets_operator/controllers/deployment.py", "tests/unit/test_deployment.py"),
            "['DeploymentController'] [] []",
        ),
        (
            stale_reports,
            (
                "src/widgets_operator/controllers/stale_reports.py",
                "tests/integration/test_stale_reports.py",
                "tests/unit/test_stale_reports.py",
            ),
            "[] [] ['stale-reports']",
        ),
        (
            pod_counter,
            (
                "src/widgets_operator/controllers/pod_counter.py",
                "tests/integration/test_pod_counter.py",
                "tests/unit/test_pod_counter.py",
            ),
            "[] ['PodCounter'] []",
        ),
    ],
)
def test_what_is_added_is_discovered_without_an_edit(
    project: Path, planned: Planned, files: tuple[str, ...], found: str
) -> None:
    before = state(project)

    assert planned(Project.at(project)).write() == files

    after = state(project)
    assert {name: after[name] for name in before} == before
    assert set(after) - set(before) == set(files)
    assert served(project) == found


@every_generator
def test_the_same_again_writes_nothing(project: Path, planned: Planned) -> None:
    planned(Project.at(project)).write()
    before = state(project)

    assert planned(Project.at(project)).write() == ()
    assert state(project) == before


@every_generator
def test_a_file_that_a_person_changed_is_never_written(project: Path, planned: Planned) -> None:
    for name in planned(Project.at(project)).write():
        path = project / name
        path.write_text(f"{path.read_text('utf-8')}\n# mine\n", "utf-8")
        before = state(project)

        # The docstring of a version's package is its owner's from the first day.
        package = name.endswith("__init__.py")
        with nullcontext() if package else pytest.raises(UsageError, match="so nothing was written"):
            planned(Project.at(project)).write()

        assert state(project) == before
        path.write_text(path.read_text("utf-8").removesuffix("\n# mine\n"), "utf-8")


@every_generator
def test_one_file_that_cannot_be_written_leaves_none(project: Path, planned: Planned) -> None:
    """Whichever it is: the folder that it is in is a file."""
    for name in planned(Project.at(project)).texts:
        folder = (project / name).parent
        aside = folder.with_name(f"{folder.name}.aside")
        if folder.exists():
            folder.rename(aside)
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.write_text("in the way\n", "utf-8")
        before = state(project)

        with pytest.raises(UsageError, match=r"so nothing was"):
            planned(Project.at(project)).write()

        assert state(project) == before
        folder.unlink()
        if aside.exists():
            aside.rename(folder)


@every_generator
def test_the_diff_is_what_is_written_and_writes_nothing(project: Path, planned: Planned) -> None:
    before = state(project)
    diff = planned(Project.at(project)).diff()
    assert state(project) == before

    subprocess.run(["git", "apply", "-"], cwd=project, input=diff, text=True, check=True)

    assert state(project) != before
    assert planned(Project.at(project)).missing() == ()


def test_the_tasks_say_what_they_wrote_and_what_comes_next(project: Path) -> None:
    for words in (("gen-task", "stale-reports"), ("gen-reconciler", "PodCounter")):
        before = state(project)
        shown = invoke(project, *words, "--dry-run")
        assert (shown.returncode, state(project)) == (0, before)
        first, again = invoke(project, *words), invoke(project, *words)

        wrote = [line.removeprefix("wrote ") for line in first.stdout.splitlines()[:-1]]
        assert [line[6:] for line in shown.stdout.splitlines() if line.startswith("+++ b/")] == wrote
        assert first.stdout.splitlines()[-1].startswith("Next: edit src/widgets_operator/controllers/")
        assert (again.returncode, again.stdout) == (0, "nothing to do: all files exist\n")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("gen-task StaleReports", "'StaleReports' is not a name of a task: use lower-case letters"),
        ("gen-task 9-lives", "'9-lives' is not a name of a task"),
        ("gen-task ../x", "'../x' is not a name of a task"),
        ("gen-task logging", "'logging' cannot be a task: Python or a generated file already uses the name"),
        ("gen-task gadget", "src/widgets_operator/controllers/gadget.py, tests/integration/test_gadget.py"),
        ("gen-reconciler pod-counter", "'pod-counter' is not a name of a reconciler: use CamelCase"),
        (
            "gen-reconciler Reconciler",
            "'Reconciler' cannot be a reconciler: Python or a generated file already uses the",
        ),
        ("gen-reconciler None", "'None' cannot be a name of a reconciler here: it is a keyword of Python"),
        ("gen-controller Pod pods --for Pod", "--for is 'Pod': use API version and kind, for example apps/v1/Depl"),
        ("gen-controller Pod pods --for v1/Pod/x", "--for is 'v1/Pod/x'"),
        ("gen-controller Pod pods --for v1/pod", "--for is 'v1/pod'"),
        ("gen-controller A as --for apps/v1/Deployments", "not a kind of Kubernetes: did you mean apps/v1/Deployment?"),
        ("gen-controller A as --for app/v1/Deployment", "not a kind of Kubernetes: did you mean apps/v1/Deployment?"),
        ("gen-controller A as --for v1/Widget", "not a kind of Kubernetes: see `kubectl api-resources` for its API"),
        ("gen-controller A as --for networking.k8s.io/v1/Ingres", "did you mean networking.k8s.io/v1/Ingress?"),
        ("gen-controller pod pods --for v1/Pod", "'pod' is not a name of a controller"),
        ("gen-controller Pod pod --for v1/Pod", "the plural of Pod (v1) is pods: use it instead of pod"),
        ("gen-controller Pod pods --for v1/Pod --cluster-scoped", "Pod (v1) is namespaced: leave out --cluster-scoped"),
        ("gen-controller Pod pods --for v1/Pod --group example.com", "--group and --short-name are for new kinds"),
        ("gen-controller Pod pods --for v1/Pod --short-name po", "--group and --short-name are for new kinds"),
        ("gen-controller G gadgets --for example.com/v1/Gadget", "Gadget is a kind of this operator"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence_and_changes_nothing(
    with_gadget: Path, words: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = state(with_gadget)
    assert run_task(with_gadget, words) == 2

    said = capsys.readouterr()
    assert sentence in said.err
    assert (said.err.count("\n"), said.out) == (1, "")
    assert state(with_gadget) == before


def test_a_kind_that_kubernetes_does_not_serve_is_taken_as_it_is_described(project: Path) -> None:
    request = NewKind(kind="Issuing", plural="clusterissuers", cluster_scoped=True)
    plan = plan_controller_of(Project.at(project), request, "cert-manager.io/v1/ClusterIssuer")
    plan.write()

    assert "ClusterIssuer is not a kind of Kubernetes itself, and is taken to be cluster-scoped" in plan.notes[0]
    text = (project / "src/widgets_operator/controllers/issuing.py").read_text("utf-8")
    assert 'plural="clusterissuers",\n        scope=Scope.CLUSTER,' in text
    assert served(project) == "['IssuingController'] [] []"
    done = invoke(project, "manifest", "--out", "-")
    assert "clusterissuers" in done.stdout
