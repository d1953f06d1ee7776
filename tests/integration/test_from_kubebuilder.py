"""The page about kubebuilder, with controller-runtime itself: an installation moves to this runtime, and back."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import which

import pytest

from bonny import Operator, Resource
from bonny.client.config import Kubeconfig
from bonny_dev.crd.definition import crds
from bonny_dev.sandbox import Sandbox
from bonny_dev.sandbox.build import PINNED
from bonny_dev.sandbox.processes import end
from bonny_dev.tasks.take_over import take_over
from bonny_dev.ways_in.sources import traces_of
from tests.support.page_code import blocks, shown
from tests.support.serving import serving

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PAGE = "port-a-kubebuilder-operator"
WEBSITE = ("example.com/v1", "Website")
FINALIZER = "example.com/dns"


@pytest.fixture(scope="module")
def manager(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program of the page, built with the modules of the benchmark; called as kubebuilder calls it."""
    if which("go") is None:
        pytest.skip("the other side is built with Go, which is not on PATH")
    folder = tmp_path_factory.mktemp("go")
    for name in ("go.mod", "go.sum"):
        (folder / name).write_bytes((ROOT / "bench" / "controller_runtime" / name).read_bytes())
    (code,) = blocks(PAGE, "go")
    frame = (ROOT / "tests" / "support" / "go_side" / "main.go.txt").read_text("utf-8")
    (folder / "main.go").write_text(frame.replace("{{page}}\n\n//", f"{code}\n//"), "utf-8")
    command = ["go", "build", "-trimpath", "-buildvcs=false", "-o", "manager", "."]
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **PINNED}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder / "manager"


@contextmanager
def running(program: Path, sandbox: Sandbox) -> Iterator[Path]:
    """Run the manager until the block ends; gives the file of its log."""
    log = program.with_suffix(".log")
    with log.open("w") as stream:
        settings = {"HOME": str(program.parent), "KUBECONFIG": str(sandbox.kubeconfig)}
        process = subprocess.Popen([str(program)], env=settings, stdout=stream, stderr=stream)
        try:
            yield log
        finally:
            end(process, within_seconds=30.0)


def test_an_installation_of_kubebuilder_moves_here_and_back_while_its_children_stay(
    manager: Path, sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    page = shown(PAGE)
    operator = Operator(name="sites-operator", group="example.com", controllers=[page["WebsiteController"]])
    sandbox.apply(crds([page["Website"]], "example.com"))
    shop = {"apiVersion": WEBSITE[0], "kind": "Website", "metadata": {"name": "shop", "namespace": "default"}}
    path = "/apis/example.com/v1/namespaces/default/websites/shop"

    def servers() -> Resource:
        return sandbox.get("apps/v1", "Deployment", "shop", namespace="default") or {}

    def website() -> Resource:
        return sandbox.get(*WEBSITE, "shop", namespace="default") or {}

    def managers() -> list[str]:
        return [each["manager"] for each in servers()["metadata"]["managedFields"]]

    def wanted(replicas: int) -> None:
        patch = {"spec": {"replicas": replicas}}
        assert sandbox.request("PATCH", path, patch, content_type="application/merge-patch+json").status == 200

    with running(manager, sandbox):
        sandbox.apply({**shop, "spec": {"host": "shop.org", "replicas": 2}})
        sandbox.eventually(lambda: servers() and "available" in (website().get("status") or {}), within_seconds=60)
    before = servers()
    assert (website()["metadata"]["finalizers"], managers()) == ([FINALIZER], ["manager"])

    with serving(operator, sandbox.kubeconfig):
        sandbox.eventually(lambda: len(managers()) == 2)
        assert servers()["metadata"]["generation"] == before["metadata"]["generation"], "no pod restarts"
        wanted(3)
        sandbox.eventually(lambda: servers()["spec"]["replicas"] == 3)

    # Back, without a command: the finalizer has kept its name.
    with running(manager, sandbox):
        wanted(4)
        sandbox.eventually(lambda: servers()["spec"]["replicas"] == 4, within_seconds=60)

    # And here for good.
    with serving(operator, sandbox.kubeconfig):
        sandbox.eventually(lambda: servers()["spec"]["replicas"] == 4)
        taken = take_over(
            Kubeconfig(str(sandbox.kubeconfig)), operator, traces_of("kubebuilder"), back=False, dry_run=False
        )
        assert asyncio.run(taken)
        sandbox.eventually(lambda: managers() == ["sites-operator/WebsiteController"])
        assert website()["metadata"]["finalizers"] == [FINALIZER]
        assert servers()["spec"]["template"] == before["spec"]["template"]
        sandbox.request("DELETE", path)
        sandbox.eventually(lambda: not website())
    assert "Deployment: fields of manager go to sites-operator/WebsiteController" in capsys.readouterr().out
    sandbox.request("DELETE", "/apis/apps/v1/namespaces/default/deployments/shop")
