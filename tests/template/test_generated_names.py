"""Names: whatever name a generator accepts gives code that passes the repository's checks and can be imported."""

from __future__ import annotations

import builtins
import keyword
import shutil
import subprocess
import sys
from contextlib import nullcontext, suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

import bonny
from bonny.errors import UsageError
from bonny_dev.naming import RESERVED_KINDS
from bonny_dev.project import Project
from bonny_dev.tasks import extras
from bonny_dev.tasks.generate import plan_kind
from bonny_dev.tasks.generators import plan_controller_of, plan_reconciler, plan_scheduler, plan_task
from bonny_dev.tasks.options import NewKind
from bonny_dev.tasks.plan import Plan
from tests.template.conftest import copied

# Names that mean something to Python, to pytest, to file systems, or to the generated modules.
WORDS = sorted(
    {
        "Any",
        "Con",
        "Email",
        "Hub",
        "Json",
        "Path",
        "Queue",
        "RunningOperator",
        "SAMPLE",
        "SAMPLES",
        "EXAMPLE",
    }
    | {"NAMESPACE", "Test", "TestRun", "Testing", "Tests", "Task", "Log", "Conftest", "Operator2", "HTTPRoute", "A"}
    | {"_", "", "Ä", "Widget\n", "W" * 59, "W" * 60, "'", '"', "{{ x }}", "a b", "api", "Controllers", "Yaml", "Pytest"}
    | {*dir(builtins), *keyword.kwlist, *keyword.softkwlist, *RESERVED_KINDS, *bonny.__all__}
)
CAMEL = st.sampled_from(WORDS) | st.from_regex(r"[A-Z][A-Za-z0-9]{0,20}", fullmatch=True) | st.text(max_size=8)
KEBAB = (
    st.sampled_from([word.lower() for word in WORDS])
    | st.from_regex(r"[a-z][a-z0-9]{0,8}(-{1,2}[a-z0-9]{1,8}){0,3}", fullmatch=True)
    | st.text(max_size=8)
)
VERSION = st.from_regex(r"v[1-9][0-9]?((alpha|beta)[1-9])?", fullmatch=True)
_folders = count()


def kind(project: Project, name: str, word: str, version: str) -> Plan:
    cluster_scoped = len(name) % 2 == 0
    request = NewKind(
        kind=name,
        plural=word,
        version=version,
        cluster_scoped=cluster_scoped,
        short_name=[f"{word}-x"],
        finalizer=True,
    )
    return plan_kind(project, request)


def further(project: Project, name: str, word: str, version: str) -> Plan:
    plan_kind(project, NewKind(kind=name, plural=word, version="v2beta1")).write()
    return plan_kind(project, NewKind(kind=name, plural=word, version=version))


def controller(project: Project, name: str, word: str, version: str) -> Plan:
    request = NewKind(kind=name, plural=word, finalizer=True)
    return plan_controller_of(project, request, f"{word}.example.org/{version}/{name}")


def task(project: Project, name: str, word: str, version: str) -> Plan:
    return plan_task(project, word)


def write(project: Path, plan: Plan) -> None:
    """Write the files, with the extras that they use, as the task does."""
    if absent := [name for name in plan.extras if name not in Project.at(project).extras]:
        extras.add(Project.at(project), absent)
    plan.write()


def reconciler(project: Project, name: str, word: str, version: str) -> Plan:
    return plan_reconciler(project, name)


def scheduler(project: Project, name: str, word: str, version: str) -> Plan:
    return plan_scheduler(project, word)


@pytest.fixture
def folders(pristine: Path, tmp_path: Path) -> Path:
    """Where the projects of the examples are."""
    return copied(pristine, tmp_path)


RUFF = [sys.executable, "-m", "ruff"]
CHECKS = (
    [*RUFF, "check", "--quiet", "."],
    [*RUFF, "format", "--check", "--quiet", "."],
    [sys.executable, "-m", "pytest", "--collect-only", "-q", "-W", "error", "-p", "no:cacheprovider"],
)


GENERATORS = st.sampled_from([kind, further, controller, task, reconciler, scheduler])


def check(root: Path, accepted: object) -> None:
    for command in CHECKS:
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (accepted, done.stdout + done.stderr)


# Ruff takes I, O and l for digits; builtins and imports must not be hidden; pytest takes a class Test... for a test.
KINDS_AND_TASKS = [
    (kind, ("I", "Any", "TestRun", "Filter"), ("Exception", "Spec", "AGE")),
    (further, ("O", "TestKind"), ()),
    (controller, ("Warning", "Print"), ("Field",)),
    (task, ("l", "def", "next", "json", "test-task"), ("log", "task", "logging")),
]
RECONCILERS_AND_SCHEDULERS = [
    (reconciler, ("I", "Any", "Next", "TestRun", "Json"), ("Exception", "List", "Spec", "Testing")),
    (scheduler, ("o", "filter", "test-node", "path", "def"), ("choice", "exception", "pod-view")),
]


@pytest.mark.parametrize("wanted", [KINDS_AND_TASKS, RECONCILERS_AND_SCHEDULERS], ids=["kinds", "reconcilers"])
def test_names_that_ruff_python_or_pytest_use_are_clean_or_refused(
    project: Path, wanted: list[tuple[Any, tuple[str, ...], tuple[str, ...]]]
) -> None:
    """Regression: a kind `I`, a task `l` and a reconciler `Next` gave code that failed ruff."""
    for planned, accepted, refused in wanted:
        for name in (*accepted, *refused):
            word = name if planned in (task, scheduler) else f"{name.lower()}xs"
            with pytest.raises(UsageError, match="cannot be a") if name in refused else nullcontext():
                write(project, planned(Project.at(project), name, word, "v1"))

    check(project, wanted)


# Each example costs seconds, so that what fails is shown as it is and not made smaller.
@pytest.mark.slow  # a search for names that nobody thought of
@settings(
    max_examples=3,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@example(
    [
        (reconciler, "TestRun", "t", "v1"),  # pytest takes a class of that name for a test
        (controller, f"W{'x' * 58}", "w", "v1"),  # a finalizer's name would be too long
        (kind, "AGE", "ages", "v1"),
        (further, "Widget", "widgets", "v10"),
        (task, "Print", "print", "v1"),
    ]
)
@given(st.lists(st.tuples(GENERATORS, CAMEL, KEBAB, VERSION), min_size=8, max_size=12))
def test_whatever_is_accepted_is_clean_and_can_be_imported(
    folders: Path, wanted: list[tuple[Any, str, str, str]]
) -> None:
    root = copied(folders, folders.parent / str(next(_folders)))
    accepted = []
    for planned, name, word, version in wanted:
        with suppress(UsageError):
            write(root, planned(Project.at(root), name, word, version))
            accepted.append((planned.__name__, name, word, version))
    check(root, accepted)
    shutil.rmtree(root)
