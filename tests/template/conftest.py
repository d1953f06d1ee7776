"""Fixtures of the template's tests: projects that are rendered once, and never changed by a test.

What must be shown of a template, and where it is shown:

| what | where |
|---|---|
| every template file parses with the template's delimiters | test_rendering |
| every two values of different options together, the default, the fullest | ANSWER_SETS; test_rendering, test_matrix |
| no marker, no work for later, nothing of an option that was not chosen | test_rendering |
| hostile answers arrive unchanged, or are refused in a sentence with nothing left | test_answers |
| lint, types, tests, tasks, generated kinds | test_rendered_project, test_generator, test_matrix |
| the manifest fits the schemas of Kubernetes | test_matrix |
| its policy: no wildcard, restricted pods | the rendered tests; tests/integration/test_deploy |
| the image's steps, its tree read-only as user 65532; `docker build` where there is an engine | test_image |
| cookiecutter, cruft and copier render the same | test_copier |
| an update leaves what the user wrote; what both changed is shown as a conflict | test_cruft |
| replay, tags, clones, archives, odd paths, no room, no rights | test_ways_in |
| names for Windows, LF, executable bits, no paths or hosts of this machine | test_rendering |
| every command of the READMEs runs, every link leads somewhere | test_readme |
| rendered twice, the bytes are equal | test_rendering |
| the oldest cookiecutter that can render it says so by failing | test_ways_in |
"""

from __future__ import annotations

import compileall
import fcntl
import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from bonny_dev.project import Project
from bonny_dev.tasks.generate import plan_kind
from bonny_dev.tasks.options import NewKind
from tests.support.baking import bake, install
from tests.support.generating import commit, run_task
from tests.support.judges import Judges, appoint
from tests.support.pairwise import rows

# Everything that can be asked for, in words that are hard to quote.
FULLEST = {
    "operator_name": "Ops für “Café” & 'Co' \"™\" 🚀",
    "operator_slug": "z",
    "description": 'Says "hello" \\ goodbye \\\\ {{ x }} ${{ y }} {# #} </script> `z`',
    "author": 'Zoë O\'Neil, "the" \\n & others',
    "api_group": "a1.b-2.example.org",
    "watches": "namespace",
    "image_repository": "localhost:5000/team/z__z",
    "licence": "MIT",
    "ci": "gitlab",
    "code_owners": "@ann @my-org/my-team bob@example.com",
    "security_contact": "https://example.com/security?from=z&to=us",
    "devcontainer": "yes",
}
# The longest answers, and none of what can be left out.
LONGEST = {
    "operator_name": "x" * 100,
    "operator_slug": "a" + "-b1" * 16 + "c",
    "description": "y" * 200,
    "author": "z" * 100,
    "image_repository": "operators",
    "licence": "none",
    "ci": "none",
}
OPTIONS = {
    "watches": ("all", "namespace"),
    "licence": ("Apache-2.0", "MIT", "none"),
    "ci": ("github", "gitlab", "none"),
    "code_owners": ("", "@ann"),
    "security_contact": ("", "security@example.com"),
    "devcontainer": ("no", "yes"),
    "image_repository": ("registry.example.com/widgets-operator", "ghcr.io/my-org/widgets-operator"),
}
PAIRS = {f"pair-{number}": row for number, row in enumerate(rows(OPTIONS))}
# The first two are installed and tested whole; the others are rendered and checked.
INSTALLED: dict[str, dict[str, str]] = {"default": {}, "fullest": FULLEST}
ANSWER_SETS: dict[str, dict[str, str]] = {**INSTALLED, "longest": LONGEST, **PAIRS}
# For tests that the fullest answers rarely fail alone: what they add is in `furnished`, too.
DEFAULT_FIRST = ("default", pytest.param("fullest", marks=pytest.mark.slow))

# What every generator adds, in one repository.
GENERATED = (
    "gen-controller Widget widgets --version v2alpha1 --short-name wd --short-name wdg,wgt --finalizer",
    "gen-controller Widget widgets --version v1",
    "gen-controller Fleet fleets --cluster-scoped --group fleets.example.org",
    f"gen-controller W{'x' * 58} w{'x' * 62}",
    "gen-controller Deployment deployments --for apps/v1/Deployment --finalizer",
    "gen-controller Job jobs --bare --finalizer",
    "gen-controller EvictionPolicy evictionpolicies --no-controller",
    "gen-task stale-reports",
    "gen-reconciler MapCounter",
    "gen-webhook Widget",
    "gen-webhook Fleet",
    "gen-webhook Pod",
)


