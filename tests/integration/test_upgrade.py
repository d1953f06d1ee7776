"""From one release of a rendered repository to the next, with objects: they survive, and are reconciled again.

`invoke crd-check` has to say before what changes. The Deployments do not run here: each release runs as a process, with
the permissions of its ServiceAccount.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from bonny.resource import Resource
from bonny_dev.project import Project
from bonny_dev.sandbox import Sandbox
from bonny_dev.tasks.generate import plan_kind
from bonny_dev.tasks.options import NewKind
from tests.conftest import Start
from tests.support.baking import bake
from tests.support.processes import OperatorProcess
from tests.support.releases import git

SLUG = "widgets-operator"
OLD, NEW = "example.com/v1alpha1", "example.com/v1"
CONTROLLER = "src/widgets_operator/controllers/widget.py"
APIS = [f"src/widgets_operator/api/{version}/widget.py" for version in ("v1alpha1", "v1")]
SIZE = "    size: int"
SERVICE = '''

def service_for(owner: Resource) -> Resource:
    """A Service, which the release before did not make."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": owner["metadata"]["name"]},
        "spec": {"ports": [{"port": 80}]},
    }
'''


@dataclass(frozen=True)
class Releases:
    """A checkout of the tag v0.1.0, and the repository, which is ahead of it."""

    before: Path
    now: Path


def invoked(root: Path, *words: str, kubeconfig: Path | None = None) -> str:
    """The output of a task, with the tools and the runtime of that checkout."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith(("BONNY_", "KUBE"))}
    if kubeconfig is not None:
        kept["KUBECONFIG"] = str(kubeconfig)
    command = [sys.executable, "-m", "invoke", *words]
    done = subprocess.run(command, cwd=root, env=kept, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def edit(root: Path, name: str, old: str, new: str) -> None:
    text = (root / name).read_text("utf-8")
    assert text.count(old) == 1, name
    (root / name).write_text(text.replace(old, new), "utf-8")


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> Releases:
    """v0.1.0 has one version of a kind, with a finalizer. Afterwards there is a second version, a field more in both,
    and a kind of children more."""
    folder = tmp_path_factory.mktemp("upgrade")
    baked = bake(folder / "bake")
    assert baked.code == 0, baked.said
    root = baked.project
    invoked(root, "gen-controller", "Widget", "widgets", "--version", "v1alpha1", "--finalizer")
    git(root, "init", "--quiet")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "the first release")
    git(root, "tag", "v0.1.0")
    git(folder, "clone", "--quiet", str(root), str(folder / "before"))

    plan_kind(Project.at(root), NewKind(kind="Widget", plural="widgets", version="v1")).write()
    for name in APIS:
        edit(root, name, SIZE, f'    colour: str = "red"\n{SIZE}')
    owned = 'Owned("v1", "ConfigMap"),'
    edit(root, CONTROLLER, owned, f'{owned} Owned("v1", "Service")')
    registered = "axn.register_descendant(settings)\n"
    edit(root, CONTROLLER, registered, f"{registered}        axn.register_descendant(service_for(axn.resource))\n")
    with (root / CONTROLLER).open("a", encoding="utf-8") as file:
        file.write(SERVICE)
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "what the next release has")
    return Releases(before=folder / "before", now=root)


@pytest.fixture
def own() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


def widget(name: str, size: int) -> Resource:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": OLD, "kind": "Widget", "metadata": metadata, "spec": {"size": size}}


def children(sandbox: Sandbox, kind: str) -> dict[str, tuple[str, str]]:
    """The name, UID and first owner of the children in the namespace of the objects."""
    found = sandbox.items("v1", kind, label_selector="bonny.dev/owner-uid")
    metadata = [each["metadata"] for each in found]
    return {each["name"]: (each["uid"], each["ownerReferences"][0]["uid"]) for each in metadata}


def is_ready(resource: Resource | None) -> bool:
    conditions = ((resource or {}).get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def test_objects_of_the_last_release_survive_this_one_and_the_way_back(
    releases: Releases, own: Sandbox, start_operator: Start
) -> None:
    def install(root: Path, version: str) -> OperatorProcess:
        invoked(root, "install", "--image", f"registry.example.com/{SLUG}:{version}", kubeconfig=own.kubeconfig)
        identity = own.service_account_kubeconfig(SLUG, SLUG)
        paths = os.pathsep.join([str(root / "src"), str(root / "vendor")])
        command = [sys.executable, "-m", "widgets_operator"]
        return start_operator(command, kubeconfig=identity, cwd=root, PYTHONPATH=paths).wait_ready()

    def stop(operator: OperatorProcess) -> None:
        assert operator.lines("reconcile failed") == []
        assert operator.stop()[0] == 0

    # The last release, with objects that have a status, a finalizer and a child.
    operator = install(releases.before, "0.1.0")
    before = {each["metadata"]["name"]: each for each in own.apply([widget("a", 1), widget("b", 2), widget("c", 3)])}
    for name in before:
        own.eventually(lambda name=name: is_ready(own.get(OLD, "Widget", name)))
    maps = children(own, "ConfigMap")
    assert len(maps) == 3
    stop(operator)

    # What changes is said before.
    said = invoked(releases.now, "crd-check").splitlines()
    assert said[0] == "compared with v0.1.0:"
    assert [line for line in said if "breaks" in line] == []
    assert "  changed: Widget v1 is new" in said
    assert "  changed: Widget v1alpha1 spec.colour is new" in said
    assert any(line.startswith(f"  new permission: ClusterRole {SLUG}: ") and '"services"' in line for line in said)

    # This one: the same objects, as both versions; what it makes more is there.
    operator = install(releases.now, "0.2.0")
    own.eventually(lambda: len(children(own, "Service")) == 3)
    assert children(own, "ConfigMap") == maps
    for name, created in before.items():
        for version in (OLD, NEW):
            live = own.get(version, "Widget", name)
            assert live is not None
            assert live["metadata"]["uid"] == created["metadata"]["uid"]
            assert live["metadata"]["finalizers"]
            assert live["spec"] == {**created["spec"], "colour": "red"}
            assert is_ready(live)
    own.apply({**widget("a", 9), "apiVersion": NEW})
    own.eventually(lambda: is_ready(own.get(NEW, "Widget", "a")) and data(own, "a") == {"size": "9"})
    own.delete(NEW, "Widget", "b")
    own.eventually(lambda: own.get(NEW, "Widget", "b") is None)
    stop(operator)

    # And back: the former release goes on with its objects.
    operator = install(releases.before, "0.1.0")
    own.apply(widget("c", 7))
    own.eventually(lambda: data(own, "c") == {"size": "7"})
    live = own.get(OLD, "Widget", "c")
    assert live is not None
    assert live["metadata"]["uid"] == before["c"]["metadata"]["uid"]
    own.delete(OLD, "Widget", "c")
    own.eventually(lambda: own.get(OLD, "Widget", "c") is None)
    stop(operator)


def data(sandbox: Sandbox, owner: str) -> object:
    found = sandbox.get("v1", "ConfigMap", f"{owner}-widget")
    return found and found["data"]
