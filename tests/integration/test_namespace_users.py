"""An operator that watches a list of namespaces, or the ones with certain labels: what tools and probes show of it."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bonny import Operator
from bonny.client.config import Kubeconfig
from bonny.console.server import ConsoleRun
from bonny.console.settings import ConsoleSettings
from bonny.namespaces import NamespaceSelector
from bonny_dev.console.command import top
from bonny_dev.manifest import bundle
from bonny_dev.sandbox import Sandbox
from bonny_dev.tasks.doctor import examine
from bonny_dev.testing.running import RunningOperator, running
from bonny_dev.why.command import why
from tests.support.breaking import edit, repository
from tests.support.extras import run_of
from tests.support.serving import Serving
from tests.support.things import GROUP, PartsController, Thing, thing

TEAM = "team=users"
INSIDE, OUTSIDE = ("users-a", "users-b"), "users-c"
WATCHES = {"names": INSIDE, "labels": NamespaceSelector(TEAM)}
NAME = "spaces"


@pytest.fixture(params=WATCHES)
def watch(request: pytest.FixtureRequest, sandbox: Sandbox) -> Any:
    for name in (*INSIDE, OUTSIDE):
        labels = {"team": "users"} if name in INSIDE else {}
        sandbox.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
    return WATCHES[request.param]


def operator_of(watch: Any) -> Operator:
    return Operator(name=NAME, group=GROUP, controllers=[PartsController], crds=[Thing], watch=watch)


@pytest.fixture
def installed(sandbox: Sandbox, watch: Any) -> Iterator[Operator]:
    """The manifest as `invoke manifest` writes it, and an object inside and outside."""
    made = operator_of(watch)
    documents = bundle.documents(made, image=None, namespace=NAME, local=True)
    sandbox.apply(documents)
    Sandbox.eventually(lambda: sandbox.request("GET", f"/apis/{GROUP}/v1/things").status == 200)
    sandbox.apply([thing("t1", namespace=name, parts=["p1"]) for name in (*INSIDE, OUTSIDE)])
    yield made
    for each in documents:
        if each["kind"] != "CustomResourceDefinition" and each["kind"] != "Namespace":
            metadata = each["metadata"]
            sandbox.delete(each["apiVersion"], each["kind"], metadata["name"], namespace=metadata.get("namespace"))


@pytest.fixture
def at_work(sandbox: Sandbox, installed: Operator) -> Iterator[Serving]:
    """The operator, with the permissions of its manifest alone, and its console."""
    identity = sandbox.service_account_kubeconfig(NAME, NAME)
    selected = isinstance(installed.watch, NamespaceSelector)
    settings = (ConsoleSettings(port=0), *((installed.watch,) if selected else ()))
    made = Serving(installed, identity, watch_namespaces=installed.watched(NAME), extras=settings)
    made.start()
    try:
        (worker,) = made.process.workers
        sandbox.eventually(lambda: worker.handled >= len(INSIDE))
        yield made
    finally:
        made.stop()


def test_doctor_finds_the_permissions_in_these_namespaces(sandbox: Sandbox, installed: Operator) -> None:
    def found() -> Any:
        return asyncio.run(_permissions(installed, Kubeconfig(str(sandbox.kubeconfig))))

    assert found().ok, found()
    by_name = isinstance(installed.watch, tuple)
    kind, where = ("RoleBinding", INSIDE[1]) if by_name else ("ClusterRoleBinding", None)
    sandbox.delete("rbac.authorization.k8s.io/v1", kind, NAME, namespace=where)
    Sandbox.eventually(lambda: not found().ok)
    lines = " ".join(found().detail)
    assert INSIDE[1] in lines
    assert (INSIDE[0] in lines) is not by_name


async def _permissions(operator: Operator, cluster: Kubeconfig) -> Any:
    found = [each async for each in examine(operator, cluster, namespace=NAME, samples={})]
    (permissions,) = [each for each in found if each.part == "permissions"]
    return permissions


async def test_why_shows_that_an_object_is_outside(
    sandbox: Sandbox, installed: Operator, capsys: pytest.CaptureFixture[str]
) -> None:
    async def verdict(target: str) -> dict[str, Any]:
        await why(
            Kubeconfig(str(sandbox.kubeconfig)), installed, target, namespace=NAME, everything=False, as_json=True
        )
        found: dict[str, Any] = json.loads(capsys.readouterr().out)
        return found["verdict"]

    outside = await verdict(f"things/{OUTSIDE}/t1")
    assert outside["question"] == "accepted"
    assert f"the namespace {OUTSIDE} is not watched by {NAME}" in outside["text"]
    assert "is not watched" not in (await verdict(f"things/{INSIDE[0]}/t1"))["text"]


def test_the_metrics_the_probes_and_the_console_count_the_streams(
    at_work: Serving, capsys: pytest.CaptureFixture[str]
) -> None:
    process = at_work.process
    text = process.exposition()[0].decode()
    ready, red = process.readiness(), process.health()
    assert ready.ok
    assert red.ok, red.lines
    port = run_of(process, ConsoleRun).server.port
    assert top(Kubeconfig(""), process.operator, namespace=NAME, url=f"http://127.0.0.1:{port}", once=True) == 0
    printed = capsys.readouterr().out
    for kind in (f"things.{GROUP}", "configmaps"):
        for name in INSIDE:
            assert re.search(rf"^{kind} in {name} +1 .* in sync$", printed, re.MULTILINE), printed
    assert OUTSIDE not in printed + text
    if isinstance(process.operator.watch, tuple):
        assert text.count("\nbonny_stream_synced{") == 4
        return
    assert f"namespaces with {TEAM}: 2" in ready.lines
    assert 'bonny_namespaces{state="joined"} 2.0' in text
    assert 'bonny_namespace_changes_total{change="joined"} 2.0' in text
    for name in ("streams", "objects"):
        assert f'bonny_namespace_{name}{{resource="things.{GROUP}"}} 2.0' in text
    assert text.count("\nbonny_stream_synced{") == 1, "only the stream of namespaces has a series of its own"


@asynccontextmanager
async def lamps(sandbox: Sandbox, folder: Path, watch: Any) -> AsyncIterator[RunningOperator]:
    package = f"lamps_{type(watch).__name__.lower()}"
    root = repository(folder / "lamps", "sound", package=package)
    (root / "src" / package / "controllers.py").write_text(LAMP, "utf-8")
    source = root / "src" / package / "operator.py"
    edit(source, "crds=[lamp.Lamp]", f"crds=[lamp.Lamp], watch={watch!r}")
    edit(source, "from . import", "from bonny.namespaces import NamespaceSelector\n\nfrom . import")
    async with running(sandbox, root) as at_work:
        yield at_work


LAMP = """
from bonny import Axn, Controller, Owned

from .lamp import Lamp, child_of


class LampController(Controller[Lamp]):
    owns = (Owned("v1", "ConfigMap"),)

    async def reconcile(self, axn: Axn[Lamp]) -> None:
        axn.register_descendant(child_of(axn, axn.key.name))
"""


async def test_the_fixture_runs_it_with_the_permissions_of_its_manifest(
    sandbox: Sandbox, watch: Any, tmp_path: Path
) -> None:
    async with lamps(sandbox, tmp_path, watch) as at_work:
        lamp = {"apiVersion": "broken.example.com/v1", "kind": "Lamp", "spec": {"colour": "red"}}
        placed = await at_work.apply({**lamp, "metadata": {"name": "desk"}})
        where = placed["metadata"]["namespace"]
        assert where == (INSIDE[0] if isinstance(watch, tuple) else "default")
        child = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "desk", "namespace": where}}
        await at_work.until(child, lambda live: bool(live["metadata"].get("ownerReferences")))