@pytest.fixture(scope="session")
def baked_sets() -> dict[str, Path]:
    """The projects that were rendered so far, by the name of their answers."""
    return {}


def project_of(name: str, baked_sets: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project rendered from one of the answer sets, rendered once for all workers."""

    def render(folder: Path) -> None:
        baked = bake(folder / "bake", ANSWER_SETS[name])
        assert baked.code == 0, baked.said

    if name not in baked_sets:
        folder = once(of_all_workers(tmp_path_factory) / "baked" / name, render)
        baked_sets[name] = min(folder.glob("bake/out/*"))  # its compiled runtime lies beside it
    return baked_sets[name]


def of_all_workers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of this run of the tests."""
    folder = tmp_path_factory.getbasetemp()
    return folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder


def once(folder: Path, fill: Callable[[Path], object]) -> Path:
    """`folder`, which the first worker that needs it fills, while others wait."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "done").exists():
            fill(folder)
            (folder / "done").touch()
    return folder


@pytest.fixture(scope="session")
def judges(tmp_path_factory: pytest.TempPathFactory) -> Judges:
    """Programs of others that say whether what was rendered is right."""
    folder = once(of_all_workers(tmp_path_factory) / "judges", lambda folder: appoint(folder / "env"))
    return Judges(folder=folder / "env")


@pytest.fixture(scope="session", params=sorted(ANSWER_SETS))
def rendered(
    request: pytest.FixtureRequest, baked_sets: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A project rendered from one of the answer sets."""
    return project_of(request.param, baked_sets, tmp_path_factory)


@pytest.fixture(scope="session", params=DEFAULT_FIRST)
def fresh(
    request: pytest.FixtureRequest, baked_sets: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The rendered project as a person first has it: installed with its dev packages, without a kind of its own."""
    baked = project_of(request.param, baked_sets, tmp_path_factory)
    project = Path(shutil.copytree(baked, tmp_path_factory.mktemp("fresh") / baked.name))
    install(project)
    return project


@pytest.fixture(scope="session", params=sorted(INSTALLED))
def furnished(
    request: pytest.FixtureRequest, baked_sets: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The rendered project, installed, with what every generator adds: two kinds, one of them in two versions and the
    other cluster-scoped, one with long names, a controller of a kind of others, a task, a reconciler and webhooks."""
    baked = project_of(request.param, baked_sets, tmp_path_factory)
    project = Path(shutil.copytree(baked, tmp_path_factory.mktemp("furnished") / baked.name))
    install(project)
    commit(project)
    for words in GENERATED:  # in this process: as processes of their own (test_readme) they take a second each
        assert run_task(project, words) == 0, words
    return project


@pytest.fixture(scope="session")
def pristine(baked_sets: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The default project."""
    return project_of("default", baked_sets, tmp_path_factory)


@pytest.fixture
def project(pristine: Path, tmp_path: Path) -> Path:
    """A copy of the default project to change."""
    return copied(pristine, tmp_path)


@pytest.fixture(scope="session")
def with_gadget(pristine: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The default project with a kind Gadget, for tests that change nothing."""
    project = copied(pristine, tmp_path_factory.mktemp("with-gadget"))
    plan_kind(Project.at(project), NewKind(kind="Gadget", plural="gadgets", short_name=["gd"])).write()
    return project


def copied(project: Path, folder: Path) -> Path:
    """A copy of `project` in `folder`, with a runtime that is compiled once."""
    copy = Path(shutil.copytree(project, folder / project.name, ignore=shutil.ignore_patterns("vendor")))
    compiled = once(project.with_name(f"{project.name}.compiled"), partial(compile_runtime, project))
    shutil.copytree(compiled / "vendor", copy / "vendor")
    return copy


def compile_runtime(project: Path, folder: Path) -> None:
    shutil.copytree(project / "vendor", folder / "vendor")
    compileall.compile_dir(folder / "vendor" / "bonny", quiet=2)
