"""The page about kopf, with kopf itself: an installation moves to this runtime, and back."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bonny import Operator, Resource
from bonny.client.config import Kubeconfig
from bonny_dev.crd.definition import crds
from bonny_dev.sandbox import Sandbox
from bonny_dev.sandbox.processes import end
from bonny_dev.tasks.take_over import take_over
from bonny_dev.ways_in.sources import traces_of
from tests.support.baking import uv
from tests.support.page_code import blocks, shown
from tests.support.serving import serving

pytestmark = pytest.mark.slow

PAGE = "port-a-kopf-operator"
WEBSITE = ("example.com/v1", "Website")
PATH = "/apis/example.com/v1/namespaces/default/websites/shop"
KOPF = "kopf.zalando.org/KopfFinalizerMarker"


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with kopf and the official client."""
    folder = tmp_path_factory.mktemp("kopf")
    uv(folder, "venv", "--quiet", "--python", sys.executable, ".venv")
    uv(folder, "pip", "install", "--quiet", "--python", ".venv/bin/python", "kopf==1.45.2", "kubernetes>=37,<38")
    (code,) = blocks(PAGE, "py")
    (folder / "handlers.py").write_text(code, "utf-8")
    return folder / ".venv" / "bin" / "python"


@contextmanager
def kopf(python: Path, sandbox: Sandbox) -> Iterator[Path]:
    """Run the handlers of the page until the block ends; gives the file of the log."""
    folder = python.parents[2]
    log = folder / "kopf.log"
    with log.open("w") as stream:
        command = [str(python), "-m", "kopf", "run", "handlers.py", "--namespace", "default", "--standalone"]
        settings = {"PATH": os.environ["PATH"], "HOME": str(folder), "KUBECONFIG": str(sandbox.kubeconfig)}
        process = subprocess.Popen(command, cwd=folder, env=settings, stdout=stream, stderr=stream)
        try:
            yield log
        finally:
            end(process, within_seconds=30.0)


def website(sandbox: Sandbox) -> Resource:
    return sandbox.get(*WEBSITE, "shop", namespace="default") or {}


def servers(sandbox: Sandbox) -> Resource:
    return sandbox.get("apps/v1", "Deployment", "shop", namespace="default") or {}


def finalizers(sandbox: Sandbox) -> list[str]:
    found: list[str] = website(sandbox).get("metadata", {}).get("finalizers") or []
    return found


def test_an_installation_of_kopf_moves_here_and_back_while_its_children_stay(
    python: Path, sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    page = shown(PAGE)
    operator = Operator(name="sites-operator", group="example.com", controllers=[page["WebsiteController"]])
    sandbox.apply(crds([page["Website"]], "example.com"))
    shop = {"apiVersion": WEBSITE[0], "kind": "Website", "metadata": {"name": "shop", "namespace": "default"}}

    def moved(**options: bool) -> bool:
        flags = {"back": False, "dry_run": False, **options}
        return asyncio.run(take_over(Kubeconfig(str(sandbox.kubeconfig)), operator, traces_of("kopf"), **flags))

    with kopf(python, sandbox):
        sandbox.apply({**shop, "spec": {"host": "shop.org", "replicas": 2}})
        sandbox.eventually(lambda: servers(sandbox) and "last-handled" in str(website(sandbox)), within_seconds=60)
    before = servers(sandbox)
    assert finalizers(sandbox) == [KOPF]

    with serving(operator, sandbox.kubeconfig):
        sandbox.eventually(lambda: len(finalizers(sandbox)) == 2)
    assert servers(sandbox)["metadata"]["generation"] == before["metadata"]["generation"], "no pod restarts"

    # Back: kopf resumes, and does not create again.
    assert moved(back=True)
    assert finalizers(sandbox) == [KOPF]
    with kopf(python, sandbox) as log:
        sandbox.eventually(lambda: "Handler 'announce' succeeded" in log.read_text("utf-8"), within_seconds=60)
        assert "Handler 'create'" not in log.read_text("utf-8")

    # And here for good.
    with serving(operator, sandbox.kubeconfig):
        sandbox.eventually(lambda: len(finalizers(sandbox)) == 2)
        assert moved()
        assert finalizers(sandbox) == list(operator.finalizers(page["WebsiteController"]))
        assert "kopf" not in str(website(sandbox)["metadata"].get("annotations"))
        managers = lambda: [each["manager"] for each in servers(sandbox)["metadata"]["managedFields"]]  # noqa: E731
        sandbox.eventually(lambda: managers() == ["sites-operator/WebsiteController"])
        after = servers(sandbox)
        assert (after["metadata"]["uid"], after["spec"]) == (before["metadata"]["uid"], before["spec"])
        sandbox.request("DELETE", PATH)
        sandbox.eventually(lambda: not website(sandbox))
    told = capsys.readouterr().out
    assert "Deployment: fields of OpenAPI-Generator go to sites-operator/WebsiteController" in told
    sandbox.request("DELETE", "/apis/apps/v1/namespaces/default/deployments/shop")


def test_the_page_shows_the_listing_as_it_is_printed(tmp_path: Path) -> None:
    from bonny_dev.tasks.port_kopf import listing  # noqa: PLC0415
    from bonny_dev.ways_in.kopf_code import read_kopf  # noqa: PLC0415  only this test reads code

    (code,) = blocks(PAGE, "py")
    path = tmp_path / "handlers.py"
    path.write_text(code, "utf-8")
    printed = [line.removeprefix(f"{tmp_path}/") for line in listing(read_kopf(path))]
    (example,) = [each for each in blocks(PAGE, "console") if "--dry-run\nhandlers.py" in each]
    assert example.splitlines()[1:-1] == printed
