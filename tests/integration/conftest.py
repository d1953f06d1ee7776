"""Modules share one API server, and operators follow whole clusters: what a module leaves behind is removed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bonny_dev.sandbox import Sandbox
from bonny_dev.testing.faults import FaultProxy
from tests.support.things import own_namespace

MERGE = "application/merge-patch+json"
# What others follow, or place pods on.
COLLECTIONS = ("/api/v1/pods", "/api/v1/nodes", "/api/v1/persistentvolumes", "/apis/apps/v1/deployments")


@pytest.fixture(autouse=True, scope="module")
def _nothing_is_left(sandbox: Sandbox) -> Iterator[None]:
    yield
    definitions = sandbox.request("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions").body["items"]
    served = [
        f"/apis/{found['spec']['group']}/{version['name']}/{found['spec']['names']['plural']}"
        for found in definitions
        for version in found["spec"]["versions"]
        if version["storage"]
    ]
    for collection in (*COLLECTIONS, *served):
        root, _, plural = collection.rpartition("/")
        listed = sandbox.request("GET", collection)
        # A definition that is on its way out serves nothing any more.
        for found in listed.body["items"] if listed.status == 200 else ():
            metadata = found["metadata"]
            namespace = f"namespaces/{metadata['namespace']}/" if "namespace" in metadata else ""
            path = f"{root}/{namespace}{plural}/{metadata['name']}"
            if metadata.get("finalizers"):
                sandbox.request("PATCH", path, {"metadata": {"finalizers": None}}, content_type=MERGE)
            sandbox.request("DELETE", f"{path}?gracePeriodSeconds=0")


@pytest.fixture
def namespace(sandbox: Sandbox) -> Iterator[str]:
    """A namespace for one test."""
    with own_namespace(sandbox) as name:
        yield name


@pytest.fixture
def proxy(sandbox: Sandbox) -> Iterator[FaultProxy]:
    """A proxy in front of the sandbox, for one test."""
    with FaultProxy(sandbox) as made:
        yield made
