"""The examples of the reference that need an API server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from bonny import Key
from bonny.client import Client
from bonny.client.config import Kubeconfig
from bonny_dev.crd.definition import crds
from bonny_dev.sandbox import Sandbox
from docs.reference.examples.widgets import GROUP, Widget
from tests.support.examples import Example, examples_of, run
from tools.reference import PAGES

EXAMPLES = [example for page in PAGES for example in examples_of(page.name) if example.needs_a_server]
MERGE = "application/merge-patch+json"


@pytest.fixture(autouse=True, scope="module")
def _served(sandbox: Sandbox) -> None:
    sandbox.apply(crds([Widget], GROUP))


@pytest.fixture(autouse=True)
def _clean(sandbox: Sandbox) -> Iterator[None]:
    """None of its objects is left for the next example."""
    yield
    path = f"/apis/{GROUP}/v1/namespaces/default/widgets"
    for found in sandbox.items(f"{GROUP}/v1", "Widget"):
        name = found["metadata"]["name"]
        sandbox.request("PATCH", f"{path}/{name}", {"metadata": {"finalizers": None}}, content_type=MERGE)
    sandbox.request("DELETE", path)


@pytest.fixture
async def client(sandbox: Sandbox) -> AsyncIterator[Client]:
    sandbox.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
    async with Client(Kubeconfig(str(sandbox.kubeconfig)), user_agent="reference/1", group=GROUP) as made:
        yield made
    sandbox.request("DELETE", "/api/v1/namespaces/shop/configmaps")


@pytest.fixture
def settings(client: Client, sandbox: Sandbox) -> Key:
    """`client` makes its namespace."""
    key = Key("shop", "settings")
    metadata = {**key._asdict(), "labels": {"tier": "front"}}
    sandbox.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"mode": "fast"}})
    return key


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
@pytest.mark.usefixtures("client")
async def test_an_example_with_a_server_runs(example: Example, request: pytest.FixtureRequest) -> None:
    await run(example, request)
