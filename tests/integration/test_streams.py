"""How kinds are followed, apart from the ordinary: metadata alone, what was left behind."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bonny.client import Client
from bonny.client.config import Kubeconfig
from bonny.core.watch import PAGE_BYTES
from bonny.resource import OWNER_UID, Resource
from bonny_dev.crd.definition import crds
from bonny_dev.sandbox import Sandbox
from bonny_dev.tasks.orphans import Orphan, find_orphans
from bonny_dev.testing.faults import Fault, FaultProxy, ProxiedRequest, Respond, is_list
from tests.conftest import Start
from tests.support import handwritten, metadata_only
from tests.support.processes import handwritten as command
from tests.support.processes import writes

WIDGETS = "/apis/example.com/v1/widgets"


def widget(name: str, *, size: int = 1) -> Resource:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata, "spec": {"size": size}}


def is_list_of_widgets(request: ProxiedRequest) -> bool:
    return request.path == WIDGETS and is_list(request)


def is_child_apply(request: ProxiedRequest) -> bool:
    return request.method == "PATCH" and request.path == "/api/v1/namespaces/default/configmaps/s"


def published(sandbox: Sandbox, name: str) -> str | None:
    found = sandbox.get("v1", "ConfigMap", name)
    return None if found is None else found["data"]["size"]


@pytest.fixture(autouse=True)
def _served(sandbox: Sandbox) -> Iterator[None]:
    sandbox.apply(crds(handwritten.operator.crds, "example.com"))
    yield
    for api_version, kind in (("example.com/v1", "Widget"), ("v1", "Secret"), ("v1", "ConfigMap")):
        for found in sandbox.items(api_version, kind, namespace="default"):
            sandbox.delete(api_version, kind, found["metadata"]["name"])


def test_objects_can_be_followed_by_their_metadata_alone(sandbox: Sandbox, start_operator: Start) -> None:
    secret: Resource = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s", "namespace": "default", "labels": {"watched": "yes"}},
        "stringData": {"password": "hidden"},
    }
    sandbox.apply(secret)
    before = writes(sandbox, "configmaps")
    started = start_operator([sys.executable, str(Path(metadata_only.__file__))]).wait_ready()

    def child() -> Resource | None:
        return sandbox.get("v1", "ConfigMap", "s")

    made = sandbox.eventually(child)
    assert made["data"] == {"fields": "apiVersion,kind,metadata", "kind": "Secret"}
    sandbox.eventually(lambda: started.text.count("seen default/s reconcile ['apiVersion', 'kind', 'metadata']") >= 3)
    after = writes(sandbox, "configmaps")
    assert sum(after.values()) - sum(before.values()) == 1, "one apply, and none at rest"

    sandbox.apply({**secret, "stringData": {"password": "another"}})
    sandbox.eventually(lambda: "seen default/s modify" in started.text)
    sandbox.delete("v1", "ConfigMap", "s")
    sandbox.eventually(lambda: (found := child()) is not None and found["metadata"]["uid"] != made["metadata"]["uid"])


def test_a_metadata_only_child_does_not_spin_while_its_stream_fails(sandbox: Sandbox, start_operator: Start) -> None:
    """Regression: each apply of what nobody could compare counted as a change, and was followed by another at once."""
    labelled = {"name": "s", "namespace": "default", "labels": {"watched": "yes"}}
    sandbox.apply({"apiVersion": "v1", "kind": "Secret", "metadata": labelled, "stringData": {"password": "hidden"}})
    with FaultProxy(sandbox) as proxy:
        command = [sys.executable, str(Path(metadata_only.__file__))]
        started = start_operator(command, kubeconfig=proxy.kubeconfig).wait_ready()
        sandbox.eventually(lambda: "seen default/s reconcile ['apiVersion', 'kind', 'metadata']" in started.text)
        proxy.add(Fault(Respond(503), on=lambda request: request.path == "/api/v1/configmaps", times=None))
        proxy.cut_all()
        sandbox.eventually(lambda: "configmaps: server" in started.probe("/readyz")[1])

        def reasons() -> list[str]:
            return [line["reasons"] for line in started.lines("reconciled") if line["object"] == "default/s"]

        before, applied = len(reasons()), proxy.count(is_child_apply)
        sandbox.eventually(lambda: reasons()[before:].count("resync") >= 4, within_seconds=20)

        assert proxy.count(is_child_apply) - applied <= 8


def test_the_status_of_objects_that_are_followed_by_metadata_alone_is_not_written_at_rest(
    sandbox: Sandbox, start_operator: Start
) -> None:
    """Regression: a status that is not in the store counted as none, and was written anew by each handling."""
    sandbox.apply(widget("w"))
    started = start_operator([sys.executable, str(Path(metadata_only.__file__))]).wait_ready()

    def ready() -> Resource | None:
        found = sandbox.get("example.com/v1", "Widget", "w")
        return found if found is not None and found.get("status", {}).get("conditions") else None

    before = sandbox.eventually(ready)
    assert [known["type"] for known in before["status"]["conditions"]] == ["Ready"]
    handled = len(started.lines("reconciled"))
    sandbox.eventually(lambda: len(started.lines("reconciled")) >= handled + 4)

    assert ready() == before


def test_a_server_that_does_not_care_for_the_limit_is_followed(sandbox: Sandbox, start_operator: Start) -> None:
    """Regression: more than 8 MiB in one answer, as some aggregated API servers send, were asked for again for ever."""
    sandbox.apply(widget("w"))
    everything = sandbox.request("GET", WIDGETS).body
    body = everything.encode() if isinstance(everything, str) else json.dumps(everything).encode()
    with FaultProxy(sandbox) as proxy:
        large = Respond(200, body + b" " * PAGE_BYTES, "application/json")
        fault = proxy.add(Fault(large, on=is_list_of_widgets, times=None))

        start_operator(command(), kubeconfig=proxy.kubeconfig).wait_ready()

        sandbox.eventually(lambda: published(sandbox, "w") == "1")
        assert fault.hits == 4, "500, 62, 7, and 1 with a larger bound"


@pytest.mark.parametrize(
    ("refusal", "verb"),
    [
        (
            Respond(200, b'{"kind":"ConfigMapList","apiVersion":"v1","metadata":{},"items":[]}', "application/json"),
            "list",
        ),
        (Respond(405, b'{"kind":"Status","code":405,"message":"not allowed"}', "application/json"), "watch"),
    ],
    ids=["no resourceVersion", "no watch"],
)
def test_an_api_that_cannot_be_watched_is_named_in_readiness_and_log(
    sandbox: Sandbox, start_operator: Start, refusal: Respond, verb: str
) -> None:
    """Such as metrics.k8s.io, if a controller declares a kind of it."""
    remedy = "cannot be watched: read it with `axn.client.get`"
    with FaultProxy(sandbox) as proxy:
        proxy.add(
            Fault(
                refusal,
                on=lambda each: each.path == "/api/v1/configmaps" and each.is_watch == (verb == "watch"),
                times=None,
            )
        )
        started = start_operator(command(), kubeconfig=proxy.kubeconfig)

        sandbox.eventually(lambda: remedy in started.probe("/readyz")[1])

        (said,) = started.lines("watch failed")
        assert (said["level"], said["verb"], remedy in said["error"]) == ("warning", verb, True)


async def reported(sandbox: Sandbox) -> list[Orphan]:
    """The children that `invoke doctor` reports."""
    async with Client(Kubeconfig(str(sandbox.kubeconfig)), user_agent="test/1") as client:
        return await find_orphans(client, handwritten.operator)


def test_u3_children_whose_owner_was_deleted_during_an_outage_are_reported_and_left_alone(
    sandbox: Sandbox, start_operator: Start
) -> None:
    sandbox.apply([widget("stays"), widget("goes")])
    first = start_operator(command()).wait_ready()
    sandbox.eventually(lambda: published(sandbox, "stays") and published(sandbox, "goes"))
    assert first.stop()[0] == 0
    sandbox.delete("example.com/v1", "Widget", "goes")
    left = sandbox.get("v1", "ConfigMap", "goes")
    owner = left["metadata"]["labels"][OWNER_UID]

    start_operator(command()).wait_ready()

    assert asyncio.run(reported(sandbox)) == [Orphan("ConfigMap default/goes", owner, collected=True)]
    sandbox.apply(widget("stays", size=2))
    sandbox.eventually(lambda: published(sandbox, "stays") == "2")
    assert sandbox.get("v1", "ConfigMap", "goes") == left
